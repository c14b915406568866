"""Forms as Discord's modals, in pages of five fields, and what people filled in. Pure.

A field's name is in its input's custom id, so that a submission can be read without having seen the
form, unless the name is too long for that. A field that a modal cannot hold unharmed is left out and
said to keep its value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from channels.base import Form, FormField
from channels.discord.components import Json, bold, button, row, text
from channels.discord.limits import (
    CHECKBOXES,
    CUSTOM_ID,
    EPHEMERAL,
    INPUT,
    LIMITS,
    MODAL_FIELDS,
    MODAL_HINT,
    MODAL_LABEL,
    MODAL_PLACEHOLDER,
    MODAL_TITLE,
    OPTION,
    OPTIONS,
    PLACEHOLDER,
    RADIOS,
    SUPPRESS_EMBEDS,
)
from channels.discord.refs import form_id, modal_id
from channels.render.discord import escape_discord
from channels.render.inert import flat, visible
from channels.render.measure import cut, utf16_len

_SELECT, _INPUT, _LABEL, _RADIO, _CHECKBOXES = 3, 4, 18, 21, 22
_SHORT, _PARAGRAPH = 1, 2  # styles of a text input
_ID: Final = re.compile(r"([im]):([0-9]{1,4})(?::(.*))?", re.DOTALL)
_SEVERAL: Final = "m"  # how the custom id of a field begins that holds several values
_UNSENDABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")  # the carriage return too
_LONG: Final = 80  # characters of a text that get several lines
_TRUTH: Final = ("true", "false")
_NOTE: Final = 600  # units of what is said about fields that keep their values
_FAULTS: Final = 800  # and about what is wrong
_PLACEHOLDERS: Final = {"integer": "a whole number", "number": "a number", "date": "YYYY-MM-DD"}

Values = Mapping[str, str | tuple[str, ...]]


def pages(value: Form) -> int:
    """How many modals the form takes, one after the other; 0 when it has nothing to fill in."""
    return -(-len(_shown(value)) // _fields_a_page(value))


def form(value: Form, page: int = 0, values: Values | None = None, *, card: str = "") -> Json:
    """One page of a form as a modal: `title`, `custom_id`, `components`.

    page: from 0. values: what has been typed already, by field. card: the id of the card's message,
    when it is not the card itself that opens this page. Raises ValueError for a page that there is not.
    """
    each = _fields_a_page(value)
    kept = _shown(value)[page * each : (page + 1) * each] if page >= 0 else []
    if not kept:
        raise ValueError(f"the form has {pages(value)} pages, there is no number {page}")
    typed = values or {}
    components = [_label(index, field, _now(field, typed)) for index, field in kept]
    note = left_out(value)
    if note:
        components.append(text(escape_discord(note)))
    return {
        "title": _title(value, page),
        "custom_id": modal_id(value.data, page, card),
        "components": components,
    }


def left_out(value: Form) -> str:
    """Which fields cannot be edited here, in words; "" for none."""
    fields = [field for field in value.fields if not _can_be_shown(field)]
    if not fields:
        return ""
    names = ", ".join(cut(flat(field.label or field.name), 60) or "(no name)" for field in fields)
    verb = "keep their values" if len(fields) > 1 else "keeps its value"
    return cut(f"Too long or too special to be edited here, {verb}: {names}", _NOTE)


def keeps_all(value: Form) -> str:
    """What to say, in inert words, instead of opening a form with nothing to fill in."""
    return visible(left_out(value)) or "There is nothing to fill in."


def values(components: Sequence[Any], form: Form | None = None) -> dict[str, str | tuple[str, ...]]:
    """What was filled in, by the field's name. components: those of a submission, untrusted.

    Texts as they were typed, "true" or "false", "" for what was left empty, a tuple where several may be
    chosen; a single choice that was not made is left out. form: the form as it stands now, where
    `needs_form` says that it is needed; without it such a field is left out.
    """
    found: dict[str, str | tuple[str, ...]] = {}
    for index, name, answer in _inputs(components):
        if name is None and form is not None and index < len(form.fields):
            name = form.fields[index].name
        if name is not None and answer is not None:
            found[name] = answer
    return found


def needs_form(components: Sequence[Any]) -> bool:
    """Whether a submission can be read only beside its form: a field's name was too long to travel."""
    return any(name is None for _, name, _ in _inputs(components))


