"""A gateway over a real SQLite file, with a scripted model, a platform in memory, and a clock that
tests move: no duty runs by itself, `settle` does their work until nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from channels.base import ThreadKey as Place
from gateway.agent import Agent
from gateway.app.gateway import Gateway, Parts
from gateway.app.people import ConfiguredRules, RouteRule
from gateway.eventlog import Stored, unpack
from gateway.events import Event
from gateway.gate import Gate, Rule
from gateway.history import repaired
from gateway.messages import Message, ThreadKey
from gateway.providers.base import ModelRequest, ModelResponse, OnDelta
from gateway.providers.scripted import Call, Reply, ReplyLike, ScriptedModel, spoken
from gateway.store.base import Store
from gateway.store.rows import Claim, PendingRecord, SessionView
from gateway.store.sqlite import SqliteStore
from gateway.tools.base import Tool, tool
from tests.clock import FakeClock
from tests.unit.gateway.talk import ELSEWHERE, HERE, TalkChannel, World

PATIENCE = 15.0  # seconds; only a failing test waits that long
PAY = Rule(tool="pay", decision="ask", reason="money leaves the house")


def call(name: str, **args: Any) -> Call:
    return Call(tool=name, args=args)


def calls(*wanted: Call, text: str = "") -> Reply:
    return Reply(text=text, calls=wanted)


class Hold:
    """A place where something waits until the test lets it go on."""

    def __init__(self) -> None:
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self.go.wait()

    async def is_reached(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.reached.wait()


@dataclass
class House:
    """What outlives a process: the file, the platform, the clock, what the tools did. `plan`: by
    the text of a message, the model's replies to it in order; anything else is repeated. `holds`:
    by a tool's name, a message's text, or `text#n` for its nth model call."""

    folder: Path
    clock: FakeClock = field(default_factory=FakeClock)
    world: World = field(default_factory=World)
    plan: dict[str, Sequence[ReplyLike]] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    requests: list[ModelRequest] = field(default_factory=list)
    holds: dict[str, Hold] = field(default_factory=dict)
    events: list[tuple[str, Event]] = field(default_factory=list)

    def hold(self, place: str) -> Hold:
        self.holds[place] = Hold()
        return self.holds[place]

    async def pause(self, place: str) -> None:
        if place in self.holds:
            await self.holds[place].wait()

    def tools(self) -> tuple[Tool, ...]:
        """pay asks first; send may run once only, note twice, look whenever; deaf hears nothing."""

        @tool(secret=["key"])
        async def pay(order: str, amount: float = 10, key: str = "sk-live-0123456789") -> str:
            """Pay."""
            self.ran.append(f"pay {order} {amount:g}")
            await self.pause("pay")
            return f"paid {amount:g} for {order}"

        @tool
        async def send(to: str) -> str:
            """Send."""
            self.ran.append(f"send {to}")
            await self.pause("send")
            return f"sent to {to}"

        @tool(idempotent=True)
        async def note(text: str) -> str:
            """Write down."""
            self.ran.append(f"note {text}")
            await self.pause("note")
            return f"noted {text}"

        @tool(safe=True)
        async def look(at: str) -> str:
            """Look."""
            self.ran.append(f"look {at}")
            await self.pause("look")
            return f"saw {at}"

        @tool(timeout=600)
        async def deaf() -> str:
            """Hear nothing."""
            self.ran.append("deaf")
            hold = self.holds["deaf"]
            hold.reached.set()
            while not hold.go.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await hold.go.wait()
            return "too late"

        return pay, send, note, look, deaf

    def agent(self, **changes: Any) -> Agent:
        """The agent; `rule` changes the rule about `pay`, `rules` come before it."""
        rule = replace(PAY, **changes.pop("rule", {}))
        gate = Gate(rules=(*changes.pop("rules", ()), rule), default_decision="allow")
        name = changes.pop("name", "helper")
        return Agent(name=name, tools=self.tools(), gate=gate, **changes)


class HouseModel:
    """Follows the house's plan; remembers what it was asked."""

    def __init__(self, house: House) -> None:
        self._house, self._scripted = house, ScriptedModel(self._reply, chunk=4)

    @property
    def id(self) -> str:
        return self._scripted.id

    def _reply(self, request: ModelRequest) -> ReplyLike:
        start, text = spoken(request.messages)
        position = sum(m.role == "assistant" for m in request.messages[start + 1 :])
        replies = self._house.plan.get(text, [f"you said: {text}"])
        return replies[position] if position < len(replies) else "done"

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        self._house.requests.append(replace(request, messages=list(request.messages)))
        start, text = spoken(request.messages)
        position = sum(m.role == "assistant" for m in request.messages[start + 1 :])
        await self._house.pause(text if not position else f"{text}#{position}")
        return await self._scripted.complete(request, on_delta)

    async def close(self) -> None:
        await self._scripted.close()


