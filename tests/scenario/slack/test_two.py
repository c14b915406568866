"""Two gateways that are connected at once: what one has posted or opened, the other takes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.platforms.slack import SlackServer
from tests.platforms.slack.sockets import Connection
from tests.scenario.slack.house import ADA, BOB, GENERAL, House, Scene, running


@dataclass
class Pair:
    """Two gateways on one database, and which connections are whose."""

    one: Scene
    two: Scene
    ones: list[Connection]
    twos: list[Connection]

    @contextmanager
    def only(self, which: str) -> Iterator[None]:
        """Slack gives everything to this one meanwhile."""
        others = self.twos if which == "one" else self.ones
        for connection in others:
            connection.leaving = True
        yield
        for connection in others:
            connection.leaving = False


@pytest.fixture
async def pair(house: House, server: SlackServer) -> AsyncIterator[Pair]:
    agent = house.agent(rule={"approvers": ("slack:T1:U1", "slack:T1:U2")})
    async with running(house, server, agent=agent) as one:
        ones = list(await server.wait_connections(2))
        async with running(house, server, agent=agent) as two:
            every = await server.wait_connections(4)
            yield Pair(one, two, ones, [c for c in every if c not in ones])
            await one.rest()
            await two.rest()


async def test_a_press_is_answered_by_the_one_that_did_not_post_the_card(pair: Pair, house: House) -> None:
    one, server = pair.one, pair.one.server
    with pair.only("one"):
        asked = one.call("pay A-1 30")
        card = await one.card()
        await server.settled()
    with pair.only("two"):
        told = await one.press(card, "Approve", BOB)
    assert told.startswith("Approved by bob")
    assert [c.method for c in server.calls if c.method in ("response_url", "chat.postEphemeral")] == [
        "response_url"
    ]
    await one.sees("Result: paid 30 for A-1", thread=asked.ts)
    await one.shows(card, "Approved by bob")
    assert card.labels == [] and len(house.paid) == 1


@pytest.mark.parametrize("label", ["Edit", "Deny with feedback"])
async def test_a_form_that_one_has_opened_is_taken_by_the_other(pair: Pair, house: House, label: str) -> None:
    one, server = pair.one, pair.one.server
    one.call("pay A-1 30")
    card = await one.card()
    with pair.only("one"):
        await server.press(ADA, card.channel, card.ts, label).taken()
        await server.wait_view(ADA)
    with pair.only("two"):
        values = {"amount": "1e999"} if label == "Edit" else {"What should be done instead?": "  "}
        wrong = await server.submit_view(ADA, values)
    assert wrong.outcome == ("errors" if label == "Edit" else "closed") or wrong.errors
    with pair.only("one"):
        if label == "Edit":
            sent = await server.submit_view(ADA, {"amount": "7"})
            assert sent.outcome == "closed"
    await one.shows(card, "with changes by ada" if label == "Edit" else "Denied by ada")
    assert [payment["amount"] for payment in house.paid] == ([7] if label == "Edit" else [])


async def test_a_thread_goes_on_through_either_of_them_and_each_message_is_read_once(
    pair: Pair, house: House
) -> None:
    one, server = pair.one, pair.one.server
    with pair.only("one"):
        first = one.call("work")
        await house.at_work.wait()
        await server.settled()
    with pair.only("two"):
        one.say("one more thing", thread=first.ts)
        await server.settled()
    house.let_go.set()
    await one.sees("Result: worked", thread=first.ts)
    await one.sees("You said: one more thing", thread=first.ts)
    await one.rest()
    await pair.two.rest()
    assert sorted(one.texts()) == ["Result: worked", "You said: one more thing"]


async def test_the_same_event_by_way_of_both_is_one_turn(pair: Pair, house: House) -> None:
    one, server = pair.one, pair.one.server
    with pair.only("one"):
        asked = one.call("hello")
        await server.settled()
    with pair.only("two"):
        server.redeliver(asked)
        await server.settled()
    await one.sees("You said: hello")
    await one.rest()
    await pair.two.rest()
    assert one.texts() == ["You said: hello"] and len(house.requests) == 1


async def test_a_command_to_one_decides_about_a_card_of_the_other(pair: Pair, house: House) -> None:
    one, server = pair.one, pair.one.server
    with pair.only("one"):
        one.call("pay A-1 30")
        card = await one.card()
        await server.settled()
    code = card.text.rsplit("Code: ", 1)[1].split()[0]
    with pair.only("two"):
        assert (await one.command(f"approve {code}")).startswith("Approved by ada")
    await one.sees("Result: paid 30 for A-1")
    await one.shows(card, "Approved by ada")
    assert one.whispers(ADA) and not any("Approved" in text for text in one.texts(GENERAL) if "Code" in text)


async def test_a_home_that_one_has_drawn_is_pressed_by_way_of_the_other(pair: Pair, house: House) -> None:
    one, server = pair.one, pair.one.server
    one.call("pay A-1 30")
    card = await one.card()
    with pair.only("one"):
        server.open_home(ADA)
        await one.until(lambda: "A-1" in str(server.home(ADA)), "the request in the home")
    with pair.only("two"):
        await server.press_home(ADA, "Approve").taken()
        await one.until(lambda: "Approved by ada" in str(server.home(ADA)), "what became of it")
    await one.shows(card, "Approved by ada")
    await one.sees("Result: paid 30 for A-1")
    assert len(house.paid) == 1


async def test_one_of_them_goes_away_in_the_middle_and_the_other_takes_over_what_comes(
    pair: Pair, house: House
) -> None:
    one, server = pair.one, pair.one.server
    for connection in pair.ones:
        server.freeze(connection)  # a process that hangs: it takes envelopes and answers none
    said = [one.call(f"number {n}") for n in range(4)]
    frozen = {connection.id for connection in pair.ones}
    waiting = [delivery for one_said in said for delivery in one_said.deliveries]
    taken = asyncio.create_task(server.wait_for(lambda: all(d.acked for d in waiting), 15))
    while not taken.done():
        if all(d.attempts[-1].via in frozen for d in server.deliveries if d.in_flight):
            server.advance(server.ack_within)  # Slack gives up on it, and tries another connection
            server.retry_now()
        await asyncio.wait({taken}, timeout=0.05)
    await taken
    for number in range(4):
        await one.sees(f"You said: number {number}")
    server.thaw()
    await one.rest()
    await pair.two.rest()
    assert len(one.texts()) == 4
