"""Runs the scenarios interleaved and keeps one JSON line per run under raw/.

    python run.py --scenarios S1,S2,S3 --rounds 5 --only floor_steps,threadgate

Every run is a process of its own; the order is rotated each round (A B C, B C A, ...), so that no
implementation always has the machine at its warmest. Peers run in this environment, threadgate in its
own (--own-python). What is not installed is skipped with one line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RAW = HERE / "raw"
SCENARIOS = ("S1", "S2", "S3", "S4", "S5")


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One implementation: its script, the variant, the modules that it needs, and where it takes part."""

    script: str
    variant: str = ""
    needs: tuple[str, ...] = ()
    own: bool = False
    not_in: tuple[str, ...] = ()
    scale: dict[str, float] = field(default_factory=dict)


LANGGRAPH = ("langgraph", "langgraph.checkpoint.sqlite")
PEERS = {
    # Ours: peer_threadgate.py, an adapter like the others; it is skipped while the file does not exist.
    "threadgate": Peer(script="peer_threadgate.py", needs=("gateway",), own=True),
    "floor_full": Peer(script="peer_floor.py"),
    "floor_normal": Peer(script="peer_floor.py", variant="normal"),
    "floor_steps": Peer(script="peer_floor.py", variant="steps"),
    "langgraph": Peer(script="peer_langgraph.py", needs=LANGGRAPH),
    "langgraph_sync": Peer(script="peer_langgraph.py", variant="sync", needs=LANGGRAPH, not_in=("S4", "S5")),
    "langgraph_exit": Peer(script="peer_langgraph.py", variant="exit", needs=LANGGRAPH),
    "langgraph_delta": Peer(script="peer_langgraph.py", variant="delta", needs=LANGGRAPH),
    "openai_agents": Peer(script="peer_openai_agents.py", needs=("agents",)),
    "pydantic_ai": Peer(script="peer_pydantic_ai.py", needs=("pydantic_ai",)),
    "pydantic_ai_snapshot": Peer(script="peer_pydantic_ai.py", variant="snapshot", needs=("pydantic_ai",)),
    "agno": Peer(script="peer_agno.py", needs=("agno", "sqlalchemy")),
    "dbos": Peer(script="peer_dbos.py", needs=("dbos",), scale={"S3": 0.05}),
}


def missing(peer: Peer, python: str) -> str:
    """Why an implementation cannot run; empty if it can."""
    if not (HERE / peer.script).is_file():
        return f"{peer.script} does not exist"
    for module in peer.needs:
        probe = [
            python,
            "-c",
            f"import importlib.util as u; raise SystemExit(u.find_spec({module!r}) is None)",
        ]
        if subprocess.run(probe, capture_output=True, check=False, cwd=HERE).returncode:
            return f"{module} is not installed"
    return ""


def run(name: str, scenario: str, python: str, scale: float, io: bool) -> dict[str, Any]:
    """One run: what the script says on its last line, or the end of its complaint."""
    peer = PEERS[name]
    share = scale * peer.scale.get(scenario, 1.0)
    command = [python, str(HERE / peer.script), scenario, "--scale", str(share)]
    if peer.variant:
        command += ["--variant", peer.variant]
    environment = {**os.environ, "LD_PRELOAD": str(HERE / "iocount.so")} if io else None
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=HERE, check=False)
    if done.returncode:
        return {"error": done.stderr[-1500:]}
    result = dict(json.loads(done.stdout.strip().splitlines()[-1]))
    noise = [line for line in done.stderr.splitlines() if "rror" in line]
    if noise:
        result["stderr_errors"] = [len(noise), noise[0][:200]]
    return result


def headline(result: dict[str, Any]) -> str:
    """The figure of a run that a person wants to see go by."""
    if "error" in result:
        return "failed: " + (result["error"].strip().splitlines() or ["without a word"])[-1][:150]
    for figure, unit in (("total_wall_s", "s"), ("wall_ms_per_op", "ms/op")):
        if figure in result and not (figure == "total_wall_s" and "levels" in result):
            return f"{result[figure]:.3f} {unit}"
    if "levels" in result:
        level, last = list(result["levels"].items())[-1]
        return f"{last['turn_ms']['p50']:.3f} ms at turn {level}"
    return f"{result['cycle_ms']['mean']:.3f} ms/cycle"


def arguments() -> argparse.Namespace:
    """The command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--scenarios", default=",".join(SCENARIOS))
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", default="", help="names, separated by commas")
    options.add_argument("--own-python", default=sys.executable, help="the interpreter that has threadgate")
    options.add_argument("--scale", type=float, default=1.0, help="share of the work, for a quick look")
    options.add_argument(
        "--io", action="store_true", help="one round under iocount.so: fsyncs and bytes written"
    )
    options.add_argument("--keep", action="store_true", help="add to earlier runs instead of replacing them")
    return options.parse_args()


def main() -> None:
    """Run what was asked for."""
    given = arguments()
    RAW.mkdir(exist_ok=True)
    pythons = {name: given.own_python if peer.own else sys.executable for name, peer in PEERS.items()}
    present = []
    for name in PEERS:
        problem = missing(PEERS[name], pythons[name])
        if problem:
            print(f"skipped: {name}: {problem}", flush=True)
        elif not given.only or name in given.only.split(","):
            present.append(name)
    for scenario in [one for one in given.scenarios.split(",") if one in SCENARIOS]:
        path = RAW / f"{scenario}{'.io' if given.io else ''}.jsonl"
        if not given.keep:
            path.unlink(missing_ok=True)
        taking_part = [name for name in present if scenario not in PEERS[name].not_in]
        for number in range(1 if given.io else given.rounds):
            turn = number % max(1, len(taking_part))
            for name in taking_part[turn:] + taking_part[:turn]:
                start = time.time()
                result = run(name, scenario, pythons[name], given.scale, given.io)
                result.update(peer=name, round=number, at=round(start, 1), scale=given.scale)
                with path.open("a") as file:
                    file.write(json.dumps(result) + "\n")
                took = time.time() - start
                print(f"{scenario} round {number + 1}: {name}: {headline(result)} ({took:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
