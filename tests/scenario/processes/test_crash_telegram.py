"""A gateway on Telegram, killed at every fault point there is, started again, and looked at."""

from __future__ import annotations

import pytest

from gateway import faults
from tests.platforms.telegram import TelegramServer
from tests.scenario.processes.chat import (
    APPROVE,
    MAYBE_REPEATED,
    SECOND_CARD,
    PrivateChat,
)
from tests.scenario.processes.house import House

pytestmark = pytest.mark.crash

# What lies behind the click on the card; all other places lie before it.
BEHIND_CLICK = {
    *("press", "resolution", "redraw", "redrawn", "resume", "approved", "results", "final", "send", "sent"),
}
# A call had begun and nothing says how it ended: a person is asked.
UNKNOWN = {"started.after", "done.before", "approved.before", "approved.after"}
# The result was handed to the writer, which may or may not have reached the disk.
PERHAPS_UNKNOWN = {"done.after", "stop.before", "results.before"}
# The card is redrawn while the turn goes on: how far that has come is anybody's guess.
BESIDE_TURN = {f"{step}.{side}" for step in ("redraw", "redrawn") for side in ("before", "after")}
# A message was handed over and nothing says whether it arrived: one possible repeat, marked as such.
TWO_ANSWERS, MARKED_ANSWER = {"send.after", "sent.before"}, {"final.after", "send.before"}
TWO_CARDS, MARKED_CARD = {"card.after", "ref.before"}, {"stop.after", "card.before"}


# Nothing here has a timer: see test_crash_timers.py.
POINTS = [point for point in faults.POINTS if point.partition(".")[0] != "timer"]


@pytest.mark.parametrize("point", POINTS)
async def test_killed_there_it_answers_once_and_does_everything_once(
    point: str, house: House, chat: PrivateChat, server: TelegramServer
) -> None:
    first = await house.start(fault=point)
    update = chat.say("pay A1")
    behind_click = point.partition(".")[0] in BEHIND_CLICK
    if not behind_click:
        await first.died()
        await house.start()
    asked = await chat.settled(APPROVE)
    await house.rest()
    assert_cards(point, chat)
    click = chat.click(chat.cards(APPROVE)[-1], APPROVE)
    if behind_click:
        await first.died()
        await house.start()
    asked += await chat.settled("Paid A1.")
    await house.rest()

    assert [line["tool"] for line in house.ledger()] == ["note", "pay"]
    if point in UNKNOWN:
        assert len(asked) == 1
    elif point not in PERHAPS_UNKNOWN | BESIDE_TURN:
        assert asked == []
    house.assert_valid()
    assert_one_answer(point, chat)
    assert_no_orphans(point, house, chat)
    await assert_nothing_new(house, chat, [update, click.update])


def assert_one_answer(point: str, chat: PrivateChat) -> None:
    answers = chat.said("Paid A1.")
    marked = [MAYBE_REPEATED in text for text in answers]
    if point in TWO_ANSWERS:
        assert marked == [False, True]
    elif point in BESIDE_TURN:
        assert marked in ([False], [True], [False, True])
    else:
        assert marked == [point in MARKED_ANSWER]


def assert_cards(point: str, chat: PrivateChat) -> None:
    """One open card; two, the second marked, where nobody knows whether the first arrived."""
    marked = [SECOND_CARD in message["text"] for message in chat.cards(APPROVE)]
    if point in TWO_CARDS:
        assert marked == [False, True]
    else:
        assert marked == [point in MARKED_CARD]


def assert_no_orphans(point: str, house: House, chat: PrivateChat) -> None:
    """Nothing waits, and no card still offers what is decided, but for a copy that nobody knows of."""
    assert house.open_pendings() == []
    assert len(chat.cards(APPROVE)) == (1 if point in TWO_CARDS else 0)


async def assert_nothing_new(house: House, chat: PrivateChat, updates: list) -> None:
    """Telegram delivers everything once more; nobody takes it for new."""

    def state() -> tuple:
        return house.ledger(), chat.texts(), house.size()

    before = state()
    for update in updates:
        chat.server.redeliver(update)
        chat.server.send_again(update)
    await chat.confirmed()
    await house.rest()
    assert state() == before
