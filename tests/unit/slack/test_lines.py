"""What was said first in a thread goes first, by whichever connection it came."""

from __future__ import annotations

import asyncio
import random

from hypothesis import given
from hypothesis import strategies as st

from channels.base import ThreadKey
from channels.slack.lines import Lines, What

HERE = ThreadKey("slack", "T1", "C1", "100.000100")
THERE = HERE._replace(thread="200.000200")


async def stored(arriving: list[tuple[ThreadKey, str, What]]) -> list[tuple[ThreadKey, str, What]]:
    """In which order these get their turn when they come in this one."""
    lines, order = Lines(settle=0.001), list[tuple[ThreadKey, str, What]]()

    async def one(thread: ThreadKey, ts: str, what: What) -> None:
        async with lines.turn(thread, ts, what):
            order.append((thread, ts, what))
            await asyncio.sleep(0)

    async with asyncio.timeout(10):
        await asyncio.gather(*(one(*entry) for entry in arriving))
    assert lines._lines == {} and lines._served == set()
    return order


@given(st.randoms(use_true_random=False), st.integers(1, 12))
def test_two_connections_that_are_a_little_apart_change_no_order(chance: random.Random, count: int) -> None:
    said: list[tuple[ThreadKey, str, What]] = [
        (thread, f"{100 + n}.000100", what)
        for n in range(count)
        for thread in (HERE, THERE)
        for what in ("said", "edited", "deleted")
    ]
    arriving = said.copy()
    chance.shuffle(arriving)
    order = asyncio.run(stored(arriving))
    for thread in (HERE, THERE):
        assert [e for e in order if e[0] == thread] == [e for e in said if e[0] == thread]


async def test_whoever_leaves_the_line_holds_nobody_up() -> None:
    lines, order = Lines(), list[str]()
    inside, leave = asyncio.Event(), asyncio.Event()

    async def one(ts: str) -> None:
        async with lines.turn(HERE, ts):
            order.append(ts)
            inside.set()
            await leave.wait()

    first = asyncio.create_task(one("1.000001"))
    async with asyncio.timeout(10):
        await inside.wait()
        gone, last = asyncio.create_task(one("2.000001")), asyncio.create_task(one("3.000001"))
        await asyncio.sleep(0)
        gone.cancel()
        first.cancel()
        await asyncio.gather(first, gone, return_exceptions=True)
        leave.set()
        await last
    assert order == ["1.000001", "3.000001"]


async def test_who_fails_lets_the_next_one_in() -> None:
    lines = Lines()

    async def fails() -> None:
        async with lines.turn(HERE, "1.000001"):
            raise OSError("not stored")

    async with asyncio.timeout(10):
        failed = asyncio.create_task(fails())
        async with lines.turn(HERE, "2.000001"):
            assert isinstance((await asyncio.gather(failed, return_exceptions=True))[0], OSError)
