"""Tables as aligned monospace text, for platforms that have none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from channels.render.blocks import Align, Cell, Emphasis, Inline, Link, Strike, Strong, Table, inline_text
from channels.render.measure import display_width

_BAR = " | "


def aligned(table: Table, widest: int) -> str | None:
    """The table with its bars in the same column on every line, wide characters counting 2.

    None when the table is better shown row by row: a line would be wider than `widest` columns and
    wrap, or a cell holds a link, whose address monospace text would lose.
    """
    if any(_holds_link(cell) for row in (table.header, *table.rows) for cell in row):
        return None
    rows = [[_lines(cell) for cell in row] for row in (table.header, *table.rows)]
    widths = [
        max((display_width(line) for row in rows for line in row[column]), default=0)
        for column in range(len(table.header))
    ]
    if sum(widths) + len(_BAR) * (len(widths) - 1) > widest:
        return None
    out: list[str] = []
    for number, row in enumerate(rows):
        for parts in zip_longest(*row, fillvalue=""):
            cells = (_padded(*cell) for cell in zip(parts, widths, table.align, strict=True))
            out.append(_BAR.join(cells).rstrip())
        if number == 0:
            out.append("-|-".join("-" * width for width in widths))
    return "\n".join(out)


def _holds_link(children: Sequence[Inline]) -> bool:
    return any(
        (isinstance(child, Link) and not child.bare)
        or (isinstance(child, Strong | Emphasis | Strike) and _holds_link(child.children))
        for child in children
    )


def _lines(cell: Cell) -> list[str]:
    return [" ".join(line.split()) for line in inline_text(cell).split("\n")]


def _padded(text: str, width: int, align: Align) -> str:
    room = width - display_width(text)
    left = {"left": 0, "right": room, "center": room // 2}[align]
    return " " * left + text + " " * (room - left)
