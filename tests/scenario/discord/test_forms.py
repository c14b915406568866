"""Forms of more fields than one modal holds: page by page, with mistakes, and with what is typed kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest

from gateway.agent import Agent
from gateway.gate import Gate, Rule
from gateway.providers.base import ModelRequest
from gateway.providers.scripted import Call, Reply, ScriptedModel, spoken
from gateway.tools.base import tool
from tests.platforms.discord.interactions import Interaction
from tests.platforms.discord.server import DiscordServer
from tests.scenario.discord.house import ADA, House, Post, Scene, running

TRIP: dict[str, Any] = {
    "city": "Paris",
    "nights": 3,
    "breakfast": True,
    "room": "single",
    "budget": 99.5,
    "guests": ["Ada"],
    "note": "a quiet one",
}


class Trips:
    """An agent that books trips, each of which is asked about."""

    def __init__(self) -> None:
        self.booked: list[dict[str, Any]] = []

    def agent(self) -> Agent:
        @tool
        async def book(
            city: str,
            nights: int,
            breakfast: bool,
            room: Literal["single", "double"],
            budget: float,
            guests: list[str],
            note: str,
        ) -> str:
            """Book a trip."""
            self.booked.append(
                {
                    "city": city,
                    "nights": nights,
                    "breakfast": breakfast,
                    "room": room,
                    "budget": budget,
                    "guests": guests,
                    "note": note,
                }
            )
            return "booked"

        gate = Gate(rules=(Rule(tool="book", decision="ask"),), default_decision="allow")
        return Agent(name="assistant", tools=(book,), gate=gate)

    @staticmethod
    def model() -> ScriptedModel:
        def reply(request: ModelRequest) -> Reply:
            start, _ = spoken(request.messages)
            if any(message.results for message in request.messages[start + 1 :]):
                return Reply(text="It is done.")
            return Reply(text="", calls=(Call(tool="book", args=TRIP),))

        return ScriptedModel(reply)


@pytest.fixture
def trips() -> Trips:
    return Trips()


@pytest.fixture
async def scene(house: House, server: DiscordServer, trips: Trips) -> AsyncIterator[Scene]:
    async with running(house, server, agent=trips.agent(), model=trips.model()) as scene:
        yield scene


async def opened(scene: Scene) -> tuple[Post, Interaction]:
    """A card, and the first page of its form."""
    asked = scene.call("a trip")
    card = await scene.card(place=asked)
    return card, await scene.server.press(ADA, asked, card.id, "Edit").taken()


async def follow(scene: Scene, sent: Interaction, begins: str) -> Interaction:
    """Press the button of the private message that a submission was answered with."""
    message = sent.original
    assert message is not None and message["flags"] & 64, sent.response
    [label] = scene.server.labels(sent.channel, message["id"], ADA)
    assert label.startswith(begins)
    return await scene.server.press(ADA, sent.channel, message["id"], label).taken()


async def test_seven_fields_are_filled_in_on_two_pages(scene: Scene, trips: Trips) -> None:
    card, first = await opened(scene)
    sent = await scene.server.submit(first, {"city": "Rome", "nights": "5", "breakfast": "false"}).taken()
    assert trips.booked == []
    second = await follow(scene, sent, "Continue (2/2)")
    await scene.server.submit(second, {"note": "by the river"}).taken()
    await scene.sees("It is done.", card.place)
    await scene.shows(card, "Approved with changes by Ada")
    changes = {"city": "Rome", "nights": 5, "breakfast": False, "note": "by the river"}
    assert trips.booked == [{**TRIP, **changes}]


async def test_a_mistake_on_the_first_page_is_told_after_the_last_and_nothing_typed_is_lost(
    scene: Scene, trips: Trips
) -> None:
    card, first = await opened(scene)
    sent = await scene.server.submit(first, {"city": "Rome", "nights": "some"}).taken()
    sent = await scene.server.submit(await follow(scene, sent, "Continue"), {"note": "by the river"}).taken()
    await scene.rest()
    assert trips.booked == []
    assert "nights" in scene.server.shown(sent.channel, (sent.original or {})["id"], ADA)
    again = await follow(scene, sent, "")
    sent = await scene.server.submit(again, {"nights": "4"}).taken()
    sent = await scene.server.submit(await follow(scene, sent, "Continue"), {}).taken()
    await scene.sees("It is done.", card.place)
    assert trips.booked == [{**TRIP, "city": "Rome", "nights": 4, "note": "by the river"}]


async def test_a_second_page_that_outlived_its_process_asks_to_begin_again_and_decides_nothing(
    house: House, server: DiscordServer, trips: Trips
) -> None:
    async with running(house, server, agent=trips.agent(), model=trips.model()) as scene:
        card, first = await opened(scene)
        sent = await server.submit(first, {"city": "Rome"}).taken()
        await scene.rest()
    async with running(house, server, agent=trips.agent(), model=trips.model()) as scene:
        message = sent.original or {}
        pressed = await server.press(ADA, sent.channel, message["id"], "Continue (2/2)").taken()
        assert pressed.modal is None
        assert "begin again" in await scene.answer_to(pressed)
        await scene.rest()
        assert trips.booked == []
        await scene.press(card, "Approve")
        await scene.sees("It is done.", card.place)
    assert trips.booked == [TRIP]


async def test_a_form_of_a_request_that_was_decided_meanwhile_changes_nothing(
    scene: Scene, trips: Trips
) -> None:
    card, first = await opened(scene)
    await scene.press(card, "Deny")
    await scene.shows(card, "Denied by Ada")
    sent = await scene.server.submit(first, {"city": "Rome"}).taken()
    assert "Denied by Ada" in await scene.answer_to(sent)
    await scene.rest()
    assert trips.booked == []


async def test_somebody_who_may_not_decide_gets_no_form(scene: Scene) -> None:
    asked = scene.call("a trip")
    card = await scene.card(place=asked)
    pressed = await scene.server.press("300000000000000002", asked, card.id, "Edit").taken()
    assert pressed.modal is None
    assert (await scene.answer_to(pressed)).startswith("You may not decide this.")
