"""The Gemini adapter on the vendor's SDK, against the strict server on a real socket."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from google.genai import errors, types

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
from gateway.providers.base import ModelRequest, ModelResponse, ToolSpec, Usage
from gateway.providers.gemini import ERRORS, GeminiModel
from gateway.providers.gemini_reply import FINISH
from gateway.providers.gemini_rules import WireError
from gateway.providers.retry import ResilientModel
from tests.platforms.gemini.replies import Fail, Say, call, chunks, retry_in, text, think
from tests.platforms.gemini.rules import BYPASS, Json, signature
from tests.platforms.gemini.server import GeminiServer

MODEL = "gemini-3-test"
OTHER = "gemini-3-other"


@dataclass
class Setup:
    server: GeminiServer
    model: GeminiModel

    async def ask(self, *messages: Message, **more: Any) -> ModelResponse:
        return await self.model.complete(ModelRequest(system="be kind", messages=messages, **more))


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[Setup]:
    async with GeminiServer(models=(MODEL, OTHER), context_tokens=2_000) as server:
        model = GeminiModel(model=MODEL, api_key=server.key, base_url=server.base_url, data_dir=tmp_path)
        yield Setup(server, model)
        await model.close()


def written(response: ModelResponse) -> Message:
    return decode_message(
        encode_message(Message(role="assistant", content=response.content, model=response.model))
    )


# ---- errors


def family(root: type[Exception]) -> Iterator[type[Exception]]:
    for child in root.__subclasses__():
        yield child
        yield from family(child)


def test_every_error_of_the_sdk_is_translated_by_its_class() -> None:
    public = {one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Exception)}
    below = {*family(httpx2.HTTPError), *family(httpx2.StreamError)}
    unknown = {e.__name__ for e in public | below if not set(ERRORS) & set(e.__mro__)}
    # Its automatic calls of functions are not used; the last is a warning.
    assert unknown == {
        "UnknownFunctionCallArgumentError",
        "UnsupportedFunctionError",
        "FunctionInvocationError",
        "ExperimentalWarning",
    }


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
        (429, ModelRateLimited),
        (499, ModelOverloaded),
        (500, ModelOverloaded),
        (501, ModelRejected),
        (502, ModelOverloaded),
        (503, ModelOverloaded),
        (504, ModelOverloaded),
    ],
)
@pytest.mark.parametrize("named", [None, ""])
async def test_a_status_becomes_one_of_our_errors_after_one_request(
    setup: Setup, status: int, named: str | None, kind: type[ModelError]
) -> None:
    setup.server.script.append(Fail(status=status, named=named))
    with pytest.raises(ModelError) as caught:
        await setup.ask(user("go"))
    assert type(caught.value) is kind
    assert len(setup.server.accepted) == 1


@pytest.mark.parametrize(
    ("details", "header", "wait"),
    [
        ([retry_in("12s")], {}, 12.0),
        ([retry_in("0.5s")], {"retry-after": "3"}, 0.5),
        ([{"@type": "type.googleapis.com/google.rpc.QuotaFailure"}], {"retry-after": "3"}, 3.0),
        ([retry_in("soon")], {}, None),
        ([], {"retry-after": "soon"}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_the_wait_that_the_endpoint_asks_for_is_carried(
    setup: Setup, status: int, details: list[Json], header: dict[str, str], wait: float | None
) -> None:
    setup.server.script.append(Fail(status=status, details=details, headers=header))
    with pytest.raises(ModelError) as caught:
        await setup.ask(user("go"))
    assert caught.value.retry_after == wait


@pytest.mark.parametrize(
    "fail",
    [
        Fail(status=400, say="User location is not supported", named="FAILED_PRECONDITION"),
        Fail(status=400, say="API key not valid", details=[{"reason": "API_KEY_INVALID"}]),
    ],
)
async def test_a_400_that_is_about_the_key_is_no_matter_of_the_request(setup: Setup, fail: Fail) -> None:
    setup.server.script.append(fail)
    with pytest.raises(ModelAuthError):
        await setup.ask(user("go"))


async def test_the_key_is_in_no_error_even_where_the_endpoint_repeats_it(setup: Setup) -> None:
    setup.server.script.append(Fail(status=400, say=f"odd key {setup.server.key}"))
    with pytest.raises(ModelRejected) as caught:
        await setup.ask(user("go"))
    assert "odd key ***" in str(caught.value)
    assert setup.server.key not in repr(caught.value)


async def test_nobody_at_the_address_is_overload_at_once() -> None:
    async with GeminiServer() as server:
        base_url = server.base_url
    model = GeminiModel(model=MODEL, api_key="k", base_url=base_url)
    async with asyncio.timeout(0.9):  # the SDK's own second try comes after a second at the earliest
        with pytest.raises(ModelOverloaded):
            await model.complete(ModelRequest(system="", messages=[user("go")]))
    await model.close()


async def test_silence_longer_than_the_timeout_is_overload(setup: Setup) -> None:
    setup.server.script.append(Say(parts=(text("late"),), hold=asyncio.Event()))
    model = GeminiModel(model=MODEL, api_key=setup.server.key, base_url=setup.server.base_url, timeout=0.05)
    with pytest.raises(ModelOverloaded):
        await model.complete(ModelRequest(system="", messages=[user("go")]))
    await model.close()


def test_a_model_without_a_key_is_a_config_error() -> None:
    with pytest.raises(ConfigError):
        GeminiModel(model=MODEL, api_key="")


async def test_the_environment_of_the_sdk_changes_nothing(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.setenv(name, "other")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v9")
    with caplog.at_level(logging.DEBUG):
        model = GeminiModel(model=f"models/{MODEL}", api_key=setup.server.key, base_url=setup.server.base_url)
        assert written(await model.complete(ModelRequest(system="", messages=[user("go")]))).text == "ok"
        await model.close()
    assert model.id == f"gemini:{MODEL}"
    assert not [record for record in caplog.records if record.name.startswith("google_genai")]


@pytest.mark.parametrize("tail", ["/v1beta", "/v1beta/", "/"])
async def test_a_version_at_the_end_of_the_address_is_the_version(setup: Setup, tail: str) -> None:
    model = GeminiModel(model=MODEL, api_key=setup.server.key, base_url=setup.server.base_url + tail)
    assert written(await model.complete(ModelRequest(system="", messages=[user("go")]))).text == "ok"
    await model.close()


async def test_a_model_that_was_never_closed_leaves_no_task_behind(setup: Setup) -> None:
    before = asyncio.all_tasks()
    model = GeminiModel(model=MODEL, api_key="k", base_url=setup.server.base_url)
    del model
    gc.collect()
    assert asyncio.all_tasks() == before


async def test_c069_a_prompt_over_the_limit_is_told_apart_and_the_next_short_one_is_taken(
    setup: Setup,
) -> None:
    with pytest.raises(ModelRejected) as caught:
        await setup.ask(user("x" * 9_000))
    assert caught.value.context_too_long
    assert not caught.value.about_thinking
    assert written(await setup.ask(user("y"))).text == "ok"


@pytest.mark.parametrize(
    "fail",
    [
        Fail(status=413, say="Payload too large", named=""),
        Fail(status=400, say="Request payload size exceeds the limit: 20971520 bytes."),
    ],
)
async def test_c069_other_words_for_too_long_are_told_apart_too(setup: Setup, fail: Fail) -> None:
    setup.server.script.append(fail)
    with pytest.raises(ModelRejected) as caught:
        await setup.ask(user("go"))
    assert caught.value.context_too_long


# ---- streams that go wrong

REPLY = (text("Let me look that up for you."), call("t", {"a": [1, 2, 3]}, id="t1", model=MODEL))
LENGTH = len(list(chunks(Say(parts=REPLY), MODEL, 1)))


@pytest.mark.parametrize("cut", ["end", "drop", "garbage", "list", "bare", "503"])
async def test_c067_a_stream_cut_anywhere_is_overload_and_never_an_answer(setup: Setup, cut: Any) -> None:
    for after in range(LENGTH):
        setup.server.script.append(Say(parts=REPLY, cut=cut, after=after))
        with pytest.raises(ModelOverloaded):
            await setup.ask(user("go"))
    setup.server.script.append(Say(parts=REPLY))
    assert (await setup.ask(user("go"))).stop == "tool_calls"
    assert len(setup.server.accepted) == LENGTH + 1


@pytest.mark.parametrize(("cut", "kind"), [("429", ModelRateLimited), ("400", ModelRejected)])
async def test_an_error_event_inside_a_stream_is_the_error_it_names(
    setup: Setup, cut: Any, kind: type[ModelError]
) -> None:
    setup.server.script.append(Say(parts=REPLY, cut=cut, after=3))
    with pytest.raises(kind):
        await setup.ask(user("go"))


async def test_a_listener_s_own_error_is_not_taken_for_the_endpoint_s(setup: Setup) -> None:
    def listen(piece: str) -> None:
        raise TypeError("mine")

    request = ModelRequest(system="", messages=[user("go")])
    with pytest.raises(TypeError, match="mine"):
        await setup.model.complete(request, listen)


# ---- replies


def test_every_reason_to_stop_that_the_sdk_knows_is_in_the_table() -> None:
    assert {reason.value for reason in types.FinishReason} == set(FINISH)


@pytest.mark.parametrize(
    ("reason", "expected"), [*FINISH.items(), ("SOMETHING_NEW", "end"), ("NO_SUCH_REASON_2", "end")]
)
async def test_c067_every_reason_to_stop_has_its_meaning(setup: Setup, reason: str, expected: Any) -> None:
    setup.server.script.append(Say(parts=(text("x"),), finish=reason))
    if isinstance(expected, str):
        assert (await setup.ask(user("go"))).stop == expected
    else:
        with pytest.raises(expected, match=reason):
            await setup.ask(user("go"))


async def test_an_answer_in_instalments_is_one_reply_and_each_request_is_whole(setup: Setup) -> None:
    first = Say(parts=(text("the first half, "),), finish="CONTINUATION", token="dG9rZW4=")
    setup.server.script += [first, Say(parts=(text("and the second"),))]
    reply = await setup.ask(user("go"))
    assert (written(reply).text, reply.stop) == ("the first half, and the second", "end")
    one, two = setup.server.accepted
    assert two == {**one, "continuationToken": "dG9rZW4="}
    assert reply.usage.output == 14


@pytest.mark.parametrize("reason", [r.value for r in types.BlockedReason] + ["SOMETHING_NEW"])
async def test_c067_a_blocked_prompt_is_a_refusal_and_nothing_is_kept(setup: Setup, reason: str) -> None:
    setup.server.script.append(Say(blocked=reason))
    reply = await setup.ask(user("go"))
    assert (reply.stop, reply.content) == ("refusal", ())
    assert reply.usage.input > 0


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "SAFETY"])
async def test_c067_no_call_of_a_malformed_or_refused_reply_can_run(setup: Setup, reason: str) -> None:
    setup.server.script.append(Say(parts=REPLY, finish=reason))
    assert written(await setup.ask(user("go"))).calls == []


async def test_c063_calls_of_a_reply_cut_at_the_limit_are_marked(setup: Setup) -> None:
    setup.server.script.append(Say(parts=REPLY, finish="MAX_TOKENS"))
    reply = await setup.ask(user("go"))
    assert reply.stop == "length"
    assert [bool(made.invalid) for made in written(reply).calls] == [True]


async def test_c063_a_call_without_arguments_has_an_empty_object(setup: Setup) -> None:
    setup.server.script.append(Say(parts=(call("t", None, model=MODEL),)))
    (made,) = written(await setup.ask(user("go"))).calls
    assert (made.input, made.invalid) == ({}, None)


async def test_calls_without_ids_get_some_that_stay_ours(setup: Setup) -> None:
    setup.server.script.append(Say(parts=(call("t", {}, model=MODEL), call("t", {}))))
    reply = written(await setup.ask(user("go")))
    one, two = reply.calls
    assert one.id != two.id
    answers = tool_results([ToolResult(tool_use_id=made.id, content="x") for made in (one, two)])
    await setup.ask(user("go"), reply, answers)
    sent = setup.server.accepted[1]["contents"]
    assert all("id" not in part["functionCall"] for part in sent[1]["parts"])
    assert all("id" not in part["functionResponse"] for part in sent[2]["parts"])


async def test_calls_with_ids_keep_them(setup: Setup) -> None:
    setup.server.script.append(Say(parts=(call("t", {}, id="fc-1", model=MODEL), call("t", {}, id="fc-2"))))
    reply = written(await setup.ask(user("go")))
    assert [made.id for made in reply.calls] == ["fc-1", "fc-2"]
    await setup.ask(user("go"), reply, tool_results([ToolResult(tool_use_id="fc-2", content="x")]))
    sent = setup.server.accepted[1]["contents"]
    assert [part["functionResponse"]["id"] for part in sent[2]["parts"]] == ["fc-1", "fc-2"]


async def test_thoughts_and_cached_tokens_are_counted_where_they_are_paid(setup: Setup) -> None:
    usage = {
        "promptTokenCount": 100,
        "toolUsePromptTokenCount": 10,
        "cachedContentTokenCount": 80,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 40,
    }
    setup.server.script.append(Say(parts=(text("x"),), usage=usage))
    assert (await setup.ask(user("go"))).usage == Usage(input=110, output=45, cached=80)


# ---- thoughts and signatures


async def test_c060_a_signed_step_is_accepted_back_with_its_bytes_as_they_came(setup: Setup) -> None:
    parts = (think("first this", MODEL), text("so then", MODEL, signed="last"), *REPLY[1:], call("t", {}))
    setup.server.script.append(Say(parts=parts))
    heard: list[str] = []
    reply = written(await setup.model.complete(ModelRequest(system="", messages=[user("go")]), heard.append))
    assert [type(block) for block in reply.content] == [Thinking, Text, ToolUse, ToolUse]
    assert heard == ["so then"]
    assert reply.text == "so then"
    answers = tool_results([ToolResult(tool_use_id=made.id, content="x") for made in reply.calls])
    assert written(await setup.ask(user("go"), reply, answers)).text == "ok"
    sent = setup.server.accepted[1]["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in sent if "functionCall" in part] == [
        signature(MODEL, REPLY[1]),
        None,
    ]
    assert setup.server.refused == []


@pytest.mark.parametrize("signed", ["last", "apart"])
async def test_c060_the_signature_of_a_text_is_accepted_back(setup: Setup, signed: Any) -> None:
    words = "a text of several pieces, signed at its end"
    setup.server.script.append(Say(parts=(text(words, MODEL, signed=signed),)))
    reply = written(await setup.ask(user("go")))
    assert reply.text == words
    assert len(reply.content) == 1
    await setup.ask(user("go"), reply, user("and?"))
    sent = setup.server.accepted[1]["contents"][1]["parts"]
    assert "".join(part["text"] for part in sent) == words
    assert [("thoughtSignature" in part) for part in sent] == [False, True]


async def test_c060_another_model_takes_the_history_without_signatures(setup: Setup) -> None:
    setup.server.script.append(Say(parts=REPLY))
    reply = written(await setup.ask(user("go")))
    answers = tool_results([ToolResult(tool_use_id="t1", content="x")])
    other = GeminiModel(model=OTHER, api_key=setup.server.key, base_url=setup.server.base_url)
    for log in ([user("go"), reply, answers], [user("go"), reply, answers, user("and?")]):
        await other.complete(ModelRequest(system="", messages=log))
    await other.close()
    sent = [body["contents"][1]["parts"][1].get("thoughtSignature") for body in setup.server.accepted[1:]]
    assert sent == [BYPASS[0], None]


def spoilt() -> Message:
    """A step of this model whose signature the endpoint does not take (any more)."""
    made = ToolUse(id="t9", name="t", input={}, opaque={"thoughtSignature": "b2xk"})
    return Message(role="assistant", content=(Text(text="so"), made), model=f"gemini:{MODEL}")


ANSWERED = tool_results([ToolResult(tool_use_id="t9", content="x")])


async def test_c060_a_refusal_that_names_a_signature_says_so(setup: Setup) -> None:
    with pytest.raises(ModelRejected) as caught:
        await setup.ask(user("go"), spoilt(), ANSWERED)
    assert caught.value.about_thinking
    assert not caught.value.context_too_long


async def test_c060_signatures_of_earlier_turns_are_left_out_in_one_more_try(setup: Setup) -> None:
    patient = ResilientModel([setup.model], clock=SystemClock())
    log = [user("go"), spoilt(), ANSWERED, user("and now?")]
    assert written(await patient.complete(ModelRequest(system="", messages=log))).text == "ok"
    assert (len(setup.server.refused), len(setup.server.accepted)) == (1, 1)


# ---- requests


async def test_a_step_sends_what_the_step_before_sent_and_more(setup: Setup) -> None:
    setup.server.script.append(Say(parts=REPLY))
    log = [user("go")]
    log.append(written(await setup.ask(*log)))
    log.append(tool_results([ToolResult(tool_use_id="t1", content="done")]))
    tools = (ToolSpec(name="t", description="d", input_schema={"type": "object", "properties": {}}),)
    await setup.ask(*log, tools=tools)
    await setup.ask(*log, user("more"), tools=tools)
    shorter, longer = setup.server.accepted[1:]
    for name in ("systemInstruction", "tools"):
        assert json.dumps(shorter[name]) == json.dumps(longer[name])
    assert json.dumps(longer["contents"]).startswith(json.dumps(shorter["contents"]).removesuffix("]"))


async def test_further_fields_are_added_and_ours_hold(setup: Setup) -> None:
    extra = {
        "generationConfig": {"thinkingConfig": {"includeThoughts": True}, "maxOutputTokens": 1},
        "safetySettings": [],
    }
    model = GeminiModel(
        model=MODEL,
        api_key=setup.server.key,
        base_url=setup.server.base_url,
        max_output_tokens=70,
        extra=extra,
    )
    await model.complete(ModelRequest(system="", messages=[user("go")]))
    await model.complete(ModelRequest(system="", messages=[user("go")], max_output_tokens=7))
    await model.close()
    sent = [body["generationConfig"] for body in setup.server.accepted]
    assert [config["maxOutputTokens"] for config in sent] == [70, 7]
    assert sent[0]["thinkingConfig"] == {"includeThoughts": True}
    assert setup.server.accepted[0]["safetySettings"] == []


async def test_a_request_without_messages_is_not_sent(setup: Setup) -> None:
    with pytest.raises(WireError):
        await setup.ask()
    assert not setup.server.arrived.is_set()


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
        parts = body["contents"][0]["parts"]
        assert [next(iter(part)) for part in parts] == ["text", "inlineData", "text", "text", "text"]
        assert parts[1]["inlineData"]["data"] == "cGljdHVyZQ=="
