"""Which of the servers' tools an agent has, as a source that the loop looks at before every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from operator import is_

from gateway.tools.base import FOREIGN, Tool
from gateway.tools.mcp.servers import ToolServers

RESOURCES = "resource_*"  # the glob under which a narrowed agent gets a server's resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """One entry of an agent's `mcp`: a server, and globs of its tools' own names."""

    server: str
    tools: str = "*"

    def takes(self, tool: str) -> bool:
        return fnmatchcase(tool, self.tools)


class AgentTools:
    """See ToolSource. `chosen` None: all servers."""

    def __init__(self, servers: ToolServers, chosen: Sequence[Selection] | None) -> None:
        self._servers = servers
        self._chosen = (
            [Selection(server=name) for name in servers.settings] if chosen is None else list(chosen)
        )
        self._seen: list[object] = []
        self._readable: tuple[str, ...] = ()
        self._tools: tuple[Tool, ...] = ()

    def tools(self) -> tuple[Tool, ...]:
        """What there is now: the same object as long as nothing has changed."""
        names = list(dict.fromkeys(one.server for one in self._chosen))
        offered = {name: self._servers.tools(name) for name in names}
        readable = tuple(name for name in self._servers.names_with_resources() if self._may_read(name))
        seen = list(offered.values())
        if readable != self._readable or len(seen) != len(self._seen) or not all(map(is_, seen, self._seen)):
            tools = [tool for name in names for tool in offered[name] if self._takes(name, tool)]
            self._seen, self._readable = [*seen], readable
            self._tools = (*tools, *(self._servers.resource_tools(readable) if readable else ()))
        return self._tools

    def _takes(self, server: str, tool: Tool) -> bool:
        own = tool.name.removeprefix(f"{FOREIGN}{server}__")
        return any(one.server == server and one.takes(own) for one in self._chosen)

    def _may_read(self, server: str) -> bool:
        return any(one.server == server and one.tools in ("*", RESOURCES) for one in self._chosen)