def more(value: Form, page: int, card: str) -> Json:
    """The ephemeral message after a page that was not the last: a button opens the next one.

    page: the one that is opened. card: the id of the card's message.
    """
    words = f"Nothing is decided yet: {cut(flat(value.title), MODAL_TITLE)} has {pages(value)} pages."
    label = f"Continue ({page + 1}/{pages(value)})"
    return _ephemeral(escape_discord(words), button(label, form_id(value.data, page, card), "primary"))


def wrong(value: Form, faults: Mapping[str, str], card: str) -> Json:
    """The ephemeral message about a form that cannot be taken, with a button that opens it again: at
    the first page that has something to mend. faults: by field, "" for the whole."""
    labels = {field.name: field.label or field.name for field in value.fields}
    told = [
        f"{flat(labels.get(name, name))}: {flat(words)}" if name else flat(words)
        for name, words in faults.items()
    ]
    lines = [bold("Nothing is decided yet. Please look again:")]
    lines.append(escape_discord(cut("\n".join(told) or "something is not valid", _FAULTS)))
    again = form_id(value.data, _page_of(value, faults), card)
    return _ephemeral("\n".join(lines), button("Open it again", again, "primary"))


# ---- which fields, and where


def _can_be_shown(field: FormField) -> bool:
    """Whether a modal gives the field's value back as it was."""
    return _can_travel(field.value)


def _can_travel(value: str) -> bool:
    return utf16_len(value) <= INPUT and _UNSENDABLE.search(value) is None


def _now(field: FormField, typed: Values) -> str:
    value = typed.get(field.name, field.value)
    if isinstance(value, tuple):  # lines, unless some value has several itself
        value = "\n".join(value) if not any("\n" in one for one in value) else json.dumps(value)
    return value if _can_travel(value) else field.value


def _shown(value: Form) -> list[tuple[int, FormField]]:
    return [(index, field) for index, field in enumerate(value.fields) if _can_be_shown(field)]


def _fields_a_page(value: Form) -> int:
    """The note on what is left out takes the place of a field."""
    return MODAL_FIELDS - 1 if left_out(value) else MODAL_FIELDS


def _page_of(value: Form, names: Mapping[str, str]) -> int:
    places = [place for place, (_, field) in enumerate(_shown(value)) if field.name in names]
    return min(places, default=0) // _fields_a_page(value)


def _title(value: Form, page: int) -> str:
    count = f" ({page + 1}/{pages(value)})" if pages(value) > 1 else ""
    return (cut(flat(value.title), MODAL_TITLE - len(count)) or "Form") + count


# ---- the inputs


def _input_id(index: int, field: FormField) -> str:
    """`i:<index>:<name>`, or `i:<index>` when the name cannot travel; `m` for several values."""
    own = f"{_SEVERAL if field.kind == 'multi' else 'i'}:{index}"
    whole = f"{own}:{field.name}"
    return whole if utf16_len(whole) <= CUSTOM_ID and not _UNSENDABLE.search(field.name) else own


def _label(index: int, field: FormField, value: str) -> Json:
    control, hint = _control(field, value)
    name = flat(field.label or field.name) or "Value"
    told = flat(hint)
    if utf16_len(name) > MODAL_LABEL and not told:
        told = name  # there is more room for it
    drawn: Json = {"type": _LABEL, "label": cut(name, MODAL_LABEL)}
    drawn |= {"description": cut(told, MODAL_HINT)} if told else {}
    return drawn | {"component": control | {"custom_id": _input_id(index, field)}}


def _control(field: FormField, value: str) -> tuple[Json, str]:
    """(the input without its id, what is said below its label)."""
    match field.kind:
        case "boolean" if value.strip().casefold() in ("", *_TRUTH):
            return _select(_TRUTH, value.strip().casefold(), required=field.required), field.hint
        case "select" if _fit_a_menu(field.options) and value in ("", *field.options):
            few = 2 <= len(field.options) <= RADIOS // 2 and field.required
            menu = _radio if few else _select
            return menu(field.options, value, required=field.required), field.hint
        case "multi" if (
            _fit_a_menu(field.options) and (chosen := _chosen_in(value, field.options)) is not None
        ):
            return _several(field.options, chosen, required=field.required), field.hint
        case "select" | "boolean" | "multi":
            allowed = ", ".join(field.options or _TRUTH)
            one = "One on each line, of" if field.kind == "multi" else "One of"
            return _text(field, value), f"{field.hint} {one}: {allowed}".strip()
        case "date":
            return _text(field, value), f"{field.hint} A date, like 2027-01-31.".strip()
        case "json":
            return _text(field, value), f"{field.hint} In JSON.".strip()
        case _:
            return _text(field, value), field.hint


