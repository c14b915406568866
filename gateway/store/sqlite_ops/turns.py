"""One running turn per session: claims, the tool journal, ends. Runs inside the writer's
transaction; every write names runner and epoch first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sqlite3 import Connection

import msgspec

from gateway.approvals import Pending
from gateway.errors import LeaseLost
from gateway.journal import CallRow
from gateway.messages import Json, Message, ThreadKey, ToolResult, decode_message, encode_message
from gateway.store.base import LEASE_SECONDS
from gateway.store.rows import (
    CallRecord,
    Claim,
    Delivery,
    Ended,
    Have,
    Lease,
    Outgoing,
    Park,
    PendingRecord,
    TurnEnd,
)
from gateway.store.sqlite_ops import outbox, people, timing
from gateway.store.sqlite_ops.audit import append_audit
from gateway.store.sqlite_ops.codec import (
    SQL,
    Row,
    call_record,
    dumps,
    grant,
    kin,
    pending_record,
    read_actor,
    read_spent,
    turn_place,
)
from gateway.store.sqlite_ops.codec import turn_id as turn_id_of
from gateway.store.sqlite_ops.inbox import begin_turn, take_all_queued, take_queued, with_log


def claim(db: Connection, session_id: str, runner: str, now: float, have: Have | None = None) -> Claim | None:
    """See Store.claim."""
    work = _claim(db, session_id, runner, now)
    return None if work is None else with_log(db, work, have)


def _claim(db: Connection, session_id: str, runner: str, now: float) -> Claim | None:
    row = db.execute(SQL["claim_head"], (session_id,)).fetchone()
    if row is None:
        return None
    status, lease_until = row[7], row[10]
    if status == "running" and lease_until <= now:
        return _take_over(db, row, runner, now)
    if status == "ready":
        return _go_on(db, row, runner, now)
    if status == "idle":
        taken = take_queued(db, session_id)
        if taken is not None:
            message_id, queued = taken
            head = (session_id, row[5], row[6], status, 0, row[8], row[13], row[14], row[20])
            key = ThreadKey(*row[1:5])
            begun = begin_turn(
                db, head, key, queued.message, queued.actor, message_id, runner, now, root=row[16]
            )
            return msgspec.structs.replace(begun, **kin(row))
    return None


def _take_over(db: Connection, row: Row, runner: str, now: float) -> Claim:
    """A turn whose runner died goes on as the same turn."""
    session_id, turn_id = row[0], row[12]
    db.execute(SQL["claim_session"], (runner, now + LEASE_SECONDS, turn_id, 0, 0, now, "", session_id))
    return _existing(db, row, runner, turn_id, "recover", now)


def _go_on(db: Connection, row: Row, runner: str, now: float) -> Claim:
    """A stopped turn was decided about: a new turn answers, with what the old one had spent."""
    session_id, old_turn = row[0], row[12]
    number = row[13] + 1
    turn_id = turn_id_of(session_id, number)
    requester, message_id, spent = db.execute(SQL["turn_origin"], turn_place(old_turn)).fetchone()
    db.execute(SQL["claim_session"], (runner, now + LEASE_SECONDS, turn_id, 1, 0, now, "", session_id))
    db.execute(
        SQL["insert_turn"],
        (session_id, number, "resume", row[14], requester, message_id, spent, now),
    )
    return _existing(db, row, runner, turn_id, "resume", now)


def _existing(db: Connection, row: Row, runner: str, turn_id: str, kind: str, now: float) -> Claim:
    session_id, agent = row[0], row[5]
    requester, message_id, spent = db.execute(SQL["turn_origin"], turn_place(turn_id)).fetchone()
    calls, decisions = open_batch(db, session_id)
    return Claim(
        kind=kind,  # type: ignore[arg-type]
        lease=Lease(session_id=session_id, turn_id=turn_id, runner=runner, epoch=row[8] + 1),
        key=ThreadKey(*row[1:5]),
        agent=agent,
        tenant=row[6],
        requester=read_actor(requester),
        message_id=message_id,
        log_length=row[14],
        model=row[20],
        spent=read_spent(spent),
        calls=calls,
        decisions=decisions,
        grants=tuple(grant(r) for r in db.execute(SQL["grants_of"], (agent, row[16] or session_id, now))),
        cancel=row[11],
        told=tuple(r[0] for r in db.execute(SQL["outstanding_ids"], (session_id,))),
        **kin(row),
    )


def open_batch(db: Connection, session_id: str) -> tuple[tuple[CallRecord, ...], tuple[PendingRecord, ...]]:
    """The calls of the step that is not answered yet, and everything people were asked about it."""
    message = _last_entry(db, session_id)
    if message is None or message.role != "assistant" or not message.calls:
        return (), ()
    rows = [db.execute(SQL["open_batch_calls"], (session_id, c.id)).fetchone() for c in message.calls]
    # Oldest first, also where the clock stood still: a turn's id ends with its number.
    oldest_first = " ORDER BY length(p.turn_id), p.turn_id, p.requested_at, p.id"
    of_batch = " WHERE p.session_id = ? AND p.current = 1" + oldest_first
    decisions = db.execute(SQL["pending"] + of_batch, (session_id,))
    return (
        tuple(call_record(r) for r in rows if r is not None),
        tuple(pending_record(r) for r in decisions),
    )


def _last_entry(db: Connection, session_id: str) -> Message | None:
    """The last entry of the log that is not a compaction marker."""
    for _seq, body in db.execute(SQL["last_messages"], (session_id, 4)):
        message = decode_message(body)
        if message.kind not in ("summary", "trim"):
            return message
    return None


def hold(db: Connection, lease: Lease, appended: int, now: float) -> int:
    """Make room for entries of the log; the seq of the first. Raises LeaseLost."""
    row = db.execute(
        SQL["hold"], (appended, now, lease.session_id, lease.runner, lease.epoch, appended)
    ).fetchone()
    if row is None:
        raise LeaseLost(lease.session_id)
    first: int = row[0]
    return first


def _held(db: Connection, lease: Lease) -> None:
    if db.execute(SQL["held"], (lease.session_id, lease.runner, lease.epoch)).fetchone() is None:
        raise LeaseLost(lease.session_id)


def _append(db: Connection, lease: Lease, messages: Sequence[Message], first: int, now: float) -> None:
    for offset, message in enumerate(messages):
        row = (lease.session_id, first + offset, encode_message(message), now)
        db.execute(SQL["insert_message"], row)


def note_events(db: Connection, lease: Lease, events: str) -> None:
    """See Store.note_events."""
    _held(db, lease)
    db.execute(SQL["add_events"], (events, *turn_place(lease.turn_id)))


def reply(
    db: Connection, lease: Lease, message: Message, calls: Sequence[CallRow], events: str, now: float
) -> None:
    """See Store.reply."""
    seq = hold(db, lease, 1, now)
    _append(db, lease, [message], seq, now)
    for call in calls:
        result = None if call.result is None else dumps(call.result)
        db.execute(
            SQL["insert_call"],
            (
                lease.session_id,
                call.call.id,
                seq,
                call.call.name,
                dumps(call.args),
                call.args_hash,
                call.state,
                call.repeatable,
                result,
            ),
        )
    db.execute(SQL["add_events"], (events, *turn_place(lease.turn_id)))


def calls_started(
    db: Connection,
    lease: Lease,
    call_ids: Sequence[str],
    now: float,
    events: str,
    edited: Mapping[str, tuple[Json, str]],
    allowed: Mapping[str, str],
) -> None:
    """See Store.calls_started."""
    _held(db, lease)
    for call_id in call_ids:
        db.execute(SQL["start_call"], (now, lease.session_id, call_id))
        if call_id in edited:
            args, digest = edited[call_id]
            db.execute(SQL["edit_call"], (dumps(args), digest, lease.session_id, call_id))
        if call_id in allowed:
            _executed(db, lease.session_id, call_id, allowed[call_id], now)
    if events:
        db.execute(SQL["add_events"], (events, *turn_place(lease.turn_id)))


def _executed(db: Connection, session_id: str, call_id: str, grant_id: str, now: float) -> None:
    """A call begins that a person's word has set free: on which arguments, and whose word."""
    tool, digest, attempt = db.execute(SQL["call_hash"], (session_id, call_id)).fetchone()
    body: Json = {"tool": tool, "call": call_id, "attempt": attempt}
    pending_id = actor = ""
    row = db.execute(SQL["decision_of_call"], (session_id, call_id)).fetchone()
    if row is not None:
        pending_id, actor, body["by"] = row
    elif grant_id:
        given = db.execute(SQL["grant"], (grant_id,)).fetchone()
        body["grant"] = grant_id
        actor = given[6] if given is not None else ""
    else:  # a rule had allowed it, before the program or the turn stopped
        return
    append_audit(
        db, now, "executed", actor, body, session_id=session_id, pending_id=pending_id, args_hash=digest
    )


