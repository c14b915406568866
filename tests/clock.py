"""A clock that tests move by hand."""

from __future__ import annotations

import asyncio


class FakeClock:
    """A `gateway.clock.Clock` that stands still until `advance` is called."""

    def __init__(self, now: float = 1_750_000_000.0) -> None:
        self._now, self._monotonic = now, 1_000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was moved by that much."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._monotonic + seconds, woken))
        await woken

    @property
    def sleeping(self) -> int:
        """How many wait."""
        return sum(1 for _, woken in self._sleepers if not woken.done())

    def advance(self, seconds: float = 0.0, *, minutes: float = 0.0, hours: float = 0.0) -> None:
        """Move both clocks on, and wake whoever has waited long enough."""
        step = seconds + 60 * minutes + 3600 * hours
        self._now += step
        self._monotonic += step
        due = [woken for at, woken in self._sleepers if at <= self._monotonic]
        self._sleepers = [entry for entry in self._sleepers if entry[0] > self._monotonic]
        for woken in due:
            if not woken.done():
                woken.set_result(None)

    def set_wall(self, now: float) -> None:
        """Let the wall clock jump; the monotonic one does not notice."""
        self._now = now
