"""Schedules: made, kept as the configuration wants them, carried out, cancelled. Runs inside the writer's
transaction; looking is for the reader's connection."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection

import msgspec

from gateway.approvals import new_code
from gateway.messages import Actor, Json, ThreadKey, new_id
from gateway.store.rows import Incoming, Outgoing
from gateway.store.schedule_rows import (
    CONFIGURATION,
    IN_THE_FILE,
    Kept,
    Opening,
    Schedule,
    ScheduleRecord,
    Standing,
    Wake,
    Woken,
    about,
)
from gateway.store.sqlite_ops import inbox
from gateway.store.sqlite_ops.audit import append_audit
from gateway.store.sqlite_ops.codec import SQL, Row, dumps, read_actor, turn_place
from gateway.timetable import Timing, first_after

CLOCK = "clock"  # the actor in the record
_SCHEDULE = msgspec.json.Decoder(Schedule)
NOWHERE = ThreadKey("", "", "", "")


def _record(row: Row) -> ScheduleRecord:
    """From the columns of the statements about schedules."""
    schedule = _SCHEDULE.decode(row[6])
    return ScheduleRecord(
        id=row[1],
        timer_id=row[0],
        name=row[2],
        session_id=row[3],
        key=schedule.key or (ThreadKey(*row[7:11]) if row[7] is not None else NOWHERE),
        agent=schedule.agent or row[11] or "",
        due_at=row[4],
        is_open=not row[5],
        schedule=schedule,
    )


# ---- looking


def one(db: Connection, schedule_id: str) -> ScheduleRecord | None:
    """See Store.schedule."""
    row = db.execute(SQL["schedule_row"], (schedule_id,)).fetchone()
    return None if row is None else _record(row)


def live(db: Connection, session_id: str, key: ThreadKey | None, limit: int) -> list[ScheduleRecord]:
    """See Store.schedules."""
    if session_id or key is not None:
        found = [_record(row) for row in db.execute(SQL["schedules_of_session"], (session_id, limit))]
        if key is not None:
            named = (_record(row) for row in db.execute(SQL["schedules_named"]))
            found += [record for record in named if record.is_open and record.key[:3] == key[:3]]
    else:
        found = [_record(row) for row in db.execute(SQL["schedules_open"], (limit,))]
    return sorted(found, key=lambda record: (record.due_at, record.timer_id))[:limit]


# ---- made and cancelled


def add(
    db: Connection,
    schedule_id: str,
    session_id: str,
    turn_id: str,
    schedule: Schedule,
    due_at: float,
    most: int,
) -> ScheduleRecord | None:
    """See Store.add_schedule."""
    known = one(db, schedule_id)
    if known is not None:
        return known
    if len(db.execute(SQL["schedules_of_session"], (session_id, most)).fetchall()) >= most:
        return None
    origin = db.execute(SQL["turn_origin"], turn_place(turn_id)).fetchone()
    requester = read_actor(origin[0]) if origin is not None else schedule.requester
    schedule = msgspec.structs.replace(schedule, requester=requester, by=str(requester))
    db.execute(SQL["insert_schedule"], (schedule_id, session_id, "", due_at, dumps(schedule)))
    record = one(db, schedule_id)
    if record is not None:
        _audit(db, schedule.made_at, "scheduled", str(requester), record, {"next_at": due_at})
    return record


def cancel(db: Connection, schedule_id: str, by: str, actor: Actor, via: str, now: float) -> bool:
    """See Store.cancel_schedule."""
    record = one(db, schedule_id)
    if record is None or not _end(db, record, by):
        return False
    _audit(db, now, "cancelled", str(actor), record, {"by": by, "via": via})
    return True


def _end(db: Connection, record: ScheduleRecord, how: str) -> bool:
    ended = msgspec.structs.replace(record.schedule, ended=how)
    return db.execute(SQL["end_schedule"], {"id": record.timer_id, "body": dumps(ended)}).rowcount == 1


def keep(db: Connection, wanted: Sequence[Standing], now: float) -> Kept:
    """See Store.keep_schedules."""
    known = {record.name: record for record in map(_record, db.execute(SQL["schedules_named"]).fetchall())}
    made, changed, held_back = list[str](), list[str](), list[str]()
    for standing in wanted:
        record = known.pop(standing.name, None)
        if record is None:
            made.append(standing.name)
            _make(db, standing, now)
        elif _fits(record.schedule, standing) and record.is_open:
            continue
        elif _fits(record.schedule, standing) and record.schedule.ended != IN_THE_FILE:
            held_back.append(standing.name)
        else:
            changed.append(standing.name)
            _change(db, record, standing, now)
    ended = [record for record in known.values() if record.is_open]
    for record in ended:
        _end(db, record, IN_THE_FILE)
        _audit(db, now, "cancelled", IN_THE_FILE, record, {"by": IN_THE_FILE})
    return Kept(
        made=tuple(made),
        changed=tuple(changed),
        ended=tuple(record.name for record in ended),
        held_back=tuple(held_back),
    )


def _make(db: Connection, standing: Standing, now: float) -> None:
    schedule = _as_schedule(standing, new_code(), now, now)
    due_at = first_after(schedule.timing, now)
    if due_at is None:
        return
    id_ = new_id("c")
    db.execute(SQL["insert_schedule"], (id_, "", standing.name, due_at, dumps(schedule)))
    record = one(db, id_)
    if record is not None:
        _audit(db, now, "scheduled", IN_THE_FILE, record, {"next_at": due_at})


def _change(db: Connection, record: ScheduleRecord, standing: Standing, now: float) -> None:
    """In place. What stays when it is due keeps its next planned time."""
    before = record.schedule
    same = record.is_open and _plain(before.timing) == _plain(standing.timing)
    since = before.timing.since if same else now
    schedule = msgspec.structs.replace(
        _as_schedule(standing, before.code, since, now), last_id=before.last_id, last_row=before.last_row
    )
    due_at = record.due_at if same else first_after(schedule.timing, now)
    if due_at is None:
        return
    db.execute(SQL["change_schedule"], (dumps(schedule), due_at, record.timer_id))
    _audit(db, now, "scheduled", IN_THE_FILE, record, {"next_at": due_at, "changed": True})


def _as_schedule(standing: Standing, code: str, since: float, now: float) -> Schedule:
    timing = standing.timing
    if timing.every is not None:
        timing = msgspec.structs.replace(timing, since=since)
    return Schedule(
        code=code,
        timing=timing,
        instruction=standing.instruction,
        requester=CONFIGURATION._replace(user=standing.name),
        by=IN_THE_FILE,
        made_at=now,
        missed=standing.missed,
        key=standing.key,
        agent=standing.agent,
        tenant=standing.tenant,
    )


def _plain(timing: Timing) -> Timing:
    return msgspec.structs.replace(timing, since=0.0)


def _fits(schedule: Schedule, standing: Standing) -> bool:
    """Whether a stored schedule is what the configuration wants."""
    return (
        _plain(schedule.timing) == _plain(standing.timing)
        and schedule.instruction == standing.instruction
        and schedule.missed == standing.missed
        and (schedule.key, schedule.agent, schedule.tenant) == (standing.key, standing.agent, standing.tenant)
    )


# ---- carried out


def wake(db: Connection, wake: Wake, runner: str) -> Woken:
    """See Store.wake."""
    record = one(db, wake.record.id)
    values = {
        "id": wake.record.timer_id,
        "due": wake.due_at,
        "next": wake.due_at if wake.next_at is None else wake.next_at,
        "done": wake.next_at is None,
    }
    if record is None or db.execute(SQL["schedule_due_next"], values).rowcount == 0:
        return Woken(done=False)
    told: Json = {"planned": wake.planned}
    if wake.message is None:
        _audit(db, wake.at, "missed", CLOCK, record, told)
        return Woken(done=True)
    if _last_waits(db, record):
        _audit(db, wake.at, "missed", CLOCK, record, {**told, "cause": "the last one still waits"})
        return Woken(done=True)
    if wake.opener:
        row = _open(db, record, wake)
        note = msgspec.structs.replace(record.schedule, last_row=row)
        session_id = ""
    else:
        session_id = _tell(db, record.key, record.session_id, _opening(record, wake), runner, wake.at)
        note = msgspec.structs.replace(record.schedule, last_id=wake.message_id)
    db.execute(SQL["schedule_note"], (dumps(note), record.timer_id))
    _audit(db, wake.at, "fired", CLOCK, record, told, session_id)
    return Woken(done=True, fired=True, session_id=session_id)


def _last_waits(db: Connection, record: ScheduleRecord) -> bool:
    """Whether what it has led to last has not been taken up yet: nothing is piled up behind it."""
    last = record.schedule
    values = (*record.key[:3], last.last_id, last.last_row)
    return db.execute(SQL["schedule_waits"], values).fetchone() is not None


def _opening(record: ScheduleRecord, wake: Wake) -> Opening:
    if wake.message is None:
        raise ValueError("a planned time that is left out tells nobody anything")
    return Opening(
        schedule_id=record.id,
        message_id=wake.message_id,
        message=wake.message,
        actor=record.schedule.requester,
        agent=record.agent,
        tenant=record.schedule.tenant,
        title=wake.title,
    )


def _open(db: Connection, record: ScheduleRecord, wake: Wake) -> int:
    """Have the words posted that begin a thread; the outbox row."""
    payload: Json = {"text": wake.opener, "opens": msgspec.to_builtins(_opening(record, wake))}
    row = Outgoing(key=record.key, kind="notice", payload=payload)
    cursor = db.execute(
        SQL["insert_delivery"],
        (*row.key, row.kind, "queued", "", "", dumps(payload), "", "", "", 0, wake.at, wake.at),
    )
    return cursor.lastrowid or 0


def opened(db: Connection, opening: Json, thread: ThreadKey, runner: str, now: float) -> str:
    """The words are posted, and this is their thread: the session there begins. Its id."""
    return _tell(db, thread, "", msgspec.convert(opening, Opening), runner, now)


def _tell(db: Connection, key: ThreadKey, session_id: str, opening: Opening, runner: str, now: float) -> str:
    """The schedule's message into the queue of its session, which begins with it where there is none."""
    incoming = Incoming(
        key=key,
        message_id=opening.message_id,
        actor=opening.actor,
        message=opening.message,
        agent=opening.agent,
        tenant=opening.tenant,
        session_id=session_id,
        received_at=now,
    )
    accepted = inbox.accept(db, incoming, runner, claim=False)
    db.execute(SQL["title_session"], (opening.title, accepted.session_id))
    return accepted.session_id


def _audit(
    db: Connection,
    at: float,
    kind: str,
    actor: str,
    record: ScheduleRecord,
    more: Json,
    session_id: str = "",
) -> None:
    body = {**about(record), **more}
    append_audit(db, at, kind, actor, body, session_id=session_id or record.session_id)
