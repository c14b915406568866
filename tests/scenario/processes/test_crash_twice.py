"""A gateway that dies again while it takes up what its last death left."""

from __future__ import annotations

import pytest

from tests.scenario.processes.chat import APPROVE, MAYBE_REPEATED, PrivateChat
from tests.scenario.processes.house import House

pytestmark = pytest.mark.crash

BEFORE_CLICK = [
    ("assistant.after", "started.after"),
    ("started.after", "stop.before"),
    ("stop.before", "stop.before"),
    ("stop.after", "card.before"),
    ("card.before", "card.before"),
]
BEHIND_CLICK = [
    ("press.after", "press.before"),
    ("resolution.after", "started.before"),
    ("approved.after", "stop.before"),
    ("results.after", "final.before"),
    ("final.before", "final.before"),
]


async def die_twice(house: House, points: tuple[str, str]) -> None:
    """The gateway that runs dies at the first point, the next one at the second; a third one lives."""
    await house.processes[-1].died()
    second = await house.start(fault=points[1], ready=False)
    await second.died()
    await house.start()


def assert_done_once(house: House, chat: PrivateChat) -> None:
    assert [line["tool"] for line in house.ledger()] == ["note", "pay"]
    assert house.open_pendings() == []
    assert chat.cards(APPROVE) == []
    house.assert_valid()


@pytest.mark.parametrize("points", BEFORE_CLICK, ids="-then-".join)
async def test_killed_twice_before_the_click_everything_happens_once(
    points: tuple[str, str], house: House, chat: PrivateChat
) -> None:
    await house.start(fault=points[0])
    chat.say("pay A1")
    await die_twice(house, points)
    await chat.settled(APPROVE)
    await house.rest()
    (card,) = chat.cards(APPROVE)
    chat.click(card, APPROVE)
    await chat.settled("Paid A1.")
    await house.rest()
    assert len(chat.said("Paid A1.")) == 1
    assert_done_once(house, chat)


@pytest.mark.parametrize("points", BEHIND_CLICK, ids="-then-".join)
async def test_killed_twice_behind_the_click_everything_happens_once(
    points: tuple[str, str], house: House, chat: PrivateChat
) -> None:
    await house.start(fault=points[0])
    chat.say("pay A1")
    await chat.card()
    await house.rest()
    chat.click(chat.cards(APPROVE)[0], APPROVE)
    await die_twice(house, points)
    await chat.settled("Paid A1.")
    await house.rest()
    assert len(chat.said("Paid A1.")) == 1
    assert_done_once(house, chat)


async def test_an_answer_whose_sender_died_twice_is_not_sent_a_third_time(
    house: House, chat: PrivateChat
) -> None:
    await house.start(fault="send.after")
    chat.say("note A1")
    await die_twice(house, ("send.after", "send.after"))
    await house.rest()
    assert [MAYBE_REPEATED in text for text in chat.said("Noted A1.")] == [False, True]
    assert house.rows("SELECT state, error FROM deliveries") == [("failed", "its sender died twice")]
    house.assert_valid()
