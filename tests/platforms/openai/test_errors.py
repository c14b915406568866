"""Every way in which a Chat Completions vendor says no becomes the right error of ours."""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import openai
import pytest

from gateway.errors import ModelAuthError, ModelError, ModelOverloaded, ModelRateLimited, ModelRejected
from gateway.messages import user
from gateway.providers.base import ModelRequest, ModelResponse
from gateway.providers.openai import ChatModel
from gateway.providers.openai_errors import ERRORS
from gateway.providers.openai_quirks import Provider
from tests.platforms.openai.replies import Fail, Say
from tests.platforms.openai.server import OpenAIServer

Ask = tuple[OpenAIServer, ChatModel]


def made(server: OpenAIServer, **more: Any) -> ChatModel:
    provider: Any = server.flavour
    return ChatModel(provider=provider, model=server.model, api_key=server.key, base_url=server.url, **more)


@pytest.fixture
def provider() -> Provider:
    return "openai"


@pytest.fixture
async def pair(provider: Provider) -> AsyncIterator[Ask]:
    async with OpenAIServer(provider, context_tokens=2_000) as server:
        model = made(server)
        yield server, model
        await model.close()


async def ask(model: ChatModel, words: str = "go") -> ModelResponse:
    return await model.complete(ModelRequest(system="", messages=[user(words)]))


async def failure(pair: Ask, step: Fail | Say) -> ModelError:
    server, model = pair
    server.script.append(step)
    with pytest.raises(ModelError) as caught:
        await ask(model)
    assert len(server.accepted) == 1
    assert server.key not in repr(caught.value)
    return caught.value


def of(provider: Provider) -> Any:
    return pytest.mark.parametrize("provider", [provider])


def family(root: type[Exception]) -> Iterator[type[Exception]]:
    for child in root.__subclasses__():
        yield child
        yield from family(child)


def test_every_error_of_the_sdk_is_translated_by_its_class() -> None:
    roots = {openai.OpenAIError, openai.APIError}
    known = set(ERRORS) - roots
    public = {
        error
        for error in family(openai.OpenAIError)
        if hasattr(openai, error.__name__) and not error.__name__.startswith("_")
    }
    below = {*family(httpx.HTTPError), *family(httpx.StreamError)}
    assert len(public) > 12
    unknown = {e.__name__ for e in public | below if e not in roots and not known & set(e.__mro__)}
    # What its helpers for parsed replies and its websockets raise is not met here.
    assert unknown == {
        *("LengthFinishReasonError", "ContentFilterFinishReasonError"),
        *("WebSocketConnectionClosedError", "WebSocketQueueFullError"),
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
        (422, ModelRejected),
        (429, ModelRateLimited),
        (500, ModelOverloaded),
        (502, ModelOverloaded),
        (503, ModelOverloaded),
        (504, ModelOverloaded),
    ],
)
async def test_a_status_becomes_one_of_our_errors_after_one_request(
    pair: Ask, status: int, kind: type[ModelError]
) -> None:
    assert type(await failure(pair, Fail(status=status, type="other"))) is kind


@pytest.mark.parametrize(
    ("provider", "status", "code", "type", "kind"),
    [
        ("openai", 429, "insufficient_quota", "insufficient_quota", ModelAuthError),
        ("openai", 429, "rate_limit_exceeded", "tokens", ModelRateLimited),
        ("openai", 400, None, "invalid_request_error", ModelRejected),
        ("kimi", 429, None, "exceeded_current_quota_error", ModelAuthError),
        ("kimi", 429, None, "rate_limit_reached_error", ModelRateLimited),
        ("kimi", 429, None, "engine_overloaded_error", ModelOverloaded),
        ("glm", 429, "1302", "", ModelRateLimited),
        ("glm", 429, "1305", "", ModelOverloaded),
        ("glm", 429, "1113", "", ModelAuthError),
        ("glm", 429, "1308", "", ModelAuthError),
        ("glm", 400, "1211", "", ModelAuthError),
        ("glm", 400, "1214", "", ModelRejected),
        ("glm", 500, "1234", "", ModelOverloaded),
        ("gemini", 429, "RESOURCE_EXHAUSTED", "", ModelRateLimited),
        ("gemini", 503, "UNAVAILABLE", "", ModelOverloaded),
        ("gemini", 400, "INVALID_ARGUMENT", "", ModelRejected),
        ("deepseek", 402, None, "unknown_error", ModelAuthError),
    ],
)
async def test_a_vendor_s_code_says_more_than_the_status(
    pair: Ask, status: int, code: str | None, type: str, kind: Any
) -> None:
    error = await failure(pair, Fail(status=status, code=code, type=type))
    assert error.__class__ is kind


@pytest.mark.parametrize(
    ("provider", "fail"),
    [
        ("openai", Fail(status=400, code="context_length_exceeded", say="no")),
        ("openai", Fail(status=413, say="Payload Too Large")),
        ("openai", Fail(status=400, say="This model's maximum context length is 8192 tokens.")),
        ("deepseek", Fail(status=400, say="This model's maximum context length is 131072 tokens. However,")),
        ("kimi", Fail(status=400, say="Invalid request: Your request exceeded model token limit: 262144")),
        ("kimi", Fail(status=400, say="Input token length too long")),
        ("glm", Fail(status=400, code="1261", say="Prompt exceeds max length")),
        ("gemini", Fail(status=400, say="The input token count (9) exceeds the maximum number of tokens")),
    ],
)
async def test_c069_a_prompt_that_is_too_long_is_told_apart(pair: Ask, fail: Fail) -> None:
    error = await failure(pair, fail)
    assert isinstance(error, ModelRejected)
    assert error.context_too_long
    assert not error.about_thinking


