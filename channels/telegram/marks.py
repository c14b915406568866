"""What a person wrote, with its formatting, as Markdown. Offsets are in UTF-16 units. Pure.

Nothing is escaped: what a person typed as plain text is handed on as typed. The words come first: where
Markdown cannot say that half a word is bold, the word stays and the bold goes. Spoilers, underlines,
custom emoji and mentions have no Markdown; their words stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from channels.render.measure import is_blank
from channels.render.telegram import telegram_text


class Mark(NamedTuple):
    """One formatted stretch, `start` and `end` as positions in the Python string."""

    kind: str
    start: int
    end: int
    url: str = ""
    language: str = ""


_WRAPS = {"bold": "**", "italic": "_", "strikethrough": "~~"}
_QUOTES = frozenset({"blockquote", "expandable_blockquote"})
_BLOCKS = frozenset({"pre", *_QUOTES})
_TICKS = re.compile(r"`+")
_PARAGRAPHS = re.compile(r"(\n[^\S\n]*\n\s*)")
_UNSAFE_IN_ADDRESS = re.compile(r"[\s<>\\]")
_BLANKS = re.compile(r"\s+")


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
    """The text with its marks written out. Marks of kind `drop` vanish; unknown kinds stay plain."""
    ordered = sorted(marks, key=lambda mark: (mark.start, -mark.end, mark.kind not in _BLOCKS))
    written = _write(text, 0, len(text), ordered)
    plainer = [mark for mark in ordered if mark.kind not in _WRAPS]
    if len(plainer) == len(ordered):
        return written
    unstyled = _write(text, 0, len(text), plainer)
    return written if _reads(written) == _reads(unstyled) else unstyled


def _reads(markdown: str) -> str:
    return _BLANKS.sub("", telegram_text(markdown).text)


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
        if mark.start > place:
            pieces.append(text[place : mark.start])
        written = _marked(text, mark, inner)
        if written.startswith("`") and pieces and pieces[-1].endswith("`"):
            pieces.append(" ")  # two codes side by side would be one
        if written.startswith("[") and pieces and pieces[-1].endswith("!"):
            pieces[-1] = f"{pieces[-1][:-1]}\\!"  # a link, no picture
        pieces.append(written)
        place = mark.end
    pieces.append(text[place:end])
    return "".join(pieces)


def _marked(text: str, mark: Mark, inner: Sequence[Mark]) -> str:
    if mark.kind == "drop":
        return ""
    raw = text[mark.start : mark.end]
    if raw.isspace() or (is_blank(raw) and mark.kind != "text_link"):
        return raw
    if mark.kind == "pre" or (mark.kind == "code" and "\n" in raw):
        return _fenced(text, mark, raw)
    if mark.kind == "code":
        return _code(raw)
    body = _write(text, mark.start, mark.end, inner)
    if mark.kind in _WRAPS:
        around = text[mark.start - 1 : mark.start], text[mark.end : mark.end + 1]
        return "".join(
            part if number % 2 else _wrapped(part, _WRAPS[mark.kind], *around)
            for number, part in enumerate(_PARAGRAPHS.split(body))
        )
    if mark.kind == "text_link":
        return _linked(body, mark.url)
    if mark.kind in _QUOTES:
        return _quoted(text, mark, body)
    return body


def _wrapped(body: str, sign: str, before: str, after: str) -> str:
    """Spaces at the edges go outside, where Markdown needs them."""
    core = body.strip()
    if not core:
        return body
    lead = body[: len(body) - len(body.lstrip())]
    trail = body[len(body.rstrip()) :]
    glued = (not lead and before.isalnum()) or (not trail and after.isalnum())
    if sign == "_" and glued:  # inside a word an underscore is a letter
        sign = "*"
    return f"{lead}{sign}{core}{sign}{trail}"


def _linked(body: str, url: str) -> str:
    """A link whose address holds no blank; its label is one line and its brackets are words."""
    address = _UNSAFE_IN_ADDRESS.sub(lambda found: f"%{ord(found[0]):02X}", url)
    if address.count("(") != address.count(")"):
        address = f"<{address}>"
    label = _BLANKS.sub(" ", body).strip()
    if "`" not in label:
        label = re.sub(r"(?<!\\)[\[\]]", r"\\\g<0>", label)
    lead = body[: len(body) - len(body.lstrip())]
    trail = body[len(body.rstrip()) :]
    return f"{lead}[{label}]({address}){trail}"


def _quoted(text: str, mark: Mark, body: str) -> str:
    quoted = "\n".join(f"> {line}" for line in body.strip("\n").split("\n"))
    before = "" if mark.start == 0 or text[mark.start - 1] == "\n" else "\n"
    after = "\n" if mark.end == len(text) or text[mark.end] == "\n" else "\n\n"
    return f"{before}{quoted}{after}"


def _code(raw: str) -> str:
    ticks = "`" * (_longest(raw) + 1)
    edges = raw[0] + raw[-1]
    pad = " " if "`" in edges or (edges == "  " and raw.strip(" ")) else ""
    return f"{ticks}{pad}{raw}{pad}{ticks}"


def _fenced(text: str, mark: Mark, raw: str) -> str:
    fence = "`" * max(3, _longest(raw) + 1)
    before = "" if mark.start == 0 or text[mark.start - 1] == "\n" else "\n"
    after = "" if mark.end == len(text) or text[mark.end] == "\n" else "\n"
    body = raw if raw.endswith("\n") else f"{raw}\n"
    return f"{before}{fence}{mark.language}\n{body}{fence}{after}"


def _longest(raw: str) -> int:
    return max((len(run) for run in _TICKS.findall(raw)), default=0)
