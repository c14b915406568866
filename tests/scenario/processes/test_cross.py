"""Asked on one platform, decided on another, answered where it was asked; two processes, one dies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest

from tests.platforms.slack import SlackServer
from tests.platforms.telegram import TelegramServer
from tests.scenario.processes.chat import APPROVE, PrivateChat
from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.house import House
from tests.scenario.processes.slack_side import cards, slack_table, words

pytestmark = pytest.mark.crash


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server
        server.check()


@pytest.fixture
async def house(furnish: Furnish, server: TelegramServer, slack: SlackServer) -> House:
    """Ada writes over Telegram; payments are decided by Bob in Slack's #approvals."""
    rule = 'approvers = ["slack:T1:U2"]\nnotify = ["slack:T1:C2"]\n'
    return furnish(api_base=server.api_base, pay=rule, more=slack_table(slack))


@pytest.mark.parametrize("dies", ["before the click", "in the middle of the click", "before the answer"])
async def test_a_request_from_telegram_is_decided_in_slack_and_answered_in_telegram(
    dies: str, house: House, server: TelegramServer, slack: SlackServer
) -> None:
    chat = PrivateChat(server, house)
    faults = {
        "before the click": "",
        "in the middle of the click": "resolution.after",
        "before the answer": "final.after",
    }
    first = await house.start(faults[dies])
    await slack.wait_connections(2)
    chat.say("pay A1")
    await chat.card()
    [there] = await slack.wait_for(partial(cards, slack, "C2"), 30)
    if dies == "before the click":
        await house.rest()
        await first.kill()
        await house.start()
    slack_pressed = False
    if dies != "before the click":
        slack.press("U2", "C2", there, "Approve")
        slack_pressed = True
        await first.died()
        await house.start()
    await slack.wait_connections(2)
    if not slack_pressed:
        slack.press("U2", "C2", there, "Approve")
    assert len(await chat.words("Paid A1.")) == 1
    await house.rest()
    assert [line["tool"] for line in house.ledger()] == ["note", "pay"]
    assert cards(slack, "C2") == [] and chat.cards(APPROVE) == []
    assert "Approved by" in slack.shown("C2", there)
    assert "Paid A1." not in words(slack, "C2")
    house.assert_valid()


async def test_two_processes_serve_both_platforms_and_one_is_killed_between_request_and_decision(
    house: House, server: TelegramServer, slack: SlackServer
) -> None:
    chat = PrivateChat(server, house)
    first = await house.start()
    await slack.wait_connections(2)
    second = await house.start()
    await slack.wait_connections(4)
    for number, victim in enumerate((first, second)):
        order = f"A{number}"
        chat.say(f"pay {order}")
        [there] = await slack.wait_for(partial(cards, slack, "C2"), 30)
        await house.rest()
        await victim.kill()
        survivor_needed = victim is second
        if survivor_needed:
            await house.start()
        await slack.wait_connections(2)
        slack.press("U2", "C2", there, "Approve")
        assert len(await chat.words(f"Paid {order}.")) == 1
        await house.rest()
        assert [line["order"] for line in house.ledger("pay")] == [f"A{n}" for n in range(number + 1)]
        assert cards(slack, "C2") == [] and chat.cards(APPROVE) == []
    house.assert_valid()
