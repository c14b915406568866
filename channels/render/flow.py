"""The block tree as one styled line of text, dressed for a platform.

A `Dress` says what differs between platforms in the words themselves: bullets, headings, which
links can be masked. How styles look is the business of each platform's own file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

from channels.render.blocks import (
    Block,
    Break,
    Code,
    CodeBlock,
    Emphasis,
    Heading,
    Inline,
    Item,
    Link,
    ListBlock,
    Paragraph,
    Quote,
    Rule,
    Strike,
    Strong,
    Table,
    Text,
    inline_text,
)
from channels.render.links import SAFE_SCHEMES, disguised, openable
from channels.render.measure import is_blank, utf16_len
from channels.render.parse import literal, parse
from channels.render.rich import RAW, Gap, Rich, Run, Style, Styles, Weight, has, make
from channels.render.tables import aligned

_RULE = "———"
_BOLD = Style("bold")


def _as_is(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Dress:
    """What one platform's text looks like.

    `headings`: the platform knows `# ` (up to level 3). `longest_address`: UTF-16 units, beyond
    which an address cannot hide behind a label. `masked`: links can have a label. `quiet`
    changes prose so that the platform finds no mention in it.
    """

    bullets: tuple[str, ...] = ("•", "◦", "▪")
    headings: bool = False
    schemes: frozenset[str] = SAFE_SCHEMES
    longest_address: int = 2000
    masked: bool = True
    table_width: int = 100
    quiet: Callable[[str], str] = _as_is


def compose(markdown: str, dress: Dress) -> Rich:
    """Markdown to a styled text. Blank in, blank out; anything else never comes out blank."""
    flow = _Flow(dress)
    flow.blocks(parse(markdown), (), "", 0)
    if is_blank(flow.text) and not is_blank(markdown):
        flow = _Flow(dress)  # only markup, like an empty fence: show what was written
        flow.inline(literal(markdown.strip()), (), "")
    return flow.done()


class _Flow:
    """The text so far. `styles` and `indent` travel down the tree as arguments."""

    def __init__(self, dress: Dress) -> None:
        self.dress = dress
        self._parts: list[str] = []
        self._at = 0
        self._runs: list[Run] = []
        self._gaps: list[Gap] = []

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def done(self) -> Rich:
        return make(self.text, self._runs, self._gaps)

    def emit(self, text: str, styles: Styles) -> None:
        if not text:
            return
        self._parts.append(text)
        end = self._at + len(text)
        if self._runs and self._runs[-1].styles == styles:
            self._runs[-1] = Run(self._runs[-1].start, end, styles)
        else:
            self._runs.append(Run(self._at, end, styles))
        self._at = end

    def gap(self, weight: Weight | None, text: str, styles: Styles, indent: str) -> None:
        """White space before the next block or line; `weight` None: no good place to cut."""
        start = self._at
        self.emit(text, styles)
        self.emit(indent, (*_outer(styles), *RAW))
        if weight is not None:
            self._gaps.append(Gap(start, self._at, weight))

    def blocks(self, blocks: Sequence[Block], styles: Styles, indent: str, depth: int) -> None:
        before: Block | None = None
        for block in blocks:
            if isinstance(block, CodeBlock) and not block.text:
                continue
            if before is not None:
                weight = None if isinstance(before, Heading) else Weight.ITEM if depth else Weight.PARAGRAPH
                spacing = "\n\n" if block.spaced else "\n"
                self.gap(weight, spacing, styles, "" if _at_margin(block) else indent)
            self._block(block, styles, indent, depth)
            before = block

    def _block(self, block: Block, styles: Styles, indent: str, depth: int) -> None:
        match block:
            case Paragraph():
                self.inline(block.children, styles, indent)
            case Heading():
                self._heading(block, styles, indent)
            case CodeBlock():
                self.emit(block.text, (*styles, Style("pre", block.language)))
            case Quote():
                self.blocks(block.blocks, (*styles, Style("quote")), indent, depth)
            case ListBlock():
                self._list(block, styles, indent, depth)
            case Table():
                self._table(block, styles, indent)
            case Rule():
                self.emit(_RULE, (*styles, *RAW))
            case _:
                assert_never(block)

    def _heading(self, heading: Heading, styles: Styles, indent: str) -> None:
        if self.dress.headings and heading.level <= 3 and not indent:
            self.emit("#" * heading.level + " ", (*styles, *RAW))
            self.inline(heading.children, styles, indent)
        else:
            self.inline(heading.children, (*styles, _BOLD), indent)

    def _list(self, block: ListBlock, styles: Styles, indent: str, depth: int) -> None:
        bullet = self.dress.bullets[depth % len(self.dress.bullets)]
        for number, item in enumerate(block.items):
            if number:
                self.gap(Weight.ITEM, "\n\n" if item.spaced else "\n", styles, indent)
            marker = bullet if block.start is None else f"{block.start + number}{block.delimiter}"
            self._item(item, marker, styles, indent, depth)

    def _item(self, item: Item, marker: str, styles: Styles, indent: str, depth: int) -> None:
        inner = indent + " " * (len(marker) + 1)
        if item.checked is not None:
            box = "☑" if item.checked else "☐"
            native = marker in "-*+" or marker[0].isdigit()
            marker = f"{marker} {box}" if native else box
        own_line = bool(item.blocks) and _at_margin(item.blocks[0])
        self.emit(marker if own_line or not item.blocks else marker + " ", (*styles, *RAW))
        if own_line:
            self.emit("\n", styles)
        self.blocks(item.blocks, styles, inner, depth + 1)

    def _table(self, table: Table, styles: Styles, indent: str) -> None:
        text = aligned(table, self.dress.table_width)
        if text is not None:
            self.emit(text, (*styles, Style("pre")))
            return
        for number, row in enumerate(table.rows):
            if number:
                self.gap(Weight.PARAGRAPH, "\n\n", styles, indent)
            for column, (name, cell) in enumerate(zip(table.header, row, strict=True)):
                if column:
                    self.gap(Weight.LINE, "\n", styles, indent)
                if name:
                    self.inline(name, (*styles, _BOLD), indent)
                    self.emit(": ", styles)
                self.inline(cell, styles, indent)
        if not table.rows:
            for column, name in enumerate(table.header):
                if column:
                    self.gap(Weight.LINE, "\n", styles, indent)
                self.inline(name, (*styles, _BOLD), indent)

    def inline(self, children: Sequence[Inline], styles: Styles, indent: str) -> None:
        for child in children:
            match child:
                case Text(text=text):
                    self.emit(text if has(styles, "link", "address") else self.dress.quiet(text), styles)
                case Code(text=text):
                    self.emit(text, (*styles, Style("code")))
                case Break():
                    self.gap(Weight.LINE, "\n", styles, indent)
                case Strong():
                    self.inline(child.children, _with(styles, _BOLD), indent)
                case Emphasis():
                    self.inline(child.children, _with(styles, Style("italic")), indent)
                case Strike():
                    self.inline(child.children, _with(styles, Style("strike")), indent)
                case Link():
                    self._link(child, styles, indent)
                case _:
                    assert_never(child)

    def _link(self, link: Link, styles: Styles, indent: str) -> None:
        label = inline_text(link.children)
        shown = link.href.removeprefix("mailto:")
        fits = utf16_len(link.href) <= self.dress.longest_address
        live = openable(link.href, self.dress.schemes) and fits
        bare = link.bare or label.strip() in (link.href, shown)
        honest = not disguised(label, link.href)
        if live and bare and honest:
            self.emit(label, (*styles, Style("address", link.href)))
        elif live and honest and self.dress.masked and not is_blank(label):
            self.inline(link.children, (*styles, Style("link", link.href)), indent)
        else:
            self.inline(link.children, styles, indent)
            if link.href.startswith("#") or (bare and honest):
                return
            self.emit(" (", styles)
            self.emit(shown, (*styles, Style("address", link.href)) if live else styles)
            self.emit(")", styles)


def _with(styles: Styles, style: Style) -> Styles:
    return styles if style in styles else (*styles, style)


def _outer(styles: Styles) -> Styles:
    return tuple(style for style in styles if style.kind == "quote")


def _at_margin(block: Block) -> bool:
    """Monospace blocks start their own line and take no indent: their text stays as it is."""
    return isinstance(block, CodeBlock | Table)
