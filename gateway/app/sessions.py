"""Sessions, cards and events as the web channel shows them: read from rows, secrets masked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from channels.web import backend as web
from gateway.agent import Agent
from gateway.app.logs import Logs
from gateway.approvals import Pending
from gateway.eventlog import event_lines
from gateway.messages import Json, Message, ToolUse
from gateway.notices import agreed_text, covers_text, deciders_text, fate_text, question_hint
from gateway.outcome import Outcome
from gateway.questions import Question, unpack_answers
from gateway.silence import silent
from gateway.store.base import Store
from gateway.store.rows import AuditLine, CallRecord, GrantRecord, PendingRecord, SessionView, TurnView
from gateway.store.schedule_rows import ScheduleRecord
from gateway.timetable import timing_text
from gateway.tools.base import MASK, masked
from gateway.tools.system import ASK_USER, READ_RESULT

ALL = 100_000  # cards of one session
SYSTEM_TOOLS = (ASK_USER.name, READ_RESULT.name)


class SessionReader:
    """Reads; changes nothing."""

    def __init__(self, store: Store, agents: Mapping[str, Agent], logs: Logs) -> None:
        self._store, self._agents, self._logs = store, agents, logs

    async def session(
        self, session_id: str, start: int, see: Callable[[PendingRecord], bool]
    ) -> web.SessionView | None:
        """One session with everything that its page shows; None for an unknown id. `see`: whether all of
        a request is for whoever looks."""
        view = await self._store.session(session_id)
        if view is None:
            return None
        turn = await self._store.turn(view.turn_id) if view.turn_id else None
        last_event = await self._last_event(turn)
        records = await self._store.pendings(session_id=session_id, open_only=False, limit=ALL)
        calls = await self._store.calls(session_id)  # before the log, into which their results move
        log = await self._logs.read(session_id)
        shown = [message for message in log if message.kind != "trim"]
        notices = await self._store.notices(session_id)
        own = [record for record in records if record.session_id == session_id]
        hidden = self._hidden(view.agent, own, see, calls)
        return web.SessionView(
            session_id=view.id,
            agent=view.agent,
            status=_status(view, turn, records),
            messages=[hidden.message(message) for message in shown[start:]],
            start=min(start, len(shown)),
            total=len(shown),
            title=view.title,
            last_event_id=last_event,
            cards=[card_of(record, hidden=not see(record)) for record in records],
            calls=_open_calls(log, calls),
            queued=[
                web.QueuedMessage(message_id=message_id, text=text)
                for message_id, text in await self._store.queued_texts(session_id)
            ],
            notices=[
                web.Notice(text=n.text, at=n.at, after=n.after, number=n.id, file=n.file) for n in notices
            ],
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

    async def _last_event(self, turn: TurnView | None) -> str | None:
        """The id of the newest stored event, None when there is none."""
        while turn is not None and not turn.events:
            before = await self._store.turns_after(turn.session_id, turn.number - 1, 1)
            turn = before[0] if before and before[0].number < turn.number else None
        return f"{turn.number}.{len(event_lines(turn)) - 1}" if turn is not None else None

    def _hidden(
        self,
        name: str,
        records: Sequence[PendingRecord],
        see: Callable[[PendingRecord], bool],
        calls: Sequence[CallRecord],
    ) -> Hidden:
        agent = self._agents.get(name)
        tools = {tool.name: tool.secret for tool in agent.tools} if agent is not None else {}
        rules = [(rule.tool, rule.redact) for rule in agent.gate.rules if rule.redact] if agent else []
        for record in records:
            rules.append((record.pending.tool, record.pending.secret))
        closed = {record.pending.call_id for record in records if not see(record)}
        asked = {record.pending.call_id for record in records}
        private = [rule.tool for rule in agent.gate.rules if rule.reveal == "approvers"] if agent else []
        for call in calls:  # about to be asked about: its siblings still run
            if call.state == "waiting" and call.call_id not in asked:
                closed |= {call.call_id for tool in private if _fits(tool, call.tool)}
        silence = agent.silence if agent is not None else None
        return Hidden({tool: frozenset[str]() for tool in SYSTEM_TOOLS} | tools, rules, closed, silence)


class Hidden:
    """Which arguments of which tools people may not see. Of a tool that is not configured any more
    nobody knows what was secret: all its arguments are masked."""

    def __init__(
        self,
        tools: Mapping[str, frozenset[str]],
        rules: Sequence[tuple[str, Sequence[str]]],
        closed: Collection[str] = (),
        silence: str | None = None,
    ) -> None:
        """`closed`: ids of calls of which whoever looks may see no argument at all. `silence`: the agent's
        word for saying nothing."""
        self._tools, self._rules, self._closed, self._silence = tools, rules, closed, silence

    def input(self, call: ToolUse) -> Json:
        """The arguments of a call as people may see them."""
        if call.id in self._closed:
            return {}
        secret = self._tools.get(call.name)
        if secret is None:
            return dict.fromkeys(call.input, MASK)
        names = set(secret)
        for pattern, redacted in self._rules:
            if _fits(pattern, call.name):
                names.update(redacted)
        return masked(call.input, names)

    def message(self, message: Message) -> Json:
        """One entry of the log, without what only its model may read."""
        content = []
        for block in message.content:
            if isinstance(block, ToolUse):
                block = msgspec.structs.replace(block, input=self.input(block))
            value: Json = msgspec.to_builtins(block)
            value.pop("opaque", None)
            if isinstance(block, ToolUse) and block.id in self._closed:
                value["hidden"] = True
            content.append(value)
        entry: Json = {"role": message.role, "content": content}
        if message.author:
            entry["author"] = message.author
        if message.kind:
            entry["kind"] = message.kind
        if message.role == "assistant" and silent(message.text, self._silence):
            entry["silent"] = True
        return entry


def _fits(pattern: str, tool: str) -> bool:
    return pattern == tool or fnmatchcase(tool, pattern)


def _status(view: SessionView, turn: TurnView | None, records: Sequence[PendingRecord]) -> str:
    if view.status in ("running", "ready"):
        return "running"
    waiting = {record.pending.kind for record in records if record.state == "open"}
    if view.status == "pending" and waiting:
        return "pending_approval" if "approval" in waiting else "pending_question"
    if view.status == "idle" and view.queued:
        return "queued"
    return Outcome(turn.outcome).status if turn is not None and turn.outcome else "idle"


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


def card_of(record: PendingRecord, *, hidden: bool = False) -> web.PendingCard:
    """One pending, open or not, with its arguments masked; `hidden`: without any of what it asks for."""
    card = _whole_card(record)
    if not hidden:
        return card
    return replace(
        card,
        hidden=True,
        args={},
        args_hash="",
        code="",
        preview="",
        image=False,
        schema=None,
        secret=(),
        covers="",
        question="",
        options=(),
        parts=(),
        hint="",
    )


def _whole_card(record: PendingRecord) -> web.PendingCard:
    pending = record.pending
    question = pending.question if pending.question is not None else Question(text="")
    editable = pending.question is None and pending.quorum == 1
    return web.PendingCard(
        pending_id=record.id,
        kind=pending.kind,
        session_id=record.home,
        agent=record.agent,
        works_for=record.works_for,
        tool=pending.tool,
        args=masked(pending.args, pending.secret),
        reason=pending.reason,
        requested_at=record.requested_at,
        expires_at=pending.expires_at,
        approvers=tuple(
            str(record.requester) if name == "requester" else name
            for name in pending.approvers or ("requester",)
        ),
        call_id=record.home_call,
        state=_card_state(record),
        status=fate_text(record, timed=False) or agreed_text(record),
        decided_by=record.decided_by,
        decided_at=record.decided_at,
        args_hash=pending.args_hash,
        deciders=deciders_text(record),
        code=pending.code,
        preview=pending.preview,
        preview_kind=pending.preview_kind,
        image=bool(pending.preview_image),
        card=pending.card_id,
        place=pending.place,
        reveal=pending.reveal,
        schema=_form_schema(pending) if editable else None,
        secret=pending.secret,
        scopes=("once", "session", "always") if pending.quorum == 1 else ("once",),
        covers=covers_text(record),
        question=question.text,
        options=_options(question),
        multi=question.multi,
        allow_text=question.allow_text,
        about="unknown" if question.about == "unknown" else "",
        home="" if record.key.channel in ("web", "cli") else record.key.channel,
        hint=question_hint(question),
        least=question.least,
        most=question.most if question.multi else None,
        answer_kind=question.kind,
        parts=_parts(record, question),
        confirm=question.confirm,
        answered=record.votes if question.confirmed and not question.parts else (),
    )


def _options(question: Question) -> tuple[web.Option, ...]:
    return tuple(
        web.Option(label=label, value=option.result, description=option.description)
        for option, label in zip(question.options, question.labels, strict=True)
    )


def _parts(record: PendingRecord, question: Question) -> tuple[web.Part, ...]:
    """Several questions, with what is answered so far."""
    given = unpack_answers(record.votes)
    return tuple(
        web.Part(
            name=part.name,
            question=part.text,
            options=_options(part),
            multi=part.multi,
            allow_text=part.allow_text,
            hint=question_hint(part),
            least=part.least,
            most=part.most if part.multi else None,
            answer_kind=part.kind,
            answered=given.get(part.name),
        )
        for part in question.parts
    )


def _form_schema(pending: Pending) -> Json:
    """The tool's schema without what it tells about secret values (a default is one)."""
    properties = dict(pending.schema.get("properties", {}))
    for name in {path if path in properties else path.partition(".")[0] for path in pending.secret}:
        if isinstance(known := properties.get(name), dict):
            properties[name] = {key: known[key] for key in ("type", "title", "description") if key in known}
    return {**pending.schema, "properties": properties}


def grant_line(record: GrantRecord) -> web.GrantLine:
    """One grant, its secret arguments masked."""
    grant = record.grant
    return web.GrantLine(
        grant_id=grant.id,
        code=record.code,
        scope=grant.kind,
        agent=grant.agent,
        tool=grant.tool,
        args=masked(grant.args, record.secret),
        session_id=grant.session_id,
        granted_by=grant.granted_by,
        by=record.by,
        granted_at=grant.granted_at,
    )


def schedule_line(record: ScheduleRecord) -> web.ScheduleLine:
    """One schedule."""
    schedule = record.schedule
    return web.ScheduleLine(
        schedule_id=record.id,
        code=schedule.code,
        name=record.name,
        agent=record.agent,
        where=":".join(part for part in record.key if part),
        session_id=record.session_id,
        instruction=schedule.instruction,
        often=timing_text(schedule.timing),
        next_at=record.due_at,
        by=schedule.by,
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
