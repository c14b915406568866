"""Cards of several calls: each with its own words and buttons, then those that are about all. Pure.

What does not fit is given up in this order: arguments in the message (a file has them), the buttons of each
call beside its first yes and its first no, all buttons of the last calls (they keep their codes). A call
that nobody can read in full is offered no yes, and then there is none for all of them either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from channels.base import Button, Card
from channels.render.arguments import ArgsFile, Inert, inert_of
from channels.render.inert import flat, visible
from channels.render.measure import cut, utf16_len
from channels.slack import arguments, dress
from channels.slack.blocks import (
    Json,
    actions,
    button,
    context,
    fits,
    paragraph,
    refuses,
    rich,
    words,
)
from channels.slack.dress import ALL
from channels.slack.limits import BLOCKS

_ROOMS: Final = (1500, 600, 200, 60, 0)  # units for each part of what one call shows
_LISTED: Final = 60  # units of a title or status in a line
_LINE: Final = 200  # of what is said beside a title
_MOST: Final = 300  # calls that are tried to be named in one message
_EVERY: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call as it is read, with its number on the card. length: how much that is, in units."""

    place: int
    card: Card
    title: str
    summary: str
    inert: Inert
    length: int


def read(place: int, card: Card) -> Call:
    title, summary, inert = flat(card.title) or "Request", visible(card.summary), inert_of(card)
    length = utf16_len(title) + utf16_len(summary) + inert.length
    return Call(place=place, card=card, title=title, summary=summary, inert=inert, length=length)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """One way to draw a card. room: units for each part of a call, ALL for all of it. few: only a yes and a
    no for each call. drawn: which calls, the first ones that wait, are more than a line, None for all; named:
    how many are at least that. file: where all of it is; delivered: that can be read. mention: notify those
    who are asked."""

    room: int
    few: bool = False
    drawn: int | None = None
    named: int = _EVERY
    file: ArgsFile | None = None
    delivered: bool = False
    mention: bool = False

    def draws(self, call: Call) -> bool:
        """Whether the call is more than a line."""
        return self.drawn is None or (call.place <= self.drawn and call.card.state == "open")

    def whole(self, call: Call) -> bool:
        """Whether the message shows all of the call."""
        return self.draws(call) and (self.room == ALL or call.length <= self.room)

    def readable(self, call: Call) -> bool:
        """Whether all of it can be read somewhere."""
        return self.delivered or self.whole(call)


def blocks(value: Card, file: ArgsFile | None, *, readable: bool, mention: bool) -> list[Json]:
    """The blocks of a card with calls. See cards.card."""
    calls = _read(value)
    ways = _whole(mention=mention) if file is None else []
    rest = _Layout(room=0, file=file, delivered=readable and file is not None, mention=mention)
    # Where nothing but the message can be read, rather a few calls that can be decided than all by name.
    rooms = _ROOMS if rest.delivered else _ROOMS[:1]
    ways = [*ways, *(replace(rest, room=room, few=few) for few in (False, True) for room in rooms)]
    for layout in ways:
        if fits(drawn := _blocks(value, calls, layout)):
            return drawn
    best = _most(value, calls, lambda count: replace(rest, few=True, room=rooms[-1], drawn=count))
    return best or _most(value, calls, lambda count: replace(rest, drawn=0, named=count)) or []


def fits_whole(value: Card) -> bool:
    """Whether a message holds all of every call, and at least a yes and a no for each, mentions and all."""
    calls = _read(value)
    return any(fits(_blocks(value, calls, layout)) for layout in _whole(mention=True))


def _read(value: Card) -> list[Call]:
    return [read(place, card) for place, card in enumerate(value.calls, 1)]


def _whole(*, mention: bool) -> list[_Layout]:
    return [_Layout(room=ALL, few=few, mention=mention) for few in (False, True)]


def _most(value: Card, calls: Sequence[Call], way: Callable[[int], _Layout]) -> list[Json] | None:
    """The layout for as many calls as fit; None when not even that for none of them does."""
    best: list[Json] | None = None
    low, high = 0, min(len(calls), _MOST)
    while low <= high:
        middle = (low + high) // 2
        drawn = _blocks(value, calls, way(middle))
        if fits(drawn):
            best, low = drawn, middle + 1
        else:
            high = middle - 1
    return best


# ---- the blocks


