"""Cards as Discord draws them: Components V2. Pure.

Arguments stand in code blocks that they cannot end. A card that does not fit into one message shows
beginnings and carries the whole as a file; without anybody being able to read that file, nothing that
lets the call run is offered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from channels.base import Card
from channels.discord import arguments, choices, dress, several
from channels.discord.components import (
    Json,
    attached,
    button,
    container,
    fits,
    refuses,
    rows,
    separator,
    text,
)
from channels.discord.dress import ALL
from channels.discord.limits import COMPONENTS_V2, LIMITS
from channels.discord.refs import form_id
from channels.render.arguments import ArgsFile, Inert, file_of, inert_of
from channels.render.discord import escape_discord
from channels.render.measure import cut

_ROOMS: Final = ((2000, 600), (1200, 400), (400, 300), (0, 150))  # see _Layout
_DISPLAYS: Final = 6  # components for the arguments; more of them share one


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """One way to draw a card. room: units for the beginnings of the arguments together, or of the
    options; line: for each other text. ALL: all of it. mention: those who are asked are notified."""

    room: int
    line: int
    file: ArgsFile | None = None
    readable: bool = True
    attach: bool = True
    mention: bool = False

    @property
    def carries(self) -> bool:
        """Whether the message shows the file itself."""
        return self.file is not None and self.readable and self.attach


def card(
    value: Card,
    *,
    file: ArgsFile | None = None,
    readable: bool = True,
    page: int = 0,
    attach: bool = True,
    mention: bool = False,
) -> Json:
    """`flags`, `components`, `allowed_mentions` and `attachments` of a card's message.

    file: what `args_file` gave, if anything. readable: people can get at it; otherwise no button is
    drawn that lets a call run which cannot be read in full, and no code for it. page: of the options, from
    0; one that there is not means the nearest. attach: the file is uploaded with this very message, as
    `files[0]`: it is to be sent wherever `attachments` is not empty. Without `attach` it has been sent
    before, and `attachments` is left out. mention: notify those who are asked.
    """
    if value.calls:
        drawn, carries = several.drawn(value, file, readable=readable, attach=attach, mention=mention)
    else:
        drawn, carries = _single(value, file, page, readable=readable, attach=attach, mention=mention)
    allowed = dress.mentions(value) if mention else {"parse": []}
    payload: Json = {"flags": COMPONENTS_V2, "components": drawn, "allowed_mentions": allowed}
    if carries and file is not None:
        return payload | {"attachments": [{"id": 0, "filename": file.name}]}
    return payload | ({"attachments": []} if attach else {})


def args_file(value: Card) -> ArgsFile | None:
    """The file that a card needs because it does not fit into one message, mentions and all; None when
    it does."""
    if value.calls:
        return None if several.fits_whole(value) else file_of(value, choices.full_list)
    whole = _Layout(room=ALL, line=ALL, mention=True)
    if fits([container(0, _children(value, inert_of(value), whole, 0))]):
        return None
    return file_of(value, choices.full_list)


# ---- layouts, the best first


def _single(
    value: Card, file: ArgsFile | None, page: int, *, readable: bool, attach: bool, mention: bool
) -> tuple[list[Json], bool]:
    """(the components, whether they show the file)."""
    inert, drawn, carries = inert_of(value), list[Json](), False
    for layout in _layouts(file, readable=readable, attach=attach, mention=mention):
        drawn = [container(dress.colour(value), _children(value, inert, layout, page))]
        carries = layout.carries
        if fits(drawn):
            break
    return drawn, carries


def _layouts(file: ArgsFile | None, *, readable: bool, attach: bool, mention: bool) -> Iterator[_Layout]:
    if file is None:
        yield _Layout(room=ALL, line=ALL, mention=mention)
        readable = False  # nowhere can all of it be read
    for room, line in _ROOMS:
        yield _Layout(room=room, line=line, file=file, readable=readable, attach=attach, mention=mention)


# ---- what stands in the container


def _children(value: Card, inert: Inert, layout: _Layout, page: int) -> list[Json]:
    children = [text(dress.head(value, layout.line, mention=layout.mention))]
    told = choices.listing(value)
    if told and layout.room != 0:
        children.append(text(escape_discord(told if layout.room == ALL else cut(told, layout.room))))
    shown = arguments.whole(inert) if layout.room == ALL else arguments.beginnings(inert, layout.room)
    if shown:
        children += [separator(), *_grouped(shown)]
    if layout.room != ALL:
        children.append(text(dress.attached(value, layout.file, readable=layout.readable)))
    if layout.carries and layout.file is not None:
        children.append(attached(layout.file.name))
    with_code = layout.readable or value.kind == "question"
    foot = dress.foot(value, layout.line, choices.chosen_elsewhere(value), with_code=with_code)
    children += [separator(), text(foot)]
    return children + (_controls(value, page, readable=layout.readable) if value.state == "open" else [])


def _grouped(shown: list[str]) -> list[Json]:
    """Arguments as text displays: one each, or several in one where there are many."""
    each = -(-len(shown) // _DISPLAYS)
    return [text("\n".join(shown[at : at + each])) for at in range(0, len(shown), each)]


def _controls(value: Card, page: int, *, readable: bool) -> list[Json]:
    """The rows of an open card that people use."""
    forms = frozenset(form.data for form in value.forms)
    offered = [b for b in value.buttons if readable or value.kind == "question" or refuses(b)]
    drawn = [
        button(b.label, form_id(b.data) if b.data in forms else b.data, b.tone)
        for b in offered[: LIMITS.buttons]
    ]
    return [*choices.select(value, page), *rows(choices.buttons(value)), *rows(drawn)]
