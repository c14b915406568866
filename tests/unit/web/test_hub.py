"""Nudges and joined streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from channels.web.hub import Change, Hub, join


async def counting(upto: int, made: list[int] | None = None) -> AsyncIterator[int]:
    for number in range(upto):
        if made is not None:
            made.append(number)
        yield number


async def waiting(closed: asyncio.Event) -> AsyncIterator[int]:
    try:
        await asyncio.Event().wait()
        yield 0
    finally:
        closed.set()


async def failing() -> AsyncIterator[int]:
    yield 1
    raise OSError("the line broke")


async def test_a_joined_stream_ends_with_its_main_source_and_closes_the_others() -> None:
    closed = asyncio.Event()
    assert [item async for item in join(asyncio.Event(), counting(3), waiting(closed))] == [0, 1, 2]
    assert closed.is_set()


async def test_a_joined_stream_ends_when_the_channel_closes() -> None:
    closing, closed = asyncio.Event(), asyncio.Event()
    stream = join(closing, waiting(closed))
    following = asyncio.ensure_future(anext(stream, None))
    closing.set()
    async with asyncio.timeout(5):
        assert await following is None
    assert closed.is_set()


async def test_an_error_of_a_source_reaches_the_reader() -> None:
    with pytest.raises(OSError, match="the line broke"):
        assert [item async for item in join(asyncio.Event(), failing())] == [1]


async def test_a_reader_that_does_not_read_holds_its_source_back() -> None:
    made: list[int] = []
    stream = join(asyncio.Event(), counting(1000, made))
    assert await anext(stream) == 0
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(made) <= 4
    assert [item async for item in stream] == list(range(1, 1000))


async def test_a_slow_reader_loses_the_oldest_nudges_only() -> None:
    hub = Hub()
    changes = hub.changes()
    first = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)
    for number in range(100):
        hub.publish(Change(conversation=str(number)))
    async with asyncio.timeout(5):
        seen = [(await first).conversation] + [(await anext(changes)).conversation for _ in range(49)]
    assert seen == [str(number) for number in range(50, 100)]
    assert hub.readers == 1
