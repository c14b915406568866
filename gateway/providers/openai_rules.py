"""What the Chat Completions vendors refuse, checked before a request leaves. Pure.

The builder makes these true; this is the second pair of eyes. A history that breaks a rule would be
refused on every later request of its session too, so the error names the place.
"""

from __future__ import annotations

import json

from gateway.errors import ModelRejected
from gateway.messages import Json
from gateway.providers.names import LETTER_FIRST, WIRE_NAME
from gateway.providers.openai_quirks import Quirks


class WireError(ModelRejected):
    """The request body breaks a rule of the API; it was not sent. `place` is a path into the body."""

    def __init__(self, place: str, problem: str, provider: str = "") -> None:
        self.place = place
        super().__init__(f"{place}: {problem}", provider=provider)


def validate(body: Json, quirks: Quirks) -> None:
    """Raise WireError for the first rule that the body breaks."""
    limit = body.get(quirks.max_tokens, 1)
    if not isinstance(limit, int) or limit < 1:
        raise WireError(quirks.max_tokens, "must be a whole number above 0")
    _tools(body.get("tools", []), quirks)
    messages = body.get("messages")
    if not messages:
        raise WireError("messages", "there are none")
    _roles(messages)
    seen: set[str] = set()
    for index, message in enumerate(messages):
        place = f"messages.{index}"
        match message["role"]:
            case "assistant":
                _assistant(place, message, quirks)
                _answered(place, messages, index, seen, quirks)
            case "tool":
                _tool_message(place, message)
            case _:
                _said(place, message["content"], body["model"], quirks)


def _tools(tools: list[Json], quirks: Quirks) -> None:
    if len(tools) > quirks.most_tools:
        raise WireError("tools", f"there are {len(tools)}, {quirks.most_tools} are allowed")
    names: set[str] = set()
    for index, tool in enumerate(tools):
        place, function = f"tools.{index}.function", tool["function"]
        _name(f"{place}.name", function["name"], quirks)
        if function["name"] in names:
            raise WireError(f"{place}.name", f"{function['name']!r} is taken")
        names.add(function["name"])
        if "parameters" in function and function["parameters"].get("type") != "object":
            raise WireError(f"{place}.parameters", "must describe an object")


def _name(place: str, name: str, quirks: Quirks) -> None:
    legal = LETTER_FIRST if quirks.letter_first else WIRE_NAME
    if not legal.fullmatch(name) or len(name) < quirks.shortest_name:
        raise WireError(place, f"{name!r} is no name for a tool")


def _roles(messages: list[Json]) -> None:
    first = 1 if messages[0]["role"] in ("system", "developer") else 0
    for index, message in enumerate(messages):
        if message["role"] not in ("user", "assistant", "tool") and index:
            raise WireError(f"messages.{index}.role", f"{message['role']} may only come first")
        if message["role"] == "tool" and (
            not index or messages[index - 1]["role"] not in ("assistant", "tool")
        ):
            raise WireError(f"messages.{index}.role", "a result stands behind its call only")
    if len(messages) == first or messages[first]["role"] != "user":
        raise WireError(f"messages.{first}.role", "the first one must be a user's")
    if messages[-1]["role"] == "assistant":
        raise WireError("messages", "the last one must not be the model's")


def _assistant(place: str, message: Json, quirks: Quirks) -> None:
    content, calls = message.get("content"), message.get("tool_calls", [])
    if not (content and content.strip()) and not calls:
        raise WireError(f"{place}.content", "is empty, and there are no calls")
    if not content and content != quirks.beside_calls:
        raise WireError(f"{place}.content", f"must be {quirks.beside_calls!r} beside calls")
    reasoning = message.get("reasoning_content")
    if reasoning is not None and (quirks.reasoning == "refused" or not reasoning):
        raise WireError(f"{place}.reasoning_content", "has no place here")
    for number, call in enumerate(calls):
        at = f"{place}.tool_calls.{number}"
        _name(f"{at}.function.name", call["function"]["name"], quirks)
        _arguments(f"{at}.function.arguments", call["function"]["arguments"])


def _arguments(place: str, arguments: object) -> None:
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else None
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise WireError(place, "are not a JSON object as text")


def _answered(place: str, messages: list[Json], index: int, seen: set[str], quirks: Quirks) -> None:
    """The tool messages right behind answer the calls once each; ids are of this request alone."""
    ids = [call["id"] for call in messages[index].get("tool_calls", [])]
    for number, id in enumerate(ids):
        if not quirks.ids.fullmatch(id) or id in seen:
            raise WireError(f"{place}.tool_calls.{number}.id", f"{id!r} is taken or no id")
        seen.add(id)
    answers = []
    for message in messages[index + 1 :]:
        if message["role"] != "tool":
            break
        answers.append(message["tool_call_id"])
    if sorted(ids) != sorted(answers):
        raise WireError(place, "its calls are not answered once each by the messages after it")


def _tool_message(place: str, message: Json) -> None:
    # That it answers a call is checked from the call's side, where strangers show up too.
    if not isinstance(message["content"], str) or not message["content"].strip():
        raise WireError(f"{place}.content", "is empty or no text")


def _said(place: str, content: object, model: str, quirks: Quirks) -> None:
    if isinstance(content, str):
        if not content.strip():
            raise WireError(f"{place}.content", "is empty")
        return
    if not isinstance(content, list) or not content:
        raise WireError(f"{place}.content", "is empty")
    for number, part in enumerate(content):
        at = f"{place}.content.{number}"
        if part["type"] == "text" and not part["text"].strip():
            raise WireError(at, "text is empty")
        if part["type"] == "image_url" and not quirks.images.match(model):
            raise WireError(at, "this model takes no pictures")
        if part["type"] == "file" and not quirks.files.match(model):
            raise WireError(at, "this model takes no files")
