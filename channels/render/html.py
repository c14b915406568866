"""Markdown as HTML for the web page, safe by construction.

Only the tags written in this file can appear, each with only the attributes written here; every
text goes through one escape. Links open http, https and mailto, in a new tab that learns nothing.
Nothing is ever loaded because a model wrote it: an image is a link.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import assert_never

from channels.render.blocks import (
    Align,
    Block,
    Break,
    Cell,
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
from channels.render.links import disguised, openable
from channels.render.parse import parse

_ALIGNED: dict[Align, str] = {"left": "", "center": ' class="center"', "right": ' class="right"'}


def safe_html(markdown: str) -> str:
    """The text as HTML: p, h1 to h6, ul, ol, li, blockquote, pre, code, table parts, hr, strong, em,
    del, br, a. Blank in, empty out."""
    return "\n".join(_block(block) for block in parse(markdown))


def _block(block: Block) -> str:
    match block:
        case Paragraph():
            return f"<p>{_inline(block.children)}</p>"
        case Heading():
            return f"<h{block.level}>{_inline(block.children)}</h{block.level}>"
        case CodeBlock():
            marked = f' class="language-{escape(block.language)}"' if block.language else ""
            return f"<pre><code{marked}>{escape(block.text)}</code></pre>"
        case Quote():
            return f"<blockquote>{_blocks(block.blocks)}</blockquote>"
        case ListBlock():
            return _list(block)
        case Table():
            return _table(block)
        case Rule():
            return "<hr>"
        case _:
            assert_never(block)


def _blocks(blocks: Sequence[Block]) -> str:
    return "\n".join(_block(block) for block in blocks)


def _list(block: ListBlock) -> str:
    items = "\n".join(_item(item) for item in block.items)
    if block.start is None:
        return f"<ul>\n{items}\n</ul>"
    start = f' start="{block.start}"' if block.start != 1 else ""
    return f"<ol{start}>\n{items}\n</ol>"


def _item(item: Item) -> str:
    box = "" if item.checked is None else "☑ " if item.checked else "☐ "
    tight = not any(block.spaced for block in item.blocks[1:])
    parts = [
        _inline(block.children) if tight and isinstance(block, Paragraph) else _block(block)
        for block in item.blocks
    ]
    return f"<li>{box}{chr(10).join(parts)}</li>"


def _table(table: Table) -> str:
    head = _row(table.header, table.align, "th")
    body = "\n".join(_row(row, table.align, "td") for row in table.rows)
    return f"<table>\n<thead>\n{head}\n</thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _row(cells: Sequence[Cell], align: Sequence[Align], tag: str) -> str:
    drawn = (
        f"<{tag}{_ALIGNED[side]}>{_inline(cell)}</{tag}>" for cell, side in zip(cells, align, strict=True)
    )
    return f"<tr>{''.join(drawn)}</tr>"


def _inline(children: Sequence[Inline]) -> str:
    return "".join(_piece(child) for child in children)


def _piece(child: Inline) -> str:
    match child:
        case Text(text=text):
            return escape(text)
        case Code(text=text):
            return f"<code>{escape(text)}</code>"
        case Break():
            return "<br>\n"
        case Strong():
            return f"<strong>{_inline(child.children)}</strong>"
        case Emphasis():
            return f"<em>{_inline(child.children)}</em>"
        case Strike():
            return f"<del>{_inline(child.children)}</del>"
        case Link():
            return _link(child)
        case _:
            assert_never(child)


def _link(link: Link) -> str:
    label = _inline(link.children)
    shown = escape(link.href.removeprefix("mailto:"))
    honest = not disguised(inline_text(link.children), link.href)
    if not openable(link.href):
        return label if link.bare or link.href.startswith("#") else f"{label} ({shown})"
    if honest and inline_text(link.children).strip():
        return _anchor(link.href, label)
    return f"{label} ({_anchor(link.href, shown)})"


def _anchor(href: str, label: str) -> str:
    return f'<a href="{escape(href)}" target="_blank" rel="noopener noreferrer">{label}</a>'
