"""Nudges: "something changed, look again". Losing one is no loss, so a slow reader loses the oldest.

Also the one place where streams are joined: a stream ends with its main source or when the
channel closes, whichever is first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import TypeVar

_BACKLOG = 50
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What to look at again. `conversation` "" means the lists only; `text` is a notice to show."""

    conversation: str = ""
    kind: str = "changed"
    text: str = ""


class Hub:
    """Fans changes out to the pages that are open, and tells all streams to end."""

    def __init__(self) -> None:
        self._readers: set[asyncio.Queue[Change]] = set()
        self.closing = asyncio.Event()

    def publish(self, change: Change) -> None:
        """Tell every open page. Never waits."""
        for queue in self._readers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(change)

    @property
    def readers(self) -> int:
        """How many pages listen now."""
        return len(self._readers)

    async def changes(self) -> AsyncIterator[Change]:
        """Every change from now on, without end."""
        queue: asyncio.Queue[Change] = asyncio.Queue(_BACKLOG)
        self._readers.add(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._readers.discard(queue)


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None = None


async def join(
    closing: asyncio.Event, main: AsyncIterator[_T], *others: AsyncIterator[_T]
) -> AsyncIterator[_T]:
    """The items of all sources as they come, until `main` ends or `closing` is set.

    An error of any source is raised here. The queue holds one item: a reader that does not read
    holds its sources back instead of filling the memory.
    """
    queue: asyncio.Queue[_T | _End] = asyncio.Queue(1)

    async def close() -> None:
        await closing.wait()
        await queue.put(_End())

    tasks = [asyncio.create_task(close()), asyncio.create_task(_pump(main, queue, last=True))]
    tasks += [asyncio.create_task(_pump(source, queue, last=False)) for source in others]
    try:
        while True:
            item = await queue.get()
            if not isinstance(item, _End):
                yield item
            elif item.error is not None:
                raise item.error
            else:
                return
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(source: AsyncIterator[_T], queue: asyncio.Queue[_T | _End], *, last: bool) -> None:
    try:
        async for item in source:
            await queue.put(item)
    except Exception as error:
        await queue.put(_End(error))  # raised again by `join`, where the reader waits
        return
    finally:
        if isinstance(source, AsyncGenerator):
            await source.aclose()
    if last:
        await queue.put(_End())
