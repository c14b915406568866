"""Whatever clocks and processes do: each planned time of a schedule is carried out at most once, and what was
missed while nobody was there is made up for once."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gateway.app.people import ConfiguredRules
from gateway.messages import ThreadKey
from gateway.reminders import NOWHERE
from gateway.schedules import LATE, Schedules
from gateway.store.rows import Timer
from gateway.store.schedule_rows import Missed, Standing
from gateway.store.sqlite import SqliteStore
from gateway.timers import Timers
from gateway.timetable import Timing, first_after, last_until
from tests.contracts.sqlite_harness import SqliteHarness
from tests.contracts.store_scene import finished

KEY = ThreadKey("talk", "w", "board", "")
TIMINGS = (
    Timing(every=3_600.0),
    Timing(cron="*/20 1-3 * * *", zone="Europe/Berlin"),
    Timing(cron="5 */2 * * *"),
)
Step = tuple[str, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("on"), st.integers(1, 9_000)),
        st.tuples(st.just("back"), st.integers(1, 9_000)),
        st.tuples(st.just("outage"), st.integers(1, 400_000)),
        st.tuples(st.sampled_from(["sweep", "restart", "work", "look", "act"]), st.integers(0, 1)),
        st.tuples(st.just("race"), st.just(0)),
    ),
    max_size=30,
)


@dataclass
class Fleet:
    """Two processes over one database, which die and come back."""

    harness: SqliteHarness
    standing: Standing
    stores: list[SqliteStore] = field(default_factory=list)
    seen: dict[int, tuple[float, list[Timer]]] = field(default_factory=dict)

    async def start(self) -> None:
        self.stores = [await self.harness.open(), await self.harness.open()]
        for store in self.stores:
            await self.schedules(store).keep([self.standing])

    def schedules(self, store: SqliteStore) -> Schedules:
        rules = ConfiguredRules(default_agent="helper", workspaces={"talk": "w"})
        return Schedules(
            store, self.harness.clock, rules, lambda actor: False, lambda session_id: None, lambda: None
        )

    async def sweep(self, store: SqliteStore) -> None:
        carry_out = self.schedules(store).carry_out
        timers = Timers(
            store, self.harness.clock, lambda session: None, lambda session: None, NOWHERE, carry_out
        )
        await timers.sweep_once()

    async def work(self, store: SqliteStore) -> None:
        """Take up whatever waits, and bring it to an end."""
        now = self.harness.clock.now()
        for session_id in await store.claimable(now):
            claim = await store.claim(session_id, now)
            if claim is not None:
                await finished(store, claim, self.harness.clock)

    async def restart(self, place: int) -> None:
        await self.harness.kill(self.stores[place])
        self.stores[place] = await self.harness.open()
        await self.schedules(self.stores[place]).keep([self.standing])

    async def step(self, name: str, number: int) -> None:
        clock = self.harness.clock
        match name:
            case "on" | "outage":
                clock.advance(number)
            case "back":
                clock.set_wall(clock.now() - number)
            case "sweep":
                await self.sweep(self.stores[number])
            case "race":
                await asyncio.gather(*map(self.sweep, self.stores))
            case "restart":
                await self.restart(number)
            case "look":
                self.seen[number] = (clock.now(), await self.stores[number].due_timers(clock.now()))
            case "act":  # on what it saw then, however much has happened since
                at, due = self.seen.get(number, (0.0, []))
                for timer in due:
                    await self.schedules(self.stores[number]).carry_out(timer, at)
            case _:
                await self.work(self.stores[number])

    async def fired(self) -> list[float]:
        """The planned times that were carried out, in the order in which that happened."""
        lines = await self.stores[0].audit_lines(limit=1_000)
        return [line.body["planned"] for line in reversed(lines) if line.kind == "fired"]


async def played(folder: Path, timing: Timing, missed: Missed, steps: list[Step]) -> None:
    harness = SqliteHarness(folder / "threadgate.db")
    standing = Standing(
        name="watch", agent="helper", key=KEY, timing=timing, instruction="look", missed=missed
    )
    fleet = Fleet(harness, standing)
    try:
        await fleet.start()
        for name, number in steps:
            await fleet.step(name, number)
        await fleet.work(fleet.stores[0])
        before = await fleet.fired()
        (record,) = await fleet.stores[0].schedules()
        real = record.schedule.timing
        # An outage, longer than any way between two planned times.
        harness.clock.set_wall(max(harness.clock.now(), record.due_at) + 90_000)
        now = harness.clock.now()
        await asyncio.gather(*map(fleet.sweep, fleet.stores))
        last = last_until(real, record.due_at, now)
        made_up = [] if missed == "skip" and now - last > LATE else [last]
        fired = await fleet.fired()
        assert fired == [*before, *made_up]
        assert len(set(fired)) == len(fired), "a planned time was carried out twice"
        assert all(first_after(real, planned - 1) == planned for planned in fired)
        (following,) = await fleet.stores[0].schedules()
        assert following.due_at > now
        await fleet.work(fleet.stores[1])
        (session,) = await fleet.stores[0].sessions() if fired else (None,)
        if session is not None:
            told = [m for m in await fleet.stores[0].log(session.id) if m.role == "user"]
            assert len(told) == len(fired)
    finally:
        await harness.close()


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(timing=TIMINGS[0], missed="once", steps=[("on", 3_600), ("race", 0), ("back", 3_000), ("race", 0)])
@example(
    timing=TIMINGS[0],
    missed="once",
    steps=[("on", 3_600), ("look", 0), ("sweep", 1), ("work", 1), ("act", 0), ("act", 0)],
)
@example(timing=TIMINGS[0], missed="skip", steps=[("outage", 40_000), ("restart", 0), ("race", 0)])
@given(timing=st.sampled_from(TIMINGS), missed=st.sampled_from(["once", "skip"]), steps=STEPS)
def test_each_planned_time_is_carried_out_at_most_once_and_an_outage_is_made_up_for(
    timing: Timing, missed: Missed, steps: list[Step]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(played(Path(folder), timing, missed, steps))
