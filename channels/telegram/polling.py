"""Long polling whose offset moves only after an update was handed over.

The library's own updater confirms what it has put on a queue in memory; a process that dies then loses
it. Here an update that could not be handed over stays on the platform and comes again.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from channels.base import ChannelBusy, ChannelDown
from channels.telegram.errors import PollConflict, TokenRefused

log = logging.getLogger("channels.telegram")

RawUpdate = dict[str, Any]
State = Literal["starting", "up", "conflict", "down", "refused", "stopped"]

SHORTEST, LONGEST = 1.0, 60.0  # seconds between two tries after a conflict or a failed hand-over
LONGEST_DOWN = 30.0  # seconds between two tries while the network is away: back well within a minute
CALM = 120.0  # seconds without a conflict after which the next one is a new one


class NotStored(Exception):
    """An update could not be handed over; it was not confirmed."""


class Poller:
    """Fetches, hands over, confirms; and waits when something is wrong."""

    def __init__(
        self,
        *,
        fetch: Callable[[int | None], Awaitable[Sequence[RawUpdate]]],
        handle: Callable[[RawUpdate], Awaitable[None]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float],
        on_state: Callable[[State], None] = lambda state: None,
    ) -> None:
        """`fetch(offset)` raises ChannelDown and its kinds; `handle` returns once an update is stored.
        `on_state` is told whenever `state` changes."""
        self.state: State = "starting"
        self.offset: int | None = None  # the first update that is not confirmed
        self._fetch, self._handle, self._sleep, self._monotonic = fetch, handle, sleep, monotonic
        self._on_state = on_state
        self._stopping = False
        self._waiting: asyncio.Future[Any] | None = None
        self._delay = 0.0
        self._conflict_at = -CALM
        self._conflict_delay = 0.0

    async def run(self) -> None:
        """Poll until `stop`. Raises TokenRefused when only the owner can mend it."""
        while not self._stopping:
            wait = await self._try()
            if wait > 0 and not self._stopping:
                await self._interruptible(self._sleep(wait))
        self._enter("stopped")

    def stop(self) -> None:
        """End the wait; an update that is being handed over is finished first."""
        self._stopping = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def step(self) -> None:
        """One fetch and the hand-over of what it brought. Raises what fetch raises, and NotStored."""
        updates = await self._interruptible(self._fetch(self.offset))
        if not self._stopping and self._enter("up"):
            log.info("telegram: receiving")
        for update in updates or ():
            await self._hand_over(update)
            self.offset = int(update["update_id"]) + 1

    async def _try(self) -> float:
        """One step; the seconds to wait before the next."""
        try:
            await self.step()
        except TokenRefused:
            self._enter("refused")
            raise
        except PollConflict:
            return self._after_conflict()
        except ChannelBusy as busy:
            return busy.retry_after
        except ChannelDown as down:
            self._say("down", "telegram: %s; trying again until it answers", down)
            return self._longer(LONGEST_DOWN)
        except NotStored as failure:
            cause = failure.__cause__
            log.error(
                "telegram: an update could not be stored (%s: %s); it stays with Telegram",
                type(cause).__name__,
                cause,
            )
            return self._longer(LONGEST)
        except Exception as error:  # a fault of ours or the library's must not end the polling
            log.error("telegram: polling failed (%s: %s); trying again", type(error).__name__, error)
            return self._longer(LONGEST)
        self._delay = 0.0
        return 0.0

    async def _hand_over(self, update: RawUpdate) -> None:
        try:
            await self._handle(update)
        except Exception as error:  # by the contract any error means: not stored
            raise NotStored from error

    def _after_conflict(self) -> float:
        """Longer and longer waits, so that two processes do not take turns for ever."""
        now = self._monotonic()
        calm = now - self._conflict_at > CALM + self._conflict_delay
        self._conflict_delay = SHORTEST if calm else min(LONGEST, 2 * self._conflict_delay)
        self._conflict_at = now
        self._say(
            "conflict", "telegram: another process or a webhook takes the updates of this bot; only one may"
        )
        return self._conflict_delay

    def _longer(self, longest: float) -> float:
        self._delay = min(longest, 2 * self._delay or SHORTEST)
        return self._delay * random.uniform(0.75, 1.0)  # noqa: S311 - jitter, not a secret

    def _say(self, state: State, text: str, *args: object) -> None:
        """One line when the state changes, not one for every try."""
        if self._enter(state):
            log.warning(text, *args)

    def _enter(self, state: State) -> bool:
        """Whether this is news."""
        if self.state == state:
            return False
        self.state = state
        self._on_state(state)
        return True

    async def _interruptible(self, wait: Awaitable[Any]) -> Any:
        """Await something that `stop` may cut short; None then."""
        self._waiting = asyncio.ensure_future(wait)
        try:
            return await self._waiting
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._stopping and (task is None or not task.cancelling()):
                return None
            raise
        finally:
            self._waiting = None
