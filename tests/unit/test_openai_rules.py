"""The validator of the Chat Completions wire: it names the place of what a vendor would refuse."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.messages import Json
from gateway.providers.openai_quirks import QUIRKS, Provider, finish_of
from gateway.providers.openai_rules import WireError, validate
from tests.platforms.openai.rules import refusal

SAY: Json = {"role": "user", "content": "hi"}
REPLY: Json = {"role": "assistant", "content": "x"}
ANSWER: Json = {"role": "tool", "tool_call_id": "t1", "content": "x"}
PICTURE: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,cGlj"}}
PAPER: Json = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"}}
TOOL: Json = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}


def use(id: str = "t1", name: str = "look", arguments: Any = "{}", **more: Any) -> Json:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call], **more}


def tool(**change: Any) -> Json:
    return {"type": "function", "function": {**TOOL["function"], **change}}


def body(*messages: Json, **more: Any) -> Json:
    return {"model": "gpt-5-test", "messages": list(messages) or [SAY], **more}


BROKEN: list[tuple[Provider, str, Json]] = [
    ("openai", "max_completion_tokens", body(max_completion_tokens=0)),
    ("openai", "messages", {"model": "m", "messages": []}),
    ("openai", "messages.1.role", body(SAY, {"role": "system", "content": "x"}, SAY)),
    ("openai", "messages.1.role", body({"role": "system", "content": "x"})),
    ("openai", "messages", body(SAY, REPLY)),
    ("openai", "messages.1.content", body(SAY, {"role": "assistant", "content": ""}, SAY)),
    ("openai", "messages.1.content", body(SAY, {"role": "assistant", "content": None}, SAY)),
    ("deepseek", "messages.1.content", body(SAY, use(reasoning_content="r"), ANSWER)),
    ("openai", "messages.1.reasoning_content", body(SAY, use(reasoning_content="r"), ANSWER)),
    ("kimi", "messages.1.reasoning_content", body(SAY, use(reasoning_content=""), ANSWER)),
    ("openai", "messages.1.tool_calls.0.function.name", body(SAY, use(name="a.b"), ANSWER)),
    ("kimi", "messages.1.tool_calls.0.function.name", body(SAY, use(name="7zip"), ANSWER)),
    ("kimi", "messages.1.tool_calls.0.function.name", body(SAY, use(name="ls"), ANSWER)),
    ("openai", "messages.1.tool_calls.0.function.arguments", body(SAY, use(arguments={}), ANSWER)),
    ("openai", "messages.1.tool_calls.0.function.arguments", body(SAY, use(arguments="[1]"), ANSWER)),
    ("openai", "messages.1.tool_calls.0.function.arguments", body(SAY, use(arguments='{"a"'), ANSWER)),
    (
        "openai",
        "messages.1.tool_calls.0.id",
        body(SAY, use(id="x" * 41), {**ANSWER, "tool_call_id": "x" * 41}),
    ),
    ("openai", "messages.3.tool_calls.0.id", body(SAY, use(), ANSWER, use(), ANSWER)),
    ("openai", "messages", body(SAY, use())),
    ("openai", "messages.1", body(SAY, use(), SAY)),
    ("openai", "messages.1", body(SAY, use(), ANSWER, ANSWER)),
    ("openai", "messages.1", body(SAY, REPLY, ANSWER)),
    ("openai", "messages.1.role", body(SAY, ANSWER)),
    ("openai", "messages.0.role", body(ANSWER, SAY)),
    ("openai", "messages.3.role", body(SAY, use(), SAY, ANSWER)),
    ("openai", "messages.2.content", body(SAY, use(), {**ANSWER, "content": ""})),
    ("openai", "messages.0.content", body({"role": "user", "content": " "})),
    ("openai", "messages.0.content", body({"role": "user", "content": []})),
    ("openai", "messages.0.content.0", body({"role": "user", "content": [{"type": "text", "text": ""}]})),
    ("deepseek", "messages.0.content.0", body({"role": "user", "content": [PICTURE]})),
    ("kimi", "messages.0.content.0", body({"role": "user", "content": [PAPER]})),
    ("openai", "tools", body(tools=[tool(name=f"t{n}") for n in range(129)])),
    ("openai", "tools.0.function.name", body(tools=[tool(name="a b")])),
    ("openai", "tools.1.function.name", body(tools=[TOOL, TOOL])),
    ("openai", "tools.0.function.parameters", body(tools=[tool(parameters={})])),
]


@pytest.mark.parametrize(("provider", "place", "wrong"), BROKEN)
def test_the_validator_names_the_place_and_the_server_refuses_it_too(
    provider: Provider, place: str, wrong: Json
) -> None:
    with pytest.raises(WireError) as caught:
        validate(wrong, QUIRKS[provider])
    assert caught.value.place == place
    assert refusal(wrong, provider) is not None


def test_what_is_right_passes() -> None:
    system = {"role": "system", "content": "x"}
    for right in (
        body(),
        body(system, SAY, use(), ANSWER, SAY, REPLY, SAY, tools=[TOOL]),
        body({"role": "user", "content": [PICTURE, PAPER]}, max_completion_tokens=1),
    ):
        validate(right, QUIRKS["openai"])
        assert refusal(right, "openai") is None


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("stop", "end"),
        ("length", "length"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("content_filter", "refusal"),
        ("sensitive", "refusal"),
        ("insufficient_system_resource", "broken"),
        ("network_error", "broken"),
        ("model_context_window_exceeded", "length"),
        ("content_filter: SAFETY", "refusal"),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", "malformed"),
        ("something_new", "end"),
        ("", "end"),
    ],
)
def test_every_finish_reason_has_a_meaning(word: str, meaning: str) -> None:
    assert finish_of(word) == meaning
