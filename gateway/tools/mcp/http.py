"""A server that runs elsewhere: streamable HTTP, with what the configuration says in the headers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from gateway.tools.mcp.settings import LONGEST_MESSAGE, ServerSettings
from gateway.tools.mcp.tidy import TidiedStream

CONNECT = 10.0  # seconds until the connection stands
SESSION = "mcp-session-id"
SILENCE = 300.0  # seconds without a byte on a stream; calls have their own limit


@dataclass(slots=True)
class Sent:
    """What becomes of the requests of one piece of work. `forgotten`: the server no longer knows our session,
    and has not looked at the request."""

    forgotten: bool = False


# Each request is sent in the context of who makes it, so that its answer can be told from others.
sent: ContextVar[Sent | None] = ContextVar("mcp_sent", default=None)


class _Bounded(httpx2.AsyncByteStream):
    """A body that breaks off when it grows too long to be one message."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner:
            size += len(piece)
            if size > LONGEST_MESSAGE:
                raise httpx2.RemoteProtocolError(f"a reply of more than {LONGEST_MESSAGE // 2**20} MB")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


class HttpTransport:
    """See `open`. `status`: of the last answer, if it was an error; else 0."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self.status = 0

    @property
    def fault(self) -> str:
        """What the server said instead of an answer."""
        if self.status in (401, 403):
            return (
                f"it refuses us (HTTP {self.status}); look at token and headers of mcp.{self._settings.name}"
            )
        return f"it answered HTTP {self.status}" if self.status else ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Any]:
        """The pair of streams that the SDK's session reads and writes."""
        settings = self._settings
        headers = {"accept-encoding": "identity", **settings.headers}
        if settings.token:
            headers["Authorization"] = f"Bearer {settings.token}"
        async with (
            httpx2.AsyncClient(
                headers=headers,
                timeout=httpx2.Timeout(CONNECT, read=max(SILENCE, settings.timeout + CONNECT)),
                event_hooks={"response": [self._look]},
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
            ) as client,
            streamable_http_client(settings.url, http_client=client, max_sse_event_size=LONGEST_MESSAGE) as (
                incoming,
                outgoing,
            ),
        ):
            yield TidiedStream(settings.name, incoming), outgoing

    async def _look(self, response: httpx2.Response) -> None:
        if response.status_code != 405:  # it has no stream of its own
            self.status = response.status_code if response.status_code >= 400 else 0
        work = sent.get()
        if work is not None and response.status_code == 404 and SESSION in response.request.headers:
            work.forgotten = True
        if "content-encoding" in response.headers:
            raise httpx2.RemoteProtocolError("a compressed reply, although we take none")
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _Bounded(response.stream)
