"""What the Chat Completions vendors refuse, in their own words. Written apart from the adapter's checks.

`refusal(body, flavour)` is None for a request that the vendor would take, else the error's message.
Where a vendor is lenient this is strict: fields that it would ignore are refused too.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import Any

from tests.platforms.schema_judge import objection

Json = dict[str, Any]

TOP = {
    "model",
    "messages",
    "tools",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "stop",
    "tool_choice",
}
SIGNED = "signed-"
BYPASS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")


@dataclass(frozen=True, kw_only=True)
class Flavour:
    """One vendor's rules."""

    path: str
    top: frozenset[str]
    roles: frozenset[str] = frozenset({"system"})
    names: str = r"^[a-zA-Z0-9_-]{1,64}$"
    ids: str = r"^[a-zA-Z0-9_-]{1,40}$"
    reasoning: str = "refused"  # taken, on_calls, on_all
    nulls: bool = True  # content may be null beside calls
    images: str = ""
    files: str = ""
    schemas: str = "openai"


FLAVOURS: dict[str, Flavour] = {
    "openai": Flavour(
        path="/v1/chat/completions",
        top=frozenset(
            {*TOP, "max_completion_tokens", "prompt_cache_key", "reasoning_effort", "parallel_tool_calls"}
        ),
        roles=frozenset({"system", "developer"}),
        images=r".",
        files=r"gpt-5|gpt-4o",
    ),
    "deepseek": Flavour(
        path="/chat/completions",
        top=frozenset({*TOP, "max_tokens", "thinking", "reasoning_effort"}),
        reasoning="on_all",
        nulls=False,
        schemas="deepseek",
    ),
    "kimi": Flavour(
        path="/v1/chat/completions",
        top=frozenset({*TOP, "max_completion_tokens", "max_tokens", "prompt_cache_key", "thinking"}),
        names=r"^[a-zA-Z_][a-zA-Z0-9-_]{2,63}$",
        ids=r"^[a-zA-Z0-9_.:-]{1,64}$",
        reasoning="on_calls",
        images=r"k2\.[5-9]|vision",
        schemas="kimi",
    ),
    "glm": Flavour(
        path="/api/paas/v4/chat/completions",
        top=frozenset({*TOP, "max_tokens", "thinking", "tool_stream"}),
        reasoning="taken",
        nulls=False,
        images=r"glm-[\d.]+v",
        schemas="glm",
    ),
    "gemini": Flavour(
        path="/v1beta/openai/chat/completions",
        top=frozenset({*TOP, "max_tokens", "reasoning_effort", "extra_body"}),
        names=r"^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$",
        images=r".",
        schemas="gemini_openapi",
    ),
}


class Refused(Exception):
    """The message of the error."""


def refusal(body: Json, flavour: str, context_tokens: int = 200_000) -> str | None:
    """Why the vendor refuses this body, or None."""
    rules = FLAVOURS[flavour]
    try:
        _top(body, rules)
        _tools(body.get("tools", []), rules)
        _messages(body, rules)
        if flavour == "gemini":
            _signatures(body)
        if (tokens := tokens_of(body)) > context_tokens:
            raise Refused(too_long(flavour, tokens, context_tokens))
    except Refused as refused:
        return str(refused)
    return None


def too_long(flavour: str, tokens: int, limit: int) -> str:
    """The vendor's words for a prompt that does not fit."""
    return {
        "kimi": f"Invalid request: Your request exceeded model token limit: {limit}",
        "glm": "Prompt exceeds max length",
        "gemini": f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit}).",
    }.get(
        flavour,
        f"This model's maximum context length is {limit} tokens. However, you requested {tokens} tokens",
    )


def tokens_of(body: Json) -> int:
    """The server's idea of size: four characters to a token."""
    return len(str([body.get("tools"), body["messages"]])) // 4


