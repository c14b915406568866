"""From what a run gave back to what is stored and told about the end of its turn. Pure."""

from __future__ import annotations

import msgspec

from gateway.approvals import Pending
from gateway.eventlog import EventLines
from gateway.events import ApprovalPending, Event, QuestionPending
from gateway.messages import Json, Message
from gateway.options import RunResult
from gateway.outcome import Outcome
from gateway.questions import Question
from gateway.store.rows import Ended, Outgoing, TurnEnd
from gateway.tools.base import masked


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
        usage=msgspec.to_builtins(result.usage) if result.usage.total else {},
    )
