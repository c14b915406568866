"""The pieces that cards are made of: Components V2 with inert text. Pure.

Text that a model or a person wrote stands either escaped in running text or in a code block that it
cannot end. Discord knows code blocks of exactly three backticks, so of three in a row inside one every
third is spelled out: no fence could be longer than those that it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from channels.base import Button, unpack_press
from channels.discord.limits import COMPONENTS, DISPLAY, LIMITS, OPTION, PLACEHOLDER, ROW
from channels.render.discord import escape_discord
from channels.render.inert import escaped, flat
from channels.render.measure import cut, utf16_len

Json = dict[str, Any]

_ROW, _BUTTON, _SELECT, _TEXT, _FILE, _SEPARATOR, _CONTAINER = 1, 2, 3, 10, 13, 14, 17
_STYLES: Final = {"primary": 3, "danger": 4, "plain": 2}  # primary is green: it lets something run
_FENCE: Final = "```"
_NO_FENCE: Final = "``" + escaped("`")
_CODE: Final = re.compile(r"[\w.-]+", re.ASCII)


# ---- words


def bold(text: str) -> str:
    """Bold words; several lines stay plain, for marks do not reach over a blank line."""
    words = escape_discord(text.strip())
    return words if "\n" in words or not words else f"**{words}**"


def small(line: str) -> str:
    """A line of small grey text, of words that are Markdown already."""
    return f"-# {line}"


def code(text: str) -> str:
    """Something to copy: a code or a hash."""
    return f"`{text}`" if _CODE.fullmatch(text) else escape_discord(flat(text))


def fenced(shown: str, limit: int = 0, language: str = "") -> str:
    """Inert text as it is, in a block that it cannot end. limit: units of which no more are shown, 0 for
    all. Line ends at either end, which nobody would see, are drawn."""
    if not shown:
        return "*(empty)*"
    bare = shown.strip("\n")
    before = len(shown) - len(shown.lstrip("\n")) if bare else 0
    shown = "↵" * before + bare + "↵" * (len(shown) - before - len(bare))
    shown = cut(shown, limit) if limit else shown
    return f"{_FENCE}{language}\n{shown.replace(_FENCE, _NO_FENCE)}\n{_FENCE}"


# ---- components


def text(content: str) -> Json:
    return {"type": _TEXT, "content": content}


def separator() -> Json:
    return {"type": _SEPARATOR, "divider": True, "spacing": 1}


def attached(name: str) -> Json:
    """A file of this message, shown as one."""
    return {"type": _FILE, "file": {"url": f"attachment://{name}"}}


def container(colour: int, children: Sequence[Json]) -> Json:
    return {"type": _CONTAINER, "accent_color": colour, "components": list(children)}


def button(label: str, custom_id: str, tone: str = "plain") -> Json:
    words = cut(flat(label), LIMITS.button_label) or "?"
    return {"type": _BUTTON, "style": _STYLES[tone], "label": words, "custom_id": custom_id}


def menu(custom_id: str, words: str, options: Sequence[tuple[str, str]]) -> Json:
    """A select in which one option is chosen. words: what it says before that. options: (label, value)."""
    return {
        "type": _SELECT,
        "custom_id": custom_id,
        "placeholder": cut(words, PLACEHOLDER),
        "min_values": 1,
        "max_values": 1,
        "options": [{"label": cut(flat(label), OPTION) or "?", "value": value} for label, value in options],
    }


def row(*children: Json) -> Json:
    return {"type": _ROW, "components": list(children)}


def rows(buttons: Sequence[Json]) -> list[Json]:
    """As many rows as the buttons need; none for none."""
    return [row(*buttons[at : at + ROW]) for at in range(0, len(buttons), ROW)]


def refuses(value: Button) -> bool:
    """Whether a button lets nothing run: a no, which people may say without having read everything."""
    packed = unpack_press(value.data)
    if value.harmless or value.tone == "danger":
        return True
    return packed is not None and packed[1].startswith(("deny", "cancel"))


# ---- measures


def walk(components: Sequence[Json]) -> Iterator[Json]:
    """Every component, those inside others too."""
    for component in components:
        yield component
        yield from walk(component.get("components", ()))


def fits(components: Sequence[Json]) -> bool:
    """Whether Discord takes these as one message."""
    everything = list(walk(components))
    shown = sum(utf16_len(c["content"]) for c in everything if c["type"] == _TEXT)
    return len(everything) <= COMPONENTS and shown <= DISPLAY
