"""A configuration with an agent that works in a process of its own, and what its tools do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gateway.agent import Agent
from gateway.app.build import model_factory
from gateway.app.isolation import Isolation
from gateway.clock import SystemClock
from gateway.config import Config, build_agents, load_config
from gateway.events import Event
from gateway.history import Transcript
from gateway.messages import Message, user
from gateway.options import LoopOptions, RunResult
from gateway.providers.base import Model
from tests.unit.loop.scene import Tape

PATIENCE = 60.0  # seconds; only a failing test waits that long
KEY = "sk-worker-0123456789abcdef"

TOOLS = '''
import asyncio, os, signal, subprocess, sys
from pathlib import Path
from gateway.tools.base import tool

HERE = Path(__file__).parent

def note(line):
    with (HERE / "ran.txt").open("a") as file:
        file.write(line + "\\\\n")

@tool(safe=True)
async def look(at: str) -> str:
    """Look."""
    print("noise on stdout", flush=True)
    os.write(1, b"more noise\\\\n")
    note(f"look {at} {os.getpid()}")
    return f"saw {at}"

@tool
async def pay(amount: int) -> str:
    """Pay."""
    note(f"pay {amount}")
    return f"paid {amount}"

@tool(timeout=600)
async def hang() -> str:
    """Never end."""
    note(f"hang {os.getpid()}")
    await asyncio.sleep(600)
    return "too late"

@tool(timeout=600)
async def deaf() -> str:
    """Never end, and hear nothing: the loop of the process stands still."""
    note(f"deaf {os.getpid()}")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(600)"])

@tool
async def start() -> str:
    """Leave a process behind."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    note(f"start {child.pid}")
    return str(child.pid)

@tool
async def die() -> str:
    """End the process in the middle."""
    note("die")
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"

@tool(safe=True)
async def big() -> str:
    """A lot."""
    return "x" * 3_000_000

@tool(safe=True)
async def hoard(megabytes: int) -> str:
    """Take memory."""
    held = bytearray(megabytes * 1024 * 1024)
    return str(len(held))

@tool(safe=True)
async def surroundings() -> str:
    """What the process knows."""
    return repr((sorted(os.environ.items()), sys.argv, Path("/proc/self/cmdline").read_text()))

tools = [look, pay, hang, deaf, start, die, big, hoard, surroundings]
'''.replace("\\\\n", "\\n")


@dataclass
class Crew:
    """One agent in a process, and everything that was told about it."""

    folder: Path
    config: Config
    agent: Agent
    model: Model
    isolation: Isolation
    tape: Tape = field(default_factory=Tape)
    events: list[Event] = field(default_factory=list)
    transcript: Transcript = field(default_factory=Transcript)
    heard: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, text: str | None = "go", **more: Any) -> RunResult:
        runner = self.isolation(self.agent)
        assert runner is not None
        message = None if text is None else user(text)
        async with asyncio.timeout(PATIENCE):
            return await runner(self, message, self.options(**more))

    def options(self, **more: Any) -> LoopOptions:
        def listen(event: Event) -> None:
            self.events.append(event)
            self.heard.set()

        return LoopOptions(
            **{
                "journal": self.tape,
                "on_event": listen,
                "session_id": "s1",
                "turn_id": "t1",
                **more,
            }
        )

    def types(self) -> list[str]:
        return [event.type for event in self.events if event.type != "assistant:delta"]

    def ran(self) -> list[str]:
        """What the tools did, in order; process numbers left out."""
        return [" ".join(line.split()[:2]) for line in self._lines()]

    def number(self, tool: str) -> int:
        """The process that this tool wrote down last."""
        return int([line for line in self._lines() if line.startswith(tool)][-1].split()[-1])

    def _lines(self) -> list[str]:
        path = self.folder / "ran.txt"
        return path.read_text().splitlines() if path.exists() else []

    async def until(self, condition: Callable[[], Any]) -> None:
        """The one place where something is waited for by looking again."""
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110 - files and processes give no events
                await asyncio.sleep(0.02)


def gone(process: int) -> bool:
    """Whether it has ended (a zombie that waits for its parent has)."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool": tool, "args": args}


def _written(folder: Path, replies: Sequence[dict[str, Any] | str], keys: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "crew_tools.py").write_text(TOOLS)
    flat = [{"text": reply} if isinstance(reply, str) else reply for reply in replies]
    (folder / "script.json").write_text(json.dumps(flat))
    (folder / "config.toml").write_text(
        f"""
[gateway]
default_agent = "ops"
[models.main]
provider = "scripted"
script = "script.json"
api_key = "env:CREW_KEY"
[agents.ops]
tools = ["crew_tools:tools"]
isolation = "process"
default_decision = "allow"
{keys}
[[agents.ops.rules]]
tool = "pay"
decision = "ask"
"""
    )
    return folder / "config.toml"


@asynccontextmanager
async def crew(
    folder: Path, *replies: dict[str, Any] | str, keys: str = "", **changes: Any
) -> AsyncIterator[Crew]:
    """An agent with a script of these replies; `keys`: more lines of its table."""
    config = load_config(_written(folder, replies, keys), env={"CREW_KEY": KEY})
    agents = build_agents(config)
    agent = replace(agents["ops"], **changes)
    isolation = Isolation(config, agents)
    model = model_factory(config, SystemClock())(agent)
    try:
        yield Crew(folder, config, agent, model, isolation)
    finally:
        await isolation.close()


def results(messages: Sequence[Message]) -> list[str]:
    return [result.content for message in messages for result in message.results]
