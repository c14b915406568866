"""Schemas of any origin, in each vendor's dialect: always taken, and never narrower than they were."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.messages import Json
from gateway.providers.schema_core import MAX_NODES
from gateway.providers.schemas import DIALECTS, MAX_ENUM, DialectName, normalised
from gateway.tools.base import CallContext, Tool
from tests.platforms.schema_judge import objection

C064: Json = {
    "$schema": "x",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "m": {"anyOf": [{"const": "a"}, {"const": "b"}]},
        "t": {"type": ["string", "null"], "default": None},
        "n": {"type": "number", "exclusiveMinimum": 0},
        "const": {"type": "string"},
    },
}
NAMES = list(DIALECTS)


def taken(schema: Any, dialect: DialectName) -> Json:
    wired = normalised(schema, dialect)
    assert objection(wired, dialect) is None, wired
    return wired


def of(shape: Any, dialect: DialectName) -> Any:
    """One argument's schema in the dialect."""
    return taken({"type": "object", "properties": {"a": shape}}, dialect)["properties"]["a"]


@pytest.mark.parametrize("dialect", NAMES)
def test_c064_a_server_s_schema_is_taken_by_every_vendor(dialect: DialectName) -> None:
    shapes = taken(C064, dialect)["properties"]
    assert shapes["m"] == {"type": "string", "enum": ["a", "b"]}
    assert shapes["const"] == {"type": "string"}
    assert list(shapes) == ["m", "t", "n", "const"]
    assert "exclusiveMinimum" in json.dumps(shapes["n"])


def test_c064_arguments_are_validated_against_the_original() -> None:
    async def run(args: Json, context: CallContext) -> str:
        return ""

    tool = Tool(name="t", description="", input_schema={**C064, "$schema": "x"}, handler=run)
    for dialect in NAMES:
        taken(tool.input_schema, dialect)
    assert tool.problems({"m": "a", "t": None, "n": 1, "const": "c"}) == []
    for wrong in ({"m": "c"}, {"n": 0}, {"other": 1}, {"t": 3}):
        assert len(tool.problems(wrong)) == 1


