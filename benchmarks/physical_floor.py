"""What the machine costs: SQLite commits, fdatasync, asyncio switches, thread hops, JSON. Medians of 5."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

from bench import FINAL_TEXT
from bench_script import user_text

REPEATS = 5
MESSAGES = [
    message
    for number in range(1000)
    for message in (
        {"role": "user", "content": user_text("PLAIN", number)},
        {"role": "assistant", "content": FINAL_TEXT},
    )
]


def middle(measure: Callable[..., float], *arguments: Any) -> float:
    """The median of some repeats."""
    return statistics.median(measure(*arguments) for _ in range(REPEATS))


def timed(work: Callable[[], Any], times: int = 1, unit: float = 1e3) -> float:
    """Time of one call, in milliseconds by default."""
    start = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - start) * unit / times


async def atimed(work: Callable[[], Coroutine[Any, Any, Any]], times: int) -> float:
    """Time of one await, in microseconds."""
    start = time.perf_counter()
    for _ in range(times):
        await work()
    return (time.perf_counter() - start) * 1e6 / times


def sqlite_commit(journal: str, synchronous: str, size: int) -> float:
    """One row, one commit; milliseconds."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(sqlite3.connect(Path(folder) / "x.db", isolation_level=None)) as db,
    ):
        db.execute(f"pragma journal_mode={journal}")
        db.execute(f"pragma synchronous={synchronous}")
        db.execute("create table t(id integer primary key, s text, b blob)")
        db.execute("create index i on t(s, id)")
        body = os.urandom(size)

        def insert() -> None:
            db.execute("insert into t(s, b) values('s', ?)", (body,))

        timed(insert, 20)
        return timed(insert, 300)


def fdatasync(size: int) -> float:
    """Milliseconds after writing that many bytes."""
    with tempfile.TemporaryFile(dir=".", buffering=0) as file:
        times = []
        for _ in range(200):
            file.write(b"x" * size)
            times.append(timed(lambda: os.fdatasync(file.fileno())))
    return statistics.median(times)


async def nothing() -> int:
    """A coroutine that is done at once."""
    return 1


def task_switch() -> float:
    """Between two tasks; microseconds."""

    async def spin() -> None:
        for _ in range(50_000):
            await asyncio.sleep(0)

    async def both() -> float:
        start = time.perf_counter()
        await asyncio.gather(spin(), spin())
        return (time.perf_counter() - start) * 1e6 / 100_000

    return asyncio.run(both())


def create_task() -> float:
    """Microseconds."""

    async def spawn() -> None:
        await asyncio.create_task(nothing())

    return asyncio.run(atimed(spawn, 20_000))


def gather_three() -> float:
    """Microseconds."""

    async def gather() -> None:
        await asyncio.gather(nothing(), nothing(), nothing())

    return asyncio.run(atimed(gather, 10_000))


def to_thread() -> float:
    """There and back; microseconds."""

    async def hop() -> None:
        await asyncio.to_thread(int)

    return asyncio.run(atimed(hop, 5000))


def sqlite_query() -> float:
    """select 1; microseconds."""
    with closing(sqlite3.connect(":memory:")) as db:
        return timed(lambda: db.execute("select 1").fetchone(), 20_000, 1e6)


def many_sleeps() -> float:
    """500 tasks that sleep 50 ms twice; milliseconds."""

    async def sleeper() -> None:
        await asyncio.sleep(0.05)
        await asyncio.sleep(0.05)

    async def all_of_them() -> float:
        start = time.perf_counter()
        await asyncio.gather(*(sleeper() for _ in range(500)))
        return (time.perf_counter() - start) * 1e3

    return asyncio.run(all_of_them())


def load_session() -> float:
    """Select and decode a session of 1,000 turns from a WAL file, cache warm; milliseconds."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(sqlite3.connect(Path(folder) / "x.db", isolation_level=None)) as db,
    ):
        db.execute("pragma journal_mode=wal")
        db.execute("create table t(id integer primary key, s text, b text)")
        db.execute("create index i on t(s, id)")
        db.execute("begin")
        db.executemany("insert into t(s, b) values('a', ?)", [(json.dumps(message),) for message in MESSAGES])
        db.execute("commit")
        select = "select b from t where s = 'a' order by id"
        return statistics.median(
            timed(lambda: [json.loads(b) for (b,) in db.execute(select)]) for _ in range(11)
        )


def main() -> None:
    """JSON on standard output."""
    rows, blob = [json.dumps(message) for message in MESSAGES], json.dumps(MESSAGES)
    modes = (("wal", "NORMAL"), ("wal", "FULL"), ("delete", "FULL"))
    sizes = (500, 2000, 16_000, 250_000)
    found = {
        "sqlite_commit_ms": {
            f"{journal}/{sync}": {
                str(size): round(middle(sqlite_commit, journal, sync, size), 4) for size in sizes
            }
            for journal, sync in modes
        },
        "fdatasync_ms": {str(size): round(middle(fdatasync, size), 4) for size in (4096, 65536, 1 << 20)},
        "asyncio_task_switch_us": round(middle(task_switch), 3),
        "asyncio_create_task_us": round(middle(create_task), 3),
        "asyncio_gather_three_us": round(middle(gather_three), 3),
        "to_thread_us": round(middle(to_thread), 2),
        "sqlite3_select_us": round(middle(sqlite_query), 2),
        "json_dumps_2000_messages_ms": round(
            middle(timed, lambda: [json.dumps(message) for message in MESSAGES]), 3
        ),
        "json_loads_2000_rows_ms": round(middle(timed, lambda: [json.loads(row) for row in rows]), 3),
        "json_loads_2000_messages_in_one_ms": round(middle(timed, lambda: json.loads(blob)), 3),
        "sqlite_load_2000_rows_ms": round(middle(load_session), 3),
        "gather_500_sleepers_ms": round(middle(many_sleeps), 1),
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
