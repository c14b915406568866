"""Answers and prompts as Telegram draws them: text with spans in UTF-16 units. Cards are in cards.py.
Pure. No markup language is used, so nothing that a model or a person writes can be taken for markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import regex

from channels.base import Actor, Form, FormField, OutboundMessage
from channels.render.inert import visible
from channels.render.telegram import quiet, telegram_messages
from channels.telegram import forms
from channels.telegram.limits import ENTITIES, LIMITS, MENTIONS, PLACEHOLDER, RESERVE

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


class Words:
    """Text that grows, with its spans."""

    def __init__(self) -> None:
        self.text = ""
        self.units = 0
        self.spans: list[Span] = []

    def add(self, text: str, kind: str = "", *, user: int = 0, language: str = "") -> Words:
        """Append text, formatted as `kind` when one is given."""
        length = utf16_len(text)
        if kind and length:
            span = Span(type=kind, offset=self.units, length=length, user=user, language=language)
            self.spans.append(span)
        self.text += text
        self.units += length
        return self

    def line(self, text: str = "", kind: str = "", *, language: str = "") -> Words:
        """Append text and end the line."""
        return self.add(text, kind, language=language).add("\n")

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


def fits(drawn: Drawn) -> bool:
    """Whether Telegram takes the text as it is."""
    return utf16_len(drawn.text) <= LIMITS.text and len(drawn.spans) <= ENTITIES


def clipped(drawn: Drawn) -> Drawn:
    """The message as Telegram takes it, whatever was asked for: better an ellipsis than a refusal."""
    drawn = replace(drawn, text=sound(drawn.text))
    if fits(drawn):
        return drawn
    text = cut(drawn.text, LIMITS.text)
    end = utf16_len(text)
    spans = [replace(s, length=min(s.length, end - s.offset)) for s in drawn.spans if s.offset < end]
    return replace(drawn, text=text, spans=tuple(spans[:ENTITIES]))


def inert(text: str) -> str:
    """Words for a card's running text: nothing is hidden in them and nobody is mentioned."""
    return quiet(visible(text))


# ---- answers


def parts(message: OutboundMessage) -> tuple[Part, ...]:
    """One part for each Telegram message: the text's pieces, then each file. Never empty.

    The cut depends on the text alone, not on `repeat`, `mentions` or `kind`: the n-th part stays the
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
            mentions=message.mentions if index == 0 else (),
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
    """A part with its dress: the mentions in front, the mark of a repeat behind."""
    words = Words()
    people = [one.user for one in part.mentions if one.user.isascii() and one.user.isdecimal()]
    for user in list(dict.fromkeys(people))[:MENTIONS]:
        words.add("🔔", "text_mention", user=int(user))
    words.add(" " if people else "")
    if part.kind == "error":
        words.add("⚠️ ")
    shift = words.units
    words.add(part.text)
    words.spans += [replace(span, offset=span.offset + shift) for span in part.spans]
    if part.repeat and part.text:
        words.add("\n\n").add(_REPEAT, "italic")
    return words.drawn()


# ---- prompts

_FIELDS: Final = 30  # of a form that a prompt names


def prompt(
    value: forms.Prompt, line: str, *, form: Form | None, label: str, asked: Actor, name: str
) -> Drawn:
    """The message that people reply to. `line` is the sealed last line; `form` is None when nobody can
    tell what it holds. `asked` is mentioned, so that only that person's client opens a reply."""
    words = Words()
    words.add(cut(inert(name), 60) or "You", "text_mention", user=int(asked.user))
    words.line(f": {cut(inert(form.title if form else label), 200)}").line()
    fields = {field.name: field for field in form.fields} if form else {}
    if len(value.names) == 1 and value.names != forms.ANY:
        field = fields.get(value.names[0])
        words.line(f"Reply to this message with: {_asked(field, value.names[0])}")
    else:
        names = tuple(fields) if value.names == forms.ANY and fields else value.names
        _lines(words, names, fields)
    only = next(iter(fields.values()), None) if len(fields) == 1 else None
    if only is not None and only.value:
        words.line("Now:").line(cut(visible(only.value), 2000), "pre")
    return words.line().add(line, "code").drawn()


def _lines(words: Words, names: Sequence[str], fields: Mapping[str, FormField]) -> None:
    """One line for each value, as it can be sent back, and what it may be."""
    words.line("Reply to this message with one line for each value that you set, like this:")
    shown = names[:_FIELDS]
    each, each_hint = 2200 // max(1, len(shown)), 900 // max(1, len(shown))
    for name in shown:
        field = fields.get(name)
        now = field.value.replace("\n", ", ") if field and field.kind == "multi" else field and field.value
        words.add(cut(f"{visible(name)}: {cut(visible(now or ''), 100) or '...'}", each), "code")
        extra = "; ".join(_about(field)) if field else ""
        words.line(f" ({cut(inert(extra), each_hint)})" if extra else "")
    if len(names) > len(shown):
        words.line(f"... and {len(names) - len(shown)} more")


def _asked(field: FormField | None, name: str) -> str:
    if field is None:
        return cut(inert(name), 200)
    extra = _extra(field)
    return cut(
        inert(field.label or field.name) + (f" ({'; '.join(inert(e) for e in extra)})" if extra else ""), 600
    )


_KINDS: Final = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "date": "a date like 2027-01-31",
    "json": "JSON",
}


_TOLD: Final = ("a number", "a whole number", "a date", "yes or no")  # hints that say it already


def _about(field: FormField) -> list[str]:
    """What is asked, where the name does not say it, and what the value may be."""
    return [*([field.label] if field.label != field.name else []), *_extra(field)]


def _extra(field: FormField) -> list[str]:
    """What a value may be, in words."""
    several = "one or several, with commas between, of" if field.kind == "multi" else "one of"
    told = field.kind not in _KINDS or field.hint.startswith(_TOLD)
    return [
        *([field.hint] if field.hint else []),
        *([] if told else [_KINDS[field.kind]]),
        *([f"{several} {', '.join(field.options)}"] if field.options else []),
    ]


def placeholder(label: str) -> str:
    """The grey text in the reply field."""
    return cut(visible(label), PLACEHOLDER) or "..."
