"""What people say about what waits: decisions, /stop, /new. Runs inside the writer's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection

import msgspec

from gateway.approvals import (
    CANCELLED,
    CLOSED_OUTCOME,
    NEWER_MESSAGE,
    Answer,
    Approve,
    Deny,
    Expire,
    Resolution,
    Supersede,
    next_state,
)
from gateway.messages import Actor, Json, ThreadKey, call_hash, new_id, user
from gateway.store.rows import (
    FEEDBACK,
    Accepted,
    Given,
    Incoming,
    PendingRecord,
    Resolved,
    StopDone,
    Verdict,
)
from gateway.store.sqlite_ops import outbox
from gateway.store.sqlite_ops.audit import append_audit
from gateway.store.sqlite_ops.codec import SQL, dumps, pending_record
from gateway.store.sqlite_ops.inbox import insert_session, queue_feedback, used

NOBODY = Actor("", "", "")


def pending(db: Connection, pending_id: str) -> PendingRecord | None:
    """See Store.pending."""
    row = db.execute(SQL["pending"] + " WHERE p.id = ?", (pending_id,)).fetchone()
    return None if row is None else pending_record(row)


def resolve(db: Connection, verdict: Verdict) -> Resolved:
    """See Store.resolve."""
    record = pending(db, verdict.pending_id)
    if record is None:
        return Resolved(outcome="unknown", record=None)
    state = next_state(record.pending.kind, verdict.resolution)
    if state is None:
        return Resolved(outcome="invalid", record=record)
    votes = _votes(record, verdict)
    missing = record.pending.quorum - len(votes) if isinstance(verdict.resolution, Approve) else 0
    if missing > 0 and record.state == "open":
        counted = _count_vote(db, record, votes, missing, verdict)
        if counted is not None:
            return counted
    elif _decide(db, record, state, votes, verdict):
        return _decided(db, record, verdict)
    return _too_late(db, record, verdict)


def choose(db: Connection, pending_id: str, before: Sequence[str], after: Sequence[str], at: float) -> bool:
    """See Store.choose."""
    values = {"votes": dumps(list(after)), "before": dumps(list(before)), "id": pending_id, "at": at}
    changed = db.execute(SQL["vote"], values).rowcount == 1
    if changed:
        outbox.enqueue_later(db, outbox.redraws_of(db, pending_id), at)
    return changed


def _votes(record: PendingRecord, verdict: Verdict) -> tuple[str, ...]:
    if not isinstance(verdict.resolution, Approve):
        return record.votes
    return tuple(dict.fromkeys((*record.votes, str(verdict.actor))))


def _count_vote(
    db: Connection,
    record: PendingRecord,
    votes: Sequence[str],
    missing: int,
    verdict: Verdict,
) -> Resolved | None:
    values = {
        "votes": dumps(list(votes)),
        "before": dumps(list(record.votes)),
        "id": record.id,
        "at": verdict.at,
    }
    if db.execute(SQL["vote"], values).rowcount == 0:
        return None
    if len(votes) > len(record.votes):
        _audit(db, record, verdict, "agreed", {"by": verdict.by, "missing": missing})
        outbox.enqueue_later(db, outbox.redraws_of(db, record.id), verdict.at)
    return Resolved(
        outcome="recorded",
        record=pending(db, record.id),
        still_open=_still_open(db, record.session_id),
        votes_missing=missing,
    )


def _decide(
    db: Connection, record: PendingRecord, state: str, votes: Sequence[str], verdict: Verdict
) -> bool:
    values = {
        "state": state,
        "decision": _encoded(verdict.resolution),
        "by": verdict.by,
        "actor": str(verdict.actor),
        "at": verdict.at,
        "votes": dumps(list(votes)),
        "id": record.id,
        "clock": isinstance(verdict.resolution, Expire),
    }
    return db.execute(SQL["decide"], values).rowcount == 1


def _decided(db: Connection, record: PendingRecord, verdict: Verdict) -> Resolved:
    """Everything that follows from a decision, in the same transaction."""
    db.execute(SQL["timers_of_subject_done"], (record.id,))
    _audit_edit(db, record, verdict)
    _audit(db, record, verdict, _kind(verdict.resolution), _audit_body(record, verdict))
    _grant(db, record, verdict)
    if isinstance(verdict.resolution, Deny):
        if verdict.stops_batch:
            by = Supersede(by="denial")
            _supersede_open(db, record.session_id, by, verdict.by, verdict.actor, verdict.at)
            _close_below(db, record.session_id, by, verdict.by, verdict.actor, verdict.at)
        if verdict.resolution.feedback and verdict.stops_batch:  # else the result carries it
            text = user(verdict.resolution.feedback, author=verdict.by)
            identity = f"{record.id}{FEEDBACK}"
            queue_feedback(db, record.session_id, record.key, text, verdict.actor, identity, verdict.at)
    if verdict.consumes is not None:
        key, message_id = verdict.consumes
        used(db, key, message_id)
    if not verdict.more:
        db.execute(SQL["batch_has_decisions"], (verdict.at, record.session_id))
    outbox.enqueue_later(db, (*outbox.redraws_of(db, record.id), *verdict.outgoing), verdict.at)
    still_open = _still_open(db, record.session_id)
    return Resolved(
        outcome="recorded" if still_open else "resumed", record=pending(db, record.id), still_open=still_open
    )


def _too_late(db: Connection, record: PendingRecord, verdict: Verdict) -> Resolved:
    """The update found no row: the row says why. An open one has run out or lost its meaning, and
    is closed accordingly before the answer is given."""
    now = pending(db, record.id) or record
    if now.state == "open":
        if now.pending.expires_at is not None and now.pending.expires_at <= verdict.at:
            clock = Verdict(
                pending_id=now.id, resolution=Expire(), actor=NOBODY, by="the clock", at=verdict.at
            )
            if _decide(db, now, "expired", now.votes, clock):
                _decided(db, now, clock)
        elif not isinstance(verdict.resolution, Expire):
            how = Supersede(by="/stop")
            values = (_encoded(how), "/stop", str(NOBODY), verdict.at, now.id)
            rows = db.execute(SQL["supersede_one"], values).fetchall()
            _superseded(db, rows, how, "/stop", NOBODY, verdict.at)
        now = pending(db, record.id) or now
    outcome = "unknown" if now.state == "open" else CLOSED_OUTCOME[now.state]
    return Resolved(outcome=outcome, record=now, still_open=_still_open(db, record.session_id))


def _still_open(db: Connection, session_id: str) -> int:
    return len(db.execute(SQL["open_pendings"], (session_id,)).fetchall())


def _grant(db: Connection, record: PendingRecord, verdict: Verdict) -> None:
    resolution = verdict.resolution
    if not isinstance(resolution, Approve) or resolution.scope == "once":
        return
    args = resolution.edited_args if resolution.edited_args is not None else record.pending.args
    session = record.home if resolution.scope == "session" else ""
    grant_id = new_id("g")
    db.execute(
        SQL["insert_grant"],
        (
            grant_id,
            resolution.scope,
            record.agent,
            session,
            record.pending.tool,
            dumps(args),
            record.id,
            str(verdict.actor),
            verdict.at,
        ),
    )
    body: Json = {"grant": grant_id, "scope": resolution.scope, "tool": record.pending.tool}
    _audit(db, record, verdict, "granted", body, call_hash(record.pending.tool, args))


_KINDS: dict[type[Resolution], str] = {
    Approve: "approved",
    Deny: "denied",
    Answer: "answered",
    Expire: "expired",
    Supersede: "superseded",
}


def _kind(resolution: Resolution) -> str:
    """How the record calls it. What somebody took back was refused by nobody."""
    cancelled = isinstance(resolution, Supersede) and resolution.by == CANCELLED
    return CANCELLED if cancelled else _KINDS[type(resolution)]


def _audit_edit(db: Connection, record: PendingRecord, verdict: Verdict) -> None:
    """A line about the changes themselves: which arguments, never their values."""
    resolution, proposed = verdict.resolution, record.pending.args
    if not isinstance(resolution, Approve) or resolution.edited_args is None:
        return
    edited = resolution.edited_args
    changed = [n for n in sorted(proposed.keys() | edited.keys()) if proposed.get(n) != edited.get(n)]
    digest = call_hash(record.pending.tool, edited)
    body: Json = {"tool": record.pending.tool, "by": verdict.by, "changed": changed}
    _audit(db, record, verdict, "edited", {**body, "proposed_hash": record.pending.args_hash}, digest)


def _audit_body(record: PendingRecord, verdict: Verdict) -> Json:
    body: Json = {"tool": record.pending.tool, "by": verdict.by, "via": verdict.via}
    resolution = verdict.resolution
    if isinstance(resolution, Approve):
        body["scope"] = resolution.scope
        if resolution.edited_args is not None:
            body["executed_hash"] = call_hash(record.pending.tool, resolution.edited_args)
    if isinstance(resolution, Deny) and resolution.feedback:
        body["feedback"] = resolution.feedback
    return body


def _audit(
    db: Connection, record: PendingRecord, verdict: Verdict, kind: str, body: Json, args_hash: str = ""
) -> None:
    append_audit(
        db,
        verdict.at,
        kind,
        str(verdict.actor),
        body,
        session_id=record.session_id,
        pending_id=record.id,
        args_hash=args_hash or record.pending.args_hash,
    )


def _encoded(resolution: Resolution) -> str:
    return dumps(resolution)


def _supersede_open(
    db: Connection, session_id: str, how: Supersede, by: str, actor: Actor, at: float
) -> list[str]:
    """Close every open pending of a session, with timers, record and cards."""
    rows = db.execute(SQL["supersede_batch"], (_encoded(how), by, str(actor), at, session_id)).fetchall()
    ids = _superseded(db, rows, how, by, actor, at)
    db.execute(SQL["batch_has_decisions"], (at, session_id))
    return ids


def supersede_open(db: Connection, session_id: str, cause: str, at: float) -> None:
    """Nobody's word: whatever is still open has lost its meaning."""
    _supersede_open(db, session_id, Supersede(by=cause), cause, NOBODY, at)


