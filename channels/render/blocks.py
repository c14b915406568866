"""The tree that Markdown becomes: blocks of inline pieces, nothing of any platform.

    Document = tuple of blocks
    Paragraph | Heading | CodeBlock | Quote | ListBlock > Item | Table | Rule
    Text | Code | Break | Strong | Emphasis | Strike | Link

`spaced` on a block says that the author left an empty line before it.
Text is already safe to show: control and direction-changing characters are spelled out. Code is
byte for byte what the author wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Align = Literal["left", "center", "right"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Words without markup; never a newline."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A code span."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A line break inside a paragraph. Chat readers expect every one of them to be kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strong:
    """Bold."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Emphasis:
    """Italic."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """Struck through."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link, also what an image becomes. `bare`: the text is the address itself."""

    href: str
    children: tuple[Inline, ...]
    bare: bool = False


Inline = Text | Code | Break | Strong | Emphasis | Strike | Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """Running text."""

    children: tuple[Inline, ...]
    spaced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """`level` is 1 to 6."""

    level: int
    children: tuple[Inline, ...]
    spaced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeBlock:
    """Code, without the newline before the closing fence. `language` is "" or a plain word."""

    text: str
    language: str = ""
    spaced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A block quote."""

    blocks: tuple[Block, ...]
    spaced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One list item. `checked` is None unless it is a task."""

    blocks: tuple[Block, ...]
    checked: bool | None = None
    spaced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListBlock:
    """A list. `start` is None for bullets; `delimiter` follows the number, `.` or `)`."""

    items: tuple[Item, ...]
    start: int | None = None
    delimiter: str = "."
    spaced: bool = False


Cell = tuple[Inline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; every row has as many cells as the header."""

    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    align: tuple[Align, ...]
    spaced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A thematic break."""

    spaced: bool = False


Block = Paragraph | Heading | CodeBlock | Quote | ListBlock | Table | Rule


def inline_text(children: Sequence[Inline]) -> str:
    """The words of inline pieces without any markup; breaks become newlines."""
    parts: list[str] = []
    for child in children:
        match child:
            case Text(text=text) | Code(text=text):
                parts.append(text)
            case Break():
                parts.append("\n")
            case Strong() | Emphasis() | Strike() | Link():
                parts.append(inline_text(child.children))
    return "".join(parts)
