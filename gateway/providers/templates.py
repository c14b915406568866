"""What braces mean in a script's texts and arguments. Pure.

`{name}`                a group of the rule's match (`{0}` is the whole match)
`{tool.path.to.field}`  a field of the latest result of that tool in this turn, read as JSON
`{answer}`              the latest result of any tool in this turn, as text
`{{name}}`              `{name}` itself; braces around anything else are ordinary text

A string that is exactly one template keeps the value's type, so that numbers stay numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.messages import Message

_NAME = r"(?:[A-Za-z_][\w-]*|\d)(?:\.[\w-]+)*"
_TEMPLATE = re.compile(rf"\{{\{{({_NAME})\}}\}}|\{{({_NAME})\}}")


class Unresolved(Exception):
    """A template names something that this turn does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What templates may name: the groups of the match, and the turn's results, oldest first."""

    groups: Mapping[str, str]
    results: Sequence[tuple[str, str]]  # (tool, content)


def bad_template(text: str, groups: frozenset[str]) -> str | None:
    """The first template of `text` that can never have a value, if there is one."""
    for match in _TEMPLATE.finditer(text):
        name = match[2]
        if name and name not in groups and name != "answer" and "." not in name:
            return name
    return None


def fill(value: Any, scope: Scope) -> Any:
    """`value` with every template in it replaced. Raises Unresolved."""
    if isinstance(value, str):
        return _fill_text(value, lambda name: _lookup(name, scope))
    if isinstance(value, dict):
        return {key: fill(item, scope) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [fill(item, scope) for item in value]
    return value


def fill_text(text: str, scope: Scope) -> str:
    """Like `fill`, always text."""
    return _as_text(fill(text, scope))


def results_of(messages: Sequence[Message], start: int) -> list[tuple[str, str]]:
    """(tool, content) of every result from message `start` on, oldest first."""
    names: dict[str, str] = {}
    found = []
    # The calls answered in message `start` stand in the one before it.
    for index in range(max(start - 1, 0), len(messages)):
        message = messages[index]
        names.update((call.id, call.name) for call in message.calls)
        if index >= start:
            found += [(names.get(result.tool_use_id, ""), result.content) for result in message.results]
    return found


def _fill_text(text: str, lookup: Callable[[str], Any]) -> Any:
    whole = _TEMPLATE.fullmatch(text)
    if whole and whole[2]:
        return lookup(whole[2])
    return _TEMPLATE.sub(lambda m: f"{{{m[1]}}}" if m[1] else _as_text(lookup(m[2])), text)


def _lookup(name: str, scope: Scope) -> Any:
    if name in scope.groups:
        return scope.groups[name]
    if name == "answer":
        if not scope.results:
            raise Unresolved("{answer}: no tool has been called in this turn")
        return scope.results[-1][1]
    steps = name.split(".")
    # Tool names may hold dots themselves: the longest name that was called wins.
    for cut in range(len(steps) - 1, 0, -1):
        tool = ".".join(steps[:cut])
        for called, content in reversed(scope.results):
            if called == tool:
                return _field(name, content, steps[cut:])
    raise Unresolved(f"{{{name}}}: {steps[0]} has no result in this turn")


def _field(name: str, content: str, path: Sequence[str]) -> Any:
    try:
        value = json.loads(content)
    except ValueError as error:
        raise Unresolved(f"{{{name}}}: the result is not JSON") from error
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            raise Unresolved(f"{{{name}}}: the result has no {step!r}")
    return value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
