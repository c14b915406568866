"""Tool schemas as each vendor takes them. Pure.

    normalised(tool.input_schema, "kimi")

Schemas come from functions, from people and from tool servers, in any draft and any style; one that a
vendor does not take would make every request of the session fail. So each is reduced to a small core
(`schema_core`) and written anew in the vendor's dialect. Limits that a dialect has no word for are
told in the description. Arguments are validated against the original schema (`gateway.tools.base`), so
nothing here decides what may run.

The result depends on nothing but the schema: the prompt cache holds.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Literal

from gateway.messages import Json
from gateway.providers.schema_core import PLAIN, core, fits, kind_of, merged

DialectName = Literal["anthropic", "openai", "deepseek", "kimi", "glm", "gemini", "gemini_openapi"]
MAX_ENUM = 250  # values; OpenAI counts them over the whole request, and a model reads them all
_EXAMPLES = 20  # of a longer enum, in its description


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a vendor's schemas may hold.

    keywords: those of `schema_core.PLAIN` that it knows. type_lists: `type` may be a list.
    lone_unions: nothing that is checked stands beside `anyOf`. typed: every node says what it is.
    nullable: null is a flag, not a type. enums: which types of values can be listed, of one type
    at a time; None: any. additional: `additionalProperties` exists. formats: None: any.
    keys: what the arguments of a tool may be called.
    """

    keywords: frozenset[str] = frozenset(PLAIN)
    type_lists: bool = True
    lone_unions: bool = False
    typed: bool = False
    nullable: bool = False
    enums: frozenset[str] | None = None
    additional: bool = True
    formats: frozenset[str] | None = None
    keys: re.Pattern[str] | None = None


