"""What every model adapter promises (see gateway/providers/base.py), as one suite.

A test class per adapter inherits `ModelContract` and gives a `backend` fixture: the adapter, and a
way to say what the endpoint behind it does next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal, Protocol

import pytest

from gateway.errors import ModelAuthError, ModelError, ModelOverloaded, ModelRateLimited, ModelRejected
from gateway.messages import Json, Message, Text, Thinking, ToolResult, ToolUse, tool_results, user
from gateway.providers.base import Model, ModelRequest, ModelResponse, ToolSpec

Failure = Literal["rate_limited", "overloaded", "auth", "rejected", "too_long"]
Ability = Literal["cut", "hold", "broken_arguments", "length", "refusal", "empty", "thinking", "retry_after"]

LOOKUP = ToolSpec(
    name="shop.orders/lookup",  # no vendor takes this name as it is
    description="Look up an order.",
    input_schema={"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
)


class Backend(Protocol):
    """An adapter and the endpoint behind it. The `will_` methods say what the next call gets."""

    model: Model
    secret: str
    cannot: frozenset[Ability]

    def will_say(self, text: str) -> None: ...

    def will_call(
        self, name: str, args: Json | str, *, stop: Literal["length", "refusal"] | None = None
    ) -> None: ...

    def will_think(self, thinking: str) -> None:
        """Reasoning, and no more."""

    def will_be_empty(self) -> None: ...

    def will_fail(self, failure: Failure) -> None:
        """Rate limits ask for 7 seconds."""

    def will_be_cut(self) -> None:
        """The answer begins and breaks off."""

    def will_hold(self) -> asyncio.Event:
        """The answer never comes. The event is set when the endpoint has the request."""

    async def given_up(self) -> None:
        """Returns once the endpoint knows that the client went away."""


def need(backend: Backend, ability: Ability) -> None:
    if ability in backend.cannot:
        pytest.skip(f"this backend cannot do {ability}")


def request(*messages: Message, tools: Sequence[ToolSpec] = (LOOKUP,)) -> ModelRequest:
    return ModelRequest(system="be kind", messages=messages, tools=tuple(tools), max_output_tokens=500)


def written(response: ModelResponse) -> Message:
    return Message(role="assistant", content=response.content, model=response.model)


ASK = user("where is order A-1?")


class ModelContract:
    """Inherit and give a `backend` fixture."""

    async def test_a_text_reply_is_whole_and_its_deltas_join_to_it(self, backend: Backend) -> None:
        words = "It is **on its way** 👍, with äöü.\n\nTwo days more."
        backend.will_say(words)
        heard: list[str] = []
        reply = await backend.model.complete(request(ASK), heard.append)
        assert written(reply).text == words
        assert "".join(heard) == words
        assert len(heard) > 1
        assert reply.stop == "end"

    async def test_the_reply_is_the_same_without_a_listener_and_names_its_model(
        self, backend: Backend
    ) -> None:
        backend.will_say("hello")
        reply = await backend.model.complete(request(ASK))
        assert reply.content == (Text(text="hello"),)
        assert reply.model == backend.model.id
        assert reply.usage.input > 0
        assert reply.usage.output > 0
        assert reply.usage.total == reply.usage.input + reply.usage.output

    async def test_c065_a_call_comes_back_under_its_own_name_and_its_result_is_accepted(
        self, backend: Backend
    ) -> None:
        backend.will_call(LOOKUP.name, {"order_id": "A-1", "deep": {"list": [1, 2.5, None, "ü"]}})
        reply = await backend.model.complete(request(ASK))
        (call,) = written(reply).calls
        assert reply.stop == "tool_calls"
        assert (call.name, call.invalid) == (LOOKUP.name, None)
        assert call.input == {"order_id": "A-1", "deep": {"list": [1, 2.5, None, "ü"]}}
        assert call.id
        backend.will_say("found")
        answer = tool_results([ToolResult(tool_use_id=call.id, content="on its way")])
        assert written(await backend.model.complete(request(ASK, written(reply), answer))).text == "found"

    async def test_c056_a_history_with_an_unanswered_call_is_accepted(self, backend: Backend) -> None:
        dangling = Message(role="assistant", content=(ToolUse(id="t1", name=LOOKUP.name, input={}),))
        backend.will_say("sorry")
        reply = await backend.model.complete(request(ASK, dangling, user("hello?")))
        assert written(reply).text == "sorry"

    async def test_a_history_of_another_model_is_accepted(self, backend: Backend) -> None:
        foreign = Message(
            role="assistant",
            model="other:model",
            content=(
                Thinking(text="hm", opaque={"type": "thinking", "thinking": "hm", "signature": "foreign"}),
                Text(text=""),
                ToolUse(id="functions.lookup:0", name="lookup", input={"a": 1}, opaque={"x": "y"}),
            ),
        )
        answer = tool_results([ToolResult(tool_use_id="functions.lookup:0", content="", is_error=True)])
        backend.will_say("go on")
        assert written(await backend.model.complete(request(ASK, foreign, answer))).text == "go on"

    async def test_c063_arguments_that_are_not_an_object_are_marked_and_never_mended(
        self, backend: Backend
    ) -> None:
        need(backend, "broken_arguments")
        for raw in ('{"path": notes.md"}', '{"a": 1', "[1]", '{"a": NaN}'):
            backend.will_call(LOOKUP.name, raw)
            reply = await backend.model.complete(request(ASK))
            (call,) = written(reply).calls
            assert call.invalid
            assert call.input == {}

    async def test_c063_no_arguments_at_all_are_an_empty_object(self, backend: Backend) -> None:
        need(backend, "broken_arguments")
        backend.will_call(LOOKUP.name, "")
        (call,) = written(await backend.model.complete(request(ASK))).calls
        assert (call.input, call.invalid) == ({}, None)

    async def test_c063_a_reply_cut_at_the_limit_marks_its_calls(self, backend: Backend) -> None:
        need(backend, "length")
        backend.will_call(LOOKUP.name, {"order_id": "A-1"}, stop="length")
        reply = await backend.model.complete(request(ASK))
        assert reply.stop == "length"
        assert [bool(call.invalid) for call in written(reply).calls] == [True]

    async def test_c067_a_refusal_says_so(self, backend: Backend) -> None:
        need(backend, "refusal")
        backend.will_call(LOOKUP.name, {"order_id": "A-1"}, stop="refusal")
        assert (await backend.model.complete(request(ASK))).stop == "refusal"

    async def test_c067_an_empty_reply_has_no_content(self, backend: Backend) -> None:
        need(backend, "empty")
        backend.will_be_empty()
        reply = await backend.model.complete(request(ASK))
        assert (reply.content, reply.stop) == ((), "end")

    async def test_c067_reasoning_alone_is_thinking_and_no_text(self, backend: Backend) -> None:
        need(backend, "thinking")
        backend.will_think("hm")
        heard: list[str] = []
        reply = await backend.model.complete(request(ASK), heard.append)
        assert [type(block) for block in reply.content] == [Thinking]
        assert heard == []

    @pytest.mark.parametrize(
        ("failure", "kind"),
        [
            ("rate_limited", ModelRateLimited),
            ("overloaded", ModelOverloaded),
            ("auth", ModelAuthError),
            ("rejected", ModelRejected),
            ("too_long", ModelRejected),
        ],
    )
    async def test_a_failure_is_one_of_ours_without_the_key_and_the_next_call_works(
        self, backend: Backend, failure: Failure, kind: type[ModelError]
    ) -> None:
        backend.will_fail(failure)
        with pytest.raises(kind) as caught:
            await backend.model.complete(request(ASK))
        assert backend.secret not in str(caught.value)
        if isinstance(caught.value, ModelRejected):
            assert caught.value.context_too_long == (failure == "too_long")
        backend.will_say("better")
        assert written(await backend.model.complete(request(ASK))).text == "better"

    async def test_a_rate_limit_carries_the_wait_it_asks_for(self, backend: Backend) -> None:
        need(backend, "retry_after")
        backend.will_fail("rate_limited")
        with pytest.raises(ModelRateLimited) as caught:
            await backend.model.complete(request(ASK))
        assert caught.value.retry_after == 7

    async def test_an_answer_that_breaks_off_is_overload_and_not_an_answer(self, backend: Backend) -> None:
        need(backend, "cut")
        backend.will_be_cut()
        with pytest.raises(ModelOverloaded):
            await backend.model.complete(request(ASK), list[str]().append)

    async def test_cancelling_ends_the_request(self, backend: Backend) -> None:
        need(backend, "hold")
        arrived = backend.will_hold()
        task = asyncio.create_task(backend.model.complete(request(ASK)))
        async with asyncio.timeout(10):
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await backend.given_up()
        backend.will_say("again")
        assert written(await backend.model.complete(request(ASK))).text == "again"

    async def test_closing_twice_is_no_error(self, backend: Backend) -> None:
        await backend.model.close()
        await backend.model.close()
