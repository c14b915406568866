"""The Anthropic adapter on the vendor's SDK, against the strict server on a real socket."""

from __future__ import annotations

import asyncio
import email.utils
import json
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from gateway.clock import SystemClock
from gateway.errors import (
    ConfigError,
    ModelAuthError,
    ModelError,
    ModelOverloaded,
    ModelRateLimited,
    ModelRejected,
)
from gateway.messages import (
    Image,
    Message,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    decode_message,
    encode_message,
    tool_results,
    user,
)
from gateway.providers.anthropic import DEFAULT_MAX_OUTPUT_TOKENS, ERRORS, AnthropicModel
from gateway.providers.anthropic_rules import WireError
from gateway.providers.base import ModelRequest, ModelResponse, ToolSpec, Usage
from gateway.providers.retry import ResilientModel
from tests.platforms.anthropic.replies import Fail, Say, call, events, redact, text, think
from tests.platforms.anthropic.rules import Json
from tests.platforms.anthropic.server import AnthropicServer

MODEL = "claude-test"
OTHER = "claude-other"


@dataclass
class Setup:
    server: AnthropicServer
    model: AnthropicModel

    async def ask(self, *messages: Message, **more: Any) -> ModelResponse:
        return await self.model.complete(ModelRequest(system="be kind", messages=messages, **more))


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[Setup]:
    async with AnthropicServer(models=(MODEL, OTHER), context_tokens=2_000) as server:
        model = AnthropicModel(model=MODEL, api_key=server.key, base_url=server.base_url, data_dir=tmp_path)
        yield Setup(server, model)
        await model.close()


def written(response: ModelResponse) -> Message:
    return decode_message(
        encode_message(Message(role="assistant", content=response.content, model=response.model))
    )


def unmarked(body: Json) -> list[Json]:
    return [
        {
            "role": m["role"],
            "content": [{k: v for k, v in b.items() if k != "cache_control"} for b in m["content"]],
        }
        for m in body["messages"]
    ]


# ---- errors


def family(root: type[Exception]) -> Iterator[type[Exception]]:
    for child in root.__subclasses__():
        yield child
        yield from family(child)


def test_every_error_of_the_sdk_is_translated_by_its_class() -> None:
    roots = {anthropic.AnthropicError, anthropic.APIError}
    known = set(ERRORS) - roots
    public = {error for error in family(anthropic.AnthropicError) if hasattr(anthropic, error.__name__)}
    below = {*family(httpx2.HTTPError), *family(httpx2.StreamError)}
    assert len(public) > 20
    unknown = {e.__name__ for e in public | below if e not in roots and not known & set(e.__mro__)}
    # Its webhooks are not ours.
    assert unknown == {"APIWebhookValidationError"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ModelRejected),
        (401, ModelAuthError),
        (402, ModelAuthError),
        (403, ModelAuthError),
        (404, ModelAuthError),
        (408, ModelOverloaded),
        (409, ModelOverloaded),
        (413, ModelRejected),
        (418, ModelRejected),
        (422, ModelRejected),
        (429, ModelRateLimited),
        (500, ModelOverloaded),
        (501, ModelRejected),
        (502, ModelOverloaded),
        (503, ModelOverloaded),
        (504, ModelOverloaded),
        (529, ModelOverloaded),
    ],
)
async def test_a_status_becomes_one_of_our_errors_after_one_request(
    setup: Setup, status: int, kind: type[ModelError]
) -> None:
    setup.server.script.append(Fail(status=status))
    with pytest.raises(ModelError) as caught:
        await setup.ask(user("go"))
    assert type(caught.value) is kind
    assert len(setup.server.accepted) == 1


@pytest.mark.parametrize(
    ("header", "value", "wait"),
    [
        ("retry-after", "12", 12.0),
        ("retry-after", "0.5", 0.5),
        ("retry-after-ms", "1500", 1.5),
        ("retry-after", "soon", None),
        ("x-other", "3", None),
    ],
)
@pytest.mark.parametrize("status", [429, 529])
async def test_the_wait_that_the_endpoint_asks_for_is_carried(
    setup: Setup, status: int, header: str, value: str, wait: float | None
) -> None:
    setup.server.script.append(Fail(status=status, headers={header: value}))
    with pytest.raises(ModelError) as caught:
        await setup.ask(user("go"))
    assert caught.value.retry_after == wait


async def test_a_wait_given_as_a_date_is_carried_as_seconds(setup: Setup) -> None:
    date = email.utils.formatdate(time.time() + 60, usegmt=True)
    setup.server.script.append(Fail(status=429, headers={"retry-after": date}))
    with pytest.raises(ModelRateLimited) as caught:
        await setup.ask(user("go"))
    assert caught.value.retry_after is not None
    assert 30 < caught.value.retry_after <= 60


