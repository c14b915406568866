"""Sessions, cards and events as the web channel shows them: read from rows, secrets masked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from channels.web import backend as web
from gateway.agent import Agent
from gateway.approvals import Question
from gateway.eventlog import Stored, WireEvent, unpack
from gateway.messages import Json, Message, ToolUse
from gateway.notices import deciders_text, fate_text
from gateway.outcome import Outcome
from gateway.store.base import Store
from gateway.store.rows import AuditLine, CallRecord, PendingRecord, SessionView, TurnView
from gateway.tools.base import masked

ADVANCES = 200  # turns that one look at a session's events takes at most


class SessionReader:
    """Reads; changes nothing."""

    def __init__(self, store: Store, agents: Mapping[str, Agent]) -> None:
        self._store, self._agents = store, agents

    async def session(self, session_id: str) -> web.SessionView | None:
        """One session with everything that its page shows; None for an unknown id."""
        view = await self._store.session(session_id)
        if view is None:
            return None
        turn = await self._store.turn(view.turn_id) if view.turn_id else None
        last_event = _last_event(turn)
        records = await self._store.pendings(session_id=session_id, open_only=False)
        log = await self._store.log(session_id)
        calls = await self._store.calls(session_id)
        notices = await self._store.notices(session_id)
        hidden = self._hidden(view.agent, records)
        return web.SessionView(
            session_id=view.id,
            agent=view.agent,
            status=_status(view, turn, records),
            messages=[_message(m, hidden) for m in log if m.kind != "trim"],
            title=view.title,
            last_event_id=last_event,
            cards=[card_of(record) for record in records],
            calls=_open_calls(log, calls),
            queued=[
                web.QueuedMessage(message_id=message_id, text=text)
                for message_id, text in await self._store.queued_texts(session_id)
            ],
            notices=[web.Notice(text=n.text, at=n.at, after=n.after) for n in notices],
        )

    async def sessions(self) -> list[web.SessionSummary]:
        """The session list."""
        summaries = []
        for view in await self._store.sessions():
            turn = await self._store.turn(view.turn_id) if view.turn_id else None
            status = _status(view, turn, ())
            summaries.append(
                web.SessionSummary(
                    session_id=view.id,
                    agent=view.agent,
                    status=status,
                    title=view.title,
                    updated_at=view.updated_at,
                    pending=view.open_pendings,
                )
            )
        return summaries

    async def events(self, session_id: str, number: int, index: int) -> list[WireEvent]:
        """The stored events after position `number.index`, in order."""
        events: list[WireEvent] = []
        turns = await self._store.turns_after(session_id, number, ADVANCES)
        if not turns:
            return events
        log = await self._store.log(session_id, turns[0].first_seq)
        results = {r.tool_use_id: r.content for message in log for r in message.results}
        for call in await self._store.calls(session_id):
            if call.result is not None:
                results.setdefault(call.call_id, call.result.content)
        for turn in turns:
            stored = Stored(turn=turn, log=log, first_seq=turns[0].first_seq, results=results)
            events += unpack(stored, skip=index + 1 if turn.number == number else 0)
        return events

    def _hidden(self, agent: str, records: Sequence[PendingRecord]) -> dict[str, frozenset[str]]:
        """Tool -> arguments that people may not see."""
        known = self._agents.get(agent)
        hidden = {tool.name: tool.secret for tool in known.tools} if known is not None else {}
        for record in records:
            name = record.pending.tool
            hidden[name] = hidden.get(name, frozenset()) | set(record.pending.secret)
        return hidden


def _last_event(turn: TurnView | None) -> str | None:
    if turn is None:
        return None
    count = len(turn.events.splitlines())
    return f"{turn.number}.{count - 1}" if count else f"{turn.number - 1}.999999"


def _status(view: SessionView, turn: TurnView | None, records: Sequence[PendingRecord]) -> str:
    if view.status in ("running", "ready"):
        return "running"
    if turn is None:
        return "idle"
    outcome = Outcome(turn.outcome) if turn.outcome else None
    if view.status == "pending" and outcome is None:
        waiting = any(r.pending.kind == "approval" and r.state == "open" for r in records)
        return "pending_approval" if waiting else "pending_question"
    return outcome.status if outcome is not None else "idle"


def _message(message: Message, hidden: Mapping[str, frozenset[str]]) -> Json:
    content = []
    for block in message.content:
        if isinstance(block, ToolUse) and hidden.get(block.name):
            block = msgspec.structs.replace(block, input=masked(block.input, hidden[block.name]))
        value: Json = msgspec.to_builtins(block)
        value.pop("opaque", None)
        content.append(value)
    entry: Json = {"role": message.role, "content": content}
    if message.author:
        entry["author"] = message.author
    if message.kind:
        entry["kind"] = message.kind
    return entry


def _open_calls(log: Sequence[Message], calls: Sequence[CallRecord]) -> list[web.CallState]:
    """The calls of the last reply, while its results are not in the log."""
    last = next((m for m in reversed(log) if m.kind not in ("summary", "trim")), None)
    if last is None or last.role != "assistant" or not last.calls:
        return []
    rows = {row.call_id: row for row in calls}
    states = []
    for call in last.calls:
        row = rows.get(call.id)
        if row is None:
            continue
        state = "done" if row.state == "refused" else row.state
        states.append(
            web.CallState(
                call_id=call.id,
                tool=call.name,
                state=state,
                content=row.result.content if row.result is not None else "",
                is_error=row.result.is_error if row.result is not None else False,
            )
        )
    return states


def card_of(record: PendingRecord) -> web.PendingCard:
    """One pending, open or not, with its arguments masked."""
    pending = record.pending
    question = pending.question if pending.question is not None else Question(text="")
    editable = pending.question is None and pending.quorum == 1
    return web.PendingCard(
        pending_id=record.id,
        kind=pending.kind,
        session_id=record.session_id,
        agent=record.agent,
        tool=pending.tool,
        args=masked(pending.args, pending.secret),
        reason=pending.reason,
        requested_at=record.requested_at,
        expires_at=pending.expires_at,
        approvers=pending.approvers or (str(record.requester),),
        call_id=pending.call_id,
        state=_card_state(record),
        status=fate_text(record),
        decided_by=record.decided_by,
        decided_at=record.decided_at,
        args_hash=pending.args_hash,
        deciders=deciders_text(record),
        code=pending.code,
        preview=pending.preview,
        schema=pending.schema if editable else None,
        secret=pending.secret,
        scopes=("once", "session") if pending.quorum == 1 else ("once",),
        question=question.text,
        options=tuple(
            web.Option(label=o.label, value=o.result, description=o.description) for o in question.options
        ),
        multi=question.multi,
        allow_text=question.allow_text,
    )


def _card_state(record: PendingRecord) -> Literal["open", "decided", "expired", "superseded"]:
    match record.state:
        case "open" | "expired" | "superseded" as same:
            return same
        case _:
            return "decided"


def audit_entry(line: AuditLine) -> web.AuditEntry:
    """One line of the record, in the web channel's words."""
    detail = ", ".join(f"{k}: {v}" for k, v in line.body.items() if k != "tool" and v not in ("", None))
    return web.AuditEntry(
        seq=line.seq,
        at=line.at,
        actor=line.actor,
        what=line.kind,
        session_id=line.session_id,
        pending_id=line.pending_id,
        tool=str(line.body.get("tool", "")),
        args_hash=line.args_hash,
        detail=detail,
        hash=line.hash,
    )