def test_c064_gemini_s_parameters_say_null_by_a_flag() -> None:
    shapes = taken(C064, "gemini_openapi")["properties"]
    assert shapes["t"] == {"type": "string", "nullable": True}
    assert shapes["n"] == {"type": "number", "description": "(exclusiveMinimum: 0)"}
    assert of({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "gemini_openapi") == {
        "type": "integer",
        "nullable": True,
    }


def test_kimi_has_types_inside_a_union_and_never_beside_it() -> None:
    assert of({"type": ["string", "array"], "items": {"type": "string"}, "description": "d"}, "kimi") == {
        "description": "d",
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    }
    beside = {"type": "object", "properties": {"x": {"type": "string"}}, "anyOf": [{"required": ["x"]}, {}]}
    assert of(beside, "kimi")["type"] == "object"  # one of them allows anything
    either = {**beside, "anyOf": [{"required": ["x"]}, {"required": ["y"]}]}
    assert [sorted(b["properties"]) for b in of(either, "kimi")["anyOf"]] == [["x"], ["x", "y"]]


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("schema", [True, False, None, [], "x", 3, {}, {"type": "string"}, {"type": "array"}])
def test_what_describes_no_object_becomes_one_without_arguments(schema: Any, dialect: DialectName) -> None:
    assert taken(schema, dialect) == {"type": "object", "properties": {}}


@pytest.mark.parametrize("dialect", NAMES)
def test_alternatives_at_the_top_are_laid_over_one_another(dialect: DialectName) -> None:
    schema = {
        "type": "object",
        "oneOf": [
            {"properties": {"id": {"type": "string"}, "n": {"type": "integer"}}, "required": ["id", "n"]},
            {"properties": {"name": {"type": "string"}, "n": {"type": "string"}}, "required": ["name", "n"]},
        ],
    }
    wired = taken(schema, dialect)
    assert list(wired["properties"]) == ["id", "n", "name"]
    assert wired["required"] == ["n"]
    assert "id + n | name + n" in wired["description"]


@pytest.mark.parametrize("dialect", NAMES)
def test_references_are_followed_and_a_circle_ends(dialect: DialectName) -> None:
    node = {"type": "object", "properties": {"v": {"type": "string"}, "next": {"$ref": "#/$defs/n"}}}
    schema = {
        "type": "object",
        "properties": {
            "first": {"$ref": "#/$defs/n", "description": "here"},
            "self": {"$ref": "#"},
            "gone": {"$ref": "#/$defs/none"},
            "far": {"$ref": "https://example.com/schema.json"},
            "slash": {"$ref": "#/$defs/a~1b%20c"},
        },
        "$defs": {"n": node, "a/b c": {"type": "integer"}},
    }
    shapes = taken(schema, dialect)["properties"]
    assert shapes["first"]["description"] == "here"
    assert shapes["first"]["properties"]["next"]["properties"]["v"] == {"type": "string"}
    assert shapes["slash"] == {"type": "integer"}
    assert json.dumps(shapes["first"]).count('"next"') == 2


@pytest.mark.parametrize("dialect", NAMES)
def test_references_that_would_multiply_without_end_stay_within_bounds(dialect: DialectName) -> None:
    schema: Json = {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {}}
    for number in range(12):
        inner = {"$ref": f"#/$defs/d{number + 1}"}
        schema["$defs"][f"d{number}"] = {"type": "object", "properties": dict.fromkeys("abcdefgh", inner)}
    schema["$defs"]["d12"] = {"type": "string"}
    assert len(json.dumps(taken(schema, dialect))) < MAX_NODES * 200


@pytest.mark.parametrize("dialect", NAMES)
def test_a_list_of_very_many_values_becomes_words(dialect: DialectName) -> None:
    shape = of({"type": "string", "enum": [f"v{n}" for n in range(MAX_ENUM + 1)]}, dialect)
    assert "enum" not in shape
    assert f"one of {MAX_ENUM + 1} values" in shape["description"]


def test_all_of_is_one_schema_and_older_drafts_are_read() -> None:
    both = {"allOf": [{"type": "object", "properties": {"x": {"type": "string"}}}, {"required": ["x"]}]}
    assert of(both, "openai") == {
        "type": "object",
        "properties": {"x": {"type": "string"}},
        "required": ["x"],
    }
    assert of({"type": "number", "minimum": 1, "exclusiveMinimum": True}, "openai") == {
        "type": "number",
        "exclusiveMinimum": 1,
    }
    pair = {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}
    assert of(pair, "glm") == {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}
    assert of({"items": {"type": "string"}}, "openai") == {"items": {"type": "string"}}
    assert of({"type": "array"}, "openai") == {"type": "array", "items": {}}


def test_an_object_whose_keys_follow_a_pattern_is_not_closed() -> None:
    shape = {"type": "object", "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False}
    for dialect in NAMES:
        assert "additionalProperties" not in of(shape, dialect)


def test_values_that_a_dialect_cannot_list_are_told_in_words() -> None:
    assert of({"enum": [1, "a", None]}, "kimi") == {
        "anyOf": [{"type": "integer", "enum": [1]}, {"type": "string", "enum": ["a"]}, {"type": "null"}]
    }
    assert of({"type": "integer", "enum": [1, 2]}, "gemini_openapi") == {
        "type": "integer",
        "description": "(one of: 1, 2)",
    }
    assert of({"type": "string", "format": "email", "title": "T"}, "kimi") == {
        "type": "string",
        "description": '(format: "email")',
    }


def test_arguments_that_anthropic_cannot_name_are_told_in_the_description() -> None:
    schema = {
        "type": "object",
        "properties": {"filter[x]": {"type": "string"}, "ok": {"type": "string"}},
        "required": ["filter[x]", "ok"],
        "additionalProperties": False,
    }
    wired = taken(schema, "anthropic")
    assert (list(wired["properties"]), wired["required"]) == (["ok"], ["ok"])
    assert "additionalProperties" not in wired
    assert '"filter[x]": {"type": "string"}' in wired["description"]
    assert taken(schema, "openai")["required"] == ["filter[x]", "ok"]


def test_the_same_schema_gives_the_same_bytes_and_is_made_once() -> None:
    assert normalised(C064, "kimi") is normalised(C064, "kimi")
    again = json.loads(json.dumps(C064))
    assert json.dumps(normalised(again, "kimi")) == json.dumps(normalised(C064, "kimi"))


# ---- any schema at all

KEYS = st.sampled_from(["a", "b", "x1", "const", "filter[x]", "$ref"])
VALUES = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(["a", "b", 1.5, [], {}]))
TYPE = st.sampled_from(["string", "number", "integer", "boolean", "object", "array", "null"])
REFS = st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/none", "https://x/y", "other"])


def nodes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(TYPE, st.lists(TYPE, min_size=1, max_size=3, unique=True)),
            "properties": st.dictionaries(KEYS, inner, max_size=3),
            "required": st.lists(KEYS, max_size=2, unique=True),
            "additionalProperties": st.one_of(st.booleans(), inner),
            "patternProperties": st.dictionaries(st.just("^x"), inner, max_size=1),
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "enum": st.lists(VALUES, min_size=1, max_size=4, unique_by=repr),
            "const": VALUES,
            "default": VALUES,
            "$ref": REFS,
            "description": st.sampled_from(["", "words"]),
            "format": st.sampled_from(["email", "date-time"]),
            "pattern": st.just("^a"),
            "minLength": st.integers(0, 2),
            "minimum": st.integers(0, 2),
            "multipleOf": st.sampled_from([1, 0.5]),
            "maxItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "title": st.just("T"),
        },
    )


