"""Reading: sessions, turns, logs, pendings, timers. For the reader's connection."""

from __future__ import annotations

from sqlite3 import Connection

from gateway.messages import Actor, Message, ThreadKey, decode_messages
from gateway.store.rows import CallRecord, Notice, PendingRecord, SessionView, Timer, TurnView
from gateway.store.sqlite_ops.codec import (
    SQL,
    Row,
    actor_text,
    call_record,
    loads,
    pending_record,
    read_spent,
    turn_place,
)
from gateway.store.sqlite_ops.codec import turn_id as turn_id_of
from gateway.store.sqlite_ops.inbox import QUEUED


def session(db: Connection, session_id: str) -> SessionView | None:
    """See Store.session."""
    row = db.execute(SQL["session_view"] + " WHERE s.id = ?", (session_id,)).fetchone()
    return None if row is None else _session(row)


def session_of(db: Connection, key: ThreadKey) -> SessionView | None:
    """See Store.session_of."""
    row = db.execute(SQL["thread_session"], key).fetchone()
    return None if row is None else session(db, row[0])


def own_thread(db: Connection, key: ThreadKey, actor: Actor) -> ThreadKey | None:
    """See Store.own_thread."""
    for thread, session_id in db.execute(SQL["newest_threads"], key[:3]).fetchall():
        last = db.execute(SQL["last_requester"], (session_id,)).fetchone()
        if last is not None and last[0] == actor_text(actor):
            return key._replace(thread=thread)
    return None


def seen(db: Connection, channel: str, limit: int) -> list[tuple[ThreadKey, str]]:
    """See Store.seen. One look-up in the index for each conversation, however much was said there."""
    found: list[tuple[ThreadKey, str]] = []
    place = ("", "")
    while len(found) < limit:
        row = db.execute(SQL["next_conversation"], (channel, *place)).fetchone()
        if row is None:
            break
        place = (row[0], row[1])
        ids = [r[0] for r in db.execute(SQL["last_ids"], (channel, *place)) if r[0].isdecimal()]
        if ids:
            found.append((ThreadKey(channel, *place, ""), max(ids, key=int)))
    return found


def sessions(db: Connection, limit: int) -> list[SessionView]:
    """See Store.sessions."""
    tail = " WHERE s.parent = '' ORDER BY s.updated_at DESC LIMIT ?"
    rows = db.execute(SQL["session_view"] + tail, (limit,))
    return [_session(row) for row in rows]


def _session(row: Row) -> SessionView:
    return SessionView(
        id=row[0],
        key=ThreadKey(*row[1:5]),
        agent=row[5],
        status=row[6],
        turn_id=row[7],
        title=row[8],
        log_length=row[9],
        created_at=row[10],
        updated_at=row[11],
        queued=row[12],
        open_pendings=row[13],
        parent=row[14],
        root=row[15],
        model=row[16],
    )


def log(db: Connection, session_id: str, start: int, limit: int) -> list[Message]:
    """See Store.log."""
    return decode_messages([row[0] for row in db.execute(SQL["log"], (session_id, start, limit))])


def notices(db: Connection, session_id: str) -> list[Notice]:
    """See Store.notices."""
    found = []
    for body, at, after, id_ in db.execute(SQL["notices"], (session_id,)):
        payload = loads(body)
        name = payload["file"]["name"] if "file" in payload else ""
        found.append(Notice(text=payload["text"], at=at, after=after, id=id_, file=name))
    return found


def queued_texts(db: Connection, session_id: str) -> list[tuple[str, str]]:
    """See Store.queued_texts."""
    rows = db.execute(SQL["all_queued"], (session_id,))
    return [(row[3], QUEUED.decode(row[4]).message.text) for row in rows]


def turn_of_message(db: Connection, session_id: str, message_id: str) -> str | None:
    """See Store.turn_of_message."""
    values = {"session": session_id, "message": message_id}
    row = db.execute(SQL["turn_of_message"], values).fetchone()
    return None if row is None else turn_id_of(session_id, row[0])


def turn(db: Connection, turn_id: str) -> TurnView | None:
    """See Store.turn."""
    where = " WHERE t.session_id = ? AND t.number = ?"
    row = db.execute(SQL["turn_view"] + where, turn_place(turn_id)).fetchone()
    return None if row is None else _turn(row)


def turns_after(db: Connection, session_id: str, number: int, limit: int) -> list[TurnView]:
    """See Store.turns_after."""
    rows = db.execute(
        SQL["turn_view"] + " WHERE t.session_id = ? AND t.number >= ? ORDER BY t.number LIMIT ?",
        (session_id, number, limit),
    )
    return [_turn(row) for row in rows]


def _turn(row: Row) -> TurnView:
    return TurnView(
        id=turn_id_of(row[0], row[1]),
        session_id=row[0],
        number=row[1],
        trigger=row[2],
        state=row[3],
        outcome=row[4],
        detail=row[5],
        text=row[6],
        agent=row[7],
        events=row[8],
        spent=read_spent(row[9]),
        usage=loads(row[10]),
        first_seq=row[11],
        started_at=row[12],
        ended_at=row[13],
    )


def calls(db: Connection, session_id: str) -> list[CallRecord]:
    """See Store.calls."""
    return [call_record(row) for row in db.execute(SQL["calls_of_session"], (session_id,))]


def pendings(
    db: Connection,
    session_id: str,
    key: ThreadKey | None,
    code: str,
    card: str,
    open_only: bool,
    limit: int,
) -> list[PendingRecord]:
    """See Store.pendings."""
    where, values = ["1 = 1"], list[object]()
    if open_only:
        where.append("p.state = 'open'")
    if session_id:
        where.append("(p.root = ? OR p.session_id = ?)")
        values += (session_id, session_id)
    if code:
        where.append("p.code = ?")
        values.append(code)
    if card:
        where.append("p.card = ?")
        values.append(card)
    if key is not None:
        where.append("s.channel = ? AND s.workspace = ? AND s.conversation = ? AND s.thread = ?")
        values += key
    tail = f" WHERE {' AND '.join(where)} ORDER BY p.requested_at, p.id LIMIT ?"
    records = [pending_record(row) for row in db.execute(SQL["pending"] + tail, (*values, limit))]
    return sorted(records, key=lambda record: (record.requested_at, record.pending.place))


def full_result(db: Connection, session_id: str, call_id: str) -> str | None:
    """See Store.full_result."""
    row = db.execute(SQL["full_result"], (session_id, call_id)).fetchone()
    return None if row is None else row[0]


def due_timers(db: Connection, now: float, limit: int) -> list[Timer]:
    """See Store.due_timers."""
    rows = db.execute(SQL["due_timers"], (now, limit))
    return [Timer(id=r[0], kind=r[1], subject=r[2], due_at=r[3], body=loads(r[4])) for r in rows]


def first(db: Connection, statement: str) -> float | None:
    """The one number that a statement gives."""
    value: float | None = db.execute(SQL[statement]).fetchone()[0]
    return value
