"""The patient model: what it tries again, how long it waits, and when it goes elsewhere."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

import pytest

from gateway.errors import (
    IntelligenceUnavailable,
    ModelAuthError,
    ModelError,
    ModelOverloaded,
    ModelRateLimited,
    ModelRejected,
)
from gateway.messages import Message, Text, Thinking, ToolUse, assistant, user
from gateway.providers.base import ModelRequest, ModelResponse, OnDelta, StopReason, Usage
from gateway.providers.retry import ResilientModel, without_earlier_thinking

Step = ModelError | ModelResponse


class HandClock:
    """Time moves only by sleeping, at once."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


class Listed:
    """A model that does what its list says, and then repeats the last entry."""

    def __init__(self, id: str, *steps: Step) -> None:
        self.id = id
        self.steps = list(steps)
        self.asked: list[ModelRequest] = []
        self.closed = False

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        step = self.steps[min(len(self.asked), len(self.steps) - 1)]
        self.asked.append(request)
        if on_delta is not None:
            on_delta(self.id)
        if isinstance(step, ModelError):
            raise step
        return step

    async def close(self) -> None:
        self.closed = True


def reply(text: str = "ok", *, stop: StopReason = "end", thinking: str = "") -> ModelResponse:
    blocks = (Thinking(text=thinking),) if thinking else ()
    content = (*blocks, Text(text=text)) if text else blocks
    return ModelResponse(content=content, stop=stop, usage=Usage(input=10, output=1), model="m")


BUSY = ModelOverloaded("busy", provider="p")
REQUEST = ModelRequest(system="", messages=[user("go")])


def patient(clock: HandClock, *models: Listed, jitter: Callable[[], float] = lambda: 0.5) -> ResilientModel:
    return ResilientModel(models, clock=clock, jitter=jitter, second_chance=True)


async def test_a_busy_model_is_asked_again_after_growing_waits() -> None:
    clock, model = HandClock(), Listed("a", BUSY, BUSY, BUSY, reply())
    assert await patient(clock, model).complete(REQUEST) == reply()
    assert clock.slept == [0.75, 1.5, 3.0]


async def test_waits_are_never_longer_than_the_longest() -> None:
    clock, model = HandClock(), Listed("a", *[BUSY] * 9, reply())
    await ResilientModel([model], clock=clock, attempts=10, jitter=lambda: 0.999).complete(REQUEST)
    assert max(clock.slept) <= 30
    assert clock.slept == sorted(clock.slept)


async def test_the_wait_that_the_endpoint_asks_for_is_kept() -> None:
    clock, model = HandClock(), Listed("a", ModelRateLimited("slow", retry_after=7), reply())
    await patient(clock, model, jitter=lambda: 0.0).complete(REQUEST)
    assert clock.slept == [7]


async def test_a_wait_beyond_patience_goes_to_the_next_model_at_once() -> None:
    clock = HandClock()
    first, second = Listed("a", ModelRateLimited("slow", retry_after=600)), Listed("b", reply())
    assert await patient(clock, first, second).complete(REQUEST) == reply()
    assert clock.slept == []
    assert len(first.asked) == 1


async def test_after_all_tries_the_next_model_is_asked_and_the_failed_one_rests() -> None:
    clock = HandClock()
    first, second = Listed("a", BUSY), Listed("b", reply())
    model = patient(clock, first, second)
    await model.complete(REQUEST)
    assert (len(first.asked), len(second.asked)) == (4, 1)
    await model.complete(REQUEST)
    assert (len(first.asked), len(second.asked)) == (4, 2)
    clock.time += 61
    first.steps = [reply()]
    await model.complete(REQUEST)
    assert (len(first.asked), len(second.asked)) == (5, 2)


async def test_a_refused_key_is_not_tried_again() -> None:
    clock = HandClock()
    first, second = Listed("a", ModelAuthError("no")), Listed("b", reply())
    await patient(clock, first, second).complete(REQUEST)
    assert (len(first.asked), clock.slept) == (1, [])


WORDS = "no model answered: a is overloaded or cannot be reached; b refuses the key or"


