"""Cards, answers and prompts as Telegram draws them: text with spans in UTF-16 units, and rows of buttons.
Pure. No markup language is used, so nothing that a model or a person writes can be taken for markup.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import regex

from channels.base import (
    Actor,
    Button,
    Card,
    CardField,
    Choice,
    Form,
    FormField,
    OutboundMessage,
    unpack_press,
)
from channels.render.inert import visible
from channels.render.telegram import quiet, telegram_messages
from channels.telegram import forms
from channels.telegram.limits import ENTITIES, LIMITS, PLACEHOLDER, RESERVE, ROW

Style = Literal["primary", "danger", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One formatted stretch. `user`: the id of a person whom it mentions, 0 for none."""

    type: str
    offset: int
    length: int
    url: str = ""
    language: str = ""
    user: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One button of an inline keyboard."""

    label: str
    data: str
    style: Style = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One message as it goes out."""

    text: str
    spans: tuple[Span, ...] = ()
    rows: tuple[tuple[Key, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(OutboundMessage):
    """One piece of an answer, rendered: `text` is plain and `spans` format it. Made by `parts` only."""

    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgsFile:
    """All arguments of a call as a file that people can read, with the hash that the card shows."""

    name: str
    content: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


class Words:
    """Text that grows, with its spans."""

    def __init__(self) -> None:
        self.text = ""
        self.units = 0
        self.spans: list[Span] = []

    def add(self, text: str, kind: str = "", *, user: int = 0) -> Words:
        """Append text, formatted as `kind` when one is given."""
        length = utf16_len(text)
        if kind and length:
            self.spans.append(Span(type=kind, offset=self.units, length=length, user=user))
        self.text += text
        self.units += length
        return self

    def line(self, text: str = "", kind: str = "") -> Words:
        """Append text and end the line."""
        return self.add(text, kind).add("\n")

    def drawn(self, rows: tuple[tuple[Key, ...], ...] = ()) -> Drawn:
        """The message so far, without the line ends behind it."""
        text = self.text.rstrip("\n")
        end = utf16_len(text)
        spans = [replace(s, length=min(s.length, end - s.offset)) for s in self.spans if s.offset < end]
        return Drawn(text=text, spans=tuple(spans), rows=rows)


def utf16_len(text: str) -> int:
    """Length in UTF-16 code units, Telegram's measure."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, limit: int) -> str:
    """At most `limit` UTF-16 units, cut between two graphemes; an ellipsis where something is missing."""
    if utf16_len(text) <= limit:
        return text
    kept, used = [], 1
    for grapheme in regex.findall(r"\X", text[: limit + 1]):
        used += utf16_len(grapheme)
        if used > limit:
            break
        kept.append(grapheme)
    return "".join(kept).rstrip() + "…"


def sound(text: str) -> str:
    """Text that can be sent: what is no character becomes the sign for that, one unit for one unit."""
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\0", "\ufffd")


def inert(text: str) -> str:
    """Words for a card's running text: nothing is hidden in them and nobody is mentioned."""
    return quiet(visible(text))


# ---- answers


def parts(message: OutboundMessage) -> tuple[Part, ...]:
    """One part for each Telegram message: the text's pieces, then each file. Never empty.

    The cut depends on the text alone, not on `repeat`, `mention` or `kind`: the n-th part stays the
    n-th part.
    """
    if isinstance(message, Part):
        return (message,)
    pieces = [] if not message.text.strip() else telegram_messages(message.text, limit=LIMITS.text - RESERVE)
    drawn = [
        Part(
            text=piece.text,
            spans=tuple(
                Span(
                    type=e.type, offset=e.offset, length=e.length, url=e.url or "", language=e.language or ""
                )
                for e in piece.entities
            ),
            kind=message.kind,
            repeat=message.repeat,
            mention=message.mention if index == 0 else None,
            reply_to=message.reply_to if index == 0 else "",
        )
        for index, piece in enumerate(pieces)
    ]
    drawn += [
        Part(text="", kind=message.kind, files=(file,), repeat=message.repeat) for file in message.files
    ]
    return tuple(drawn) or (Part(text="(no text)", kind=message.kind, repeat=message.repeat),)


_REPEAT: Final = "(this may be a repeat: the connection broke while it was sent)"


def drawn_part(part: Part) -> Drawn:
    """A part with its dress: the mention in front, the mark of a repeat behind."""
    words = Words()
    if part.mention is not None and part.mention.user.isdecimal():
        words.add("🔔", "text_mention", user=int(part.mention.user)).add(" ")
    if part.kind == "error":
        words.add("⚠️ ")
    shift = words.units
    words.add(part.text)
    words.spans += [replace(span, offset=span.offset + shift) for span in part.spans]
    if part.repeat and part.text:
        words.add("\n\n").add(_REPEAT, "italic")
    return words.drawn()


# ---- cards


def card(value: Card, *, file: ArgsFile | None = None, readable: bool = True) -> Drawn:
    """A card's message. `file`: the arguments are attached instead of shown in full. `readable`:
    somebody can read them all; otherwise nothing that lets the call run is offered."""
    if file is None:
        return _card(value, None, 0, readable=readable)
    drawn = _card(value, file, 0, readable=readable)
    for room in (1500, 700, 300):  # units for the beginnings of all arguments together
        longer = _card(value, file, room, readable=readable)
        if _fits(longer):
            return longer
    return drawn


def _card(value: Card, file: ArgsFile | None, room: int, *, readable: bool) -> Drawn:
    words = Words()
    _head(words, value)
    if value.kind == "question":
        _options(words, value)
    if file is None:
        _fields(words, value.fields)
    else:
        _previews(words, value.fields, room)
        _attached(words, file, readable=readable)
    if value.state == "open":
        _foot(words, value)
    rows = keyboard(value, readable=readable) if value.state == "open" else ()
    return words.drawn(rows)


def _fits(drawn: Drawn) -> bool:
    return utf16_len(drawn.text) <= LIMITS.text and len(drawn.spans) <= ENTITIES


def clipped(drawn: Drawn) -> Drawn:
    """The message as Telegram takes it, whatever was asked for: better an ellipsis than a refusal."""
    drawn = replace(drawn, text=sound(drawn.text))
    if _fits(drawn):
        return drawn
    text = cut(drawn.text, LIMITS.text)
    end = utf16_len(text)
    spans = [replace(s, length=min(s.length, end - s.offset)) for s in drawn.spans if s.offset < end]
    return replace(drawn, text=text, spans=tuple(spans[:ENTITIES]))


def args_file(value: Card) -> ArgsFile | None:
    """The file that a card needs because its arguments do not fit into one message; None when they do."""
    if not value.fields or _fits(card(value)):
        return None
    text = "\n\n".join(f"{field.name}:\n{visible(field.value)}" for field in value.fields) + "\n"
    name = re.sub(r"[^A-Za-z0-9_-]", "", value.code or value.card_id) or "card"
    return ArgsFile(name=f"args-{name}.txt", content=text.encode())


def _head(words: Words, value: Card) -> None:
    icon = "❓" if value.kind == "question" else "🔐"
    room = 2500 if value.kind == "question" else 1000  # a question is to be read whole
    words.add(f"{icon if value.state == 'open' else '▪️'} ").line(cut(inert(value.title), room), "bold")
    if value.summary:
        words.line(cut(inert(value.summary), 1500))
    if value.status:
        words.line().line(cut(inert(value.status), 500), "italic" if value.state == "open" else "bold")


def _fields(words: Words, fields: Sequence[CardField]) -> None:
    for field in fields:
        words.line().line(f"{visible(field.name)}:", "bold")
        words.line(_shown(field.value), "pre")


def _shown(value: str) -> str:
    """An argument as it is drawn; line ends behind it, which Telegram would strip, are made visible."""
    text = visible(value)
    bare = text.rstrip("\n")
    return bare + "↵" * (len(text) - len(bare)) or "(empty)"


def _previews(words: Words, fields: Sequence[CardField], room: int) -> None:
    """The beginning of each argument."""
    shown = fields[: room // 60]
    for field in shown:
        words.line().line(f"{cut(visible(field.name), 60)}:", "bold")
        words.line(cut(_shown(field.value), room // len(shown)), "pre")
    if len(fields) > len(shown):
        words.line().line(f"... and {len(fields) - len(shown)} more arguments")


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
    if value.repeat:
        words.line().line("(a repeat: the card may already be above)", "italic")


# ---- buttons


def keyboard(value: Card, *, readable: bool = True) -> tuple[tuple[Key, ...], ...]:
    """The rows of an open card: one option a row, then the buttons, two a row where they are short."""
    buttons = [b for b in value.buttons if readable or value.kind == "question" or _refuses(b)]
    openings = {form.data: forms.opening(form, LIMITS.button_bytes) for form in value.forms}
    keys = [
        Key(
            label=cut(visible(button.label), LIMITS.button_label).strip() or "?",
            data=openings.get(button.data, button.data),
            style="" if button.tone == "plain" else button.tone,
        )
        for button in buttons
    ]
    room = LIMITS.buttons - len(keys)
    options = [
        _option(number, choice, multi=value.multi) for number, choice in enumerate(value.choices[:room], 1)
    ]
    return (*((key,) for key in options), *_rows(keys))


def _option(number: int, choice: Choice, *, multi: bool) -> Key:
    sign = ("☑ " if choice.chosen else "☐ ") if multi else ""
    label = visible(choice.label)
    short = cut(label, LIMITS.button_label - 8)
    return Key(
        label=f"{sign}{f'{number}. ' if short != label else ''}{short}" or str(number), data=choice.data
    )


def _refuses(button: Button) -> bool:
    """Whether a button can only lead to a no, which people may say without having read everything."""
    packed = unpack_press(button.data)
    return button.tone == "danger" or (packed is not None and packed[1].startswith(("deny", "cancel")))


def _rows(keys: Sequence[Key]) -> tuple[tuple[Key, ...], ...]:
    rows: list[list[Key]] = []
    for key in keys:
        fits = rows and len(rows[-1]) < ROW and all(len(k.label) <= 18 for k in (*rows[-1], key))
        if fits:
            rows[-1].append(key)
        else:
            rows.append([key])
    return tuple(tuple(row) for row in rows)


# ---- prompts


def prompt(
    value: forms.Prompt, line: str, *, form: Form | None, label: str, asked: Actor, name: str
) -> Drawn:
    """The message that people reply to. `line` is the sealed last line; `form` is None after a restart.
    `asked` is mentioned, so that only that person's client opens a reply."""
    words = Words()
    words.add(cut(inert(name), 60) or "You", "text_mention", user=int(asked.user))
    words.line(f": {cut(inert(form.title if form else label), 200)}").line()
    fields = {field.name: field for field in form.fields} if form else {}
    if len(value.names) == 1 and value.names != forms.ANY:
        field = fields.get(value.names[0])
        words.line(f"Reply to this message with: {_asked(field, value.names[0])}")
    else:
        words.line("Reply to this message with one line for each value that you set, like this:")
        names = tuple(fields) if value.names == forms.ANY and fields else value.names
        for field_name in names:
            now = fields[field_name].value if field_name in fields else ""
            words.line(f"{visible(field_name)}: {cut(visible(now), 100) or '...'}", "code")
    only = next(iter(fields.values()), None) if len(fields) == 1 else None
    if only is not None and only.value:
        words.line("Now:").line(cut(visible(only.value), 2500), "pre")
    return words.line().add(line, "code").drawn()


def _asked(field: FormField | None, name: str) -> str:
    if field is None:
        return cut(inert(name), 200)
    extra = [
        *([field.hint] if field.hint else []),
        *([f"one of {', '.join(field.options)}"] if field.options else []),
    ]
    return cut(
        inert(field.label or field.name) + (f" ({'; '.join(inert(e) for e in extra)})" if extra else ""), 600
    )


def placeholder(label: str) -> str:
    """The grey text in the reply field."""
    return cut(visible(label), PLACEHOLDER) or "..."
