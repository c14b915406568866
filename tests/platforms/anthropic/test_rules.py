"""The test server refuses what the Messages API refuses; else the adapter's tests would prove nothing."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.platforms.anthropic.replies import Fail, Say, call, redact, text, think
from tests.platforms.anthropic.rules import Json, refusal
from tests.platforms.anthropic.server import VERSION, AnthropicServer

SAY = [text("hi")]
USE = [call("t", {}, "t1")]
ANSWER: list[Json] = [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]
MARK = {"cache_control": {"type": "ephemeral"}}
TOOL: Json = {"name": "t", "input_schema": {"type": "object"}}


def body(*contents: Any, **more: Any) -> Json:
    roles = ("user", "assistant")
    messages = [{"role": roles[index % 2], "content": content} for index, content in enumerate(contents)]
    return {
        "model": "claude-test",
        "max_tokens": 9,
        "messages": messages or [{"role": "user", "content": "hi"}],
        **more,
    }


def without(name: str) -> Json:
    return {key: value for key, value in body().items() if key != name}


def test_ordinary_requests_are_taken() -> None:
    assert refusal(body()) is None
    assert (
        refusal(body(SAY, USE, [*ANSWER, *SAY], tools=[{**TOOL, **MARK}], system=[{**text("s"), **MARK}]))
        is None
    )
    thought = [think("hm", "claude-test"), redact("x", "claude-test"), think("", "claude-test")]
    assert refusal(body(SAY, [*thought, *SAY, *USE], ANSWER)) is None


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (without("max_tokens"), "max_tokens: Field required"),
        (without("model"), "model: Field required"),
        (body(max_tokens=0), "max_tokens: Input should be greater"),
        (body(temperature=1.0), "temperature: Extra inputs are not permitted"),
        (body(messages=[]), "at least one message"),
        (body(messages=[{"role": "assistant", "content": SAY}]), "first message must use"),
        (body(messages=[{"role": "user", "content": SAY}] * 2), "roles must alternate"),
        (body(messages=[{"role": "user", "content": SAY, "name": "x"}]), "messages.0.name: Extra inputs"),
        (body([]), "non-empty content"),
        (body([text("")]), "text content blocks must be non-empty"),
        (body([text(" \n")]), "non-whitespace"),
        (body([{**SAY[0], "foo": 1}]), "messages.0.content.0.text.foo: Extra inputs"),
        (body([{**SAY[0], "citations": []}]), "citations: Extra inputs"),
        (body(SAY, SAY), "prefill"),
        (body(SAY, USE), "without `tool_result` blocks immediately after: t1"),
        (body(SAY, USE, SAY), "without `tool_result` blocks immediately after: t1"),
        (body(SAY, USE, [*SAY, *ANSWER]), "without `tool_result` blocks immediately after: t1"),
        (body(SAY, USE, SAY, SAY, ANSWER), "without `tool_result` blocks immediately after: t1"),
        (body(SAY, [*USE, call("t", {}, "t2")], ANSWER), "immediately after: t2"),
        (body(ANSWER), "unexpected `tool_use_id`"),
        (body(SAY, USE, ANSWER * 2), "each tool_use must have a single result"),
        (body(SAY, USE, ANSWER, USE, ANSWER), "ids must be unique"),
        (body(SAY, [call("t", {}, "a:b")], ANSWER), "tool_use.id: String should match"),
        (body(SAY, [call("a.b", {}, "t1")], ANSWER), "tool_use.name: String should match"),
        (body(SAY, [call("t", "{}", "t1")], ANSWER), "valid dictionary"),
        (body(SAY, USE, [{**ANSWER[0], "content": "", "is_error": True}]), "cannot be empty if `is_error`"),
        (body(USE), "does not match any of the expected tags"),
        (body(SAY, ANSWER, SAY), "does not match any of the expected tags"),
        (body(SAY, [think("hm", "other"), *SAY], SAY), "Invalid `signature` in `thinking` block"),
        (body(SAY, [redact("x", "other"), *SAY], SAY), "Invalid `data`"),
        (body(SAY, [*SAY, think("hm", "claude-test")], SAY), "cannot be `thinking`"),
        (body(SAY, [{**think("hm", "claude-test"), **MARK}, *SAY], SAY), "cache_control: Extra inputs"),
        (body(tools=[{**TOOL, "name": "a/b"}]), "tools.0.custom.name: String should match"),
        (body(tools=[{**TOOL, "name": "x" * 65}]), "tools.0.custom.name: String should match"),
        (body(tools=[TOOL, TOOL]), "Tool names must be unique"),
        (body(tools=[{**TOOL, "input_schema": {}}]), "input_schema.type"),
        (body(tools=[{**TOOL, "input_schema": {"type": "object", "anyOf": []}}]), "at the top level"),
        (body(tools=[{**TOOL, "timeout": 3}]), "tools.0.custom.timeout: Extra inputs"),
        (body([{**text(str(n)), **MARK} for n in range(5)]), "A maximum of 4 blocks with cache_control"),
        (
            body([{"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": ""}}]),
            "media_type",
        ),
        (
            body([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "?"}}]),
            "base64",
        ),
        (body("x" * 900_000), "prompt is too long: 2250"),
    ],
)
def test_a_wrong_request_is_refused_in_the_api_s_words(wrong: Json, says: str) -> None:
    said = refusal(wrong)
    assert said is not None
    assert says in said


async def ask(server: AnthropicServer, sent: Json, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient() as client:
        return await client.post(
            server.base_url + "/v1/messages",
            json=sent,
            headers={"x-api-key": server.key, "anthropic-version": VERSION} | headers,
        )


async def test_the_server_answers_plain_json_and_errors_in_the_api_s_shape() -> None:
    async with AnthropicServer() as server:
        server.script += [
            Say(blocks=(text("hello"), call("t", {"a": 1}, "t1"))),
            Fail(status=529, say="busy"),
        ]
        whole = (await ask(server, body())).json()
        assert whole["content"] == [text("hello"), call("t", {"a": 1}, "t1")]
        assert whole["stop_reason"] == "tool_use"
        busy = await ask(server, body())
        assert busy.status_code == 529
        assert busy.json()["error"] == {"type": "overloaded_error", "message": "busy"}
        wrong = await ask(server, without("max_tokens"))
        assert (wrong.status_code, wrong.json()["error"]["type"]) == (400, "invalid_request_error")
        assert (await ask(server, body(), **{"x-api-key": "no"})).status_code == 401
        assert (await ask(server, body(), **{"anthropic-version": "2023-06-01"})).status_code == 400
        assert (await ask(server, {**body(), "model": "claude-none"})).status_code == 404
        assert len(server.accepted) == 2
        assert len(server.refused) == 1
