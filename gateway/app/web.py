"""The gateway as the web channel sees it. Reading is in sessions.py; this talks and decides."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal

from channels.base import Actor as ChannelActor
from channels.web import backend as web
from gateway.agent import Agent
from gateway.app.hub import Hub
from gateway.app.metrics import Metrics
from gateway.app.sessions import SessionReader, audit_entry, card_of
from gateway.approvals import Answer, Approve, Deny, Resolution
from gateway.bridge import Said, actor_in
from gateway.clock import Clock
from gateway.errors import StoreError
from gateway.eventlog import WireEvent, parse_event_id
from gateway.events import AssistantDelta, encode_event
from gateway.intake import Intake
from gateway.log import redact
from gateway.messages import Actor, Json, ThreadKey, new_id
from gateway.notices import person
from gateway.resolutions import Click, Resolutions
from gateway.store.base import Store
from gateway.turns import Turns

POLL = 0.5  # seconds between looks at rows that another process may have written
WEB, WORKSPACE = "web", "local"


class GatewayBackend:
    """See channels.web.backend.WebBackend."""

    def __init__(
        self,
        store: Store,
        agents: Mapping[str, Agent],
        default_agent: str,
        intake: Intake,
        turns: Turns,
        resolutions: Resolutions,
        hub: Hub,
        clock: Clock,
        metrics: Metrics | None = None,
    ) -> None:
        self._store, self._agents, self._default_agent = store, agents, default_agent
        self._intake, self._turns, self._resolutions = intake, turns, resolutions
        self._hub, self._clock, self._metrics = hub, clock, metrics
        self._reader = SessionReader(store, agents)

    def agents(self) -> Sequence[str]:
        return list(self._agents)

    def default_agent(self) -> str:
        return self._default_agent

    # ---- talking

    async def post_message(
        self, agent: str, text: str, *, actor: ChannelActor, session_id: str | None, message_id: str | None
    ) -> web.Posted:
        if agent not in self._agents:
            raise web.UnknownAgent(
                f"there is no agent {agent!r}", mend=f"one of {', '.join(sorted(self._agents))}"
            )
        who, identity = actor_in(actor), message_id or new_id("m")
        key = await self._key(agent, session_id, who, identity)
        said = Said(key=key, message_id=identity, actor=who, text=text, at=self._clock.now(), private=True)
        try:
            if session_id is not None and await self._intake.command(said):
                return web.Posted(session_id=session_id, message_id=identity)
            accepted = await self._intake.accept(said, session_id=session_id or "", agent=agent)
        except StoreError as error:
            raise web.Unavailable(redact(str(error)), mend="send it again") from error
        turn_id = accepted.claim.lease.turn_id if accepted.claim is not None else None
        if accepted.outcome == "duplicate":
            turn_id = await self._store.turn_of_message(accepted.session_id, identity)
        return web.Posted(
            session_id=accepted.session_id,
            message_id=identity,
            turn_id=turn_id,
            queued=accepted.outcome == "queued",
            duplicate=accepted.outcome == "duplicate",
        )

    async def _key(self, agent: str, session_id: str | None, actor: Actor, message_id: str) -> ThreadKey:
        """The session's thread, or a new web conversation that a repeated request finds again."""
        if session_id is None:
            seed = "\n".join((*actor, message_id))
            return ThreadKey(WEB, WORKSPACE, hashlib.sha256(seed.encode()).hexdigest()[:24], "")
        view = await self._store.session(session_id)
        if view is None:
            raise web.UnknownSession(f"there is no session {session_id!r}")
        if view.agent != agent:
            raise web.InvalidRequest(
                f"session {session_id} belongs to agent {view.agent!r}", field="session_id"
            )
        return view.key

    async def wait_turn(self, posted: web.Posted) -> Json:
        last: Json = {}
        async for event in await self.turn_events(posted):
            if event.type == "done":
                last = json.loads(event.data)
        last.pop("type", None)
        return last

    async def turn_events(self, posted: web.Posted) -> AsyncIterator[web.WireEvent]:
        return self._of_one_turn(posted)

    async def _of_one_turn(self, posted: web.Posted) -> AsyncIterator[web.WireEvent]:
        with self._hub.listen(posted.session_id) as listener:
            turn_id = posted.turn_id
            while turn_id is None:
                turn_id = await self._store.turn_of_message(posted.session_id, posted.message_id)
                if turn_id is None:
                    await listener.wait(POLL)
            turn = await self._store.turn(turn_id)
            if turn is None:
                return
            number = turn.number
            async for event in self._follow(posted.session_id, number, -1):
                if event.id is None or event.id.startswith(f"{number}."):
                    yield event
                if event.type == "done":
                    return

    # ---- looking

    async def session(self, session_id: str) -> web.SessionView:
        view = await self._reader.session(session_id)
        if view is None:
            raise web.UnknownSession(f"there is no session {session_id!r}")
        return view

    async def sessions(self) -> Sequence[web.SessionSummary]:
        return await self._reader.sessions()

    async def events(self, session_id: str, after: str | None) -> AsyncIterator[web.WireEvent]:
        if await self._store.session(session_id) is None:
            raise web.UnknownSession(f"there is no session {session_id!r}")
        position = parse_event_id(after)
        if after and position is None:
            raise web.InvalidRequest(f"{after!r} is no event id", mend="leave it out", field="Last-Event-ID")
        number, index = position or (0, -1)
        return self._follow(session_id, number, index)

    async def _follow(self, session_id: str, number: int, index: int) -> AsyncIterator[web.WireEvent]:
        """Stored events after a position, and what grows in between, without end."""
        with self._hub.listen(session_id) as listener:
            while True:
                if listener.stale:
                    listener.stale = False
                    for event in await self._reader.events(session_id, number, index):
                        number, index = parse_event_id(event.id) or (number, index)
                        yield _wire(event)
                pieces, listener.deltas = listener.deltas, []
                if pieces:
                    grown = encode_event(AssistantDelta(text="".join(pieces)))
                    yield web.WireEvent(type="assistant:delta", data=grown)
                await listener.wait(POLL)

    async def pending(self, actor: ChannelActor) -> Sequence[web.PendingCard]:
        return [card_of(record) for record in await self._store.pendings()]

    async def audit(self, limit: int, before: int | None) -> Sequence[web.AuditEntry]:
        return [audit_entry(line) for line in await self._store.audit_lines(limit, before)]

    # ---- deciding

    async def resolve(
        self,
        pending_id: str,
        decision: Literal["approve", "deny"],
        *,
        edited_args: Json | None,
        scope: web.Scope,
        feedback: str,
        actor: ChannelActor,
    ) -> web.ClickResult:
        word: Resolution = Deny(feedback=feedback)
        if decision == "approve":
            word = Approve(scope=scope, edited_args=edited_args)
        return await self._decide(pending_id, word, actor)

    async def answer(
        self, pending_id: str, answer: str | list[str], *, actor: ChannelActor
    ) -> web.ClickResult:
        values = (answer,) if isinstance(answer, str) else tuple(answer)
        return await self._decide(pending_id, Answer(values=values), actor)

    async def _decide(self, pending_id: str, word: Resolution, actor: ChannelActor) -> web.ClickResult:
        click = Click(pending_id=pending_id, resolution=word, actor=actor_in(actor), via="http")
        try:
            result = await self._resolutions.decide(click)
        except StoreError as error:
            raise web.Unavailable(redact(str(error)), mend="send it again") from error
        details: dict[str, Any] = {"pending_id": pending_id}
        if result.record is not None:
            details["session_id"] = result.record.session_id
            if result.record.decided_at is not None:
                details |= {"by": result.record.decided_by, "at": result.record.decided_at}
        if result.outcome == "recorded":
            details["still_open"] = result.still_open
        if result.problems:
            details["problems"] = [{"field": name, "message": text} for name, text in result.problems]
        return web.ClickResult(outcome=result.outcome, message=result.text, details=details)

    async def stop(self, session_id: str, *, actor: ChannelActor) -> Json:
        view = await self._store.session(session_id)
        if view is None:
            raise web.UnknownSession(f"there is no session {session_id!r}")
        who = actor_in(actor)
        done = await self._store.stop(view.key, session_id, person(who), who, self._clock.now())
        self._turns.cancel(session_id, f"/stop by {person(who)}")
        self._turns.wake(session_id)
        self._hub.nudge(session_id)
        stopped = done.running or bool(done.closed)
        return {"stopped": stopped, "message": "Stopped." if stopped else "There is nothing to stop."}

    # ---- the process

    def health(self) -> Json:
        return {"status": "ok"}

    async def ready(self) -> tuple[bool, Json]:
        try:
            await self._store.sessions(limit=1)
        except StoreError as error:
            return False, {"store": redact(str(error))}
        return True, {"store": "ok"}

    def metrics(self) -> bytes | None:
        return None if self._metrics is None else self._metrics.text()


def _wire(event: WireEvent) -> web.WireEvent:
    return web.WireEvent(type=event.type, data=event.data, id=event.id)