def _text(field: FormField, value: str) -> Json:
    several = field.kind in ("long_text", "json", "multi") or len(value) > _LONG or "\n" in value
    drawn: Json = {
        "type": _INPUT,
        "style": _PARAGRAPH if several else _SHORT,
        "required": field.required,
        "max_length": INPUT,
    }
    words = _PLACEHOLDERS.get(field.kind, "")
    drawn |= {"placeholder": cut(words, MODAL_PLACEHOLDER)} if words else {}
    return drawn | ({"value": value} if value else {})


def _select(options: Sequence[str], value: str, *, required: bool) -> Json:
    return {
        "type": _SELECT,
        "placeholder": cut("Choose…", PLACEHOLDER),
        "min_values": 1 if required else 0,
        "max_values": 1,
        "required": required,
        "options": _options(options, {value}),
    }


def _several(options: Sequence[str], chosen: Collection[str], *, required: bool) -> Json:
    """Checkboxes, or a menu where there are more than these can be."""
    drawn: Json = {
        "type": _CHECKBOXES,
        "min_values": 1 if required else 0,
        "max_values": len(options),
        "required": required,
        "options": _options(options, chosen),
    }
    return drawn if len(options) <= CHECKBOXES else drawn | {"type": _SELECT, "placeholder": "Choose…"}


def _chosen_in(value: str, options: Sequence[str]) -> list[str] | None:
    """Which options a text names, one on each line or as a JSON list; None when it names anything else."""
    for found in (list(filter(None, value.split("\n"))), _several_in(value)):
        if set(found) <= set(options):
            return found
    return None


def _several_in(value: str) -> list[str]:
    """The values that a text names."""
    try:
        told = json.loads(value)
    except ValueError:
        told = None
    if isinstance(told, list) and all(isinstance(one, str) for one in told):
        return told
    return [line.strip() for line in value.splitlines() if line.strip()]


def _radio(options: Sequence[str], value: str, *, required: bool) -> Json:
    return {"type": _RADIO, "required": required, "options": _options(options, {value})}


def _options(options: Sequence[str], chosen: Collection[str]) -> list[Json]:
    labels = [cut(flat(option), OPTION) for option in options]
    if len(set(labels)) < len(labels):
        labels = [cut(f"{number}. {label}", OPTION) for number, label in enumerate(labels, 1)]
    return [
        {"label": label, "value": option} | ({"default": True} if option in chosen else {})
        for label, option in zip(labels, options, strict=True)
    ]


def _fit_a_menu(options: Sequence[str]) -> bool:
    return (
        0 < len(options) <= OPTIONS
        and len(set(options)) == len(options)
        and all(utf16_len(option) <= OPTION and flat(option) for option in options)
        and not any(_UNSENDABLE.search(option) for option in options)
    )


# ---- what comes back


def _inputs(components: Sequence[Any]) -> Iterator[tuple[int, str | None, str | tuple[str, ...] | None]]:
    """(the field's place in its form, its name when that has travelled, what was filled in or None)
    of every input of ours."""
    for component in components:
        if not isinstance(component, Mapping):
            continue
        inner = component.get("components")
        yield from _inputs([*(inner if isinstance(inner, list) else []), component.get("component")])
        own = component.get("custom_id")
        found = _ID.fullmatch(own) if isinstance(own, str) else None
        if found is not None:
            read = _answers if found[1] == _SEVERAL else _answer
            yield int(found[2]), found[3], read(component)


def _answers(component: Mapping[str, Any]) -> tuple[str, ...] | None:
    """All values of one input; None for a foreign component."""
    match component.get("type"), component.get("values"):
        case 4, _:
            return tuple(_several_in(_answer(component) or ""))
        case 3 | 22, list(values):
            return tuple(value for value in values if isinstance(value, str))
        case _:
            return None


def _answer(component: Mapping[str, Any]) -> str | None:
    """One input's value as text; None for a choice that was not made, or a foreign component."""
    match component.get("type"), component.get("value"), component.get("values"):
        case 4, None, _:
            return ""
        case 4 | 21, str(words), _:
            return words
        case 3, _, [str(words), *_]:
            return words
        case _:
            return None


def _ephemeral(words: str, *buttons: Json) -> Json:
    return {
        "content": cut(words, LIMITS.text),
        "components": [row(*buttons)],
        "flags": EPHEMERAL | SUPPRESS_EMBEDS,
        "allowed_mentions": {"parse": []},
    }
