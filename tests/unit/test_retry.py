"""The patient model: what it tries again, how long it waits, and when it goes elsewhere."""

from __future__ import annotations

import asyncio
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


async def test_when_no_model_answers_the_intelligence_is_unavailable() -> None:
    models = [Listed("a", BUSY), Listed("b", ModelAuthError("no"))]
    with pytest.raises(IntelligenceUnavailable, match=r"a \(ModelOverloaded\), b \(ModelAuthError\)"):
        await patient(HandClock(), *models).complete(REQUEST)
    assert len(models[0].asked) == 4


@pytest.mark.parametrize("too_long", [True, False])
async def test_c069_a_rejected_request_goes_to_the_caller_at_once(too_long: bool) -> None:
    first = Listed("a", ModelRejected("no", context_too_long=too_long))
    second = Listed("b", reply())
    with pytest.raises(ModelRejected) as caught:
        await patient(HandClock(), first, second).complete(REQUEST)
    assert caught.value.context_too_long == too_long
    assert (len(first.asked), len(second.asked)) == (1, 0)


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
    assert heard == ["a"] * 4 + ["b"]
    assert model.id == "a"
    await model.close()
    assert first.closed
    assert second.closed


def test_no_model_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="no model"):
        ResilientModel([], clock=HandClock())