def call_done(db: Connection, lease: Lease, result: ToolResult, full: str | None, now: float) -> None:
    """See Store.call_done."""
    _held(db, lease)
    db.execute(SQL["end_call"], (dumps(result), full, now, lease.session_id, result.tool_use_id))


def results(
    db: Connection, lease: Lease, message: Message, events: str, steer: bool, now: float
) -> list[Message]:
    """See Store.results."""
    said = take_all_queued(db, lease.session_id) if steer else []
    _append(db, lease, [message, *said], hold(db, lease, 1 + len(said), now), now)
    _close_batch(db, lease.session_id, message.results, now)
    db.execute(SQL["add_events"], (events, *turn_place(lease.turn_id)))
    return said


def _close_batch(db: Connection, session_id: str, answers: Sequence[ToolResult], now: float) -> None:
    """The step is answered: nobody can decide about it any more, whoever was still asked, and no
    subagent works for it any more."""
    for result in answers:
        db.execute(SQL["calls_answered"], (session_id, result.tool_use_id))
    people.close_calls(db, session_id, [result.tool_use_id for result in answers], now)
    db.execute(SQL["delete_checkpoint"], (session_id,))
    states = db.execute(SQL["close_batch"], (session_id,)).fetchall()
    if ("open",) in states:
        people.supersede_open(db, session_id, "the end of its turn", now)


