"""The gateway as the web channel sees it. Views are made in sessions.py, events in following.py;
this talks and decides."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from channels.base import Actor as ChannelActor
from channels.web import backend as web
from gateway.agent import Agent
from gateway.app.eyes import EventEyes, Eyes
from gateway.app.following import POLL, Events, Followed, Place
from gateway.app.hub import Hub
from gateway.app.logs import Logs
from gateway.app.metrics import Metrics
from gateway.app.outlet import below
from gateway.app.sessions import SessionReader, audit_entry, card_of, grant_line, schedule_line
from gateway.approvals import Answer, Approve, Deny, Resolution
from gateway.bridge import Said, actor_in
from gateway.clock import Clock
from gateway.errors import StoreError
from gateway.eventlog import parse_event_id
from gateway.intake import Intake
from gateway.log import redact
from gateway.messages import Actor, Json, ThreadKey, new_id
from gateway.notices import ONE_QUESTION, all_text, click_text, deciders_text, person
from gateway.questions import pack_answers
from gateway.requests import Requests, Who
from gateway.resolutions import MOST_LOOKED_AT, Click, ClickResult, Resolutions
from gateway.schedules import Schedules
from gateway.store.base import Store
from gateway.store.rows import PendingRecord
from gateway.turns import Turns

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
        requests: Requests,
        schedules: Schedules,
        metrics: Metrics | None = None,
        folder: Path = Path("var"),
        tool_servers_down: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """`folder`: the data folder, below which the pictures of previews are. `tool_servers_down`: those
        that nothing works without, and why."""
        self._store, self._agents, self._default_agent = store, agents, default_agent
        self._intake, self._turns, self._resolutions = intake, turns, resolutions
        self._hub, self._clock, self._metrics, self._requests = hub, clock, metrics, requests
        self._schedules = schedules
        self._folder, self._tool_servers_down = folder, tool_servers_down
        self._eyes = Eyes(store, resolutions, clock, folder)
        logs = Logs(store)
        self._reader = SessionReader(store, agents, logs)
        self._events = Events(store, logs, hub)

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
        who = actor_in(actor)
        if not self._intake.may_talk(who):
            raise web.Forbidden(f"{who} may not talk to the agents here", mend="ask whoever runs them")
        with _stored():
            key, identity = await self._place(agent, session_id, who, message_id or new_id("m"))
            at = self._clock.now()
            said = Said(key=key, message_id=identity, actor=who, text=text, at=at, private=True)
            answer = None if session_id is None else await self._intake.obey(said)
            if session_id is not None and answer is not None:
                return await self._obeyed(said, session_id, answer)
            accepted = await self._intake.accept(said, session_id=session_id or "", agent=agent)
            self._hub.nudge(accepted.session_id)
            turn_id = accepted.claim.lease.turn_id if accepted.claim is not None else None
            duplicate = accepted.outcome == "duplicate"
            if duplicate:
                turn_id = await self._store.turn_of_message(accepted.session_id, identity)
            waits = duplicate and turn_id is None and await self._waits(accepted.session_id, identity)
        return web.Posted(
            session_id=accepted.session_id,
            message_id=identity,
            turn_id=turn_id,
            queued=accepted.outcome == "queued" or waits,
            duplicate=duplicate,
        )

    async def _place(
        self, agent: str, session_id: str | None, actor: Actor, message_id: str
    ) -> tuple[ThreadKey, str]:
        """The session's thread, or a new web conversation that a repeated request finds again; and
        the message's identity there, which is never that of a platform's own message."""
        if session_id is None:
            seed = "\n".join((*actor, message_id))
            conversation = hashlib.sha256(seed.encode()).hexdigest()[:24]
            return ThreadKey(WEB, WORKSPACE, conversation, ""), message_id
        view = await self._store.session(session_id)
        if view is None:
            raise _unknown(session_id)
        if view.parent:
            mend = f"write to {view.root}, whose agent calls it"
            problem = f"session {session_id} is a subagent's"
            raise web.InvalidRequest(problem, mend=mend, field="session_id")
        if view.agent != agent:
            raise web.InvalidRequest(
                f"session {session_id} belongs to agent {view.agent!r}", field="session_id"
            )
        foreign = view.key.channel != WEB and not message_id.startswith(f"{WEB}:")
        return view.key, f"{WEB}:{message_id}" if foreign else message_id

    async def _obeyed(self, said: Said, session_id: str, answer: str) -> web.Posted:
        """A command was carried out. `/new` leads to another session."""
        current = await self._store.session_of(said.key)
        fresh = current is not None and said.text.split()[0].casefold() == "/new"
        self._hub.nudge(session_id)
        return web.Posted(
            session_id=current.id if current is not None and fresh else session_id,
            message_id=said.message_id,
            duplicate=not answer,
            answer=answer or "This command was carried out before.",
        )

    async def _waits(self, session_id: str, message_id: str) -> bool:
        return message_id in {queued for queued, _ in await self._store.queued_texts(session_id)}

    async def wait_turn(self, posted: web.Posted) -> Json:
        if posted.answer is not None:
            return _told(posted)
        with _stored():
            session_id, number = await self._taken(posted)
            await self._events.ended(session_id, number)
            async for event in self._of_one_turn(session_id, number):
                if event.type == "done":
                    done: Json = json.loads(event.data)
                    done.pop("type")
                    return done
        raise web.Unavailable("the turn cannot be read now", mend="ask for the session")

    async def turn_events(self, posted: web.Posted, *, actor: ChannelActor) -> AsyncIterator[web.WireEvent]:
        if posted.answer is not None:
            return _as_events(_told(posted))
        return self._told_live(posted, actor_in(actor))

    async def _told_live(self, posted: web.Posted, actor: Actor) -> AsyncIterator[web.WireEvent]:
        session_id, number = await self._taken(posted)
        eyes = EventEyes(self._store, self._eyes, actor, session_id)
        async for event in self._of_one_turn(session_id, number):
            yield _wire(await eyes.read(event))

    async def _of_one_turn(self, session_id: str, number: int) -> AsyncIterator[Followed]:
        async for batch in self._events.follow(session_id, Place(number=number)):
            for event in batch:
                yield event
                if event.type == "done":
                    return

    async def _taken(self, posted: web.Posted) -> tuple[str, int]:
        """(session id, number) of the turn that takes the message, once there is one."""
        session_id, number = posted.session_id, 0
        with self._hub.listen(session_id, live=False) as listener:
            while number == 0:
                session_id, number = await self._taken_by(session_id, posted)
                if number == 0:
                    await listener.wait(POLL)
        return session_id, number

    async def _taken_by(self, session_id: str, posted: web.Posted) -> tuple[str, int]:
        """(session id, number) of the turn that took the message; number 0 while it waits. What
        waited when somebody said `/new` waits in the thread's next session."""
        turn_id = posted.turn_id or await self._store.turn_of_message(session_id, posted.message_id)
        if turn_id is None and not await self._waits(session_id, posted.message_id):
            view = await self._store.session(session_id)
            current = await self._store.session_of(view.key) if view is not None else None
            if current is not None and current.id != session_id:
                session_id = current.id
            turn_id = await self._store.turn_of_message(session_id, posted.message_id)
        turn = await self._store.turn(turn_id) if turn_id else None
        return session_id, turn.number if turn is not None else 0

    # ---- looking

    async def session(self, session_id: str, start: int = 0, *, actor: ChannelActor) -> web.SessionView:
        who = actor_in(actor)
        seen: list[PendingRecord] = []

        def see(record: PendingRecord) -> bool:
            seen.append(record)
            return self._eyes.see(who, record)

        with _stored():
            view = await self._reader.session(session_id, start, see)
            await self._eyes.viewed(who, seen)
        if view is None:
            raise _unknown(session_id)
        return view

    async def sessions(self) -> Sequence[web.SessionSummary]:
        with _stored():
            return await self._reader.sessions()

    async def events(
        self, session_id: str, after: str | None, *, actor: ChannelActor
    ) -> AsyncIterator[web.WireEvent]:
        place: Place | None = Place()
        with _stored():
            if await self._store.session(session_id) is None:
                raise _unknown(session_id)
            if after:
                position = parse_event_id(after)
                place = await self._events.place(session_id, *position) if position else None
        if place is None:
            mend = "leave it out to read from the first event"
            raise web.InvalidRequest(
                f"{after!r} is no event of this session", mend=mend, field="Last-Event-ID"
            )
        return self._from(session_id, place, EventEyes(self._store, self._eyes, actor_in(actor), session_id))

    async def _from(self, session_id: str, place: Place, eyes: EventEyes) -> AsyncIterator[web.WireEvent]:
        async for batch in self._events.follow(session_id, place):
            for event in batch:
                yield _wire(await eyes.read(event))

    async def pending(self, actor: ChannelActor, mine: bool = False) -> Sequence[web.PendingCard]:
        now, who = self._clock.now(), actor_in(actor)
        with _stored():
            if mine:
                records = await self._resolutions.waiting(who, MOST_LOOKED_AT)
            else:
                records = await self._store.pendings(limit=MOST_LOOKED_AT)
            open_now = [r for r in records if r.pending.expires_at is None or r.pending.expires_at > now]
            await self._eyes.viewed(who, open_now)
        return [card_of(record, hidden=not self._eyes.see(who, record)) for record in open_now]

    async def preview_image(self, pending_id: str, *, actor: ChannelActor) -> tuple[bytes, str] | None:
        with _stored():
            record = await self._store.pending(pending_id)
        return None if record is None else await self._eyes.image(actor_in(actor), record)

    async def sent_file(self, session_id: str, number: int, *, actor: ChannelActor) -> web.SentFile | None:
        with _stored():
            file = await self._store.posted_file(session_id, number)
        path = None if file is None else await asyncio.to_thread(below, self._folder, file["path"])
        if file is None or path is None:
            return None
        return web.SentFile(path=path, name=file["name"], media_type=file["media_type"])

    async def grants(self) -> Sequence[web.GrantLine]:
        with _stored():
            return [grant_line(record) for record in await self._requests.grants()]

    async def schedules(self, actor: ChannelActor) -> Sequence[web.ScheduleLine]:
        with _stored():
            found = await self._schedules.visible(actor_in(actor), WEB)
        return [schedule_line(record) for record in found]

    async def cancel_schedule(self, schedule_id: str, *, actor: ChannelActor) -> web.ClickResult:
        with _stored():
            outcome, text = await self._schedules.cancel(schedule_id, _who(actor))
        return web.ClickResult(outcome=outcome, message=text, details={"schedule_id": schedule_id})

    async def audit(self, limit: int, before: int | None) -> Sequence[web.AuditEntry]:
        with _stored():
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

    async def resolve_card(
        self, card: str, decision: Literal["approve", "deny"], *, actor: ChannelActor
    ) -> web.ClickResult:
        word: Resolution = Approve() if decision == "approve" else Deny()
        with _stored():
            records = await self._store.pendings(card=card, open_only=False)
            waiting = [record for record in records if record.state == "open"] or records[-1:]
            results = []
            for record in waiting:
                last = record is waiting[-1]
                click = Click(
                    pending_id=record.id, resolution=word, actor=actor_in(actor), via="http", last=last
                )
                results.append(await self._resolutions.decide(click))
        if not results:
            return web.ClickResult(outcome="unknown", message=click_text("unknown", None))
        outcomes = [result.outcome for result in results]
        good: tuple[web.ClickOutcome, ...] = ("resumed", "recorded")
        return web.ClickResult(
            outcome=next((outcome for outcome in good if outcome in outcomes), outcomes[-1]),
            message=all_text([(result.outcome, result.text) for result in results]),
            details={
                "card": card,
                "session_id": waiting[0].home,
                "results": [
                    {"pending_id": record.id, "outcome": result.outcome, "message": result.text}
                    for record, result in zip(waiting, results, strict=True)
                ],
            },
        )

    async def answer(self, pending_id: str, answer: web.Answered, *, actor: ChannelActor) -> web.ClickResult:
        if not isinstance(answer, dict):
            return await self._decide(pending_id, Answer(values=_texts(answer)), actor)
        values = pack_answers({name: _texts(value) for name, value in answer.items()})
        with _stored():
            record = await self._store.pending(pending_id)
        one = record is not None and record.pending.question is not None and not record.pending.question.parts
        return await self._decide(pending_id, None if one else Answer(values=values), actor, ONE_QUESTION)

    async def _decide(
        self, pending_id: str, word: Resolution | None, actor: ChannelActor, trouble: str = ""
    ) -> web.ClickResult:
        who = actor_in(actor)
        click = Click(
            pending_id=pending_id,
            resolution=word,
            actor=who,
            via="http",
            trouble=trouble if word is None else "",
        )
        with _stored():
            result = await self._resolutions.decide(click)
        return _clicked(pending_id, result)

    async def cancel(self, pending_id: str, *, actor: ChannelActor) -> web.ClickResult:
        with _stored():
            return _clicked(pending_id, await self._requests.cancel(pending_id, _who(actor)))

    async def give(self, pending_id: str, to: str, *, actor: ChannelActor) -> web.ClickResult:
        with _stored():
            return _clicked(pending_id, await self._requests.give(pending_id, _who(actor), to))

    async def show(self, pending_id: str, *, actor: ChannelActor) -> web.ClickResult:
        with _stored():
            return _clicked(pending_id, await self._requests.show(pending_id, _who(actor)))

    async def revoke(self, grant_id: str, *, actor: ChannelActor) -> web.ClickResult:
        with _stored():
            outcome, text = await self._requests.revoke(grant_id, _who(actor))
        return web.ClickResult(outcome=outcome, message=text, details={"grant_id": grant_id})

    async def stop(self, session_id: str, *, actor: ChannelActor) -> Json:
        who = actor_in(actor)
        with _stored():
            view = await self._store.session(session_id)
            if view is None:
                raise _unknown(session_id)
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
        down = {name: redact(why) for name, why in self._tool_servers_down().items()}
        return not down, {"store": "ok", **({"tool_servers_down": down} if down else {})}

    def metrics(self) -> bytes | None:
        return None if self._metrics is None else self._metrics.text()


