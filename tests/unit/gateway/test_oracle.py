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

from channels.base import Card, InboundChange, MessageRef
from gateway.approvals import Approve
from gateway.history import repaired
from gateway.messages import ThreadKey
from gateway.patience import Escalation
from gateway.store.rows import PendingRecord
from tests.unit.gateway.scene import HERE, House, Office, call, calls, running

PEOPLE = st.sampled_from(["ann", "ann", "bob", "eve"])
PLACE = st.integers(0, 40)  # which of the cards, of its buttons, of the options
PROCESS = st.integers(0, 1)  # which of the two does something, or dies
ACTIONS = st.one_of(
    st.tuples(st.just("pay"), PROCESS, st.integers(1, 3), PEOPLE),
    st.tuples(st.just("ask"), PROCESS, PEOPLE),
    st.tuples(st.just("press"), PROCESS, PLACE, st.just(""), PEOPLE),
    st.tuples(
        st.just("press"),
        PROCESS,
        PLACE,
        st.sampled_from(["Approve", "Approve", "Deny", "red", "Conf"]),
        PEOPLE,
    ),
    st.tuples(st.just("twice"), PROCESS, PLACE, PLACE),
    st.tuples(st.just("edit"), PROCESS, PLACE, st.sampled_from(["5", "15", "-", ""]), PEOPLE),
    st.tuples(
        st.just("type"),
        PROCESS,
        st.sampled_from(["1", "red", "something else", "/approve", "/deny", "/pending"]),
    ),
    st.tuples(st.just("command"), PROCESS, st.sampled_from(["/new", "/stop"])),
    st.tuples(st.just("rewrite"), PROCESS, PLACE),
    st.tuples(st.just("delete"), PROCESS, PLACE),
    st.tuples(st.just("wait"), PROCESS, st.sampled_from([1.0, 700.0, 1_800.0, 90_000.0])),
    st.tuples(st.just("crash"), PROCESS, st.booleans()),
)
EXPIRES = 3_600.0
RULE: dict[str, Any] = {
    "expires": EXPIRES,
    "approvers": ("requester", "talk:bob"),
    "remind": (600.0, 1_200.0),
    "escalate": Escalation(after=1_500.0, notify=("talk:desk",), approvers=("talk:eve",)),
}


