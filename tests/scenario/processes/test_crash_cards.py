"""Cards whose reference died with the process, and what a click on such a copy does."""

from __future__ import annotations

import pytest

from tests.platforms.telegram import TelegramServer
from tests.scenario.processes.chat import APPROVE, PrivateChat
from tests.scenario.processes.house import House

pytestmark = pytest.mark.crash


@pytest.fixture
async def twice(house: House, chat: PrivateChat) -> PrivateChat:
    """A chat with two copies of one card; the first one's reference is lost."""
    first = await house.start(fault="card.after")
    chat.say("pay A1")
    await first.died()
    await house.start()
    await chat.seen(lambda: chat.cards(APPROVE) if len(chat.cards(APPROVE)) == 2 else [], "two cards")
    await house.rest()
    return chat


async def test_a_click_on_the_lost_copy_counts_and_both_copies_are_redrawn(
    house: House, twice: PrivateChat
) -> None:
    lost, _known = twice.cards(APPROVE)
    click = twice.click(lost, APPROVE)
    assert (await twice.answered(click)).startswith("Approved by Ada")
    await twice.words("Paid A1.")
    await house.rest()
    assert twice.cards(APPROVE) == []
    assert len(house.ledger("pay")) == 1


async def test_a_late_click_on_the_lost_copy_is_told_so_and_takes_its_buttons(
    house: House, twice: PrivateChat
) -> None:
    lost, known = twice.cards(APPROVE)
    twice.click(known, APPROVE)
    await twice.words("Paid A1.")
    assert twice.cards(APPROVE) == [lost]
    click = twice.click(lost, APPROVE)
    assert (await twice.answered(click)).startswith("Already decided. Approved by Ada")
    await twice.seen(lambda: [True] if not twice.cards(APPROVE) else [], "the lost copy is redrawn")
    assert len(house.ledger("pay")) == 1


async def test_a_click_counts_before_the_platform_has_said_that_the_card_is_posted(
    house: House, chat: PrivateChat, server: TelegramServer
) -> None:
    await house.start()
    server.cut_next("sendMessage")  # the card is there, its reference is not
    chat.say("pay A1")
    click = chat.click(await chat.card(), APPROVE)
    assert (await chat.answered(click)).startswith("Approved by Ada")
    await chat.words("Paid A1.")
    await house.rest()
    assert len(house.ledger("pay")) == 1
    assert chat.cards(APPROVE) == []