def marker(db: Connection, lease: Lease, message: Message, events: str, now: float) -> None:
    """See Store.marker."""
    _append(db, lease, [message], hold(db, lease, 1, now), now)
    db.execute(SQL["add_events"], (events, *turn_place(lease.turn_id)))


def finish(db: Connection, lease: Lease, end: TurnEnd, now: float) -> Ended:
    """See Store.finish."""
    _end(db, lease, end, "done", "idle", "", now)
    answered = [result for message in end.messages for result in message.results]
    if answered:
        _close_batch(db, lease.session_id, answered, now)
    more = db.execute(SQL["next_queued"], (lease.session_id,)).fetchone() is not None
    wakes = () if more else _wake_parent(db, lease.session_id, now)
    return Ended(more=more, deliveries=_outgoing(db, lease, end.outgoing, now), wakes=wakes)


def _wake_parent(db: Connection, session_id: str, now: float) -> tuple[str, ...]:
    """Whoever has stopped for this subagent's session looks at it again."""
    return tuple(row[0] for row in db.execute(SQL["wake_parent"], (now, session_id)).fetchall())


def _end(db: Connection, lease: Lease, end: TurnEnd, turn: str, session: str, cancel: str, now: float) -> Row:
    count = len(end.messages)
    row: Row | None = db.execute(
        SQL["end_session_turn"],
        (session, cancel, count, now, lease.session_id, lease.runner, lease.epoch, count),
    ).fetchone()
    if row is None:
        raise LeaseLost(lease.session_id)
    _append(db, lease, end.messages, row[0], now)
    db.execute(
        SQL["end_turn"],
        (
            turn,
            end.outcome,
            end.detail,
            end.text,
            dumps(end.spent),
            dumps(end.usage),
            end.events,
            now,
            *turn_place(lease.turn_id),
        ),
    )
    return row


def _outgoing(db: Connection, lease: Lease, rows: Sequence[Outgoing], now: float) -> tuple[Delivery, ...]:
    return tuple(outbox.enqueue(db, rows, lease.runner, now)) if rows else ()


def park(db: Connection, lease: Lease, stop: Park, now: float) -> Ended:
    """See Store.park."""
    cancel = db.execute(SQL["claim_head"], (lease.session_id,)).fetchone()[11]
    asked_again = {p.pending_id for p in stop.checkpoint.outstanding.values()}
    # Somebody may have decided one of the others, or asked to stop, while this run was busy.
    decided = any(
        record.state != "open" for record in open_batch(db, lease.session_id)[1] if record.id in asked_again
    )
    status = "ready" if decided or cancel or _moved_below(db, stop) else "pending"
    row = _end(db, lease, stop.end, "parked", status, cancel, now)
    generation = row[1]
    requester = db.execute(SQL["turn_origin"], turn_place(lease.turn_id)).fetchone()[0]
    agent = db.execute(SQL["session_head"], (lease.session_id,)).fetchone()[1]
    for pending in stop.new_pendings:
        _insert_pending(db, lease, pending, agent, generation, requester, now)
    for result in stop.checkpoint.results_so_far.values():
        # Most are there already; not what the clock or a person settled, nor what `call_done` lost.
        db.execute(SQL["end_call"], (dumps(result), None, now, lease.session_id, result.tool_use_id))
    db.execute(
        SQL["insert_checkpoint"],
        (lease.session_id, lease.turn_id, row[0] - 1 + len(stop.end.messages), dumps(stop.checkpoint), now),
    )
    wakes = _wake_parent(db, lease.session_id, now) if status == "pending" else ()
    return Ended(more=status == "ready", deliveries=_outgoing(db, lease, stop.end.outgoing, now), wakes=wakes)


def _moved_below(db: Connection, stop: Park) -> bool:
    """Whether something that a subagent waits for was decided while this run was busy."""
    below = [p.pending_id for p in stop.checkpoint.outstanding.values() if p.session]
    states = [db.execute(SQL["pending_state"], (pending_id,)).fetchone() for pending_id in below]
    return any(state is None or state[0] != "open" for state in states)


def _insert_pending(
    db: Connection, lease: Lease, pending: Pending, agent: str, generation: int, requester: str, now: float
) -> None:
    attempt = db.execute(SQL["call_attempt"], (lease.session_id, pending.call_id)).fetchone()
    db.execute(
        SQL["insert_pending"],
        (
            pending.pending_id,
            lease.session_id,
            lease.turn_id,
            agent,
            pending.call_id,
            attempt[0] if attempt else 0,
            pending.code,
            pending.kind,
            generation,
            dumps(pending),
            requester,
            now,
            pending.expires_at,
            pending.card_id,
            lease.session_id,
        ),
    )
    timing.insert_timers(db, pending, now)
    append_audit(
        db,
        now,
        "requested",
        str(read_actor(requester)),
        {"tool": pending.tool, "kind": pending.kind, "rule": pending.rule},
        session_id=lease.session_id,
        pending_id=pending.pending_id,
        args_hash=pending.args_hash,
    )
