"""People, clock and crashes in any order, against what must hold of agents that call agents."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.agent import Agent, Subagent
from gateway.approvals import Approve
from gateway.history import repaired
from gateway.tools.subagent import with_subagents
from tests.unit.gateway.scene import House, Office, call, calls, running

PROCESS = st.integers(0, 1)
SHAPE = st.lists(st.sampled_from(["pay", "pay pay", "deep", "look"]), min_size=1, max_size=3)
WORD = st.sampled_from(["/approve", "/approve", "/deny", "/deny {} look instead"])
ACTIONS = st.one_of(
    st.tuples(st.just("go"), PROCESS, SHAPE),
    st.tuples(st.just("decide"), PROCESS, st.integers(0, 5), WORD),
    st.tuples(st.just("decide"), PROCESS, st.integers(0, 5), WORD),
    st.tuples(st.just("command"), PROCESS, st.sampled_from(["/stop", "/new"])),
    st.tuples(st.just("wait"), PROCESS, st.sampled_from([1.0, 4_000.0])),
    st.tuples(st.just("crash"), PROCESS, st.booleans()),
)


def family(house: House, *, goes_on: bool) -> list[Agent]:
    """boss calls ops, and ops calls deep; a call that waits lapses after an hour."""
    changes: dict[str, Any] = {"rule": {"expires": 3_600.0}}
    agents = [
        house.agent(
            name="boss",
            subagents=(Subagent(agent="ops"),),
            on_denial="continue" if goes_on else "stop",
            **changes,
        ),
        house.agent(name="ops", tool_description="d", subagents=(Subagent(agent="deep"),), **changes),
        house.agent(name="deep", tool_description="d", **changes),
    ]
    return list(with_subagents({agent.name: agent for agent in agents}).values())


@dataclass
class Game:
    """One house with two processes on its file, each of which may die at any time."""

    house: House
    goes_on: bool
    numbers: int = 0
    offices: list[Office] = field(default_factory=list)
    stacks: list[AsyncExitStack] = field(default_factory=list)

    async def play(self, actions: list[tuple[Any, ...]]) -> None:
        try:
            for place in (0, 1):
                await self.open(place)
            for name, which, *more in actions:
                if name == "crash":
                    await self.crash(which, *more)
                else:
                    await getattr(self, f"do_{name}")(self.offices[which], *more)
                await self.settle()
                await self.check(self.offices[which])
            assert await self.offices[0].store.verify_audit() is None
        finally:
            for stack in self.stacks:
                await stack.aclose()

    async def open(self, place: int) -> None:
        stack = AsyncExitStack()
        agents = family(self.house, goes_on=self.goes_on)
        office = await stack.enter_async_context(running(self.house, *agents))
        self.offices[place : place + 1] = [office]
        self.stacks[place : place + 1] = [stack]

    async def settle(self) -> None:
        for office in (*self.offices, *self.offices):
            await office.gateway.turns.heartbeat_once()
            await office.settle()

    async def crash(self, which: int, busy: bool) -> None:
        """A process is killed, at work or not; the other one finds what it left."""
        office = self.offices[which]
        if busy:
            await office.talk.say(self.a_task(["pay", "deep"]))
            for _ in range(self.numbers % 40):
                await asyncio.sleep(0)
        await office.kill()
        await self.stacks[which].aclose()
        other = self.offices[1 - which]
        await other.gateway.turns.heartbeat_once()
        await other.settle()
        await self.open(which)

    # ---- moves

    def a_task(self, shape: list[str]) -> str:
        """The text of a message that leads to these calls of ops."""
        tasks = [self.a_call(one) for one in shape]
        self.numbers += 1
        text = f"go {self.numbers}"
        self.house.plan[text] = [calls(*(call("ops", task=task) for task in tasks)), "all done"]
        return text

    def a_call(self, what: str) -> str:
        self.numbers += 1
        task = f"{what} {self.numbers}"
        match what:
            case "deep":
                below = self.a_call("pay")
                self.house.plan[task] = [calls(call("deep", task=below)), "done below"]
            case "look":
                self.house.plan[task] = [calls(call("look", at=task)), "looked"]
            case _:
                orders = [f"o{self.numbers}.{n}" for n in range(len(what.split()))]
                self.house.plan[task] = [calls(*(call("pay", order=order) for order in orders)), "paid"]
        return task

    async def do_go(self, office: Office, shape: list[str]) -> None:
        await office.say(self.a_task(shape))

    async def do_decide(self, office: Office, place: int, word: str) -> None:
        open_now = await office.pendings()
        if open_now:
            code = open_now[place % len(open_now)].pending.code
            await office.say(word.format(code) if "{}" in word else f"{word} {code}")

    async def do_command(self, office: Office, command: str) -> None:
        await office.say(command)

    async def do_wait(self, office: Office, seconds: float) -> None:
        self.house.clock.advance(seconds)

    # ---- what must hold

    async def check(self, office: Office) -> None:
        records = await office.pendings(open_only=False, limit=1_000)
        asked = {r.pending.args["order"]: r for r in records if r.pending.kind == "approval"}
        for what, times in Counter(line for line in self.house.ran if line.startswith("pay ")).items():
            assert times == 1, what
            assert isinstance(asked[what.split()[1]].decision, Approve), what
        store: Any = office.store
        rows = await store._read(
            lambda db: db.execute("SELECT id, status, parent, root FROM sessions").fetchall()
        )
        status = {row[0]: row[1] for row in rows}
        waits = {row[0]: 0 for row in rows}
        parent = {row[0]: row[2] for row in rows}
        for record in records:
            session = record.session_id if record.state == "open" else ""
            while session:
                waits[session] += 1
                session = parent[session]
        for session, count in waits.items():
            assert status[session] == ("pending" if count else "idle"), (session, status[session], count)
            log = await office.store.log(session)
            if status[session] == "idle":
                assert repaired(log) == log, session
        live = Counter(self.house.world.live())
        assert bool(live) == any(record.state == "open" for record in records)


@settings(max_examples=60, deadline=None)
@given(actions=st.lists(ACTIONS, min_size=1, max_size=8), goes_on=st.booleans())
def test_whatever_happens_calls_run_once_and_nobody_waits_for_nothing(
    actions: list[tuple[Any, ...]], goes_on: bool
) -> None:
    async def play() -> None:
        with tempfile.TemporaryDirectory() as folder:
            await Game(House(Path(folder)), goes_on).play(actions)

    asyncio.run(play())
