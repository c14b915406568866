"""Cards as Telegram draws them: text with spans in UTF-16 units, and rows of buttons. Pure.

What does not fit into one message is whole in one file; the message then has the beginnings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from channels.base import Button, Card, CardField, Choice, unpack_press
from channels.render.arguments import ArgsFile
from channels.render.inert import visible
from channels.telegram import forms
from channels.telegram.limits import LIMITS, MENTIONS, ROW
from channels.telegram.render import Drawn, Key, Words, cut, fits, inert


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """How much of a card its message has. `room`: units for the beginnings of all that is in the file,
    None where nothing is left to a file. `listed`: how many calls are told of. `brief`: without their
    summaries. `readable`: somebody can read all arguments."""

    room: int | None = None
    listed: int | None = None
    brief: bool = False
    readable: bool = True


def card(value: Card, *, file: ArgsFile | None = None, readable: bool = True) -> Drawn:
    """A card's message. `file`: the arguments are attached instead of shown in full. `readable`:
    somebody can read them all; otherwise nothing that lets a call run is offered."""
    drawn = _drawn(value, None, _Layout(readable=readable))
    if file is None and (fits(drawn) or _has_contents(value)):
        return drawn
    for layout in _layouts(value, file, readable=readable):
        drawn = _drawn(value, file, layout)
        if fits(drawn):
            return drawn
    return drawn


def _layouts(value: Card, file: ArgsFile | None, *, readable: bool) -> Iterator[_Layout]:
    """From the one that says most to the one that says least."""
    for brief in (False, True) if value.calls else (False,):
        for room in (1500, 700, 300, 0):
            yield _Layout(room=room, brief=brief, readable=readable)
    listed = len(value.calls)
    while listed > 0:
        listed = listed * 2 // 3
        yield _Layout(room=0, brief=True, listed=listed, readable=readable)


def args_file(value: Card) -> ArgsFile | None:
    """The file that a card needs because what will run does not fit into one message; None when it does."""
    if not _has_contents(value) or fits(_drawn(value, None, _Layout())):
        return None
    if value.calls:
        text = "\n\n".join(_numbered(number, call) for number, call in enumerate(value.calls, 1))
    else:
        text = _contents(value)
    name = re.sub(r"[^A-Za-z0-9_-]", "", value.code or value.card_id) or "card"
    return ArgsFile(name=f"args-{name}.txt", content=f"{text}\n".encode())


def _has_contents(value: Card) -> bool:
    return any(one.fields or one.preview for one in value.calls or (value,))


def _numbered(number: int, call: Card) -> str:
    code = f" (code {call.code})" if call.code else ""
    return f"---- {number}. {visible(call.title)}{code}\n\n{_contents(call)}"


def _contents(call: Card) -> str:
    pieces = [f"{field.name}:\n{visible(field.value)}" for field in call.fields]
    if call.preview:
        pieces.append(f"[preview]\n{visible(call.preview)}")
    return "\n\n".join(pieces)


# ---- text


def _drawn(value: Card, file: ArgsFile | None, layout: _Layout) -> Drawn:
    words = Words()
    _head(words, value)
    if value.kind == "question":
        _options(words, value)
    if value.calls:
        _calls(words, value, layout)
    else:
        _content(words, value, layout.room if file else None)
    if file is not None:
        _attached(words, file, readable=layout.readable)
    if value.state != "open":
        return words.drawn()
    _foot(words, value)
    return words.drawn(keyboard(value, readable=layout.readable))


def _head(words: Words, value: Card) -> None:
    icon = "❓" if value.kind == "question" else "🔐"
    room = 2500 if value.kind == "question" else 1000  # a question is to be read whole
    words.add(f"{icon if value.state == 'open' else '▪️'} ").line(cut(inert(value.title), room), "bold")
    if value.summary:
        words.line(cut(inert(value.summary), 1500))
    if value.status:
        words.line().line(cut(inert(value.status), 500), "italic" if value.state == "open" else "bold")


def _calls(words: Words, value: Card, layout: _Layout) -> None:
    """Every call with its number; what stands beside the numbers on the buttons."""
    listed = value.calls[: layout.listed]
    room = None if layout.room is None else layout.room // len(value.calls)
    for number, call in enumerate(listed, 1):
        _call(words, number, call, replace(layout, room=room))
    if len(value.calls) > len(listed):
        words.line().line(f"... and {len(value.calls) - len(listed)} more calls")
    bare = [call for call in value.calls if call.state == "open" and call.card_id not in with_keys(value)]
    if bare and value.state == "open":
        words.line().add(f"No room here for the buttons of {len(bare)} calls. Decide them with ")
        if layout.readable:
            words.add("/approve CODE", "code").add(" or ")
        words.add("/deny CODE", "code").line(".")


def _call(words: Words, number: int, call: Card, layout: _Layout) -> None:
    words.line().line(f"{number}. {cut(inert(call.title), 60 if layout.brief else 300)}", "bold")
    if call.summary and not layout.brief:
        words.line(cut(inert(call.summary), 500))
    if call.status:
        words.line(cut(inert(call.status), 200), "italic")
    _content(words, call, layout.room)
    if call.state != "open":
        return
    if call.expires and not layout.brief:
        words.line(f"Expires: {cut(inert(call.expires), 100)}")
    if call.code:
        words.add("Code: ").line(call.code, "code")


def _content(words: Words, call: Card, room: int | None) -> None:
    """What will run: all of it or, where `room` says how much, the beginnings."""
    if room is None:
        for field in call.fields:
            words.line().line(f"{inert(field.name)}:", "bold")
            words.line(_shown(field.value), "pre")
    else:
        shown = call.fields[: room // 60]
        room //= len(shown) + (1 if call.preview else 0) or 1
        _beginnings(words, call.fields, shown, room)
    if call.preview and (room is None or room >= 40):
        words.line().line("Preview:", "bold")
        text = _shown(call.preview)
        language = "diff" if call.preview_kind == "diff" else ""
        words.line(text if room is None else cut(text, room), "pre", language=language)


def _beginnings(words: Words, fields: Sequence[CardField], shown: Sequence[CardField], each: int) -> None:
    for field in shown:
        words.line().line(f"{cut(inert(field.name), 60)}:", "bold")
        words.line(cut(_shown(field.value), each), "pre")
    if len(fields) > len(shown):
        words.line(
            f"... and {len(fields) - len(shown)} more arguments" if shown else f"... {len(fields)} arguments"
        )


def _shown(value: str) -> str:
    """An argument as it is drawn; line ends behind it, which Telegram would strip, are made visible."""
    text = visible(value)
    bare = text.rstrip("\n")
    return bare + "↵" * (len(text) - len(bare)) or "(empty)"


def _attached(words: Words, file: ArgsFile, *, readable: bool) -> None:
    """Where the whole of the arguments is."""
    words.line()
    if readable:
        words.line(f"All arguments, in full: {file.name}, {len(file.content):,} bytes")
        words.add("SHA-256 ").line(file.sha256, "code")
        return
    words.line(
        "The arguments are too long to show and the file with them could not be delivered here, "
        "so this cannot be approved from this message.",
        "bold",
    )


def _options(words: Words, value: Card) -> None:
    """The options in words, where the buttons alone do not say it all."""
    if not any(c.description or c.label != cut(c.label, LIMITS.button_label) for c in value.choices):
        return
    words.line()
    for number, choice in enumerate(value.choices, 1):
        words.add(f"{number}. ").add(cut(inert(choice.label), 200), "bold")
        words.line(f" - {cut(inert(choice.description), 200)}" if choice.description else "")


def _foot(words: Words, value: Card) -> None:
    lines = [("Who may decide", value.deciders), ("Expires", value.expires)]
    told = [(label, cut(inert(text), 300)) for label, text in lines if text]
    if told or value.code:
        words.line()
    for label, text in told:
        words.line(f"{label}: {text}")
    if value.code:
        words.add("Code: ").line(value.code, "code")
    _notified(words, value)
    if value.repeat:
        words.line().line("(a repeat: the card may already be above)", "italic")


def _notified(words: Words, value: Card) -> None:
    """Who is asked: by the id, as Telegram tells bots no names. The only live mentions of a card."""
    people = [actor.user for actor in value.asks if actor.user.isascii() and actor.user.isdecimal()]
    for place, user in enumerate(people[:MENTIONS]):
        words.add("Notified: " if place == 0 else " ").add(f"🔔{user}", "text_mention", user=int(user))
    if people:
        more = len(people) - MENTIONS
        words.line(f" and {more} more are asked" if more > 0 else "")


# ---- buttons


def keyboard(value: Card, *, readable: bool = True) -> tuple[tuple[Key, ...], ...]:
    """The rows of an open card: one option a row, or each call's buttons with its number; then the
    card's own buttons, two a row where they are short."""
    keys = _keys(value, readable=readable or value.kind == "question")
    if value.calls:
        own = with_keys(value)
        rows = [
            _rows(_keys(call, readable=readable, number=number))
            for number, call in enumerate(value.calls, 1)
            if call.card_id in own
        ]
        return (*(row for of_call in rows for row in of_call), *_rows(keys))
    room = LIMITS.buttons - len(keys)
    options = [
        _option(number, choice, multi=value.multi) for number, choice in enumerate(value.choices[:room], 1)
    ]
    return (*((key,) for key in options), *_rows(keys))


