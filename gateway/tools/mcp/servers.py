"""All tool servers of a configuration: started together, each on its own, and stopped together.

The SDK takes a second to import; it is imported when there is a server to start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.clock import Clock
from gateway.errors import ConfigError, RequiredToolServerDown
from gateway.tools.base import Tool
from gateway.tools.mcp.settings import ServerSettings

if TYPE_CHECKING:
    from gateway.tools.mcp.server import ToolServer

# The SDK logs whole messages, with arguments that are masked elsewhere, and every failure with its traceback.
TALKATIVE = ("mcp", "client")
PATIENCE = 10.0  # seconds that a start waits for servers that are not required


class ToolServers:
    """`settings` by name. `data_dir`: where files that servers send are kept."""

    def __init__(self, settings: Sequence[ServerSettings], clock: Clock, data_dir: Path) -> None:
        self.settings: Mapping[str, ServerSettings] = {one.name: one for one in settings}
        self._clock, self._data_dir = clock, data_dir
        self._servers: dict[str, ToolServer] = {}
        self._offered: dict[str, tuple[object, tuple[Tool, ...]]] = {}
        self._hurry = asyncio.Event()

    async def start(self, patience: float | None = PATIENCE) -> None:
        """Connect to all. One that cannot be reached is tried again later and disturbs nobody.
        `patience`: seconds that those are waited for that are not required; None: their own time limit.

        Raises RequiredToolServerDown, and ConfigError when the SDK is not installed."""
        if not self.settings:
            return
        try:
            from gateway.tools.mcp.server import ToolServer
        except ModuleNotFoundError as error:
            raise ConfigError(
                "mcp",
                f"needs the package {(error.name or '').partition('.')[0]}, which is not installed",
                'pip install "threadgate[mcp]"',
            ) from error
        for name in TALKATIVE:  # what matters is said by our own lines
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._servers = {
            name: ToolServer(one, self._clock, self._data_dir) for name, one in self.settings.items()
        }
        for server in self._servers.values():
            server.start()
        try:
            await self._first_attempts(patience)
        except BaseException:
            await self.stop()
            raise

    async def _first_attempts(self, patience: float | None) -> None:
        needed = [server for server in self._servers.values() if server.settings.required]
        hurry = asyncio.ensure_future(self._hurry.wait())
        tried = asyncio.ensure_future(_tried(self._servers.values()))
        needed_tried = asyncio.ensure_future(_tried(needed))
        try:
            await asyncio.wait({tried, hurry}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({needed_tried, hurry}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in (tried, needed_tried, hurry):
                waiting.cancel()
            await asyncio.gather(tried, needed_tried, hurry, return_exceptions=True)
        if self._hurry.is_set():
            return
        for name, why in self.down(required=True).items():
            raise RequiredToolServerDown(name, why)

    def hurry(self) -> None:
        """Wait for nobody any more: the program is to end."""
        self._hurry.set()

    async def stop(self) -> None:
        """End all connections and processes, within seconds."""
        await asyncio.gather(*(server.stop() for server in self._servers.values()))

    def down(self, *, required: bool = False) -> dict[str, str]:
        """The servers that cannot be reached, and why. `required`: only those that must be."""
        return {
            name: server.reason or server.state
            for name, server in self._servers.items()
            if server.state != "up" and (server.settings.required or not required)
        }

    def names_with_resources(self) -> tuple[str, ...]:
        """The servers that have said that they have resources."""
        return tuple(name for name, server in self._servers.items() if server.has_resources)

    def server(self, name: str) -> ToolServer | None:
        """The running server of this name."""
        return self._servers.get(name)

    def tools(self, name: str) -> tuple[Tool, ...]:
        """What a server offers, as our tools: the same tuple as long as nothing has changed."""
        server = self._servers.get(name)
        if server is None:
            return ()
        known = self._offered.get(name)
        if known is None or known[0] is not server.tools:
            from gateway.tools.mcp.offered import offered_tools

            known = self._offered[name] = (server.tools, offered_tools(server, self._data_dir))
        return known[1]

    def resource_tools(self, names: tuple[str, ...]) -> tuple[Tool, ...]:
        """The tools that list and read the resources of these servers."""
        from gateway.tools.mcp.resources import resource_tools

        return resource_tools([self._servers[name] for name in names], self._data_dir)


async def _tried(servers: Iterable[ToolServer]) -> None:
    for server in servers:
        await server.tried()
