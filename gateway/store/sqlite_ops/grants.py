"""What people have allowed beyond one call, and taking it back. Runs inside the writer's transaction;
looking is for the reader's connection."""

from __future__ import annotations

from sqlite3 import Connection

import msgspec

from gateway.approvals import Pending
from gateway.messages import Actor, ThreadKey, call_hash
from gateway.store.rows import GrantRecord
from gateway.store.sqlite_ops.audit import append_audit
from gateway.store.sqlite_ops.codec import SQL, Row, grant

_PENDING = msgspec.json.Decoder(Pending)


def live(db: Connection, now: float, agent: str, session_id: str, limit: int) -> list[GrantRecord]:
    """See Store.grants."""
    statement = SQL["grants_here"] if agent else SQL["live_grants"]
    values: dict[str, object] = {"now": now, "limit": limit}
    if agent:
        values |= {"agent": agent, "session": session_id}
    return [_record(row) for row in db.execute(statement, values)]


def one(db: Connection, grant_id: str) -> GrantRecord | None:
    """See Store.grant."""
    row = db.execute(SQL["grant"], (grant_id,)).fetchone()
    return None if row is None else _record(row)


def revoke(db: Connection, grant_id: str, by: str, actor: Actor, now: float) -> bool:
    """See Store.revoke."""
    record = one(db, grant_id)
    if record is None or db.execute(SQL["revoke_grant"], (now, grant_id)).rowcount == 0:
        return False
    given = record.grant
    append_audit(
        db,
        now,
        "revoked",
        str(actor),
        {"grant": grant_id, "scope": given.kind, "tool": given.tool, "by": by},
        session_id=given.session_id,
        pending_id=record.pending_id,
        args_hash=call_hash(given.tool, given.args),
    )
    return True


def _record(row: Row) -> GrantRecord:
    """From the columns of the statements about grants."""
    code, body, by, pending_id = row[9:13]
    given, pending = grant(row[:9]), _PENDING.decode(body)
    # What only those who decide may see is no more public once it is granted.
    hidden = tuple(given.args) if pending.reveal == "approvers" else pending.secret
    return GrantRecord(
        grant=given,
        code=code,
        secret=hidden,
        key=ThreadKey(*row[13:17]),
        by=by,
        pending_id=pending_id,
    )
