"""What a request wants to do, as people read it: its arguments and its preview, whole or shortened. Pure.

Arguments are preformatted rich text, which knows no markup and no way out of itself.
"""

from __future__ import annotations

from channels.render.arguments import Inert
from channels.render.measure import cut
from channels.slack.blocks import Json, paragraph, preformatted, words


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
