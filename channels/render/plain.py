"""Markdown as plain text: for a terminal, and where a platform refuses everything else."""

from __future__ import annotations

from channels.render.flow import Dress, compose
from channels.render.inert import without_controls
from channels.render.rich import has
from channels.render.split import trimmed

_DRESS = Dress(masked=False)


def plain_text(markdown: str) -> str:
    """The words alone: lists with bullets, tables aligned, quotes behind `> `, addresses after
    their labels. Control characters, in code too, are spelled out: a terminal would obey them."""
    parts: list[str] = []
    fresh = True  # at the start of a line
    for text, styles in trimmed(compose(markdown, _DRESS)):
        quotes = 0 if has(styles, "pre") else sum(style.kind == "quote" for style in styles)
        prefix = "> " * quotes
        lines = without_controls(text).split("\n")
        for number, line in enumerate(lines):
            if number:
                parts.append("\n")
                fresh = True
            # The newline that ends a line belongs to the piece before it: no prefix for what follows yet.
            if fresh and prefix and (line or number < len(lines) - 1) and not (number == 0 and not line):
                parts.append(prefix if line else prefix.rstrip())
            parts.append(line)
            fresh = fresh and not line
    return "".join(parts)
