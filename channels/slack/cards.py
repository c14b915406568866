"""Cards as Slack draws them. Pure.

A card that does not fit into one message shows beginnings and names the file with the whole; without
anybody being able to read that file, nothing that lets the call run is offered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from channels.base import Card
from channels.render.arguments import ArgsFile, Inert, file_of, inert_of
from channels.render.inert import flat
from channels.render.measure import cut
from channels.render.slack import escape_mrkdwn
from channels.slack import arguments, choices, dress, several
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

_ROOMS: Final = (3000, 1200, 400, 0)  # units for the beginnings of all arguments, or options, together
_SENTENCE: Final = 300  # units


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """One way to draw a card. room: units for arguments and options, ALL for all of them. mention: those
    who are asked are notified."""

    room: int
    style: choices.Style
    file: ArgsFile | None = None
    readable: bool = True
    mention: bool = False


def card(value: Card, *, file: ArgsFile | None = None, readable: bool = True, mention: bool = False) -> Json:
    """`text` and `blocks` of a card's message.

    file: what `args_file` gave, if anything. readable: that file was delivered; otherwise no button is
    drawn that lets a call run which cannot be read in full, and no code for it. mention: notify those who
    are asked.
    """
    if value.calls:
        drawn = several.blocks(value, file, readable=readable, mention=mention)
        return {"text": sentence(value), "blocks": drawn}
    drawn, told = [], inert_of(value)
    for layout in _layouts(value, file, readable=readable, mention=mention):
        drawn = _blocks(value, told, layout)
        if fits(drawn):
            break
    return {"text": sentence(value), "blocks": drawn}


def args_file(value: Card) -> ArgsFile | None:
    """The file that a card needs because it does not fit into one message, mentions and all; None when
    it does."""
    file = file_of(value, choices.full_list)
    if value.calls:
        return None if several.fits_whole(value) else file
    told = inert_of(value)
    whole = {layout.style for layout in _whole(value, mention=True) if fits(_blocks(value, told, layout))}
    if whole - {"none"}:
        return None
    ways = _shortened_ways(value, file, mention=True)
    best = next((layout.style for layout in ways if fits(_blocks(value, told, layout))), "none")
    # Rather a list in a file and a control than a list without one.
    return None if whole and best == "none" else file


def sentence(value: Card) -> str:
    """The card in one line: what notifications and screen readers say. For a mrkdwn field."""
    told = value.status if value.state != "open" and value.status else value.summary.partition("\n")[0]
    if not told.strip():
        told = ", ".join(call.title for call in value.calls[:10])
    title = flat(value.title)
    colon = ":" if title[-1:].isalnum() and flat(told) else ""
    return escape_mrkdwn(cut(f"{title}{colon} {flat(told)}".strip() or "A request.", _SENTENCE))


# ---- layouts, the best first


def _layouts(value: Card, file: ArgsFile | None, *, readable: bool, mention: bool) -> Iterator[_Layout]:
    if file is None:
        yield from _whole(value, mention=mention)
        readable = False  # nowhere can all of it be read
    yield from _shortened_ways(value, file, readable=readable, mention=mention)


def _whole(value: Card, *, mention: bool) -> Iterator[_Layout]:
    for style in choices.styles(value):
        yield _Layout(room=ALL, style=style, mention=mention)


def _shortened_ways(
    value: Card, file: ArgsFile | None, *, readable: bool = True, mention: bool
) -> Iterator[_Layout]:
    for style in choices.styles(value):
        for room in _ROOMS:
            yield _Layout(room=room, style=style, file=file, readable=readable, mention=mention)


# ---- the blocks


def _blocks(value: Card, inert: Inert, layout: _Layout) -> list[Json]:
    room = layout.room
    blocks = dress.head(value, room, mention=layout.mention)
    told = choices.listing(value, layout.style)
    if told:
        blocks += _listed(told, room)
    shown = arguments.whole(inert) if room == ALL else arguments.beginnings(inert, room)
    blocks += [rich(*shown)] if shown else []
    if room != ALL:
        blocks.append(rich(paragraph(*dress.attached(value, layout.file, readable=layout.readable))))
    hint = choices.hint(value, layout.style) if value.choices else ""
    code = layout.readable or value.kind == "question"
    blocks.append(context(dress.foot(value, hint, code=code)))
    return blocks + (controls(value, layout.style, readable=layout.readable) if value.state == "open" else [])


def _listed(told: str, room: int) -> list[Json]:
    """The numbered options, or their beginning."""
    if room == 0:
        return []
    return [rich(paragraph(words(told if room == ALL else cut(told, room))))]


def controls(value: Card, style: choices.Style, *, readable: bool = True, start: int = 1) -> list[Json]:
    """The blocks of an open card that people use. start: the number of the first control; no two in a
    message or view may have the same."""
    blocks, elements = choices.controls(value, style, start)
    offered = [b for b in value.buttons if readable or value.kind == "question" or refuses(b)]
    forms = frozenset(form.data for form in value.forms)
    first = start + max(len(value.choices), 1)
    elements = [*elements, *(button(number, b, forms) for number, b in enumerate(offered, first))]
    return blocks + actions(elements)
