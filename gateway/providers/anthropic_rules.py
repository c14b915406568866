"""What the Messages API refuses, checked before a request leaves. Pure.

The builder makes these true; this is the second pair of eyes. A history that breaks a rule would be
refused on every later request of its session too, so the error names the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gateway.errors import ModelRejected
from gateway.messages import Json
from gateway.providers.names import WIRE_NAME

MAX_CACHE_MARKS = 4
_ID = re.compile(r"[a-zA-Z0-9_-]+")


class WireError(ModelRejected):
    """The request body breaks a rule of the API; it was not sent. `place` is a path into the body."""

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        super().__init__(f"{place}: {problem}", provider="anthropic")


def validate(body: Json) -> None:
    """Raise WireError for the first rule that the body breaks."""
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        raise WireError("max_tokens", "a whole number above 0 is required")
    _tools(body.get("tools", []))
    messages = body.get("messages")
    if not messages:
        raise WireError("messages", "there are none")
    _roles(messages)
    seen: set[str] = set()
    for index, message in enumerate(messages):
        place = f"messages.{index}"
        if message["role"] == "assistant":
            _assistant(place, message["content"], seen)
        after = messages[index + 1]["content"] if index + 1 < len(messages) else []
        before = messages[index - 1]["content"] if index else []
        _pairs(place, message, before, after)
        for number, block in enumerate(message["content"]):
            _block(f"{place}.content.{number}", block)
    marks = sum(1 for _ in _marks(body))
    if marks > MAX_CACHE_MARKS:
        raise WireError("cache_control", f"{marks} marks, {MAX_CACHE_MARKS} are allowed")


def _tools(tools: list[Json]) -> None:
    names: set[str] = set()
    for index, tool in enumerate(tools):
        if not WIRE_NAME.fullmatch(tool["name"]):
            raise WireError(f"tools.{index}.name", f"{tool['name']!r} is no name for a tool")
        if tool["name"] in names:
            raise WireError(f"tools.{index}.name", f"{tool['name']!r} is taken")
        names.add(tool["name"])
        if tool["input_schema"].get("type") != "object":
            raise WireError(f"tools.{index}.input_schema", "must describe an object")


def _roles(messages: list[Json]) -> None:
    for index, message in enumerate(messages):
        expected = "assistant" if index % 2 else "user"
        if message["role"] != expected:
            raise WireError(f"messages.{index}.role", f"is {message['role']}, {expected} is due")
        if not message["content"]:
            raise WireError(f"messages.{index}.content", "is empty")
    if messages[-1]["role"] != "user":
        raise WireError("messages", "the last one must be a user's")


def _assistant(place: str, content: list[Json], seen: set[str]) -> None:
    acting = False
    for number, block in enumerate(content):
        if block["type"] == "tool_use":
            acting = True
            if not _ID.fullmatch(block["id"]) or block["id"] in seen:
                raise WireError(f"{place}.content.{number}.id", "is malformed or was used before")
            seen.add(block["id"])
        elif acting and block["type"] == "text":
            raise WireError(f"{place}.content.{number}", "text after a call")
    if content[-1]["type"] in ("thinking", "redacted_thinking"):
        raise WireError(f"{place}.content", "ends in thinking")


def _pairs(place: str, message: Json, before: list[Json], after: list[Json]) -> None:
    """Calls are answered in the next message; results answer the message before and come first."""
    calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
    answers = [block["tool_use_id"] for block in after if block["type"] == "tool_result"]
    if calls and sorted(calls) != sorted(answers):
        raise WireError(place, "its calls are not answered once each in the next message")
    kinds = [block["type"] == "tool_result" for block in message["content"]]
    if any(kinds) and not all(kinds[: sum(kinds)]):
        raise WireError(place, "results must come before anything else")
    asked = {block.get("id") for block in before if block["type"] == "tool_use"}
    for block in message["content"]:
        if block["type"] == "tool_result" and block["tool_use_id"] not in asked:
            raise WireError(place, "a result answers no call of the message before")


def _block(place: str, block: Json) -> None:
    match block["type"]:
        case "text" if not block["text"].strip():
            raise WireError(place, "text is empty")
        case "tool_use" if not isinstance(block["input"], dict):
            raise WireError(place, "input is not an object")
        case "tool_use" if not WIRE_NAME.fullmatch(block["name"]):
            raise WireError(place, f"{block['name']!r} is no name for a tool")
        case "tool_result":
            _result(place, block)
        case "thinking" | "redacted_thinking" if "cache_control" in block:
            raise WireError(place, "thinking cannot carry a cache mark")
        case _:
            pass


def _result(place: str, block: Json) -> None:
    content = block.get("content")
    if block.get("is_error") and not content:
        raise WireError(place, "an error result needs content")
    for number, part in enumerate(content if isinstance(content, list) else []):
        _block(f"{place}.content.{number}", part)


def _marks(value: object) -> Iterator[Json]:
    if isinstance(value, dict):
        if "cache_control" in value:
            yield value
        # A tool's arguments and schema are data, whatever their keys are called.
        for key, item in value.items():
            if key not in ("input", "input_schema", "cache_control"):
                yield from _marks(item)
    elif isinstance(value, list):
        for item in value:
            yield from _marks(item)
