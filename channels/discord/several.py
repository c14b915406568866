"""Cards of several calls: each with its own words and buttons, then those that are about all. Pure.

What does not fit is given up in this order: the buttons of each call beside its first yes and its first no (a
menu has the others), arguments in the message (a file has them), all buttons of the last calls (they keep
their codes). A call that nobody can read in full is offered no yes, and then there is none for all of them
either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from channels.base import Button, Card
from channels.discord import arguments, dress
from channels.discord.components import (
    Json,
    attached,
    bold,
    button,
    code,
    container,
    fits,
    menu,
    refuses,
    row,
    rows,
    separator,
    small,
    text,
)
from channels.discord.dress import ALL
from channels.discord.limits import CALLS, COMPONENTS, DISPLAY, LIMITS, OPTIONS
from channels.discord.refs import form_id, pick_id
from channels.render.arguments import ArgsFile, Inert, inert_of
from channels.render.discord import escape_discord
from channels.render.inert import flat, visible
from channels.render.measure import cut, utf16_len

_ROOMS: Final = (2000, 1200, 600, 300, 100, 0)  # units for what one call shows
_LINES: Final = (400, 150)  # units of each other text: with a beginning of the calls, and with none
_LISTED: Final = 60  # units of a title or status in a line
_CODE: Final = 100
_MOST: Final = 300  # calls that are tried to be named in one message
_EVERY: Final = 1 << 30

NO_ROOM: Final = "There is no room for more buttons: use /approve or /deny with the codes of the other calls."
MORE_CHOICES: Final = "There is no room for all choices here: more of them come as calls are decided."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One call as it is read, with its number on the card. turn: its number among those that wait, 0 for one
    that does not. length: how much there is to read, in units."""

    place: int
    turn: int
    card: Card
    title: str
    summary: str
    inert: Inert
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """One way to draw a card. room: units for what a call shows, ALL for all of it. few: only a yes and a no
    for each call, and a menu. drawn: how many of the calls that wait, the first ones, are more than a line,
    None for all calls; named: how many are at least that. file: where all of it is; delivered: people can get
    at it; attach: the message shows it. mention: those who are asked are notified."""

    room: int
    few: bool = False
    drawn: int | None = None
    named: int = _EVERY
    file: ArgsFile | None = None
    delivered: bool = False
    attach: bool = True
    mention: bool = False

    @property
    def line(self) -> int:
        if self.room == ALL:
            return ALL
        return _LINES[0] if self.room > 0 else _LINES[1]

    @property
    def carries(self) -> bool:
        """Whether the message shows the file itself."""
        return self.file is not None and self.delivered and self.attach

    def draws(self, call: _Call) -> bool:
        """Whether the call is more than a line."""
        return self.drawn is None or 0 < call.turn <= self.drawn

    def whole(self, call: _Call) -> bool:
        """Whether the message shows all of the call."""
        return self.draws(call) and (self.room == ALL or call.length <= self.room)

    def readable(self, call: _Call) -> bool:
        """Whether all of it can be read somewhere."""
        return self.delivered or self.whole(call)


def drawn(
    value: Card, file: ArgsFile | None, *, readable: bool, attach: bool, mention: bool
) -> tuple[list[Json], bool]:
    """(the components of a card with calls, whether they show the file). See cards.card."""
    calls = _read(value)
    ways = _whole(mention=mention) if file is None else []
    delivered = readable and file is not None
    rest = _Layout(room=0, file=file, delivered=delivered, attach=attach, mention=mention)
    ways += [replace(rest, room=room, few=few) for few in (False, True) for room in _ROOMS]
    for layout in ways:
        if fits(found := _container(value, calls, layout)):
            return found, layout.carries
    return _container(value, calls, _as_many(value, calls, rest)), rest.carries


def _as_many(value: Card, calls: Sequence[_Call], rest: _Layout) -> _Layout:
    """The layout with buttons for as many calls as fit, and then with as much of each as fits."""
    # Where nothing but the message can be read, rather a few calls that can be decided than all by name.
    few = replace(rest, few=True, room=0 if rest.delivered else _ROOMS[2])
    drawn = _most(value, calls, CALLS, lambda count: replace(few, drawn=count))
    if drawn is None:
        named = _most(value, calls, _MOST, lambda count: replace(rest, drawn=0, named=count))
        return replace(rest, drawn=0, named=named or 0)
    ways = [replace(few, drawn=drawn, room=room) for room in _ROOMS]
    return next((way for way in ways if fits(_container(value, calls, way))), replace(few, drawn=drawn))


def fits_whole(value: Card) -> bool:
    """Whether a message holds all of every call, and at least a yes and a no for each, mentions and all."""
    calls = _read(value)
    return any(fits(_container(value, calls, layout)) for layout in _whole(mention=True))


def _read(value: Card) -> list[_Call]:
    calls: list[_Call] = []
    waiting = 0
    for place, card in enumerate(value.calls, 1):
        waiting += card.state == "open"
        calls.append(_call(place, waiting if card.state == "open" else 0, card))
    return calls


def _call(place: int, turn: int, card: Card) -> _Call:
    title, summary = flat(card.title) or "Request", visible(card.summary).strip("\n")
    inert = inert_of(card)
    length = utf16_len(title) + utf16_len(summary) + inert.length
    return _Call(place=place, turn=turn, card=card, title=title, summary=summary, inert=inert, length=length)


def _whole(*, mention: bool) -> list[_Layout]:
    return [_Layout(room=ALL, few=few, mention=mention) for few in (False, True)]


