"""Editing the arguments of a call of every type in a modal, and forms that something has overtaken."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Optional

import pytest

from gateway.agent import Agent
from gateway.messages import Json
from gateway.providers.base import ModelRequest
from gateway.providers.scripted import Call, Reply, ScriptedModel, spoken
from gateway.tools.base import tool
from tests.platforms.slack import SlackServer
from tests.scenario.slack.house import ADA, BOB, House, Post, Scene, running

Size = Literal["s", "m", "l"]
COUNTRIES = tuple(f"country {n}" for n in range(150))
if TYPE_CHECKING:
    Country = str
else:
    Country = Literal[COUNTRIES]
LONG = "\n".join(f"line {n} of a long note" for n in range(40))
GIVEN: Json = {
    "title": "Shoes",
    "count": 2,
    "price": 19.5,
    "gift": False,
    "size": "m",
    "country": "country 120",
    "note": LONG,
    "tags": ["a", "b"],
    "address": {"city": "Ulm", "zip": "89073"},
    "card": "4111-1111",
    "due": None,
    "limit": 7,
    "express": None,
    "grade": "s",
}


def made(orders: list[Json]) -> Any:
    @tool(secret=["card"])
    async def order(
        title: str,
        count: int,
        price: float,
        gift: bool,
        size: Size,
        country: Country,
        note: str,
        tags: list[str],
        address: dict[str, str],
        card: str,
        due: Optional[str] = None,  # noqa: UP045 - both spellings are schemas of their own
        limit: int | None = None,
        express: bool | None = None,
        grade: Size | None = None,
        weight: float = 1.5,
    ) -> str:
        """Order something.

        Args:
            count: how many
        """
        given = {name: value for name, value in locals().items() if name != "orders"}
        orders.append(given)
        return "ordered"

    return order


def model() -> ScriptedModel:
    def reply(request: ModelRequest) -> Reply:
        start, _ = spoken(request.messages)
        if any(m.results for m in request.messages[start + 1 :]):
            return Reply(text="Result: done")
        return Reply(text="", calls=(Call(tool="order", args=GIVEN),))

    return ScriptedModel(reply, chunk=12)


@pytest.fixture
def orders() -> list[Json]:
    return []


@pytest.fixture
def agent(house: House, orders: list[Json]) -> Agent:
    rule = replace(house.agent().gate.rules[0], tool="order", approvers=("slack:T1:U1", "slack:T1:U2"))
    gate = replace(house.agent().gate, rules=(rule,))
    return replace(house.agent(), tools=(made(orders),), gate=gate)


@pytest.fixture(params=["socket", "http"])
async def scene(
    request: pytest.FixtureRequest, house: House, server: SlackServer, agent: Agent
) -> AsyncIterator[Scene]:
    async with running(house, server, transport=request.param, agent=agent, model=model()) as scene:
        yield scene


async def edit(scene: Scene, user: str = ADA) -> tuple[Post, Json]:
    """The card, and the modal that its Edit button opens."""
    if not scene.cards("Edit"):
        scene.call("order")
    card = await scene.card("Edit")
    await scene.server.press(user, card.channel, card.ts, "Edit").taken()
    return card, await scene.server.wait_view(user)


def fields(view: Json) -> dict[str, Json]:
    return {block["label"]["text"]: block for block in view["blocks"] if block["type"] == "input"}


async def test_every_type_has_its_own_input_which_holds_what_the_call_would_do(scene: Scene) -> None:
    _, view = await edit(scene)
    found = fields(view)
    assert {name: block["element"]["type"] for name, block in found.items()} == {
        "title": "plain_text_input",
        "count": "number_input",
        "price": "number_input",
        "gift": "radio_buttons",
        "size": "static_select",
        "country": "static_select",
        "note": "plain_text_input",
        "tags": "plain_text_input",
        "address": "plain_text_input",
        "card": "plain_text_input",
        "due": "plain_text_input",
        "limit": "number_input",
        "express": "static_select",
        "grade": "static_select",
        "weight": "number_input",
    }
    multiline = {name for name, block in found.items() if block["element"].get("multiline")}
    assert multiline == {"note", "tags", "address"}
    assert sum(len(group["options"]) for group in found["country"]["element"]["option_groups"]) == 150
    assert found["country"]["element"]["initial_option"]["value"] == "country 120"
    assert found["count"]["hint"]["text"] == "how many"
    assert "initial_value" not in found["card"]["element"] and "4111" not in str(view)
    assert "initial_value" not in found["due"]["element"]
    assert found["weight"]["element"]["initial_value"] == "1.5"
    required = {name for name, block in found.items() if not block["optional"]}
    assert required == GIVEN.keys() - {"card", "due", "limit", "express", "grade"}


async def test_what_is_filled_in_is_what_runs_each_value_of_its_type(
    scene: Scene, orders: list[Json]
) -> None:
    card, _ = await edit(scene)
    typed = {
        "title": "Boots",
        "count": "3",
        "price": "20",
        "gift": "true",
        "size": "l",
        "country": "country 7",
        "note": "short",
        "tags": '["c"]',
        "address": '{"city": "Bonn"}',
        "due": "tomorrow",
        "limit": "",
        "express": "true",
        "grade": "null",
        "weight": "0.25",
    }
    assert (await scene.server.submit_view(ADA, typed)).outcome == "closed"
    await scene.shows(card, "Approved with changes by ada")
    await scene.sees("Result: done")
    assert orders == [
        {
            "title": "Boots",
            "count": 3,
            "price": 20,
            "gift": True,
            "size": "l",
            "country": "country 7",
            "note": "short",
            "tags": ["c"],
            "address": {"city": "Bonn"},
            "card": "4111-1111",
            "due": "tomorrow",
            "limit": None,
            "express": True,
            "grade": None,
            "weight": 0.25,
        }
    ]
    assert "4111" not in json.dumps(scene.server.from_bot("C1"))


async def test_a_form_that_is_sent_as_it_was_opened_changes_nothing(scene: Scene, orders: list[Json]) -> None:
    card, _ = await edit(scene)
    assert (await scene.server.submit_view(ADA, {})).outcome == "closed"
    await scene.shows(card, "Approved by ada")
    await scene.sees("Result: done")
    assert orders == [{**GIVEN, "weight": 1.5}]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("tags", "a, b", "JSON"),
        ("tags", '{"a": 1}', "array"),
        ("tags", "[1]", "string"),
        ("address", '{"city": 5}', "string"),
        ("price", "1e999", "number"),
    ],
)
async def test_what_the_schema_refuses_is_told_at_its_field_and_nothing_runs(
    scene: Scene, orders: list[Json], name: str, value: str, words: str
) -> None:
    card, view = await edit(scene)
    sent = await scene.server.submit_view(ADA, {name: value})
    assert sent.outcome == "errors"
    assert list(sent.errors) == [fields(view)[name]["block_id"]]
    assert words in next(iter(sent.errors.values()))
    assert orders == []
    assert "Approve" in card.labels


async def test_faults_of_several_fields_are_told_together(scene: Scene, orders: list[Json]) -> None:
    _, view = await edit(scene)
    sent = await scene.server.submit_view(ADA, {"tags": "[1]", "address": '{"city": 5}'})
    places = {fields(view)[name]["block_id"] for name in ("tags", "address")}
    assert sent.outcome == "errors" and sent.errors.keys() == places
    assert orders == []


async def test_a_form_left_open_while_somebody_else_decided_closes_and_says_so(
    scene: Scene, orders: list[Json]
) -> None:
    card, _ = await edit(scene)
    await scene.press(card, "Approve", BOB)
    await scene.sees("Result: done")
    before = len(scene.whispers(ADA))
    assert (await scene.server.submit_view(ADA, {"count": "9"})).outcome == "closed"
    assert (await scene.told(ADA, before)).startswith("Already decided.")
    await scene.rest()
    assert [order["count"] for order in orders] == [2]


async def test_a_form_that_is_closed_decides_nothing(scene: Scene, orders: list[Json]) -> None:
    card, _ = await edit(scene)
    scene.server.close_view(ADA)
    await scene.server.settled()
    await scene.rest()
    assert "Approve" in card.labels and orders == []
    closed = scene.server.interaction("view_closed", ADA, view={"id": "V1", "callback_id": "form"})
    await scene.server.deliver("interactive", closed, ADA).taken()
    assert scene.channel.unknown == {}


async def test_who_may_not_decide_gets_no_form_and_hears_why(scene: Scene, orders: list[Json]) -> None:
    scene.call("order")
    card = await scene.card("Edit")
    before = len(scene.whispers("U3"))
    await scene.server.press("U3", card.channel, card.ts, "Edit").taken()
    assert (await scene.told("U3", before)).startswith("You may not decide this.")
    assert scene.server.view("U3") is None
