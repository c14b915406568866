"""One value as people write it: numbers, dates, yes and no. Pure.

Read is only what can mean one thing; anything else is refused with what to write instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Final, Literal

AnswerKind = Literal["text", "number", "integer", "date", "boolean"]

_NUMBER: Final = re.compile(r"([+-]?)(\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_ISO: Final = re.compile(r"(\d{4})([-/])(\d{1,2})\2(\d{1,2})", re.ASCII)
_DOTTED: Final = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})", re.ASCII)
_TRUTH: Final = {"true": "true", "yes": "true", "y": "true", "false": "false", "no": "false", "n": "false"}
MENDS: Final[Mapping[AnswerKind, str]] = {
    "text": "write an answer",
    "number": "a number is needed, like 12.50",
    "integer": "a whole number is needed, like 12",
    "date": "a date is needed, like 2026-03-31",
    "boolean": "yes or no is needed",
}


def read_value(kind: AnswerKind, text: str) -> str:
    """A text as the value that it stands for: a JSON number, `true` or `false`, YYYY-MM-DD. Raises
    ValueError with the mend, in words for people."""
    words = text.strip()
    match kind:
        case "text":
            return words
        case "boolean":
            found = _TRUTH.get(words.casefold())
        case "date":
            return _date(words)
        case _:
            found = _number(words, whole=kind == "integer")
    if found is None:
        raise ValueError(MENDS[kind])
    return found


def _number(words: str, *, whole: bool) -> str | None:
    """The number as JSON writes it, digit by digit: no detour over a float that rounds."""
    match = _NUMBER.fullmatch(words)
    if match is None:
        return None
    sign, before, after, power = (part or "" for part in match.groups())
    if not (before or after) or (whole and (after or power or not before)):
        return None
    number = f"{'-' if sign == '-' else ''}{before.lstrip('0') or '0'}{after}{power}"
    if not whole and not math.isfinite(float(number)):
        return None
    return "0" if number == "-0" else number


def _date(words: str) -> str:
    if match := _ISO.fullmatch(words):
        year, _, month, day = match.groups()
        return _day(int(year), int(month), int(day))
    if match := _DOTTED.fullmatch(words):
        first, second, year = (int(part) for part in match.groups())
        if first != second and first <= 12 and second <= 12:  # which one is the month?
            mend = f"write it as {year:04}-{second:02}-{first:02} or {year:04}-{first:02}-{second:02}"
            raise ValueError(f"this date can be read in two ways; {mend}")
        return _day(year, second, first)
    raise ValueError(MENDS["date"])


def _day(year: int, month: int, day: int) -> str:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        raise ValueError(f"there is no such day; {MENDS['date']}") from None
