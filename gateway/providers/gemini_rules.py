"""What Gemini's API refuses, checked before a request leaves. Pure.

The builder makes these true; this is the second pair of eyes. A history that breaks a rule would be
refused on every later request of its session too, so the error names the place.
"""

from __future__ import annotations

from gateway.errors import ModelRejected
from gateway.messages import Json
from gateway.providers.gemini_wire import turn_start
from gateway.providers.names import LETTER_FIRST

_DATA = ("text", "functionCall", "functionResponse", "inlineData")


class WireError(ModelRejected):
    """The request body breaks a rule of the API; it was not sent. `place` is a path into the body."""

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        super().__init__(f"{place}: {problem}", provider="gemini")


def validate(body: Json, *, signed: bool = True) -> None:
    """Raise WireError for the first rule that the body breaks. `signed`: the model wants the first
    call of each step of the current turn to have a signature."""
    _tools(body.get("tools", []))
    contents = body.get("contents")
    if not contents:
        raise WireError("contents", "there are none")
    if contents[0]["role"] != "user" or contents[-1]["role"] != "user":
        raise WireError("contents", "the first and the last one must be a user's")
    seen: set[str] = set()
    for index, content in enumerate(contents):
        place = f"contents.{index}"
        if content["role"] not in ("user", "model"):
            raise WireError(f"{place}.role", f"{content['role']!r} is no role")
        if not content["parts"]:
            raise WireError(f"{place}.parts", "is empty")
        for number, part in enumerate(content["parts"]):
            _part(f"{place}.parts.{number}", content["role"], part, seen)
        _pairs(place, content, contents[index - 1] if index else None, contents[index + 1 : index + 2])
    if signed:
        _signatures(contents)


def _tools(tools: list[Json]) -> None:
    names: set[str] = set()
    for index, tool in enumerate(tools):
        for number, declaration in enumerate(tool["functionDeclarations"]):
            place, name = f"tools.{index}.functionDeclarations.{number}", declaration["name"]
            if not LETTER_FIRST.fullmatch(name):
                raise WireError(f"{place}.name", f"{name!r} is no name for a tool")
            if name in names:
                raise WireError(f"{place}.name", f"{name!r} is taken")
            names.add(name)
            if declaration["parametersJsonSchema"].get("type") != "object":
                raise WireError(f"{place}.parametersJsonSchema", "must describe an object")


def _part(place: str, role: str, part: Json, seen: set[str]) -> None:
    if sum(name in part for name in _DATA) != 1:
        raise WireError(place, "holds not exactly one thing")
    if "text" in part and not part["text"] and "thoughtSignature" not in part:
        raise WireError(place, "text is empty")
    if role == "user" and ("functionCall" in part or "thoughtSignature" in part or "thought" in part):
        raise WireError(place, "is the model's, not a user's")
    if role == "model" and ("functionResponse" in part):
        raise WireError(place, "is a user's, not the model's")
    if (call := part.get("functionCall")) is not None:
        if not LETTER_FIRST.fullmatch(call["name"]):
            raise WireError(place, f"{call['name']!r} is no name for a tool")
        if not isinstance(call["args"], dict):
            raise WireError(place, "args is not an object")
        if "id" in call and (not call["id"] or call["id"] in seen):
            raise WireError(place, "its id is empty or was used before")
        seen.add(call.get("id", ""))
    if (answer := part.get("functionResponse")) is not None and not isinstance(answer["response"], dict):
        raise WireError(place, "response is not an object")


def _pairs(place: str, content: Json, before: Json | None, after: list[Json]) -> None:
    """Calls are answered in the content after them, once each and in their order."""
    calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    answers = [part["functionResponse"] for part in _parts(after) if "functionResponse" in part]
    if calls and [(c["name"], c.get("id")) for c in calls] != [(a["name"], a.get("id")) for a in answers]:
        raise WireError(place, "its calls are not answered once each, in order, in the next content")
    asked = before is not None and any("functionCall" in part for part in before["parts"])
    if not asked and any("functionResponse" in part for part in content["parts"]):
        raise WireError(place, "a response answers no call of the content before")


def _parts(contents: list[Json]) -> list[Json]:
    return [part for content in contents for part in content["parts"]]


def _signatures(contents: list[Json]) -> None:
    for index in range(turn_start(contents), len(contents)):
        calls = [part for part in contents[index]["parts"] if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            raise WireError(f"contents.{index}", "the first call of a step has no thought signature")