def close_calls(db: Connection, session_id: str, call_ids: Sequence[str], at: float) -> None:
    """These calls are answered: subagents that still work for them end, and all below them."""
    row = db.execute(SQL["has_children"], (session_id,)).fetchone()
    for call_id in call_ids if row is not None else ():
        child = db.execute(SQL["subagent_of_call"], (row[0], session_id, call_id)).fetchone()
        if child is not None:
            how = Supersede(by="the end of its caller's step")
            _close_child(db, child[0], how, how.by, NOBODY, at)


def _close_below(
    db: Connection, session_id: str, how: Supersede, by: str, actor: Actor, at: float
) -> list[str]:
    """End everything that works below a session: what runs is asked to stop, what is open is closed, what
    waits is dropped. The ids of what was closed."""
    children = [row[0] for row in db.execute(SQL["children_to_close"], (session_id,)).fetchall()]
    return [pending_id for child in children for pending_id in _close_child(db, child, how, by, actor, at)]


def _close_child(db: Connection, child: str, how: Supersede, by: str, actor: Actor, at: float) -> list[str]:
    closed = _supersede_open(db, child, how, by, actor, at)
    db.execute(SQL["ask_to_stop"], (how.by if by == how.by else f"{how.by} by {by}", at, child))
    db.execute(SQL["drop_queued"], (child,))
    return closed + _close_below(db, child, how, by, actor, at)


