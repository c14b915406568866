"""Small checks from which the others are made: each adds what is wrong with a value to a report. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.platforms.discord.errors import Refused
from tests.platforms.discord.limits import Json

Path = tuple[str | int, ...]
Check = Callable[[Any, Path, "Report"], None]
FLAKE = re.compile(r"\d{15,20}")


@dataclass
class Report:
    """What was found in one payload: the `errors` tree of a 50035, and fields that are not known."""

    tree: Json = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    custom_ids: set[str] = field(default_factory=set)
    attachments: set[str] = field(default_factory=set)  # names that components refer to
    count: int = 0  # components, nested ones too
    display: int = 0  # characters of text displays

    def error(self, code: str, words: str, at: Path) -> None:
        node = self.tree
        for step in at:
            node = node.setdefault(str(step), {})
        node.setdefault("_errors", []).append({"code": code, "message": words})

    def length(self, value: str, lowest: int, highest: int, at: Path) -> None:
        if not lowest <= len(value) <= highest:
            words = f"Must be between {lowest} and {highest} in length."
            self.error("BASE_TYPE_BAD_LENGTH", words, at)

    def settle(self) -> None:
        """Raise the 50035 if something was wrong."""
        if self.tree:
            raise Refused(50035, errors=self.tree)


def string(highest: int, lowest: int = 1) -> Check:
    def check(value: Any, at: Path, report: Report) -> None:
        if not isinstance(value, str):
            report.error("BASE_TYPE_STRING", "Could not interpret value as string.", at)
        elif lowest and not value.strip():
            report.error("BASE_TYPE_REQUIRED", "This field is required", at)
        else:
            report.length(value, lowest, highest, at)

    return check


def one_of(*values: Any) -> Check:
    def check(value: Any, at: Path, report: Report) -> None:
        if value not in values or isinstance(value, bool) != isinstance(values[0], bool):
            report.error("BASE_TYPE_CHOICES", f"Value must be one of {{{values}}}.", at)

    return check


def integer(lowest: int, highest: int) -> Check:
    def check(value: Any, at: Path, report: Report) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            report.error("NUMBER_TYPE_COERCE", f'Value "{value}" is not int.', at)
        elif not lowest <= value <= highest:
            words = f"int value should be between {lowest} and {highest}."
            report.error("NUMBER_TYPE_MAX" if value > highest else "NUMBER_TYPE_MIN", words, at)

    return check


def number(value: Any, at: Path, report: Report) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        report.error("NUMBER_TYPE_COERCE", f'Value "{value}" is not a number.', at)


def flag(value: Any, at: Path, report: Report) -> None:
    if not isinstance(value, bool):
        report.error("BASE_TYPE_BOOLEAN", "Must be either true or false.", at)


def flake(value: Any, at: Path, report: Report) -> None:
    if isinstance(value, bool) or not FLAKE.fullmatch(str(value)):
        report.error("NUMBER_TYPE_COERCE", f'Value "{value}" is not snowflake.', at)


def address(value: Any, at: Path, report: Report) -> None:
    string(2_048)(value, at, report)
    if isinstance(value, str) and not value.startswith(
        ("https://", "http://", "discord://", "attachment://")
    ):
        report.error("URL_TYPE_INVALID_SCHEME", "Scheme must be one of ('http', 'https').", at)


def anything(value: Any, at: Path, report: Report) -> None:
    """Taken as it is."""


def nullable(check: Check) -> Check:
    return lambda value, at, report: None if value is None else check(value, at, report)


def many(check: Check, highest: int, lowest: int = 0) -> Check:
    def check_all(value: Any, at: Path, report: Report) -> None:
        if not isinstance(value, list):
            report.error("LIST_TYPE_CONVERT", "Only iterables may be used in a ListType", at)
            return
        if not lowest <= len(value) <= highest:
            words = f"Must be between {lowest} and {highest} in length."
            report.error("BASE_TYPE_BAD_LENGTH", words, at)
        for place, entry in enumerate(value):
            check(entry, (*at, place), report)

    return check_all


def shape(needed: dict[str, Check], optional: dict[str, Check] | None = None) -> Check:
    """An object with these fields; others are noted as unknown."""
    known = needed | (optional or {})

    def check(value: Any, at: Path, report: Report) -> None:
        if not isinstance(value, dict):
            report.error("DICT_TYPE_CONVERT", "Only dictionaries may be used in a DictType", at)
            return
        for name in needed.keys() - value.keys():
            report.error("BASE_TYPE_REQUIRED", "This field is required", (*at, name))
        for name, entry in value.items():
            if name in known:
                known[name](entry, (*at, name), report)
            else:
                report.unknown.append(".".join(map(str, (*at, name))))

    return check
