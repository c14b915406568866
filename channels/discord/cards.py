"""Cards as Discord draws them: Components V2. Pure.

Arguments stand in code blocks that they cannot end. A card that does not fit into one message shows
beginnings and carries the whole as a file; without anybody being able to read that file, nothing that
lets the call run is offered.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from channels.base import Card
from channels.discord import choices
from channels.discord.components import (
    Json,
    attached,
    bold,
    button,
    code,
    code_block,
    container,
    cut,
    fits,
    flat,
    refuses,
    rows,
    separator,
    small,
    text,
)
from channels.discord.limits import COMPONENTS_V2, LIMITS
from channels.discord.refs import form_id
from channels.render.discord import escape_discord
from channels.render.inert import visible

_ALL: Final = -1  # room for everything
_ROOMS: Final = ((2000, 600), (1200, 400), (400, 300), (0, 150))  # see _Layout
_NAMES: Final = 100  # units of a name or an id that a card repeats
_DISPLAYS: Final = 6  # components for the arguments; more of them share one
_COLOURS: Final = {"approval": 0xF0B132, "question": 0x5865F2}
_SETTLED: Final = 0x80848E


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgsFile:
    """What does not fit on a card, as a file that people can read, with the hash that the card shows."""

    name: str
    content: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """One way to draw a card. room: units for the beginnings of the arguments together, or of the
    options; line: for each other text. _ALL: all of it."""

    room: int
    line: int
    file: ArgsFile | None = None
    readable: bool = True
    attach: bool = True

    def shorten(self, words: str) -> str:
        return words if self.line == _ALL else cut(words, self.line)


_WHOLE: Final = _Layout(room=_ALL, line=_ALL)


def card(
    value: Card, *, file: ArgsFile | None = None, readable: bool = True, page: int = 0, attach: bool = True
) -> Json:
    """`flags`, `components`, `allowed_mentions` and `attachments` of a card's message.

    file: what `args_file` gave, if anything. readable: people can get at it; otherwise no button is
    drawn that lets the call run, and no code. page: of the options, from 0; one that there is not means
    the nearest. attach: the file is uploaded with this very message, as `files[0]`: it is to be sent
    wherever `attachments` is not empty. Without `attach` it has been sent before, and `attachments` is
    left out.
    """
    children: list[Json] = []
    drawn: list[Json] = []
    shown: _Layout = _WHOLE
    for layout in _layouts(value, file, readable=readable, attach=attach):
        shown, children = layout, _children(value, layout, page)
        drawn = [container(_colour(value), children)]
        if fits(drawn):
            break
    payload: Json = {"flags": COMPONENTS_V2, "components": drawn, "allowed_mentions": {"parse": []}}
    if _carries(shown) and shown.file is not None:
        return payload | {"attachments": [{"id": 0, "filename": shown.file.name}]}
    return payload | ({"attachments": []} if attach else {})


def args_file(value: Card) -> ArgsFile | None:
    """The file that a card needs because it does not fit into one message; None when it does."""
    if fits([container(0, _children(value, _WHOLE, 0))]):
        return None
    parts = [f"{visible(value.title)}\n{visible(value.summary)}".strip()]
    if value.choices:
        parts.append(choices.full_list(value))
    parts += [f"{visible(field.name)}:\n{visible(field.value)}" for field in value.fields]
    name = re.sub(r"[^A-Za-z0-9_-]", "", value.code or value.card_id)[:40] or "card"
    kind = "args" if value.kind == "approval" else "question"
    return ArgsFile(name=f"{kind}-{name}.txt", content=("\n\n".join(parts) + "\n").encode())


# ---- layouts, the best first


def _layouts(value: Card, file: ArgsFile | None, *, readable: bool, attach: bool) -> Iterator[_Layout]:
    if file is None:
        yield _WHOLE
        readable = False  # nowhere can all of it be read
    for room, line in _ROOMS:
        yield _Layout(room=room, line=line, file=file, readable=readable, attach=attach)


def _carries(layout: _Layout) -> bool:
    """Whether the message shows the file itself."""
    return layout.file is not None and layout.readable and layout.attach


def _colour(value: Card) -> int:
    return _COLOURS[value.kind] if value.state == "open" else _SETTLED


# ---- what stands in the container


def _children(value: Card, layout: _Layout, page: int) -> list[Json]:
    children = [text(_head(value, layout))]
    told = choices.listing(value)
    if told and layout.room != 0:
        children.append(text(escape_discord(told if layout.room == _ALL else cut(told, layout.room))))
    arguments = _arguments(value, layout)
    if arguments:
        children += [separator(), *_grouped(arguments)]
    if layout.room != _ALL:
        children.append(text(_attached(value, layout)))
    if _carries(layout) and layout.file is not None:
        children.append(attached(layout.file.name))
    children += [separator(), text("\n".join(small(line) for line in _foot(value, layout)))]
    return children + (_controls(value, page, readable=layout.readable) if value.state == "open" else [])


def _head(value: Card, layout: _Layout) -> str:
    icon = "▪️" if value.state != "open" else "❓" if value.kind == "question" else "🔐"
    lines = [f"### {icon} {escape_discord(layout.shorten(flat(value.title)))}"]
    if value.status.strip():
        lines.append(bold(layout.shorten(visible(value.status))))
    if value.summary.strip():
        lines.append(escape_discord(layout.shorten(visible(value.summary).strip("\n"))))
    return "\n".join(lines)


def _arguments(value: Card, layout: _Layout) -> list[str]:
    """Each argument with its name, or the beginnings of some; Markdown."""
    if layout.room == _ALL:
        return [f"{bold(_name(field.name))}\n{code_block(field.value)}" for field in value.fields]
    shown = value.fields[: layout.room // 80]
    room = layout.room // max(len(shown), 1) - 40
    lines = [
        f"{bold(cut(_name(field.name), 40))}\n{code_block(field.value, max(room, 20))}" for field in shown
    ]
    if len(value.fields) > len(shown):
        more = len(value.fields) - len(shown)
        lines.append(f"*… and {more} more arguments*" if shown else f"*{more} arguments*")
    return lines


def _name(name: str) -> str:
    return f"{flat(name) or '(no name)'}:"


def _grouped(arguments: list[str]) -> list[Json]:
    """The arguments as text displays: one each, or several in one where there are many."""
    each = -(-len(arguments) // _DISPLAYS)
    return [text("\n".join(arguments[at : at + each])) for at in range(0, len(arguments), each)]


def _attached(value: Card, layout: _Layout) -> str:
    """Where the whole is; Markdown."""
    what = "arguments" if value.kind == "approval" else "details"
    file = layout.file
    if file is not None and layout.readable:
        return f"All {what}, in full: {code(file.name)}, {file.size:,} bytes, SHA-256 {code(file.sha256)}"
    if value.state != "open":
        size = f": {file.size:,} bytes, SHA-256 {code(file.sha256)}" if file is not None else ""
        return f"The {what} are shortened here{size}."
    refusal = "" if value.kind == "question" else ", so this cannot be approved from this message"
    return f"**The {what} are too long to show and the file with them could not be delivered here{refusal}.**"


def _foot(value: Card, layout: _Layout) -> list[str]:
    """Lines of Markdown."""
    request = f"Request {code(cut(value.card_id, _NAMES))}"
    if value.state != "open":
        return [request]
    elsewhere = choices.chosen_elsewhere(value)
    lines = [escape_discord(elsewhere)] if elsewhere else []
    if value.deciders.strip():
        lines.append(f"Who may decide: {escape_discord(layout.shorten(flat(value.deciders)))}")
    if value.expires.strip():
        lines.append(f"Expires: {escape_discord(layout.shorten(flat(value.expires)))}")
    if value.code and (layout.readable or value.kind == "question"):
        lines.append(f"Code: {code(cut(value.code, _NAMES))}")
    lines.append(request)
    return lines + (["(a repeat: the card may already be above)"] if value.repeat else [])


def _controls(value: Card, page: int, *, readable: bool) -> list[Json]:
    """The rows of an open card that people use."""
    forms = frozenset(form.data for form in value.forms)
    offered = [b for b in value.buttons if readable or value.kind == "question" or refuses(b)]
    drawn = [
        button(b.label, form_id(b.data) if b.data in forms else b.data, b.tone)
        for b in offered[: LIMITS.buttons]
    ]
    return [*choices.select(value, page), *rows(choices.buttons(value)), *rows(drawn)]
