"""Cards as Slack draws them. Pure.

Arguments are preformatted rich text, which knows no markup and no way out of itself. A card that does
not fit into one message shows beginnings and names the file with the whole; without anybody being
able to read that file, nothing that lets the call run is offered.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from channels.base import Card, CardField
from channels.render.inert import visible
from channels.render.measure import utf16_len
from channels.render.slack import escape_mrkdwn
from channels.slack import choices
from channels.slack.blocks import (
    Json,
    actions,
    button,
    context,
    cut,
    fits,
    flat,
    header,
    paragraph,
    preformatted,
    refuses,
    rich,
    words,
)
from channels.slack.limits import HEADER

_ALL: Final = -1  # room for everything
_ROOMS: Final = (3000, 1200, 400, 0)  # units for the beginnings of all arguments, or options, together
_SUMMARY, _STATUS, _LINE, _SENTENCE = 2500, 1500, 300, 300  # units


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
    """One way to draw a card. room: units for arguments and options, _ALL for all of them."""

    room: int
    style: choices.Style
    file: ArgsFile | None = None
    readable: bool = True


def card(value: Card, *, file: ArgsFile | None = None, readable: bool = True) -> Json:
    """`text` and `blocks` of a card's message.

    file: what `args_file` gave, if anything. readable: that file was delivered; otherwise no button is
    drawn that lets the call run, and no code.
    """
    drawn: list[Json] = []
    for layout in _layouts(value, file, readable=readable):
        drawn = _blocks(value, layout)
        if fits(drawn):
            break
    return {"text": sentence(value), "blocks": drawn}


def args_file(value: Card) -> ArgsFile | None:
    """The file that a card needs because it does not fit into one message; None when it does."""
    whole = {layout.style for layout in _whole(value) if fits(_blocks(value, layout))}
    if whole - {"none"}:
        return None
    file = _file(value)
    best = next((x.style for x in _shortened_ways(value, file) if fits(_blocks(value, x))), "none")
    # Rather a list in a file and a control than a list without one.
    return None if whole and best == "none" else file


def _file(value: Card) -> ArgsFile:
    parts = [f"{visible(value.title)}\n{visible(value.summary)}".strip()]
    if value.choices:
        parts.append(choices.full_list(value))
    parts += [f"{visible(field.name)}:\n{visible(field.value)}" for field in value.fields]
    name = re.sub(r"[^A-Za-z0-9_-]", "", value.code or value.card_id)[:40] or "card"
    kind = "args" if value.kind == "approval" else "question"
    return ArgsFile(name=f"{kind}-{name}.txt", content=("\n\n".join(parts) + "\n").encode())


def sentence(value: Card) -> str:
    """The card in one line: what notifications and screen readers say. For a mrkdwn field."""
    told = value.status if value.state != "open" and value.status else value.summary.partition("\n")[0]
    title = flat(value.title)
    colon = ":" if title[-1:].isalnum() and flat(told) else ""
    return escape_mrkdwn(cut(f"{title}{colon} {flat(told)}".strip() or "A request.", _SENTENCE))


# ---- layouts, the best first


def _layouts(value: Card, file: ArgsFile | None, *, readable: bool) -> Iterator[_Layout]:
    if file is None:
        yield from _whole(value)
        readable = False  # nowhere can all of it be read
    yield from _shortened_ways(value, file, readable=readable)


def _whole(value: Card) -> Iterator[_Layout]:
    for style in choices.styles(value):
        yield _Layout(room=_ALL, style=style)


def _shortened_ways(value: Card, file: ArgsFile | None, *, readable: bool = True) -> Iterator[_Layout]:
    for style in choices.styles(value):
        for room in _ROOMS:
            yield _Layout(room=room, style=style, file=file, readable=readable)


# ---- the blocks


def _blocks(value: Card, layout: _Layout) -> list[Json]:
    blocks = _head(value, layout)
    told = choices.listing(value, layout.style)
    if told:
        blocks += _listed(told, layout)
    if value.fields:
        shown = _fields(value) if layout.room == _ALL else _previews(value, layout.room)
        blocks += [rich(*shown)] if shown else []
    if layout.room != _ALL:
        blocks.append(rich(paragraph(*_attached(value, layout))))
    blocks.append(context(_foot(value, layout)))
    return blocks + (controls(value, layout.style, readable=layout.readable) if value.state == "open" else [])


def _head(value: Card, layout: _Layout) -> list[Json]:
    icon = "▪️" if value.state != "open" else "❓" if value.kind == "question" else "🔐"
    title = f"{icon} {flat(value.title)}"
    blocks = [header(title)]
    if value.status:
        runs = words(cut(visible(value.status), _STATUS), bold=True)
        blocks.append(rich(paragraph(runs)))
    if utf16_len(title) > HEADER:  # the header has only its beginning
        blocks.append(rich(paragraph(words(_shortened(value.title, layout), bold=True))))
    if value.summary.strip():
        blocks.append(rich(paragraph(words(_shortened(value.summary, layout)))))
    return blocks


def _shortened(text: str, layout: _Layout) -> str:
    if layout.room == _ALL:
        return visible(text)
    return cut(visible(text), _SUMMARY if layout.room >= _SUMMARY else 400)


def _listed(told: str, layout: _Layout) -> list[Json]:
    """The numbered options, or their beginning."""
    if layout.room == 0:
        return []
    shown = told if layout.room == _ALL else cut(told, layout.room)
    return [rich(paragraph(words(shown)))]


def _fields(value: Card) -> list[Json]:
    """Every argument: its name, and all of it."""
    return [element for field in value.fields for element in (_name(field, _SUMMARY), _value(field))]


def _previews(value: Card, room: int) -> list[Json]:
    """The beginning of each argument."""
    shown = value.fields[: room // 60]
    elements = [
        element
        for field in shown
        for element in (_name(field, 60), _value(field, max(room // len(shown), 20)))
    ]
    if len(value.fields) > len(shown):
        more = len(value.fields) - len(shown)
        what = "more arguments" if shown else "arguments"
        elements.append(paragraph(words(f"… and {more} {what}" if shown else f"{more} {what}", italic=True)))
    return elements


def _name(field: CardField, limit: int) -> Json:
    return paragraph(words(f"{cut(flat(field.name), limit) or '(no name)'}:", bold=True))


def _value(field: CardField, limit: int = 0) -> Json:
    """An argument; line ends behind it, which nobody would see, are drawn."""
    text = visible(field.value)
    if not text:
        return paragraph(words("(empty)", italic=True))
    bare = text.rstrip("\n")
    shown = bare + "↵" * (len(text) - len(bare))
    return preformatted(cut(shown, limit) if limit else shown)


def _attached(value: Card, layout: _Layout) -> list[Json]:
    """Where the whole is."""
    what = "arguments" if value.kind == "approval" else "details"
    file = layout.file
    if file is not None and value.state != "open":  # what was decided on may have been changed since
        size = f"The {what} are shortened here; in full: {file.size:,} bytes, SHA-256 "
        return [words(size), words(file.sha256, code=True)]
    if file is not None and layout.readable:
        return [
            words(f"All {what}, in full: {file.name}, {file.size:,} bytes, SHA-256 "),
            words(file.sha256, code=True),
        ]
    refusal = "" if value.kind == "question" else ", so this cannot be approved from this message"
    return [
        words(
            f"The {what} are too long to show and the file with them could not be delivered here{refusal}.",
            bold=True,
        )
    ]


def _foot(value: Card, layout: _Layout) -> list[str]:
    request = f"Request {flat(value.card_id)}"
    if value.state != "open":
        return [request]
    lines = [choices.hint(value, layout.style)] if value.choices else []
    lines += [f"Who may decide: {cut(flat(value.deciders), _LINE)}"] if value.deciders.strip() else []
    lines += [f"Expires: {cut(flat(value.expires), _LINE)}"] if value.expires.strip() else []
    if value.code and (layout.readable or value.kind == "question"):
        lines.append(f"Code: {flat(value.code)}")
    lines.append(request)
    lines += ["(a repeat: the card may already be above)"] if value.repeat else []
    return [line for line in lines if line]


def controls(value: Card, style: choices.Style, *, readable: bool = True, start: int = 1) -> list[Json]:
    """The blocks of an open card that people use. start: the number of the first control; no two in a
    message or view may have the same."""
    blocks, elements = choices.controls(value, style, start)
    offered = [b for b in value.buttons if readable or value.kind == "question" or refuses(b)]
    forms = frozenset(form.data for form in value.forms)
    first = start + max(len(value.choices), 1)
    elements = [*elements, *(button(number, b, forms) for number, b in enumerate(offered, first))]
    return blocks + actions(elements)
