"""Markdown text to the block tree.

The dialect is what models write: CommonMark with tables, strike-through and task lists, lenient
as `lenient` says. Nothing is ever dropped: raw HTML is text, a link definition that nothing
refers to is shown, and nesting too deep to draw is shown as written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block.table import escapedSplit
from markdown_it.token import Token

from channels.render.blockrules import QuickBlocks
from channels.render.blocks import (
    Align,
    Block,
    Break,
    Cell,
    CodeBlock,
    Heading,
    Inline,
    Item,
    Link,
    ListBlock,
    Paragraph,
    Quote,
    Rule,
    Table,
    Text,
)
from channels.render.inert import tame
from channels.render.inlines import inlines
from channels.render.lenient import LenientInline

_DEEPEST = 60
_OPTIONS = {"html": False, "maxNesting": _DEEPEST + 10, "inline_definitions": True, "store_labels": True}
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")
_TASK = re.compile(r"\[([ xX])\](?:[ \t]+|$)")
_LINE_BREAK_TAG = re.compile(r"<br\s*/?>", re.IGNORECASE)
_MARKERS = " \t>"


def _parser() -> MarkdownIt:
    md = MarkdownIt("commonmark", _OPTIONS)
    md.block, md.inline = QuickBlocks(), LenientInline()
    md.core.ruler.enableOnly(["block"])  # `_clean` normalizes, `_Reader` asks for the inline pieces
    return md


_PARSER = _parser()


def parse(markdown: str) -> tuple[Block, ...]:
    """The tree of one text. Never raises for any string; lone surrogates become U+FFFD."""
    source = _clean(markdown)
    env: dict[str, Any] = {}  # the parser keeps the link definitions here
    tokens = _PARSER.parse(source, env)
    if any(token.level >= _DEEPEST for token in tokens):
        return _as_written(source)
    return _Reader(tokens, source, env).blocks()


def _clean(markdown: str) -> str:
    text = markdown.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _as_written(source: str) -> tuple[Block, ...]:
    paragraphs = [part for part in re.split(r"\n\s*\n", source.strip()) if part]
    return tuple(
        Paragraph(children=literal(part), spaced=number > 0) for number, part in enumerate(paragraphs)
    )


def literal(text: str) -> tuple[Inline, ...]:
    """Text taken as it is, markup characters included, line by line."""
    out: list[Inline] = []
    for number, line in enumerate(text.split("\n")):
        if number:
            out.append(Break())
        if line:
            out.append(Text(text=tame(line)))
    return tuple(out)


class _Reader:
    """One pass over the flat token list. `at` is the next token."""

    def __init__(self, tokens: Sequence[Token], source: str, env: dict[str, Any]) -> None:
        self.tokens = tokens
        self.env = env
        self.lines = source.split("\n")
        self.at = 0
        self.below: tuple[Inline, ...] = ()  # text that the last table swallowed
        self.hidden = False  # an empty line stood before what is not shown
        self.used = self._used_labels() if "references" in env else set()

    def _used_labels(self) -> set[str]:
        """The labels of definitions to which a link refers. Only here all inline tokens live at once."""
        used: set[str] = set()
        for token in self.tokens:
            if token.type == "inline":
                token.children = _inline_tokens(token.content, self.env)
                used.update(
                    child.meta["label"]
                    for child in token.children
                    if child.type == "link_open" and "label" in child.meta
                )
        return used

    def blocks(self, until: str = "") -> tuple[Block, ...]:
        """The blocks up to the closing token `until`, which is consumed."""
        out: list[Block] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token.type == until:
                break
            block = self._block(token)
            if block is not None:
                out.append(block)
            if self.below:
                out.append(Paragraph(children=self.below))
                self.below = ()
        return tuple(out)

    def _block(self, token: Token) -> Block | None:
        spaced = self._spaced(token)
        match token.type:
            case "paragraph_open":
                return Paragraph(children=self._inline("paragraph_close"), spaced=spaced)
            case "heading_open":
                children = self._inline("heading_close")
                return Heading(level=int(token.tag[1]), children=children, spaced=spaced)
            case "fence" | "code_block":
                return _code_block(token, spaced)
            case "blockquote_open":
                return Quote(blocks=self.blocks("blockquote_close"), spaced=spaced)
            case "bullet_list_open":
                return ListBlock(items=self._items("bullet_list_close"), spaced=spaced)
            case "ordered_list_open":
                start = token.attrGet("start")
                items = self._items("ordered_list_close")
                number = 1 if start is None else int(start)
                return ListBlock(items=items, start=number, delimiter=token.markup or ".", spaced=spaced)
            case "table_open":
                return self._table(spaced)
            case "hr":
                return Rule(spaced=spaced)
            case "definition":
                return self._definition(token, spaced)
            case other:
                raise AssertionError(f"unknown block token {other}")

    def _spaced(self, token: Token) -> bool:
        line = token.map[0] - 1 if token.map else -1
        spaced = self.hidden or (line >= 0 and not self.lines[line].strip(_MARKERS))
        self.hidden = False
        return spaced

    def _inline(self, until: str) -> tuple[Inline, ...]:
        children: tuple[Inline, ...] = ()
        while (token := self.tokens[self.at]).type != until:
            children = inlines(token.children or _inline_tokens(token.content, self.env))
            self.at += 1
        self.at += 1
        return children

    def _items(self, until: str) -> tuple[Item, ...]:
        items: list[Item] = []
        while (token := self.tokens[self.at]).type != until:
            self.at += 1
            spaced = self._spaced(token)
            checked, blocks = _task(self.blocks("list_item_close"))
            items.append(Item(blocks=blocks, checked=checked, spaced=spaced))
        self.at += 1
        return tuple(items)

    def _table(self, spaced: bool) -> Table:
        rows: list[list[Cell]] = []
        lines: list[str] = []
        align: list[Align] = []
        while (token := self.tokens[self.at]).type != "table_close":
            self.at += 1
            if token.type == "tr_open":
                rows.append([])
                lines.append(self.lines[token.map[0]] if token.map else "|")
            elif token.type in ("th_open", "td_open"):
                if token.type == "th_open":
                    align.append(_alignment(str(token.attrGet("style") or "")))
                rows[-1].append(_cell(self._inline(token.type.replace("open", "close"))))
        self.at += 1
        while len(align) > 1 and len(rows) > 1 and "|" not in lines[len(rows) - 1]:
            # A line right below that has no bar is not meant to be a row.
            cells = rows.pop()
            self.below = (*cells[0], Break(), *self.below) if self.below else cells[0]
        header, *body = (
            _with_rest(row, line) if number else tuple(row)
            for number, (row, line) in enumerate(zip(rows, lines, strict=False))
        )
        return Table(header=header, rows=tuple(body), align=tuple(align), spaced=spaced)

    def _definition(self, token: Token, spaced: bool) -> Paragraph | None:
        if token.meta["id"] in self.used:
            self.used.discard(token.meta["id"])  # a second definition of the same label counts for nothing
            self.hidden = spaced
            return None
        url = str(token.meta["url"])
        label = Text(text=tame(f"[{token.meta['label']}]: ".replace("\n", " ")))
        return Paragraph(
            children=(label, Link(href=url, children=(Text(text=tame(url)),), bare=True)), spaced=spaced
        )


def _code_block(token: Token, spaced: bool) -> CodeBlock:
    language = token.info.strip().split(maxsplit=1)[:1]
    word = language[0] if language and _LANGUAGE.fullmatch(language[0]) else ""
    return CodeBlock(text=token.content.removesuffix("\n"), language=word, spaced=spaced)


def _alignment(style: str) -> Align:
    if style.endswith("right"):
        return "right"
    return "center" if style.endswith("center") else "left"


def _task(blocks: tuple[Block, ...]) -> tuple[bool | None, tuple[Block, ...]]:
    """Takes `[ ] ` or `[x] ` off the front of an item."""
    match blocks:
        case (Paragraph(children=(Text(text=text), *rest)) as first, *others):
            found = _TASK.match(text)
            if found is None:
                return None, blocks
            left = text[found.end() :]
            children = (Text(text=left), *rest) if left else tuple(rest)
            return found[1] != " ", (Paragraph(children=children, spaced=first.spaced), *others)
        case _:
            return None, blocks


def _cell(children: tuple[Inline, ...]) -> Cell:
    """A cell's pieces; `<br>` is the only way to write a second line there, so it is one."""
    out: list[Inline] = []
    for child in children:
        if not isinstance(child, Text) or "<" not in child.text:
            out.append(child)
            continue
        for number, part in enumerate(_LINE_BREAK_TAG.split(child.text)):
            if number:
                out.append(Break())
            if part:
                out.append(Text(text=part))
    return tuple(out)


def _with_rest(row: Sequence[Cell], line: str) -> tuple[Cell, ...]:
    """The row's cells; what the line holds beyond the last column goes into the last cell."""
    parts = escapedSplit(line.strip(_MARKERS))
    if parts and not parts[0].strip():
        parts = parts[1:]
    if parts and not parts[-1].strip():
        parts = parts[:-1]
    rest = [part.strip() for part in parts[len(row) :] if part.strip()]
    if not rest:
        return tuple(row)
    return (*row[:-1], (*row[-1], *inlines(_inline_tokens(" | ".join(("", *rest)), {}))))


def _inline_tokens(content: str, env: dict[str, Any]) -> list[Token]:
    return _PARSER.inline.parse(content, _PARSER, env, [])
