"""Letting people in. Runs inside the writer's transaction.

A code that waits is a timer of the kind `pairing`; a person who was let in is a grant of the kind
`talk`, with the id as its tool.
"""

from __future__ import annotations

from sqlite3 import Connection

from gateway.messages import Actor, ThreadKey, new_id
from gateway.store.sqlite_ops.audit import append_audit
from gateway.store.sqlite_ops.codec import SQL, actor_text, dumps, loads


def is_admitted(db: Connection, actor: Actor) -> bool:
    """See Store.is_admitted."""
    return db.execute(SQL["is_admitted"], (actor_text(actor),)).fetchone() is not None


def pairing_code(
    db: Connection, actor: Actor, name: str, key: ThreadKey, code: str, now: float, seconds: float, most: int
) -> str | None:
    """See Store.pairing_code."""
    waiting = db.execute(SQL["open_pairings"], (now,)).fetchall()
    for known, body in waiting:
        if loads(body)["actor"] == list(actor):
            return str(known)
    if len(waiting) >= most:
        return None
    body = dumps({"actor": list(actor), "name": name, "key": list(key)})
    db.execute(SQL["insert_timer"], ("pairing", code, now + seconds, body))
    return code


def admit(db: Connection, code: str, by: Actor, now: float) -> tuple[Actor, str, ThreadKey] | None:
    """See Store.admit."""
    for known, body in db.execute(SQL["open_pairings"], (now,)).fetchall():
        if known != code:
            continue
        stored = loads(body)
        actor, key = Actor(*stored["actor"]), ThreadKey(*stored["key"])
        row = (new_id("g"), "talk", "", "", actor_text(actor), "{}", "", str(by), now)
        db.execute(SQL["insert_grant"], row)
        db.execute(SQL["timers_of_subject_done"], (code,))
        append_audit(db, now, "admitted", str(by), {"person": str(actor), "name": stored["name"]})
        return actor, str(stored["name"]), key
    return None
