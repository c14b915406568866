"""What a request wants to do, as people read it: its arguments and its preview, whole or shortened, and
the file that holds all of it. Pure."""

from __future__ import annotations

import hashlib
import re
import textwrap
from dataclasses import dataclass
from typing import Final

from channels.base import Card
from channels.discord import choices
from channels.discord.components import bold, cut, fenced, flat
from channels.render.inert import visible
from channels.render.measure import utf16_len

_INDENT: Final = "    "
_NAME: Final = 40  # units of an argument's name where only beginnings are shown
_EACH: Final = 80  # units that the beginning of one argument takes at least, name and fence included


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


# ---- as Markdown


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


def whole(value: Inert) -> list[str]:
    """Every argument, its name and all of it, and the preview."""
    shown = [f"{bold(f'{name}:')}\n{fenced(text)}" for name, text in value.fields]
    return shown + ([_preview(value, 0)] if value.preview else [])


def beginnings(value: Inert, room: int) -> list[str]:
    """The beginnings of some arguments and of the preview; `room` units for all of it."""
    own = room if not value.preview else room // 2
    shown = value.fields[: own // _EACH]
    each = max(own // max(len(shown), 1) - _EACH // 2, _EACH // 4)
    lines = [f"{bold(f'{cut(name, _NAME)}:')}\n{fenced(text, each)}" for name, text in shown]
    if len(value.fields) > len(shown):
        more = len(value.fields) - len(shown)
        noun = "argument" if more == 1 else "arguments"
        lines.append(f"*… and {more} more {noun}*" if shown else f"*{more} {noun}*")
    spare = room - own if value.fields else room
    return lines + ([_preview(value, spare - _EACH // 2)] if value.preview and spare > _EACH else [])


def _preview(value: Inert, limit: int) -> str:
    return f"{bold(value.caption)}\n{fenced(value.preview, limit, value.language)}"


def _preview_of(value: Card) -> str:
    preview = visible(value.preview).rstrip("\n")
    return preview if preview.strip() else ""


def _caption(value: Card) -> str:
    return "What it changes:" if value.preview_kind == "diff" else "Preview:"
