"""Schedules: what the clock tells sessions and threads. Made by agents and by the configuration, carried
out when due, listed and cancelled by people.

What is due is one conditional transaction in the store, whatever process looks first. Planned times come one
from another, so a clock that jumps back makes nothing happen again, and after one that jumped forward, or
an outage, what was missed is made up for once or left out.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from gateway import notices
from gateway.approvals import ClickOutcome, new_code
from gateway.clock import Clock
from gateway.errors import ToolError
from gateway.messages import Actor, Json, Message, ThreadKey, user
from gateway.requests import Who
from gateway.store.base import Store
from gateway.store.rows import Timer
from gateway.store.schedule_rows import Schedule, ScheduleRecord, Standing, Wake, about
from gateway.timetable import SHORTEST, Timing, first_after, last_until, moment_text, timing_text
from gateway.tools.base import CallContext

MOST_OPEN = 20  # of one session
MOST_LISTED = 200
LATE = 300.0  # seconds after which a planned time counts as missed
AUTHOR = "schedule"  # who wrote such a message, as pages show it
WOKEN = "[Scheduled wake-up ("  # how it begins
_TITLE = 60  # characters
_NOBODY = Actor("", "", "")
_log = logging.getLogger(__name__)


class Places(Protocol):
    """What the configuration says about people and places."""

    def is_admin(self, actor: Actor) -> bool: ...

    def tells(self, key: ThreadKey) -> bool:
        """Whether what is said there reaches anybody."""

    def begins(self, key: ThreadKey) -> bool:
        """Whether a message that is posted there begins a thread of its own."""


class Planning:
    """See gateway.tools.schedule.Planner."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        tells: Callable[[ThreadKey], bool],
        is_admin: Callable[[Actor], bool],
    ) -> None:
        """`is_admin`: who may cancel what others had made."""
        self._store, self._clock, self._tells, self._is_admin = store, clock, tells, is_admin

    def now(self) -> float:
        """Unix seconds."""
        return self._clock.now()

    async def plan(self, context: CallContext, timing: Timing, instruction: str) -> str:
        """Store a wake-up of the call's session; what the model reads of it. Raises ToolError."""
        view = await self._store.session(context.session_id)
        if view is None or not self._tells(view.key):
            raise ToolError(
                "nobody could be reached here later; only conversations on a channel can be woken"
            )
        if view.parent:
            raise ToolError("a subagent's work ends with its answer; whoever called you can schedule this")
        now = self._clock.now()
        due_at = first_after(timing, now)
        if due_at is None:
            raise ToolError("this moment is over")
        if due_at - now < SHORTEST and not timing.repeats and await self._is_woken(context):
            raise ToolError("after a wake-up the next one is a minute away at least; give a later moment")
        schedule = Schedule(
            code=new_code(), timing=timing, instruction=instruction, requester=_NOBODY, by="", made_at=now
        )
        id_ = f"c_{hashlib.sha256(context.idempotency_key.encode()).hexdigest()[:20]}"
        record = await self._store.add_schedule(
            id_, context.session_id, context.turn_id, schedule, due_at, MOST_OPEN
        )
        if record is None:
            raise ToolError(
                f"{MOST_OPEN} are open in this conversation already; cancel one first "
                "(schedules lists them, with cancel it takes one back)"
            )
        return f"scheduled, code {record.schedule.code}: {_when(record)}"

    async def _is_woken(self, context: CallContext) -> bool:
        """Whether a schedule began this turn: an agent that wakes itself must not do so without a pause."""
        turn = await self._store.turn(context.turn_id)
        begun = [] if turn is None else await self._store.log(context.session_id, turn.first_seq, 1)
        return any(message.author == AUTHOR and message.text.startswith(WOKEN) for message in begun)

    async def listed(self, context: CallContext) -> str:
        """What is planned in the call's session."""
        records = await self._store.schedules(session_id=context.session_id)
        lines = [
            f"{r.schedule.code}: {_when(r)}: {notices.visible_line(r.schedule.instruction)}" for r in records
        ]
        return "\n".join(lines) or "nothing is scheduled in this conversation"

    async def take_back(self, context: CallContext, code: str) -> str:
        """Cancel a wake-up of the call's session. Raises ToolError."""
        records = await self._store.schedules(session_id=context.session_id)
        found = next((r for r in records if r.schedule.code == code.casefold()), None)
        if found is None:
            known = ", ".join(r.schedule.code for r in records) or "none"
            raise ToolError(f"no schedule of this conversation has the code {code!r}; open: {known}")
        # Whoever asks for it now, or had this turn planned: the agent may no more than they may.
        origin = await self._store.origin(context.turn_id)
        who = _NOBODY if origin is None else origin.requester
        if who != found.schedule.requester and not self._is_admin(who):
            raise ToolError(notices.AGENT_MAY_NOT_CANCEL_SCHEDULE.format(by=found.schedule.by))
        by = f"the agent {found.agent}"
        await self._store.cancel_schedule(found.id, by, who, "tool", self._clock.now())
        return f"cancelled: {code}"