def _superseded(
    db: Connection, rows: Sequence[tuple[str]], how: Supersede, by: str, actor: Actor, at: float
) -> list[str]:
    ids = [row[0] for row in rows]
    for pending_id in ids:
        record = pending(db, pending_id)
        if record is None:
            continue
        db.execute(SQL["timers_of_subject_done"], (pending_id,))
        verdict = Verdict(pending_id=pending_id, resolution=how, actor=actor, by=by, at=at)
        _audit(db, record, verdict, "superseded", {"tool": record.pending.tool, "by": by, "cause": how.by})
        outbox.enqueue_later(db, outbox.redraws_of(db, pending_id), at)
    return ids


def stop(
    db: Connection,
    key: ThreadKey,
    session_id: str,
    by: str,
    actor: Actor,
    cause: str,
    now: float,
    turn_id: str = "",
) -> StopDone:
    """See Store.stop. `cause`: /stop, /new, or a newer message."""
    if not session_id:
        row = db.execute(SQL["thread_session"], key).fetchone()
        if row is None:
            return StopDone(session_id="")
        session_id = row[0]
    if turn_id:
        head = db.execute(SQL["claim_head"], (session_id,)).fetchone()
        if head is None or head[12] != turn_id:
            return StopDone(session_id=session_id)
    how = Supersede(by=cause)
    closed = _supersede_open(db, session_id, how, by, actor, now)
    closed += _close_below(db, session_id, how, by, actor, now)
    asked = db.execute(SQL["ask_to_stop"], (f"{cause} by {by}", now, session_id)).fetchone()
    queued = db.execute(SQL["queued_count"], (session_id,)).fetchone()[0]
    records = [pending(db, pending_id) for pending_id in closed]
    return StopDone(
        session_id=session_id,
        running=asked is not None and (asked[0] == "running" or not closed),
        closed=tuple(r for r in records if r is not None),
        queued=queued,
    )