async def test_when_no_model_answers_the_intelligence_is_unavailable() -> None:
    models = [Listed("a", BUSY), Listed("b", ModelAuthError("no"))]
    with pytest.raises(IntelligenceUnavailable, match=WORDS):
        await patient(HandClock(), *models).complete(REQUEST)
    assert len(models[0].asked) == 4


async def test_c069_a_prompt_that_is_too_long_goes_to_the_caller_at_once() -> None:
    first, second = Listed("a", ModelRejected("no", context_too_long=True)), Listed("b", reply())
    with pytest.raises(ModelRejected) as caught:
        await patient(HandClock(), first, second).complete(REQUEST)
    assert caught.value.context_too_long
    assert (len(first.asked), len(second.asked)) == (1, 0)


async def test_a_request_that_one_model_refuses_is_put_to_the_next_one_at_once() -> None:
    clock, first, second = HandClock(), Listed("a", ModelRejected("no such keyword")), Listed("b", reply())
    model = patient(clock, first, second)
    assert await model.complete(REQUEST) == reply()
    assert (len(first.asked), clock.slept) == (1, [])
    await model.complete(REQUEST)
    assert len(first.asked) == 2  # the next request may be to its liking


async def test_what_no_model_takes_is_refused_in_the_words_of_the_first() -> None:
    models = [Listed("a", ModelRejected("no such keyword")), Listed("b", ModelAuthError("no"))]
    with pytest.raises(ModelRejected, match="no such keyword"):
        await patient(HandClock(), *models).complete(REQUEST)


async def test_the_last_model_is_waited_for_as_long_as_it_asks() -> None:
    clock = HandClock()
    first, last = Listed("a", ModelAuthError("no")), Listed("b", ModelOverloaded("", retry_after=60), reply())
    assert await patient(clock, first, last, jitter=lambda: 0.0).complete(REQUEST) == reply()
    assert clock.slept == [60]


async def test_waits_that_an_endpoint_asks_for_have_an_end_all_together() -> None:
    clock, model = HandClock(), Listed("a", ModelRateLimited("slow", retry_after=50))
    with pytest.raises(IntelligenceUnavailable, match="a limits the rate and asks to wait 50 s"):
        await patient(clock, model, jitter=lambda: 0.0).complete(REQUEST)
    assert clock.slept == [50, 50]


@pytest.mark.parametrize(
    ("asked", "told"),
    [(121, "2 min"), (7_200, "2 h"), (86_400.0 * 3, "3 d"), (1e12, "for months"), (math.inf, "for months")],
)
async def test_an_absurd_wait_is_not_waited_but_told(asked: float, told: str) -> None:
    clock, model = HandClock(), Listed("a", ModelRateLimited("slow", retry_after=asked))
    with pytest.raises(IntelligenceUnavailable, match=f"asks to wait {told}$"):
        await patient(clock, model).complete(REQUEST)
    assert (clock.slept, len(model.asked)) == ([], 1)


@pytest.mark.parametrize("asked", [-5.0, math.nan, 0.0])
async def test_a_wait_that_makes_no_sense_is_the_usual_one(asked: float) -> None:
    clock, model = HandClock(), Listed("a", ModelRateLimited("slow", retry_after=asked), reply())
    assert await patient(clock, model).complete(REQUEST) == reply()
    assert clock.slept == [0.75]


@pytest.mark.parametrize(("asked", "rests"), [(600.0, 600), (1e9, 3_600)])
async def test_a_model_rests_for_as_long_as_it_has_asked_for_but_not_for_ever(
    asked: float, rests: int
) -> None:
    clock = HandClock()
    first, second = Listed("a", ModelRateLimited("slow", retry_after=asked), reply()), Listed("b", reply())
    model = patient(clock, first, second)
    for seconds, times in ((0, 1), (rests - 1, 1), (2, 2)):
        clock.time += seconds
        await model.complete(REQUEST)
        assert len(first.asked) == times


async def test_empty_pieces_of_an_adapter_are_no_new_beginning() -> None:
    class Stutters(Listed):
        async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
            assert on_delta is not None
            on_delta("")
            return await super().complete(request, on_delta)

    heard: list[str] = []
    await patient(HandClock(), Stutters("a", reply())).complete(REQUEST, heard.append)
    assert heard == ["a"]


