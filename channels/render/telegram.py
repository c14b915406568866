"""Markdown for Telegram: text with entities, and the same as HTML.

Entities are what is sent: text that needs no escaping cannot fail to parse. Offsets and lengths
are UTF-16 units of the text. Telegram's rules for nesting are kept: code and pre hold nothing and
are held by nothing but a quote, quotes are never nested, and of two that overlap one lies inside
the other.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import regex

from channels.render.flow import Dress, compose
from channels.render.measure import utf16_len
from channels.render.rich import Piece, Rich, Style, Styles, common, has
from channels.render.split import cut_up, trimmed

TEXT_LIMIT = 4096
ENTITY_LIMIT = 100

EntityType = Literal["bold", "italic", "strikethrough", "code", "pre", "text_link", "blockquote"]

_ENTITY: dict[str, EntityType] = {
    "bold": "bold",
    "italic": "italic",
    "strike": "strikethrough",
    "code": "code",
    "pre": "pre",
    "link": "text_link",
    "quote": "blockquote",
}
_TAGS = {"bold": "b", "italic": "i", "strike": "s", "code": "code", "quote": "blockquote"}
_MENTION = regex.compile(r"(?<![\w/.@])@(?=\w|$)")


@dataclass(frozen=True, slots=True)
class Entity:
    """One entity as the Bot API has it. `offset` and `length` in UTF-16 units."""

    type: EntityType
    offset: int
    length: int
    url: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class TelegramText:
    """The words of one message and their entities, by offset, the outer one first."""

    text: str
    entities: tuple[Entity, ...] = ()


def telegram_text(markdown: str) -> TelegramText:
    """The whole text as one message, whatever its length."""
    return _with_entities(trimmed(_compose(markdown)))


def telegram_messages(markdown: str, limit: int = TEXT_LIMIT) -> list[TelegramText]:
    """The text as messages of at most `limit` UTF-16 units and 100 entities; blank gives []."""
    return cut_up(_compose(markdown), _EntityMedium(limit))


def telegram_html(markdown: str) -> str:
    """The whole text in the HTML that Telegram's parse mode takes."""
    return _html(trimmed(_compose(markdown)))


def telegram_html_messages(markdown: str, limit: int = TEXT_LIMIT) -> list[str]:
    """HTML messages of at most `limit` UTF-16 units, tags and escapes counted: the strictest
    reading of the limit, and far below the server's limit of 32,768 raw bytes."""
    return cut_up(_compose(markdown), _HtmlMedium(limit))


def quiet(text: str) -> str:
    """Prose in which Telegram finds no `@name` to notify: a word joiner, unseen, after the sign."""
    return _MENTION.sub("@\u2060", text) if "@" in text else text


_DRESS = Dress(schemes=frozenset({"http", "https"}), quiet=quiet)


def _compose(markdown: str) -> Rich:
    return compose(markdown, _DRESS).restyled(_restyled)


def _restyled(styles: Styles) -> Styles:
    """What Telegram's nesting rules leave of a stack of styles."""
    kept: list[Style] = []
    for style in styles:
        if style.kind in ("raw", "address") or any(style.kind == other.kind for other in kept):
            continue
        kept.append(style)
    if has(tuple(kept), "pre"):
        return tuple(style for style in kept if style.kind in ("quote", "pre"))
    if has(tuple(kept), "code") and has(tuple(kept), "link"):
        return tuple(style for style in kept if style.kind != "code")
    if has(tuple(kept), "code"):
        return tuple(style for style in kept if style.kind in ("quote", "code"))
    return tuple(kept)


class _EntityMedium:
    most_styles = ENTITY_LIMIT

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def text_cost(self, text: str, styles: Styles) -> int:
        return utf16_len(text)

    def style_cost(self, style: Style) -> int:
        return 0

    def weight(self, style: Style) -> int:
        return 1

    def render(self, pieces: Iterator[Piece]) -> TelegramText:
        return _with_entities(pieces)

    def size(self, rendered: TelegramText) -> int:
        return utf16_len(rendered.text)


class _HtmlMedium:
    most_styles = ENTITY_LIMIT

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def text_cost(self, text: str, styles: Styles) -> int:
        return utf16_len(_escaped(text))

    def style_cost(self, style: Style) -> int:
        return utf16_len("".join(_tags(style)))

    def weight(self, style: Style) -> int:
        return 1

    def render(self, pieces: Iterator[Piece]) -> str:
        return _html(pieces)

    def size(self, rendered: str) -> int:
        return utf16_len(rendered)


def _with_entities(pieces: Iterator[Piece]) -> TelegramText:
    parts: list[str] = []
    done: list[Entity] = []
    opened: list[tuple[Style, int]] = []
    at = 0
    for text, styles in pieces:
        if opened or styles:
            keep = common(tuple(style for style, _ in opened), styles)
            _close(opened, keep, at, done)
            opened += ((style, at) for style in styles[keep:])
        parts.append(text)
        at += utf16_len(text)
    _close(opened, 0, at, done)
    done.reverse()  # an outer entity is closed after those inside it
    done.sort(key=lambda entity: (entity.offset, -entity.length))
    return TelegramText("".join(parts), tuple(done))


def _close(opened: list[tuple[Style, int]], keep: int, at: int, done: list[Entity]) -> None:
    while len(opened) > keep:
        (kind, arg), start = opened.pop()
        if at > start:
            url = arg if kind == "link" else None
            language = arg or None if kind == "pre" else None
            done.append(Entity(_ENTITY[kind], start, at - start, url, language))


def _html(pieces: Iterator[Piece]) -> str:
    parts: list[str] = []
    opened: Styles = ()
    for text, styles in pieces:
        keep = common(opened, styles)
        parts += (_tags(style)[1] for style in reversed(opened[keep:]))
        parts += (_tags(style)[0] for style in styles[keep:])
        parts.append(_escaped(text))
        opened = styles
    parts += (_tags(style)[1] for style in reversed(opened))
    return "".join(parts)


def _tags(style: Style) -> tuple[str, str]:
    if style.kind == "link":
        return f'<a href="{html.escape(style.arg)}">', "</a>"
    if style.kind == "pre":
        if style.arg:
            return f'<pre><code class="language-{html.escape(style.arg)}">', "</code></pre>"
        return "<pre>", "</pre>"
    name = _TAGS[style.kind]
    return f"<{name}>", f"</{name}>"


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)