DIALECTS: dict[DialectName, Dialect] = {
    # JSON Schema 2020-12, an object without alternatives at the top; keys of arguments have a pattern.
    "anthropic": Dialect(keys=re.compile(r"[a-zA-Z0-9_.-]{1,64}")),
    # An object without alternatives at the top that lists its properties; arrays say what is in them.
    "openai": Dialect(),
    "deepseek": Dialect(),
    "glm": Dialect(),
    # Moonshot Flavored JSON Schema: MoonshotAI/walle, docs/mfjs-spec.md.
    "kimi": Dialect(
        keywords=frozenset({"description", "default"}),
        type_lists=False,
        lone_unions=True,
        typed=True,
        enums=frozenset({"string", "integer", "number"}),
    ),
    # What `parametersJsonSchema` is documented to hold.
    "gemini": Dialect(
        keywords=frozenset(
            {"title", "description", "format", "minimum", "maximum", "minItems", "maxItems", "default"}
        ),
        enums=frozenset({"string", "integer", "number"}),
    ),
    # The `Schema` object of the Gemini API, a part of OpenAPI 3.0: for `parameters`, and for Gemini's
    # endpoint that is compatible with OpenAI's.
    "gemini_openapi": Dialect(
        keywords=frozenset(PLAIN)
        - {"default", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems"},
        type_lists=False,
        lone_unions=True,
        typed=True,
        nullable=True,
        enums=frozenset({"string"}),
        additional=False,
        formats=frozenset({"date-time", "float", "double", "int32", "int64"}),
    ),
}

# Which keywords speak of which type.
_OF_TYPE = {
    "string": {"minLength", "maxLength", "pattern", "format"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"},
    "array": {"items", "minItems", "maxItems", "uniqueItems"},
    "object": {"properties", "required", "additionalProperties", "minProperties", "maxProperties"},
}
_BOUND = set().union(*_OF_TYPE.values())
_SAYING = ("title", "description", "default")  # may stand beside a union
_ANY = ("string", "number", "boolean", "object", "array")

_KEEP = 1024
_made: OrderedDict[tuple[int, DialectName], tuple[Json, Json]] = OrderedDict()


def normalised(schema: Json, dialect: DialectName) -> Json:
    """The schema of a tool's arguments, as this vendor takes it: always of an object. Only to be read.

    In `gemini_openapi` an object must have properties: a tool without arguments goes without a schema.
    """
    # By identity: a schema is never changed. The entry holds it, so its id stays its own.
    place = (id(schema), dialect)
    entry = _made.get(place)
    if entry is None or entry[0] is not schema:
        entry = (schema, _Writer(DIALECTS[dialect]).top(core(schema)))
        _made[place] = entry
        if len(_made) > _KEEP:
            _made.popitem(last=False)
    return entry[1]


@dataclass(frozen=True, slots=True)
class _Writer:
    dialect: Dialect

    def top(self, node: Json) -> Json:
        """The whole: an object, its alternatives laid over one another."""
        whole = _as_object(node)
        hidden = self._hidden(whole)
        out = self._single(whole, "object")
        out.setdefault("properties", {})
        if hidden:
            out.pop("additionalProperties", None)
            shapes = ", ".join(f"{_json(name)}: {_json(self.write(shape))}" for name, shape in hidden.items())
            _say(out, f"Further arguments: {shapes}")
        return out

    def write(self, node: Json) -> Json:
        """One node in the dialect."""
        if "anyOf" in node:
            return self._union(node, [merged(_limits(node), branch) for branch in node["anyOf"]])
        types = list(node.get("type") or self._guessed(node))
        if self.dialect.nullable and "null" in types:
            return {
                **self.write({**node, "type": [t for t in types if t != "null"] or ["string"]}),
                "nullable": True,
            }
        if len(types) > 1 and not self.dialect.type_lists:
            rest = {name: value for name, value in node.items() if name not in _SAYING}
            return self._union(node, [{**rest, "type": [kind]} for kind in types])
        return self._single(node, *types)

    def _union(self, node: Json, branches: list[Json]) -> Json:
        if not self.dialect.lone_unions:
            beside = self._single({k: v for k, v in node.items() if k != "anyOf"}, *node.get("type", []))
            return {**beside, "anyOf": [self.write(branch) for branch in node["anyOf"]]}
        nullable = self.dialect.nullable and any(branch.get("type") == ["null"] for branch in branches)
        if nullable:
            branches = [branch for branch in branches if branch.get("type") != ["null"]]
        written = [self.write(branch) for branch in branches]
        nullable = nullable or any(branch.pop("nullable", False) for branch in written)
        flat = [inner for branch in written for inner in self._flattened(branch)]
        out = self._plain({name: node[name] for name in _SAYING if name in node}, ())
        different = list({_json(branch): branch for branch in flat}.values())
        if len(different) == 1:
            out = {**different[0], **out}
        elif different:
            out["anyOf"] = different
        if nullable:
            out["nullable"] = True
        return out

    def _flattened(self, branch: Json) -> list[Json]:
        return branch["anyOf"] if set(branch) == {"anyOf"} else [branch]

    def _single(self, node: Json, *types: str) -> Json:
        """A node of these types, or of unknown type."""
        out = self._plain(node, types)
        if types:
            out["type"] = types[0] if len(types) == 1 else list(types)
        self._enum(node, types, out)
        if "object" in types or not types:
            self._object(node, out)
        if "items" in node and ("array" in types or not types):
            out["items"] = self.write(node["items"])
        elif "array" in types:
            out["items"] = {"anyOf": [{"type": kind} for kind in _ANY[:-1]]} if self.dialect.typed else {}
        return out

    def _object(self, node: Json, out: Json) -> None:
        properties = dict(node.get("properties", {}))
        required = node.get("required", [])
        for name in required:
            properties.setdefault(name, {})
        if properties or "properties" in node:
            out["properties"] = {name: self.write(shape) for name, shape in properties.items()}
        if required:
            out["required"] = list(required)
        more = node.get("additionalProperties")
        if more is not None and self.dialect.additional:
            out["additionalProperties"] = more if isinstance(more, bool) else self.write(more)

    def _plain(self, node: Json, types: tuple[str, ...]) -> Json:
        """The keywords without schemas in them; those that the dialect lacks become words."""
        out: Json = {}
        unsaid = []
        for name, value in node.items():
            if name not in PLAIN or (
                types and name in _BOUND and not any(name in _OF_TYPE.get(t, ()) for t in types)
            ):
                continue
            if name == "default" and types and not fits(value, types):
                continue
            if name in self.dialect.keywords and (name != "format" or self._formats(value)):
                out[name] = value
            elif name not in ("title", "uniqueItems"):
                unsaid.append(f"{name}: {_json(value)}")
        if unsaid:
            _say(out, ", ".join(unsaid))
        return out

    def _formats(self, value: str) -> bool:
        return self.dialect.formats is None or value in self.dialect.formats

    def _enum(self, node: Json, types: tuple[str, ...], out: Json) -> None:
        values = [v for v in node.get("enum", []) if not types or fits(v, types)]
        if not values:
            return
        listed = self.dialect.enums
        if len(values) > MAX_ENUM:
            shown = ", ".join(map(_json, values[:_EXAMPLES]))
            _say(out, f"one of {len(values)} values, for example {shown}")
        elif listed is None or all(kind_of(value) in listed for value in values):
            out["enum"] = values
        elif types != ("null",):
            _say(out, "one of: " + ", ".join(map(_json, values)))

    def _guessed(self, node: Json) -> list[str]:
        """The types of a node that names none; none where the dialect can leave it open."""
        if "enum" in node and not self.dialect.type_lists:
            return list(dict.fromkeys(kind_of(value) for value in node["enum"]))
        if not self.dialect.typed:
            return []
        for kind in ("object", "array", "string", "number"):
            if any(name in node for name in _OF_TYPE[kind] - {"format"}):
                return [kind]
        return ["string"] if "format" in node else list(_ANY)

    def _hidden(self, whole: Json) -> Json:
        """Takes out what the vendor does not let arguments be called; a description can still say it."""
        keys = self.dialect.keys
        if keys is None:
            return {}
        properties = whole.get("properties", {})
        hidden = {name: shape for name, shape in properties.items() if not keys.fullmatch(name)}
        if hidden:
            whole["properties"] = {name: shape for name, shape in properties.items() if name not in hidden}
        whole["required"] = [name for name in whole.get("required", []) if keys.fullmatch(name)]
        return hidden


def _limits(node: Json) -> Json:
    return {name: value for name, value in node.items() if name != "anyOf" and name not in _SAYING}


def _as_object(node: Json) -> Json:
    """A core that describes an object and has no alternatives: those that were there laid over one
    another, with a word on which of them go together."""
    types = node.get("type")
    if types and "object" not in types:
        return {"properties": {}}
    kept = ("title", "description", *_OF_TYPE["object"])
    whole = {name: value for name, value in node.items() if name in kept}
    objects = [
        merged({n: v for n, v in whole.items() if n in _OF_TYPE["object"]}, branch)
        for branch in node.get("anyOf", [])
        if "object" in branch.get("type", ["object"]) and "anyOf" not in branch
    ]
    if not objects:
        return whole
    shapes: dict[str, list[Json]] = {}
    for branch in objects:
        for name, shape in branch.get("properties", {}).items():
            shapes.setdefault(name, []).append(shape)
    whole["properties"] = {name: _either(found) for name, found in shapes.items()}
    sets = [branch.get("required", []) for branch in objects]
    whole["required"] = [name for name in sets[0] if all(name in names for names in sets)]
    if not all(branch.get("additionalProperties") is False for branch in objects):
        whole.pop("additionalProperties", None)
    choices = list(dict.fromkeys(" + ".join(names) for names in sets if names))
    if len(choices) > 1:
        _say(whole, "one of these sets of arguments: " + " | ".join(choices))
    return whole


def _either(shapes: list[Json]) -> Json:
    different = list({_json(shape): shape for shape in shapes}.values())
    if len(different) == 1:
        return different[0]
    return {"anyOf": different} if all(different) else {}


def _say(out: Json, words: str) -> None:
    said = out.get("description", "")
    out["description"] = f"{said} ({words})" if said else f"({words})"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
