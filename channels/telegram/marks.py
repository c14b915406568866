"""What a person wrote, with its formatting, as Markdown. Offsets are in UTF-16 units. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Mark(NamedTuple):
    """One formatted stretch, `start` and `end` as positions in the Python string."""

    kind: str
    start: int
    end: int
    url: str = ""
    language: str = ""


_WRAPS = {"bold": "**", "italic": "_", "strikethrough": "~~"}
_FENCE = re.compile(r"`+")


def positions(text: str) -> list[int]:
    """Position in the string for every UTF-16 offset, one more than there are units."""
    table: list[int] = []
    for index, char in enumerate(text):
        table.append(index)
        if ord(char) > 0xFFFF:
            table.append(index)
    table.append(len(text))
    return table


def to_markdown(text: str, marks: Sequence[Mark]) -> str:
    """The text with its marks written out. Marks of kind `drop` vanish; unknown kinds stay plain.

    Nothing is escaped: what a person typed as plain text is handed on as typed.
    """
    ordered = sorted(marks, key=lambda mark: (mark.start, -mark.end))
    return _write(text, 0, len(text), ordered)


def _write(text: str, start: int, end: int, marks: Sequence[Mark]) -> str:
    pieces: list[str] = []
    place, index = start, 0
    while index < len(marks):
        mark = marks[index]
        index += 1
        if mark.start < place:  # overlaps the one before: cannot be written, so the words win
            continue
        inner_from = index
        while index < len(marks) and marks[index].start < mark.end:
            index += 1
        inner = [inside for inside in marks[inner_from:index] if inside.end <= mark.end]
        pieces.append(text[place : mark.start])
        pieces.append(_marked(text, mark, inner))
        place = mark.end
    pieces.append(text[place:end])
    return "".join(pieces)


def _marked(text: str, mark: Mark, inner: Sequence[Mark]) -> str:
    if mark.kind == "drop":
        return ""
    raw = text[mark.start : mark.end]
    if mark.kind == "code":
        return _code(raw)
    if mark.kind == "pre":
        return _fenced(text, mark, raw)
    body = _write(text, mark.start, mark.end, inner)
    if mark.kind in _WRAPS:
        return _wrapped(body, _WRAPS[mark.kind])
    if mark.kind == "text_link" and body.strip():
        return f"[{body}]({mark.url})"
    if mark.kind in ("blockquote", "expandable_blockquote"):
        quoted = "\n".join(f"> {line}" for line in body.strip("\n").split("\n"))
        return f"{quoted}\n"
    return body


def _wrapped(body: str, sign: str) -> str:
    """Spaces at the edges go outside, where Markdown needs them."""
    core = body.strip()
    if not core:
        return body
    lead = body[: len(body) - len(body.lstrip())]
    trail = body[len(body.rstrip()) :]
    return f"{lead}{sign}{core}{sign}{trail}"


def _code(raw: str) -> str:
    ticks = "`" * (_longest(raw) + 1)
    pad = " " if raw.startswith("`") or raw.endswith("`") else ""
    return f"{ticks}{pad}{raw}{pad}{ticks}"


def _fenced(text: str, mark: Mark, raw: str) -> str:
    fence = "`" * max(3, _longest(raw) + 1)
    before = "" if mark.start == 0 or text[mark.start - 1] == "\n" else "\n"
    after = "" if mark.end == len(text) or text[mark.end] == "\n" else "\n"
    body = raw if raw.endswith("\n") else f"{raw}\n"
    return f"{before}{fence}{mark.language}\n{body}{fence}{after}"


def _longest(raw: str) -> int:
    return max((len(run) for run in _FENCE.findall(raw)), default=0)
