"""The test server refuses what the vendors refuse; else the adapter's tests would prove nothing."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.platforms.openai.replies import Fail, Json, Say, call
from tests.platforms.openai.rules import BYPASS, FLAVOURS, SIGNED, refusal
from tests.platforms.openai.server import OpenAIServer

SAY: Json = {"role": "user", "content": "hi"}
MODEL = {"openai": "gpt-5", "deepseek": "d", "kimi": "kimi-k2.6", "glm": "glm-4.6", "gemini": "gemini-3-test"}


def use(*ids: str, **more: Any) -> Json:
    calls = [call("look", {}, id, signature=more.pop("signature", "")) for id in ids or ("t1",)]
    return {"role": "assistant", "content": "", "tool_calls": calls, **more}


def answer(id: str = "t1") -> Json:
    return {"role": "tool", "tool_call_id": id, "content": "x"}


def body(*messages: Json, flavour: str = "openai", **more: Any) -> Json:
    return {"model": MODEL[flavour], "messages": list(messages) or [SAY], **more}


def tool(parameters: Json, name: str = "look") -> Json:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


@pytest.mark.parametrize("flavour", list(FLAVOURS))
def test_ordinary_requests_are_taken(flavour: str) -> None:
    needed = {"reasoning_content": "r"} if flavour in ("deepseek", "kimi") else {}
    signature = SIGNED + MODEL[flavour] if flavour == "gemini" else ""
    acted = use("t1", "t2", signature=signature, **needed)
    shape = {"type": "object", "properties": {"a": {"type": "string"}}}
    whole = body(
        {"role": "system", "content": "s"},
        SAY,
        acted,
        answer("t1"),
        answer("t2"),
        flavour=flavour,
        tools=[tool(shape)],
        stream=True,
        stream_options={"include_usage": True},
    )
    assert refusal(whole, flavour) is None


@pytest.mark.parametrize(
    ("flavour", "wrong", "says"),
    [
        ("openai", {"messages": [SAY]}, "'model'"),
        ("openai", body(max_tokens=5), "Unrecognized request argument supplied: max_tokens"),
        ("deepseek", body(max_completion_tokens=5, flavour="deepseek"), "max_completion_tokens"),
        ("glm", body(prompt_cache_key="x", flavour="glm"), "prompt_cache_key"),
        ("openai", body(stream_options={}), "stream_options"),
        ("deepseek", body({"role": "developer", "content": "x"}, SAY, flavour="deepseek"), "developer"),
        ("openai", body({"role": "user", "content": "x", "id": 1}), "messages[0].id"),
        (
            "openai",
            body({"role": "assistant", "content": "x", "reasoning_content": "r"}, SAY),
            "reasoning_content",
        ),
        (
            "gemini",
            body({"role": "assistant", "content": "x", "reasoning_content": "r"}, SAY, flavour="gemini"),
            "re",
        ),
        ("deepseek", body(SAY, use(), answer(), flavour="deepseek"), "must be passed back"),
        (
            "deepseek",
            body(SAY, {"role": "assistant", "content": "x"}, SAY, flavour="deepseek"),
            "must be passed back",
        ),
        ("kimi", body(SAY, use(), answer(), flavour="kimi"), "reasoning_content is missing"),
        ("openai", body(SAY, use("t1", "t2"), answer("t1"), SAY), "did not have response messages: t2"),
        ("openai", body(SAY, use(), answer(), answer()), "two response messages"),
        ("openai", body(SAY, answer()), "must be a response to a preceeding message"),
        ("openai", body(SAY, use(), answer(), use(), answer()), "Duplicate value"),
        ("openai", body(SAY, use("x" * 41), answer("x" * 41)), "does not match pattern"),
        ("openai", body(SAY, {"role": "assistant", "content": "x", "tool_calls": []}, SAY), "empty array"),
        ("openai", body(SAY, {"role": "assistant", "content": None}, SAY), "must not be empty"),
        ("openai", body({"role": "user", "content": ""}), "must not be empty"),
        (
            "openai",
            body({"role": "user", "content": [{"type": "text", "text": " "}]}),
            "text content is empty",
        ),
        ("glm", body({"role": "user", "content": [{"type": "image_url"}]}, flavour="glm"), "unknown variant"),
        ("openai", body(SAY, {"role": "assistant", "content": "x"}), "last message"),
        ("openai", body(tools=[tool({"type": "object", "properties": {}}, "a.b")]), "does not match pattern"),
        ("kimi", body(tools=[tool({"type": "object", "properties": {}}, "ls")], flavour="kimi"), "pattern"),
        ("openai", body(tools=[tool({"type": "object", "properties": {}})] * 2), "duplicated"),
        ("openai", body(tools=[tool({"type": "object"})]), "missing properties"),
        ("openai", body(tools=[tool({"type": "object", "properties": {}, "anyOf": [{}]})]), "top level"),
        (
            "openai",
            body(tools=[tool({"type": "object", "properties": {"a": {"type": "array"}}})]),
            "array schema missing items",
        ),
        (
            "kimi",
            body(
                tools=[tool({"type": "object", "properties": {"a": {"type": "string", "anyOf": [{}]}}})],
                flavour="kimi",
            ),
            "when using anyOf",
        ),
        (
            "gemini",
            body(tools=[tool({"type": "object", "properties": {}})], flavour="gemini"),
            "should be non-empty for OBJECT",
        ),
        ("gemini", body(SAY, use(), answer(), flavour="gemini"), "missing a thought_signature"),
        ("gemini", body(SAY, use(signature="made up"), answer(), flavour="gemini"), "not valid"),
        ("gemini", body(SAY, use(signature=BYPASS[0]), answer(), SAY, flavour="gemini"), "not valid"),
        ("openai", body({"role": "user", "content": "x" * 900_000}), "maximum context length is 200000"),
        (
            "kimi",
            body({"role": "user", "content": "x" * 900_000}, flavour="kimi"),
            "exceeded model token limit",
        ),
    ],
)
def test_a_wrong_request_is_refused_in_the_vendor_s_words(flavour: str, wrong: Json, says: str) -> None:
    said = refusal(wrong, flavour)
    assert said is not None
    assert says in said


async def test_the_server_answers_plain_json_and_errors_in_the_vendor_s_shape() -> None:
    async with OpenAIServer() as server, httpx.AsyncClient() as client:
        server.script += [
            Say(text="hello", calls=(call("look", {"a": 1}, "t1"),)),
            Fail(status=503, say="busy"),
        ]

        async def ask(sent: Json, key: str = server.key) -> httpx.Response:
            headers = {"authorization": f"Bearer {key}"}
            return await client.post(f"{server.url}/chat/completions", json=sent, headers=headers)

        sent = {**body(), "model": server.model}
        whole = (await ask(sent)).json()["choices"][0]
        assert whole["message"]["tool_calls"] == [call("look", {"a": 1}, "t1")]
        assert whole["finish_reason"] == "tool_calls"
        busy = await ask(sent)
        assert (busy.status_code, busy.json()["error"]["message"]) == (503, "busy")
        assert (await ask({**sent, "foo": 1})).status_code == 400
        assert (await ask(sent, "no")).status_code == 401
        assert (await ask({**sent, "model": "none"})).status_code == 404
        assert (len(server.accepted), len(server.refused)) == (2, 1)
