"""What a request wants to do, as text with nothing left to hide in, and the file that holds all of it.
Pure. How a message shows it, each platform says."""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from channels.base import Card
from channels.render.inert import flat, visible
from channels.render.measure import utf16_len

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


def file_of(value: Card, listed: Callable[[Card], str]) -> ArgsFile:
    """All of a card and of its calls, the same whatever has been decided meanwhile. listed: the options
    of a card that has some, in words."""
    parts = [f"{visible(value.title)}\n{visible(value.summary)}".strip(), *_parts(value, listed)]
    for number, call in enumerate(value.calls, 1):
        inside = [visible(call.summary)] if call.summary.strip() else []
        inside += [*_parts(call, listed), *([f"Code: {flat(call.code)}"] if call.code else [])]
        parts.append(f"{number}. {flat(call.title) or 'Request'}")
        # Moved in, so that nothing in a call can pass for the beginning of the next one.
        parts += [textwrap.indent(part, _INDENT, lambda line: True) for part in inside]
    name = re.sub(r"[^A-Za-z0-9_-]", "", value.code or value.card_id)[:40] or "card"
    kind = "args" if value.kind == "approval" else "question"
    return ArgsFile(name=f"{kind}-{name}.txt", content=("\n\n".join(parts) + "\n").encode())


def _parts(value: Card, listed: Callable[[Card], str]) -> list[str]:
    parts = [listed(value)] if value.choices else []
    parts += [f"{visible(field.name)}:\n{visible(field.value)}" for field in value.fields]
    preview = _preview_of(value)
    return parts + ([f"{_caption(value)}\n{preview}"] if preview else [])


# ---- for a message


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


def inert_of(value: Card) -> Inert:
    return Inert(
        fields=tuple((flat(field.name) or "(no name)", visible(field.value)) for field in value.fields),
        preview=_preview_of(value),
        caption=_caption(value),
        language="diff" if value.preview_kind == "diff" else "",
    )


def _preview_of(value: Card) -> str:
    preview = visible(value.preview).rstrip("\n")
    return preview if preview.strip() else ""


def _caption(value: Card) -> str:
    return "What it changes:" if value.preview_kind == "diff" else "Preview:"
