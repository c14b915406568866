"""A gateway that dies while it carries out a timer, and what its successor makes of it."""

from __future__ import annotations

import pytest

from gateway import faults
from tests.platforms.telegram import TelegramServer
from tests.scenario.processes.chat import APPROVE, MAYBE_REPEATED, PrivateChat
from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.house import BOB, House

pytestmark = pytest.mark.crash

POINTS = [point for point in faults.POINTS if point.partition(".")[0] == "timer"]
# How the record calls what comes of it: what the rule says, and what the notice about it says.
WORDS = {
    "reminded": ('remind = ["1s"]', "Still waiting for a decision since"),
    "escalated": (
        f'escalate = {{ after = "1s", notify = ["telegram:{BOB}"], approvers = ["telegram:{BOB}"] }}',
        "Nobody has decided about pay",
    ),
    "expired": ('expires = "1s"', "The request for pay"),
}


def told(chat: PrivateChat, kind: str) -> list[str]:
    """The notices of this kind."""
    return [text for text in chat.texts() if WORDS[kind][1] in text]


async def died_over(kind: str, point: str, furnish: Furnish, server: TelegramServer) -> PrivateChat:
    """A chat in which a request waits whose timer has killed the first process; the second one runs."""
    house: House = furnish(api_base=server.api_base, pay=WORDS[kind][0])
    chat = PrivateChat(server, house)
    first = await house.start(fault=point)
    server.say(BOB, BOB, "hello")  # a bot may not write to somebody first
    chat.say("pay A1")
    await first.died()
    await house.start()
    await chat.seen(lambda: told(chat, kind), kind)
    await house.rest()
    return chat


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("kind", WORDS)
async def test_killed_over_a_timer_it_is_carried_out_once(
    kind: str, point: str, furnish: Furnish, server: TelegramServer
) -> None:
    chat = await died_over(kind, point, furnish, server)
    house = chat.house
    (notice,) = told(chat, kind)
    assert MAYBE_REPEATED not in notice
    assert house.value("SELECT count(*) FROM audit WHERE kind = ?", kind) == 1
    assert house.value("SELECT count(*) FROM timers WHERE done = 0") == 0
    if kind == "expired":
        assert (house.open_pendings(), chat.cards(APPROVE), house.ledger("pay")) == ([], [], [])
        house.assert_valid()


@pytest.mark.parametrize("point", POINTS)
async def test_killed_over_an_escalation_the_other_person_has_one_card_that_counts(
    point: str, furnish: Furnish, server: TelegramServer
) -> None:
    chat = await died_over("escalated", point, furnish, server)
    theirs = [m for m in server.from_bot(BOB) if "reply_markup" in m]
    assert len(theirs) == 1
    click = chat.click(theirs[0], APPROVE, BOB)
    assert (await chat.answered(click)).startswith("Approved by Bob")
    await chat.words("Paid A1.")
    await chat.house.rest()
    assert len(chat.house.ledger("pay")) == 1
    assert chat.cards(APPROVE) == []
    chat.house.assert_valid()
