"""The Chat Completions adapter on the vendors' SDK, against the strict server on a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.clock import SystemClock
from gateway.errors import ConfigError, ModelOverloaded, ModelRejected
from gateway.messages import (
    Image,
    Message,
    Text,
    Thinking,
    ToolResult,
    decode_message,
    encode_message,
    tool_results,
    user,
)
from gateway.providers.base import ModelRequest, ModelResponse, ToolSpec, Usage
from gateway.providers.openai import ChatModel
from gateway.providers.openai_quirks import QUIRKS, Provider
from gateway.providers.openai_rules import WireError
from gateway.providers.openai_wire import PLACEHOLDER, UNSIGNED
from gateway.providers.retry import ResilientModel
from tests.platforms.openai.replies import Fail, Say, call, chunks
from tests.platforms.openai.rules import SIGNED
from tests.platforms.openai.server import OpenAIServer

MODELS: dict[Provider, str] = {
    "openai": "gpt-5-test",
    "deepseek": "deepseek-test",
    "kimi": "kimi-k2.6",
    "glm": "glm-test",
    "gemini": "gemini-3-test",
}
LOOK = ToolSpec(name="look", description="d", input_schema={"type": "object", "properties": {"a": {}}})


@dataclass
class Setup:
    server: OpenAIServer
    model: ChatModel

    async def ask(self, *messages: Message, **more: Any) -> ModelResponse:
        return await self.model.complete(ModelRequest(system="be kind", messages=messages, **more))


def made(server: OpenAIServer, provider: Provider, **more: Any) -> ChatModel:
    more = {"model": server.model, "api_key": server.key, "base_url": server.url, **more}
    return ChatModel(provider=provider, **more)


@pytest.fixture
def provider() -> Provider:
    return "openai"


@pytest.fixture
async def setup(provider: Provider, tmp_path: Path) -> AsyncIterator[Setup]:
    async with OpenAIServer(provider, models=(MODELS[provider], "other"), context_tokens=2_000) as server:
        model = made(server, provider, data_dir=tmp_path)
        yield Setup(server, model)
        await model.close()


def of(*providers: Provider) -> Any:
    return pytest.mark.parametrize("provider", providers)


def written(response: ModelResponse) -> Message:
    return decode_message(
        encode_message(Message(role="assistant", content=response.content, model=response.model))
    )


# ---- streams that go wrong

REPLY = Say(text="Let me look that up for you.", calls=(call("look", {"a": [1, 2, 3]}, "t1"),))


def cut(how: str, after: int) -> Say:
    return Say(text=REPLY.text, calls=REPLY.calls, cut=how, after=after)


@of(*MODELS)
@pytest.mark.parametrize("how", ["end", "drop", "garbage", "engine_overloaded_error"])
async def test_c067_a_stream_cut_anywhere_is_overload_and_never_an_answer(
    setup: Setup, provider: Provider, how: str
) -> None:
    # The reply is complete once a chunk has said why it stopped; behind it there is the usage at most.
    whole = list(chunks(REPLY, "m", 1, 1, provider))
    finished = next(n for n, one in enumerate(whole) if one["choices"][0]["finish_reason"])
    for after in range(finished + 1):
        setup.server.script.append(cut(how, after))
        with pytest.raises(ModelOverloaded):
            await setup.ask(user("go"))
    signed = call("look", {"a": [1, 2, 3]}, "t1", signature="s" if provider == "gemini" else "")
    setup.server.script.append(Say(text=REPLY.text, calls=(signed,)))
    assert (await setup.ask(user("go"))).stop == "tool_calls"
    assert len(setup.server.accepted) == finished + 2


async def test_an_answer_is_whole_without_the_last_line_and_without_usage(setup: Setup) -> None:
    setup.server.script.append(Say(text="hi", done=False, usage=None))
    reply = await setup.ask(user("go"))
    assert (reply.content, reply.stop, reply.usage) == ((Text(text="hi"),), "end", Usage())


@pytest.mark.parametrize("finish", ["insufficient_system_resource", "network_error", "error"])
async def test_c067_an_answer_that_ends_for_want_of_resources_is_overload(setup: Setup, finish: str) -> None:
    setup.server.script.append(Say(text="half", finish=finish))
    with pytest.raises(ModelOverloaded):
        await setup.ask(user("go"))


# ---- replies


async def test_c063_a_cut_that_the_endpoint_hides_as_a_tool_call_is_found(setup: Setup) -> None:
    half = call("look", '{"path":"/tmp/a","content":"line1\\nli', "t1")
    setup.server.script.append(Say(calls=(half,), finish="tool_calls", usage={"completion_tokens": 50}))
    reply = await setup.ask(user("go"), max_output_tokens=50)
    assert reply.stop == "length"
    assert [(c.input, bool(c.invalid)) for c in written(reply).calls] == [({}, True)]


async def test_c063_bad_arguments_spoil_their_own_call_only(setup: Setup) -> None:
    raw = [("t1", {"a": 1}), ("t2", '{"path": notes.md"}'), ("t3", "")]
    setup.server.script.append(Say(calls=tuple(call("look", args, id) for id, args in raw)))
    reply = await setup.ask(user("go"))
    assert [(c.id, c.input, bool(c.invalid)) for c in written(reply).calls] == [
        ("t1", {"a": 1}, False),
        ("t2", {}, True),
        ("t3", {}, False),
    ]


@of(*MODELS)
async def test_parallel_calls_come_apart_and_their_answers_are_accepted(
    setup: Setup, provider: Provider
) -> None:
    signature = SIGNED + setup.server.model if provider == "gemini" else ""
    calls = (
        call("look", {"n": 1}, "a", signature=signature),
        call("look", {"n": 2}, "b"),
        call("look", {"n": 3}, "c"),
    )
    setup.server.script.append(Say(reasoning="r", calls=calls))
    reply = written(await setup.ask(user("go"), tools=(LOOK,)))
    assert [(c.id, c.input) for c in reply.calls] == [("a", {"n": 1}), ("b", {"n": 2}), ("c", {"n": 3})]
    answers = tool_results([ToolResult(tool_use_id=id, content=id) for id in "abc"])
    assert written(await setup.ask(user("go"), reply, answers, tools=(LOOK,))).text == "ok"
    assert [m["role"] for m in setup.server.accepted[1]["messages"][2:]] == [
        "assistant",
        "tool",
        "tool",
        "tool",
    ]


@pytest.mark.parametrize(
    ("reply", "stop", "text", "calls"),
    [
        (Say(text="x", finish="tool_calls"), "end", "x", 0),
        (Say(text="x", calls=REPLY.calls, finish="stop"), "tool_calls", "x", 1),
        (Say(text="x", finish="something_new"), "end", "x", 0),
        (Say(text="x", finish="model_context_window_exceeded"), "length", "x", 0),
        (Say(refusal="I cannot help with that."), "refusal", "I cannot help with that.", 0),
        (Say(calls=REPLY.calls, finish="sensitive"), "refusal", "", 0),
        (Say(calls=REPLY.calls, finish="content_filter: SAFETY"), "refusal", "", 0),
        (Say(calls=REPLY.calls, finish="function_call_filter: MALFORMED_FUNCTION_CALL"), "malformed", "", 0),
    ],
)
async def test_c067_why_a_reply_stopped_and_what_may_run_of_it(
    setup: Setup, reply: Say, stop: str, text: str, calls: int
) -> None:
    setup.server.script.append(reply)
    got = await setup.ask(user("go"))
    assert (got.stop, written(got).text, len(written(got).calls)) == (stop, text, calls)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {"prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 5}},
            Usage(input=100, output=5, cached=60, cache_written=5),
        ),
        (
            {"prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40},
            Usage(input=100, output=5, cached=60),
        ),
        ({"cached_tokens": 60}, Usage(input=100, output=5, cached=60)),
        ({"prompt_tokens_details": None}, Usage(input=100, output=5)),
        ({"total_tokens": 135}, Usage(input=100, output=35)),
    ],
)
@of("openai", "kimi")
async def test_usage_is_read_under_every_vendor_s_names(setup: Setup, usage: Any, expected: Usage) -> None:
    setup.server.script.append(Say(text="x", usage={"prompt_tokens": 100, "completion_tokens": 5, **usage}))
    assert (await setup.ask(user("go"))).usage == expected


# ---- reasoning


@of("deepseek", "kimi", "glm")
async def test_c058_reasoning_is_kept_with_its_message_and_accepted_back_unchanged(setup: Setup) -> None:
    setup.server.script += [
        Say(reasoning="r1 ünï\n", text="so", calls=(call("look", {}, "t1"),)),
        Say(reasoning="r2", text="done"),
    ]
    log = [user("go")]
    log.append(written(await setup.ask(*log)))
    assert log[1].content[0] == Thinking(text="r1 ünï\n", opaque={"reasoning_content": "r1 ünï\n"})
    log.append(tool_results([ToolResult(tool_use_id="t1", content="x")]))
    log.append(written(await setup.ask(*log)))
    log.append(user("on"))
    await setup.ask(*log)
    sent = [m for m in setup.server.accepted[2]["messages"] if m["role"] == "assistant"]
    assert [m["reasoning_content"] for m in sent] == ["r1 ünï\n", "r2"]
    assert "tool_calls" in sent[0]


@of("deepseek", "kimi")
async def test_c058_where_thinking_is_switched_off_no_placeholder_is_sent(
    setup: Setup, provider: Provider
) -> None:
    foreign = Message(role="assistant", content=(Text(text="x"),), model="other:m")
    assert written(await setup.ask(user("a"), foreign, user("b"))).text == "ok"
    assert setup.server.accepted[0]["messages"][2]["reasoning_content"] == PLACEHOLDER
    model = made(setup.server, provider, extra={"thinking": {"type": "disabled"}})
    request = ModelRequest(system="", messages=[user("a"), foreign, user("b")])
    assert PLACEHOLDER not in json.dumps(await model._body(request))
    await model.close()


@of("kimi")
async def test_c058_a_refusal_that_names_reasoning_is_tried_once_more_without_that_of_earlier_turns(
    setup: Setup,
) -> None:
    setup.server.script.append(Say(reasoning="r1", text="so"))
    log = [user("go"), written(await setup.ask(user("go"))), user("and now?")]
    setup.server.script.append(Fail(status=400, say="reasoning_content of an earlier message cannot be read"))
    patient = ResilientModel([setup.model], clock=SystemClock())
    assert written(await patient.complete(ModelRequest(system="", messages=log))).text == "ok"
    assert setup.server.accepted[-1]["messages"][1]["reasoning_content"] == PLACEHOLDER


async def test_reasoning_of_servers_of_open_models_is_kept_and_never_sent_to_one_that_refuses_it(
    setup: Setup,
) -> None:
    setup.server.script.append(Say(reasoning="r1", text="so"))
    reply = written(await setup.ask(user("go")))
    assert [type(block) for block in reply.content] == [Thinking, Text]
    await setup.ask(user("go"), reply, user("on"))
    assert setup.server.refused == []


@of("gemini")
async def test_c060_signatures_are_kept_on_their_call_and_steps_of_others_get_the_stand_in(
    setup: Setup,
) -> None:
    real = SIGNED + setup.server.model
    setup.server.script.append(Say(calls=(call("look", {}, "a", signature=real), call("look", {}, "b"))))
    log = [user("go")]
    log.append(written(await setup.ask(*log)))
    log.append(tool_results([ToolResult(tool_use_id=id, content="x") for id in "ab"]))
    await setup.ask(*log)
    foreign = [Message(role=m.role, content=m.content, model="other:m" if m.model else "") for m in log]
    await setup.ask(*foreign)
    signatures = [
        [c.get("extra_content", {}).get("google", {}).get("thought_signature") for c in m["tool_calls"]]
        for body in setup.server.accepted[1:]
        for m in body["messages"]
        if "tool_calls" in m
    ]
    assert signatures == [[real, None], [UNSIGNED, None]]
    assert setup.server.refused == []


# ---- requests


@of(*MODELS)
async def test_a_step_sends_what_the_step_before_sent_and_more(setup: Setup, provider: Provider) -> None:
    signature = SIGNED + setup.server.model if provider == "gemini" else ""
    setup.server.script.append(Say(reasoning="r", calls=(call("look", {"a": 1}, "t1", signature=signature),)))
    log = [user("go")]
    log.append(written(await setup.ask(*log, tools=(LOOK,))))
    log.append(tool_results([ToolResult(tool_use_id="t1", content="x")]))
    await setup.ask(*log, tools=(LOOK,))
    shorter, longer = setup.server.accepted
    assert shorter["tools"] == longer["tools"]
    assert json.dumps(longer["messages"]).startswith(json.dumps(shorter["messages"]).removesuffix("]"))


async def test_the_output_limit_is_the_request_s_or_the_model_s_own_or_nobody_s(setup: Setup) -> None:
    await setup.ask(user("go"), max_output_tokens=7)
    await setup.ask(user("go"))
    model = made(setup.server, "openai", max_output_tokens=9)
    await model.complete(ModelRequest(system="", messages=[user("go")]))
    await model.close()
    limits = [body.get("max_completion_tokens") for body in setup.server.accepted]
    assert limits == [7, None, 9]


@of("openai", "kimi")
async def test_sessions_are_told_apart_for_the_prompt_cache_without_their_ids(setup: Setup) -> None:
    for session in ("s1", "s2", "s1", ""):
        await setup.ask(user("go"), session_id=session)
    keys = [body.get("prompt_cache_key") for body in setup.server.accepted]
    assert keys[0] == keys[2] != keys[1]
    assert keys[3] is None
    assert "s1" not in keys


async def test_further_fields_are_sent_as_they_are(setup: Setup) -> None:
    model = made(setup.server, "openai", extra={"reasoning_effort": "low", "temperature": 0.5})
    await model.complete(ModelRequest(system="", messages=[user("go")]))
    await model.close()
    sent = setup.server.accepted[0]
    assert (sent["reasoning_effort"], sent["temperature"]) == ("low", 0.5)


@of("openai", "glm")
async def test_what_the_sdk_takes_from_the_environment_goes_to_its_own_vendor_only(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    async with OpenAIServer(provider, models=(MODELS[provider],)) as server:
        model = made(server, provider)
        await model.complete(ModelRequest(system="", messages=[user("go")]))
        await model.close()
        assert server.headers.get("openai-organization") == ("org-1" if provider == "openai" else None)


async def test_a_request_without_messages_is_not_sent(setup: Setup) -> None:
    with pytest.raises(WireError):
        await setup.ask()
    assert not setup.server.arrived.is_set()


def test_a_model_without_a_key_is_a_config_error() -> None:
    with pytest.raises(ConfigError):
        ChatModel(provider="openai", model="m", api_key="")


async def test_every_vendor_has_an_endpoint_of_its_own() -> None:
    models = [ChatModel(provider=name, model="m", api_key="k") for name in QUIRKS]
    bases = {str(model._client.base_url).rstrip("/") for model in models}
    assert bases == {quirks.base_url.rstrip("/") for quirks in QUIRKS.values()}
    assert {model.id for model in models} == {f"{name}:m" for name in QUIRKS}
    for model in models:
        await model.close()


async def test_pictures_are_read_below_the_data_folder_and_nowhere_else(setup: Setup, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.png").write_bytes(b"picture")
    secret = tmp_path.parent / "secret.png"
    secret.write_bytes(b"secret")
    paths = ("in/a.png", "../secret.png", str(secret), "in/none.png")
    message = user("see", *(Image(path=path, media_type="image/png") for path in paths))
    for _ in range(2):
        await setup.ask(message)
    for body in setup.server.accepted:
        content = body["messages"][1]["content"]
        assert [part["type"] for part in content] == ["text", "image_url", "text", "text", "text"]
        assert content[1]["image_url"]["url"] == "data:image/png;base64,cGljdHVyZQ=="


@pytest.mark.parametrize(
    "words", ["unknown variant `image_url`, expected `text`", "This model does not support image input"]
)
async def test_a_model_that_turns_out_to_see_nothing_is_told_of_pictures_in_words(
    setup: Setup, tmp_path: Path, words: str
) -> None:
    (tmp_path / "a.png").write_bytes(b"picture")
    message = user("see", Image(path="a.png", media_type="image/png"))
    setup.server.script.append(Fail(status=400, say=words))
    for _ in range(2):
        assert written(await setup.ask(message)).text == "ok"
    shown = ["image_url" in json.dumps(body) for body in setup.server.accepted]
    assert shown == [True, False, False]
    assert "a.png" in json.dumps(setup.server.accepted[-1])


async def test_other_refusals_of_a_request_with_pictures_are_errors(setup: Setup, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"picture")
    message = user("see", Image(path="a.png", media_type="image/png"))
    setup.server.script.append(Fail(status=400, say="Invalid value for temperature"))
    with pytest.raises(ModelRejected):
        await setup.ask(message)
    setup.server.script.append(Fail(status=400, say="image"))
    with pytest.raises(ModelRejected):
        await setup.ask(user("no picture here"))
    assert len(setup.server.accepted) == 2


async def test_sessions_with_pictures_do_not_mix(setup: Setup, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(name.encode() * 3)
    logs = [[user(name, Image(path=name, media_type="image/png"))] for name in ("a", "b", "c")]
    await asyncio.gather(*(setup.ask(*log) for log in logs))
    seen = {
        (content[0]["text"], content[1]["image_url"]["url"].rpartition(",")[2])
        for content in (body["messages"][1]["content"] for body in setup.server.accepted)
    }
    assert seen == {("a", "YWFh"), ("b", "YmJi"), ("c", "Y2Nj")}
