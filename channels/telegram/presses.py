"""Presses that wait for their answer: each is answered exactly once, without words if nobody has any.

Telegram shows a spinner on the button until then, and refuses an answer after some fifteen seconds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable

from channels.base import ChannelBusy, ChannelError
from channels.telegram.limits import ANSWER_SECONDS, NOTICE_SECONDS

log = logging.getLogger("channels.telegram")

_KEPT = 200  # answered presses remembered; Telegram forgets them after some fifteen seconds


class Presses:
    """The open ones of this process. `answer(query id, text)` does the call."""

    def __init__(
        self,
        answer: Callable[[str, str], Awaitable[None]],
        patience: float = NOTICE_SECONDS,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._answer, self._patience = answer, patience
        self._sleep, self._monotonic = sleep, monotonic
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._settled: deque[str] = deque(maxlen=_KEPT)
        self._tasks: set[asyncio.Task[None]] = set()

    def expect(self, query_id: str) -> None:
        """A press was stored: answer it without words unless `settle` comes, or came, first."""
        if query_id not in self._timers and query_id not in self._settled:
            loop = asyncio.get_running_loop()
            self._timers[query_id] = loop.call_later(self._patience, self.settle_soon, query_id, "")

    def settle_soon(self, query_id: str, text: str) -> None:
        """Answer in the background."""
        task = asyncio.create_task(self.settle(query_id, text), name="telegram callback answer")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self, query_id: str, text: str) -> None:
        """Answer now. An answer that is late, or the second one, is not an error."""
        if query_id in self._settled:
            return
        self._settled.append(query_id)
        timer = self._timers.pop(query_id, None)
        if timer is not None:
            timer.cancel()
        try:
            await self._insist(query_id, text)
        except ChannelError as error:
            log.info("telegram: a press was not answered: %s", error)

    async def _insist(self, query_id: str, text: str) -> None:
        """Wait as long as Telegram asks for, unless the press cannot be answered any more by then."""
        ends = self._monotonic() + ANSWER_SECONDS
        while True:
            try:
                return await self._answer(query_id, text)
            except ChannelBusy as busy:
                if self._monotonic() + busy.retry_after > ends:
                    raise
                await self._sleep(busy.retry_after)

    async def close(self) -> None:
        """Answer what is still open, then wait for the calls in flight."""
        for query_id in list(self._timers):
            self._timers.pop(query_id).cancel()
            self.settle_soon(query_id, "")
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=5)
            for task in late:  # told to wait, by a flood
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
