"""Stopping a turn from outside: one token per turn, heard by model calls and tool calls alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class Stopped(Exception):
    """The awaited work was ended from outside: by a person (`cancelled`) or by the deadline."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)


class CancelToken:
    """Set once. `within` bounds an await, `hook` calls back at once when the token is set."""

    __slots__ = ("_hooks", "cancelled", "reason")

    def __init__(self) -> None:
        self.cancelled = False
        self.reason = ""
        self._hooks: list[Callable[[], None]] = []

    def cancel(self, reason: str = "stopped by user") -> None:
        """End what the turn is doing now; nothing new begins. A second call changes nothing."""
        if self.cancelled:
            return
        self.cancelled, self.reason = True, reason
        hooks, self._hooks = self._hooks, []
        for hook in hooks:
            hook()

    def hook(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back on cancel, at once if that was before. Returns the way to take it off."""
        if self.cancelled:
            callback()
            return lambda: None
        self._hooks.append(callback)

        def unhook() -> None:
            if callback in self._hooks:
                self._hooks.remove(callback)

        return unhook

    @asynccontextmanager
    async def within(self, seconds: float | None) -> AsyncIterator[None]:
        """Run the body until it ends, the token is set or `seconds` have passed; the latter two
        cancel the await inside and raise Stopped."""
        try:
            async with asyncio.timeout(seconds) as limit:
                loop = asyncio.get_running_loop()
                # Once the time is up it can be set no more, and need not be.
                unhook = self.hook(lambda: None if limit.expired() else limit.reschedule(loop.time()))
                try:
                    yield
                finally:
                    unhook()
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise Stopped("cancelled" if self.cancelled else "deadline") from error