async def test_c069_after_a_prompt_over_the_limit_the_next_short_one_is_taken(pair: Ask) -> None:
    _, model = pair
    with pytest.raises(ModelRejected) as caught:
        await ask(model, "x" * 9_000)
    assert caught.value.context_too_long
    assert (await ask(model)).stop == "end"


@pytest.mark.parametrize(
    "words",
    [
        "Invalid value for 'temperature'",
        "Invalid schema for function 'context_window': too many properties",
        "Invalid 'tools': array too long. Expected an array with maximum length 128",
        "messages must not exceed 2048 entries",
    ],
)
async def test_other_refusals_are_not_taken_for_a_prompt_that_is_too_long(pair: Ask, words: str) -> None:
    error = await failure(pair, Fail(status=400, say=words))
    assert isinstance(error, ModelRejected)
    assert not error.context_too_long


@pytest.mark.parametrize(
    ("provider", "fail"),
    [
        ("openai", Fail(status=400, code="content_filter")),
        ("openai", Fail(status=400, code="invalid_prompt")),
        ("deepseek", Fail(status=400, say="Content Exists Risk")),
        ("kimi", Fail(status=400, type="content_filter", say="The request was rejected")),
        ("glm", Fail(status=400, code="1301")),
    ],
)
async def test_c067_a_text_that_the_vendor_will_not_answer_is_a_refusal_and_no_error(
    pair: Ask, fail: Fail
) -> None:
    server, model = pair
    server.script.append(fail)
    reply = await ask(model)
    assert (reply.content, reply.stop, reply.model) == ((), "refusal", model.id)
    assert len(server.accepted) == 1


@pytest.mark.parametrize(
    "words",
    [
        "The reasoning_content in the thinking mode must be passed back to the API.",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        "Function call is missing a thought_signature in functionCall parts.",
    ],
)
async def test_a_refusal_that_names_reasoning_says_so(pair: Ask, words: str) -> None:
    error = await failure(pair, Fail(status=400, say=words))
    assert isinstance(error, ModelRejected)
    assert error.about_thinking


@pytest.mark.parametrize(
    ("header", "value", "wait"),
    [
        ("retry-after", "12", 12.0),
        ("retry-after-ms", "1500", 1.5),
        ("retry-after", "soon", None),
        ("x-other", "3", None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_the_wait_that_the_endpoint_asks_for_is_carried(
    pair: Ask, status: int, header: str, value: str, wait: float | None
) -> None:
    assert (await failure(pair, Fail(status=status, headers={header: value}))).retry_after == wait


async def test_a_wait_given_as_a_date_is_carried_as_seconds(pair: Ask) -> None:
    date = email.utils.formatdate(time.time() + 600, usegmt=True)
    wait = (await failure(pair, Fail(status=429, headers={"retry-after": date}))).retry_after
    assert wait is not None
    assert 300 < wait <= 600


@of("gemini")
async def test_a_wait_that_google_puts_into_the_error_is_carried(pair: Ask) -> None:
    details = [
        {"@type": "type.googleapis.com/google.rpc.Help"},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"},
    ]
    body = [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow", "details": details}}]
    error = await failure(pair, Fail(status=429, body=body))
    assert isinstance(error, ModelRateLimited)
    assert error.retry_after == 7.5


@of("gemini")
async def test_a_key_that_is_refused_as_a_bad_request_is_a_matter_of_the_key(pair: Ask) -> None:
    fail = Fail(status=400, say="API key not valid. Please pass a valid API key.")
    assert isinstance(await failure(pair, fail), ModelAuthError)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", ModelOverloaded),
        ("something_new", ModelOverloaded),
        ("rate_limit_exceeded", ModelRateLimited),
        ("insufficient_quota", ModelAuthError),
        ("invalid_request_error", ModelRejected),
    ],
)
async def test_an_error_inside_a_stream_is_the_error_it_names(
    pair: Ask, code: str, kind: type[ModelError]
) -> None:
    assert type(await failure(pair, Say(text="half an answer", cut=code, after=2))) is kind


@pytest.mark.parametrize(
    "body", ["plain words", [], {}, {"error": "words"}, {"error": {"message": None}}, None]
)
async def test_errors_of_any_shape_become_ours(pair: Ask, body: Any) -> None:
    fail = Fail(status=400, body=body if body is not None else [None])
    assert type(await failure(pair, fail)) is ModelRejected


async def test_the_key_is_in_no_error_even_where_the_endpoint_repeats_it(pair: Ask) -> None:
    error = await failure(pair, Fail(status=400, say=f"odd key {pair[0].key}"))
    assert "odd key ***" in str(error)


async def test_nobody_at_the_address_is_overload() -> None:
    async with OpenAIServer() as server:
        model = made(server)
    with pytest.raises(ModelOverloaded):
        await ask(model)
    await model.close()


async def test_silence_longer_than_the_timeout_is_overload(pair: Ask) -> None:
    server, _ = pair
    server.script.append(Say(text="late", hold=asyncio.Event()))
    model = made(server, timeout=0.05)
    with pytest.raises(ModelOverloaded):
        await ask(model)
    await model.close()
