"""What a tool promises decides what becomes of a call that a crash cut off. C074."""

from __future__ import annotations

import pytest

from gateway.messages import ToolResult
from gateway.verdicts import GAVE_UP, INTERRUPTED
from tests.platforms.telegram import TelegramServer
from tests.scenario.processes.chat import APPROVE, RUN_AGAIN, TREAT_AS_DONE, PrivateChat
from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.house import House, rule, step

pytestmark = pytest.mark.crash

REPEATABLE = ("note_safe", "note_idempotent")
TOOLS = (*REPEATABLE, "note", "pay_safe", "pay_idempotent", "pay")
RULES = [
    *(rule(name, step(name), {"text": "Ready {order}."}) for name in TOOLS),
    rule(
        "both",
        {"calls": [{"tool": "note", "args": {"order": name}} for name in ("first", "second")]},
        {"text": "Ready {order}."},
    ),
]


@pytest.fixture
async def house(furnish: Furnish, server: TelegramServer) -> House:
    return furnish(api_base=server.api_base, rules=RULES)


def results(house: House) -> list[ToolResult]:
    return [result for message in house.log() for result in message.results]


@pytest.mark.parametrize("tool", REPEATABLE)
async def test_a_call_that_may_run_twice_runs_again_without_a_question(
    tool: str, house: House, chat: PrivateChat
) -> None:
    first = await house.start(fault="done.before")
    chat.say(f"{tool} A1")
    await first.died()
    await house.start()
    await chat.words("Ready A1.")
    await house.rest()
    before, after = house.ledger(tool)
    assert before["key"] == after["key"]
    assert chat.texts() == ["Ready A1."]
    house.assert_valid()


@pytest.mark.parametrize("tool", ["pay_safe", "pay_idempotent"])
@pytest.mark.parametrize(("point", "runs"), [("approved.before", 1), ("approved.after", 2)])
async def test_an_approved_call_that_may_run_twice_runs_again_without_a_second_approval(
    tool: str, point: str, runs: int, house: House, chat: PrivateChat
) -> None:
    first = await house.start(fault=point)
    chat.say(f"{tool} A1")
    chat.click(await chat.card(), APPROVE)
    await first.died()
    await house.start()
    await chat.words("Ready A1.")
    await house.rest()
    lines = house.ledger(tool)
    assert len(lines) == runs
    assert len({line["key"] for line in lines}) == 1
    assert chat.cards(RUN_AGAIN) == []
    house.assert_valid()


@pytest.mark.parametrize(
    ("answer", "runs", "read"),
    [(TREAT_AS_DONE, 1, "treat this call as done"), ("give up", 1, GAVE_UP), (RUN_AGAIN, 2, "note A1: done")],
)
async def test_a_person_says_what_became_of_any_other_call(
    answer: str, runs: int, read: str, house: House, chat: PrivateChat
) -> None:
    first = await house.start(fault="done.before")
    chat.say("note A1")
    await first.died()
    await house.start()
    question = await chat.card(answer)
    assert "while note was running" in question["text"]
    assert "A1" in question["text"]
    chat.click(question, answer)
    await chat.words("Ready A1.")
    await house.rest()
    assert len(house.ledger("note")) == runs
    (result,) = results(house)
    assert read in result.content
    house.assert_valid()


async def test_c074_what_is_done_is_used_and_only_what_was_cut_off_is_asked_about(
    house: House, chat: PrivateChat
) -> None:
    first = await house.start(fault="started.after:2")
    chat.say("both A1")
    await first.died()
    assert [line["order"] for line in house.ledger()] == ["first"]
    await house.start()
    chat.click(await chat.card(RUN_AGAIN), RUN_AGAIN)
    await chat.words("Ready A1.")
    await house.rest()
    assert [line["order"] for line in house.ledger()] == ["first", "second"]
    one, two = (result.content for result in results(house))
    assert one == "note first: done"
    assert "had begun before" in two and two.endswith("]\nnote second: done")
    assert [message.role for message in house.log()] == ["user", "assistant", "user", "assistant"]
    house.assert_valid()


@pytest.mark.parametrize("point", ["started.after", "done.before"])
async def test_c074_with_on_unknown_report_the_turn_goes_on_and_the_person_is_told(
    point: str, furnish: Furnish, server: TelegramServer
) -> None:
    house = furnish(api_base=server.api_base, rules=RULES, agent='on_unknown = "report"')
    chat = PrivateChat(server, house)
    first = await house.start(fault=point)
    chat.say("note A1")
    await first.died()
    await house.start()
    await chat.words("Ready A1.")
    await house.rest()
    (result,) = results(house)
    assert result.is_error
    assert result.content == INTERRUPTED
    assert len(house.ledger("note")) == (0 if point == "started.after" else 1)
    (told,) = [text for text in chat.texts() if "note" in text]
    assert "may or may not have" in told
    house.assert_valid()


async def test_a_stop_that_was_cut_off_before_anybody_was_asked_asks_and_never_runs_unasked(
    house: House, chat: PrivateChat
) -> None:
    first = await house.start(fault="stop.before")
    chat.say("pay A1")
    await first.died()
    await house.start()
    card = await chat.card()
    await house.rest()
    assert house.ledger() == []
    chat.click(card, "Deny")
    await chat.words("Stopped: denied by Ada")
    await house.rest()
    assert house.ledger() == []
    house.assert_valid()