def _top(body: Json, rules: Flavour) -> None:
    for name in ("model", "messages"):
        if name not in body:
            raise Refused(f"Missing required parameter: '{name}'.")
    for name in sorted(set(body) - rules.top):
        raise Refused(f"Unrecognized request argument supplied: {name}")
    for name in ("max_tokens", "max_completion_tokens"):
        if name in body and (not isinstance(body[name], int) or body[name] < 1):
            raise Refused(f"Invalid '{name}': integer below minimum value.")
    if "stream_options" in body and not body.get("stream"):
        raise Refused("The 'stream_options' parameter is only allowed when 'stream' is enabled.")


def _tools(tools: list[Json], rules: Flavour) -> None:
    if len(tools) > 128:
        raise Refused("Invalid 'tools': array too long.")
    for index, tool in enumerate(tools):
        place = f"tools[{index}]"
        _fields(place, tool, {"type", "function"}, set())
        function = tool["function"]
        _fields(f"{place}.function", function, {"name"}, {"description", "parameters", "strict"})
        _name(f"{place}.function.name", function["name"], rules)
        if "parameters" in function:
            wrong = objection(function["parameters"], rules.schemas)
            if (
                wrong is None
                and rules.schemas == "gemini_openapi"
                and not function["parameters"]["properties"]
            ):
                wrong = "parameters.properties: should be non-empty for OBJECT type"
            if wrong is not None:
                raise Refused(f"Invalid schema for function '{function['name']}': {wrong}")
    names = [tool["function"]["name"] for tool in tools]
    if len(names) != len(set(names)):
        raise Refused("function name is duplicated")


def _name(place: str, name: str, rules: Flavour) -> None:
    if not re.match(rules.names, name):
        raise Refused(f"Invalid '{place}': string does not match pattern. Expected '{rules.names}'.")


def _messages(body: Json, rules: Flavour) -> None:
    messages = body["messages"]
    if not messages or all(message.get("role") != "user" for message in messages):
        raise Refused("Invalid 'messages': there must be a user message.")
    ids: set[str] = set()
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        role = message.get("role")
        if role == "assistant":
            _assistant(place, message, rules)
            _answers(place, index, messages, ids, rules)
        elif role == "tool":
            _tool(place, index, messages)
        elif role == "user":
            _fields(place, message, {"role", "content"}, {"name"})
            _content(place, message["content"], body["model"], rules)
        elif role in rules.roles and index == 0:
            _fields(place, message, {"role", "content"}, set())
            _content(place, message["content"], body["model"], rules)
        else:
            raise Refused(f"Invalid value: '{role}' at {place}.role")
    if messages[-1]["role"] == "assistant":
        raise Refused("The last message must not be an assistant's.")


def _assistant(place: str, message: Json, rules: Flavour) -> None:
    reasoning = set() if rules.reasoning == "refused" else {"reasoning_content"}
    _fields(place, message, {"role", "content"}, {"tool_calls", *reasoning})
    content, calls = message["content"], message.get("tool_calls")
    if calls == []:
        raise Refused(f"Invalid '{place}.tool_calls': empty array. Expected an array with minimum length 1.")
    if not (content or "").strip() and not calls:
        raise Refused(f"the message at position {place} with role 'assistant' must not be empty")
    if content is None and not rules.nulls:
        raise Refused(f"{place}.content: invalid type: null, expected a string")
    needed = rules.reasoning == "on_all" or (rules.reasoning == "on_calls" and calls)
    if needed and not message.get("reasoning_content"):
        raise Refused(
            f"thinking is enabled but reasoning_content is missing in assistant tool call message at {place}"
            if rules.reasoning == "on_calls"
            else "The reasoning_content in the thinking mode must be passed back to the API."
        )
    for number, call in enumerate(calls or []):
        _call(f"{place}.tool_calls[{number}]", call, rules)


def _call(place: str, call: Json, rules: Flavour) -> None:
    signed = {"extra_content"} if rules.schemas == "gemini_openapi" else set()
    _fields(place, call, {"id", "type", "function"}, signed)
    _fields(f"{place}.function", call["function"], {"name", "arguments"}, set())
    _name(f"{place}.function.name", call["function"]["name"], rules)
    if not re.match(rules.ids, call["id"]):
        raise Refused(f"Invalid '{place}.id': string does not match pattern. Expected '{rules.ids}'.")
    arguments = call["function"]["arguments"]
    if not isinstance(arguments, str):
        raise Refused(f"Invalid type for '{place}.function.arguments': expected a string.")
    try:
        value = json.loads(arguments)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Refused(f"{place}.function.arguments: not a JSON object")


