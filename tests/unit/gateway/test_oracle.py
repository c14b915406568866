"""People, clock and crashes in any order, against what must hold in every one of them."""

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

from channels.base import Card, MessageRef
from gateway.approvals import Approve
from gateway.history import repaired
from gateway.store.rows import PendingRecord
from tests.unit.gateway.scene import House, Office, call, calls, running

PEOPLE = st.sampled_from(["ann", "ann", "bob", "eve"])
PLACE = st.integers(0, 40)  # which of the cards, of its buttons, of the options
ACTIONS = st.one_of(
    st.tuples(st.just("pay"), st.integers(1, 3), PEOPLE),
    st.tuples(st.just("ask"), PEOPLE),
    st.tuples(st.just("press"), PLACE, st.just(""), PEOPLE),
    st.tuples(st.just("press"), PLACE, st.sampled_from(["Approve", "Approve", "Deny", "red"]), PEOPLE),
    st.tuples(st.just("twice"), PLACE, PLACE),
    st.tuples(st.just("edit"), PLACE, st.sampled_from(["5", "15", "-", ""]), PEOPLE),
    st.tuples(
        st.just("type"), st.sampled_from(["1", "red", "something else", "/approve", "/deny", "/pending"])
    ),
    st.tuples(st.just("command"), st.sampled_from(["/new", "/stop"])),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 1_800.0, 90_000.0])),
    st.tuples(st.just("crash"), st.booleans()),
)
EXPIRES = 3_600.0


@dataclass
class Game:
    """One house whose process may die at any time. `seen`: every card that was ever shown, with the
    controls that it had then: what an old screen may still show."""

    house: House
    seen: list[tuple[MessageRef, str, str]] = field(default_factory=list)
    numbers: int = 0

    def remember(self) -> None:
        for ref, card in self.house.world.cards.items():
            for label, data in _controls(card):
                if (entry := (MessageRef(ref), label, data)) not in self.seen:
                    self.seen.append(entry)

    async def play(self, actions: list[tuple[Any, ...]]) -> None:
        rest = list(actions)
        while True:
            async with AsyncExitStack() as stack:
                rule = {"expires": EXPIRES, "approvers": ("requester", "talk:bob")}
                office = await stack.enter_async_context(running(self.house, self.house.agent(rule=rule)))
                await office.settle()
                self.remember()
                while rest and rest[0][0] != "crash":
                    name, *given_ = rest.pop(0)
                    await getattr(self, f"do_{name}")(office, *given_)
                    await office.settle()
                    self.remember()
                    await self.check(office)
                if not rest:
                    await office.settle()
                    await self.check(office)
                    return
                _, busy = rest.pop(0)
                if busy:
                    await self.do_pay(office, 2, "ann", settle=False)
                await office.kill()

    # ---- moves

    async def do_pay(self, office: Office, count: int, user: str, *, settle: bool = True) -> None:
        orders = [f"o{self.numbers + n}" for n in range(count)]
        self.numbers += count
        text = f"pay {' '.join(orders)}"
        self.house.plan[text] = [calls(*(call("pay", order=order) for order in orders)), "paid"]
        await office.talk.say(text, user=user)

    async def do_ask(self, office: Office, user: str) -> None:
        self.numbers += 1
        text = f"ask {self.numbers}"
        question = call(
            "ask_user", question="Which?", options=["red", "blue"], allow_text=bool(self.numbers % 2)
        )
        self.house.plan[text] = [calls(question), "thanks"]
        await office.talk.say(text, user=user)

    async def do_press(self, office: Office, which: int, label: str, user: str) -> None:
        shown = [entry for entry in self.seen if entry[1].startswith(label)]
        if shown:
            ref, _, data = shown[-1 - (which % len(shown))]
            await office.talk.press(ref, data, user=user)

    async def do_twice(self, office: Office, which: int, other: int) -> None:
        if self.seen:
            moves = [self.seen[-1 - (n % len(self.seen))] for n in (which, other)]
            await asyncio.gather(
                *(
                    office.talk.press(ref, data, user=user)
                    for (ref, _, data), user in zip(moves, ["ann", "bob"], strict=True)
                )
            )

    async def do_edit(self, office: Office, which: int, amount: str, user: str) -> None:
        edits = [entry for entry in self.seen if entry[1] == "Edit"]
        if edits:
            ref, _, data = edits[-1 - (which % len(edits))]
            await office.talk.press(ref, data, user=user, values={"amount": amount})

    async def do_type(self, office: Office, text: str) -> None:
        await office.talk.say(text)

    async def do_command(self, office: Office, text: str) -> None:
        await office.talk.say(text)

    async def do_wait(self, office: Office, seconds: float) -> None:
        self.house.clock.advance(seconds)

    # ---- what must hold

    async def check(self, office: Office) -> None:
        records = await office.store.pendings(open_only=False, limit=10_000)
        await self._ran_what_was_approved(office, records)
        await self._histories_are_valid(office)
        self._cards_tell_the_truth(records)

    async def _ran_what_was_approved(self, office: Office, records: list[PendingRecord]) -> None:
        approved: Counter[str] = Counter()
        covered: set[str] = set()
        for record in records:
            if isinstance(record.decision, Approve) and record.pending.tool == "pay":
                args = record.decision.edited_args or record.pending.args
                line = f"pay {args['order']} {args['amount']:g}"
                approved[line] += 1
                if record.decision.scope != "once":
                    covered.add(line)
                assert record.actor in ("talk:w:ann", "talk:w:bob"), record.actor
        ran = Counter(line for line in self.house.ran if line.startswith("pay "))
        for line, times in ran.items():
            assert times <= approved[line] or line in covered, (line, times, approved)

    async def _histories_are_valid(self, office: Office) -> None:
        for view in await office.store.sessions(1000):
            log = await office.store.log(view.id)
            waits = bool(log) and log[-1].role == "assistant" and bool(log[-1].calls)
            assert repaired(log) == log or waits
            called = [c.id for m in log for c in m.calls]
            answered = [r.tool_use_id for m in log for r in m.results]
            assert len(called) == len(set(called)) and len(answered) == len(set(answered))
            open_calls = [c.id for c in log[-1].calls] if waits else []
            assert sorted(answered + open_calls) == sorted(called)
            if waits:
                assert view.status == "pending", view

    def _cards_tell_the_truth(self, records: list[PendingRecord]) -> None:
        states = {record.id: record.state for record in records}
        for card in self.house.world.cards.values():
            for part in (card, *card.calls):
                if part.card_id in states and not part.calls:
                    shown = "open" if states[part.card_id] == "open" else "closed"
                    assert (part.state == "open") == (shown == "open"), (part, states[part.card_id])
                    assert bool(_controls(part)) == (part.state == "open")


def _controls(card: Card) -> list[tuple[str, str]]:
    own = [(b.label, b.data) for b in card.buttons] + [(c.label, c.data) for c in card.choices]
    return own + [control for part in card.calls for control in _controls(part)]


@settings(deadline=None)
@given(st.lists(ACTIONS, min_size=3, max_size=24))
def test_no_call_runs_without_a_valid_yes_on_its_arguments_nor_twice_and_every_card_tells_the_truth(
    actions: list[tuple[Any, ...]],
) -> None:
    async def game(folder: Path) -> None:
        async with asyncio.timeout(60):
            await Game(House(folder=folder)).play(actions)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(game(Path(folder)))
