"""The outbox duty: rows out, in order per thread, at most one possible repeat after a crash.

A row is claimed (`sending`), handed to the outlet part by part, and marked `sent` with the
platform's reference. What the platform asks to delay is delayed; what it refuses for good is given
up and recorded. A row whose sender died is claimed again once, and its text says that it may be a
repeat.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from gateway import faults
from gateway.clock import Clock
from gateway.errors import GatewayError, StoreError, StoreUnavailable
from gateway.log import redact
from gateway.messages import ThreadKey
from gateway.store.base import Store
from gateway.store.rows import Delivery

FIRST_RETRY, LAST_RETRY = 1.0, 300.0  # seconds
LAST_WHILE_DOWN = 45.0  # a network that is back is made use of within a minute
ODD_ATTEMPTS = 5  # of a row that fails in a way that nobody has foreseen
T = TypeVar("T")
# The fault points around a row's way out and around the note that it is out, where they have own names.
_SENDING = {"card": "card", "redraw": "redraw"}
_STORING = {"card": "ref", "redraw": "redrawn"}
_log = logging.getLogger(__name__)


class DeliveryFailed(GatewayError):
    """Why a row could not be sent. `retry_after`: seconds to wait; None with `final`: never.
    `moved_to`: the thread has another key now. `unsure`: it may have arrived all the same."""

    def __init__(
        self,
        reason: str,
        *,
        final: bool = False,
        retry_after: float | None = None,
        moved_to: ThreadKey | None = None,
        unsure: bool = False,
    ) -> None:
        self.final, self.retry_after, self.moved_to, self.unsure = final, retry_after, moved_to, unsure
        super().__init__(reason)


class Posted(NamedTuple):
    """One part of a row is out. `more`: another part follows. `opened`: the thread that it has begun."""

    ref: str
    more: bool = False
    opened: ThreadKey | None = None


class Outlet(Protocol):
    """What turns a row into platform messages."""

    def serves(self, channel: str) -> bool:
        """Whether this process has that channel."""

    def deliver(self, row: Delivery) -> AsyncIterator[Posted]:
        """Send what of the row is not in `row.refs` yet; yields each part as soon as it is out, and
        sends the next only when it is asked for. Raises DeliveryFailed."""


class Deliveries:
    """Sends rows: those handed over by turns at once, the others when they are due. `moved`: has
    everything of a thread follow it to another key (default: Store.move_thread)."""

    def __init__(
        self,
        store: Store,
        outlet: Outlet,
        clock: Clock,
        moved: Callable[[ThreadKey, ThreadKey], Awaitable[None]] | None = None,
    ) -> None:
        self._store, self._outlet, self._clock = store, outlet, clock
        self._moved = moved or store.move_thread
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def take(self, rows: Sequence[Delivery]) -> None:
        """Send these rows, which this process has claimed, each thread's in order."""
        for row in rows:
            work = self._leave(row) if self._closed else self.send(row)
            task = asyncio.get_running_loop().create_task(work)
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
        left = set(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def send(self, row: Delivery) -> None:
        """One row, and then whatever its thread has next."""
        try:
            following = [row]
            while following:
                first, *others = following
                self.take(others)
                following = await self._send_one(first)
        except StoreError as error:
            _log.error("delivery %s stays in the outbox: %s", row.id, redact(str(error)))

    async def _send_one(self, row: Delivery) -> list[Delivery]:
        if not self._outlet.serves(row.key.channel):
            await self._later(row, self._clock.now() + LAST_RETRY, "no such channel here")
            return []
        try:
            last = await self._parts(row)
        except DeliveryFailed as failure:
            return await self._failed(row, failure)
        except StoreError as error:
            return await self._failed(row, DeliveryFailed(redact(str(error))))
        except Exception as error:  # one row that cannot be sent must not hold up its thread for ever
            _log.exception("delivery %s to %s failed", row.id, row.key.channel)
            final = row.attempts >= ODD_ATTEMPTS
            return await self._failed(row, DeliveryFailed(type(error).__name__, final=final, unsure=True))
        stored = _STORING.get(row.kind, "sent")
        ref, opened = (last.ref, last.opened) if last is not None else (None, None)
        faults.reach(f"{stored}.before")
        following = await self._insist(
            lambda: self._store.sent(row.id, ref, self._clock.now(), opened=opened)
        )
        faults.reach(f"{stored}.after")
        return following if not self._closed else await self._put_back(following)

    async def _insist(self, write: Callable[[], Awaitable[T]]) -> T:
        """Note what has happened, however long the database takes: a row that nobody brings to an
        end would hold up its thread until the next start."""
        pause = FIRST_RETRY
        while True:
            try:
                return await write()
            except StoreUnavailable as error:
                if self._closed:
                    raise
                _log.error("the outbox cannot be written: %s", redact(str(error)))
            await self._clock.sleep(pause)
            pause = min(LAST_RETRY, 2 * pause)

    async def _parts(self, row: Delivery) -> Posted | None:
        """Send part by part; every reference but the last is stored before the next part goes out,
        so that no crash and no refusal repeats a part that is out."""
        place = _SENDING.get(row.kind, "send")
        faults.reach(f"{place}.before")
        last: Posted | None = None
        async for posted in self._outlet.deliver(row):
            faults.reach(f"{place}.after")
            last = posted
            if posted.more:
                await self._part_sent(row, posted.ref)
        if last is None:
            faults.reach(f"{place}.after")
        return last

    async def _part_sent(self, row: Delivery, ref: str) -> None:
        await self._insist(lambda: self._store.part_sent(row.id, ref, self._clock.now()))

    async def _leave(self, row: Delivery) -> None:
        try:
            await self._put_back([row])
        except StoreError as error:
            _log.error("delivery %s stays in the outbox: %s", row.id, redact(str(error)))

    async def _put_back(self, rows: Sequence[Delivery]) -> list[Delivery]:
        for row in rows:
            await self._store.retry_later(row.id, self._clock.now(), "")
        return []

    async def _later(self, row: Delivery, at: float, why: str, *, unsure: bool = False) -> None:
        await self._insist(lambda: self._store.retry_later(row.id, at, why, unsure=unsure))

    async def _failed(self, row: Delivery, failure: DeliveryFailed) -> list[Delivery]:
        now = self._clock.now()
        if (new := failure.moved_to) is not None:
            await self._insist(lambda: self._moved(row.key, new))
            await self._later(row, now, str(failure))
            return []
        if failure.final:
            _log.warning("delivery %s to %s given up: %s", row.id, row.key.channel, failure)
            return await self._insist(lambda: self._store.give_up(row.id, str(failure), now))
        wait = failure.retry_after
        if wait is None:
            wait = min(LAST_WHILE_DOWN, FIRST_RETRY * 2 ** min(row.attempts - 1, 12))
        await self._later(row, now + wait, str(failure), unsure=failure.unsure)
        return []