@dataclass
class Office:
    """One running process."""

    house: House
    gateway: Gateway
    talk: TalkChannel
    dead: bool = False

    @property
    def store(self) -> Store:
        return self.gateway.store

    @property
    def world(self) -> World:
        return self.house.world

    async def settle(self) -> None:
        """Do everything that can be done now."""
        async with asyncio.timeout(PATIENCE):
            while True:
                await self.quiet()
                swept = await self.gateway.turns.sweep_once()
                swept += await self.gateway.deliveries.sweep_once() + await self.gateway.timers.sweep_once()
                await self.gateway.turns.heartbeat_once()
                if not swept and not self.busy:
                    return

    @property
    def busy(self) -> bool:
        turns = self.gateway.turns
        return bool(turns._running or turns._claiming or self.gateway.deliveries._tasks)

    async def quiet(self) -> None:
        """Wait until nothing runs, without any duty."""
        turns = self.gateway.turns
        while True:
            await self.gateway.intake.idle()
            running = [task for task, _ in turns._running.values()]
            if not running and not turns._claiming:
                await self.gateway.deliveries.idle()
                if not self.busy and not self.gateway.intake._tasks:
                    return
            elif tasks := {*running, *turns._claiming}:
                await asyncio.wait(tasks)

    async def until(self, condition: Callable[[], Any]) -> None:
        """The one place where something is waited for by looking again."""
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110 - rows and platform give no events
                await asyncio.sleep(0.002)

    async def say(self, text: str, **more: Any) -> str:
        """A person writes, and everything that follows happens."""
        identity = await self.talk.say(text, **more)
        await self.settle()
        return identity

    async def press(self, ref: str | None, data: str, **more: Any) -> str:
        """A person presses, everything that follows happens; what the person was told."""
        before = len(self.world.answers)
        await self.talk.press(ref, data, **more)
        await self.settle()
        told = self.world.answers[before:]
        assert len(told) == 1, told
        return told[0][1]

    async def session(self, key: Place = HERE) -> SessionView:
        view = await self.store.session_of(ThreadKey(*key))
        assert view is not None
        return view

    async def log(self, key: Place = HERE) -> list[Message]:
        """The thread's log; always valid for a model."""
        log = await self.store.log((await self.session(key)).id)
        if log and not (log[-1].role == "assistant" and log[-1].calls):
            assert repaired(log) == log
        return log

    async def pendings(self, **more: Any) -> list[PendingRecord]:
        return await self.store.pendings(**more)

    async def stored_events(self) -> list[tuple[str, str]]:
        """(type, data) of everything that is stored about the thread's session, in order."""
        session = (await self.session()).id
        log = await self.store.log(session)
        results = {r.tool_use_id: r.content for message in log for r in message.results}
        for row in await self.store.calls(session):
            if row.result is not None:
                results.setdefault(row.call_id, row.result.content)
        found = []
        for turn in await self.store.turns_after(session, 0):
            stored = Stored(turn=turn, log=log, first_seq=0, results=results)
            found += [(event.type, event.data) for event in unpack(stored)]
        return found

    async def audit(self) -> list[str]:
        """The kinds of the record's lines, oldest first."""
        return [line.kind for line in reversed(await self.store.audit_lines())]

    async def kill(self) -> None:
        """What SIGKILL does: nothing is written any more, locks are let go by the kernel."""
        self.dead = True
        store = self.store
        assert isinstance(store, SqliteStore)
        store._writer = None
        os.close(store._presence._held.pop(store.runner))
        turns = self.gateway.turns
        turns._draining = True
        tasks: list[asyncio.Task[Any]] = [task for task, _ in turns._running.values()]
        tasks += [*turns._claiming, *self.gateway.deliveries._tasks, *self.gateway.intake._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for database in (store._reading, store._writing):
            if database is not None:
                await database.close()
        store._reading = store._writing = None

    async def end(self) -> None:
        """SIGTERM."""
        if not self.dead:
            self.dead = True
            await self.gateway.stop()


def parts(house: House, talk: TalkChannel, agents: Sequence[Agent], **changes: Any) -> Parts:
    model = HouseModel(house)
    rules = ConfiguredRules(
        default_agent=agents[0].name,
        users={"talk": frozenset({"ann", "bob"})},
        approvers=changes.pop("approvers", {}),
        routes=changes.pop("routes", [RouteRule(match="talk:w:ops", agent=agents[-1].name, tenant="acme")]),
        workspaces={"talk": "w"},
        threaded=changes.pop("threaded", frozenset()),
    )
    given: dict[str, Any] = {
        "store": SqliteStore(house.folder / "gateway.db", clock=house.clock),
        "agents": {agent.name: agent for agent in agents},
        "model_of": lambda agent: model,
        "rules": rules,
        "channels": (talk,),
        "operators": ("web:local",),
        "drain": 0.2,
        "clock": house.clock,
    }
    return Parts(**{**given, **changes})


@asynccontextmanager
async def running(house: House, *agents: Agent, **changes: Any) -> AsyncIterator[Office]:
    """One process over the house; several may run at once. Ends in order unless it was killed."""
    talk = TalkChannel(house.world)
    gateway = Gateway(parts(house, talk, agents or (house.agent(),), **changes))
    heard = gateway._on_event

    def listen(claim: Claim, event: Event) -> None:
        house.events.append((claim.lease.session_id, event))
        heard(claim, event)

    gateway.turns._ports = replace(gateway.turns._ports, on_event=listen)
    await gateway.start()
    for duty in gateway._duties:
        duty.cancel()
    await asyncio.gather(*gateway._duties, return_exceptions=True)
    office = Office(house, gateway, talk)
    try:
        yield office
    finally:
        await office.end()


__all__ = ["ELSEWHERE", "HERE", "Hold", "House", "Office", "call", "calls", "running"]