def _blocks(value: Card, calls: Sequence[Call], layout: _Layout) -> list[Json]:
    is_open = value.state == "open"
    drawn = dress.head(value, layout.room, mention=layout.mention)
    lines: list[str] = []
    number = 1
    for call in calls:
        if len(drawn) > BLOCKS:  # too many already
            return drawn
        readable = layout.readable(call)
        if call.place > layout.named:
            lines.append(f"… and {len(calls) - call.place + 1} more")
            break
        if not layout.draws(call):
            lines.append(_line(call, code=is_open and readable))
            continue
        drawn += _listed(lines)
        lines.clear()
        room = ALL if layout.whole(call) else layout.room if layout.delivered else min(layout.room, _LINE)
        drawn += described(call, room, code=is_open and readable)
        if is_open:
            offered = allowed(call.card, readable=readable, few=layout.few)
            drawn += controls(call, offered, number)
            number += len(offered)
    drawn += _listed(lines) + _told(value, calls, layout)
    drawn.append(context(dress.foot(value, "", code=False)))
    if is_open:
        readable = all(layout.readable(call) for call in calls if call.card.state == "open")
        drawn += for_all(value, readable=readable, start=number)
    return drawn


def described(call: Call, room: int, *, code: bool) -> list[Json]:
    """The words of one call: its number and title, what became of it, what it wants to do. room: units for
    each part of that, or ALL. code: whether its code may be used."""
    title = call.title if room == ALL else cut(call.title, _LINE)
    beside = _beside(call.card, code=code)
    runs = [words(f"{call.place}. {title}", bold=True)]
    pieces = [paragraph(*runs, *([words(f"  {beside}", italic=True)] if beside else []))]
    if call.card.status.strip():
        pieces.append(paragraph(words(cut(visible(call.card.status), _LINE), bold=True)))
    if call.summary.strip() and room != 0:
        pieces.append(paragraph(words(call.summary if room == ALL else cut(call.summary, room))))
    pieces += arguments.whole(call.inert) if room == ALL else arguments.beginnings(call.inert, room)
    return [rich(*pieces)]


def _beside(call: Card, *, code: bool) -> str:
    if call.state != "open":
        return ""
    told = [f"Code: {flat(call.code)}"] if call.code and code else []
    told += [f"Expires: {cut(flat(call.expires), _LINE)}"] if call.expires.strip() else []
    return " · ".join(told)


def controls(call: Call, offered: Sequence[Button], start: int) -> list[Json]:
    """The buttons of one call, labelled with its number. start: the number of the first one. Calls are
    approvals: there are no options to choose from."""
    forms = frozenset(form.data for form in call.card.forms)
    return actions(
        [
            button(number, replace(one, label=f"{call.place} {one.label}"), forms, short=True)
            for number, one in enumerate(offered, start)
        ]
    )


def allowed(call: Card, *, readable: bool, few: bool = False) -> list[Button]:
    """The buttons of a call, none when it is settled: those that let nothing run that cannot be read; few:
    of these the first one and the first that refuses."""
    if call.state != "open":
        return []
    buttons = [one for one in call.buttons if readable or refuses(one)]
    if not few:
        return buttons
    refusing = next((one for one in buttons if refuses(one)), None)
    return [one for place, one in enumerate(buttons) if place == 0 or one is refusing]


def _line(call: Call, *, code: bool) -> str:
    """A call that is only named."""
    named, card = f"{call.place}. {cut(call.title, _LISTED)}", call.card
    if card.state != "open":
        return f"{named} – {cut(flat(card.status), _LISTED) or card.state}"
    return f"{named} – code {cut(flat(card.code), _LISTED)}" if card.code and code else named


def _listed(lines: Sequence[str]) -> list[Json]:
    return [rich(paragraph(words("\n".join(lines))))] if lines else []


def _told(value: Card, calls: Sequence[Call], layout: _Layout) -> list[Json]:
    """How to decide what has no buttons here, and where all of it can be read."""
    hint = _hint(calls, layout) if value.state == "open" else ""
    pieces = [paragraph(words(hint, italic=True))] if hint else []
    if layout.room != ALL:
        pieces.append(paragraph(*dress.attached(value, layout.file, readable=layout.delivered)))
    return [rich(*pieces)] if pieces else []


def _hint(calls: Sequence[Call], layout: _Layout) -> str:
    waiting = [call for call in calls if call.card.state == "open"]
    if layout.delivered and not all(map(layout.draws, waiting)):
        return (
            "There is no room for more buttons: for the other calls mention me with /approve CODE or "
            "/deny CODE, or use the Home tab of this app."
        )
    if layout.few and any(
        len(allowed(call.card, readable=True, few=True)) < len(call.card.buttons) for call in waiting
    ):
        return "There is no room for all choices here: the others are in the Home tab of this app."
    return ""


def for_all(value: Card, *, readable: bool, start: int) -> list[Json]:
    """The card's own buttons. start: the number of the first one."""
    offered = [one for one in value.buttons if readable or refuses(one)]
    forms = frozenset(form.data for form in value.forms)
    return actions([button(number, one, forms, short=True) for number, one in enumerate(offered, start)])
