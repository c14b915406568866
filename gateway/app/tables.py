"""Lists on the command line: whole, however wide the window is. Nothing that somebody has to copy is cut."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from channels.render.inert import visible

WIDE = 120  # columns from which a table may fold its cells; below that each row is a block of lines


def show(
    columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", console: Console | None = None
) -> None:
    """Print rows to standard output: a table where it fits, else one block of lines for each row. Where
    nobody looks at a window, lines are as long as they need to be."""
    console = console or Console()
    table = _table(columns, rows, title)
    natural = Measurement.get(console, console.options.update(max_width=100_000), table).maximum
    if not console.is_terminal:
        console.width = max(natural, console.width)
    if natural <= console.width or console.width >= WIDE:
        console.print(table)
    else:
        console.print(_blocks(columns, rows, title), end="", soft_wrap=True)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> Table:
    table = Table(title=Text(visible(title)) if title else None, title_justify="left")
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table


def _blocks(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> Text:
    widest = max(map(len, columns))
    text = Text()
    if title:
        text.append(f"{visible(title)}\n", style="italic")
    for number, row in enumerate(rows):
        text.append("\n" if number else "")
        for name, cell in zip(columns, row, strict=True):
            text.append(f"{name:<{widest}}  ", style="bold")
            text.append(f"{visible(cell)}\n")
    return text