def _when(record: ScheduleRecord) -> str:
    """How often and when next, as the model reads it."""
    timing = record.schedule.timing
    next_at = moment_text(record.due_at, timing.zone)
    return f"{timing_text(timing)}, next {next_at}" if timing.repeats else f"once, {next_at}"


def wake_message(record: ScheduleRecord, planned: float, now: float) -> Message:
    """What a session is told when a schedule is due, marked as nobody's words of this moment."""
    zone = record.schedule.timing.zone
    late = f", {notices.ago(now - planned)} late" if now - planned > LATE else ""
    which = f"schedule {record.name}" if record.name else f"schedule {record.schedule.code}"
    head = f"{WOKEN}{which}), due {moment_text(planned, zone)}{late}. Nobody wrote this just now.]"
    return user(f"{head}\n{record.schedule.instruction}", author=AUTHOR)


class Schedules:
    """`wake`: a session has something to do. `posted`: there is something to send."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        places: Places,
        is_operator: Callable[[Actor], bool],
        wake: Callable[[str], None],
        posted: Callable[[], None],
    ) -> None:
        self._store, self._clock, self._places, self._is_operator = store, clock, places, is_operator
        self._wake, self._posted = wake, posted

    # ---- the clock

    async def keep(self, wanted: Sequence[Standing]) -> None:
        """Bring the configuration's schedules up to date. Raises StoreError."""
        kept = await self._store.keep_schedules(wanted, self._clock.now())
        for word, names in (("new", kept.made), ("changed", kept.changed), ("no longer there", kept.ended)):
            if names:
                _log.info("schedules %s: %s", word, ", ".join(names))
        if kept.held_back:
            _log.warning(
                "schedules that somebody has cancelled stay so until they are changed here: %s",
                ", ".join(kept.held_back),
            )

    async def carry_out(self, timer: Timer, now: float) -> None:
        """A schedule is due. Raises StoreError."""
        record = await self._store.schedule(timer.subject)
        if record is None or not record.is_open:
            return
        schedule = record.schedule
        planned = last_until(schedule.timing, timer.due_at, now)
        left_out = schedule.missed == "skip" and now - planned > LATE
        opens = bool(record.name) and self._places.begins(record.key)
        woken = await self._store.wake(
            Wake(
                record=record,
                due_at=timer.due_at,
                planned=planned,
                next_at=first_after(schedule.timing, now) if schedule.timing.repeats else None,
                at=now,
                message=None if left_out else wake_message(record, planned, now),
                title=f"Scheduled: {schedule.instruction}"[:_TITLE],
                opener=notices.scheduled_opener(record) if opens else "",
            )
        )
        if woken.session_id:
            self._wake(woken.session_id)
        elif woken.fired:
            self._posted()

    # ---- people

    async def here(self, key: ThreadKey, session_id: str) -> list[ScheduleRecord]:
        """What is scheduled for a thread: its session's, and the configuration's for its conversation."""
        return await self._store.schedules(session_id=session_id, key=key)

    async def everything(self, actor: Actor) -> list[ScheduleRecord] | None:
        """All that is open, the next first; None for somebody who may not see that."""
        if not (self._is_operator(actor) or self._places.is_admin(actor)):
            return None
        return await self._store.schedules(limit=MOST_LISTED)

    async def visible(self, actor: Actor, channel: str) -> list[ScheduleRecord]:
        """What somebody may see beside all threads: everything, for those who may; else their own, and
        what wakes the sessions of a channel on which everybody sees all."""
        found = await self._store.schedules(limit=MOST_LISTED)
        if self._is_operator(actor) or self._places.is_admin(actor):
            return found
        return [r for r in found if r.key.channel == channel or r.schedule.requester == actor]

    async def by_code(self, code: str, who: Who, here: Sequence[ScheduleRecord]) -> ScheduleRecord | None:
        """The one with this code: of those here, or of all for somebody who may see all."""
        everything = await self.everything(who.actor) or []
        return next((r for r in (*here, *everything) if r.schedule.code == code.casefold()), None)

    async def cancel(self, schedule_id: str, who: Who) -> tuple[ClickOutcome, str]:
        """Cancel one: whoever had it made, those who run the gateway, those who decide in the channel."""
        record = await self._store.schedule(schedule_id)
        if record is None:
            return "unknown", notices.NO_SUCH_SCHEDULE.format(code=schedule_id)
        code = record.schedule.code
        if not self._may_cancel(who.actor, record):
            body: Json = {"via": who.via, "word": "cancel", **about(record)}
            await self._store.audit(
                "refused_forbidden",
                str(who.actor),
                body,
                self._clock.now(),
                session_id=record.session_id,
            )
            return "forbidden", notices.MAY_NOT_CANCEL_SCHEDULE.format(by=record.schedule.by)
        now = self._clock.now()
        if not await self._store.cancel_schedule(record.id, who.words, who.actor, who.via, now):
            return "unknown", notices.NO_SUCH_SCHEDULE.format(code=code)
        return "recorded", notices.SCHEDULE_CANCELLED.format(code=code)

    def _may_cancel(self, actor: Actor, record: ScheduleRecord) -> bool:
        if actor == record.schedule.requester or self._is_operator(actor):
            return True
        return actor.channel == record.key.channel and self._places.is_admin(actor)