@dataclass
class Game:
    """One house with two processes on its file, each of which may die at any time. `seen`: every card that
    was ever shown, with the controls that it had then: what an old screen may still show. `gone`: what was
    taken away or rewritten while it waited. `wrote`: (message id, text) of
    what nobody else has written."""

    house: House
    seen: list[tuple[MessageRef, str, str]] = field(default_factory=list)
    numbers: int = 0
    offices: list[Office] = field(default_factory=list)
    stacks: list[AsyncExitStack] = field(default_factory=list)
    wrote: list[tuple[str, str]] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)

    def remember(self) -> None:
        for ref, card in self.house.world.cards.items():
            for label, data in _controls(card):
                if (entry := (MessageRef(ref), label, data)) not in self.seen:
                    self.seen.append(entry)

    async def play(self, actions: list[tuple[Any, ...]]) -> None:
        try:
            for place in (0, 1):
                await self.open(place)
            for name, which, *given_ in actions:
                if name == "crash":
                    await self.crash(which, *given_)
                else:
                    await getattr(self, f"do_{name}")(self.offices[which], *given_)
                await self.settle()
                self.remember()
                await self.check(self.offices[which])
            assert await self.offices[0].store.verify_audit() is None
        finally:
            for stack in self.stacks:
                await stack.aclose()

    async def open(self, place: int) -> None:
        """A process starts, instead of the one that died there."""
        stack = AsyncExitStack()
        office = await stack.enter_async_context(running(self.house, self.house.agent(rule=RULE)))
        self.offices[place : place + 1] = [office]
        self.stacks[place : place + 1] = [stack]

    async def settle(self) -> None:
        """Everything that can be done is done, whichever process does it."""
        for office in (*self.offices, *self.offices):
            await office.gateway.turns.heartbeat_once()
            await office.settle()

    async def crash(self, which: int, busy: bool) -> None:
        """A process is killed, in the middle of something or not; the other one goes on, and finds what it
        left, before another starts."""
        office = self.offices[which]
        if busy:
            await self.do_pay(office, 2, "ann")
        await office.kill()
        await self.stacks[which].aclose()
        other = self.offices[1 - which]
        await other.gateway.turns.heartbeat_once()
        await other.settle()
        await self.open(which)

    # ---- moves

    async def do_pay(self, office: Office, count: int, user: str) -> None:
        await self.write(office, self.a_payment(count), user)

    def a_payment(self, count: int) -> str:
        """The text of a message that leads to payments."""
        orders = [f"o{self.numbers + n}" for n in range(count)]
        self.numbers += count
        text = f"pay {' '.join(orders)}"
        self.house.plan[text] = [calls(*(call("pay", order=order) for order in orders)), "paid"]
        return text

    async def do_ask(self, office: Office, user: str) -> None:
        self.numbers += 1
        text = f"ask {self.numbers}"
        free, sure = bool(self.numbers % 2), bool(self.numbers % 3 == 0)
        question = call("ask_user", question="Which?", options=["red", "blue"], allow_text=free, confirm=sure)
        self.house.plan[text] = [calls(question), "thanks"]
        await self.write(office, text, user)

    async def write(self, office: Office, text: str, user: str) -> None:
        self.wrote.append((await office.talk.say(text, user=user), text))

    async def do_rewrite(self, office: Office, which: int) -> None:
        """Somebody edits a message: one that waits is another from now on, any other stays what it was."""
        if self.wrote:
            place = -1 - (which % len(self.wrote))
            message_id, before = self.wrote[place]
            after = self.a_payment(1)
            if await self.waits(office, message_id):
                self.gone.add(before)
                self.wrote[place] = (message_id, after)
            else:
                self.gone.add(after)
            await office.talk.say(after, message_id=message_id, edited=True)

    async def do_delete(self, office: Office, which: int) -> None:
        """Somebody takes a message away: one that waits is never read."""
        if self.wrote:
            message_id, text = self.wrote[-1 - (which % len(self.wrote))]
            if await self.waits(office, message_id):
                self.gone.add(text)
            change = InboundChange(thread=HERE, kind="deleted", message_id=message_id)
            assert office.talk.inbound is not None
            await office.talk.inbound.change(change)

    async def waits(self, office: Office, message_id: str) -> bool:
        view = await office.store.session_of(ThreadKey(*HERE))
        queued = await office.store.queued_texts(view.id) if view is not None else []
        return message_id in {waiting for waiting, _ in queued}

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
        await self._each_thing_happened_once(office)

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
                after = record.decided_at is not None and record.decided_at - record.requested_at
                late = isinstance(after, float) and after >= 1_500.0
                assert record.actor in ("talk:w:ann", "talk:w:bob", *(["talk:w:eve"] if late else []))
        ran = Counter(line for line in self.house.ran if line.startswith("pay "))
        for line, times in ran.items():
            assert times <= approved[line] or line in covered, (line, times, approved)

    async def _histories_are_valid(self, office: Office) -> None:
        for view in await office.store.sessions(1000):
            log = await office.store.log(view.id)
            assert self.gone.isdisjoint(m.text for m in log if m.role == "user"), self.gone
            waits = bool(log) and log[-1].role == "assistant" and bool(log[-1].calls)
            assert repaired(log) == log or waits
            called = [c.id for m in log for c in m.calls]
            answered = [r.tool_use_id for m in log for r in m.results]
            assert len(called) == len(set(called)) and len(answered) == len(set(answered))
            open_calls = [c.id for c in log[-1].calls] if waits else []
            assert sorted(answered + open_calls) == sorted(called)
            if waits:
                assert view.status == "pending", view

    async def _each_thing_happened_once(self, office: Office) -> None:
        """One decision for each request, each reminder once, one escalation; and none after the end."""
        lines = list(reversed(await office.store.audit_lines(10_000)))
        told = Counter((line.pending_id, line.kind) for line in lines)
        for (pending_id, kind), times in told.items():
            assert kind != "reminded" or times <= 2, (pending_id, times)
            assert kind != "escalated" or times == 1, (pending_id, times)
        ends = ("approved", "denied", "answered", "expired", "superseded", "cancelled")
        closed: set[str] = set()
        for line in lines:
            assert line.pending_id not in closed or line.kind not in (*ends, "reminded", "escalated"), line
            closed |= {line.pending_id} if line.kind in ends else set()

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
