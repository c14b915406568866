"""The App Home: what waits for the person who looks at it, with controls that work. Pure.

A card whose arguments do not fit in the list can only be refused there: to approve it, people open its
thread, where every character can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from channels.base import Card
from channels.render.arguments import inert_of
from channels.render.inert import flat, visible
from channels.render.measure import cut, utf16_len
from channels.slack import arguments, cards, choices, several
from channels.slack.blocks import (
    Json,
    context,
    header,
    paragraph,
    rich,
    section,
    size,
    words,
)
from channels.slack.dress import ALL
from channels.slack.limits import VIEW_BLOCKS, VIEW_PAYLOAD

_MOST: Final = 20  # cards in the list
_ROOM: Final = 900  # units of all arguments of one card, or of its options
_FIELDS: Final = 8
_BEGINNINGS: Final = 60 * _FIELDS  # units of the arguments of a card that is not short
_CALLS: Final = 40  # of one card
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
    shown, number, used = 0, 1, size(blocks)
    for card in waiting[:_MOST]:
        drawn = _card(card, number)
        needed = size(drawn)
        if len(blocks) + len(drawn) > VIEW_BLOCKS - _SPARE or used + needed > VIEW_PAYLOAD:
            continue
        blocks += drawn
        used += needed
        shown += 1
        number += _controls(card)
    if len(waiting) > shown:
        blocks.append(context([f"{len(waiting) - shown} more: /threadgate pending lists them all."]))
    return _home(blocks)


def _home(blocks: list[Json]) -> Json:
    return {"type": "home", "blocks": blocks}


def _card(card: Card, number: int) -> list[Json]:
    return (_several(card, number) if card.calls else _single(card, number)) + [{"type": "divider"}]


def _single(card: Card, number: int) -> list[Json]:
    whole = _is_short(card)
    style: choices.Style = next(iter(choices.styles(card)))
    told = choices.listing(card, style)
    if utf16_len(told) > _ROOM:
        whole = False
    elements = [*_head(card)]
    if told:
        elements.append(paragraph(words(cut(told, _ROOM))))
    elements += _arguments(card)
    blocks = [rich(*elements), context(_foot(card, whole=whole))]
    if whole:
        blocks += cards.controls(card, style, start=number)
    elif card.kind == "approval":
        blocks += cards.controls(card, style, readable=False, start=number)
    return blocks


def _several(card: Card, number: int) -> list[Json]:
    """A card of several calls: the buttons that are about all of them are there when all can be read."""
    shown = card.calls[:_CALLS]
    blocks = [rich(*_head(card))]
    for place, one in enumerate(shown, 1):
        call, whole = several.read(place, one), _is_short(one)
        blocks += several.described(call, ALL if whole else _BEGINNINGS, code=whole)
        offered = several.allowed(one, readable=whole)
        blocks += several.controls(call, offered, number)
        number += len(offered)
    if len(card.calls) > len(shown):
        blocks.append(context([f"… and {len(card.calls) - len(shown)} more calls."]))
    waiting = [call for call in card.calls if call.state == "open"]
    whole = len(card.calls) == len(shown) and all(map(_is_short, waiting))
    blocks.append(context(_foot(card, whole=whole)))
    return blocks + several.for_all(card, readable=whole, start=number)


def _head(card: Card) -> list[Json]:
    elements = [paragraph(words(cut(flat(card.title), _TITLE) or "Request", bold=True))]
    if card.status:
        elements.append(paragraph(words(cut(visible(card.status), _LINE), italic=True)))
    if card.summary.strip():
        elements.append(paragraph(words(cut(visible(card.summary), _SUMMARY))))
    return elements


def _is_short(card: Card) -> bool:
    """Whether the list shows all that a person must have read."""
    return (
        len(card.fields) <= _FIELDS
        and inert_of(card).length <= _ROOM
        and utf16_len(visible(card.summary)) <= _SUMMARY
        and utf16_len(flat(card.title)) <= _TITLE
    )


def _arguments(card: Card) -> list[Json]:
    """Every argument and the preview, or beginnings of these."""
    if _is_short(card):
        return arguments.whole(inert_of(card))
    return arguments.beginnings(inert_of(card), _BEGINNINGS)


def _controls(card: Card) -> int:
    """How many controls a card has at most."""
    return sum(len(one.choices) + len(one.buttons) + 1 for one in (card, *card.calls))


def _foot(card: Card, *, whole: bool) -> list[str]:
    lines = [] if whole else ["Open the thread for the rest."]
    lines += [f"Expires: {cut(flat(card.expires), _LINE)}"] if card.expires.strip() else []
    lines += [f"Code: {flat(card.code)}"] if card.code else []
    return [*lines, f"Request {flat(card.card_id)}"]
