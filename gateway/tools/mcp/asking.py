"""A server's question to a person (elicitation, form mode) as one of ours, and the answer back. Pure.

A form is a flat object of plain fields. One field becomes one question, several become several questions
that are answered together, none becomes a yes or no. What our questions cannot check (a least and a most,
a length, a pattern) is checked when the answer comes back; a wrong one is asked for again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gateway.answer_values import AnswerKind
from gateway.messages import Json
from gateway.questions import Option, Question, unpack_answers
from gateway.tools.base import Said, schema_problems

LEFT_OUT: Final = "(leave out)"
ACCEPT, DECLINE = "accept", "decline"
MOST_FIELDS, MOST_CHOICES = 20, 500
LONGEST_MESSAGE, LONGEST_STATE = 3_000, 16_000  # characters
_KINDS: Final[Mapping[str, AnswerKind]] = {"number": "number", "integer": "integer", "boolean": "boolean"}
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}", re.ASCII)


class Unanswerable(ValueError):
    """A form that no person could be shown, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a server asks: `schema` describes an object of plain values."""

    server: str
    message: str
    schema: Json

    @property
    def digest(self) -> str:
        """The same for the same question, whenever it is asked."""
        plain = json.dumps([self.message, self.schema], sort_keys=True, default=str)
        return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class AskedKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which question of a call it is, as the key that the answer comes back under. `nth`: of those that are
    alike in this call, from 0. `attempt`: how often it was answered with what does not fit. `request`,
    `state`, `schema`: how the call goes on where it stopped, for servers that can do that."""

    digest: str
    nth: int = 0
    attempt: int = 0
    request: str = ""
    state: str | None = None
    schema: Json | None = None

    def text(self) -> str:
        return msgspec.json.encode(self).decode()


def read_keys(said: Mapping[str, Said]) -> list[tuple[AskedKey, Said]]:
    """The answers to what earlier runs of a call have asked, oldest first."""
    found = []
    for key, answer in said.items():
        try:
            found.append((msgspec.json.decode(key, type=AskedKey), answer))
        except (msgspec.DecodeError, msgspec.ValidationError):
            continue  # another kind of question
    return found


# ---- a form as a question


def to_question(form: Form, fault: str = "") -> Question:
    """What a person is asked. `fault`: what was wrong with the answer before. Raises Unanswerable."""
    fields = _fields(form.schema)
    said = form.message.strip()[:LONGEST_MESSAGE] or "needs an answer"
    text = f"{form.server} asks: {said}"
    if fault:
        text = f"{text}\n(The last answer did not fit. {fault})"
    if not fields:
        options = (Option(label="Yes", value=ACCEPT), Option(label="No", value=DECLINE))
        return Question(text=text, options=options, allow_text=False)
    required = _required(form.schema)
    parts = [
        _part(name, label, fields[name], needed=name in required) for name, label in _labels(fields).items()
    ]
    if len(parts) == 1:
        (only,) = parts
        return msgspec.structs.replace(only, text=f"{text}\n{only.text}", name="")
    return Question(text=text, allow_text=False, parts=tuple(parts))


def _fields(schema: Json) -> dict[str, Json]:
    fields = schema.get("properties") or {}
    if not isinstance(fields, dict) or not all(isinstance(field, dict) for field in fields.values()):
        raise Unanswerable("its form is not an object of fields")
    if len(fields) > MOST_FIELDS:
        raise Unanswerable(f"its form has {len(fields)} fields, more than {MOST_FIELDS}")
    return fields


