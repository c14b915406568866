"""A text with styles in one line: what the tree is flattened to before it is cut.

Positions are code points of `text`. `runs` cover the text without holes, in order; a run's
styles are nested, outermost first. `gaps` are the places between blocks, items and lines where
the text may be cut and the white space there dropped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, NamedTuple

StyleKind = Literal["bold", "italic", "strike", "code", "pre", "link", "address", "quote", "raw"]


class Style(NamedTuple):
    """`arg`: the address of a link, the language of a pre.

    `address` is a link whose text is the address itself; `raw` is our own text (a bullet), which
    needs no escaping.
    """

    kind: StyleKind
    arg: str = ""


Styles = tuple[Style, ...]
RAW = (Style("raw"),)
_ATOMIC = frozenset({"code", "link", "address"})


class Run(NamedTuple):
    """One stretch of text with the same styles."""

    start: int
    end: int
    styles: Styles


class Weight(IntEnum):
    """How good a place for a cut is."""

    LINE = 1
    ITEM = 2
    PARAGRAPH = 3


class Gap(NamedTuple):
    """White space between two things; a cut drops it."""

    start: int
    end: int
    weight: Weight


class Piece(NamedTuple):
    """A cut-out part of a run."""

    text: str
    styles: Styles


@dataclass(frozen=True, slots=True, kw_only=True)
class Rich:
    """See the module's docstring."""

    text: str
    runs: tuple[Run, ...]
    gaps: tuple[Gap, ...]
    run_starts: tuple[int, ...] = field(repr=False)
    gap_starts: tuple[int, ...] = field(repr=False)

    def run_index(self, position: int) -> int:
        """The run that holds `position`; the last one at the end of the text."""
        return max(bisect_right(self.run_starts, position) - 1, 0)

    def run_at(self, position: int) -> Run:
        """The run that holds `position`. The text must not be empty."""
        return self.runs[self.run_index(position)]

    def pieces(self, start: int, end: int) -> Iterator[Piece]:
        """The parts of the runs in [start, end)."""
        index = self.run_index(start)
        while index < len(self.runs) and self.runs[index].start < end:
            run = self.runs[index]
            yield Piece(self.text[max(run.start, start) : min(run.end, end)], run.styles)
            index += 1

    def atom_at(self, position: int) -> tuple[int, int] | None:
        """The span of the link or code span that a cut at `position` would break, if any."""
        if not 0 < position < len(self.text):
            return None
        index = self.run_index(position)
        atom = _atom(self.runs[index].styles)
        if atom is None:
            return None
        first = last = index
        while first > 0 and _atom(self.runs[first - 1].styles) == atom:
            first -= 1
        while last + 1 < len(self.runs) and _atom(self.runs[last + 1].styles) == atom:
            last += 1
        span = self.runs[first].start, self.runs[last].end
        return span if span[0] < position < span[1] else None

    def restyled(self, change: Callable[[Styles], Styles]) -> Rich:
        """The same text in what one platform can show; neighbours that became equal are joined."""
        seen: dict[Styles, Styles] = {}
        runs: list[Run] = []
        for start, end, styles in self.runs:
            if styles not in seen:
                seen[styles] = change(styles)
            now = seen[styles]
            if runs and runs[-1].styles == now:
                runs[-1] = Run(runs[-1].start, end, now)
            else:
                runs.append(Run(start, end, now))
        return make(self.text, runs, self.gaps)


def make(text: str, runs: Sequence[Run], gaps: Sequence[Gap]) -> Rich:
    """A Rich with its indexes."""
    return Rich(
        text=text,
        runs=tuple(runs),
        gaps=tuple(gaps),
        run_starts=tuple(run.start for run in runs),
        gap_starts=tuple(gap.start for gap in gaps),
    )


def has(styles: Styles, *kinds: StyleKind) -> bool:
    """Is one of these styles on?"""
    return bool(styles) and any(style.kind in kinds for style in styles)


def verbatim(styles: Styles) -> bool:
    """Is this code, whose every character counts?"""
    return has(styles, "code", "pre")


def common(before: Styles, after: Styles) -> int:
    """How many of the outer styles stay open from one piece to the next."""
    if not before or not after:
        return 0
    count = 0
    for left, right in zip(before, after, strict=False):
        if left != right:
            break
        count += 1
    return count


def _atom(styles: Styles) -> Style | None:
    for style in styles:
        if style.kind in _ATOMIC:
            return style
    return None
