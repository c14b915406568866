"""S6: what `python -c '<imports and a minimal app>'` costs, interleaved; medians into raw/S6.json."""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import RAW

TAIL = (
    "\nprint(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')), "
    "len(__import__('sys').modules))"
)

FLOOR = "import asyncio, json, sqlite3\n"
FLOOR_APP = """
async def main():
    db = sqlite3.connect(DB); db.execute("pragma journal_mode=wal"); db.execute("create table m(a)")
asyncio.run(main())
"""
# The loop and the store alone; a gateway with a channel is measured from outside.
THREADGATE = "import gateway.loop, gateway.store.sqlite\n"
LANGGRAPH = """
import aiosqlite
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send, interrupt
"""
LANGGRAPH_APP = """
import asyncio, sys
@tool
async def lookup(key: str) -> str:
    "Look up."
    return "x"
async def agent(state): return {"messages": [AIMessage("hi")]}
async def main():
    async with AsyncSqliteSaver.from_conn_string(DB) as saver:
        await saver.setup()
        g = StateGraph(MessagesState)
        g.add_node("agent", agent); g.add_node("tools", ToolNode([lookup]))
        g.add_edge(START, "agent")
        g.add_conditional_edges("agent", lambda s: END, ["tools", END]); g.add_edge("tools", "agent")
        g.compile(checkpointer=saver)
asyncio.run(main())
"""
OPENAI_AGENTS = """
from agents import Agent, Runner, RunState, SQLiteSession, set_tracing_disabled
from agents.decorators import tool
from agents.models.interface import Model
"""
OPENAI_AGENTS_APP = """
import asyncio
set_tracing_disabled(True)
@tool
async def lookup(key: str) -> str:
    "Look up."
    return "x"
class M(Model):
    async def get_response(self, *a, **k): ...
    def stream_response(self, *a, **k): ...
async def main():
    a = Agent(name="a", instructions="x", model=M(), tools=[lookup])
    s = SQLiteSession("s", DB)
    s.close()
asyncio.run(main())
"""
PYDANTIC_AI = """
import sqlite3
from pydantic_ai import Agent, Conversation, ConversationTypeAdapter, DeferredToolRequests
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models import Model
"""
PYDANTIC_AI_APP = """
import asyncio
from pydantic_ai.models.function import FunctionModel
async def f(m, i): ...
agent = Agent(FunctionModel(f), instructions="x", output_type=[str, DeferredToolRequests])
@agent.tool_plain
async def lookup(key: str) -> str:
    "Look up."
    return "x"
ModelMessagesTypeAdapter.validate_json(b"[]")
db = sqlite3.connect(DB); db.execute("pragma journal_mode=wal"); db.execute("create table r(a)")
"""
AGNO = """
from agno.agent import Agent
from agno.db.sqlite import AsyncSqliteDb
from agno.models.base import Model
from agno.tools import tool
"""
AGNO_APP = """
import asyncio
@tool
async def lookup(key: str) -> str:
    "Look up."
    return "x"
class M(Model):
    async def ainvoke(self, *a, **k): ...
    def invoke(self, *a, **k): ...
    invoke_stream = ainvoke_stream = _parse_provider_response = _parse_provider_response_delta = invoke
async def main():
    db = AsyncSqliteDb(db_file=DB)
    a = Agent(model=M(id="m"), tools=[lookup], db=db, telemetry=False)
    await db.close()
asyncio.run(main())
"""
DBOS = "from dbos import DBOS, DBOSConfig, SetWorkflowID\n"
DBOS_APP = """
@DBOS.step()
async def s(): ...
@DBOS.workflow()
async def w(): ...
URL = "sqlite:///" + DB
DBOS(config={"name": "bench", "system_database_url": URL, "log_level": "ERROR", "console_log_level": "ERROR"})
DBOS.launch(); DBOS.destroy()
"""
CASES = {
    "threadgate": (THREADGATE, ""),
    "python": ("pass\n", ""),
    "floor_steps": (FLOOR, FLOOR_APP),
    "langgraph": (LANGGRAPH, LANGGRAPH_APP),
    "openai_agents": (OPENAI_AGENTS, OPENAI_AGENTS_APP),
    "pydantic_ai": (PYDANTIC_AI, PYDANTIC_AI_APP),
    "agno": (AGNO, AGNO_APP),
    "dbos": (DBOS, DBOS_APP),
}


def once(code: str, python: str) -> dict[str, float]:
    """One process: wall and CPU in milliseconds, peak memory in MB, modules loaded."""
    with tempfile.TemporaryDirectory(prefix="cold-") as folder:
        command = [python, "-c", f"DB = {str(Path(folder) / 'c.db')!r}\n{code}{TAIL}"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        wall = (time.perf_counter() - start) * 1e3
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    peak, modules = done.stdout.split()[-2:]
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_ms": wall, "cpu_ms": used * 1e3, "peak_rss_mb": int(peak) / 1024, "modules": int(modules)}


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    """Of every figure."""
    return {key: round(statistics.median(run[key] for run in runs), 1) for key in runs[0]}


def programs(own_python: str) -> list[tuple[str, str, str, str]]:
    """(name, kind, code, interpreter) of what runs here; this also warms caches and compiles modules."""
    found = []
    for name, (imports, app) in CASES.items():
        python = own_python if name == "threadgate" else sys.executable
        kinds = {"import": imports, "app": imports + app if app else ""}
        for kind, code in kinds.items():
            if not code:
                continue
            try:
                once(code, python)
            except RuntimeError as error:
                print(f"skipped: {name} ({kind}): {error}", flush=True)
            else:
                found.append((name, kind, code, python))
    return found


def main() -> None:
    """Measure what is installed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--own-python", default=sys.executable)
    given = options.parse_args()
    runs: dict[str, dict[str, list[dict[str, float]]]] = {}
    ready = programs(given.own_python)
    for number in range(given.rounds):
        for name, kind, code, python in ready:
            runs.setdefault(name, {}).setdefault(kind, []).append(once(code, python))
        print(f"S6 round {number + 1} of {given.rounds}", flush=True)
    found = {
        name: {kind: medians(results) for kind, results in kinds.items()} for name, kinds in runs.items()
    }
    RAW.mkdir(exist_ok=True)
    (RAW / "S6.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
