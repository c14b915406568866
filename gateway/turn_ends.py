"""From what a run gave back to what is stored and told about the end of its turn. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gateway.approvals import Pending
from gateway.eventlog import EventLines
from gateway.events import ApprovalPending, Event, QuestionPending, TurnDone
from gateway.messages import Json, Message, ToolResult, ToolUse, tool_results
from gateway.options import RunResult
from gateway.outcome import Outcome, exit_code
from gateway.providers.base import Usage
from gateway.questions import Question
from gateway.store.rows import CallRecord, Claim, Ended, Outgoing, TurnEnd
from gateway.tools.base import masked
from gateway.verdicts import BROKE_OFF, INTERRUPTED


def pending_event(pending: Pending) -> Event:
    """What watchers are told about a call that waits; secrets masked."""
    question = pending.question
    if question is not None:
        return QuestionPending(
            pending_id=pending.pending_id,
            question=question.text,
            options=[option.label for option in question.options],
            multi=question.multi,
            allow_text=question.allow_text,
            kind=question.kind,
            questions=[_part(part) for part in question.parts],
        )
    return ApprovalPending(
        pending_id=pending.pending_id,
        tool=pending.tool,
        args=masked(pending.args, pending.secret),
        reason=pending.reason,
        expires_at=pending.expires_at,
    )


def _part(part: Question) -> Json:
    return {
        "name": part.name,
        "question": part.text,
        "options": [option.label for option in part.options],
        "multi": part.multi,
        "allow_text": part.allow_text,
        "kind": part.kind,
    }


def with_text(ended: Ended, text: str) -> Ended:
    """The answer's row with its text: what is sent at once need not be read again."""
    rows = []
    for row in ended.deliveries:
        if row.kind == "answer" and text:
            row = msgspec.structs.replace(row, payload={**row.payload, "text": text})
        rows.append(row)
    return msgspec.structs.replace(ended, deliveries=tuple(rows))


def unstored(result: RunResult) -> tuple[Message, ...]:
    """The reply that ended the turn: the only entry that the journal has not written yet."""
    last = result.messages[-1] if result.messages else None
    return (last,) if last is not None and last.role == "assistant" and not last.calls else ()


def broken_off(calls: Sequence[ToolUse], rows: Sequence[CallRecord]) -> tuple[Message, ...]:
    """The answer to the calls of a step that could not go on: none for no calls. What is on record of them
    is told: their results, those that had begun, those that had not."""
    known = {row.call_id: row for row in rows}
    answers = [_fate(call.id, known.get(call.id)) for call in calls]
    return (tool_results(answers),) if answers else ()


def _fate(call_id: str, row: CallRecord | None) -> ToolResult:
    if row is not None and row.result is not None:
        return row.result
    begun = row is None or row.state == "started"
    return ToolResult(tool_use_id=call_id, content=INTERRUPTED if begun else BROKE_OFF, is_error=True)


def done_event(claim: Claim, result: RunResult, error: str = "") -> TurnDone:
    """The last event of a turn. `error` names what it crashed with."""
    return TurnDone(
        session_id=claim.lease.session_id,
        turn_id=claim.lease.turn_id,
        outcome=result.outcome.value,
        status=result.outcome.status,
        text=result.text,
        pending=list(result.pending.outstanding) if result.pending is not None else [],
        exit_code=exit_code(result.outcome, error),
        usage=used(result.usage),
    )


def used(usage: Usage) -> Json:
    """What a turn has used as it is stored and told; a cost that is not known is left out."""
    said: Json = msgspec.to_builtins(usage) if usage.total else {}
    return {name: value for name, value in said.items() if value is not None}


def turn_end(
    result: RunResult, messages: tuple[Message, ...], events: EventLines, outgoing: tuple[Outgoing, ...]
) -> TurnEnd:
    """The row of a turn that ended like this. Takes the events along."""
    return TurnEnd(
        outcome=result.outcome.value,
        detail=result.detail,
        text="" if result.outcome is Outcome.COMPLETED else result.text,
        messages=messages,
        events=events.take(),
        outgoing=outgoing,
        spent=result.spent,
        usage=used(result.usage),
    )
