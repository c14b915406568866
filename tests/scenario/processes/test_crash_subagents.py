"""A gateway that is killed while a subagent is at work or waits: nothing runs twice, the caller gets
one result, the person one answer."""

from __future__ import annotations

import pytest

from tests.platforms.telegram import TelegramServer
from tests.scenario.processes.chat import APPROVE, RUN_AGAIN, TREAT_AS_DONE, PrivateChat
from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.house import House, rule, step

pytestmark = pytest.mark.crash


def have(task: str, agent: str = "ops") -> dict[str, object]:
    """A reply that gives a task to another agent."""
    return {"calls": [{"tool": agent, "args": {"task": task}}]}


RULES = [
    rule("have it paid", have("pay {order}"), {"text": "Had {order}."}),
    rule("have it noted", have("note {order}"), {"text": "Had {order}."}),
    rule("far below", have("have it paid {order}", "middle"), {"text": "Had all of {order}."}),
    rule("pay", step("pay"), {"text": "Paid {order}."}),
    rule("note", step("note"), {"text": "Noted {order}."}),
]
TOOLS = 'tools = ["ledger_tools:tools"]\ndefault_decision = "allow"\n'
MORE = (
    f'[agents.ops]\ntool_description = "Pays and notes."\n{TOOLS}'
    '[[agents.ops.rules]]\ntool = "pay*"\ndecision = "ask"\n'
    '[agents.middle]\ntool_description = "Has it done."\nsubagents = ["ops"]\n'
)


@pytest.fixture
async def house(furnish: Furnish, server: TelegramServer) -> House:
    return furnish(api_base=server.api_base, rules=RULES, agent='subagents = ["ops", "middle"]', more=MORE)


def root(house: House) -> str:
    session: str = house.value("SELECT id FROM sessions WHERE parent = ''")
    return session


def results(house: House) -> list[str]:
    """What the thread's agent has read of its calls."""
    found = [r.content for message in house.log(root(house)) for r in message.results]
    return [text.split("\n\n[session: ")[0] for text in found]


BEFORE_THE_CARD = (
    *("assistant.before", "assistant.after", "assistant.before:2", "assistant.after:2"),
    *("stop.before", "stop.after", "stop.before:2", "stop.after:2"),
)
AFTER_THE_PRESS = (
    *("resolution.before", "resolution.after", "approved.before", "results.before", "results.after"),
    *(
        "final.before",
        "final.after",
        "results.before:2",
        "results.after:2",
        "final.before:2",
        "final.after:2",
    ),
)
# The call had begun and its end is not on disk: what a person says who has looked.
IN_DOUBT = {"approved.before": RUN_AGAIN, "results.before": TREAT_AS_DONE}


@pytest.mark.parametrize("point", [*BEFORE_THE_CARD, *AFTER_THE_PRESS])
async def test_an_approved_call_of_a_subagent_runs_once_wherever_the_gateway_dies(
    point: str, house: House, chat: PrivateChat
) -> None:
    first = await house.start(fault=point)
    chat.say("have it paid A1")
    if point in AFTER_THE_PRESS:
        chat.click(await chat.card(), APPROVE)
    await first.died()
    await house.start()
    if point in BEFORE_THE_CARD:
        chat.click(await chat.card(), APPROVE)
    if point in IN_DOUBT:
        chat.click(await chat.card(IN_DOUBT[point]), IN_DOUBT[point])
    await chat.words("Had A1.")
    await house.rest()
    assert [line["order"] for line in house.ledger("pay")] == ["A1"]
    assert results(house) == ["Paid A1."]
    assert len(chat.said("Had A1.")) == 1 and chat.said("Paid A1.") == []
    assert house.rows("SELECT count(*) FROM sessions WHERE parent <> ''") == [(1,)]
    house.assert_valid()


async def test_a_call_that_was_cut_off_below_is_asked_about_in_the_thread(
    house: House, chat: PrivateChat
) -> None:
    first = await house.start(fault="done.before")
    chat.say("have it noted A1")
    await first.died()
    await house.start()
    question = await chat.card(TREAT_AS_DONE)
    assert "working for clerk" in question["text"]
    chat.click(question, TREAT_AS_DONE)
    await chat.words("Had A1.")
    await house.rest()
    assert len(house.ledger("note")) == 1
    assert results(house) == ["Noted A1."]
    house.assert_valid()


@pytest.mark.parametrize("point", ["stop.after:2", "stop.after:3"])
async def test_two_levels_are_resumed_by_one_press_after_a_crash(
    point: str, house: House, chat: PrivateChat
) -> None:
    first = await house.start(fault=point)
    chat.say("far below A1")
    await first.died()
    second = await house.start(fault="resolution.after")
    chat.click(await chat.card(), APPROVE)
    await second.died()
    await house.start()
    await chat.words("Had all of A1.")
    await house.rest()
    assert [line["order"] for line in house.ledger("pay")] == ["A1"]
    assert results(house) == ["Had A1."]
    assert house.rows("SELECT count(*) FROM sessions WHERE parent <> ''") == [(2,)]
    house.assert_valid()
