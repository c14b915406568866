"""Timers are rows: whatever process looks first carries a due one out, once.

Expiry is the first kind. Its effect is the same conditional update as a click, so that clock and
people can never both win.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from gateway.approvals import Expire
from gateway.clock import Clock
from gateway.messages import Actor
from gateway.store.base import Store
from gateway.store.rows import Timer, Verdict

CLOCK = Actor("clock", "", "")
_log = logging.getLogger(__name__)


class Timers:
    """Carries out what is due. `wake`: a session has something to go on with."""

    def __init__(self, store: Store, clock: Clock, wake: Callable[[str], None]) -> None:
        self._store, self._clock, self._wake = store, clock, wake

    async def sweep_once(self) -> int:
        """Carry out everything that is due; the number of timers."""
        due = await self._store.due_timers(self._clock.now())
        for timer in due:
            await self._fire(timer)
        return len(due)

    async def _fire(self, timer: Timer) -> None:
        if timer.kind == "expiry":
            await self._expire(timer.subject)
        elif timer.kind != "pairing":  # a code that nobody confirmed simply ends
            _log.error("timer %s has the unknown kind %r and is dropped", timer.id, timer.kind)
        await self._store.timer_done(timer.id)

    async def _expire(self, pending_id: str) -> None:
        verdict = Verdict(
            pending_id=pending_id, resolution=Expire(), actor=CLOCK, by="the clock", at=self._clock.now()
        )
        resolved = await self._store.resolve(verdict)
        if resolved.record is not None and resolved.outcome in ("resumed", "recorded"):
            self._wake(resolved.record.session_id)
