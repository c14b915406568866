"""`threadgate pending | resolve | sessions | render`: lists and decisions from the command line."""

from __future__ import annotations

import json

import pytest

from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.house import RULES, House
from tests.scenario.processes.shell import Ran, threadgate

pytestmark = pytest.mark.crash

QUESTION = {
    "match": "^where",
    "replies": [
        {
            "calls": [
                {
                    "tool": "ask_user",
                    "args": {"question": "Where to?", "options": ["staging", "live"], "allow_text": False},
                }
            ]
        },
        {"text": "Going to {answer}."},
    ],
}
SEVERAL = {
    "match": "^several",
    "replies": [
        {
            "calls": [
                {
                    "tool": "ask_user",
                    "args": {
                        "questions": [
                            {"name": "env", "question": "Where to?", "options": ["staging", "live"]},
                            {"name": "count", "question": "How many?", "kind": "integer"},
                            {"name": "sure", "question": "Sure?", "kind": "boolean"},
                        ]
                    },
                }
            ]
        },
        {"text": "So: {answer}."},
    ],
}
SECRETLY = {
    "match": "^secretly",
    "replies": [
        {"calls": [{"tool": "pay_secretly", "args": {"order": "A1", "card": "4111-1111"}}]},
        {"text": "Paid secretly."},
    ],
}


MONDAY = {"match": "^not on Friday", "replies": [{"text": "On Monday, then."}]}


@pytest.fixture
async def house(furnish: Furnish) -> House:
    return furnish(rules=[*RULES, QUESTION, SEVERAL, SECRETLY, MONDAY])


async def ask(house: House, text: str) -> dict:
    """A turn that waits; its line of `threadgate pending --json`."""
    assert (await threadgate(house.folder, "ask", "clerk", text)).code == 8
    return (await threadgate(house.folder, "pending", "--json")).lines[-1]


async def resolve(house: House, *words: str) -> Ran:
    return await threadgate(house.folder, "resolve", *words)


async def test_pending_says_all_there_is_to_know_and_no_secret(house: House) -> None:
    line = await ask(house, "secretly now")
    assert line["kind"] == "approval"
    assert line["tool"] == "pay_secretly"
    assert line["args"]["order"] == "A1"
    assert line["approvers"] == ["cli:local"]
    ran = await threadgate(house.folder, "pending")
    assert ran.code == 0
    assert line["code"] in ran.out
    assert "4111" not in ran.out + json.dumps(line)


async def test_nothing_pending_is_said(house: House) -> None:
    ran = await threadgate(house.folder, "pending")
    assert (ran.code, ran.out.strip()) == (0, "Nothing waits for a decision.")
    assert (await threadgate(house.folder, "pending", "--json")).out == ""


@pytest.mark.parametrize("by", ["pending_id", "code"])
async def test_approve_runs_the_call_and_the_turn_to_its_end(by: str, house: House) -> None:
    line = await ask(house, "pay A1")
    ran = await resolve(house, line[by], "approve")
    assert ran.code == 0
    assert "Paid A1." in ran.out
    assert "resumed: Approved by cli:local" in ran.out
    assert [line["tool"] for line in house.ledger()] == ["note", "pay"]
    again = await resolve(house, line[by], "approve")
    assert again.code == 0
    assert "already: Already decided. Approved by cli:local" in again.out
    assert len(house.ledger("pay")) == 1
    house.assert_valid()


async def test_approve_with_other_arguments_runs_those(house: House) -> None:
    line = await ask(house, "pay A1")
    ran = await resolve(house, line["code"], "approve", "--args", '{"order": "B2"}')
    assert ran.code == 0
    assert [entry["order"] for entry in house.ledger("pay")] == ["B2"]


@pytest.mark.parametrize("args", ['{"order": 7}', '{"nothing": "such"}'])
async def test_arguments_that_do_not_fit_are_invalid_and_nothing_runs(args: str, house: House) -> None:
    line = await ask(house, "pay A1")
    ran = await resolve(house, line["code"], "approve", "--args", args)
    assert ran.code == 2
    assert ran.out.startswith("invalid: ")
    assert house.open_pendings() == [line["pending_id"]]
    assert house.ledger("pay") == []


async def test_approve_for_the_session_is_a_grant(house: House) -> None:
    line = await ask(house, "pay A1")
    assert (await resolve(house, line["code"], "approve", "--scope", "session")).code == 0
    assert house.rows("SELECT kind, tool FROM grants") == [("session", "pay")]