def _answers(place: str, index: int, messages: list[Json], ids: set[str], rules: Flavour) -> None:
    asked = [call["id"] for call in messages[index].get("tool_calls", [])]
    for id in asked:
        if id in ids:
            raise Refused(f"Duplicate value for 'tool_call_id' of '{id}' in message[{index}]")
        ids.add(id)
    given = []
    for message in messages[index + 1 :]:
        if message.get("role") != "tool":
            break
        given.append(message.get("tool_call_id"))
    missing = [id for id in asked if id not in given]
    if missing:
        raise Refused(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(missing)
        )
    if len(given) != len(set(given)):
        raise Refused(f"{place}: a tool_call_id has two response messages")


def _tool(place: str, index: int, messages: list[Json]) -> None:
    message = messages[index]
    _fields(place, message, {"role", "tool_call_id", "content"}, set())
    start = index
    while start and messages[start]["role"] == "tool":
        start -= 1
    asked = [call["id"] for call in messages[start].get("tool_calls", [])]
    if message["tool_call_id"] not in asked:
        raise Refused(
            "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        )
    if not isinstance(message["content"], str) or not message["content"]:
        raise Refused(f"{place}.content: text content is empty")


def _content(place: str, content: Any, model: str, rules: Flavour) -> None:
    if isinstance(content, str):
        if not content.strip():
            raise Refused(f"{place}.content: message must not be empty")
        return
    if not isinstance(content, list) or not content:
        raise Refused(f"{place}.content: message must not be empty")
    for number, part in enumerate(content):
        at = f"{place}.content[{number}]"
        match part.get("type"):
            case "text":
                _fields(at, part, {"type", "text"}, set())
                if not part["text"].strip():
                    raise Refused(f"{at}: text content is empty")
            case "image_url" if rules.images and re.search(rules.images, model):
                _fields(at, part, {"type", "image_url"}, set())
                _data(at, part["image_url"]["url"], r"image/(?:png|jpeg|gif|webp)")
            case "file" if rules.files and re.search(rules.files, model):
                _fields(at, part, {"type", "file"}, set())
                _fields(f"{at}.file", part["file"], {"filename", "file_data"}, set())
                _data(at, part["file"]["file_data"], r"application/pdf")
            case kind:
                raise Refused(f"unknown variant `{kind}`, expected `text` at {at}")


def _data(place: str, url: str, kinds: str) -> None:
    found = re.fullmatch(rf"data:{kinds};base64,(.+)", url)
    try:
        base64.b64decode(found[1] if found else "?", validate=True)
    except binascii.Error:
        raise Refused(f"{place}: unsupported image url") from None


def _signatures(body: Json) -> None:
    """In the current turn the first call of every step needs a signature; any that is there must be real."""
    messages = body["messages"]
    if not body["model"].startswith("gemini-3"):
        return
    turn = max(index for index, message in enumerate(messages) if message["role"] == "user")
    for index, message in enumerate(messages):
        for number, call in enumerate(message.get("tool_calls", [])):
            signature = call.get("extra_content", {}).get("google", {}).get("thought_signature")
            stand_in = signature in BYPASS and index > turn
            if signature is not None and signature != SIGNED + body["model"] and not stand_in:
                raise Refused("Thought signature is not valid.")
            if signature is None and number == 0 and index > turn:
                raise Refused("Function call is missing a thought_signature in functionCall parts.")


def _fields(place: str, value: Json, required: set[str], optional: set[str]) -> None:
    for name in sorted(required - set(value)):
        raise Refused(f"Missing required parameter: '{place}.{name}'.")
    for name in sorted(set(value) - required - optional):
        raise Refused(f"Unknown parameter: '{place}.{name}'.")
