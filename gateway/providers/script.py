"""Scripts of the offline model: the values and the file format. Pure but for reading the file.

A script is either a flat list of replies (the first for the first request of a session, and so on)
or rules: the first rule whose `match` is found in what the person last said answers the turn, its
`replies` in order, one per model call; a rule without `match` takes everything and comes last.

    [[rules]]
    match = "refund order (?P<order>[A-Z]-[0-9]+)"
    [[rules.replies]]
    calls = [{ tool = "lookup_order", args = { order_id = "{order}" } }]
    [[rules.replies]]
    text = "Order {order} cost {lookup_order.total} euros."

`gateway/providers/templates.py` says what braces mean. JSON has the same shape; there, and in
Python, a bare list is the flat form.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from gateway.errors import ConfigError
from gateway.messages import Json
from gateway.providers.templates import bad_template

Failure = Literal["rate_limited", "overloaded", "rejected", "auth", "too_long"]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool call. `args` given as text is read like a model's raw arguments: it may be broken."""

    tool: Annotated[str, msgspec.Meta(min_length=1)]
    args: Json | str = {}
    id: str = ""


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer of the model, or one failure.

    error: the call fails after `text` was streamed; `times`: only the first that many attempts of
    this process at this point fail, then the rest of the reply is given; None: every one.
    retry_after, delay: seconds; `delay` passes before the first word.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    stop: Literal["length", "refusal"] | None = None
    error: Failure | None = None
    times: Annotated[int, msgspec.Meta(ge=1)] | None = None
    retry_after: Seconds | None = None
    delay: Seconds = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The replies to one kind of request. `pattern` is searched in the last user text."""

    replies: tuple[Reply, ...]
    pattern: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A checked script: either `replies` (flat) or `rules`. `source` names it in errors."""

    replies: tuple[Reply, ...] = ()
    rules: tuple[Rule, ...] = ()
    source: str = "script"


class _RuleShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    replies: Annotated[tuple[Reply, ...], msgspec.Meta(min_length=1)]
    match: str | None = None


class _Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rules: tuple[_RuleShape, ...] = ()
    replies: tuple[Reply | str, ...] = ()


def load_script(path: Path) -> Script:
    """Read a script from a `.toml` or `.json` file. Raises ConfigError that names file and place."""
    try:
        body = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(
            str(path), "there is no such file", "paths are relative to the config file"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), f"cannot be read: {error}") from error
    try:
        raw = json.loads(body) if path.suffix.lower() == ".json" else tomllib.loads(body)
    except ValueError as error:  # both decoders' errors say the line
        kind = "JSON" if path.suffix.lower() == ".json" else "TOML"
        raise ConfigError(str(path), f"is not {kind}: {error}", "scripts are .toml or .json") from error
    return parse_script(raw, source=str(path))


def parse_script(raw: Any, *, source: str = "script") -> Script:
    """Check a script given as plain values. Raises ConfigError that names the rule and the mend."""
    shaped = {"replies": raw} if isinstance(raw, list | tuple) else raw
    try:
        shape = msgspec.convert(shaped, _Shape)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `")
        place = _place(where.rstrip("`"))
        raise ConfigError(source, f"{place}{problem}", _mend(place, problem)) from error
    if bool(shape.rules) == bool(shape.replies):
        problem = "has rules and replies" if shape.rules else "has neither rules nor replies"
        raise ConfigError(source, problem, "write [[rules]] with replies, or one flat list of [[replies]]")
    script = Script(
        replies=tuple(Reply(text=reply) if isinstance(reply, str) else reply for reply in shape.replies),
        rules=tuple(_rule(source, number, rule) for number, rule in enumerate(shape.rules, 1)),
        source=source,
    )
    _check(script)
    return script


def _rule(source: str, number: int, shape: _RuleShape) -> Rule:
    if shape.match is None:
        return Rule(replies=shape.replies)
    try:
        pattern = re.compile(shape.match)
    except re.error as error:
        raise ConfigError(
            source, f"rule {number}: match {shape.match!r} is not a regular expression: {error}"
        ) from error
    return Rule(replies=shape.replies, pattern=pattern)


def _check(script: Script) -> None:
    """What the types cannot say: templates that name something, rules that can be reached."""
    _check_replies(script.source, "", script.replies, frozenset())
    for number, rule in enumerate(script.rules, 1):
        if rule.pattern is None and number < len(script.rules):
            raise ConfigError(
                script.source,
                f"rule {number} has no match, so the rules after it are never reached",
                "give it a match or move it to the end",
            )
        groups = frozenset[str]()
        if rule.pattern is not None:
            groups = frozenset(rule.pattern.groupindex) | {str(n) for n in range(rule.pattern.groups + 1)}
        _check_replies(script.source, f"rule {number}, ", rule.replies, groups)


def _check_replies(source: str, prefix: str, replies: tuple[Reply, ...], groups: frozenset[str]) -> None:
    for number, reply in enumerate(replies, 1):
        place = f"{prefix}reply {number}"
        for text in _strings([reply.text, reply.thinking, [call.args for call in reply.calls]]):
            if (name := bad_template(text, groups)) is not None:
                raise ConfigError(
                    source,
                    f"{place}: {{{name}}} is neither a group of match, nor {{answer}}, nor {{tool.field}}",
                    f"for these braces as text write {{{{{name}}}}}",
                )
        if reply.error is None and (reply.retry_after is not None or reply.times is not None):
            raise ConfigError(
                source, f"{place}: retry_after and times say something about an error", "add error"
            )


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


_STEP = re.compile(r"\.(rules|replies|calls)\[(\d+)\]|\.(\w+)")
_WORDS = {"rules": "rule", "replies": "reply", "calls": "call"}


def _place(path: str) -> str:
    """`$.rules[0].replies[1]` in the words of the file: `rule 1, reply 2: `."""
    words = [f"{_WORDS[step[1]]} {int(step[2]) + 1}" if step[1] else step[3] for step in _STEP.finditer(path)]
    return ", ".join(words) + ": " if words else ""


def _mend(place: str, problem: str) -> str:
    if "unknown field" not in problem:
        return ""
    last = place.rstrip(": ").rsplit(", ", 1)[-1].split(" ")[0]
    shapes: dict[str, type[msgspec.Struct]] = {"rule": _RuleShape, "reply": Reply, "call": Call}
    return "known here: " + ", ".join(sorted(shapes.get(last, _Shape).__struct_fields__))
