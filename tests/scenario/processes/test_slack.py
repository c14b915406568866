"""Over Slack, with real processes: a card outlives whoever drew it, in every place that shows it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest

from tests.platforms.slack import SlackServer
from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.house import House
from tests.scenario.processes.slack_side import cards, slack_table, words

pytestmark = pytest.mark.crash

ROUTED = 'approvers = ["slack:T1:U2", "slack:T1:U3"]\nnotify = ["slack:T1:C2"]\n'


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server
        server.check()


@pytest.fixture
async def house(furnish: Furnish, slack: SlackServer) -> House:
    """An installation whose payments are decided by Bob or Cleo, in #approvals as well."""
    return furnish(pay=ROUTED, more=slack_table(slack))


async def card(slack: SlackServer, channel: str) -> str:
    """The only open card of a channel, once it is there."""
    [ts] = await slack.wait_for(lambda: cards(slack, channel), 30)
    return ts


def answered(slack: SlackServer, order: str) -> bool:
    return f"Paid {order}." in words(slack, "C1")


async def test_asked_in_a_thread_and_approved_in_another_channel_after_a_crash_it_runs_once(
    slack: SlackServer, house: House
) -> None:
    first = await house.start()
    await slack.wait_connections(2)
    asked = slack.say("U1", "C1", "<@UBOT> pay A1")
    here, there = await card(slack, "C1"), await card(slack, "C2")
    assert slack.message("C1", here)["thread_ts"] == asked.ts
    await house.rest()
    await first.kill()
    await house.start()
    await slack.wait_connections(2)
    slack.press("U2", "C2", there, "Approve")
    await slack.wait_for(lambda: "Paid A1." in words(slack, "C1"), 30)
    await house.rest()
    for channel, ts in (("C1", here), ("C2", there)):
        assert slack.labels(channel, ts) == []
        assert "Approved by" in slack.shown(channel, ts)
    assert [line["tool"] for line in house.ledger()] == ["note", "pay"]
    assert words(slack, "C1").count("Paid A1.") == 1
    house.assert_valid()


async def test_two_processes_connected_at_once_answer_each_message_and_click_once(
    slack: SlackServer, house: House
) -> None:
    await house.start()
    await house.start()
    await slack.wait_connections(4)
    for number in range(4):
        order = f"A{number}"
        slack.say("U1", "C1", f"<@UBOT> pay {order}")
        here, there = await card(slack, "C1"), await card(slack, "C2")
        for user, channel, ts in (("U2", "C2", there), ("U3", "C1", here)):
            slack.press(user, channel, ts, "Approve")
        await slack.wait_for(partial(answered, slack, order), 30)
        await house.rest()
        assert [line["order"] for line in house.ledger("pay")] == [f"A{n}" for n in range(number + 1)]
        assert cards(slack, "C1") == cards(slack, "C2") == []
        told = await slack.wait_for(lambda: slack.ephemerals("U2") + slack.ephemerals("U3"))
        assert told
    house.assert_valid()


async def test_killed_in_the_middle_of_a_click_it_is_carried_out_once_by_whoever_comes_next(
    slack: SlackServer, house: House
) -> None:
    first = await house.start("press.after")
    await slack.wait_connections(2)
    slack.say("U1", "C1", "<@UBOT> pay A1")
    await card(slack, "C1")
    there = await card(slack, "C2")
    await house.rest()  # a card whose reference is not stored yet would be shown once more
    slack.press("U2", "C2", there, "Approve")
    await first.died()
    await house.start()
    await slack.wait_for(lambda: "Paid A1." in words(slack, "C1"), 30)
    await house.rest()
    assert [line["tool"] for line in house.ledger()] == ["note", "pay"]
    assert cards(slack, "C1") == cards(slack, "C2") == []
    house.assert_valid()


async def test_killed_while_it_shows_what_it_does_the_next_process_takes_that_away(
    slack: SlackServer, house: House
) -> None:
    first = await house.start()
    await slack.wait_connections(2)
    asked = slack.say("U1", "C1", "<@UBOT> wait A1")
    await slack.wait_for(lambda: "Using wait" in words(slack, "C1"), 30)
    await first.kill()
    (house.folder / "let_go").touch()
    await house.start()
    await slack.wait_for(lambda: "Using wait" not in words(slack, "C1"), 30)
    await house.rest()
    left = slack.from_bot("C1")
    assert left  # what became of the call is a person's to say
    assert {message["thread_ts"] for message in left} == {asked.ts}
    assert [line["tool"] for line in house.ledger()] == ["wait began"]