def _required(schema: Json) -> set[str]:
    required = schema.get("required")
    return {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()


def _labels(fields: Mapping[str, Json]) -> dict[str, str]:
    """Field -> the name that people answer it under: its own wherever that can be typed."""
    labels: dict[str, str] = {}
    taken: set[str] = set()
    for place, name in enumerate(fields, start=1):
        label = name if _NAME.fullmatch(name) and name.casefold() not in taken else f"field{place}"
        taken.add(label.casefold())
        labels[name] = label
    return labels


def _part(name: str, label: str, field: Json, *, needed: bool) -> Question:
    text = _text(name, field)
    kind = field.get("type")
    if kind == "array":
        return _several(name, label, text, field, needed=needed)
    if (choices := _choices(field)) is not None:
        options = _with_default(choices, field.get("default"))
        return _question(label, text, [*options, *_skip(needed)], allow_text=False)
    if kind == "boolean":
        return _yes_or_no(label, text, field, needed=needed)
    if kind not in ("string", "number", "integer"):
        raise Unanswerable(f"its field {name!r} is of the type {kind!r}")
    suggested = [] if (default := field.get("default")) is None else [_suggested(default)]
    return Question(
        text=text,
        name=label,
        kind="date" if field.get("format") == "date" else _KINDS.get(kind, "text"),
        options=tuple([*suggested, *_skip(needed)]),
    )


def _question(label: str, text: str, options: Sequence[Option], *, allow_text: bool) -> Question:
    return Question(text=text, name=label, options=tuple(options), allow_text=allow_text)


def _text(name: str, field: Json) -> str:
    title, description = str(field.get("title") or name), str(field.get("description") or "")
    text = f"{title}: {description}" if description and description != title else title
    least, most = field.get("minimum"), field.get("maximum")
    if least is not None and most is not None:
        text = f"{text} ({least} to {most})"
    elif least is not None or most is not None:
        text = f"{text} ({'at least' if most is None else 'at most'} {most if least is None else least})"
    return text[:500]


def _suggested(default: Any) -> Option:
    text = default if isinstance(default, str) else json.dumps(default)
    return Option(label=text, description="what it takes by itself")


def _yes_or_no(label: str, text: str, field: Json, *, needed: bool) -> Question:
    if needed and "default" not in field:
        return Question(text=text, name=label, kind="boolean")
    default = field.get("default")
    options = [Option(label="Yes", value="true"), Option(label="No", value="false")]
    return _question(
        label,
        text,
        [*_with_default(options, None if default is None else json.dumps(default)), *_skip(needed)],
        allow_text=False,
    )


def _several(name: str, label: str, text: str, field: Json, *, needed: bool) -> Question:
    items = field.get("items")
    choices = _choices(items) if isinstance(items, dict) else None
    if choices is None:
        raise Unanswerable(f"its field {name!r} is a list of free values")
    least, most = field.get("minItems"), field.get("maxItems")
    return Question(
        text=text,
        name=label,
        options=tuple(choices),
        multi=True,
        allow_text=False,
        min=least if isinstance(least, int) and least > 0 else int(needed and least is None),
        max=most if isinstance(most, int) and most > 0 else None,
    )


def _choices(field: Json) -> list[Option] | None:
    """The values that a field is limited to, in any of the spellings that the protocol has had."""
    names = field.get("enumNames")
    if isinstance(field.get("enum"), list):
        values = [str(value) for value in field["enum"]]
        titles = [str(title) for title in names] if isinstance(names, list) else values
        pairs = list(zip(values, titles, strict=False))
    else:
        entries = field.get("oneOf") or field.get("anyOf")
        if not isinstance(entries, list) or not all(isinstance(e, dict) and "const" in e for e in entries):
            return None
        pairs = [(str(entry["const"]), str(entry.get("title") or entry["const"])) for entry in entries]
    pairs = [(value, title if title.strip() else value) for value, title in pairs if value.strip()]
    if not pairs or len(pairs) > MOST_CHOICES:
        raise Unanswerable(f"a field has {len(pairs)} choices")
    unique = dict(pairs)
    return [
        Option(label=title) if title == value else Option(label=title, value=value)
        for value, title in unique.items()
    ]


def _with_default(options: Sequence[Option], default: Any) -> list[Option]:
    return [
        msgspec.structs.replace(option, description="what it takes by itself")
        if default is not None and option.result == str(default)
        else option
        for option in options
    ]


def _skip(needed: bool) -> list[Option]:
    return [] if needed else [Option(label=LEFT_OUT)]


# ---- the answer as the server wants it


def to_content(schema: Json, values: Sequence[str]) -> Json | None:
    """The typed values of an answer; None when a form without fields was answered with no."""
    fields = _fields(schema)
    if not fields:
        return None if list(values) == [DECLINE] else {}
    labels = _labels(fields)
    alone = len(fields) == 1
    given = dict.fromkeys(labels.values(), tuple(values)) if alone else unpack_answers(values)
    content: Json = {}
    for name, field in fields.items():
        found = given.get(labels[name], ())
        if field.get("type") == "array":
            content[name] = list(found)
        elif found and found[0] != LEFT_OUT:
            content[name] = _typed(field, found[0])
    return content


def _typed(field: Json, value: str) -> str | int | float | bool:
    kind = field.get("type")
    if kind == "boolean":
        return value == "true"
    try:
        if kind == "integer" or (kind == "number" and value.removeprefix("-").isdecimal()):
            return int(value)
        return float(value) if kind == "number" else value
    except ValueError:
        return value  # what is wrong with it is said by content_fault


def content_fault(schema: Json, content: Json) -> str:
    """What is wrong with an answer, for the person who gave it; empty when nothing is."""
    try:
        problems = schema_problems(schema, content)
    except ValueError:  # the server's schema is its own business when it cannot be read
        return ""
    return "; ".join(f"{place}: {wrong}" if place else wrong for place, wrong in problems[:5])
