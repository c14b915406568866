"""What is known of a step that goes on: tool journal and decisions, put together. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import msgspec

from gateway.approvals import Approve, KnownCall, Pending, TurnCheckpoint, settle
from gateway.gate import Grant
from gateway.store.rows import CallRecord, Claim, PendingRecord
from gateway.tools.base import Said


def known_calls(calls: Sequence[CallRecord], decisions: Sequence[PendingRecord]) -> dict[str, KnownCall]:
    """By call id. A result on record wins; then what people said about this attempt; then how
    far the call had come."""
    known: dict[str, KnownCall] = {}
    for call in calls:
        about = [d for d in decisions if d.pending.call_id == call.call_id]
        known[call.call_id] = _known(call, about)
    return known


def _known(call: CallRecord, about: Sequence[PendingRecord]) -> KnownCall:
    """`about`: everything that people were asked about this call, oldest first."""
    this_attempt = [record for record in about if record.attempt == call.attempt]
    # One that is open is the newest, whatever the clock said.
    asked = next((r for r in this_attempt if r.decision is None), this_attempt[-1] if this_attempt else None)
    if call.result is not None:
        return KnownCall(state="done", result=call.result)
    if asked is not None:
        if asked.decision is None:
            return KnownCall(state="waiting", pending=asked.pending)
        known = settle(asked.pending, asked.decision, asked.decided_by)
        return msgspec.structs.replace(known, said=_said(about)) if known.said else known
    if call.state == "waiting":
        return KnownCall(state="undecided")
    if call.state == "started":
        return _started(call, about)
    return KnownCall(state="allowed", args=call.args, args_hash=call.args_hash)


def _started(call: CallRecord, about: Sequence[PendingRecord]) -> KnownCall:
    """What began was what a person had allowed, perhaps with other arguments than the model's."""
    for record in reversed(about):
        if isinstance(record.decision, Approve):
            allowed = settle(record.pending, record.decision, record.decided_by)
            return msgspec.structs.replace(allowed, state="started", said=_said(about))
    return KnownCall(state="started", args=call.args, args_hash=call.args_hash, said=_said(about))


def _said(about: Sequence[PendingRecord]) -> dict[str, Said]:
    """Everything that was answered to what the call itself asked, in whichever of its runs."""
    said: dict[str, Said] = {}
    for record in about:
        if record.decision is not None:
            said |= settle(record.pending, record.decision, record.decided_by).said
    return said


def own_grants(claim: Claim) -> tuple[Grant, ...]:
    """The grants that hold in the claim's session. What was allowed for the outermost session holds for
    all that works below it."""
    return tuple(
        replace(grant, session_id=claim.lease.session_id) if grant.kind == "session" else grant
        for grant in claim.grants
    )


def pendings_below(checkpoint: TurnCheckpoint, told: Collection[str]) -> list[Pending]:
    """The checkpoint's pendings that subagents have, but for those that watchers know of."""
    waiting = checkpoint.outstanding.values()
    return [pending for pending in waiting if pending.session and pending.pending_id not in told]


def new_pendings(checkpoint: TurnCheckpoint, decisions: Sequence[PendingRecord]) -> list[str]:
    """Ids of the checkpoint's pendings that nobody was asked about yet. A subagent's are asked about by
    its own session."""
    asked = {record.id for record in decisions}
    return [
        pending_id
        for pending_id, pending in checkpoint.outstanding.items()
        if pending_id not in asked and not pending.session
    ]
