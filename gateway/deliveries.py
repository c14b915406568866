"""The outbox duty: rows out, in order per thread, at most one possible repeat after a crash.

A row is claimed (`sending`), handed to the outlet part by part, and marked `sent` with the
platform's reference. What the platform asks to delay is delayed; what it refuses for good is given
up and recorded. A row whose sender died is claimed again once, and its text says that it may be a
repeat.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from gateway import faults
from gateway.clock import Clock
from gateway.errors import GatewayError, StoreError
from gateway.messages import ThreadKey
from gateway.store.base import Store
from gateway.store.rows import Delivery

FIRST_RETRY, LAST_RETRY = 1.0, 300.0  # seconds
# The fault points around a row's way out and around the note that it is out, where they have own names.
_SENDING = {"card": "card", "redraw": "redraw"}
_STORING = {"card": "ref", "redraw": "redrawn"}
_log = logging.getLogger(__name__)


class DeliveryFailed(GatewayError):
    """Why a row could not be sent. `retry_after`: seconds to wait; None with `final`: never.
    `moved_to`: the thread has another key now. `known_unsent`: nothing has reached the platform."""

    def __init__(
        self,
        reason: str,
        *,
        final: bool = False,
        retry_after: float | None = None,
        moved_to: ThreadKey | None = None,
    ) -> None:
        self.final, self.retry_after, self.moved_to = final, retry_after, moved_to
        super().__init__(reason)


class Outlet(Protocol):
    """What turns a row into platform messages."""

    def serves(self, channel: str) -> bool:
        """Whether this process has that channel."""

    def deliver(self, row: Delivery) -> AsyncIterator[str]:
        """Send what of the row is not in `row.refs` yet; yields the reference of each part as
        soon as it is out. Raises DeliveryFailed."""


class Deliveries:
    """Sends rows: those handed over by turns at once, the others when they are due."""

    def __init__(self, store: Store, outlet: Outlet, clock: Clock) -> None:
        self._store, self._outlet, self._clock = store, outlet, clock
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def take(self, rows: Sequence[Delivery]) -> None:
        """Send these rows, which this process has claimed, each thread's in order."""
        for row in rows:
            task = asyncio.get_running_loop().create_task(self.send(row))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def sweep_once(self) -> int:
        """Claim and send what is due; the number of rows taken up."""
        if self._closed:
            return 0
        due_at = await self._store.next_delivery_at()
        if due_at is None or due_at > self._clock.now():
            return 0
        rows = await self._store.due_deliveries(self._clock.now())
        self.take(rows)
        return len(rows)

    async def idle(self) -> None:
        """Wait until nothing is being sent."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def close(self, seconds: float) -> None:
        """Let what is being sent end; take nothing new."""
        self._closed = True
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
        for task in self._tasks:
            task.cancel()

    async def send(self, row: Delivery) -> None:
        """One row, and then whatever its thread has next."""
        try:
            waiting = [row]
            while waiting:
                waiting = await self._send_one(waiting[0])
        except StoreError as error:
            _log.error("delivery %s stays in the outbox: %s", row.id, error)

    async def _send_one(self, row: Delivery) -> list[Delivery]:
        if not self._outlet.serves(row.key.channel):
            await self._store.retry_later(row.id, self._clock.now() + LAST_RETRY, "no such channel here")
            return []
        try:
            last = await self._parts(row)
        except DeliveryFailed as failure:
            return await self._failed(row, failure)
        stored = _STORING.get(row.kind, "sent")
        faults.reach(f"{stored}.before")
        following = await self._store.sent(row.id, last, self._clock.now())
        faults.reach(f"{stored}.after")
        return following if not self._closed else await self._put_back(following)

    async def _parts(self, row: Delivery) -> str | None:
        """Send part by part; every reference but the last is stored on the way."""
        place = _SENDING.get(row.kind, "send")
        faults.reach(f"{place}.before")
        last: str | None = None
        async for ref in self._outlet.deliver(row):
            faults.reach(f"{place}.after")
            if last is not None:
                await self._store.part_sent(row.id, last, self._clock.now())
            last = ref
        if last is None:
            faults.reach(f"{place}.after")
        return last

    async def _put_back(self, rows: Sequence[Delivery]) -> list[Delivery]:
        for row in rows:
            await self._store.retry_later(row.id, self._clock.now(), "")
        return []

    async def _failed(self, row: Delivery, failure: DeliveryFailed) -> list[Delivery]:
        now = self._clock.now()
        if failure.moved_to is not None:
            await self._store.retry_later(row.id, now, str(failure))
            await self._store.move_thread(row.key, failure.moved_to)
            return []
        if failure.final:
            _log.warning("delivery %s to %s given up: %s", row.id, row.key.channel, failure)
            return await self._store.give_up(row.id, str(failure), now)
        wait = failure.retry_after
        if wait is None:
            wait = min(LAST_RETRY, FIRST_RETRY * 2 ** min(row.attempts - 1, 12))
        await self._store.retry_later(row.id, now + wait, str(failure))
        return []
