"""Over Discord, with real processes: a card outlives whoever drew it, in every place that shows it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.platforms.discord.ids import ADA, APPROVALS, BOB, BOT, CLEO, G1, GENERAL
from tests.platforms.discord.server import DiscordServer
from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.house import House

pytestmark = pytest.mark.crash

ROUTED = f'approvers = ["discord:{BOB}", "discord:{CLEO}"]\nnotify = ["discord:{G1}:{APPROVALS}"]\n'
PATIENCE = 30.0  # seconds


@pytest.fixture
async def discord() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as server:
        yield server
        server.check()


@pytest.fixture
async def house(furnish: Furnish, discord: DiscordServer) -> House:
    """An installation whose payments are decided by Bob or Cleo, in #approvals as well."""
    table = (
        f'[channels.discord]\ntoken = "{discord.token}"\napi_base = "{discord.route_base}"\n'
        f'users = ["{ADA}", "{BOB}", "{CLEO}"]\n'
    )
    return furnish(pay=ROUTED, more=table)


def ask(discord: DiscordServer, order: str) -> str:
    """Ada asks for a payment; the id of the thread that is opened."""
    return str(discord.say(ADA, GENERAL, f"<@{BOT}> pay {order}")["id"])


def cards(discord: DiscordServer, place: str) -> list[str]:
    """The ids of the messages that can be decided."""
    if place not in discord.channels:
        return []
    return [m["id"] for m in discord.from_bot(place) if "Approve" in discord.labels(place, m["id"])]


async def card(discord: DiscordServer, place: str) -> str:
    """The only open card of a place, once it is there."""
    [message] = await discord.wait_for(lambda: cards(discord, place), PATIENCE)
    return message


def words(discord: DiscordServer, place: str) -> str:
    return "\n".join(discord.shown(place, m["id"]) for m in discord.from_bot(place))


async def paid(discord: DiscordServer, place: str, order: str) -> None:
    await discord.wait_for(lambda: f"Paid {order}." in words(discord, place), PATIENCE)


async def test_asked_in_a_thread_and_approved_in_another_channel_after_a_crash_it_runs_once(
    discord: DiscordServer, house: House
) -> None:
    first = await house.start()
    await discord.wait_ready(1, PATIENCE)
    thread = ask(discord, "A1")
    here, there = await card(discord, thread), await card(discord, APPROVALS)
    await house.rest()
    await first.kill()
    await discord.wait_ready(0, PATIENCE)
    lost = discord.press(BOB, APPROVALS, there, "Approve")
    discord.advance(4)
    assert (await lost.taken()).failed == "The application did not respond"
    await house.start()
    await discord.wait_ready(1, PATIENCE)
    assert house.ledger("pay") == []
    click = await discord.press(BOB, APPROVALS, there, "Approve").taken()
    assert not click.failed
    await paid(discord, thread, "A1")
    await house.rest()
    for place, message in ((thread, here), (APPROVALS, there)):
        assert discord.labels(place, message) == []
        assert "Approved by" in discord.shown(place, message)
    assert [line["tool"] for line in house.ledger()] == ["note", "pay"]
    assert words(discord, thread).count("Paid A1.") == 1
    house.assert_valid()


async def test_two_processes_connected_at_once_answer_each_message_and_click_once(
    discord: DiscordServer, house: House
) -> None:
    await house.start()
    await house.start()
    await discord.wait_ready(2, PATIENCE)
    for number in range(3):
        order = f"A{number}"
        thread = ask(discord, order)
        here, there = await card(discord, thread), await card(discord, APPROVALS)
        clicks = [
            discord.press(BOB, APPROVALS, there, "Approve"),
            discord.press(CLEO, thread, here, "Approve"),
        ]
        for click in clicks:
            assert not (await click.taken()).failed
        await paid(discord, thread, order)
        await house.rest()
        assert [line["order"] for line in house.ledger("pay")] == [f"A{n}" for n in range(number + 1)]
        assert cards(discord, thread) == cards(discord, APPROVALS) == []
        assert words(discord, thread).count(f"Paid {order}.") == 1
    house.assert_valid()


async def test_killed_in_the_middle_of_a_click_it_is_carried_out_once_by_whoever_comes_next(
    discord: DiscordServer, house: House
) -> None:
    first = await house.start("press.after")
    await discord.wait_ready(1, PATIENCE)
    thread = ask(discord, "A1")
    await card(discord, thread)
    there = await card(discord, APPROVALS)
    await house.rest()  # a card whose reference is not stored yet would be shown once more
    discord.press(BOB, APPROVALS, there, "Approve")
    await first.died()
    await house.start()
    await paid(discord, thread, "A1")
    await house.rest()
    assert [line["tool"] for line in house.ledger()] == ["note", "pay"]
    assert cards(discord, thread) == cards(discord, APPROVALS) == []
    house.assert_valid()


async def test_what_was_said_while_no_process_ran_is_answered_once_by_the_next(
    discord: DiscordServer, house: House
) -> None:
    first = await house.start()
    await discord.wait_ready(1, PATIENCE)
    thread = ask(discord, "A1")
    there = await card(discord, APPROVALS)
    await house.rest()
    await first.kill()
    await discord.wait_ready(0, PATIENCE)
    missed = str(discord.say(ADA, GENERAL, f"<@{BOT}> hello")["id"])
    await house.start()
    await discord.wait_for(
        lambda: missed in discord.channels and "Hello yourself." in words(discord, missed), PATIENCE
    )
    await house.rest()
    assert words(discord, missed).count("Hello yourself.") == 1
    discord.press(BOB, APPROVALS, there, "Approve")
    await paid(discord, thread, "A1")
    await house.rest()
    house.assert_valid()
