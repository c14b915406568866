"""Every way in which a turn can end, with its event and its exit code."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.approvals import Deny
from gateway.budget import Spent
from gateway.cancel import CancelToken
from gateway.errors import (
    IntelligenceUnavailable,
    ModelAuthError,
    ModelOverloaded,
    ModelRateLimited,
    ModelRejected,
)
from gateway.events import LoopDenied, LoopDone, LoopMaxTurns, LoopStopped
from gateway.loop import run_agent
from gateway.messages import Message, Text, user
from gateway.outcome import (
    EXIT_CODES,
    EXIT_INTELLIGENCE_UNAVAILABLE,
    EXIT_REQUIRED_TOOL_SERVER_DOWN,
    EXIT_USAGE,
    Outcome,
)
from gateway.providers.base import ModelRequest, ModelResponse, Usage
from tests.clock import FakeClock
from tests.unit.loop.scene import Log, Person, Ran, Replies, Tape, agent, answers, call, options, rule, says


def test_every_outcome_has_an_exit_code_and_the_table_is_the_promised_one() -> None:
    assert {outcome.value: EXIT_CODES[outcome] for outcome in Outcome} == {
        "completed": 0,
        "cancelled": 1,
        "crashed": 1,
        "stalled": 3,
        "loop_detected": 3,
        "refused": 5,
        "denied": 5,
        "max_turns": 7,
        "exhausted_tokens": 7,
        "pending_approval": 8,
        "pending_question": 8,
        "deadline": 124,
    }
    assert (EXIT_USAGE, EXIT_INTELLIGENCE_UNAVAILABLE, EXIT_REQUIRED_TOOL_SERVER_DOWN) == (2, 4, 6)


def test_the_step_cap_is_reported_as_exhausted_steps_and_everything_else_by_its_own_name() -> None:
    words = {outcome: outcome.status for outcome in Outcome}
    assert words.pop(Outcome.MAX_TURNS) == "exhausted_steps"
    assert all(word == outcome.value for outcome, word in words.items())
    assert [outcome for outcome in Outcome if outcome.pending] == [
        Outcome.PENDING_APPROVAL,
        Outcome.PENDING_QUESTION,
    ]


async def test_an_answer_without_calls_completes_the_turn() -> None:
    log = Log()
    result = await run_agent(agent(), Replies(says("hello")), "hi", options=options(log))
    assert (result.outcome, result.status, result.text) == (Outcome.COMPLETED, "completed", "hello")
    assert result.messages == (
        user("hi"),
        Message(role="assistant", content=(Text(text="hello"),), model="fake"),
    )
    assert log.events[-1] == LoopDone(text="hello", steps=1, tokens=15)
    assert (result.usage, result.spent.steps, result.spent.tokens) == (Usage(input=10, output=5), 1, 15)


async def test_a_refusal_is_an_outcome_and_its_words_are_kept() -> None:
    log, model = Log(), Replies(says("I will not do that.", stop="refusal"))
    result = await run_agent(agent(), model, "hi", options=options(log))
    assert (result.outcome, result.text) == (Outcome.REFUSED, "I will not do that.")
    assert result.messages[-1].text == "I will not do that."
    assert log.events[-1] == LoopStopped(outcome="refused", detail="I will not do that.", steps=1, tokens=15)


async def test_the_step_cap_ends_the_turn_after_that_many_model_calls() -> None:
    ran, log = Ran(), Log()
    model = Replies(*(says(f"step {n}", call(f"c{n}", "look", n=n)) for n in range(3)))
    result = await run_agent(agent(ran.tool("look"), max_steps=3), model, "hi", options=options(log))
    assert (result.outcome, result.status) == (Outcome.MAX_TURNS, "exhausted_steps")
    assert (len(model.requests), len(ran.calls)) == (3, 3)
    assert log.events[-1] == LoopMaxTurns(steps=3, tokens=45)


async def test_used_up_tokens_end_the_turn_before_the_next_model_call() -> None:
    ran, log = Ran(), Log()
    model = Replies(says("", call("c1", "look")))
    result = await run_agent(agent(ran.tool("look"), max_tokens=15), model, "hi", options=options(log))
    assert result.outcome is Outcome.EXHAUSTED_TOKENS
    assert ran.names == ["look"]
    assert log.events[-1] == LoopStopped(
        outcome="exhausted_tokens", detail="15 tokens are used up", steps=1, tokens=15
    )


async def test_a_passed_deadline_ends_the_turn_before_the_next_model_call() -> None:
    clock, log, ran = FakeClock(), Log(), Ran()

    async def slow(request: ModelRequest) -> ModelResponse:
        clock.advance(31)
        return says("", call("c1", "look"))

    result = await run_agent(
        agent(ran.tool("look"), deadline=30), Replies(slow), "hi", options=options(log, clock=clock)
    )
    assert result.outcome is Outcome.DEADLINE
    assert ran.names == []
    assert answers(result.messages)["c1"].content == "not run: the time for this turn is used up"
    assert log.kinds[-1] == "loop:stopped"
    assert result.spent.seconds == 31


async def test_the_deadline_also_ends_a_model_call_that_hangs() -> None:
    ended = asyncio.Event()

    async def hang(request: ModelRequest) -> ModelResponse:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    result = await run_agent(agent(deadline=0.02), Replies(hang), "hi")
    assert (result.outcome, result.detail) == (Outcome.DEADLINE, "the time for this turn is used up")
    assert ended.is_set()


async def test_three_times_the_same_text_and_calls_is_stalled_and_the_third_does_not_run() -> None:
    ran, log = Ran(), Log()
    model = Replies(*(says("again", call(f"c{n}", "look", n=1)) for n in range(3)))
    result = await run_agent(agent(ran.tool("look")), model, "hi", options=options(log))
    assert result.outcome is Outcome.STALLED
    assert len(ran.calls) == 2
    assert answers(result.messages)["c2"].content == "not run: the model said the same 3 times"
    assert log.kinds[-2:] == ["tool:result", "loop:stopped"]


async def test_other_words_with_the_same_call_are_not_stalled_but_the_fifth_call_is_a_loop() -> None:
    ran = Ran()
    model = Replies(*(says(f"try {n}", call(f"c{n}", "look", n=1)) for n in range(5)))
    result = await run_agent(agent(ran.tool("look")), model, "hi", options=options())
    assert result.outcome is Outcome.LOOP_DETECTED
    assert len(ran.calls) == 4
    assert result.detail == "look was called 5 times with the same arguments"


async def test_the_order_of_keys_does_not_hide_a_loop() -> None:
    ran = Ran()
    tool = ran.tool("look", input_schema={"type": "object"})
    model = Replies(
        says("a", call("c1", "look", x=1, y=2)),
        says("b", call("c2", "look", y=2, x=1)),
    )
    result = await run_agent(agent(tool, loop_limit=1), model, "hi")
    assert (result.outcome, len(ran.calls)) == (Outcome.LOOP_DETECTED, 1)


async def test_the_same_calls_in_an_earlier_turn_do_not_count() -> None:
    ran = Ran()
    model = Replies(says("x", call("c1", "look", n=1)), says("done"))
    first = await run_agent(agent(ran.tool("look"), loop_limit=1), model, "hi")
    again = Replies(says("x", call("c1", "look", n=1)), says("done"))
    second = await run_agent(agent(ran.tool("look"), loop_limit=1), again, "hi", first.messages)
    assert (second.outcome, len(ran.calls)) == (Outcome.COMPLETED, 2)
    assert list(answers(second.messages)) == ["c1-2"]


async def test_a_cancelled_turn_says_so_and_who_wanted_it() -> None:
    cancel, log = CancelToken(), Log()
    cancel.cancel("stopped by user")
    model = Replies()
    result = await run_agent(agent(), model, "hi", options=options(log, cancel=cancel))
    assert (result.outcome, result.detail) == (Outcome.CANCELLED, "stopped by user")
    assert (log.kinds, model.requests) == (["loop:stopped"], [])


async def test_a_denial_by_a_person_at_hand_ends_the_turn_as_denied() -> None:
    ran, log = Ran(), Log()
    model = Replies(says("", call("c1", "pay")))
    result = await run_agent(
        agent(ran.tool("pay"), default="ask"),
        model,
        "hi",
        options=options(log, approver=Person(pay=Deny(feedback="too much"))),
    )
    reason = "denied by the person at the terminal: too much"
    assert (result.outcome, result.detail) == (Outcome.DENIED, reason)
    assert log.events[-1] == LoopDenied(reason=reason, steps=1, tokens=15)
    assert ran.calls == []


@pytest.mark.parametrize("kind", ["approval", "question"])
async def test_a_call_that_waits_for_a_person_ends_the_run_as_pending(kind: str) -> None:
    ran = Ran()
    asked = call("c1", "pay") if kind == "approval" else call("c1", "ask_user", question="Which?")
    result = await run_agent(agent(ran.tool("pay"), default="ask"), Replies(says("", asked)), "hi")
    assert result.outcome.value == f"pending_{kind}"
    assert result.pending is not None
    assert [p.kind for p in result.pending.outstanding.values()] == [kind]


async def test_one_approval_among_questions_makes_it_a_pending_approval() -> None:
    ran = Ran()
    reply = says("", call("c1", "ask_user", question="Which?"), call("c2", "pay"))
    result = await run_agent(agent(ran.tool("pay"), default="ask"), Replies(reply), "hi")
    assert result.outcome is Outcome.PENDING_APPROVAL


@pytest.mark.parametrize(
    "error",
    [
        ModelOverloaded("busy"),
        ModelRateLimited("slow down", retry_after=3),
        ModelAuthError("no key"),
        ModelRejected("bad request"),
    ],
)
async def test_a_model_that_does_not_answer_is_an_abort_and_no_outcome(error: Exception) -> None:
    with pytest.raises(IntelligenceUnavailable) as caught:
        await run_agent(agent(), Replies(error), "hi")
    assert caught.value.__cause__ is error


async def test_guards_are_looked_at_in_the_promised_order() -> None:
    clock = FakeClock()
    everything = {"max_steps": 1, "max_tokens": 1, "deadline": 5.0}
    spent = Spent(steps=9, tokens=9, seconds=9)
    cancel = CancelToken()
    cancel.cancel()

    async def outcome(limits: dict[str, Any], **more: Any) -> Outcome:
        at = options(clock=clock, spent=spent, **more)
        return (await run_agent(agent(**limits), Replies(says("late")), "hi", options=at)).outcome

    assert await outcome(everything, cancel=cancel) is Outcome.CANCELLED
    assert await outcome(everything) is Outcome.DEADLINE
    assert await outcome({**everything, "deadline": 50.0}) is Outcome.MAX_TURNS
    assert await outcome({"max_steps": 50, "max_tokens": 1, "deadline": 50.0}) is Outcome.EXHAUSTED_TOKENS
    assert await outcome({"max_steps": 50, "max_tokens": 50, "deadline": 50.0}) is Outcome.COMPLETED


async def test_a_denial_by_a_rule_does_not_end_the_turn_and_siblings_run() -> None:
    ran = Ran()
    model = Replies(says("", call("c1", "pay"), call("c2", "look")), says("understood"))
    desk = agent(ran.tool("pay"), ran.tool("look"), rules=[rule("pay", "deny", reason="never on Sundays")])
    result = await run_agent(desk, model, "hi")
    assert result.outcome is Outcome.COMPLETED
    assert ran.names == ["look"]
    found = answers(result.messages)
    assert (found["c1"].content, found["c1"].is_error) == ("denied: never on Sundays", True)
    assert found["c2"].content == "ok"


async def test_what_people_say_meanwhile_follows_the_results() -> None:
    ran, model = Ran(), Replies(says("", call("c1", "look")), says("yes"))
    tape = Tape(steer=[user("and hurry")])
    result = await run_agent(agent(ran.tool("look")), model, "hi", options=options(journal=tape))
    assert [m.text for m in model.seen[1]] == ["hi", "", "", "and hurry"]
    assert result.outcome is Outcome.COMPLETED
