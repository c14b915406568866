"""The App Home: several requests, those who may decide nothing, forms, and what is decided elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.platforms.slack import SlackServer
from tests.scenario.slack.house import ADA, BOB, CLEO, GENERAL, GUEST, House, Scene, running

BOTH = {"approvers": ("slack:T1:U1", "slack:T1:U2")}


@pytest.fixture(params=["socket", "http"])
async def scene(request: pytest.FixtureRequest, house: House, server: SlackServer) -> AsyncIterator[Scene]:
    agent = house.agent(rule=BOTH)
    async with running(house, server, transport=request.param, agent=agent) as scene:
        yield scene


async def opened(scene: Scene, user: str = ADA) -> None:
    """Somebody looks, and sees something new."""
    published = len(scene.server.called("views.publish"))
    scene.server.open_home(user)
    await scene.until(lambda: len(scene.server.called("views.publish")) > published, "a home")


def listed(scene: Scene, user: str = ADA) -> list[str]:
    """Which orders the home asks about."""
    home = str(scene.server.home(user))
    return [order for order in ("A-1", "A-2", "A-3", "B-1") if order in home]


async def three(scene: Scene) -> None:
    for number in range(1, 4):
        scene.call(f"pay A-{number} {number}0")
        await scene.until(lambda: len(scene.cards()) == number, f"request {number}")  # noqa: B023


async def test_several_requests_are_listed_and_each_press_takes_its_own_away(scene: Scene) -> None:
    await three(scene)
    await opened(scene)
    assert listed(scene) == ["A-1", "A-2", "A-3"]
    await scene.server.press_home(ADA, "Deny").taken()  # the first that there is
    await scene.until(lambda: listed(scene) == ["A-2", "A-3"], "one less")
    await scene.until(lambda: "Denied by ada" in str(scene.server.home(ADA)), "what became of it")
    await scene.server.press_home(ADA, "Approve").taken()
    await scene.until(lambda: listed(scene) == ["A-3"], "one less")
    await scene.sees("Result: paid 20 for A-2")
    await scene.rest()
    assert [payment["order"] for payment in scene.house.paid] == ["A-2"]


async def test_who_may_decide_nothing_is_told_so_and_sees_nothing_of_others(scene: Scene) -> None:
    await three(scene)
    for user in (CLEO, GUEST):
        await opened(scene, user)
        assert listed(scene, user) == []
        assert "Nothing waits for your decision." in str(scene.server.home(user))


async def test_a_decision_elsewhere_leaves_the_homes_that_list_it(scene: Scene) -> None:
    await three(scene)
    for user in (ADA, BOB):
        await opened(scene, user)
    first = scene.cards()[0]
    await scene.press(first, "Approve", ADA)
    for user in (ADA, BOB):
        await scene.until(lambda: listed(scene, user) == ["A-2", "A-3"], f"{user} sees two")  # noqa: B023


async def test_who_pressed_in_a_thread_finds_the_home_right_although_it_was_drawn_by_nobody_here(
    scene: Scene,
) -> None:
    await three(scene)
    await scene.press(scene.cards()[0], "Approve", BOB)
    await scene.until(lambda: listed(scene, BOB) == ["A-2", "A-3"], "Bob's home")


async def test_a_new_request_comes_into_a_home_that_was_just_opened(scene: Scene) -> None:
    await opened(scene, ADA)
    assert listed(scene) == []
    scene.say("pay B-1 50", BOB, "D2")
    await scene.until(lambda: listed(scene) == ["B-1"], "the new request")


async def test_a_form_is_opened_and_submitted_from_the_home(scene: Scene) -> None:
    await three(scene)
    await opened(scene)
    server = scene.server
    await server.press_home(ADA, "Edit").taken()
    await server.wait_view(ADA)
    wrong = await server.submit_view(ADA, {"amount": "1e999"})
    assert wrong.outcome == "errors"
    assert (await server.submit_view(ADA, {"amount": "7"})).outcome == "closed"
    await scene.until(lambda: listed(scene) == ["A-2", "A-3"], "one less")
    await scene.until(lambda: "with changes by ada" in str(server.home(ADA)), "what became of it")
    await server.press_home(ADA, "Deny with feedback").taken()
    await server.wait_view(ADA)
    assert (await server.submit_view(ADA, {"What should be done instead?": "ask them"})).outcome == "closed"
    await scene.until(lambda: listed(scene) == ["A-3"], "one less")
    await scene.sees("You said: ask them")
    assert [payment["amount"] for payment in scene.house.paid] == [7]


async def test_a_press_in_a_home_that_is_out_of_date_says_so_and_draws_it_anew(scene: Scene) -> None:
    await three(scene)
    await opened(scene)
    server = scene.server
    async with server.held("views.publish"):
        await scene.press(scene.cards()[0], "Deny", BOB)
        stale = server.press_home(ADA, "Approve")
        await stale.taken()
    await scene.until(lambda: "Already decided." in str(server.home(ADA)), "that it was decided")
    await scene.until(lambda: listed(scene) == ["A-2", "A-3"], "the two that are left")
    await scene.rest()
    assert scene.house.paid == []


async def test_questions_are_answered_in_the_home(house: House, server: SlackServer) -> None:
    async with running(house, server) as scene:
        asked = scene.call("ask")
        card = await scene.card("prod")
        await opened(scene)
        await server.press_home(ADA, "prod").taken()
        await scene.sees("Result: prod", thread=asked.ts)
        await scene.shows(card, "Answered by ada")
        scene.call("pick", channel=GENERAL)
        await scene.card("Confirm")
        await opened(scene)
        await server.press_home(ADA, "Confirm").taken()
        await scene.until(lambda: "Nothing is chosen yet." in str(server.home(ADA)), "that nothing is chosen")


async def test_a_workspace_without_a_home_tab_loses_nothing_but_the_home(
    house: House, server: SlackServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.fail_next("views.publish", "not_enabled", times=99)
    async with running(house, server) as scene:
        scene.call("pay A-1 30")
        card = await scene.card()
        await scene.press(card, "Approve")
        await scene.sees("Result: paid 30 for A-1")
        await scene.rest()
    assert [r for r in caplog.records if r.levelname == "ERROR"] == []
