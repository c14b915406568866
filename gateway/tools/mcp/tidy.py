"""Lists of tools as servers send them: one entry that is no tool costs that entry, not the list. Pure.

The SDK checks a list as a whole and would refuse it; so it is tidied up on its way in.
"""

from __future__ import annotations

import logging
from typing import Any

import pydantic
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse, Tool

from gateway.log import redact

_log = logging.getLogger(__name__)


def tidied(server: str, item: SessionMessage | Exception) -> SessionMessage | Exception:
    """The same message, without entries of a list of tools that nobody could use."""
    if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
        result = item.message.result
        if isinstance(result.get("tools"), list):
            result["tools"] = [entry for entry in result["tools"] if _usable(server, entry)]
    return item


def _usable(server: str, entry: Any) -> bool:
    schema = entry.get("inputSchema") if isinstance(entry, dict) else None
    if isinstance(schema, dict) and schema.get("type") == "object":
        try:
            Tool.model_validate(entry, by_name=False)
        except pydantic.ValidationError:
            pass
        else:
            return True
    name = str(entry.get("name"))[:100] if isinstance(entry, dict) else "?"
    _log.warning("tool server %s: a tool is left out, its description is broken: %s", server, redact(name))
    return False


class TidiedStream:
    """A stream of what a server sends, tidied up."""

    def __init__(self, server: str, inner: Any) -> None:
        self._server, self._inner = server, inner

    @property
    def last_context(self) -> Any:
        """In which context the last message came: that of the request that it belongs to."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return tidied(self._server, await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> TidiedStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return tidied(self._server, await self._inner.__anext__())

    async def __aenter__(self) -> TidiedStream:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._inner.__aexit__(*error)
