"""Which tool schemas each vendor takes, as far as they document it or their errors tell. Written apart
from the code that makes schemas acceptable.

`objection(schema, dialect)` is None for one that is taken, else what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema_rs

Json = dict[str, Any]
KEY = re.compile(r"^[a-zA-Z0-9_.-]{1,64}$")
ONE_TYPE = {"string", "number", "integer", "boolean", "object", "array", "null"}
MFJS = {
    "type",
    "description",
    "default",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
}
OPENAPI = {
    *("type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties"),
    *("required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "anyOf", "items"),
    *("minimum", "maximum"),
}
GEMINI = {
    *(
        "type",
        "format",
        "title",
        "description",
        "enum",
        "items",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
    ),
    *("anyOf", "properties", "additionalProperties", "required", "default"),
}


class Objection(Exception):
    """What a vendor says about a schema."""


def objection(schema: Any, dialect: str) -> str | None:
    """Why the vendor refuses this schema of a tool's arguments, or None."""
    try:
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise Objection("schema must be a JSON Schema of 'type: \"object\"'")
        banned = {"oneOf", "anyOf", "allOf", "enum", "not"} & set(schema)
        if banned:
            raise Objection(f"schema must not have {sorted(banned)} at the top level")
        if not isinstance(schema.get("properties"), dict):
            raise Objection("object schema missing properties")
        for place, node in nodes(schema, "root"):
            _common(place, node)
            JUDGES[dialect](place, node)
        if dialect == "anthropic":
            for key in schema["properties"]:
                if not KEY.match(key):
                    raise Objection(f"Property keys should match pattern '{KEY.pattern}': {key!r}")
    except Objection as said:
        return str(said)
    return None


def nodes(node: Any, place: str) -> Iterator[tuple[str, Json]]:
    """Every schema inside a schema, itself first."""
    if node is True or node is False:
        raise Objection(f"{place}: a boolean is no schema")
    if not isinstance(node, dict):
        raise Objection(f"{place}: not a schema")
    yield place, node
    for key, value in node.get("properties", {}).items():
        yield from nodes(value, f"{place}.properties.{key}")
    for number, branch in enumerate(node.get("anyOf", [])):
        yield from nodes(branch, f"{place}.anyOf.{number}")
    if "items" in node:
        yield from nodes(node["items"], f"{place}.items")
    more = node.get("additionalProperties")
    if more is not None and not isinstance(more, bool):
        yield from nodes(more, f"{place}.additionalProperties")


def _common(place: str, node: Json) -> None:
    if not jsonschema_rs.meta.is_valid(node):
        raise Objection(f"{place}: not a JSON Schema of draft 2020-12")
    for word in ("$ref", "$defs", "$schema", "allOf", "oneOf", "const", "not", "if", "definitions", "$id"):
        if word in node:
            raise Objection(f"{place}: {word!r} is not permitted")
    types = node.get("type", [])
    if ("array" in types if isinstance(types, list) else types == "array") and "items" not in node:
        raise Objection(f"{place}: array schema missing items")
    for name in node.get("required", []):
        if name not in node.get("properties", {}):
            raise Objection(f"{place}.required: property {name!r} is not defined")
    if "enum" in node and not 0 < len(node["enum"]) <= 500:
        raise Objection(f"{place}.enum: has no values or too many")
    if node.get("anyOf") == []:
        raise Objection(f"{place}.anyOf: is empty")


def _anything(place: str, node: Json) -> None:
    """Nothing beside the common rules."""


def _kimi(place: str, node: Json) -> None:
    _known(place, node, MFJS)
    _alone(place, node, MFJS - {"description", "default", "anyOf"})
    values = node.get("enum", [])
    if any(isinstance(v, bool) or not isinstance(v, int | float | str) for v in values):
        raise Objection(f"{place}.enum: only float, int and str")
    kinds = {str if isinstance(value, str) else float for value in values}
    if len(kinds) > 1:
        raise Objection(f"{place}.enum: mixed types")


def _gemini_openapi(place: str, node: Json) -> None:
    _known(place, node, OPENAPI)
    _alone(place, node, OPENAPI - {"description", "title", "anyOf", "nullable"})
    if any(not isinstance(value, str) for value in node.get("enum", [])):
        raise Objection(f"{place}.enum: only allowed for STRING type")
    if node.get("type") == "null":
        raise Objection(f"{place}.type: Invalid value")
    if node.get("format", "date-time") not in ("date-time", "float", "double", "int32", "int64", "enum"):
        raise Objection(f"{place}.format: only 'enum' and 'date-time' are supported for STRING type")


def _gemini(place: str, node: Json) -> None:
    unknown = set(node) - GEMINI
    if unknown:
        raise Objection(f"{place}: Unknown name {sorted(unknown)}")
    if any(isinstance(v, bool) or not isinstance(v, int | float | str) for v in node.get("enum", [])):
        raise Objection(f"{place}.enum: strings and numbers only")


def _known(place: str, node: Json, words: set[str]) -> None:
    unknown = set(node) - words
    if unknown:
        raise Objection(f"At path '{place}': Unknown name {sorted(unknown)}")
    if "type" not in node and "anyOf" not in node:
        raise Objection(f"At path '{place}': type is not defined")
    if "type" in node and node["type"] not in ONE_TYPE:
        raise Objection(f"At path '{place}': type must be one of {sorted(ONE_TYPE)}")


def _alone(place: str, node: Json, not_beside: set[str]) -> None:
    if "anyOf" in node and not_beside & set(node):
        raise Objection(
            f"At path '{place}': when using anyOf, type should be defined in anyOf items "
            "instead of the parent schema"
        )


JUDGES: dict[str, Callable[[str, Json], None]] = {
    "anthropic": _anything,
    "openai": _anything,
    "deepseek": _anything,
    "glm": _anything,
    "kimi": _kimi,
    "gemini": _gemini,
    "gemini_openapi": _gemini_openapi,
}