@pytest.mark.parametrize("code", ["contract_spend_limit_reached", "enforced_spend_limit_reached"])
async def test_a_spent_budget_is_no_rate_limit(setup: Setup, code: str) -> None:
    setup.server.script.append(Fail(status=429, details={"error_code": code}))
    with pytest.raises(ModelAuthError):
        await setup.ask(user("go"))


async def test_the_key_is_in_no_error_even_where_the_endpoint_repeats_it(setup: Setup) -> None:
    setup.server.script.append(Fail(status=400, say=f"odd key {setup.server.key}"))
    with pytest.raises(ModelRejected) as caught:
        await setup.ask(user("go"))
    assert "odd key ***" in str(caught.value)
    assert setup.server.key not in repr(caught.value)


async def test_nobody_at_the_address_is_overload() -> None:
    async with AnthropicServer() as server:
        base_url = server.base_url
    model = AnthropicModel(model=MODEL, api_key="k", base_url=base_url)
    with pytest.raises(ModelOverloaded):
        await model.complete(ModelRequest(system="", messages=[user("go")]))
    await model.close()


async def test_silence_longer_than_the_timeout_is_overload(setup: Setup) -> None:
    setup.server.script.append(Say(blocks=(text("late"),), hold=asyncio.Event()))
    model = AnthropicModel(
        model=MODEL, api_key=setup.server.key, base_url=setup.server.base_url, timeout=0.05
    )
    with pytest.raises(ModelOverloaded):
        await model.complete(ModelRequest(system="", messages=[user("go")]))
    await model.close()


async def test_an_endpoint_that_looks_for_the_key_in_the_older_header_finds_it(setup: Setup) -> None:
    setup.server.takes_bearer = False
    assert written(await setup.ask(user("go"))).text == "ok"


def test_a_model_without_a_key_is_a_config_error() -> None:
    with pytest.raises(ConfigError):
        AnthropicModel(model=MODEL, api_key="")


async def test_c069_a_prompt_over_the_limit_is_told_apart_and_the_next_short_one_is_taken(
    setup: Setup,
) -> None:
    for message in (user("x" * 9_000), user("y")):
        if len(message.text) == 1:
            assert written(await setup.ask(message)).text == "ok"
            continue
        with pytest.raises(ModelRejected) as caught:
            await setup.ask(message)
        assert caught.value.context_too_long
        assert not caught.value.about_thinking


@pytest.mark.parametrize(
    "fail",
    [
        Fail(status=413, type="request_too_large", say="Request exceeds the maximum size"),
        Fail(status=400, say="input length and `max_tokens` exceed context limit: 199000 + 4096 > 200000"),
    ],
)
async def test_c069_other_words_for_too_long_are_told_apart_too(setup: Setup, fail: Fail) -> None:
    setup.server.script.append(fail)
    with pytest.raises(ModelRejected) as caught:
        await setup.ask(user("go"))
    assert caught.value.context_too_long


# ---- streams that go wrong

REPLY = (text("Let me look that up for you."), call("t", {"a": [1, 2, 3]}, "t1"))
LENGTH = len(list(events(Say(blocks=REPLY), MODEL, 1, 1)))
# The reply is complete once `message_delta`, the last but one, has said why it stopped.
BEFORE_THE_STOP = range(LENGTH - 1)


@pytest.mark.parametrize("cut", ["end", "drop", "garbage", "overloaded_error"])
async def test_c067_a_stream_cut_anywhere_is_overload_and_never_an_answer(setup: Setup, cut: Any) -> None:
    for after in BEFORE_THE_STOP:
        setup.server.script.append(Say(blocks=REPLY, cut=cut, after=after))
        with pytest.raises(ModelOverloaded):
            await setup.ask(user("go"))
    setup.server.script.append(Say(blocks=REPLY))
    assert (await setup.ask(user("go"))).stop == "tool_calls"
    assert len(setup.server.accepted) == len(BEFORE_THE_STOP) + 1


@pytest.mark.parametrize(
    ("cut", "kind"), [("rate_limit_error", ModelRateLimited), ("invalid_request_error", ModelRejected)]
)
async def test_an_error_event_inside_a_stream_is_the_error_it_names(
    setup: Setup, cut: Any, kind: type[ModelError]
) -> None:
    setup.server.script.append(Say(blocks=REPLY, cut=cut, after=3))
    with pytest.raises(kind):
        await setup.ask(user("go"))


# ---- replies


async def test_c063_a_cut_that_the_endpoint_hides_as_a_tool_call_is_found(setup: Setup) -> None:
    half = call("t", '{"path":"/tmp/a","content":"line1\\nli', "t1")
    setup.server.script.append(Say(blocks=(half,), stop="tool_use", usage={"output_tokens": 50}))
    reply = await setup.ask(user("go"), max_output_tokens=50)
    assert reply.stop == "length"
    assert [(c.input, bool(c.invalid)) for c in written(reply).calls] == [({}, True)]


