"""What the clock does about open requests. Runs inside the writer's transaction."""

from __future__ import annotations

from sqlite3 import Connection

from gateway.approvals import Pending, escalated
from gateway.messages import Json
from gateway.patience import due_times
from gateway.store.rows import Firing, PendingRecord
from gateway.store.sqlite_ops import outbox
from gateway.store.sqlite_ops.audit import append_audit
from gateway.store.sqlite_ops.codec import SQL, dumps, pending_record

CLOCK = "clock"  # the actor in the record
_KINDS = {"remind": "reminded", "escalate": "escalated"}


def insert_timers(db: Connection, pending: Pending, now: float) -> None:
    """The timers of a request that is asked now."""
    due: list[tuple[str, float]] = []
    due += due_times(pending.remind, pending.escalate, pending.quiet, now, pending.expires_at)
    if pending.expires_at is not None:
        due.append(("expiry", pending.expires_at))
    for kind, at in due:
        db.execute(SQL["insert_timer"], (kind, pending.pending_id, at, "{}"))


def put_off(db: Connection, timer_id: int, at: float) -> None:
    """See Store.put_off_timer."""
    db.execute(SQL["put_off_timer"], (at, timer_id))


def fire(db: Connection, firing: Firing) -> bool:
    """See Store.fire."""
    still_open = {row[0] for row in db.execute(SQL["open_on_card"], (firing.timer.subject,))}
    if still_open and still_open != set(firing.pending_ids):
        return False
    records = _decidable(db, firing)
    if db.execute(SQL["timer_fired"], (firing.timer.id,)).rowcount == 0 or not records:
        return False
    values = {"kind": firing.timer.kind, "at": firing.at, "card": records[0].pending.card_id}
    db.execute(SQL["timers_of_card_done"], values)
    for record in records:
        if firing.step is not None:
            values = {"id": record.id, "body": dumps(escalated(record.pending, firing.step)), "at": firing.at}
            db.execute(SQL["change_pending"], values)
        _audit(db, record, firing)
    redraws = outbox.redraws_of(db, records[0].id) if firing.step is not None else []
    outbox.enqueue_later(db, (*redraws, *firing.outgoing), firing.at)
    return True


def _decidable(db: Connection, firing: Firing) -> list[PendingRecord]:
    """The requests that can still be decided of the card that the timer is about."""
    where = (
        " WHERE p.card = (SELECT card FROM pendings WHERE id = :id) AND p.state = 'open'"
        " AND p.generation = s.generation AND (p.expires_at IS NULL OR p.expires_at > :at)"
    )
    values = {"id": firing.timer.subject, "at": firing.at}
    return [pending_record(row) for row in db.execute(SQL["pending"] + where, values)]


def _audit(db: Connection, record: PendingRecord, firing: Firing) -> None:
    body: Json = {"tool": record.pending.tool}
    if firing.step is not None:
        body |= {"approvers": list(firing.step.approvers), "notify": list(firing.step.notify)}
    append_audit(
        db,
        firing.at,
        _KINDS[firing.timer.kind],
        CLOCK,
        body,
        session_id=record.session_id,
        pending_id=record.id,
        args_hash=record.pending.args_hash,
    )
