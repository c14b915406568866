"""What tests of tool servers share: one server's settings, servers that run, and calls of their tools."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.clock import Clock, SystemClock
from gateway.messages import Json
from gateway.tools.base import CallContext, Said, Tool, ToolOutput
from gateway.tools.mcp import AgentTools, Selection, ServerSettings, ToolServers

SERVER = Path(__file__).with_name("server.py")
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20  # what the server's picture is
PATIENCE = 30.0  # seconds; only a failing test waits that long


def settings(folder: Path, name: str = "house", *words: str, **changes: Any) -> ServerSettings:
    """The test's own server, as a child process."""
    folder.mkdir(parents=True, exist_ok=True)
    command = (sys.executable, str(SERVER), str(folder), *words)
    return ServerSettings(**{"name": name, "command": command, "timeout": PATIENCE, **changes})


def script(text: str, name: str = "odd", *, timeout: float = PATIENCE, **changes: Any) -> ServerSettings:
    """A server whose whole program is this."""
    return ServerSettings(name=name, command=(sys.executable, "-c", text), timeout=timeout, **changes)


@asynccontextmanager
async def serving(
    *servers: ServerSettings, folder: Path, clock: Clock | None = None
) -> AsyncIterator[ToolServers]:
    """These servers, started, and stopped at the end."""
    made = ToolServers(servers, clock or SystemClock(), folder)
    await made.start(patience=PATIENCE)
    try:
        yield made
    finally:
        await made.stop()


def by_name(servers: ToolServers, *chosen: str) -> dict[str, Tool]:
    """The tools that an agent has; `chosen`: its `mcp`."""
    picked = [Selection(server=s, tools=t or "*") for s, _, t in (one.partition("/") for one in chosen)]
    return {tool.name: tool for tool in AgentTools(servers, picked if chosen else None).tools()}


async def call(
    servers: ToolServers, tool: str, args: Json | None = None, said: dict[str, Said] | None = None
) -> ToolOutput:
    """One call as the loop would make it, without its time limit."""
    context = CallContext(
        call_id="c1", session_id="s1", turn_id="t1", idempotency_key="s1:c1", said=said or {}
    )
    async with asyncio.timeout(PATIENCE):
        output = await by_name(servers)[tool].handler(args or {}, context)
    return output if isinstance(output, ToolOutput) else ToolOutput(text=output)


def ran(folder: Path) -> list[str]:
    """What the server's tools have noted, oldest first; without its starts."""
    return [line for line in _lines(folder) if not line.startswith(("started", "header"))]


def started(folder: Path) -> list[int]:
    """The ids of the processes that were started, oldest first."""
    return [int(line.split()[1]) for line in _lines(folder) if line.startswith("started")]


def headers(folder: Path) -> set[str]:
    """What the requests carried."""
    return {line.removeprefix("header ") for line in _lines(folder) if line.startswith("header")}


def _lines(folder: Path) -> list[str]:
    path = folder / "ran"
    return path.read_text().splitlines() if path.exists() else []


def exists(pid: int) -> bool:
    """Whether there is such a process, and it is no corpse."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def until(true: Callable[[], object]) -> None:
    """Wait, bounded, until something is so."""
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110 - another process tells us nothing
            await asyncio.sleep(0.01)


def members(group: int) -> list[int]:
    """The processes of a group that live."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(int(entry.name))
    return found
