"""What an implementation needs to take part, and the command line of its script.

An adapter is a class with these members (no base class)::

    name: str                                   # its key in the tables

    async def setup(self, db_path: str, *, model_latency_s: float = 0.0) -> None
        # Build everything from scratch: loop objects, tools, stub model, database handle. `db_path`
        # may or may not exist. A new adapter object on the same path models a restart.

    async def plain_turn(self, session_id: str, text: str) -> str
        # User text, one model call, final text. Message and reply are durable on return.

    async def tool_turn(self, session_id: str, text: str) -> str
        # User text, the model asks for 3 parallel calls of `lookup`, second model call, final text.

    async def pause(self, session_id: str, text: str) -> str
        # User text, the model asks for `lookup` (allowed) and `delete_file` (needs approval).
        # Returns a handle once all that is needed to go on is durable. `delete_file` has not run.

    async def resume(self, handle: str, approve: bool = True) -> str
        # Go on, perhaps in another process: run `delete_file`, call the model, final text, durable.

    async def close(self) -> None

    # optional
    def db_bytes(self) -> int            # logical bytes of stored state
    def info(self) -> dict               # versions, settings, how it stores
    def external_cpu_s(self) -> float    # CPU of helper processes
    s3_mode = "batch" | "cycle"          # "cycle": never more than one paused turn at a time

The stub model is driven by `script_reply(role, text)` and calls `seen_context(n)` with the number of
messages it was given; tools call `run_tool(name)`. Every script ends with `main(Adapter, VARIANTS)`:

    python peer_x.py S1         one scenario once, JSON on the last line
    python peer_x.py verify     pause in a process that is killed, resume in another one
    python peer_x.py all        every scenario once
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench_meters import sqlite_logical_bytes, sqlite_modes
from bench_scenarios import SCENARIOS, Make, expect, opened
from bench_script import (
    ALLOWED_TOOL,
    CONTEXT,
    COUNTS,
    FINAL_TEXT,
    GATED_TOOL,
    SYSTEM_PROMPT,
    check,
    run_tool,
    script_reply,
    seen_context,
    user_text,
)

__all__ = [
    "FINAL_TEXT",
    "GATED_TOOL",
    "SYSTEM_PROMPT",
    "main",
    "run_tool",
    "script_reply",
    "seen_context",
    "sqlite_logical_bytes",
    "sqlite_modes",
]

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("BENCH_DATA", HERE / "data"))
KILLED = 9  # exit code of the process that dies after a pause


async def _before_the_kill(make: Make, path: str) -> None:
    adapter = await opened(make, path)
    check(await adapter.plain_turn("v", user_text("PLAIN", 0)))
    check(await adapter.tool_turn("v", user_text("TOOLS", 1)))
    COUNTS.clear()
    handle = await adapter.pause("v", user_text("PAUSE", 2))
    expect(COUNTS[GATED_TOOL] == 0, f"ran without approval: {COUNTS}")
    print(json.dumps({"handle": handle, "counts": COUNTS}), flush=True)
    os._exit(KILLED)  # no clean shutdown: only what pause() made durable survives


async def _after_the_kill(make: Make, path: str, handle: str) -> None:
    adapter = await opened(make, path)
    COUNTS.clear()
    check(await adapter.resume(handle))
    counts = dict(COUNTS)
    check(await adapter.plain_turn("v", user_text("PLAIN", 3)))
    print(json.dumps({"counts": counts, "context_next_turn": CONTEXT["last"]}), flush=True)
    await adapter.close()


def _child(script: str, arguments: list[str], path: str, exit_code: int) -> dict[str, Any]:
    command = [sys.executable, script, *arguments, "--db", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != exit_code:
        raise RuntimeError(done.stderr[-3000:])
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def _verify(script: str, variant: list[str]) -> dict[str, Any]:
    """Pause in one process, kill it, resume in another one: what ran how often?"""
    with tempfile.TemporaryDirectory(prefix="verify-", dir=DATA) as folder:
        path = str(Path(folder) / "state.db")
        first = _child(script, ["verify-a", *variant], path, KILLED)
        second = _child(script, ["verify-b", *variant, "--handle", first["handle"]], path, 0)
    total = collections.Counter(first["counts"]) + collections.Counter(second["counts"])
    return {
        "resumed_after_kill": True,
        "allowed_runs_total": total[ALLOWED_TOOL],
        "gated_runs_total": total[GATED_TOOL],
        "allowed_ran_before_pause": first["counts"].get(ALLOWED_TOOL, 0),
        "context_next_turn": second["context_next_turn"],
        "expected_context_min": 2 + 4 + 4 + 1,
    }


def _measure(make: Make, scenario: str, scale: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix=f"{scenario}-", dir=DATA, ignore_cleanup_errors=True) as folder:
        start = time.perf_counter()
        result = asyncio.run(SCENARIOS[scenario](make, str(Path(folder) / "state.db"), scale))  # type: ignore[arg-type]
    return {
        **result,
        "scenario": scenario,
        "run_wall_s": time.perf_counter() - start,
        "loadavg": os.getloadavg(),
    }


def main(make: Make, variants: Mapping[str, Callable[[], Any]] | None = None) -> None:
    """`make` builds the default adapter; `variants` maps names for --variant to others."""
    options = argparse.ArgumentParser()
    options.add_argument("scenario", choices=[*SCENARIOS, "all", "verify", "verify-a", "verify-b"])
    options.add_argument("--variant", choices=sorted(variants or {}))
    options.add_argument("--db", help="for verify-a and verify-b")
    options.add_argument("--handle", help="for verify-b")
    options.add_argument("--scale", type=float, default=1.0, help="share of the work")
    given = options.parse_args()
    DATA.mkdir(parents=True, exist_ok=True)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if given.variant and variants:
        make = variants[given.variant]
    match given.scenario:
        case "verify":
            variant = ["--variant", given.variant] if given.variant else []
            print(json.dumps(_verify(str(Path(sys.argv[0]).resolve()), variant)))
        case "verify-a":
            asyncio.run(_before_the_kill(make, given.db))
        case "verify-b":
            asyncio.run(_after_the_kill(make, given.db, given.handle))
        case "all":
            for scenario in SCENARIOS:
                print(json.dumps(_measure(make, scenario, given.scale)), flush=True)
        case scenario:
            print(json.dumps(_measure(make, scenario, given.scale)), flush=True)
