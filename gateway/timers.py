"""Timers are rows: whatever process looks first carries a due one out, once.

What a timer does is one conditional update, like a click, so that clock and people can never both
win, nor two processes. Nothing here depends on how long ago a timer was due: after a clock that
jumped forward or a process that was down it is carried out at once, and reminders that were missed
are one. A clock that jumps back makes nothing happen again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from gateway import faults
from gateway.clock import Clock
from gateway.patience import after_quiet
from gateway.reminders import Reminders
from gateway.store.base import Store
from gateway.store.rows import PendingRecord, Timer

# Of what is due at once: what ran out is not escalated, what is escalated needs no reminder.
_FIRST = {"expiry": 0, "escalate": 1}
_log = logging.getLogger(__name__)


class Timers:
    """Carries out what is due. `wake`: a session has something to go on with. `nudge`: its cards or
    lists look different now, and there is something to send. `scheduled`: carries out a schedule."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        wake: Callable[[str], None],
        nudge: Callable[[str], None],
        reminders: Reminders,
        scheduled: Callable[[Timer, float], Awaitable[None]] | None = None,
    ) -> None:
        self._store, self._clock, self._wake, self._nudge = store, clock, wake, nudge
        self._reminders, self._scheduled = reminders, scheduled

    async def sweep_once(self) -> int:
        """Carry out everything that is due; the number of timers."""
        now = self._clock.now()  # one moment for all: the clock may jump meanwhile
        due = await self._store.due_timers(now)
        for timer in sorted(due, key=lambda timer: _FIRST.get(timer.kind, len(_FIRST))):
            faults.reach("timer.before")
            await self._fire(timer, now)
            faults.reach("timer.after")
        return len(due)

    async def _fire(self, timer: Timer, now: float) -> None:
        if timer.kind == "schedule":
            if self._scheduled is not None:
                await self._scheduled(timer, now)
            return
        if timer.kind in ("expiry", "remind", "escalate"):
            record = await self._store.pending(timer.subject)
            if record is not None and record.state == "open":
                await (self._expire if timer.kind == "expiry" else self._speak_up)(timer, record, now)
                return
        elif timer.kind != "pairing":  # a code that nobody confirmed simply ends
            _log.error("timer %s has the unknown kind %r and is dropped", timer.id, timer.kind)
        await self._store.timer_done(timer.id)

    async def _expire(self, timer: Timer, record: PendingRecord, now: float) -> None:
        card = await self._store.pendings(card=record.pending.card_id, open_only=False)
        resolved = await self._store.resolve(self._reminders.expiry(record, card, now))
        await self._store.timer_done(timer.id)
        if resolved.record is not None and resolved.outcome in ("resumed", "recorded"):
            self._wake(resolved.record.session_id)
            self._nudge(resolved.record.home)

    async def _speak_up(self, timer: Timer, record: PendingRecord, now: float) -> None:
        """Remind, or ask others too; later, where it is quiet now."""
        later = after_quiet(record.pending.quiet, now)
        if later > now:
            await self._store.put_off_timer(timer.id, later)
            return
        waiting = await self._store.pendings(card=record.pending.card_id)
        copies = await self._store.card_copies(record.id)
        if not waiting:  # decided since
            return
        step = record.pending.escalate if timer.kind == "escalate" else None
        if step is None:
            firing = self._reminders.reminder(timer, waiting, copies, now)
        else:
            firing = self._reminders.escalation(timer, step, waiting, copies, now)
        if await self._store.fire(firing):
            self._nudge(record.home)
