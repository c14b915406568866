"""In each thread, what was said first is stored first.

Slack spreads events over all connections, and what was written within a moment may come in by one before the
other. So everything stands in line for a moment, and whoever has the earlier time stamp goes first.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

from channels.base import ThreadKey

SETTLE_SECONDS: Final = 0.05  # by which two connections may be apart
What = Literal["said", "edited", "deleted"]  # in which order these come about one message
_ORDER: Final[dict[What, int]] = {"said": 0, "edited": 1, "deleted": 2}


@dataclass(slots=True, order=True)
class _Place:
    ts: float
    what: int
    arrived: int
    go: asyncio.Event = field(default_factory=asyncio.Event, compare=False)
    settled: bool = field(default=False, compare=False)


class Lines:
    """A line for each thread, as long as somebody stands in it."""

    def __init__(self, settle: float = SETTLE_SECONDS) -> None:
        self._settle = settle
        self._lines: dict[ThreadKey, list[_Place]] = {}
        self._served: set[ThreadKey] = set()
        self._arrivals = itertools.count()

    @asynccontextmanager
    async def turn(self, thread: ThreadKey, ts: str, what: What = "said") -> AsyncIterator[None]:
        """Wait for what is earlier in this thread. `ts`: the message's time stamp."""
        place = _Place(float(ts), _ORDER[what], next(self._arrivals))
        self._lines.setdefault(thread, []).append(place)
        try:
            await asyncio.sleep(self._settle)
            place.settled = True
            self._next(thread)
            await place.go.wait()
            yield
        finally:
            line = self._lines[thread]
            line.remove(place)
            if place.go.is_set():
                self._served.discard(thread)
            if line:
                self._next(thread)
            else:
                del self._lines[thread]

    def _next(self, thread: ThreadKey) -> None:
        first = min(self._lines[thread])
        if first.settled and thread not in self._served:
            self._served.add(thread)
            first.go.set()