async def test_c063_bad_arguments_spoil_their_own_call_only(setup: Setup) -> None:
    blocks = (call("t", {"a": 1}, "t1"), call("t", '{"path": notes.md"}', "t2"), call("t", "", "t3"))
    setup.server.script.append(Say(blocks=blocks))
    reply = await setup.ask(user("go"))
    assert reply.stop == "tool_calls"
    assert [(c.id, c.input, bool(c.invalid)) for c in written(reply).calls] == [
        ("t1", {"a": 1}, False),
        ("t2", {}, True),
        ("t3", {}, False),
    ]


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("pause_turn", "end"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("something_new", "end"),
    ],
)
async def test_every_reason_to_stop_has_its_word(setup: Setup, reason: str, stop: str) -> None:
    setup.server.script.append(Say(blocks=(text("x"),), stop=reason))
    assert (await setup.ask(user("go"))).stop == stop


@pytest.mark.parametrize(
    ("blocks", "reason", "stop"), [(REPLY, "end_turn", "tool_calls"), ((text("x"),), "tool_use", "end")]
)
async def test_the_blocks_decide_whether_there_are_calls(
    setup: Setup, blocks: tuple[Json, ...], reason: str, stop: str
) -> None:
    setup.server.script.append(Say(blocks=blocks, stop=reason))
    assert (await setup.ask(user("go"))).stop == stop


async def test_c067_a_refused_reply_keeps_no_call_that_could_run(setup: Setup) -> None:
    setup.server.script.append(Say(blocks=REPLY, stop="refusal"))
    reply = await setup.ask(user("go"))
    assert written(reply).calls == []
    assert reply.stop == "refusal"


async def test_blocks_of_unknown_kinds_are_left_out(setup: Setup) -> None:
    setup.server.script.append(Say(blocks=({"type": "container_upload", "file_id": "f"}, text("x"))))
    assert (await setup.ask(user("go"))).content == (Text(text="x"),)


async def test_cached_tokens_are_part_of_the_input(setup: Setup) -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
    }
    setup.server.script.append(Say(blocks=(text("x"),), usage=usage))
    assert (await setup.ask(user("go"))).usage == Usage(input=130, output=5, cached=100, cache_written=20)


# ---- thinking

THOUGHTS = (think("first this", MODEL), redact("hidden", MODEL), think("", MODEL))


async def first_step(setup: Setup) -> list[Message]:
    setup.server.script.append(Say(blocks=(*THOUGHTS, text("so"), call("t", {"a": 1}, "t1"))))
    log = [user("go")]
    log.append(written(await setup.ask(*log)))
    log.append(tool_results([ToolResult(tool_use_id="t1", content="done")]))
    return log


async def test_c059_thinking_is_kept_whole_and_accepted_back(setup: Setup) -> None:
    log = await first_step(setup)
    assert [block.opaque for block in log[1].content if isinstance(block, Thinking)] == list(THOUGHTS)
    assert written(await setup.ask(*log)).text == "ok"
    sent = setup.server.accepted[1]["messages"][1]["content"]
    assert json.dumps(sent[:3]) == json.dumps(THOUGHTS)


async def test_c059_another_model_takes_the_history_without_thinking(setup: Setup) -> None:
    log = await first_step(setup)
    other = AnthropicModel(model=OTHER, api_key=setup.server.key, base_url=setup.server.base_url)
    await other.complete(ModelRequest(system="", messages=log))
    await other.close()
    assert [b["type"] for b in setup.server.accepted[1]["messages"][1]["content"]] == ["text", "tool_use"]


async def test_c059_thinking_that_was_cut_before_its_signature_is_not_sent_back(setup: Setup) -> None:
    half = {"type": "thinking", "thinking": "half a thou", "signature": ""}
    setup.server.script.append(Say(blocks=(half, text("so")), stop="max_tokens"))
    reply = written(await setup.ask(user("go")))
    assert reply.content[0] == Thinking(text="half a thou")
    await setup.ask(user("go"), reply, user("on"))
    assert setup.server.refused == []


def spoilt() -> Message:
    """Thinking of this model whose signature the endpoint does not take (any more)."""
    raw = {"type": "thinking", "thinking": "hm", "signature": "old"}
    blocks = (Thinking(text="hm", opaque=raw), Text(text="so"), ToolUse(id="t9", name="t", input={}))
    return Message(role="assistant", content=blocks, model=f"anthropic:{MODEL}")


ANSWERED = tool_results([ToolResult(tool_use_id="t9", content="x")])


