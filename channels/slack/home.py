"""The App Home: what waits for the person who looks at it, with controls that work. Pure.

A card whose arguments do not fit in the list can only be refused there: to approve it, people open its
thread, where every character can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from channels.base import Card
from channels.render.inert import visible
from channels.render.measure import utf16_len
from channels.slack import cards, choices
from channels.slack.blocks import (
    Json,
    context,
    cut,
    flat,
    header,
    paragraph,
    preformatted,
    rich,
    section,
    size,
    words,
)
from channels.slack.limits import VIEW_BLOCKS, VIEW_PAYLOAD

_MOST: Final = 20  # cards in the list
_ROOM: Final = 900  # units of all arguments of one card, or of its options
_FIELDS: Final = 8
_SUMMARY, _TITLE, _LINE = 600, 300, 200  # units
_SPARE: Final = 3  # blocks below the last card
_EMPTY: Final = (
    "Nothing waits for your decision. To begin, mention me in a channel, or write to me in the Messages tab."
)


def view(waiting: Sequence[Card], note: str = "") -> Json:
    """The home of one person. waiting: the open cards that they may decide, oldest first. note: what
    came of their last press, above everything."""
    blocks: list[Json] = [section(visible(note))] if note.strip() else []
    if not waiting:
        return _home([*blocks, section(_EMPTY)])
    blocks.append(header("Waiting for your decision"))
    shown, number = 0, 1
    for card in waiting[:_MOST]:
        drawn = _card(card, number)
        if len(blocks) + len(drawn) > VIEW_BLOCKS - _SPARE or size([*blocks, *drawn]) > VIEW_PAYLOAD:
            break
        blocks += drawn
        shown += 1
        number += len(card.choices) + len(card.buttons) + 1
    if len(waiting) > shown:
        blocks.append(context([f"{len(waiting) - shown} more: /threadgate pending lists them all."]))
    return _home(blocks)


def _home(blocks: list[Json]) -> Json:
    return {"type": "home", "blocks": blocks}


def _card(card: Card, number: int) -> list[Json]:
    whole = _is_short(card)
    style: choices.Style = next(iter(choices.styles(card)))
    told = choices.listing(card, style)
    if utf16_len(told) > _ROOM:
        whole = False
    elements = [paragraph(words(cut(flat(card.title), _TITLE) or "Request", bold=True))]
    if card.status:
        elements.append(paragraph(words(cut(visible(card.status), _LINE), italic=True)))
    if card.summary.strip():
        elements.append(paragraph(words(cut(visible(card.summary), _SUMMARY))))
    if told:
        elements.append(paragraph(words(cut(told, _ROOM))))
    elements += _fields(card)
    blocks = [rich(*elements), context(_foot(card, whole=whole))]
    if whole:
        blocks += cards.controls(card, style, start=number)
    elif card.kind == "approval":
        blocks += cards.controls(card, style, readable=False, start=number)
    return [*blocks, {"type": "divider"}]


def _is_short(card: Card) -> bool:
    """Whether the list shows all that a person must have read."""
    texts = [text for field in card.fields for text in (flat(field.name), visible(field.value))]
    return (
        len(card.fields) <= _FIELDS
        and sum(map(utf16_len, texts)) <= _ROOM
        and utf16_len(visible(card.summary)) <= _SUMMARY
    )


def _fields(card: Card) -> list[Json]:
    """Every argument, or the beginnings of the first ones."""
    whole = _is_short(card)
    elements: list[Json] = []
    for field in card.fields[:_FIELDS]:
        name, value = flat(field.name) or "(no name)", visible(field.value)
        shown = value if whole else cut(value, _ROOM // _FIELDS)
        elements.append(paragraph(words(f"{name if whole else cut(name, 60)}:", bold=True)))
        elements.append(preformatted(shown) if shown else paragraph(words("(empty)", italic=True)))
    return elements


def _foot(card: Card, *, whole: bool) -> list[str]:
    lines = [] if whole else ["Open the thread for the rest."]
    lines += [f"Expires: {cut(flat(card.expires), _LINE)}"] if card.expires.strip() else []
    lines += [f"Code: {flat(card.code)}"] if card.code else []
    return [*lines, f"Request {flat(card.card_id)}"]
