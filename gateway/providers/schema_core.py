"""JSON schemas of any origin, brought to a small core that every vendor's dialect can be cut from. Pure.

The core has no references, no `allOf`, `oneOf` or `const`, and `type` is always a list. Keywords outside
it are left out. Whatever is done here only widens a schema, never narrows it: a model is told a little
less, and its arguments are validated against the original anyway.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from gateway.messages import Json

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
MAX_DEPTH = 24
MAX_NODES = 3_000  # one schema; beyond that whatever is left may be anything
MAX_NESTING = 2  # how often a reference is followed inside itself

_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
# Keywords that stand as they are once their value has the right type.
PLAIN: dict[str, Callable[[Any], bool]] = {
    "title": lambda value: isinstance(value, str),
    "description": lambda value: isinstance(value, str) and bool(value.strip()),
    "format": lambda value: isinstance(value, str),
    "pattern": lambda value: isinstance(value, str),
    "uniqueItems": lambda value: isinstance(value, bool),
    "default": lambda _: True,
    **dict.fromkeys(_NUMBERS, lambda value: is_number(value)),
    **dict.fromkeys(_COUNTS, lambda value: is_number(value) and value >= 0 and value == int(value)),
}


def core(schema: Any) -> Json:
    """The core of a schema, whatever was given."""
    return _Reader(schema).read(schema)


def is_number(value: Any) -> bool:
    """A JSON number: a boolean is none, and NaN and Infinity are not JSON."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def kind_of(value: Any) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list | tuple) else "object"


def fits(value: Any, types: Iterable[str]) -> bool:
    """Whether a value is of one of these types."""
    kind = kind_of(value)
    return kind in types or (kind == "integer" and "number" in types)


@dataclass(slots=True)
class _Reader:
    root: Any
    _nodes: int = 0
    _depth: int = 0
    _inside: list[str] = field(default_factory=list)  # references that are being followed

    def read(self, node: Any) -> Json:
        """The core of one node. `{}` (anything) for what is not a schema, is too deep or too much."""
        self._nodes += 1
        if not isinstance(node, dict) or self._depth >= MAX_DEPTH or self._nodes > MAX_NODES:
            return {}
        self._depth += 1
        try:
            return self._read(node)
        finally:
            self._depth -= 1

    def _read(self, node: Json) -> Json:
        out = {name: node[name] for name, right in PLAIN.items() if name in node and right(node[name])}
        _count_whole(out)
        _draft4(node, out)
        types = _types(node)
        values = _values(node)
        if values is not None:
            if types:
                values = [value for value in values if fits(value, types)]
            out["enum"] = values
        if types:
            out["type"] = types
        self._object(node, out)
        self._array(node, out)
        for part in self._parts(node):
            out = merged(out, part)
        return _flat_union(out)

    def _parts(self, node: Json) -> list[Json]:
        """What else holds at the same place: the reference, each of `allOf`, and the alternatives."""
        parts = []
        if isinstance(node.get("$ref"), str):
            parts.append(self._followed(node["$ref"]))
        parts += [self.read(branch) for branch in _list(node.get("allOf"))]
        for word in ("anyOf", "oneOf"):
            branches = _list(node.get(word))
            if branches:
                read = [self.read(branch) for branch in branches if branch is not False]
                parts.append({"anyOf": _different(read)} if read and all(read) else {})
        return parts

    def _followed(self, reference: str) -> Json:
        if self._inside.count(reference) >= MAX_NESTING:
            return {}
        target = _resolved(self.root, reference)
        if target is None:
            return {}
        self._inside.append(reference)
        try:
            return self.read(target)
        finally:
            self._inside.pop()

    def _object(self, node: Json, out: Json) -> None:
        properties = node.get("properties")
        if isinstance(properties, dict):
            impossible = {name for name, value in properties.items() if value is False}
            out["properties"] = {
                str(name): self.read(value) for name, value in properties.items() if name not in impossible
            }
        required = [name for name in _list(node.get("required")) if isinstance(name, str)]
        if required:
            out["required"] = list(dict.fromkeys(required))
        more = node.get("additionalProperties")
        if node.get("patternProperties"):
            return  # these allow what is not listed
        if more is False:
            out["additionalProperties"] = False
        elif isinstance(more, dict) and more:
            out["additionalProperties"] = self.read(more)

    def _array(self, node: Json, out: Json) -> None:
        items, prefix = node.get("items"), node.get("prefixItems")
        if isinstance(items, list):  # a tuple, as older drafts wrote it
            items, prefix = node.get("additionalItems"), items
        if isinstance(prefix, list) and prefix:
            kinds = [self.read(item) for item in prefix]
            if isinstance(items, dict):
                kinds.append(self.read(items))
            out["items"] = {"anyOf": _different(kinds)} if all(kinds) else {}
            if len(_different(kinds)) == 1:
                out["items"] = kinds[0]
        elif isinstance(items, dict):
            out["items"] = self.read(items)


