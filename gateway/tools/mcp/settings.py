"""How one tool server is reached, and how far it is believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from gateway.errors import ToolError
from gateway.tools.base import DEFAULT_TIMEOUT, FOREIGN

LONGEST_MESSAGE = 32 * 1024 * 1024  # bytes of one message of a server; a picture in it counts as base64


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """`[mcp.NAME]`. Either `command` (started here, spoken to over its standard input and output) or `url`
    (streamable HTTP). `timeout`: seconds for one call, and for the start. `tools`: globs of those that are
    offered. `trust`: whether the hints of its tools may open the gate."""

    name: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    token: str = field(default="", repr=False)
    timeout: float = DEFAULT_TIMEOUT
    required: bool = False
    tools: tuple[str, ...] = ("*",)
    trust: bool = False

    def offers(self, tool: str) -> bool:
        """Whether the configuration lets this tool of the server through."""
        return any(fnmatchcase(tool, pattern) for pattern in self.tools)

    def full_name(self, tool: str) -> str:
        """How models, rules and cards call a tool of this server."""
        return f"{FOREIGN}{self.name}__{tool}"


class ServerDown(ToolError):
    """The server could not be reached; the call was not sent."""

    def __init__(self, server: str, reason: str) -> None:
        self.server, self.reason = server, reason
        super().__init__(f"the tool server {server!r} is not available: {reason}. The call was not sent.")


class ConnectionLost(ToolError):
    """The server went away while the call ran: whether it took effect is not known."""

    def __init__(self, server: str, reason: str) -> None:
        self.server, self.reason = server, reason
        super().__init__(
            f"the tool server {server!r} went away during the call ({reason}); "
            "nobody knows whether it took effect"
        )
