"""Cutting a styled text into messages.

A cut falls, in this order of preference, between paragraphs, between list items, between lines,
after a sentence, between words, and only then inside a word, and there between graphemes. Links
and code spans stay whole; a code block that fits one message moves there whole. Everything
is measured in the platform's own unit, markup that the platform needs included, so that a piece that
was accepted here is accepted there. Time is linear in the text: each message looks at no more
than a few times its own length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Protocol, TypeVar

from channels.render.measure import grapheme_floor, is_blank
from channels.render.rich import Piece, Rich, Run, Style, Styles, Weight, common, has, verbatim

Rendered = TypeVar("Rendered")

_SENTENCE_END = re.compile(r"[.!?…]['\")\]’”»]*(?=\s)|[。！？；][」』”’）】]*")
_SPACES = re.compile(r"\s*")
_SPACE = re.compile(r"\s")
_FULL_ENOUGH = 0.35  # of a message, before a cut at a good place is worth the room it leaves
_MOVES_WHOLE = 0.15  # of a message, before a code block may leave the rest of it empty


class Medium(Protocol[Rendered]):
    """How one platform writes a piece of styled text, and what that costs.

    `text_cost` and `style_cost` (opening and closing together) may be higher than what `render`
    comes to, never lower by intent; `size` of the rendered message is what must keep to `limit`.
    `weight` is what one open style counts toward `most_styles`.
    """

    limit: int
    most_styles: int

    def text_cost(self, text: str, styles: Styles) -> int: ...

    def style_cost(self, style: Style) -> int: ...

    def weight(self, style: Style) -> int: ...

    def render(self, pieces: Iterator[Piece]) -> Rendered: ...

    def size(self, rendered: Rendered) -> int: ...


def cut_up(rich: Rich, medium: Medium[Rendered]) -> list[Rendered]:
    """The text as messages within the medium's limits, in order; blank ones left out."""
    return [rendered for _, _, rendered in cuts(rich, medium)]


def trimmed(rich: Rich) -> Iterator[Piece]:
    """All pieces, without white space at the ends that is not code's."""
    start = _skip_blanks(rich, 0, len(rich.text))
    return rich.pieces(start, _strip_blanks(rich, start, len(rich.text)))


def cuts(
    rich: Rich, medium: Medium[Rendered], start: int = 0, stop: int | None = None
) -> Iterator[tuple[int, int, Rendered]]:
    """(start, end, message) for every message of rich.text[start:stop]."""
    stop = len(rich.text) if stop is None else stop
    at = _skip_blanks(rich, start, stop)
    while at < stop:
        budget = medium.limit
        while True:
            end, following = _cut(rich, at, _reach(rich, medium, at, stop, budget), stop)
            rendered = medium.render(rich.pieces(at, end))
            excess = medium.size(rendered) - medium.limit
            if excess <= 0 or end - at <= 1:
                break
            budget = max(min(budget, end - at) - excess, 1)
        if not is_blank(rich.text[at:end]):
            yield at, end, rendered
        at = _skip_blanks(rich, max(following, at + 1), stop)


def _reach(rich: Rich, medium: Medium[Rendered], at: int, stop: int, budget: int) -> int:
    """The furthest end for a message that starts at `at`; at least one code point on."""
    open_styles: Styles = ()
    left, styles_left = budget, medium.most_styles
    for index in range(rich.run_index(at), len(rich.runs)):
        run = rich.runs[index]
        start, end = max(run.start, at), min(run.end, stop)
        if start >= end:
            return min(start, stop)
        opened = run.styles[common(open_styles, run.styles) :]
        left -= sum(medium.style_cost(style) for style in opened)
        styles_left -= sum(medium.weight(style) for style in opened)
        if left <= 0 or styles_left < 0:
            return max(start, at + 1)
        if end - start <= left:
            cost = medium.text_cost(rich.text[start:end], run.styles)
            if cost <= left:
                left -= cost
                open_styles = run.styles
                continue
        return max(_fitting(rich.text, medium, start, end, run.styles, left), at + 1)
    return stop


def _fitting(text: str, medium: Medium[Rendered], start: int, end: int, styles: Styles, budget: int) -> int:
    """The furthest position in [start, end] up to which the text costs no more than `budget`."""
    low, high = start, min(end, start + budget)
    while low < high:
        middle = (low + high + 1) // 2
        if medium.text_cost(text[start:middle], styles) <= budget:
            low = middle
        else:
            high = middle - 1
    return low


