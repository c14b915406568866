"""Notes, and what the built-in tools post: where their calls come from, and each call's rows once. Runs
inside the writer's transaction; looking is for the reader's connection."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection

from gateway.messages import Json, ThreadKey
from gateway.store.rows import Outgoing
from gateway.store.sqlite_ops.codec import SQL, loads, read_actor, turn_place
from gateway.store.sqlite_ops.outbox import enqueue_later
from gateway.tools.ports import Note, NoteOwner, Origin


def origin(db: Connection, turn_id: str) -> Origin | None:
    """See Store.origin."""
    session_id, number = turn_place(turn_id)
    row = db.execute(SQL["origin"], (session_id, number)).fetchone()
    if row is None:
        return None
    return Origin(session_id=row[6], key=ThreadKey(*row[:4]), requester=read_actor(row[4]), tenant=row[5])


def notes(db: Connection, owner: NoteOwner) -> list[Note]:
    """See Store.notes."""
    rows = db.execute(SQL["notes_of"], _place(owner))
    return [Note(key=key, text=text, place=place, at=at) for key, text, place, at in rows]


def put(db: Connection, owner: NoteOwner, note: Note, most: int) -> bool:
    """See Store.put_note."""
    others = db.execute(SQL["count_other_notes"], (*_place(owner), note.key)).fetchone()[0]
    if others >= most:
        return False
    db.execute(SQL["put_note"], (*_place(owner), note.key, note.text, note.place, note.at))
    return True


def forget(db: Connection, owner: NoteOwner, key: str) -> int:
    """See Store.forget_notes."""
    if key:
        return db.execute(SQL["forget_note"], (*_place(owner), key)).rowcount
    return db.execute(SQL["forget_notes"], _place(owner)).rowcount


def _place(owner: NoteOwner) -> tuple[str, ...]:
    return owner.kind, owner.channel, owner.workspace, owner.name, owner.thread, owner.tenant


def post_once(db: Connection, rows: Sequence[Outgoing], once: str, now: float) -> bool:
    """See Store.post_once. All rows are added in one transaction, so that the first one speaks for all."""
    if db.execute(SQL["posted_once"], (once,)).fetchone() is not None:
        return False
    first = enqueue_later(db, rows, now)
    db.execute(SQL["mark_once"], (once, first))
    return True


def posted_file(db: Connection, session_id: str, delivery_id: int) -> Json | None:
    """See Store.posted_file."""
    row = db.execute(SQL["posted_file"], (delivery_id, session_id)).fetchone()
    file = loads(row[0]).get("file") if row is not None else None
    return file if isinstance(file, dict) else None
