"""What a request wants to do, as people read it: its arguments and its preview, whole or shortened, as
Markdown. Pure."""

from __future__ import annotations

from typing import Final

from channels.discord.components import bold, fenced
from channels.render.arguments import Inert
from channels.render.measure import cut

_NAME: Final = 40  # units of an argument's name where only beginnings are shown
_EACH: Final = 80  # units that the beginning of one argument takes at least, name and fence included


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
