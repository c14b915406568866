"""Odd replies of models: cut, empty, malformed, refused, with ids used twice."""

from __future__ import annotations

import pytest

from gateway.loop import run_agent
from gateway.messages import Message, Text, Thinking, ToolUse
from gateway.outcome import Outcome
from gateway.providers.base import ModelResponse, StopReason, Usage
from gateway.run import CUT_RESULT
from tests.unit.loop.scene import Log, Ran, Replies, Tape, agent, answers, call, contents, options, says


def thinks(*blocks: object, stop: StopReason = "end") -> ModelResponse:
    return ModelResponse(content=(Thinking(text="hm"), *blocks), stop=stop, model="fake")  # type: ignore[arg-type]


async def test_c063_no_call_of_a_reply_that_was_cut_runs_and_the_model_is_told() -> None:
    ran, log, tape = Ran(), Log(), Tape()
    cut = says("", call("c1", "look", n=1), call("c2", "look", invalid="cut"), stop="length")
    model = Replies(cut, says("", call("c3", "look", n=2)), says("done"))
    result = await run_agent(agent(ran.tool("look")), model, "hi", options=options(log, journal=tape))
    assert (result.outcome, ran.calls) == (Outcome.COMPLETED, [("look", {"n": 2})])
    assert contents(model.seen[1][-1]) == [CUT_RESULT, CUT_RESULT]
    assert all(r.is_error for r in model.seen[1][-1].results)
    assert [row.state for row in tape.rows] == ["refused", "refused", "allowed"]
    assert [e.call_id for e in log.of("tool:result")] == ["c1", "c2", "c3"]


async def test_c063_after_two_retries_a_cut_reply_ends_the_turn_with_a_clear_word() -> None:
    ran = Ran()
    model = Replies(*(says(f"try {n}", call(f"c{n}", "look"), stop="length") for n in range(3)))
    result = await run_agent(agent(ran.tool("look")), model, "hi")
    assert (result.outcome, len(model.requests), ran.calls) == (Outcome.STALLED, 3, [])
    assert result.detail == "the model's reply was cut at the output limit again and again"
    assert result.spent.output_cuts == 3
    assert sorted(answers(result.messages)) == ["c0", "c1", "c2"]


async def test_c063_broken_arguments_are_one_error_result_and_the_others_run() -> None:
    ran = Ran()
    reply = says("", call("c1", "look", invalid="expected a comma"), call("c2", "look", n=2))
    model = Replies(reply, says("done"))
    await run_agent(agent(ran.tool("look")), model, "hi")
    assert ran.calls == [("look", {"n": 2})]
    assert contents(model.seen[1][-1]) == ["invalid JSON arguments: expected a comma", "ok"]


async def test_a_text_that_was_cut_is_the_answer_and_the_result_says_so() -> None:
    result = await run_agent(agent(), Replies(says("half an ans", stop="length")), "hi")
    assert (result.outcome, result.text) == (Outcome.COMPLETED, "half an ans")
    assert result.detail == "the answer was cut at the output limit"


@pytest.mark.parametrize(
    "empty",
    [
        says(""),
        says(" \n"),
        thinks(),
        thinks(stop="length"),
        says("", stop="malformed"),
        says("", call("c1", "look"), stop="malformed"),
    ],
    ids=["nothing", "blank", "thinking only", "cut while thinking", "malformed", "malformed with a call"],
)
async def test_c067_an_empty_reply_is_asked_for_once_more_and_then_ends_the_turn(
    empty: ModelResponse,
) -> None:
    ran, log = Ran(), Log()
    model = Replies(empty, empty)
    result = await run_agent(agent(ran.tool("look")), model, "hi", options=options(log))
    assert (result.outcome, result.detail) == (Outcome.STALLED, "the model gave no answer")
    assert (len(model.requests), ran.calls) == (2, [])
    assert [m.role for m in result.messages] == ["user"]
    assert log.kinds == ["budget:check", "loop:stopped"]


async def test_c067_the_quiet_retry_costs_no_step_and_leaves_no_trace() -> None:
    log, model = Log(), Replies(thinks(), says("here"))
    result = await run_agent(agent(), model, "hi", options=options(log))
    assert (result.outcome, result.text, result.spent.steps) == (Outcome.COMPLETED, "here", 1)
    assert log.kinds == ["budget:check", "assistant:text", "loop:done"]
    assert model.seen[0] == model.seen[1]
    assert [m.role for m in result.messages] == ["user", "assistant"]


async def test_c067_a_refusal_is_not_retried_and_none_of_its_calls_runs() -> None:
    ran, model = Ran(), Replies(says("", call("c1", "look"), stop="refusal"))
    result = await run_agent(agent(ran.tool("look")), model, "hi")
    assert (result.outcome, result.detail) == (Outcome.REFUSED, "the model declined to answer")
    assert (len(model.requests), ran.calls) == (1, [])
    assert [m.role for m in result.messages] == ["user"]


async def test_blank_texts_beside_calls_are_neither_kept_nor_told() -> None:
    ran, log = Ran(), Log()
    reply = ModelResponse(
        content=(Text(text="\n"), call("c1", "look"), Text(text="")), stop="tool_calls", usage=Usage()
    )
    result = await run_agent(agent(ran.tool("look")), Replies(reply, says("x")), "hi", options=options(log))
    assert result.messages[1].content == (call("c1", "look"),)
    assert [event.text for event in log.of("assistant:text")] == ["x"]


async def test_a_reply_is_stored_verbatim_with_its_model() -> None:
    blocks = (
        Thinking(text="hm", opaque={"signature": "abc"}),
        Text(text="Looking."),
        ToolUse(id="c1", name="look", input={}, opaque={"thought": "xyz"}),
    )
    reply = ModelResponse(content=blocks, stop="tool_calls", model="vendor/model-1")
    tape = Tape()
    await run_agent(agent(Ran().tool("look")), Replies(reply, says("x")), "hi", options=options(journal=tape))
    assert tape.messages[0] == Message(role="assistant", content=blocks, model="vendor/model-1")


async def test_ids_that_an_endpoint_repeats_are_made_unique_in_the_whole_session() -> None:
    ran = Ran()
    twice = says("", call("call_0", "look", n=1), call("call_0", "look", n=2), call("", "look", n=3))
    model = Replies(twice, says("", call("call_0", "look", n=4)), says("done"))
    result = await run_agent(agent(ran.tool("look")), model, "hi")
    assert list(answers(result.messages)) == ["call_0", "call_0-2", "call", "call_0-3"]
    assert len(ran.calls) == 4


async def test_the_request_carries_prompt_tools_and_session() -> None:
    model = Replies(says("x"))
    desk = agent(Ran().tool("look"), system_prompt="Be kind.", max_output_tokens=99)
    await run_agent(desk, model, "hi", options=options())
    (request,) = model.requests
    assert (request.system, request.max_output_tokens, request.session_id) == ("Be kind.", 99, "s1")
    assert [spec.name for spec in request.tools] == ["ask_user", "read_result", "look"]
