"""Schedules, as the store takes and gives them: frozen values, no SQL."""

from __future__ import annotations

from typing import Literal

import msgspec

from gateway.messages import Actor, Json, Message, ThreadKey
from gateway.timetable import Timing

Missed = Literal["once", "skip"]
CONFIGURATION = Actor("schedule", "", "")  # nobody: no person is ever called that
IN_THE_FILE = "the configuration"


class Schedule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a session or a thread is told by the clock.

    `code` is for people to type. `missed`: what becomes of planned times that nobody was there for: they
    are made up for once, or left out. `requester`: who is asked where an approval is needed; `by`: who made
    it, in words. `key`, `agent` and `tenant`: of one from the configuration, whose thread may not exist
    yet. `last_id`, `last_row`: the message or the outbox row that it has led to last. `ended`: how it ended.
    """

    code: str
    timing: Timing
    instruction: str
    requester: Actor
    by: str
    made_at: float
    missed: Missed = "once"
    key: ThreadKey | None = None
    agent: str = ""
    tenant: str = ""
    last_id: str = ""
    last_row: int = 0
    ended: str = ""


class ScheduleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule and its next planned time (Unix seconds). `key`: where it answers. `session_id`: the
    session that it wakes, empty for one from the configuration, which has a `name` instead."""

    id: str
    timer_id: int
    name: str
    session_id: str
    key: ThreadKey
    agent: str
    due_at: float
    is_open: bool
    schedule: Schedule


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule as the configuration wants it. `timing` without its beginning."""

    name: str
    agent: str
    key: ThreadKey
    timing: Timing
    instruction: str
    missed: Missed = "once"
    tenant: str = ""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the configuration's schedules, by name. `held_back`: somebody has cancelled them, and
    nothing about them has changed since."""

    made: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    held_back: tuple[str, ...] = ()


class Wake(msgspec.Struct, frozen=True, kw_only=True):
    """What a due schedule does, for its one transaction. `due_at`: the time that was found due; `planned`:
    the one that is carried out, the last that is not in the future; `next_at`: None when it was the last.
    `message`: what the session is told; None: nothing, the time is left out. `title`: of a session that
    begins with it. `opener`: words that begin a thread of their own in the place, in which the session is.
    """

    record: ScheduleRecord
    due_at: float
    planned: float
    next_at: float | None
    at: float
    message: Message | None
    title: str = ""
    opener: str = ""

    @property
    def message_id(self) -> str:
        """The identity of the message: this schedule at this planned time."""
        return wake_id(self.record.id, self.planned)


class Woken(msgspec.Struct, frozen=True, kw_only=True):
    """What the transaction did. `fired`: a message was stored, or its thread is about to be opened.
    `session_id`: the session that has work now."""

    done: bool
    fired: bool = False
    session_id: str = ""


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """What an outbox row carries that opens a thread: the message with which the session there begins."""

    schedule_id: str
    message_id: str
    message: Message
    actor: Actor
    agent: str
    tenant: str
    title: str


WAKE = "schedule:"  # begins the id of a message that a schedule wrote, which no platform knows


def wake_id(schedule_id: str, planned: float) -> str:
    """The id of a schedule's message for one planned time."""
    return f"{WAKE}{schedule_id}@{planned:.3f}"


def about(record: ScheduleRecord) -> Json:
    """What the audit log says of a schedule: never what it tells the agent."""
    body: Json = {"schedule": record.id, "code": record.schedule.code}
    return {**body, "name": record.name} if record.name else body
