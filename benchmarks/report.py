"""raw/*.jsonl -> results.md: medians over the rounds, and ratios taken within the same round."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import statistics
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RAW = HERE / "raw"
OURS, FLOOR = "threadgate", "floor_steps"
# dbos is a workflow engine: its loop and history are written by hand here, so it is not the best peer.
NOT_A_PEER = {OURS, "floor_full", "floor_normal", FLOOR, "dbos"}
Rounds = dict[int, float]

# Scenario -> (title, main figure, other figures by heading, as paths into a run's JSON).
TABLES: dict[str, tuple[str, str, dict[str, str]]] = {
    "S1": (
        "S1: plain turn (500 over 50 sessions), ms per turn",
        "wall_ms_per_op",
        {
            "p95": "latency_ms/p95",
            "CPU ms": "cpu_ms_per_op",
            "peak MB": "peak_rss_mb",
            "bytes/turn": "db_bytes_per_op",
        },
    ),
    "S2": (
        "S2: tool turn, three parallel calls (300 over 50 sessions), ms per turn",
        "wall_ms_per_op",
        {
            "p95": "latency_ms/p95",
            "CPU ms": "cpu_ms_per_op",
            "peak MB": "peak_rss_mb",
            "bytes/turn": "db_bytes_per_op",
        },
    ),
    "S3": (
        "S3: pause, new object graph, resume (200 cycles; dbos 10), ms per cycle",
        "cycle_ms/mean",
        {
            "pause": "pause_ms/mean",
            "re-open": "reopen_ms/mean",
            "resume": "resume_cold_ms/mean",
            "resume, warm": "resume_warm_ms/mean",
            "bytes/pause": "db_bytes_per_pause",
        },
    ),
    "S4": (
        "S4: one growing session, ms of the next plain turn at turn 1,000 (median of 20)",
        "levels/1000/turn_ms/p50",
        {
            "at 10": "levels/10/turn_ms/p50",
            "at 100": "levels/100/turn_ms/p50",
            "at 500": "levels/500/turn_ms/p50",
            "bytes/turn at 1,000": "levels/1000/bytes_per_turn_here",
            "first after re-open": "first_turn_after_reopen_ms",
            "peak MB": "peak_rss_mb",
        },
    ),
    "S5": (
        "S5: 500 sessions at once, one tool turn each, the model sleeps 50 ms; seconds",
        "total_wall_s",
        {
            "turns/s": "throughput_turns_s",
            "CPU ms": "cpu_ms_per_op",
            "p95 ms": "latency_ms/p95",
            "peak MB": "peak_rss_mb",
        },
    ),
}


def load(scenario: str) -> dict[str, dict[int, dict[str, Any]]]:
    """Peer -> round -> run. A later run of a round replaces an earlier one."""
    runs: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    path = RAW / f"{scenario}.jsonl"
    if path.exists():
        for line in path.read_text().splitlines():
            run = json.loads(line)
            runs[run["peer"]][run["round"]] = run
    return runs


def figure(runs: dict[int, dict[str, Any]], path: str) -> Rounds:
    """One figure of a peer, by round; rounds that failed are left out."""
    found = {}
    for number, run in runs.items():
        value: Any = run
        for step in path.split("/"):
            value = value.get(step) if isinstance(value, dict) else None
        if value is not None:
            found[number] = float(value)
    return found


def ratio(figures: dict[str, Rounds], name: str, reference: str) -> float | None:
    """Median over the rounds of name / reference, both of the same round."""
    base = figures.get(reference, {})
    both = [value / base[number] for number, value in figures[name].items() if base.get(number)]
    return statistics.median(both) if both else None


def shown(value: float | None) -> str:
    """Three digits are enough."""
    if value is None:
        return "–"
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown; the first column to the left, numbers to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def median(values: Rounds) -> float | None:
    """Of the rounds."""
    return statistics.median(values.values()) if values else None


def section(scenario: str) -> str:
    """The table of one scenario; empty if nothing was measured."""
    title, main, others = TABLES[scenario]
    runs = load(scenario)
    figures = {name: found for name in runs if (found := figure(runs[name], main))}
    if not figures:
        return ""
    middle = {name: statistics.median(values.values()) for name, values in figures.items()}
    peers = [name for name in middle if name not in NOT_A_PEER]
    best = min(peers, key=lambda name: middle[name]) if peers else ""
    floor = FLOOR if FLOOR in figures else "floor_full"
    head = ["", "median", "min to max", f"x {floor}", f"x best peer ({best or 'none'})", *others]
    rows = []
    for name in sorted(middle, key=lambda name: middle[name]):
        values = figures[name].values()
        rows.append(
            [
                f"**{name}**" if name == OURS else name,
                shown(middle[name]),
                f"{shown(min(values))} to {shown(max(values))}",
                shown(ratio(figures, name, floor)),
                shown(ratio(figures, name, best)) if best else "–",
                *(shown(median(figure(runs[name], path))) for path in others.values()),
            ]
        )
    failed = [
        f"{name} failed in {count} runs"
        for name in runs
        if (count := len(runs[name]) - len(figures.get(name, {})))
    ]
    scales = {run.get("scale", 1.0) for by_round in runs.values() for run in by_round.values()}
    notes = [*failed, *(f"only a share of the work: {scale}" for scale in sorted(scales - {1.0}))]
    return f"## {title}\n\n{table(head, rows)}" + (f"\n{'; '.join(notes)}.\n" if notes else "")


def cold_start() -> str:
    """S6."""
    path = RAW / "S6.json"
    if not path.exists():
        return ""
    rows = []
    for name, kinds in json.loads(path.read_text()).items():
        cells = [f"**{name}**" if name == OURS else name]
        for kind in ("import", "app"):
            figures = kinds.get(kind, {})
            cells += [shown(figures.get(key)) for key in ("wall_ms", "cpu_ms", "peak_rss_mb")]
        rows.append([*cells, shown(kinds["import"]["modules"])])
    head = ["", "import ms", "CPU ms", "peak MB", "minimal app ms", "CPU ms", "peak MB", "modules"]
    return f"## S6: cold start, the interpreter included\n\n{table(head, rows)}"


def machine() -> str:
    """One line that says what the figures are worth elsewhere."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.partition(":")[2].strip()
            for line in cpuinfo.read_text().splitlines()
            if "model name" in line
        ]
        model = names[0] if names else model
    loads = [
        run["loadavg"][0]
        for scenario in TABLES
        for by_round in load(scenario).values()
        for run in by_round.values()
        if "loadavg" in run
    ]
    busy = f", load {statistics.median(loads):.1f} (median)" if loads else ""
    return (
        f"{datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} cores ({model}), "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}{busy}."
    )


def main() -> None:
    """Write results.md."""
    parts = [
        "# Side by side with peers\n",
        machine() + "\n",
        "Every implementation plays the same script (README.md); medians over the rounds, each run a process "
        "of its own, interleaved. Ratios are taken within a round. `floor_steps` is the least code that "
        "commits after every step; less is better, except for turns/s.\n",
        *filter(None, (section(scenario) for scenario in TABLES)),
        cold_start(),
    ]
    target = HERE / "results.md"
    target.write_text("\n".join(part for part in parts if part), encoding="utf-8")
    print(f"written: {target}")


if __name__ == "__main__":
    main()
