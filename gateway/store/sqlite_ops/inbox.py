"""What comes in: messages and presses, once each. Runs inside the writer's transaction."""

from __future__ import annotations

from sqlite3 import Connection
from typing import Literal

import msgspec

from gateway.messages import Actor, Message, ThreadKey, decode_messages, encode_message, new_id
from gateway.store.base import LEASE_SECONDS
from gateway.store.rows import Accepted, Claim, Have, Incoming, Lease, Press
from gateway.store.sqlite_ops.codec import SQL, Row, actor_text, dumps, grant, kin, loads
from gateway.store.sqlite_ops.codec import turn_id as turn_id_of


class Queued(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a waiting message."""

    message: Message
    actor: Actor


QUEUED = msgspec.json.Decoder(Queued)


def accept(
    db: Connection, incoming: Incoming, runner: str, claim: bool, have: Have | None = None
) -> Accepted:
    """See Store.accept."""
    key, identity = incoming.key, (*incoming.key[:3], incoming.message_id)
    if incoming.edited:
        changed = db.execute(SQL["edit_inbox"], (_body(incoming), *identity)).rowcount
        known = db.execute(SQL["inbox_session"], (*identity, "message")).fetchone()
        return Accepted(outcome="edited" if changed else "duplicate", session_id=known[0] if known else "")
    head = _head(db, incoming)
    session_id = head[0] if head else new_id("s")
    free = claim and (head is None or head[3] == "idle")
    ahead = 0
    if head is not None and not (free and (ahead := _queued(db, session_id)) == 0):
        free = False
    state, body = ("done", None) if free else ("queued", _body(incoming))
    place = None if free else _place(db, session_id, "next_place")
    row = (*identity, "message", state, session_id, body, incoming.received_at, place)
    if db.execute(SQL["insert_inbox"], row).rowcount == 0:
        known = db.execute(SQL["inbox_session"], (*identity, "message")).fetchone()
        return Accepted(outcome="duplicate", session_id=known[0])
    if head is None:
        head = _open_session(db, session_id, key, incoming)
    if not free:
        if ahead == 0:
            ahead = _queued(db, session_id) - 1
        waiting = db.execute(SQL["open_below"], (session_id,))
        return Accepted(
            outcome="queued",
            session_id=session_id,
            ahead=ahead,
            waiting_for=tuple(r[0] for r in waiting),
        )
    begun = begin_turn(
        db, head, key, incoming.message, incoming.actor, incoming.message_id, runner, incoming.received_at
    )
    if incoming.session_id:  # it may be a subagent's, which stays what it is
        begun = msgspec.structs.replace(begun, **kin(db.execute(SQL["claim_head"], (session_id,)).fetchone()))
    begun = with_log(db, begun, have)
    return Accepted(outcome="claimed", session_id=session_id, claim=begun)


def _head(db: Connection, incoming: Incoming) -> Row | None:
    row: Row | None
    if incoming.session_id:
        row = db.execute(SQL["session_head"], (incoming.session_id,)).fetchone()
    else:
        row = db.execute(SQL["thread_session"], incoming.key).fetchone()
    return row


def _queued(db: Connection, session_id: str) -> int:
    count: int = db.execute(SQL["queued_count"], (session_id,)).fetchone()[0]
    return count


def _place(db: Connection, session_id: str, which: str) -> int:
    """A place in the session's queue: `next_place` at its end, `front_place` before everything."""
    place: int = db.execute(SQL[which], (session_id,)).fetchone()[0]
    return place


def _body(incoming: Incoming) -> str:
    return dumps(Queued(message=incoming.message, actor=incoming.actor))


def _open_session(db: Connection, session_id: str, key: ThreadKey, incoming: Incoming) -> Row:
    at, agent, tenant = incoming.received_at, incoming.agent, incoming.tenant
    insert_session(db, session_id, key, agent, tenant, at)
    return (session_id, agent, tenant, "idle", 0, 0, 0, 0, "")


def insert_session(
    db: Connection, session_id: str, key: ThreadKey, agent: str, tenant: str, at: float
) -> None:
    """A new session, and the thread pointing at it."""
    db.execute(SQL["insert_session"], (session_id, *key, agent, tenant, "", at, at))
    db.execute(SQL["insert_thread"], (*key, session_id, agent, tenant, at))


def begin_turn(
    db: Connection,
    head: Row,
    key: ThreadKey,
    message: Message,
    requester: Actor,
    message_id: str,
    runner: str,
    at: float,
    root: str = "",
) -> Claim:
    """Take the lease, write the user message and the turn. `head`: columns of session_head. `root`: of a
    subagent's session."""
    session_id, agent, tenant, _status, _generation, epoch, turns, log_length, model = head
    turn_id = turn_id_of(session_id, turns + 1)
    until, title = at + LEASE_SECONDS, message.text[:60]
    db.execute(SQL["claim_session"], (runner, until, turn_id, 1, 1, at, title, session_id))
    db.execute(
        SQL["insert_turn"],
        (session_id, turns + 1, "message", log_length, actor_text(requester), message_id, "{}", at),
    )
    db.execute(SQL["insert_message"], (session_id, log_length, encode_message(message), at))
    return Claim(
        kind="message",
        lease=Lease(session_id=session_id, turn_id=turn_id, runner=runner, epoch=epoch + 1),
        key=key,
        agent=agent,
        tenant=tenant,
        requester=requester,
        message_id=message_id,
        log_length=log_length + 1,
        message=message,
        model=model,
        grants=tuple(grant(r) for r in db.execute(SQL["grants_of"], (agent, root or session_id, at))),
    )


def with_log(db: Connection, claim: Claim, have: Have | None) -> Claim:
    """The claim with the session's log, unless the caller has it in memory."""
    length = claim.log_length - (1 if claim.kind == "message" else 0)
    if have is None or have(claim.lease.session_id) == length:
        return claim
    rows = db.execute(SQL["log"], (claim.lease.session_id, 0, length))
    return msgspec.structs.replace(claim, log=tuple(decode_messages([row[0] for row in rows])))


def accept_press(db: Connection, press: Press) -> bool:
    """See Store.accept_press."""
    body = dumps({"thread": press.key.thread, "actor": list(press.actor), "body": press.body})
    place = _place(db, "", "next_place")
    row = (*press.key[:3], press.action_id, "press", "queued", "", body, press.received_at, place)
    return db.execute(SQL["insert_inbox"], row).rowcount == 1


def done(db: Connection, key: ThreadKey, message_id: str, kind: Literal["message", "press"]) -> None:
    """Carried out, or used as something else: only the identity stays."""
    db.execute(SQL["inbox_done"], (*key[:3], message_id, kind))


def withdraw(db: Connection, key: ThreadKey, message_id: str) -> bool:
    """See Store.withdraw."""
    return db.execute(SQL["withdraw_inbox"], (*key[:3], message_id)).rowcount == 1


def used(db: Connection, key: ThreadKey, message_id: str) -> None:
    """A waiting message was taken as a decision: the session's next turn answers it."""
    db.execute(SQL["inbox_taken"], (1, *key[:3], message_id))


def presses_left(db: Connection) -> list[Press]:
    """See Store.presses_left."""
    presses = []
    for channel, workspace, conversation, action_id, body, received_at in db.execute(SQL["presses_left"]):
        stored = loads(body)
        presses.append(
            Press(
                key=ThreadKey(channel, workspace, conversation, stored["thread"]),
                action_id=action_id,
                actor=Actor(*stored["actor"]),
                body=stored["body"],
                received_at=received_at,
            )
        )
    return presses


def take_queued(db: Connection, session_id: str) -> tuple[str, Queued] | None:
    """The next waiting message of a session, taken out of the queue."""
    row = db.execute(SQL["next_queued"], (session_id,)).fetchone()
    if row is None:
        return None
    db.execute(SQL["inbox_done"], (*row[:4], "message"))
    return row[3], QUEUED.decode(row[4])


def take_all_queued(db: Connection, session_id: str) -> list[Message]:
    """Everything that waits, taken out of the queue (`busy = "steer"`)."""
    messages = []
    for row in db.execute(SQL["all_queued"], (session_id,)).fetchall():
        db.execute(SQL["inbox_taken"], (0, *row[:4]))
        messages.append(QUEUED.decode(row[4]).message)
    return messages


def queue_feedback(
    db: Connection, session_id: str, key: ThreadKey, message: Message, actor: Actor, id_: str, at: float
) -> None:
    """A denial's feedback as the session's next user message."""
    body = dumps(Queued(message=message, actor=actor))
    place = _place(db, session_id, "front_place")
    row = (*key[:3], id_, "message", "queued", session_id, body, at, place)
    db.execute(SQL["insert_inbox"], row)