async def test_c059_a_refusal_that_names_thinking_says_so(setup: Setup) -> None:
    with pytest.raises(ModelRejected) as caught:
        await setup.ask(user("go"), spoilt(), ANSWERED)
    assert caught.value.about_thinking
    assert not caught.value.context_too_long


async def test_c059_thinking_of_earlier_turns_is_left_out_in_one_more_try(setup: Setup) -> None:
    patient = ResilientModel([setup.model], clock=SystemClock())
    log = [user("go"), spoilt(), ANSWERED, user("and now?")]
    reply = await patient.complete(ModelRequest(system="", messages=log))
    assert written(reply).text == "ok"
    assert (len(setup.server.refused), len(setup.server.accepted)) == (1, 1)


async def test_c059_thinking_of_the_same_turn_is_refused_with_a_clear_error(setup: Setup) -> None:
    patient = ResilientModel([setup.model], clock=SystemClock())
    log = [user("before"), spoilt(), ANSWERED, user("go"), spoilt(), ANSWERED]
    with pytest.raises(ModelRejected, match="thinking"):
        await patient.complete(ModelRequest(system="", messages=log))
    assert len(setup.server.refused) == 2


# ---- requests


async def test_c045_four_results_of_one_batch_are_accepted_in_one_message(setup: Setup) -> None:
    setup.server.script.append(Say(blocks=tuple(call("t", {}, id) for id in "abcd")))
    reply = written(await setup.ask(user("go")))
    results = [
        ToolResult(tool_use_id="a", content="A"),
        ToolResult(tool_use_id="b", content="B"),
        ToolResult(tool_use_id="c", content="denied by Kim: not on Friday", is_error=True),
        ToolResult(tool_use_id="d", content="not run: approval expired", is_error=True),
    ]
    await setup.ask(user("go"), reply, tool_results(results))
    *_, last = setup.server.accepted[1]["messages"]
    assert [b["tool_use_id"] for b in last["content"]] == list("abcd")


async def test_a_step_sends_what_the_step_before_sent_and_more(setup: Setup) -> None:
    log = await first_step(setup)
    tools = (ToolSpec(name="t", description="d", input_schema={"type": "object", "properties": {}}),)
    await setup.ask(*log, tools=tools)
    await setup.ask(*log, user("more"), tools=tools)
    shorter, longer = setup.server.accepted[1:]
    assert shorter["tools"] == longer["tools"]
    assert shorter["system"] == longer["system"]
    assert json.dumps(unmarked(longer)).startswith(json.dumps(unmarked(shorter)).removesuffix("]}]"))


async def test_the_output_limit_is_the_request_s_or_the_model_s_own(setup: Setup) -> None:
    await setup.ask(user("go"), max_output_tokens=7)
    await setup.ask(user("go"))
    assert [body["max_tokens"] for body in setup.server.accepted] == [7, DEFAULT_MAX_OUTPUT_TOKENS]


async def test_the_thinking_setting_is_sent_as_it_is(setup: Setup) -> None:
    model = AnthropicModel(
        model=MODEL, api_key=setup.server.key, base_url=setup.server.base_url, thinking={"type": "adaptive"}
    )
    await model.complete(ModelRequest(system="", messages=[user("go")]))
    await model.close()
    assert setup.server.accepted[0]["thinking"] == {"type": "adaptive"}
    assert "system" not in setup.server.accepted[0]


async def test_a_request_without_messages_is_not_sent(setup: Setup) -> None:
    with pytest.raises(WireError):
        await setup.ask()
    assert not setup.server.arrived.is_set()


async def test_pictures_are_read_below_the_data_folder_and_nowhere_else(setup: Setup, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.png").write_bytes(b"picture")
    secret = tmp_path.parent / "secret.png"
    secret.write_bytes(b"secret")
    pictures = [
        Image(path=path, media_type="image/png")
        for path in ("in/a.png", "../secret.png", str(secret), "in/none.png")
    ]
    message = user("see", *pictures)
    for _ in range(2):
        await setup.ask(message)
    for body in setup.server.accepted:
        assert [b["type"] for b in body["messages"][0]["content"]] == [
            "text",
            "image",
            "text",
            "text",
            "text",
        ]
        assert body["messages"][0]["content"][1]["source"]["data"] == "cGljdHVyZQ=="


async def test_sessions_with_pictures_do_not_mix(setup: Setup, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(name.encode() * 3)
    logs = [[user(name, Image(path=name, media_type="image/png"))] for name in ("a", "b", "c")]
    await asyncio.gather(*(setup.ask(*log) for log in logs))
    seen = {
        (content[0]["text"], content[1]["source"]["data"])
        for content in (body["messages"][0]["content"] for body in setup.server.accepted)
    }
    assert seen == {("a", "YWFh"), ("b", "YmJi"), ("c", "Y2Nj")}
