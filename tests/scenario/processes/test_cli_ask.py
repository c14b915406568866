"""`threadgate ask`: one turn, its events as lines, its outcome as the exit code."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.gateway import GatewayProcess, until
from tests.scenario.processes.house import RULES, House, step
from tests.scenario.processes.shell import threadgate

pytestmark = pytest.mark.crash


def again(count: int, text: str = "") -> dict[str, Any]:
    """The model makes one and the same call again and again."""
    call = {"tool": "note_safe", "args": {"order": "A1"}}
    return {"calls": [call], **({"text": f"{text} {count}"} if text else {})}


OUTCOMES = [
    {"match": "^stall", "replies": [again(n) for n in range(9)]},
    {"match": "^circle", "replies": [again(n, "Try") for n in range(9)]},
    {"match": "^refuse", "replies": [{"text": "I will not.", "stop": "refusal"}]},
    {"match": "^unreachable", "replies": [{"error": "auth"}]},
    {"match": "^slow", "replies": [{"text": "Too late.", "delay": 20.0}]},
    {
        "match": "^steps",
        "replies": [{**step("note_safe", order=f"A{n}"), "text": f"Step {n}"} for n in range(9)],
    },
    {"match": "^ask", "replies": [{"calls": [{"tool": "ask_user", "args": {"question": "Which?"}}]}]},
]
MORE = """
[agents.hasty]
deadline = "1s"
[agents.brief]
tools = ["ledger_tools:tools"]
default_decision = "allow"
max_steps = 2
[agents.poor]
tools = ["ledger_tools:tools"]
default_decision = "allow"
max_tokens = 3
"""


@pytest.fixture
async def house(furnish: Furnish) -> House:
    return furnish(rules=[*RULES, *OUTCOMES], more=MORE, web=True)


@pytest.mark.parametrize(
    ("agent", "text", "outcome", "code"),
    [
        ("clerk", "hello", "completed", 0),
        ("clerk", "stall", "stalled", 3),
        ("clerk", "circle", "loop_detected", 3),
        ("clerk", "unreachable", "crashed", 4),
        ("clerk", "refuse", "refused", 5),
        ("brief", "steps", "max_turns", 7),
        ("poor", "steps", "exhausted_tokens", 7),
        ("clerk", "pay A1", "pending_approval", 8),
        ("clerk", "ask me", "pending_question", 8),
        ("hasty", "slow", "deadline", 124),
    ],
)
async def test_the_outcome_is_the_last_event_and_the_exit_code(
    agent: str, text: str, outcome: str, code: int, house: House
) -> None:
    ran = await threadgate(house.folder, "ask", agent, text, "--json")
    events = ran.lines
    assert events[0]["type"] == "session"
    assert events[0]["agent"] == agent
    assert [event["type"] for event in events].count("done") == 1
    done = events[-1]
    assert done["type"] == "done"
    assert done["outcome"] == outcome
    assert done["status"] == ("exhausted_steps" if outcome == "max_turns" else outcome)
    assert done["exit_code"] == ran.code == code
    assert "Traceback" not in ran.err


async def test_in_words_the_answer_is_on_standard_output(house: House) -> None:
    ran = await threadgate(house.folder, "ask", "clerk", "hello")
    assert (ran.code, ran.out.strip(), ran.err) == (0, "Hello yourself.", "")


async def test_what_to_ask_can_come_from_standard_input(house: House) -> None:
    ran = await threadgate(house.folder, "ask", "clerk", "-", stdin="hello\n")
    assert (ran.code, ran.out.strip()) == (0, "Hello yourself.")


async def test_what_waits_is_named_with_its_id_and_the_exit_code_8(house: House) -> None:
    ran = await threadgate(house.folder, "ask", "clerk", "pay A1")
    assert ran.code == 8
    (pending_id,) = house.open_pendings()
    assert f"waits for a person: {pending_id}" in ran.out


async def test_a_model_that_cannot_be_reached_is_said_in_one_line(house: House) -> None:
    ran = await threadgate(house.folder, "ask", "clerk", "unreachable")
    assert ran.code == 4
    assert "Traceback" not in ran.out + ran.err


@pytest.mark.parametrize("text", ["", "   \n"])
async def test_nothing_to_ask_is_a_usage_error(text: str, house: House) -> None:
    (await threadgate(house.folder, "ask", "clerk", "-", stdin=text)).failed(2, "TEXT", "empty")


async def test_an_unknown_agent_is_a_usage_error_that_names_the_known_ones(house: House) -> None:
    ran = await threadgate(house.folder, "ask", "nobody", "hello")
    ran.failed(2, "'nobody'", "brief, clerk, hasty, poor")


async def test_the_next_process_sees_the_same_session_and_takes_up_what_a_kill_left(house: House) -> None:
    killed = await threadgate(house.folder, "ask", "clerk", "note A1", THREADGATE_FAULT="started.before")
    assert killed.code == -9
    assert house.ledger() == []
    await house.start_and_rest()
    assert [line["tool"] for line in house.ledger()] == ["note"]
    house.assert_valid()


async def test_ctrl_c_ends_it_without_a_traceback_and_the_turn_is_left_for_the_next_process(
    house: House,
) -> None:
    asking = await GatewayProcess.start(house.folder, "ask", "clerk", "wait A1")
    await until(lambda: house.ledger("wait began"), "the tool begins")
    asking.signal(signal.SIGINT)
    assert await asking.ended() == 130
    assert "Traceback" not in asking.text
    await house.start_and_rest()
    (pending,) = (await threadgate(house.folder, "pending", "--json")).lines
    assert (pending["kind"], pending["tool"]) == ("question", "wait")
