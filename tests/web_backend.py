"""A small agent house in memory behind the web channel: sessions, turns, cards, events, an audit log.

It says what the message asks for:
  refund N       looks the order up, then asks for approval of a refund of N
  guarded        asks for an approval that only web:boss may give
  hidden         asks for an approval of arguments made to deceive
  ask            a question with three options          ask many   several may be chosen
  both, closed, diff, picture   see web_together
  unknown        the gateway asks what became of a call
  ask open       a question for free text         ask several    five in one form
  ask sure       an answer that is confirmed
  slow           answers once `gate` is set
  anything else  is repeated, in Markdown, in pieces
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import jsonschema_rs

from channels.base import Actor
from channels.web.backend import (
    Answered,
    CallState,
    ClickOutcome,
    ClickResult,
    Forbidden,
    InvalidRequest,
    Json,
    PendingCard,
    Posted,
    QueuedMessage,
    Scope,
    SessionSummary,
    SessionView,
    Unavailable,
    UnknownAgent,
    UnknownSession,
    WireEvent,
)
from tests.web_scripts import (
    DONE,
    MASK,
    REFUND_SCHEMA,
    Session,
    approval,
    question,
    several,
    spelled,
    unknown,
    wrong_parts,
)
from tests.web_together import Together
from tests.web_waiting import Waiting, called_by


class MemoryBackend(Together, Waiting):
    """Implements `channels.web.backend.WebBackend`. `now` moves by hand: `backend.now += 60`."""

    def __init__(self) -> None:
        super().__init__()
        self.now = time.time()
        self.rows: dict[str, Session] = {}
        self.cards: dict[str, PendingCard] = {}
        self.ran: list[tuple[str, Json]] = []
        self.gate = asyncio.Event()
        self.broken = False  # the store refuses writes
        self.failing = ""  # a fault of ours, to see that it is not shown
        self.prometheus: bytes | None = None
        self.healthy = True
        self.granted: list[Scope] = []
        self._ids = itertools.count(1)
        self._moved = asyncio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait, bounded, until something that happens here makes the condition true."""
        async with asyncio.timeout(10):
            while not condition():
                self._moved.clear()
                await self._moved.wait()

    def agents(self) -> Sequence[str]:
        return ["assistant", "ops"]

    def default_agent(self) -> str:
        return "assistant"

    # ---- messages

    async def post_message(
        self, agent: str, text: str, *, actor: Actor, session_id: str | None, message_id: str | None
    ) -> Posted:
        self._admit(agent, actor)
        message_id = message_id or f"m{next(self._ids)}"
        if session_id is None:
            for known in self.rows.values():
                if message_id in known.posted:
                    return replace(known.posted[message_id], duplicate=True)
            session = Session(f"s{next(self._ids)}", agent, text[:60], updated_at=self.now)
            self.rows[session.id] = session
        else:
            session = self._session(session_id)
        if session.agent != agent:
            raise InvalidRequest(f"this session is {session.agent}'s", field="session_id")
        if message_id in session.posted:
            return replace(session.posted[message_id], duplicate=True)
        busy = session.status not in ("idle", "denied", "cancelled")
        turn_id = f"t{next(self._ids)}"
        posted = Posted(session_id=session.id, message_id=message_id, turn_id=turn_id, queued=busy)
        session.posted[message_id] = posted
        session.queue.append((message_id, turn_id, text))
        if not busy:
            self._next(session)
        return posted

    def _admit(self, agent: str, actor: Actor) -> None:
        if self.failing:
            raise RuntimeError(self.failing)
        if agent not in self.agents():
            raise UnknownAgent(f"no agent is named {agent!r}", mend=f"one of: {', '.join(self.agents())}")
        if actor.user == "stranger":
            raise Forbidden("stranger may not talk to this agent")
        if self.broken:
            raise Unavailable("the database did not answer; nothing was stored", mend="send it again")

    async def wait_turn(self, posted: Posted) -> Json:
        async for event in self._turn_events(posted):
            if event.type == "done":
                done = json.loads(event.data)
                done.pop("type")
                return dict(done)
        raise AssertionError("a turn without its end")

    async def turn_events(self, posted: Posted, *, actor: Actor) -> AsyncIterator[WireEvent]:
        return self._turn_events(posted)

    async def _turn_events(self, posted: Posted) -> AsyncIterator[WireEvent]:
        mine = False
        async for event in self._events(self._session(posted.session_id), 0):
            data = json.loads(event.data)
            if event.type == "session":
                mine = data["turn_id"] == posted.turn_id
            if mine:
                yield event
            if mine and event.type == "done":
                return

    # ---- looking

    def _session(self, session_id: str) -> Session:
        try:
            return self.rows[session_id]
        except KeyError:
            raise UnknownSession(f"no session {session_id!r}", mend="GET /sessions lists them") from None

    async def session(self, session_id: str, start: int = 0, *, actor: Actor) -> SessionView:
        session = self._session(session_id)
        ids = [event.id for event in session.events if event.id]
        cards = [self.seen_by(c, actor) for c in self.cards.values() if c.session_id == session_id]
        return SessionView(
            session_id=session.id,
            agent=session.agent,
            status=session.status,
            messages=session.messages[start:],
            start=min(start, len(session.messages)),
            total=len(session.messages),
            title=session.title,
            last_event_id=ids[-1] if ids else None,
            cards=cards,
            calls=[
                CallState(call_id=call, tool="", state="done", content=str(result["content"]))
                for call, result in session.results.items()
            ],
            queued=[QueuedMessage(message_id=name, text=text) for name, _, text in session.queue],
        )

    async def sessions(self) -> Sequence[SessionSummary]:
        rows = sorted(self.rows.values(), key=lambda row: -row.updated_at)
        return [
            SessionSummary(
                session_id=row.id,
                agent=row.agent,
                status=row.status,
                title=row.title,
                updated_at=row.updated_at,
                pending=sum(
                    card.session_id == row.id and card.state == "open" for card in self.cards.values()
                ),
            )
            for row in rows
        ]

    async def events(self, session_id: str, after: str | None, *, actor: Actor) -> AsyncIterator[WireEvent]:
        session = self._session(session_id)
        if after is not None and not after.isdigit():
            raise InvalidRequest(f"{after!r} is no event id", field="Last-Event-ID")
        return self._events(session, int(after or 0))

    async def _events(self, session: Session, after: int) -> AsyncIterator[WireEvent]:
        live: asyncio.Queue[WireEvent] = asyncio.Queue()
        stored = [event for event in session.events if int(event.id or 0) > after]
        data = json.dumps({"type": "assistant:delta", "text": session.growing})
        sofar = WireEvent(type="assistant:delta", data=data) if session.growing else None
        session.listeners.add(live)
        self._moved.set()
        try:
            for event in stored:
                yield event
            if sofar:
                yield sofar
            while True:
                yield await live.get()
        finally:
            session.listeners.discard(live)
            self._moved.set()

    def emit(self, session: Session, kind: str, **data: Any) -> None:
        """One event; all but deltas are stored under the next number."""
        session.growing = session.growing + data["text"] if kind == "assistant:delta" else ""
        number = None if kind == "assistant:delta" else str(len(session.events) + 1)
        event = WireEvent(id=number, type=kind, data=json.dumps({"type": kind, **data}))
        if number:
            session.events.append(event)
        self._moved.set()
        for listener in session.listeners:
            listener.put_nowait(event)

    def health(self) -> Json:
        return {"status": "ok"}

    async def ready(self) -> tuple[bool, Json]:
        return self.healthy, {"checks": {"database": "ok" if self.healthy else "down"}}

    def metrics(self) -> bytes | None:
        return self.prometheus

    # ---- deciding

    async def resolve(
        self,
        pending_id: str,
        decision: Literal["approve", "deny"],
        *,
        edited_args: Json | None,
        scope: Scope,
        feedback: str,
        actor: Actor,
    ) -> ClickResult:
        card, refused = self._open(pending_id, "approval", actor)
        if card is None:
            return refused
        args = card.args if edited_args is None else {**_kept(card, edited_args), **edited_args}
        if card.schema and edited_args is not None:
            problems = [
                {"field": ".".join(map(str, error.instance_path)), "message": error.message}
                for error in jsonschema_rs.validator_for(card.schema).iter_errors(args)
            ]
            if problems:
                return ClickResult(
                    outcome="invalid", message="the arguments do not fit", details={"problems": problems}
                )
        self.granted.append(scope)
        words = "approved" if decision == "approve" else "denied"
        words += " with edits" if edited_args is not None else ""
        self._settle(card, f"{words.capitalize()} by {called_by(actor)}", actor, words, feedback)
        if decision == "approve":
            self.ran.append((card.tool, args))
            return self._close(card, {"content": f"{card.tool} ran with {json.dumps(args)}"}, actor, "idle")
        return self._close(card, {"content": f"denied: {feedback}", "is_error": True}, actor, "denied")

    async def _one(self, pending_id: str, decision: Literal["approve", "deny"], actor: Actor) -> ClickResult:
        return await self.resolve(
            pending_id, decision, edited_args=None, scope="once", feedback="", actor=actor
        )

    async def answer(self, pending_id: str, answer: Answered, *, actor: Actor) -> ClickResult:
        card, refused = self._open(pending_id, "question", actor)
        if card is None:
            return refused
        if problems := wrong_parts(card, answer):
            return ClickResult(outcome="invalid", message="not accepted", details={"problems": problems})
        said = spelled(answer)
        first = answer[0] if isinstance(answer, list) and answer else answer
        if card.options and not card.allow_text and first not in [option.value for option in card.options]:
            return ClickResult(outcome="invalid", message="one of the options is needed")
        self._settle(card, f"Answered by {called_by(actor)}: {said}", actor, "answered", said)
        return self._close(card, {"content": said}, actor, "idle")

    def _open(
        self, pending_id: str, kind: str, actor: Actor
    ) -> tuple[PendingCard, ClickResult] | tuple[None, ClickResult]:
        card = self.cards.get(pending_id)

        def no(outcome: ClickOutcome, message: str, **details: Any) -> tuple[None, ClickResult]:
            return None, ClickResult(outcome=outcome, message=message, details=details)

        if card is None or card.kind != kind:
            return no("unknown", "nothing of that id waits here")
        if card.state == "decided":
            return no("already", card.status, by=card.decided_by, at=card.decided_at)
        if card.state == "superseded":
            return no("superseded", "the turn was stopped", session_id=card.session_id)
        if card.state == "expired":
            return no("expired", "it expired; nothing was run", session_id=card.session_id)
        if card.approvers and called_by(actor) not in card.approvers:
            return no("forbidden", f"only {card.deciders} may decide", deciders=card.deciders)
        return card, ClickResult(outcome="unknown", message="")

    def _close(self, card: PendingCard, result: Json, actor: Actor, then: str) -> ClickResult:
        session = self.rows[card.session_id]
        session.results[card.call_id] = result
        left = sum(c.session_id == session.id and c.state == "open" for c in self.cards.values())
        details = {
            "pending_id": card.pending_id,
            "session_id": session.id,
            "by": called_by(actor),
            "at": self.now,
            "still_open": left,
        }
        message = self.cards[card.pending_id].status
        if left:
            return ClickResult(outcome="recorded", message=f"{message}; {left} still open", details=details)
        self._batch_done(session)
        self._run(session, self._finish(session, then))
        return ClickResult(outcome="resumed", message=message, details=details)

    async def stop(self, session_id: str, *, actor: Actor) -> Json:
        session = self._session(session_id)
        active = session.status not in ("idle", "cancelled", "denied")
        for card in self.cards.values():
            if card.session_id == session_id and card.state == "open":
                self.cards[card.pending_id] = replace(card, state="superseded", status="Closed by /stop")
        if session.runner and not session.runner.done():
            session.runner.cancel()
        if active:
            session.status = "cancelled"
            self._done(session, "cancelled", "")
        return {"stopped": active, "message": "Stopped." if active else "Nothing was running."}

    # ---- turns

    def _run(self, session: Session, work: Any) -> None:
        session.runner = asyncio.get_running_loop().create_task(work)

    def _next(self, session: Session) -> None:
        if session.queue:
            _, turn_id, text = session.queue.pop(0)
            session.turn_id = turn_id
            session.status = "running"
            session.updated_at = self.now = self.now + 1
            session.messages.append({"role": "user", "content": [{"type": "text", "text": text}]})
            self._run(session, self._turn(session, turn_id, text))

    async def _turn(self, session: Session, turn_id: str, text: str) -> None:
        self.emit(session, "session", session_id=session.id, turn_id=turn_id, agent=session.agent)
        self.emit(session, "budget:check", step=1, max_steps=25, tokens=0)
        word, _, rest = text.partition(" ")
        if word == "refund":
            args = {
                "order_id": "A-1001",
                "amount": float(rest or 25),
                "api_key": MASK,
                "tags": ["late", "damaged"],
                "ledger": 12345678901234567890,
            }
            self._ask_approval(session, args, schema=REFUND_SCHEMA, secret=("api_key",), lookup=True)
        elif word == "guarded":
            self._ask_approval(session, {"order_id": "A-7"}, approvers=("web:boss",), deciders="web:boss")
        elif word == "hidden":
            self._ask_approval(session, json.loads(rest))
        elif word in ("both", "closed", "diff", "picture"):
            numbers = [next(self._ids) for _ in range(2 if word in ("both", "closed") else 1)]
            calls, cards = self.many(session, word, numbers)
            self._assistant(session, "I will pay.", *calls)
            for card in cards:
                self._park(session, card, "pending_approval")
        elif word == "unknown":
            self._ask(session, unknown(next(self._ids), session.id, session.agent, self.now))
        elif word == "ask":
            self._ask_question(session, rest)
        else:
            await self._say(session, text)

    async def _say(self, session: Session, text: str) -> None:
        answer = text.removeprefix("say ") if text.startswith("say ") else f"You said: **{text}**"
        pieces = [answer[i : i + 6] for i in range(0, len(answer), 6)]
        for number, piece in enumerate(pieces):
            if text == "slow" and number == 1:
                await self.gate.wait()
            self.emit(session, "assistant:delta", text=piece)
        self._assistant(session, answer)
        self._end(session, answer)

    def _assistant(self, session: Session, text: str, *calls: Json) -> None:
        blocks = [{"type": "text", "text": text}] if text else []
        session.messages.append({"role": "assistant", "content": [*blocks, *calls]})
        if text:
            self.emit(session, "assistant:text", text=text)

    def _ask_approval(self, session: Session, args: Json, *, lookup: bool = False, **card: Any) -> None:
        number = next(self._ids)
        calls = [{"type": "tool_use", "id": f"c{number}", "name": "issue_refund", "input": args}]
        if lookup:
            asked = {"id": "A-1001"}
            calls.insert(0, {"type": "tool_use", "id": f"l{number}", "name": "lookup_order", "input": asked})
        self._assistant(session, "I will look that order up, and refund it if you agree.", *calls)
        if lookup:
            done = {"content": "A-1001: 1 lamp, 89.00 EUR, delivered", "is_error": False}
            self.emit(session, "tool:started", call_id=f"l{number}", tool="lookup_order", args=asked)
            session.results[f"l{number}"] = done
            self.emit(session, "tool:result", call_id=f"l{number}", tool="lookup_order", **done)
        made = approval(number, session.id, session.agent, args, self.now)
        self._park(session, replace(made, **card), "pending_approval")

    def _ask_question(self, session: Session, rest: str) -> None:
        number = next(self._ids)
        if rest == "several":
            asked = several(number, session.id, session.agent, self.now)
        else:
            many, free = rest == "many", rest == "open"
            asked = question(number, session.id, session.agent, self.now, many=many, free=free)
        if rest == "sure":
            asked = replace(asked, confirm=True, allow_text=True, answered=("staging",))
        self._ask(session, asked)

    def _ask(self, session: Session, card: PendingCard) -> None:
        call = {"type": "tool_use", "id": card.call_id, "name": card.tool, "input": card.args}
        self._assistant(session, "", call)
        self._park(session, card, "pending_question")

    def _park(
        self, session: Session, card: PendingCard, status: Literal["pending_approval", "pending_question"]
    ) -> None:
        self.cards[card.pending_id] = card
        session.status = status
        kind = "approval:pending" if card.kind == "approval" else "question:pending"
        self.emit(
            session, kind, pending_id=card.pending_id, tool=card.tool, args=card.args, reason=card.reason
        )
        self._done(session, status, "", pending=[card.pending_id])

    def _batch_done(self, session: Session) -> None:
        calls = [block for block in session.messages[-1]["content"] if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": c["id"], **session.results[c["id"]]} for c in calls]
        session.messages.append({"role": "user", "content": results})
        session.results.clear()

    async def _finish(self, session: Session, then: str) -> None:
        session.turn_id = f"t{next(self._ids)}"
        session.status = "running"
        self.emit(session, "session", session_id=session.id, turn_id=session.turn_id, agent=session.agent)
        if then == "idle":
            text = DONE
            self.emit(session, "assistant:delta", text=text)
            self._assistant(session, text)
            self._end(session, text)
        else:
            session.status = then
            self._done(session, then, "")
            self._next(session)

    def _end(self, session: Session, text: str) -> None:
        session.status = "idle"
        self._done(session, "completed", text)
        self._next(session)

    def _done(self, session: Session, outcome: str, text: str, pending: Sequence[str] = ()) -> None:
        self.emit(
            session,
            "done",
            session_id=session.id,
            turn_id=session.turn_id,
            outcome=outcome,
            status=outcome,
            text=text,
            pending=list(pending),
            exit_code={"completed": 0, "denied": 5, "cancelled": 1}.get(outcome, 8),
        )


def _kept(card: PendingCard, edited: Json) -> Json:
    return {name: "the stored secret" for name in card.secret if name not in edited}
