"""Between rows and values: JSON columns, and the rows that several operations read."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from gateway.approvals import Pending, Resolution
from gateway.budget import Spent
from gateway.gate import Grant
from gateway.messages import ENCODER, Actor, Json, ThreadKey, ToolResult
from gateway.store.rows import CallRecord, Delivery, PendingRecord
from gateway.store.sql import load

SQL = load("sqlite")

_RESOLUTION = msgspec.json.Decoder(Resolution)
_PENDING = msgspec.json.Decoder(Pending)
_RESULT = msgspec.json.Decoder(ToolResult)
_SPENT = msgspec.json.Decoder(Spent)
Row = tuple[Any, ...]


def dumps(value: Any) -> str:
    """Compact JSON of any stored value."""
    return ENCODER.encode(value).decode()


def loads(text: str) -> Json:
    """A JSON object."""
    value: Json = json.loads(text)
    return value


def turn_id(session_id: str, number: int) -> str:
    """A turn is its session and its number there."""
    return f"{session_id}.{number}"


def turn_place(turn: str) -> tuple[str, int]:
    """(session id, number) of a turn's id; ("", 0) for what is none."""
    session_id, dot, number = turn.rpartition(".")
    return (session_id, int(number)) if dot and number.isdecimal() else ("", 0)


def actor_text(actor: Actor) -> str:
    """The stored form of an actor: a JSON list, so that ids may hold colons."""
    return dumps(list(actor))


def read_actor(text: str) -> Actor:
    """The actor of a stored form; empty for rows without one."""
    return Actor(*json.loads(text)) if text else Actor("", "", "")


def read_spent(text: str) -> Spent:
    """What a turn had used."""
    return _SPENT.decode(text)


def read_resolution(text: str | None) -> Resolution | None:
    """What a person or the clock said."""
    return None if text is None else _RESOLUTION.decode(text)


def call_record(row: Row) -> CallRecord:
    """From the columns of open_batch_calls."""
    call_id, tool, args, digest, state, repeatable, attempt, result = row
    return CallRecord(
        call_id=call_id,
        tool=tool,
        args=loads(args),
        args_hash=digest,
        state=state,
        repeatable=bool(repeatable),
        attempt=attempt,
        result=None if result is None else _RESULT.decode(result),
    )


def pending_record(row: Row) -> PendingRecord:
    """From the columns of pending."""
    _id, session_id, turn_id, agent, attempt, state, current, body, requester, requested_at = row[:10]
    votes, decision, by, actor, decided_at, channel, workspace, conversation, thread = row[10:19]
    root, root_call, works_for = row[19:]
    return PendingRecord(
        pending=_PENDING.decode(body),
        session_id=session_id,
        turn_id=turn_id,
        agent=agent,
        key=ThreadKey(channel, workspace, conversation, thread),
        requester=read_actor(requester),
        state=state,
        current=bool(current),
        attempt=attempt,
        requested_at=requested_at,
        decided_at=decided_at,
        decided_by=by,
        actor=actor,
        decision=read_resolution(decision),
        votes=tuple(json.loads(votes)),
        root=root,
        root_call=root_call,
        works_for=works_for if works_for and root != session_id else "",
    )


def delivery(row: Row) -> Delivery:
    """From the columns of claim_delivery."""
    id_, channel, workspace, conversation, thread, kind, payload, session_id, pending_id = row[:9]
    ref, refs, attempts, doubtful, reply_to = row[9:]
    return Delivery(
        id=id_,
        key=ThreadKey(channel, workspace, conversation, thread),
        kind=kind,
        payload=loads(payload),
        session_id=session_id,
        pending_id=pending_id,
        ref=ref,
        refs=tuple(json.loads(refs)),
        attempts=attempts,
        repeat=bool(doubtful),
        reply_to=reply_to,
    )


def grant(row: Row) -> Grant:
    """From the columns of grants_of."""
    id_, kind, tool, args, agent, session_id, granted_by, granted_at, expires_at = row
    return Grant(
        id=id_,
        kind=kind,
        tool=tool,
        args=loads(args),
        agent=agent,
        session_id=session_id,
        granted_by=granted_by,
        granted_at=granted_at,
        expires_at=expires_at,
    )


def kin(row: Row) -> dict[str, Any]:
    """Of a claim: where a subagent's session belongs. From the columns of claim_head."""
    if not row[15]:
        return {}
    only = tuple(tuple(globs) for globs in json.loads(row[19]))
    return {"parent": row[15], "root": row[16], "depth": row[18], "only": only}
