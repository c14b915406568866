"""The options of a question: which control offers them, and how they are told apart. Pure.

Labels that are too long to be read in a control, or equal to one another in it, are numbered; their
full texts are then listed in the message, or in a file.
"""

from __future__ import annotations

from typing import Final, Literal

from channels.base import Card, Choice
from channels.discord.components import Json, button, row, rows
from channels.discord.limits import OPTION, OPTIONS, PLACEHOLDER
from channels.discord.refs import many_id, page_id, pick_id
from channels.render.inert import flat
from channels.render.measure import cut, utf16_len

Style = Literal["buttons", "labels", "numbered"]
"""A button for each option; a select of their labels; a select of numbers and the labels' beginnings."""

_SELECT: Final = 3
_BUTTONS: Final = 5  # more options than this are a select
_SHORT: Final = 36  # units of a label that a button shows in full
_READABLE: Final = 80  # and a select
_CHOSEN: Final = 200  # units of what is told about choices on other pages


def style(card: Card) -> Style:
    """How to offer these options."""
    shown = [flat(choice.label) for choice in card.choices]
    if len(set(shown)) < len(shown) or not all(0 < utf16_len(label) <= _READABLE for label in shown):
        return "numbered"
    if not card.multi and len(shown) <= _BUTTONS and all(utf16_len(label) <= _SHORT for label in shown):
        return "buttons"
    return "labels"


def pages(card: Card) -> int:
    """How many pages the select of a card has; 1 without any."""
    return max(-(-len(card.choices) // OPTIONS), 1)


def listing(card: Card) -> str:
    """The options in words, a line each, where the control does not say it all; else ""."""
    told = [flat(choice.description) for choice in card.choices]
    match style(card):
        case "numbered":
            return full_list(card)
        case "buttons":
            return full_list(card) if any(told) else ""
        case "labels":
            return full_list(card) if any(utf16_len(words) > OPTION for words in told) else ""


def full_list(card: Card) -> str:
    """All options in full, numbered."""
    return "\n".join(
        f"{number}. {flat(choice.label) or '(empty)'}"
        + (f" – {flat(choice.description)}" if choice.description.strip() else "")
        for number, choice in enumerate(card.choices, 1)
    )


def chosen_elsewhere(card: Card) -> str:
    """What is chosen so far, where one page does not show it; else ""."""
    chosen = [(number, choice) for number, choice in enumerate(card.choices, 1) if choice.chosen]
    if not card.multi or pages(card) == 1 or not chosen:
        return ""
    numbered = style(card) == "numbered"
    names = ", ".join(str(number) if numbered else flat(choice.label) for number, choice in chosen)
    return cut(f"Chosen so far ({len(chosen)}): {names}", _CHOSEN)


def buttons(card: Card) -> list[Json]:
    """The options as buttons, where they are few and short."""
    if style(card) != "buttons":
        return []
    return [button(choice.label, choice.data) for choice in card.choices]


def select(card: Card, page: int) -> list[Json]:
    """The rows of a select and its paging. page: from 0; one that there is not means the nearest."""
    if not card.choices or style(card) == "buttons":
        return []
    last = pages(card) - 1
    page = min(max(page, 0), last)
    first = page * OPTIONS
    offered = card.choices[first : first + OPTIONS]
    numbered = style(card) == "numbered"
    menu: Json = {
        "type": _SELECT,
        "custom_id": many_id(card.card_id, page) if card.multi else pick_id(card.card_id),
        "placeholder": _placeholder(card, first, len(offered)),
        "min_values": 0 if card.multi else 1,
        "max_values": len(offered) if card.multi else 1,
        "options": [
            _option(number, choice, numbered=numbered, multi=card.multi)
            for number, choice in enumerate(offered, first + 1)
        ],
    }
    turning = [
        *([button("‹ Previous", page_id(card.card_id, page - 1))] if page > 0 else []),
        *([button("Next ›", page_id(card.card_id, page + 1))] if page < last else []),
    ]
    return [row(menu), *rows(turning)]


def _placeholder(card: Card, first: int, count: int) -> str:
    words = "Choose all that apply, then confirm" if card.multi else "Choose…"
    if pages(card) > 1:
        words += f" ({first + 1}–{first + count} of {len(card.choices)})"
    return cut(words, PLACEHOLDER)


def _option(number: int, choice: Choice, *, numbered: bool, multi: bool) -> Json:
    label = f"{number}. {flat(choice.label)}" if numbered else flat(choice.label)
    option: Json = {"label": cut(label, OPTION), "value": choice.data}
    told = flat(choice.description)
    if told and not numbered and utf16_len(told) <= OPTION:
        option["description"] = told
    return option | ({"default": True} if multi and choice.chosen else {})
