"""The record: append-only, each line bound to the one before by SHA-256."""

from __future__ import annotations

import hashlib
from sqlite3 import Connection

from gateway.messages import Json, canonical_json
from gateway.store.rows import AuditLine, Checked
from gateway.store.sqlite_ops.codec import SQL, Row, loads


def append_audit(
    db: Connection,
    at: float,
    kind: str,
    actor: str,
    body: Json,
    *,
    session_id: str = "",
    pending_id: str = "",
    args_hash: str = "",
) -> None:
    """Write one line."""
    last = db.execute(SQL["last_audit"]).fetchone()
    seq, previous = (last[0] + 1, last[1]) if last else (1, "")
    text = canonical_json(body)
    # As the column gives it back: a whole number would be spelled, and so hashed, differently.
    line = (seq, float(at), kind, actor, session_id, pending_id, args_hash, text, previous)
    db.execute(SQL["insert_audit"], (*line, _hash(line)))


def _hash(line: Row) -> str:
    return hashlib.sha256(canonical_json(list(line)).encode()).hexdigest()


def audit_lines(db: Connection, limit: int, before: int | None) -> list[AuditLine]:
    """See Store.audit_lines."""
    rows = db.execute(SQL["audit_lines"], (before if before is not None else 2**62, limit))
    return [_line(row) for row in rows]


def verify_audit(db: Connection) -> int | None:
    """See Store.verify_audit."""
    checked = Checked(seq=0, hash="", bad=None, ended=False)
    while not checked.ended and checked.bad is None:
        checked = check(db, checked.seq, checked.hash, 500)
    return checked.bad


def check(db: Connection, seq: int, previous: str, limit: int) -> Checked:
    """See Store.check_audit."""
    rows = db.execute(SQL["audit_from"], (seq, limit)).fetchall()
    for row in rows:
        if row[0] != seq + 1 or row[8] != previous or row[9] != _hash(row[:9]):
            return Checked(seq=seq, hash=previous, bad=seq + 1, ended=False)
        seq, previous = row[0], row[9]
    return Checked(seq=seq, hash=previous, bad=None, ended=len(rows) < limit)


def audit_after(db: Connection, seq: int, limit: int) -> list[AuditLine]:
    """See Store.audit_after."""
    return [_line(row) for row in db.execute(SQL["audit_from"], (seq, limit))]


def _line(row: Row) -> AuditLine:
    seq, at, kind, actor, session_id, pending_id, args_hash, body, previous, digest = row
    return AuditLine(
        seq=seq,
        at=at,
        kind=kind,
        actor=actor,
        session_id=session_id,
        pending_id=pending_id,
        args_hash=args_hash,
        body=loads(body),
        previous=previous,
        hash=digest,
    )