@pytest.mark.parametrize(
    "useless",
    [
        reply(""),
        reply(" \n"),
        reply("", thinking="hm"),
        reply("", stop="malformed"),
        reply("x", stop="malformed"),
    ],
)
async def test_c067_a_useless_reply_is_asked_for_once_more_and_both_are_paid(useless: ModelResponse) -> None:
    clock, model = HandClock(), Listed("a", useless, reply())
    response = await patient(clock, model).complete(REQUEST)
    assert response.content == reply().content
    assert response.usage == Usage(input=20, output=2)
    assert clock.slept == []


async def test_c067_a_second_useless_reply_stands() -> None:
    model = Listed("a", reply(""))
    response = await patient(HandClock(), model).complete(REQUEST)
    assert (response.content, len(model.asked)) == ((), 2)


async def test_c067_without_a_second_chance_an_empty_reply_goes_to_the_caller() -> None:
    model = Listed("a", reply(""), reply())
    assert await ResilientModel([model], clock=HandClock()).complete(REQUEST) == reply("")
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    "useful",
    [
        reply("", stop="refusal"),
        reply("", stop="length"),
        ModelResponse(content=(ToolUse(id="t", name="t", input={}),), stop="tool_calls"),
    ],
)
async def test_c067_refusals_cuts_and_calls_are_not_asked_for_again(useful: ModelResponse) -> None:
    model = Listed("a", useful, reply())
    assert await patient(HandClock(), model).complete(REQUEST) == useful


THOUGHT = Thinking(text="hm", opaque={"x": 1})


def thinking_log() -> Sequence[Message]:
    return [
        user("a"),
        assistant(THOUGHT, Text(text="b")),
        user("c"),
        assistant(THOUGHT, ToolUse(id="t", name="t", input={})),
    ]


async def test_c059_a_refusal_of_thinking_gets_one_more_try_without_that_of_earlier_turns() -> None:
    refused = ModelRejected("thinking", about_thinking=True)
    model = Listed("a", refused, reply())
    log = thinking_log()
    await patient(HandClock(), model).complete(ModelRequest(system="", messages=log, session_id="s"))
    second = model.asked[1]
    assert [[type(b) for b in m.content] for m in second.messages] == [
        [Text],
        [Text],
        [Text],
        [Thinking, ToolUse],
    ]
    assert second.session_id == "s"
    assert second.messages[3] is log[3]


async def test_c059_a_second_refusal_of_thinking_is_the_caller_s() -> None:
    model = Listed("a", ModelRejected("thinking", about_thinking=True))
    with pytest.raises(ModelRejected):
        await patient(HandClock(), model).complete(ModelRequest(system="", messages=thinking_log()))
    assert len(model.asked) == 2


async def test_c059_without_earlier_thinking_there_is_nothing_to_try() -> None:
    model = Listed("a", ModelRejected("thinking", about_thinking=True))
    with pytest.raises(ModelRejected):
        await patient(HandClock(), model).complete(REQUEST)
    assert len(model.asked) == 1
    assert without_earlier_thinking(REQUEST) is REQUEST


async def test_cancelling_ends_a_wait_at_once() -> None:
    class EndlessClock(HandClock):
        def __init__(self) -> None:
            super().__init__()
            self.waiting = asyncio.Event()

        async def sleep(self, seconds: float) -> None:
            self.waiting.set()
            await asyncio.Event().wait()

    clock, model = EndlessClock(), Listed("a", BUSY)
    task = asyncio.create_task(patient(clock, model).complete(REQUEST))
    async with asyncio.timeout(10):
        await clock.waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(model.asked) == 1


async def test_every_attempt_streams_and_all_models_are_closed() -> None:
    first, second = Listed("a", BUSY), Listed("b", reply())
    model = patient(HandClock(), first, second)
    heard: list[str] = []
    await model.complete(REQUEST, heard.append)
    assert heard == ["a", "", "a", "", "a", "", "a", "", "b"]
    assert model.id == "a"
    await model.close()
    assert first.closed
    assert second.closed


def test_no_model_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="no model"):
        ResilientModel([], clock=HandClock())
