"""Conversations of subagents: beginning them, and looking how far they have come. `begin` runs inside
the writer's transaction, `state` on the reader's connection."""

from __future__ import annotations

import json
from sqlite3 import Connection

import msgspec

from gateway.approvals import Pending, TurnCheckpoint
from gateway.messages import ThreadKey, decode_message, new_id, user
from gateway.store.rows import ChildBegun, ChildOrder, ChildRefusal, ChildState
from gateway.store.sqlite_ops import turns
from gateway.store.sqlite_ops.codec import SQL, Row, dumps, kin, read_actor, turn_place
from gateway.store.sqlite_ops.inbox import begin_turn

MINUTE = 60.0
_CHECKPOINT = msgspec.json.Decoder(TurnCheckpoint)


def begin(db: Connection, order: ChildOrder, runner: str) -> ChildBegun:
    """See Store.begin_child."""
    lease = order.lease
    turns.hold(db, lease, 0, order.at)
    caller = db.execute(SQL["claim_head"], (lease.session_id,)).fetchone()
    root = caller[16] or lease.session_id
    known = db.execute(SQL["subagent_of_call"], (root, lease.session_id, order.call_id)).fetchone()
    if known is not None:
        return ChildBegun(session_id=known[0])
    number = db.execute(SQL["message_turn"], (root,)).fetchone()[0]
    refused = _refused(db, order, caller, root, number)
    if refused:
        return ChildBegun(refused=refused)
    child = order.session or new_id("s")
    root_call = caller[17] or order.call_id
    only = [*json.loads(caller[19]), *([list(order.only)] if order.only else [])]
    if order.session:  # what it was narrowed to before holds as well, whatever the configuration says now
        before = json.loads(db.execute(SQL["claim_head"], (child,)).fetchone()[19])
        only = [*before, *(globs for globs in only if globs not in before)]
        db.execute(SQL["called_again"], (root_call, dumps(only), child))
    else:
        place = (child, *caller[1:5], order.agent, caller[6], order.at, order.at)
        belongs = (lease.session_id, root, root_call, caller[18] + 1, dumps(only))
        db.execute(SQL["insert_child"], (*place, *belongs))
    identity = (root, lease.session_id, order.call_id, child, number, order.at)
    db.execute(SQL["insert_subagent_call"], identity)
    requester = read_actor(db.execute(SQL["turn_origin"], turn_place(lease.turn_id)).fetchone()[0])
    head = db.execute(SQL["session_head"], (child,)).fetchone()
    said, key = user(order.text), ThreadKey(*caller[1:5])
    claim = begin_turn(db, head, key, said, requester, order.call_id, runner, order.at, root=root)
    row = db.execute(SQL["claim_head"], (child,)).fetchone()
    claim = msgspec.structs.replace(claim, cancel=caller[11], **kin(row))
    return ChildBegun(session_id=child, claim=claim)


def _refused(db: Connection, order: ChildOrder, caller: Row, root: str, number: int) -> ChildRefusal:
    """Why this call may not be carried out; empty when it may."""
    if caller[18] + 1 > order.max_depth:
        return "depth"
    if order.session and (why := _not_theirs(db, order, root)):
        return why
    at_work = db.execute(SQL["children_at_work"], (order.lease.session_id,)).fetchall()
    if len(at_work) >= order.max_children:
        return "children"
    if db.execute(SQL["subagent_calls_of_turn"], (root, number)).fetchone()[0] >= order.max_calls:
        return "calls"
    if db.execute(SQL["subagent_calls_since"], (root, order.at - MINUTE)).fetchone()[0] >= order.rate:
        return "rate"
    return ""


def _not_theirs(db: Connection, order: ChildOrder, root: str) -> ChildRefusal:
    """Why the call cannot go on with that conversation. One call of a step at a time."""
    row = db.execute(SQL["claim_head"], (order.session,)).fetchone()
    if row is None or row[15] != order.lease.session_id or row[5] != order.agent:
        return "session"
    if row[7] != "idle" or db.execute(SQL["next_queued"], (order.session,)).fetchone() is not None:
        return "busy"
    for call in turns.open_batch(db, order.lease.session_id)[0]:
        of = (root, order.lease.session_id, call.call_id)
        taken = db.execute(SQL["subagent_of_call"], of).fetchone()
        if taken is not None and taken[0] == order.session:
            return "busy"
    return ""


def state(db: Connection, session_id: str) -> ChildState | None:
    """See Store.child_state."""
    row = db.execute(SQL["claim_head"], (session_id,)).fetchone()
    if row is None:
        return None
    queued = db.execute(SQL["queued_count"], (session_id,)).fetchone()[0]
    where = " WHERE t.session_id = ? AND t.number = ?"
    turn = db.execute(SQL["turn_view"] + where, turn_place(row[12])).fetchone()
    found = ChildState(status=row[7], queued=queued, turn_id=row[12])
    if turn is None:
        return found
    return msgspec.structs.replace(
        found,
        outcome=turn[4],
        detail=turn[5],
        text=_last_words(db, session_id, row[14]) if turn[4] == "completed" else turn[6],
        waits=_waits(db, session_id) if row[7] == "pending" else (),
    )


def _last_words(db: Connection, session_id: str, length: int) -> str:
    row = db.execute(SQL["log"], (session_id, length - 1, 1)).fetchone()
    return "" if row is None else decode_message(row[0]).text


def _waits(db: Connection, session_id: str) -> tuple[Pending, ...]:
    """What the session has stopped for; empty as soon as any of it is decided."""
    row = db.execute(SQL["checkpoint"], (session_id,)).fetchone()
    waits = tuple(_CHECKPOINT.decode(row[0]).outstanding.values()) if row is not None else ()
    states = [db.execute(SQL["pending_state"], (p.pending_id,)).fetchone() for p in waits]
    return waits if all(state is not None and state[0] == "open" for state in states) else ()
