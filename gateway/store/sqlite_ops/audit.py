"""The record: append-only, each line bound to the one before by SHA-256."""

from __future__ import annotations

import hashlib
from sqlite3 import Connection

from gateway.messages import Json, canonical_json
from gateway.store.rows import AuditLine
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
    previous, expected = "", 1
    while True:
        rows = db.execute(SQL["audit_from"], (expected - 1, 500)).fetchall()
        for row in rows:
            if row[0] != expected or row[8] != previous or row[9] != _hash(row[:9]):
                return expected
            previous, expected = row[9], expected + 1
        if len(rows) < 500:
            return None


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
