"""The check before a request to Gemini leaves: it names the place, and the API would refuse the same."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.messages import Json
from gateway.providers.gemini_rules import WireError, validate
from gateway.providers.gemini_wire import UNSIGNED
from tests.platforms.gemini.rules import refusal


def turns(*contents: Any) -> Json:
    return {
        "contents": [
            {"role": "model" if index % 2 else "user", "parts": parts} for index, parts in enumerate(contents)
        ]
    }


SAY: list[Json] = [{"text": "x"}]
USE: list[Json] = [{"functionCall": {"id": "1", "name": "t", "args": {}}, "thoughtSignature": UNSIGNED}]
ANSWER: list[Json] = [{"functionResponse": {"id": "1", "name": "t", "response": {}}}]
TOOL: Json = {"name": "t", "parametersJsonSchema": {"type": "object"}}


def declared(*declarations: Json) -> Json:
    return {**turns(SAY), "tools": [{"functionDeclarations": list(declarations)}]}


def called(**change: Any) -> list[Json]:
    return [{**USE[0], "functionCall": {**USE[0]["functionCall"], **change}}]


BROKEN: list[tuple[str, Json]] = [
    ("contents", {"contents": []}),
    ("contents", turns(SAY, SAY)),
    (
        "contents.1.role",
        {"contents": [*turns(SAY)["contents"], {"role": "x", "parts": SAY}, *turns(SAY)["contents"]]},
    ),
    ("contents.0.parts", turns([])),
    ("contents.0.parts.0", turns([{}])),
    ("contents.0.parts.0", turns([{"text": ""}])),
    ("contents.0.parts.0", turns(USE, SAY, SAY)),
    ("contents.1.parts.0", turns(SAY, ANSWER, SAY)),
    ("contents.1.parts.0", turns(SAY, called(name="a b"), ANSWER)),
    ("contents.1.parts.0", turns(SAY, called(args="x"), ANSWER)),
    ("contents.3.parts.0", turns(SAY, USE, ANSWER, USE, ANSWER)),
    (
        "contents.2.parts.0",
        turns(SAY, USE, [{"functionResponse": {**ANSWER[0]["functionResponse"], "response": "x"}}]),
    ),
    ("contents.1", turns(SAY, USE, SAY)),
    ("contents.1", turns(SAY, USE, ANSWER * 2)),
    ("contents.0", turns(ANSWER)),
    ("contents.1", turns(SAY, [{"functionCall": USE[0]["functionCall"]}], ANSWER)),
    ("tools.0.functionDeclarations.0.name", declared({**TOOL, "name": "1"})),
    ("tools.0.functionDeclarations.1.name", declared(TOOL, TOOL)),
    ("tools.0.functionDeclarations.0.parametersJsonSchema", declared({**TOOL, "parametersJsonSchema": {}})),
]


@pytest.mark.parametrize(("place", "body"), BROKEN)
def test_the_validator_names_the_place_of_what_the_api_would_refuse(place: str, body: Json) -> None:
    with pytest.raises(WireError) as caught:
        validate(body)
    assert caught.value.place == place


@pytest.mark.parametrize(("place", "body"), BROKEN)
def test_the_server_refuses_what_the_validator_refuses(place: str, body: Json) -> None:
    assert refusal(body, "gemini-3-test") is not None
