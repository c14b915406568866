"""What the tests of the Chat Completions wire share: bodies, built and checked by both judges."""

from __future__ import annotations

from typing import Any

from gateway.messages import File, Image, Json, Message, ToolResult, ToolUse
from gateway.providers.base import ToolSpec
from gateway.providers.openai_quirks import QUIRKS, Provider
from gateway.providers.openai_rules import validate
from gateway.providers.openai_wire import Builder
from tests.platforms.openai.rules import SIGNED, refusal

MODELS: dict[Provider, str] = {
    "openai": "gpt-5-test",
    "deepseek": "deepseek-test",
    "kimi": "kimi-k2.6",
    "glm": "glm-test",
    "gemini": "gemini-3-test",
}
PROVIDERS = list(MODELS)
THINKERS: list[Provider] = ["deepseek", "kimi", "glm"]


def id_of(provider: Provider) -> str:
    return f"{provider}:{MODELS[provider]}"


def builder(provider: Provider, **more: Any) -> Builder:
    more = {"model": MODELS[provider], "model_id": id_of(provider), **more}
    return Builder(quirks=QUIRKS[provider], **more)


def checked(body: Json, provider: Provider) -> Json:
    validate(body, QUIRKS[provider])
    assert refusal(body, provider) is None
    return body


def wire(*messages: Message, provider: Provider, tools: tuple[ToolSpec, ...] = (), **more: Any) -> Json:
    body = builder(provider, **more).build(messages, system="be kind", tools=tools, max_tokens=100)
    return checked(body, provider)


def said(*messages: Message, provider: Provider = "openai", **more: Any) -> list[Json]:
    """The messages behind the system's."""
    return wire(*messages, provider=provider, **more)["messages"][1:]


def use(id: str, name: str = "look", **more: Any) -> ToolUse:
    return ToolUse(id=id, name=name, input={}, **more)


def result(id: str, content: str = "ok", **more: Any) -> ToolResult:
    return ToolResult(tool_use_id=id, content=content, **more)


def tool(id: str, content: str) -> Json:
    return {"role": "tool", "tool_call_id": id, "content": content}


def signed(id: str, model: str = MODELS["gemini"]) -> ToolUse:
    return use(id, opaque={"extra_content": {"google": {"thought_signature": SIGNED + model}}})


LOADS = {"a.png": "cGljdHVyZQ==", "a.pdf": "cGRm"}
PICTURE = Image(path="a.png", media_type="image/png")
PAPER = File(path="a.pdf", media_type="application/pdf", name="a.pdf")
