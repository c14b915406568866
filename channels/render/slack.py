"""Markdown for Slack: mrkdwn text, and the blocks that carry it.

Exactly three characters are escaped, exactly once: `&`, `<` and `>`. So nothing that a model
writes is a control sequence: no broadcast, no mention, no link but those drawn here. Sections are
sent `verbatim`, so that Slack looks for none either.

mrkdwn has no escape for its own marks and no way to write a backtick inside code. A piece that
would be misread becomes a `rich_text` block, which has neither problem; the fallback `text` then
comes as close as mrkdwn can.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from channels.render.flow import Dress, compose
from channels.render.lines import Fence, Line, lines_of, marked_up
from channels.render.measure import utf16_len
from channels.render.rich import Piece, Style, Styles, has
from channels.render.split import cuts

TEXT_LIMIT = 3900  # Slack asks for 4,000 at most in `text`, and chat.update insists
SECTION_LIMIT = 3000

_MARKS = {"bold": "*", "italic": "_", "strike": "~", "code": "`"}
_ORDER = {"quote": 0, "bold": 1, "italic": 2, "strike": 3, "code": 4, "link": 5, "address": 5}
_REMEMBERED = 1000  # lines; more than one message has, in most texts
_MARK_CHARS = frozenset("*_~`")
_STYLE_NAMES = {"bold": "bold", "italic": "italic", "strike": "strike", "code": "code"}
_LIVE_MARK = re.compile(r"(?<![^\W_])([*_~`])(?=[^\s*_~`]).*?(?<=\S)\1(?![^\W_])")
_MAYBE_MARK = re.compile("[*_~`]")
_ZERO_WIDTH_SPACE = "\u200b"
_DRESS = Dress(longest_address=1000)


@dataclass(frozen=True, slots=True)
class SlackText:
    """One message: `text` is the whole of it in mrkdwn, `blocks` the same for `blocks=`."""

    text: str
    blocks: tuple[dict[str, Any], ...]


def slack_messages(markdown: str, limit: int = TEXT_LIMIT) -> list[SlackText]:
    """The text as messages of at most `limit` UTF-16 units after escaping, whose sections hold
    1 to 3,000; blank gives []."""
    rich = compose(markdown, _DRESS).restyled(_restyled)
    lines = _Lines()
    section = _Mrkdwn(min(limit, SECTION_LIMIT), lines)
    return [
        SlackText(drawn.text, tuple(_block(part) for _, _, part in cuts(rich, section, start, end)))
        for start, end, drawn in cuts(rich, _Mrkdwn(limit, lines))
    ]


def escape_mrkdwn(text: str) -> str:
    """Any text for any mrkdwn field: `&`, `<` and `>`, once."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _restyled(styles: Styles) -> Styles:
    """Marks stand outside links, code inside a link is only a link, and each style counts once."""
    if has(styles, "pre"):
        return tuple(style for style in styles if style.kind == "pre")
    linked = has(styles, "link", "address")
    kept = {
        style.kind: style for style in styles if style.kind != "raw" and not (linked and style.kind == "code")
    }
    return tuple(sorted(kept.values(), key=lambda style: _ORDER[style.kind]))


class _Drawn(NamedTuple):
    """A piece of the text: its lines, and these in mrkdwn."""

    text: str
    lines: list[Line | Fence]


class _Mrkdwn:
    most_styles = 1_000_000

    def __init__(self, limit: int, lines: _Lines) -> None:
        self.limit = limit
        self._lines = lines

    def text_cost(self, text: str, styles: Styles) -> int:
        again = 4 * len(styles) + 2  # every line opens its styles anew
        escapes = 4 * text.count("&") + 3 * (text.count("<") + text.count(">"))
        return utf16_len(text) + escapes + again * text.count("\n") + 2 * text.count("```")

    def style_cost(self, style: Style) -> int:
        match style.kind:
            case "pre":
                return 8
            case "link" | "address":
                return utf16_len(_address(style)) + 3
            case _:
                return 4

    def weight(self, style: Style) -> int:
        return 0

    def render(self, pieces: Iterator[Piece]) -> _Drawn:
        lines = lines_of(pieces)
        return _Drawn("\n".join(map(self._lines.mrkdwn, lines)), lines)

    def size(self, rendered: _Drawn) -> int:
        return utf16_len(rendered.text)