def _texts(value: web.Scalar | list[web.Scalar]) -> tuple[str, ...]:
    """The values of an answer as people would have typed them."""
    values = value if isinstance(value, list) else [value]
    return tuple(v if isinstance(v, str) else json.dumps(v) for v in values)


@contextmanager
def _stored() -> Iterator[None]:
    """The store's failures in the web channel's words."""
    try:
        yield
    except StoreError as error:
        raise web.Unavailable(redact(str(error)), mend="send it again") from error


def _who(actor: ChannelActor) -> Who:
    return Who(actor=actor_in(actor), via="http")


def _clicked(pending_id: str, result: ClickResult) -> web.ClickResult:
    details: dict[str, Any] = {"pending_id": pending_id}
    if result.record is not None:
        details["session_id"] = result.record.home
        if result.record.decided_at is not None:
            details |= {"by": result.record.decided_by, "at": result.record.decided_at}
    if result.outcome == "recorded":
        details["still_open"] = result.still_open
    if result.outcome == "forbidden" and result.record is not None:
        details["deciders"] = deciders_text(result.record)
    if result.problems:
        details["problems"] = [{"field": name, "message": text} for name, text in result.problems]
    return web.ClickResult(outcome=result.outcome, message=result.text, details=details)


def _unknown(session_id: str) -> web.UnknownSession:
    return web.UnknownSession(f"there is no session {session_id!r}", mend="GET /sessions lists them")


def _told(posted: web.Posted) -> Json:
    """The result of a command, in the fields of a turn's `done`."""
    return {
        "session_id": posted.session_id,
        "turn_id": None,
        "outcome": "completed",
        "status": "completed",
        "text": posted.answer or "",
        "pending": [],
        "exit_code": 0,
        "usage": {},
    }


async def _as_events(told: Json) -> AsyncIterator[web.WireEvent]:
    """A command has no turn: one `done`, which is not stored."""
    yield web.WireEvent(type="done", data=json.dumps({"type": "done", **told}, ensure_ascii=False))


def _wire(event: Followed) -> web.WireEvent:
    return web.WireEvent(type=event.type, data=event.data, id=event.id)
