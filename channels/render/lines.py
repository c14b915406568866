"""Styled pieces as lines and fences: what a platform with markup characters writes one by one.

On such platforms a style ends with its line, a quote is a prefix of every line, and a code block
stands on lines of its own, outside any quote, so that its text stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from channels.render.rich import Piece, Style, Styles, common, has


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of prose; its pieces hold no newline and no quote style."""

    pieces: tuple[Piece, ...]
    quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """One code block. `text` may hold newlines and is never changed."""

    text: str
    language: str = ""


def lines_of(pieces: Iterable[Piece]) -> list[Line | Fence]:
    """The pieces line by line. Joined with newlines they give the text again."""
    out: list[Line | Fence] = []
    current: list[Piece] | None = []  # None right after a fence: the next newline only ends its line
    quoted = False
    for text, styles in pieces:
        if has(styles, "pre"):
            if current:
                out.append(Line(pieces=tuple(current), quoted=quoted))
            language = next(style.arg for style in styles if style.kind == "pre")
            out.append(Fence(text=text, language=language))
            current = None
            continue
        in_quote = has(styles, "quote")
        inner = tuple(style for style in styles if style.kind != "quote") if in_quote else styles
        for number, part in enumerate(text.split("\n")):
            if number:
                if current is not None:
                    out.append(Line(pieces=tuple(current), quoted=quoted))
                current = []
                quoted = in_quote
            if part:
                current = [] if current is None else current
                quoted = quoted or in_quote
                current.append(Piece(part, inner))
    if current:
        out.append(Line(pieces=tuple(current), quoted=quoted))
    return out


def marked_up(
    pieces: Sequence[Piece],
    text: Callable[[str, Styles, bool], str],
    markers: Callable[[Style], tuple[str, str]],
    glue: Callable[[str, str], str],
) -> str:
    """One line with its markers, which hug the words: white space at their inner side goes outside.

    `text(words, styles, at_line_start)` escapes; `markers(style)` gives the opening and closing
    mark; `glue(before, after)` is what must stand between a mark and the character beside it.
    """
    if len(pieces) == 1 and not pieces[0].styles:  # most lines of most texts
        return text(pieces[0].text, (), True)
    out: list[str] = []
    opened: Styles = ()
    for words, styles in pieces:
        keep = common(opened, styles)
        if words.isspace() and not has(styles, "code"):
            styles = styles[:keep]  # a mark around nothing but blanks would be shown
        if len(opened) > keep:
            _close(out, opened[keep:], markers)
        written = text(words, styles, not out)
        if len(styles) > keep:
            blank = written[: len(written) - len(written.lstrip(" "))] if not has(styles, "code") else ""
            opening = "".join(markers(style)[0] for style in styles[keep:])
            out += [blank, _glued(out, opening, glue), opening]
            written = written[len(blank) :]
        elif len(opened) > keep:
            out.append(_glued(out, written, glue))
        out.append(written)
        opened = styles
    if opened:
        _close(out, opened, markers)
    return "".join(out)


def _close(out: list[str], styles: Styles, markers: Callable[[Style], tuple[str, str]]) -> None:
    blank = ""
    if out and not has(styles, "code"):
        words = out[-1].rstrip(" ")
        out[-1], blank = words, out[-1][len(words) :]
    out += ["".join(markers(style)[1] for style in reversed(styles)), blank]


def _glued(out: Sequence[str], after: str, glue: Callable[[str, str], str]) -> str:
    for part in reversed(out):
        if part:
            return glue(part[-1], after[0]) if after else ""
    return ""