def superseding(db: Connection, incoming: Incoming, accepted: Accepted) -> Accepted:
    """A newer message of an agent whose open requests it closes. What became of a cut-off call is
    never settled by a message."""
    session_id = accepted.session_id
    if accepted.outcome != "queued" or not accepted.waiting_for or not incoming.supersedes:
        return accepted
    agent = db.execute(SQL["session_head"], (session_id,)).fetchone()[1]
    if agent not in incoming.supersedes or db.execute(SQL["unknown_waits"], (session_id,)).fetchone():
        return accepted
    done = stop(
        db,
        incoming.key,
        session_id,
        incoming.by,
        incoming.actor,
        NEWER_MESSAGE,
        incoming.received_at,
    )
    return msgspec.structs.replace(accepted, waiting_for=(), closed=len(done.closed))


def give(db: Connection, given: Given) -> PendingRecord | None:
    """See Store.give."""
    record = pending(db, given.pending_id)
    if record is None:
        return None
    changed = msgspec.structs.replace(record.pending, approvers=given.approvers)
    values = {"id": record.id, "body": dumps(changed), "at": given.at}
    if db.execute(SQL["change_pending"], values).rowcount == 0:
        return None
    body: Json = {"tool": changed.tool, "by": given.by, "via": given.via}
    body |= {"before": list(record.pending.approvers), "after": list(given.approvers)}
    append_audit(
        db,
        given.at,
        "reassigned",
        str(given.actor),
        body,
        session_id=record.session_id,
        pending_id=record.id,
        args_hash=changed.args_hash,
    )
    outbox.enqueue_later(db, outbox.redraws_of(db, record.id), given.at)
    return pending(db, record.id)


def set_model(db: Connection, session_id: str, model: str, by: str, actor: Actor, now: float) -> bool:
    """See Store.set_model."""
    if db.execute(SQL["set_session_model"], (model, session_id)).rowcount == 0:
        return False
    append_audit(db, now, "model", str(actor), {"by": by, "model": model}, session_id=session_id)
    return True


def fresh_session(
    db: Connection, key: ThreadKey, agent: str, tenant: str, by: str, actor: Actor, now: float
) -> StopDone:
    """See Store.fresh_session."""
    stopped = stop(db, key, "", by, actor, "/new", now)
    new = new_id("s")
    insert_session(db, new, key, agent, tenant, now)
    schedules = 0
    if stopped.session_id:
        db.execute(SQL["move_queued"], (new, stopped.session_id))
        moved = db.execute(SQL["move_schedules"], {"new": new, "old": stopped.session_id})
        schedules = moved.rowcount
    append_audit(db, now, "new_session", str(actor), {"by": by, "after": stopped.session_id}, session_id=new)
    return StopDone(
        session_id=stopped.session_id,
        running=stopped.running,
        closed=stopped.closed,
        queued=stopped.queued,
        new_session_id=new,
        schedules=schedules,
    )
