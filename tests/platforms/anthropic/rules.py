"""What the Messages API refuses, in its own words. Written apart from the adapter's own checks.

`refusal(body)` is None for a request that version 2026-10-21 would take, else the message of its
`invalid_request_error`. Where the real API is lenient (it merges messages of one role), this is strict.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

TOP_REQUIRED = ("model", "messages", "max_tokens")
TOP = {
    *TOP_REQUIRED,
    *("system", "tools", "tool_choice", "stream", "stop_sequences", "metadata", "thinking"),
    *("service_tier", "output_config", "cache_control"),
}
# Block type -> (required fields, optional fields), in the places where it may stand.
BLOCKS: dict[str, dict[str, tuple[set[str], set[str]]]] = {
    "user": {
        "text": ({"text"}, {"cache_control"}),
        "image": ({"source"}, {"cache_control"}),
        "document": ({"source"}, {"cache_control", "title", "context", "citations"}),
        "tool_result": ({"tool_use_id"}, {"content", "is_error", "cache_control"}),
    },
    "assistant": {
        "text": ({"text"}, {"cache_control", "citations"}),
        "tool_use": ({"id", "name", "input"}, {"cache_control"}),
        "thinking": ({"thinking", "signature"}, set()),
        "redacted_thinking": ({"data"}, set()),
    },
}
IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
ID = re.compile(r"^[a-zA-Z0-9_-]+$")


class Refused(Exception):
    """The message of an invalid_request_error."""


def signature(model: str, thinking: str) -> str:
    """The signature that this server gives a thinking block; good for that model and text only."""
    return "sig" + hashlib.sha256(f"{model}\0{thinking}".encode()).hexdigest()


def redacted(model: str, secret: str) -> str:
    """The data of a redacted thinking block."""
    return base64.b64encode(f"{model}\0{secret}".encode()).decode()


def refusal(body: Json, context_tokens: int = 200_000) -> str | None:
    """Why the API refuses this body, or None."""
    try:
        _top(body)
        _tools(body.get("tools", []))
        _system(body.get("system", ""))
        _messages(body)
        _marks(body)
        _length(body, context_tokens)
    except Refused as refused:
        return str(refused)
    return None


def _top(body: Json) -> None:
    for name in TOP_REQUIRED:
        if name not in body:
            raise Refused(f"{name}: Field required")
    for name in body:
        if name not in TOP:
            raise Refused(f"{name}: Extra inputs are not permitted")
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        raise Refused("max_tokens: Input should be greater than or equal to 1")


def _tools(tools: list[Json]) -> None:
    for index, tool in enumerate(tools):
        place = f"tools.{index}.custom"
        _fields(place, tool, {"name", "input_schema"}, {"description", "cache_control", "type", "strict"})
        if not NAME.match(tool["name"]):
            raise Refused(f"{place}.name: String should match pattern '{NAME.pattern}'")
        schema = tool["input_schema"]
        if schema.get("type") != "object":
            raise Refused(f"{place}.input_schema.type: Input should be 'object'")
        if {"oneOf", "anyOf", "allOf"} & set(schema):
            raise Refused(
                f"{place}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
            )
    names = [tool["name"] for tool in tools]
    if len(names) != len(set(names)):
        raise Refused("tools: Tool names must be unique.")


def _system(system: Any) -> None:
    if isinstance(system, list):
        for index, block in enumerate(system):
            _fields(f"system.{index}", block, {"type", "text"}, {"cache_control"})
            if not block["text"].strip():
                raise Refused(f"system.{index}: text content blocks must be non-empty")


def _messages(body: Json) -> None:
    messages = body["messages"]
    if not messages:
        raise Refused("messages: at least one message is required")
    if messages[0]["role"] != "user":
        raise Refused('messages: first message must use the "user" role')
    for index, message in enumerate(messages):
        _fields(f"messages.{index}", message, {"role", "content"}, set())
        if index and message["role"] == messages[index - 1]["role"]:
            role = message["role"]
            raise Refused(
                'messages: roles must alternate between "user" and "assistant", '
                f'but found multiple "{role}" roles in a row'
            )
        if not message["content"]:
            raise Refused(f"messages.{index}: all messages must have non-empty content")
        for number, block in enumerate(blocks_of(message)):
            _block(f"messages.{index}.content.{number}", message["role"], block, body["model"])
        _answers(index, messages)
    if messages[-1]["role"] == "assistant":
        raise Refused(
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )
    ids = [b["id"] for m in messages for b in blocks_of(m) if b["type"] == "tool_use"]
    if len(ids) != len(set(ids)):
        raise Refused("messages: `tool_use` ids must be unique")


def _answers(index: int, messages: list[Json]) -> None:
    """Calls and results: adjacent, once each, results first."""
    message = messages[index]
    before = blocks_of(messages[index - 1]) if index else []
    asked = [block["id"] for block in before if block["type"] == "tool_use"]
    given: list[str] = []
    leading = True
    for number, block in enumerate(blocks_of(message)):
        if block["type"] != "tool_result":
            leading = False
            continue
        id = block["tool_use_id"]
        place = f"messages.{index}.content.{number}"
        if id not in asked:
            raise Refused(
                f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` "
                "block must have a corresponding `tool_use` block in the previous message."
            )
        if id in given:
            raise Refused(
                f"{place}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {id}"
            )
        if leading:
            given.append(id)
    missing = [id for id in asked if id not in given]
    if missing:
        _unanswered(index - 1, missing)
    if index == len(messages) - 1:
        last = [block["id"] for block in blocks_of(message) if block["type"] == "tool_use"]
        if last:
            _unanswered(index, last)


def _unanswered(index: int, ids: list[str]) -> None:
    raise Refused(
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block "
        "in the next message."
    )


def _block(place: str, role: str, block: Json, model: str) -> None:
    kind = block.get("type", "")
    if kind not in BLOCKS[role]:
        raise Refused(
            f"{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
        )
    required, optional = BLOCKS[role][kind]
    _fields(f"{place}.{kind}", block, {"type", *required}, optional)
    if kind == "text":
        _text(place, block["text"])
    elif kind in ("image", "document"):
        _source(f"{place}.{kind}.source", kind, block["source"])
    elif kind == "tool_result":
        _result(place, block, model)
    elif kind == "tool_use":
        _use(place, block)
    else:
        _thinking(place, block, model)


def _use(place: str, block: Json) -> None:
    if not ID.match(block["id"]):
        raise Refused(f"{place}.tool_use.id: String should match pattern '{ID.pattern}'")
    if not NAME.match(block["name"]):
        raise Refused(f"{place}.tool_use.name: String should match pattern '{NAME.pattern}'")
    if not isinstance(block["input"], dict):
        raise Refused(f"{place}.tool_use.input: Input should be a valid dictionary")


def _text(place: str, text: str) -> None:
    if not text:
        raise Refused(f"{place}: text content blocks must be non-empty")
    if not text.strip():
        raise Refused(f"{place}: text content blocks must contain non-whitespace text")


def _result(place: str, block: Json, model: str) -> None:
    content = block.get("content")
    if block.get("is_error") and not content:
        raise Refused(f"{place}.tool_result: content cannot be empty if `is_error` is true")
    if isinstance(content, list):
        for number, part in enumerate(content):
            if part.get("type") == "tool_result":
                raise Refused(f"{place}.tool_result.content.{number}: tool_result is not allowed here")
            _block(f"{place}.tool_result.content.{number}", "user", part, model)


def _thinking(place: str, block: Json, model: str) -> None:
    if block["type"] == "thinking":
        if block["signature"] != signature(model, block["thinking"]):
            raise Refused(f"{place}: Invalid `signature` in `thinking` block")
        return
    try:
        made_by = base64.b64decode(block["data"], validate=True).decode().partition("\0")[0]
    except (binascii.Error, UnicodeDecodeError):
        made_by = ""
    if made_by != model:
        raise Refused(f"{place}: Invalid `data` in `redacted_thinking` block")


def _source(place: str, kind: str, source: Json) -> None:
    _fields(place, source, {"type", "media_type", "data"}, set())
    if source["media_type"] not in (IMAGES if kind == "image" else {"application/pdf"}):
        raise Refused(f"{place}.base64.media_type: Input should be one of {sorted(IMAGES)}")
    try:
        base64.b64decode(source["data"], validate=True)
    except binascii.Error:
        raise Refused(f"{place}.base64.data: The data is not valid base64") from None


def _fields(place: str, value: Json, required: set[str], optional: set[str]) -> None:
    for name in sorted(required - set(value)):
        raise Refused(f"{place}.{name}: Field required")
    for name in sorted(set(value) - required - optional):
        raise Refused(f"{place}.{name}: Extra inputs are not permitted")


def blocks_of(message: Json) -> list[Json]:
    """A message's blocks; plain text is one text block."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _marked(body: Json) -> Iterator[Json]:
    yield from (block for block in [*body.get("tools", [])] if "cache_control" in block)
    system = body.get("system", "")
    yield from (block for block in (system if isinstance(system, list) else []) if "cache_control" in block)
    for message in body["messages"]:
        yield from (block for block in blocks_of(message) if "cache_control" in block)


def _marks(body: Json) -> None:
    found = list(_marked(body))
    if len(found) > 4:
        raise Refused(f"A maximum of 4 blocks with cache_control may be provided. Found {len(found)}.")
    for block in found:
        if block["cache_control"].get("type") != "ephemeral":
            raise Refused("cache_control.type: Input should be 'ephemeral'")
    for index, message in enumerate(body["messages"]):
        if message["role"] == "assistant":
            last = blocks_of(message)[-1]
            if last["type"] in ("thinking", "redacted_thinking"):
                raise Refused(
                    f"messages.{index}: The final block in an assistant message cannot be `thinking`."
                )


def tokens_of(body: Json) -> int:
    """The server's idea of size: four characters to a token."""
    return len(str([body.get("system"), body.get("tools"), body["messages"]])) // 4


def _length(body: Json, context_tokens: int) -> None:
    if (tokens := tokens_of(body)) > context_tokens:
        raise Refused(f"prompt is too long: {tokens} tokens > {context_tokens} maximum")
