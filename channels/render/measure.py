"""How long a text is, in the unit that each platform counts in.

Telegram, Slack and Discord all take a message apart in UTF-16 units or something smaller than
that, so UTF-16 is the safe unit for a limit. A terminal and a monospace table count columns.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex
from wcwidth import wcswidth

_GRAPHEME = regex.compile(r"\X")
_INVISIBLE = regex.compile(r"[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]*")


def utf16_len(text: str) -> int:
    """Length in UTF-16 units: a character beyond the basic plane counts 2."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def graphemes(text: str) -> Iterator[str]:
    """What a reader calls characters: an emoji family or a letter with its accents is one."""
    for match in _GRAPHEME.finditer(text):
        yield match[0]


def display_width(text: str) -> int:
    """Columns in a monospace font: wide characters count 2, combining ones 0."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(max(wcswidth(cluster), 0) for cluster in graphemes(text))


def is_blank(text: str) -> bool:
    """True when a reader would see nothing: only white space and invisible characters."""
    return _INVISIBLE.fullmatch(text) is not None


def grapheme_floor(text: str, start: int, index: int) -> int:
    """The last grapheme boundary in (start, index], or `index` when one grapheme fills it all.

    `start` must be a boundary itself. Looks at the text behind `index` as far as needed.
    """
    if index >= len(text):
        return len(text)
    safe = index
    while safe > start and not text[safe].isascii():
        safe -= 1
    if safe == index and text[index] != "\n":  # nothing joins an ASCII character to what is before it
        return index
    boundary = start
    for match in _GRAPHEME.finditer(text, safe):
        if match.start() > index:
            break
        boundary = match.start()
    return boundary if boundary > start else index


def cut(text: str, limit: int) -> str:
    """At most `limit` UTF-16 units, cut between two graphemes; an ellipsis where something is missing."""
    if utf16_len(text) <= limit:
        return text
    units = text.encode("utf-16-le", "surrogatepass")[: 2 * (limit - 1)]
    kept = units.decode("utf-16-le", "surrogatepass")
    end = len(kept)
    if end and text[end - 1] != kept[-1]:  # half of a pair
        end -= 1
    return text[: grapheme_floor(text, 0, end)].rstrip() + "…"