SCHEMAS = st.recursive(st.booleans() | nodes(st.booleans()), nodes, max_leaves=8)
WHOLE = st.builds(
    lambda schema, a, b: {**schema, "$defs": {"a": a, "b": b}} if isinstance(schema, dict) else schema,
    SCHEMAS,
    SCHEMAS,
    SCHEMAS,
)


@settings(max_examples=300, deadline=None)
@given(WHOLE)
def test_every_schema_becomes_one_that_every_vendor_takes(schema: Any) -> None:
    for dialect in NAMES:
        taken(schema, dialect)


JUNK = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2), max_leaves=6
)
WORDS = [
    *("type", "properties", "required", "items", "enum", "anyOf", "allOf", "$ref", "minimum", "minLength"),
    *("description", "default", "additionalProperties", "prefixItems", "nullable", "multipleOf", "pattern"),
]


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(WORDS), st.one_of(JUNK, st.dictionaries(KEYS, JUNK)), max_size=6))
def test_what_is_no_schema_at_all_harms_nothing(junk: Json) -> None:
    for dialect in NAMES:
        taken(junk, dialect)
        taken({"type": "object", "properties": {"a": junk}}, dialect)


INSTANCES = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=5
)
# Tuples are the exception: what may follow them is told as if it were like them.
PLAIN = st.recursive(nodes(st.booleans()), nodes, max_leaves=4).filter(
    lambda schema: "prefixItems" not in json.dumps(schema)
)


@settings(max_examples=400, deadline=None)
@given(PLAIN, INSTANCES)
def test_what_the_original_takes_the_wire_s_schema_takes_too(shape: Json, value: Any) -> None:
    original = {"type": "object", "properties": {"v": shape}, "required": ["v"]}
    try:
        validator = jsonschema_rs.Draft202012Validator(original)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
        return
    if not validator.is_valid({"v": value}):
        return
    for dialect in ("openai", "deepseek", "glm", "gemini"):
        wired = normalised(original, dialect)
        assert jsonschema_rs.Draft202012Validator(wired).is_valid({"v": value}), wired
