"""What a server offered when it was last reached, kept on disk: after a restart a call that a person has
approved is still known, whether its server is there already or not."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import msgspec
from mcp_types import Tool
from pydantic import TypeAdapter, ValidationError

from gateway.tools.mcp.settings import ServerSettings

_TOOLS = TypeAdapter(list[Tool])
_log = logging.getLogger(__name__)


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    server: str
    tools: msgspec.Raw


class Remembered:
    """One file for each server, below the data folder. Another command or address is another server."""

    def __init__(self, data_dir: Path, settings: ServerSettings) -> None:
        self._path = data_dir / "mcp" / f"{settings.name}.json"
        where = "\0".join((*settings.command, settings.url))
        self._server = hashlib.sha256(where.encode()).hexdigest()[:16]

    def load(self) -> tuple[Tool, ...]:
        """The tools; none when nothing is kept, or nothing that can be read."""
        try:
            kept = msgspec.json.decode(self._path.read_bytes(), type=_Kept)
            return tuple(_TOOLS.validate_json(bytes(kept.tools))) if kept.server == self._server else ()
        except FileNotFoundError:
            return ()
        except (OSError, msgspec.MsgspecError, ValidationError) as error:
            _log.warning("%s cannot be read and is left alone: %s", self._path.name, type(error).__name__)
            return ()

    def save(self, tools: tuple[Tool, ...]) -> None:
        """Keep them. A disk that does not take them costs the memory, not the connection."""
        listed = _TOOLS.dump_json(list(tools), by_alias=True, exclude_none=True)
        kept = msgspec.json.encode(_Kept(server=self._server, tools=msgspec.Raw(listed)))
        fresh = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_bytes(kept)
            fresh.replace(self._path)
        except OSError as error:
            _log.warning("the tools of %s are not kept: %s", self._path.stem, error.strerror)