def merged(one: Json, other: Json) -> Json:
    """What holds where both hold. Where they cannot be brought together, the first stands."""
    out = dict(one)
    for name, value in other.items():
        if name not in out:
            out[name] = value
        elif name == "type":
            out["type"] = _common_types(out["type"], value)
        elif name == "enum":
            known = {_spelled(item) for item in value}
            out["enum"] = [item for item in out["enum"] if _spelled(item) in known] or out["enum"]
        elif name == "properties":
            out["properties"] = {**out["properties"]}
            for key, shape in value.items():
                mine = out["properties"].get(key)
                out["properties"][key] = shape if mine is None else merged(mine, shape)
        elif name == "required":
            out["required"] = list(dict.fromkeys([*out["required"], *value]))
        elif name == "items" and isinstance(value, dict):
            out["items"] = merged(out["items"], value)
    return out


def _common_types(one: list[str], other: list[str]) -> list[str]:
    both = [kind for kind in one if kind in other or (kind == "integer" and "number" in other)]
    if "number" in one and "integer" in other and "integer" not in both:
        both.append("integer")
    return both or one


def _flat_union(out: Json) -> Json:
    """A union of constants is an enum; a union of one is that one."""
    branches = out.get("anyOf")
    if not branches:
        out.pop("anyOf", None)
        return out
    if all(
        set(branch) <= {"enum", "type", "description", "title"} and "enum" in branch for branch in branches
    ):
        rest = {name: value for name, value in out.items() if name != "anyOf"}
        values = [value for branch in branches for value in branch["enum"]]
        said = [branch.get("description") for branch in branches]
        if any(said) and "description" not in rest:
            rest["description"] = "; ".join(
                f"{_spelled(b['enum'][0])}: {b['description']}"
                for b in branches
                if b.get("description") and b["enum"]
            )
        return merged(rest, {"enum": _different(values), "type": _kinds(values)})
    if len(branches) == 1:
        return merged({name: value for name, value in out.items() if name != "anyOf"}, branches[0])
    return out


def _kinds(values: list[Any]) -> list[str]:
    return list(dict.fromkeys(kind_of(value) for value in values))


def _types(node: Json) -> list[str]:
    """The types that a node names, in lower case; `nullable` is how OpenAPI says null."""
    said = node.get("type")
    names = [said] if isinstance(said, str) else _list(said)
    types = [name.lower() for name in names if isinstance(name, str) and name.lower() in TYPES]
    if types and node.get("nullable") is True:
        types.append("null")
    return list(dict.fromkeys(types))


def _values(node: Json) -> list[Any] | None:
    if "const" in node:
        return [node["const"]]
    values = node.get("enum")
    return _different(values) if isinstance(values, list) and values else None


def _draft4(node: Json, out: Json) -> None:
    """`exclusiveMinimum: true` beside a minimum, as draft 4 had it."""
    for word, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if node.get(word) is True and bound in out:
            out[word] = out.pop(bound)


def _count_whole(out: Json) -> None:
    for name in _COUNTS:
        if name in out:
            out[name] = int(out[name])
    if out.get("multipleOf", 1) <= 0:
        del out["multipleOf"]


def _resolved(root: Any, reference: str) -> Any:
    """The node behind a reference into the schema itself; None for all others."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    node = root
    for step in reference[2:].split("/"):
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and name.isdecimal() and int(name) < len(node):
            node = node[int(name)]
        elif isinstance(node, dict) and name in node:
            node = node[name]
        else:
            return None
    return node


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _different(values: list[Any]) -> list[Any]:
    return list({_spelled(value): value for value in values}.values())


def _spelled(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