async def test_deny_ends_the_turn_with_5(house: House) -> None:
    line = await ask(house, "pay A1")
    ran = await resolve(house, line["code"], "deny")
    assert ran.code == 5
    assert "resumed: Denied by cli:local" in ran.out
    assert house.ledger("pay") == []
    house.assert_valid()


async def test_the_reason_of_a_denial_is_on_record_and_is_answered_by_the_next_turn(house: House) -> None:
    line = await ask(house, "pay A1")
    ran = await resolve(house, line["code"], "deny", "not", "on", "Friday", "--json")
    done = [event["outcome"] for event in ran.lines if event["type"] == "done"]
    assert done == ["denied", "completed"]
    assert ran.code == 0
    click = ran.lines[-1]
    assert (click["type"], click["outcome"]) == ("click", "resumed")
    assert "not on Friday" in click["message"]
    assert house.ledger("pay") == []
    house.assert_valid()


async def test_answer_goes_to_the_model(house: House) -> None:
    line = await ask(house, "where to")
    assert line["kind"] == "question"
    wrong = await resolve(house, line["code"], "answer", "mars")
    assert wrong.code == 2
    assert "'mars' is not one of the options" in wrong.out
    ran = await resolve(house, line["code"], "answer", "staging")
    assert ran.code == 0
    assert "Going to staging." in ran.out


async def test_several_questions_are_answered_by_name(house: House) -> None:
    line = await ask(house, "several things")
    wrong = await resolve(house, line["code"], "answer", "env=live", "count=lots")
    assert wrong.code == 2
    assert "count: a whole number is needed, like 12; sure: is not answered" in wrong.out
    ran = await resolve(house, line["code"], "answer", "env=live", "count=3", "sure=yes")
    assert ran.code == 0
    assert "resumed: Answered by cli:local" in ran.out and "env: live; count: 3; sure: true" in ran.out
    assert 'So: {"env": "live", "count": 3, "sure": true}.' in ran.out


async def test_a_json_resolve_is_one_event_a_line_and_the_click_last(house: House) -> None:
    line = await ask(house, "pay A1")
    ran = await resolve(house, line["code"], "approve", "--json")
    types = [event["type"] for event in ran.lines]
    assert types[0] == "session"
    assert types[-2:] == ["done", "click"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("p_nothing", "approve"), 1, "unknown: "),
        (("p_nothing", "maybe"), 2, "approve, deny or answer"),
        (("p_nothing", "answer"), 2, "the answer is missing"),
        (("p_nothing", "approve", "--scope", "ever"), 2, "once, session or always"),
        (("p_nothing", "approve", "--args", "{"), 2, "is not a JSON object"),
        (("p_nothing", "approve", "--args", "[1]"), 2, "is not a JSON object"),
    ],
)
async def test_words_that_make_no_sense_are_told_apart(
    words: tuple[str, ...], code: int, said: str, house: House
) -> None:
    ran = await resolve(house, *words)
    assert ran.code == code
    assert said in ran.out + ran.err
    assert "Traceback" not in ran.err


async def test_sessions_lists_what_was_talked_about(house: House) -> None:
    assert "no sessions" in (await threadgate(house.folder, "sessions")).out
    await threadgate(house.folder, "ask", "clerk", "hello")
    (line,) = (await threadgate(house.folder, "sessions", "--json")).lines
    assert (line["agent"], line["status"], line["title"], line["messages"]) == ("clerk", "idle", "hello", 2)
    ran = await threadgate(house.folder, "sessions")
    assert line["session_id"] in ran.out


async def test_render_prints_what_would_be_sent(house: House) -> None:
    ran = await threadgate(house.folder, "render", "--platform", "telegram", stdin="**bold**")
    (payload,) = json.loads(ran.out)
    assert payload["text"] == "bold"
    assert (await threadgate(house.folder, "render", "--platform", "fax", stdin="x")).code == 2


async def test_a_gateway_that_runs_beside_goes_on_with_what_the_command_decides(furnish: Furnish) -> None:
    house = furnish(web=True)
    gateway = await house.start()
    async with await house.client(gateway) as client:
        posted = await client.post("/agents/clerk/messages?wait=1", json={"text": "pay A1"})
        (pending_id,) = posted.json()["pending"]
        ran = await resolve(house, pending_id, "approve")
        assert ran.code == 0
        await house.rest()
        session = (await client.get(f"/sessions/{posted.json()['session_id']}")).json()
    assert session["status"] == "completed"
    assert len(house.ledger("pay")) == 1
    house.assert_valid()