def with_keys(value: Card) -> frozenset[str]:
    """The calls of a card whose buttons fit: the first open ones."""
    left = LIMITS.buttons - len(value.buttons)
    drawn = []
    for call in value.calls:
        if call.state != "open":
            continue
        left -= len(call.buttons)
        if left < 0:
            break
        drawn.append(call.card_id)
    return frozenset(drawn)


def _keys(value: Card, *, readable: bool, number: int = 0) -> list[Key]:
    openings = {form.data: forms.opening(form, LIMITS.button_bytes) for form in value.forms}
    return [
        Key(
            label=f"{number or ''} {cut(visible(button.label), LIMITS.button_label - 8)}".strip() or "?",
            data=openings.get(button.data, button.data),
            style="" if button.tone == "plain" else button.tone,
        )
        for button in value.buttons
        if readable or _refuses(button)
    ]


def _option(number: int, choice: Choice, *, multi: bool) -> Key:
    sign = ("☑ " if choice.chosen else "☐ ") if multi else ""
    label = visible(choice.label)
    short = cut(label, LIMITS.button_label - 8)
    return Key(
        label=f"{sign}{f'{number}. ' if short != label else ''}{short}" or str(number), data=choice.data
    )


def _refuses(button: Button) -> bool:
    """Whether a button lets nothing run: a no, which people may say without having read everything."""
    packed = unpack_press(button.data)
    if button.harmless or button.tone == "danger":
        return True
    return packed is not None and packed[1].startswith(("deny", "cancel"))


def _rows(keys: Sequence[Key]) -> tuple[tuple[Key, ...], ...]:
    rows: list[list[Key]] = []
    for key in keys:
        beside = rows and len(rows[-1]) < ROW and all(len(k.label) <= 18 for k in (*rows[-1], key))
        if beside:
            rows[-1].append(key)
        else:
            rows.append([key])
    return tuple(tuple(row) for row in rows)
