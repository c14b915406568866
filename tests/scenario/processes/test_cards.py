"""A card outlives the process that drew it, and counts once however many people and processes click."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator

import pytest

from tests.platforms.telegram import TelegramServer
from tests.scenario.processes.chat import APPROVE, DENY, PrivateChat, subject
from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.gateway import until
from tests.scenario.processes.house import ADA, BOB
from tests.scenario.processes.page import Caller

pytestmark = pytest.mark.crash

BOTH = f'approvers = ["telegram:{ADA}", "telegram:{BOB}"]'


@pytest.fixture
async def callers(furnish: Furnish) -> AsyncIterator[list[Caller]]:
    """Two callers of one installation, not pointed anywhere yet."""
    house = furnish(web=True)
    callers = [Caller(house), Caller(house)]
    yield callers
    for caller in callers:
        await caller.close()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
async def test_c039_over_telegram_the_first_click_after_a_restart_counts_and_no_other(
    end: signal.Signals, furnish: Furnish, server: TelegramServer
) -> None:
    house = furnish(api_base=server.api_base, pay=BOTH)
    chat = PrivateChat(server, house)
    first = await house.start()
    chat.say("pay A1")
    card = await chat.card()
    await house.rest()
    first.signal(end)
    assert await first.ended() == (0 if end is signal.SIGTERM else -end)
    await house.start()
    assert subject(chat.cards(APPROVE)[0]) == subject(card)
    clicks = [chat.click(card, APPROVE), chat.click(card, APPROVE), chat.click(card, DENY, BOB)]
    said = [await chat.answered(click) for click in clicks]
    assert said[0].startswith("Approved by Ada")
    for text in said[1:]:
        assert text.startswith("Already decided. Approved by Ada (telegram:777:4242), 20")
        assert "UTC" in text
    assert len(await chat.words("Paid A1.")) == 1
    await house.rest()
    assert [line["tool"] for line in house.ledger()] == ["note", "pay"]
    assert chat.cards(APPROVE) == []
    house.assert_valid()


async def test_over_http_a_card_outlives_its_process_and_the_second_click_says_who_and_when(
    callers: list[Caller],
) -> None:
    caller, house = callers[0], callers[0].house
    first = await house.start()
    await caller.use(first)
    posted = await caller.say("pay A1", "m1")
    assert posted is not None
    card = await caller.waiting()
    await first.kill()
    await caller.use(await house.start())
    assert [entry["pending_id"] for entry in await caller.pending()] == [card["pending_id"]]
    clicked = await caller.resolve(card["pending_id"])
    assert clicked is not None
    assert (clicked["outcome"], clicked["status_code"]) == ("resumed", 200)
    late = await caller.resolve(card["pending_id"], "deny")
    assert late is not None
    assert (late["outcome"], late["status_code"]) == ("already", 200)
    assert late["by"] == "web:local"
    assert late["at"] == clicked["at"]
    session = await caller.ended(posted["session_id"])
    assert session["messages"][-1]["content"][0]["text"] == "Paid A1."
    assert [line["tool"] for line in house.ledger()] == ["note", "pay"]


async def test_two_processes_and_two_clicks_at_once_are_one_decision_and_one_run(
    callers: list[Caller],
) -> None:
    house = callers[0].house
    for caller in callers:
        await caller.use(await house.start())
    for number in range(5):
        order = f"A{number}"
        posted = await callers[number % 2].say(f"pay {order}", f"m{number}")
        assert posted is not None
        card = await callers[0].waiting()
        barrier = asyncio.Barrier(2)

        async def click(caller: Caller, pending_id: str, barrier: asyncio.Barrier = barrier) -> str:
            await barrier.wait()
            result = await caller.resolve(pending_id)
            assert result is not None
            return result["outcome"]

        outcomes = await asyncio.gather(*(click(caller, card["pending_id"]) for caller in callers))
        assert sorted(outcomes) == ["already", "resumed"]
        await callers[1].ended(posted["session_id"])
        assert [line["order"] for line in house.ledger("pay")] == [f"A{n}" for n in range(number + 1)]
    house.assert_valid()


async def test_what_one_process_leaves_undone_the_other_takes_up(callers: list[Caller]) -> None:
    house = callers[0].house
    first = await house.start()
    await callers[0].use(first)
    await callers[1].use(await house.start())
    posted = await callers[0].say("wait A1", "m1")
    assert posted is not None
    await until(lambda: house.ledger("wait began"), "the tool begins")
    await first.kill()
    question = await callers[1].waiting()
    assert question["kind"] == "question"
    answered = await callers[1].answer(question["pending_id"], "give up")
    assert answered is not None
    assert answered["outcome"] == "resumed"
    session = await callers[1].ended(posted["session_id"])
    assert session["messages"][-1]["content"][0]["text"] == "Waited A1."
    house.assert_valid()