def _most(value: Card, calls: Sequence[_Call], most: int, way: Callable[[int], _Layout]) -> int | None:
    """For how many calls this layout fits; None when not even for none of them."""
    best: int | None = None
    low, high = 0, min(len(calls), most)
    while low <= high:
        middle = (low + high) // 2
        if fits(_container(value, calls, way(middle))):
            best, low = middle, middle + 1
        else:
            high = middle - 1
    return best


# ---- what stands in the container


def _container(value: Card, calls: Sequence[_Call], layout: _Layout) -> list[Json]:
    children = [text(dress.head(value, layout.line, mention=layout.mention)), separator()]
    children += _called(value, calls, layout)
    if layout.carries and layout.file is not None:
        children.append(attached(layout.file.name))
    foot = dress.foot(value, layout.line, _hint(value, calls, layout), with_code=False)
    children += [separator(), text(foot)]
    return [container(dress.colour(value), children + _for_all(value, calls, layout))]


def _called(value: Card, calls: Sequence[_Call], layout: _Layout) -> list[Json]:
    """The calls, words and buttons, and where all of it is. Words with no buttons between them share a
    component."""
    children: list[Json] = []
    words: list[str] = []
    written = 0
    for call in calls:
        if len(children) > COMPONENTS or written > DISPLAY:  # too many already, or too much
            break
        if call.place > layout.named:
            words.append(f"*… and {len(calls) - call.place + 1} more*")
            break
        readable = layout.readable(call)
        with_code = value.state == "open" and readable
        if not layout.draws(call):
            words.append(_line(call, with_code=with_code))
            written += len(words[-1])
            continue
        described = _described(call, ALL if layout.whole(call) else layout.room, layout.line, with_code)
        words += described
        written += sum(map(len, described))
        offered = _offered(call.card, readable=readable) if value.state == "open" else []
        own = _row(call, _few(offered) if layout.few else offered)
        if own:
            children += [text("\n".join(words)), *own]
            words.clear()
    if layout.room != ALL:
        words.append(dress.attached(value, layout.file, readable=layout.delivered))
    return children + ([text("\n".join(words))] if words else [])


def _described(call: _Call, room: int, line: int, with_code: bool) -> list[str]:
    """One call: its number and title, what became of it, what it wants to do. room: units for it."""
    card = call.card
    lines = [bold(f"{call.place}. {dress.shorten(call.title, line)}")]
    if card.status.strip():
        lines.append(bold(dress.shorten(visible(card.status), line)))
    beside = []
    if card.state == "open" and card.code and with_code:
        beside.append(f"Code: {code(cut(card.code, _CODE))}")
    if card.state == "open" and card.expires.strip():
        beside.append(f"Expires: {escape_discord(dress.shorten(flat(card.expires), line))}")
    lines += [small(" · ".join(beside))] if beside else []
    if call.summary.strip() and room != 0:
        lines.append(escape_discord(dress.shorten(call.summary, line if room == ALL else min(line, room))))
    return lines + (arguments.whole(call.inert) if room == ALL else arguments.beginnings(call.inert, room))


def _line(call: _Call, *, with_code: bool) -> str:
    """A call that is only named."""
    named, card = escape_discord(f"{call.place}. {cut(call.title, _LISTED)}"), call.card
    if card.state != "open":
        return f"{named} – {escape_discord(cut(flat(card.status), _LISTED)) or card.state}"
    return f"{named} – code {code(cut(card.code, _LISTED))}" if card.code and with_code else named


def _hint(value: Card, calls: Sequence[_Call], layout: _Layout) -> str:
    """How to decide what has no buttons here."""
    waiting = [call for call in calls if call.card.state == "open"]
    if value.state != "open":
        return ""
    if layout.delivered and not all(map(layout.draws, waiting)):
        return NO_ROOM
    return MORE_CHOICES if layout.few and len(_others(calls, layout)) > OPTIONS else ""


# ---- the controls


def _offered(call: Card, *, readable: bool) -> list[Button]:
    """The buttons of a call, none when it is settled: those that let nothing run that cannot be read."""
    if call.state != "open":
        return []
    return [one for one in call.buttons if readable or refuses(one)][: LIMITS.buttons]


def _few(offered: Sequence[Button]) -> list[Button]:
    """The first one, and the first that refuses."""
    refusing = next((one for one in offered if refuses(one)), None)
    return [one for place, one in enumerate(offered) if place == 0 or one is refusing]


def _row(call: _Call, offered: Sequence[Button]) -> list[Json]:
    return rows(
        [button(f"{call.place} {one.label}", _custom_id(call.card, one), one.tone) for one in offered]
    )


def _custom_id(card: Card, one: Button) -> str:
    return form_id(one.data) if any(form.data == one.data for form in card.forms) else one.data


def _others(calls: Sequence[_Call], layout: _Layout) -> list[tuple[str, str]]:
    """(label, value) of the choices for which a call has no button here."""
    found = []
    for call in filter(layout.draws, calls):
        offered = _offered(call.card, readable=layout.readable(call))
        few = _few(offered)
        found += [
            (f"{call.place} {one.label}", _custom_id(call.card, one)) for one in offered if one not in few
        ]
    return found


def _for_all(value: Card, calls: Sequence[_Call], layout: _Layout) -> list[Json]:
    """The menu of other choices, and the card's own buttons."""
    if value.state != "open":
        return []
    others = _others(calls, layout)[:OPTIONS] if layout.few else []
    menus = [row(menu(pick_id(value.card_id), "Other choices…", others))] if others else []
    readable = all(layout.readable(call) for call in calls if call.card.state == "open")
    offered = [one for one in value.buttons if readable or refuses(one)][: LIMITS.buttons]
    return menus + rows([button(one.label, _custom_id(value, one), one.tone) for one in offered])