class _Lines:
    """Lines in mrkdwn. Each is asked for twice, for its message and for its section, and written once."""

    def __init__(self) -> None:
        self._written: dict[Line, str] = {}

    def mrkdwn(self, line: Line | Fence) -> str:
        """One line, or one code block, as Slack takes it."""
        if isinstance(line, Fence):
            code = escape_mrkdwn(line.text).replace("```", _ZERO_WIDTH_SPACE.join("```"))
            return f"```\n{code}\n```"
        written = self._written.get(line)
        if written is None:
            if len(self._written) >= _REMEMBERED:
                self._written.clear()
            prefix = "> " if line.quoted and line.pieces else ">" if line.quoted else ""
            pieces = [_prepared(piece) for piece in line.pieces]
            written = self._written[line] = prefix + marked_up(pieces, _escaped, _markers, _glue)
        return written


def _prepared(piece: Piece) -> Piece:
    """An address that is its own label is written as such; code with backticks is no code here."""
    text, styles = piece
    if not styles:
        return piece
    if styles[-1].kind == "address" and escape_mrkdwn(text) == _address(styles[-1]):
        return Piece(f"<{_address(styles[-1])}>", (*styles[:-1], Style("raw")))
    if has(styles, "code") and "`" in text:
        return Piece(text, tuple(style for style in styles if style.kind != "code"))
    return piece


def _escaped(text: str, styles: Styles, at_line_start: bool) -> str:
    return text if has(styles, "raw") else escape_mrkdwn(text)


@lru_cache(maxsize=1024)
def _markers(style: Style) -> tuple[str, str]:
    if style.kind in ("link", "address"):
        return f"<{_address(style)}|", ">"
    mark = _MARKS.get(style.kind, "")
    return mark, mark


def _glue(before: str, after: str) -> str:
    """A mark counts only at a word's edge: an unseen space makes one."""
    if (before in _MARK_CHARS and _joins(after)) or (after in _MARK_CHARS and _joins(before)):
        return _ZERO_WIDTH_SPACE
    return ""


def _joins(char: str) -> bool:
    return char.isalnum() or not char.isascii() or char in _MARK_CHARS


@lru_cache(maxsize=1024)
def _address(style: Style) -> str:
    return escape_mrkdwn(style.arg.replace("|", "%7C"))


def _block(drawn: _Drawn) -> dict[str, Any]:
    if any(_misread(line) for line in drawn.lines):
        return {"type": "rich_text", "elements": list(_elements(drawn.lines))}
    text = {"type": "mrkdwn", "text": drawn.text, "verbatim": True}
    return {"type": "section", "text": text, "expand": True}


def _misread(line: Line | Fence) -> bool:
    """Would mrkdwn show something other than what was written?"""
    if isinstance(line, Fence):
        return "```" in line.text
    if any("`" in text for text, styles in line.pieces if has(styles, "code")):
        return True
    # Marks that are ours are left out; what is left is the words between them.
    words = "".join("\x00" if has(styles, "code", "address") else text for text, styles in line.pieces)
    return words.startswith(">") or (
        _MAYBE_MARK.search(words) is not None and _LIVE_MARK.search(words) is not None
    )


def _elements(lines: Iterable[Line | Fence]) -> Iterator[dict[str, Any]]:
    """Fences and runs of lines of the same kind as rich text elements."""
    texts: list[dict[str, Any]] = []
    quoted = False
    for line in lines:
        if texts and (isinstance(line, Fence) or line.quoted != quoted):
            yield _section(texts, quoted)
            texts = []
        if isinstance(line, Fence):
            yield {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": line.text}]}
            continue
        if texts:
            texts.append({"type": "text", "text": "\n"})
        quoted = line.quoted
        texts += (_element(piece) for piece in line.pieces)
    if texts:
        yield _section(texts, quoted)


def _section(texts: list[dict[str, Any]], quoted: bool) -> dict[str, Any]:
    return {"type": "rich_text_quote" if quoted else "rich_text_section", "elements": texts}


def _element(piece: Piece) -> dict[str, Any]:
    text, styles = piece
    link = next((style.arg for style in styles if style.kind in ("link", "address")), None)
    element: dict[str, Any] = {"type": "text", "text": text}
    if link is not None:
        element = {"type": "link", "url": link, "text": text}
    drawn = {_STYLE_NAMES[style.kind]: True for style in styles if style.kind in _STYLE_NAMES}
    return element | ({"style": drawn} if drawn else {})