def _cut(rich: Rich, at: int, reach: int, stop: int) -> tuple[int, int]:
    """(end of this message, start of the next) for a message that could go up to `reach`."""
    if reach >= stop:
        return _strip_blanks(rich, at, stop), stop
    floor = at + max(int((reach - at) * _FULL_ENOUGH), 1)
    run = rich.run_at(reach)
    moved = _before_whole_block(rich, run, at, reach)
    for weight in (Weight.PARAGRAPH, Weight.ITEM):
        found = _gap(rich, weight, floor, reach)
        if found and not (moved and found[0] < moved):
            return found
    if moved:
        return _at(rich, at, moved)
    if has(run.styles, "pre"):
        newline = rich.text.rfind("\n", max(at + 1, run.start), reach + 1)
        if newline >= 0:
            return newline, newline + 1
        return _at(rich, at, run.start) if run.start > at else _hard(rich, at, reach)
    return (
        _gap(rich, Weight.LINE, floor, reach)
        or _after_sentence(rich, at, floor, reach)
        or _between_words(rich, at, floor, reach, stop)
        or _hard(rich, at, reach)
    )


def _gap(rich: Rich, weight: Weight, floor: int, reach: int) -> tuple[int, int] | None:
    index = bisect_right(rich.gap_starts, reach) - 1
    while index >= 0 and rich.gap_starts[index] >= floor:
        gap = rich.gaps[index]
        if gap.weight >= weight:
            return gap.start, gap.end
        index -= 1
    return None


def _before_whole_block(rich: Rich, run: Run, at: int, reach: int) -> int | None:
    """Where a code block starts that would be cut here but fits the next message whole."""
    if not has(run.styles, "pre") or run.start - at < (reach - at) * _MOVES_WHOLE:
        return None
    return run.start if run.end - run.start < (reach - at) * 0.9 else None


def _after_sentence(rich: Rich, at: int, floor: int, reach: int) -> tuple[int, int] | None:
    ends = [match.end() for match in _SENTENCE_END.finditer(rich.text, floor, reach + 1)]
    for end in reversed(ends):
        if end <= reach and not _inside(rich, end):
            return _at(rich, at, end)
    return None


def _between_words(rich: Rich, at: int, floor: int, reach: int, stop: int) -> tuple[int, int] | None:
    """The last white space, or the start of the link or code span in which `reach` lies."""
    atom = rich.atom_at(reach)
    if atom and atom[0] > at:
        return _at(rich, at, atom[0])
    if atom and verbatim(rich.run_at(reach).styles):
        return None
    space = max(rich.text.rfind(blank, at + 1, reach + 1) for blank in " \n\t")
    while space > at and (inner := rich.atom_at(space)) and inner[0] > at:
        space = inner[0] if rich.text[inner[0] - 1] != " " else inner[0] - 1
    if space <= at or _inside_code(rich, space):
        return None
    if space < floor and _SPACE.search(rich.text, reach, min(reach + (reach - at), stop)) is None:
        return None  # the next word is too long for any message: better to fill this one
    return _at(rich, at, space)


def _hard(rich: Rich, at: int, reach: int) -> tuple[int, int]:
    boundary = grapheme_floor(rich.text, at, reach)
    return boundary, boundary


def _at(rich: Rich, at: int, position: int) -> tuple[int, int]:
    return _strip_blanks(rich, at, position), position


def _inside(rich: Rich, position: int) -> bool:
    return rich.atom_at(position) is not None


def _inside_code(rich: Rich, position: int) -> bool:
    return _inside(rich, position) and verbatim(rich.run_at(position).styles)


def _skip_blanks(rich: Rich, at: int, stop: int) -> int:
    """Over white space, but never over that of code."""
    if at >= stop or not rich.text[at].isspace():
        return at
    match = _SPACES.match(rich.text, at, stop)
    end = match.end() if match else at
    index = rich.run_index(at)
    while index < len(rich.runs) and rich.runs[index].start < end:
        if verbatim(rich.runs[index].styles):
            return max(at, rich.runs[index].start)
        index += 1
    return end


def _strip_blanks(rich: Rich, at: int, end: int) -> int:
    """The end without the white space before it, but with that of code."""
    while end > at and rich.text[end - 1].isspace():
        run = rich.run_at(end - 1)
        if verbatim(run.styles):
            return end
        blank = rich.text[max(run.start, at) : end]
        end -= len(blank) - len(blank.rstrip())
        if not blank.isspace():
            return end
    return end
