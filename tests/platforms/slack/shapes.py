"""Small checks from which checks.py is made: each adds what is wrong with a value to a report. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.platforms.slack import limits
from tests.platforms.slack.limits import units

Check = Callable[[Any, str, "Report"], None]


@dataclass
class Report:
    """What was found in one payload."""

    surface: str
    errors: list[str] = field(default_factory=list)
    markdown: int = 0  # characters of all markdown blocks
    block_ids: set[str] = field(default_factory=set)
    action_ids: set[str] = field(default_factory=set)  # of the block at hand

    def error(self, words: str, at: str) -> None:
        self.errors.append(f"{words} [json-pointer:{at}]")


# ---- plain values


def string(longest: int, shortest: int = 1) -> Check:
    def check(value: Any, at: str, report: Report) -> None:
        if not isinstance(value, str):
            report.error("must be a string", at)
        elif units(value) < shortest:
            report.error(f"must be more than {shortest - 1} characters", at)
        elif units(value) > longest:
            report.error(f"must be less than {longest + 1} characters", at)

    return check


def one_of(*values: Any) -> Check:
    def check(value: Any, at: str, report: Report) -> None:
        if value not in values:
            report.error(f"must be one of {list(values)}", at)

    return check


def integer(lowest: int, highest: int) -> Check:
    def check(value: Any, at: str, report: Report) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            report.error(f"must be an integer from {lowest} to {highest}", at)

    return check


def flag(value: Any, at: str, report: Report) -> None:
    if not isinstance(value, bool):
        report.error("must be a boolean", at)


def address(value: Any, at: str, report: Report) -> None:
    string(limits.URL)(value, at, report)
    if isinstance(value, str) and not value.startswith(("https://", "http://", "slack://", "mailto:")):
        report.error("must be a valid URL", at)


def number(value: Any, at: str, report: Report) -> None:
    try:
        float(value if isinstance(value, str) else "no")
    except ValueError:
        report.error("must be a number in a string", at)


def many(check: Check, longest: int, shortest: int = 1) -> Check:
    def check_all(value: Any, at: str, report: Report) -> None:
        if not isinstance(value, list):
            report.error("must be an array", at)
            return
        if len(value) < shortest:
            report.error(f"no fewer than {shortest} items allowed", at)
        if len(value) > longest:
            report.error(f"no more than {longest} items allowed", at)
        for number, entry in enumerate(value):
            check(entry, f"{at}/{number}", report)

    return check_all


def shape(needed: dict[str, Check], optional: dict[str, Check] | None = None) -> Check:
    """An object with these fields and no others."""
    known = needed | (optional or {})

    def check(value: Any, at: str, report: Report) -> None:
        if not isinstance(value, dict):
            report.error("must be an object", at)
            return
        for name in needed.keys() - value.keys():
            report.error(f"missing required field: {name}", at)
        for name, entry in value.items():
            if name in known:
                known[name](entry, f"{at}/{name}", report)
            elif name != "type":
                report.error(f"unsupported property: {name}", at)

    return check
