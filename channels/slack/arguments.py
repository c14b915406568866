"""What a request wants to do, as people read it: its arguments and its preview, whole or shortened, and
the file that holds all of it. Pure.

Arguments are preformatted rich text, which knows no markup and no way out of itself.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from dataclasses import dataclass
from typing import Final

from channels.base import Card
from channels.render.inert import visible
from channels.render.measure import utf16_len
from channels.slack import choices
from channels.slack.blocks import Json, cut, flat, paragraph, preformatted, words

_INDENT: Final = "    "


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgsFile:
    """What does not fit on a card, as a file that people can read, with the hash that the card shows."""

    name: str
    content: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.content)


# ---- all of it, as a file


def file_of(value: Card) -> ArgsFile:
    """All of a card and of its calls, the same whatever has been decided meanwhile."""
    parts = [f"{visible(value.title)}\n{visible(value.summary)}".strip(), *_parts(value)]
    for number, call in enumerate(value.calls, 1):
        inside = [visible(call.summary)] if call.summary.strip() else []
        inside += [*_parts(call), *([f"Code: {flat(call.code)}"] if call.code else [])]
        parts.append(f"{number}. {flat(call.title) or 'Request'}")
        # Moved in, so that nothing in a call can pass for the beginning of the next one.
        parts += [textwrap.indent(part, _INDENT, lambda line: True) for part in inside]
    name = re.sub(r"[^A-Za-z0-9_-]", "", value.code or value.card_id)[:40] or "card"
    kind = "args" if value.kind == "approval" else "question"
    return ArgsFile(name=f"{kind}-{name}.txt", content=("\n\n".join(parts) + "\n").encode())


def _parts(value: Card) -> list[str]:
    parts = [choices.full_list(value)] if value.choices else []
    parts += [f"{visible(field.name)}:\n{visible(field.value)}" for field in value.fields]
    preview = _preview_of(value)
    return parts + ([f"{_caption(value)}\n{preview}"] if preview else [])


# ---- as pieces of rich text


@dataclass(frozen=True, slots=True, kw_only=True)
class Inert:
    """The arguments of a request, as (name, value), and its preview: as text with nothing left to hide in."""

    fields: tuple[tuple[str, str], ...]
    preview: str
    caption: str
    language: str  # of the preview, "" for none

    @property
    def length(self) -> int:
        """How much there is to read, in units."""
        return sum(map(utf16_len, [*(text for field in self.fields for text in field), self.preview]))


def inert(value: Card) -> Inert:
    return Inert(
        fields=tuple((flat(field.name) or "(no name)", visible(field.value)) for field in value.fields),
        preview=_preview_of(value),
        caption=_caption(value),
        language="diff" if value.preview_kind == "diff" else "",
    )


def whole(value: Inert) -> list[Json]:
    """Every argument, its name and all of it, and the preview."""
    shown = [piece for name, text in value.fields for piece in (_name(name), _value(text))]
    return shown + (_preview(value, value.preview) if value.preview else [])


def beginnings(value: Inert, room: int) -> list[Json]:
    """The beginning of each argument and of the preview; `room` units for each of these two."""
    shown = value.fields[: room // 60]
    limit = max(room // len(shown), 20) if shown else 0
    pieces = [piece for name, text in shown for piece in (_name(name, 60), _value(text, limit))]
    if len(value.fields) > len(shown):
        more = len(value.fields) - len(shown)
        what = f"{more} {'more ' if shown else ''}argument{'s' if more > 1 else ''}"
        pieces.append(paragraph(words(f"… and {what}" if shown else what, italic=True)))
    return pieces + (_preview(value, cut(value.preview, room)) if value.preview and room else [])


def _name(name: str, limit: int = 0) -> Json:
    return paragraph(words(f"{cut(name, limit) if limit else name}:", bold=True))


def _value(text: str, limit: int = 0) -> Json:
    """An argument; line ends behind it, which nobody would see, are drawn."""
    if not text:
        return paragraph(words("(empty)", italic=True))
    bare = text.rstrip("\n")
    shown = bare + "↵" * (len(text) - len(bare))
    return preformatted(cut(shown, limit) if limit else shown)


def _preview(value: Inert, shown: str) -> list[Json]:
    return [paragraph(words(value.caption, bold=True)), preformatted(shown, value.language)]


def _preview_of(value: Card) -> str:
    preview = visible(value.preview).rstrip("\n")
    return preview if preview.strip() else ""


def _caption(value: Card) -> str:
    return "What it changes:" if value.preview_kind == "diff" else "Preview:"
