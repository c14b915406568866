"""A reply that is the agreed word: the turn is completed, the log keeps it, nobody hears of it."""

from __future__ import annotations

import pytest

from gateway.eventlog import pack
from gateway.events import LoopDone
from gateway.loop import run_agent
from gateway.messages import Text
from gateway.outcome import Outcome
from gateway.providers.base import ModelRequest, ModelResponse, OnDelta
from gateway.tools.subagent import narrowed
from tests.unit.loop.scene import Log, Ran, Replies, agent, call, options, says

TOKEN = "NO_REPLY"


class Piecemeal(Replies):
    """Streams its texts letter by letter."""

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        response = await super().complete(request)
        tell = on_delta or (lambda text: None)
        for block in response.content:
            for letter in block.text if isinstance(block, Text) else "":
                tell(letter)
        return response


@pytest.mark.parametrize("text", ["NO_REPLY", "\nNO_REPLY \n"])
async def test_c067_the_agreed_word_ends_the_turn_completed_and_is_heard_by_nobody(text: str) -> None:
    log = Log()
    result = await run_agent(agent(silence=TOKEN), Piecemeal(says(text)), "hi", options=options(log))
    assert (result.outcome, result.text, result.silent) == (Outcome.COMPLETED, "", True)
    assert [m.text for m in result.messages] == ["hi", text]
    assert log.kinds == ["budget:check", "loop:done"]
    assert log.of("loop:done")[0].text == ""


async def test_c067_a_reply_that_only_begins_like_the_word_is_streamed_whole() -> None:
    log = Log()
    model = Piecemeal(says("NO_REPLY is not needed"))
    result = await run_agent(agent(silence=TOKEN), model, "hi", options=options(log))
    assert (result.text, result.silent) == ("NO_REPLY is not needed", False)
    assert next(e.text for e in log.of("assistant:delta")) == "NO_REPLY i"
    assert "".join(e.text for e in log.of("assistant:delta")) == result.text


async def test_c067_without_an_agreed_word_the_same_reply_is_an_answer() -> None:
    log = Log()
    result = await run_agent(agent(), Replies(says(TOKEN)), "hi", options=options(log))
    assert (result.text, result.silent) == (TOKEN, False)
    assert [e.text for e in log.of("assistant:text")] == [TOKEN]


async def test_c067_the_word_beside_calls_is_kept_in_the_log_and_not_told() -> None:
    log, ran = Log(), Ran()
    model = Piecemeal(says(TOKEN, call("c1", "look")), says("done"))
    result = await run_agent(agent(ran.tool("look"), silence=TOKEN), model, "hi", options=options(log))
    assert [e.text for e in log.of("assistant:text")] == ["done"]
    assert "".join(e.text for e in log.of("assistant:delta")) == "done"
    assert (result.messages[1].text, len(ran.calls)) == (TOKEN, 1)


async def test_c067_a_refusal_in_the_words_of_silence_is_still_told_as_one() -> None:
    log = Log()
    model = Replies(says(TOKEN, stop="refusal"))
    result = await run_agent(agent(silence=TOKEN), model, "hi", options=options(log))
    assert (result.outcome, result.text, result.detail) == (
        Outcome.REFUSED,
        "",
        "the model declined to answer",
    )


async def test_the_prompt_tells_the_word_in_the_same_bytes_at_every_step() -> None:
    ran = Ran()
    model = Replies(says("", call("c1", "look")), says(TOKEN))
    await run_agent(agent(ran.tool("look"), system_prompt="Be kind.", silence=TOKEN), model, "hi")
    first, second = (request.system for request in model.requests)
    assert first == second and first.startswith("Be kind.") and TOKEN in first


def test_a_subagent_always_answers_its_caller() -> None:
    assert narrowed(agent(silence=TOKEN), ()).silence is None


def test_a_silent_end_is_stored_without_a_reference_to_the_word_in_the_log() -> None:
    done = LoopDone(text="", steps=1, tokens=2)
    assert pack(done, 7).startswith('{"type":"loop:done"')
    assert pack(LoopDone(text="hello", steps=1, tokens=2), 7) == '["answer",6,1,2]'
