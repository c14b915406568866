"""The server's clock, its timers, and waiting for what happens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Timer:
    """Something that happens once, when the server's clock gets there."""

    def __init__(self, clock: Clockwork, due: float, act: Callable[[], None]) -> None:
        self.due, self._act, self._clock = due, act, clock
        loop = asyncio.get_running_loop()
        self._handle = loop.call_later(max(0.0, due - clock.now()), self.fire)
        clock.timers.append(self)

    def fire(self) -> None:
        self.cancel()
        self._act()

    def cancel(self) -> None:
        self._handle.cancel()
        if self in self._clock.timers:
            self._clock.timers.remove(self)


class Clockwork:
    """Real time, which tests move on by `advance`."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []
        self._offset = 0.0
        self._watchers: set[asyncio.Future[None]] = set()

    def now(self) -> float:
        """Unix seconds of the server's clock."""
        return time.time() + self._offset

    def at(self, due: float, act: Callable[[], None]) -> Timer:
        """Do something when the clock is there, in real time or by `advance`."""
        return Timer(self, due, act)

    def advance(self, seconds: float) -> None:
        """Move the server's clock on; what is due by then happens now, in order."""
        self._offset += seconds
        for timer in sorted(self.timers, key=lambda timer: timer.due):
            if timer.due <= self.now() and timer in self.timers:
                timer.fire()
        self.changed()

    def changed(self) -> None:
        """Tell everybody in `wait_for`."""
        for watcher in self._watchers:
            if not watcher.done():
                watcher.set_result(None)

    async def wait_for(self, check: Callable[[], T], within: float = 30.0) -> T:
        """Wait until `check` is true; bounded. Returns what it gave. TimeoutError otherwise."""
        async with asyncio.timeout(within):
            while not (value := check()):
                watcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._watchers.add(watcher)
                try:
                    await watcher
                finally:
                    self._watchers.discard(watcher)
        return value
