"""Markdown for Discord: its own dialect, written anew from the tree.

What the model wrote as plain text is escaped where Discord would read it as markup, as a mention,
a channel, a timestamp or an emoji; the reader sees it as written. `@everyone` and `@here` have
no escape: AllowedMentions, which every call carries, keeps them silent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from channels.render.flow import Dress, compose
from channels.render.lines import Fence, Line, lines_of, marked_up
from channels.render.measure import utf16_len
from channels.render.rich import Piece, Style, Styles, has
from channels.render.split import cut_up

TEXT_LIMIT = 2000

_MARKS = {"bold": "**", "italic": "*", "strike": "~~"}
_ORDER = {
    "quote": 0,
    "pre": 1,
    "bold": 2,
    "italic": 3,
    "strike": 4,
    "link": 5,
    "address": 5,
    "code": 6,
    "raw": 7,
}
_SPECIAL = re.compile(
    r"\\(?=[\\*_~|`<>\[\]()#.+-]|$)"  # a backslash that would escape
    r"|[*`]"
    r"|(?<![^\W_])_|_(?![^\W_])|_(?=_)|(?<=_)_"  # underscores, but not one inside a word
    r"|~(?=~)|(?<=~)~|\|(?=\|)|(?<=\|)\|"
    r"|<(?=@[!&]?\d|#\d|a?:\w+:\d|t:-?\d|/[^<>]*:\d|id:\w)"
    r"|\](?=\()|\[(?=[^\[\]]*\]\()"
)
_MAYBE_SPECIAL = re.compile(r"[\\*`_~|<\[\]]")  # one of these begins every match: a quick first look
_LINE_START = re.compile(r"(\s*)(#{1,3}(?=\s)|-#(?=\s)|>(?=\s|>>)|[-+](?=\s)|\d{1,9}(?=\.\s))")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+.#-]+")
_ZERO_WIDTH_SPACE = "\u200b"
_DRESS = Dress(
    bullets=("-",), headings=True, schemes=frozenset({"http", "https"}), longest_address=600, table_width=100
)


def discord_messages(markdown: str, limit: int = TEXT_LIMIT) -> list[str]:
    """The text as message contents of at most `limit` UTF-16 units; blank gives []."""
    return cut_up(compose(markdown, _DRESS).restyled(_restyled), _Content(limit))


def escape_discord(text: str) -> str:
    """Any text, so that Discord shows it as it is. `@everyone` stays: see the module's docstring."""
    return "\n".join(_escaped(line, at_line_start=True) for line in text.split("\n"))


def _restyled(styles: Styles) -> Styles:
    if has(styles, "pre"):
        return tuple(style for style in styles if style.kind == "pre")
    kept = {style.kind: style for style in styles}
    return tuple(sorted(kept.values(), key=lambda style: _ORDER[style.kind]))


class _Content:
    most_styles = 1_000_000

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def text_cost(self, text: str, styles: Styles) -> int:
        lines = text.count("\n")
        if has(styles, "pre"):
            return utf16_len(text) + 2 * text.count("```")
        again = 6 * len(styles) + 3  # every line opens its styles anew, and may be quoted
        words = text if has(styles, "raw", "code", "address") else _escaped(text, at_line_start=True)
        return utf16_len(words) + again * lines

    def style_cost(self, style: Style) -> int:
        match style.kind:
            case "pre":
                return 8 + utf16_len(style.arg)
            case "link":
                return utf16_len(style.arg) + 6
            case "raw" | "address":
                return 0
            case _:
                return 6

    def weight(self, style: Style) -> int:
        return 0

    def render(self, pieces: Iterator[Piece]) -> str:
        return _content(lines_of(pieces))

    def size(self, rendered: str) -> int:
        return utf16_len(rendered)


def _content(lines: Iterable[Line | Fence]) -> str:
    out: list[str] = []
    for line in lines:
        if isinstance(line, Fence):
            out.append(_fence(line))
        else:
            prefix = "> " if line.quoted else ""
            out.append(prefix + marked_up(line.pieces, _text, _markers, _glue))
    return "\n".join(out)


def _fence(fence: Fence) -> str:
    if "```" not in fence.text:
        language = fence.language if _LANGUAGE.fullmatch(fence.language) else ""
        return f"```{language}\n{fence.text}\n```"
    return _code(fence.text)


def _code(text: str) -> str:
    """A code span whose delimiter the text does not hold; Discord knows delimiters of 1 and 2."""
    inside = {len(run) for run in re.findall("`+", text)}
    free = next((length for length in (1, 2) if length not in inside), 0)
    if not free:  # nothing can hold this text: an unseen space keeps its backticks apart
        return f"`` {re.sub('(?<=`)(?=`)', _ZERO_WIDTH_SPACE, text)} ``"
    delimiter = "`" * free
    before = " " if text.startswith("`") else ""
    after = " " if text.endswith("`") else ""
    return f"{delimiter}{before}{text}{after}{delimiter}"


def _text(text: str, styles: Styles, at_line_start: bool) -> str:
    if has(styles, "code"):
        return _code(text)
    if has(styles, "raw", "address"):
        return text
    return _escaped(text, at_line_start=at_line_start)


def _escaped(text: str, *, at_line_start: bool) -> str:
    out = _SPECIAL.sub(r"\\\g<0>", text) if _MAYBE_SPECIAL.search(text) else text
    if not at_line_start:
        return out
    start = _LINE_START.match(out)
    if start is None:
        return out
    if start[2].isdigit():
        return f"{start[0]}\\{out[start.end() :]}"
    return f"{start[1]}\\{out[start.start(2) :]}"


@lru_cache(maxsize=1024)
def _markers(style: Style) -> tuple[str, str]:
    if style.kind == "link":
        return "[", f"](<{style.arg}>)"
    mark = _MARKS.get(style.kind, "")
    return mark, mark


def _glue(before: str, after: str) -> str:
    """Two marks that touch would be read as one."""
    return _ZERO_WIDTH_SPACE if before == after and before in "*~`" else ""
