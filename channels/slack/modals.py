"""Forms as Slack's modals, and what people filled in. Pure.

A field's name is in its block's id, and whether it holds several values, so that a submission can be read
without having seen the form. A field that a modal cannot hold unharmed is left out and said to keep its
value.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote

from channels.base import Form, FormField
from channels.render.inert import flat, visible
from channels.render.measure import cut, utf16_len
from channels.slack.blocks import Json, plain, preformatted, rich, section, size
from channels.slack.limits import (
    BLOCK_ID,
    CHECKBOXES,
    INPUT,
    LABEL,
    METADATA,
    OPTION_TEXT,
    OPTION_VALUE,
    OPTIONS,
    PLACEHOLDER,
    SECTION,
    VIEW_BLOCKS,
    VIEW_PAYLOAD,
    VIEW_TITLE,
)
from channels.slack.refs import ASK_CALLBACK, FORM_CALLBACK

QUESTION: Final = "question"  # the field of the modal that `ask_about` makes

_ELEMENT: Final = "value"  # action_id of every input: one in a block
_BLOCK: Final = re.compile(r"[fm]:[0-9]+:(.*)", re.DOTALL)
_SEVERAL: Final = "m"  # how the block's id of a field begins that holds several values
_SAFE: Final = " !#$&'()*+,/:;=?@[]{}|^`\"<>\\"  # what stands for itself in a block's id
_UNSENDABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?", re.ASCII)
_WHOLE: Final = re.compile(r"-?[0-9]{1,15}", re.ASCII)
_LONG: Final = 80  # characters of a text that get several lines
_MENU: Final = 1000  # options of one menu, in groups of a hundred
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_SPARE: Final = 2000  # units of a view beside its inputs
_FAULT: Final = 500  # units of what is said about one field


def form(value: Form, metadata: str) -> Json:
    """The modal of a form. metadata: comes back as `private_metadata` when it is submitted.

    Raises ValueError when the metadata is too long for Slack.
    """
    kept = [(index, field) for index, field in enumerate(value.fields) if _can_be_shown(field)]
    kept = kept[: VIEW_BLOCKS - 1]
    shown = {index for index, _ in kept}
    left_out = [field for index, field in enumerate(value.fields) if index not in shown]
    blocks = [_input(index, field) for index, field in kept]
    if size(blocks) > VIEW_PAYLOAD - _SPARE:  # menus are what takes room
        blocks = [_input(index, field, menus=False) for index, field in kept]
    if left_out:
        blocks.append(section(_keeping(left_out)))
    if not value.fields:
        blocks.append(section("There is nothing to fill in."))
    can_submit = bool(blocks) and (bool(kept) or not value.fields)
    return _modal(FORM_CALLBACK, value.title, blocks, metadata, submit="Submit" if can_submit else "")


def ask_about(metadata: str, quoted: str) -> Json:
    """The modal of the message shortcut: what to ask about the quoted message."""
    blocks = [_quoted(quoted)] if quoted.strip() else []
    asked = FormField(
        name=QUESTION,
        label="What should the agent do with this message?",
        kind="long_text",
        hint="May be left empty: then the agent just looks at it.",
    )
    blocks.append(_input(0, asked))
    return _modal(ASK_CALLBACK, "Ask the agent", blocks, metadata, submit="Ask")


def notice(text: str) -> Json:
    """A modal that only says something, for a press in a place where nothing else can."""
    return _modal(FORM_CALLBACK, "Not possible", [section(visible(text))], "", submit="")


def values(state: Mapping[str, Any]) -> dict[str, str | tuple[str, ...]]:
    """What was filled in, by the field's name. state: that of a submitted view, untrusted.

    Texts as they were typed, "true" or "false", "" for what was left empty, a tuple where several may be
    chosen; a single choice that was not made is left out.
    """
    found: dict[str, str | tuple[str, ...]] = {}
    blocks = state.get("values")
    for block_id, elements in blocks.items() if isinstance(blocks, Mapping) else ():
        name = field_name(block_id)
        element = elements.get(_ELEMENT) if isinstance(elements, Mapping) else None
        filled = _filled(element) if isinstance(element, Mapping) else None
        if name is None or filled is None:
            continue
        if isinstance(filled, str) and block_id.startswith(_SEVERAL):
            filled = tuple(_several_in(filled))
        found[name] = filled
    return found


def field_name(block_id: str) -> str | None:
    """The field whose input this block is; None for any other block."""
    match = _BLOCK.fullmatch(block_id)
    return None if match is None else unquote(match[1], errors="surrogatepass")


def field_errors(errors: Mapping[str, str], view: Mapping[str, Any]) -> dict[str, str]:
    """The same by block id, for `response_action: errors`. What concerns no field of this view is said
    at the first one. Empty when the view has no input: then nothing can be said in it."""
    places: dict[str, str] = {}
    blocks = view.get("blocks")
    for block in blocks if isinstance(blocks, Sequence) else ():
        block_id = block.get("block_id", "") if isinstance(block, Mapping) else ""
        name = field_name(block_id) if isinstance(block_id, str) else None
        if name is not None:
            places[name] = block_id
    told: dict[str, list[str]] = {}
    for name, text in errors.items():
        place = places.get(name) or next(iter(places.values()), "")
        told.setdefault(place, []).append(visible(text) or "is not valid")
    return {place: cut("; ".join(texts), _FAULT) for place, texts in told.items() if place}


# ---- the view


def _modal(callback: str, title: str, blocks: list[Json], metadata: str, *, submit: str) -> Json:
    if utf16_len(metadata) > METADATA:
        raise ValueError(f"a modal's metadata is {utf16_len(metadata)} characters, {METADATA} are allowed")
    view: Json = {
        "type": "modal",
        "callback_id": callback,
        "title": plain(flat(title), VIEW_TITLE),
        "close": plain("Cancel" if submit else "Close", VIEW_TITLE),
        "private_metadata": metadata,
        "blocks": blocks,
    }
    return view | ({"submit": plain(submit, VIEW_TITLE)} if submit else {})


def _quoted(text: str) -> Json:
    return rich(preformatted(cut(visible(text), SECTION)))


def _can_be_shown(field: FormField) -> bool:
    """Whether a modal gives the field's value back as it was, and its name."""
    return (
        utf16_len(field.value) <= INPUT
        and _UNSENDABLE.search(field.value) is None
        and utf16_len(_block_id(VIEW_BLOCKS, field)) <= BLOCK_ID
    )


def _keeping(fields: Sequence[FormField]) -> str:
    names = ", ".join(cut(flat(field.label or field.name), 60) or "(no name)" for field in fields)
    verb = "keep their values" if len(fields) > 1 else "keeps its value"
    return f"Too long or too special to be edited here, {verb}: {names}"


def _block_id(index: int, field: FormField) -> str:
    kind = _SEVERAL if field.kind == "multi" else "f"
    return f"{kind}:{index}:{quote(field.name, safe=_SAFE, errors='surrogatepass')}"


def _input(index: int, field: FormField, *, menus: bool = True) -> Json:
    element, hint = _element(field, menus=menus)
    label = visible(field.label or field.name).strip() or "Value"
    block: Json = {
        "type": "input",
        "block_id": _block_id(index, field),
        "label": plain(label, LABEL),
        "element": element,
        "optional": not field.required,
    }
    return block | ({"hint": plain(hint, LABEL)} if hint else {})


def _element(field: FormField, *, menus: bool) -> tuple[Json, str]:
    """(the input, what is said below it)."""
    hint = visible(field.hint).strip()
    match field.kind:
        case "date" if field.value == "" or _is_date(field.value):
            return _date(field), hint
        case "multi" if menus and _can_be_chosen(field):
            return _several(field), hint
        case "integer" | "number" if _is_number(field):
            return _number(field), hint
        case "boolean" if field.value.strip().casefold() in ("", "true", "false"):
            return _truth(field), hint
        case "select" if menus and field.options and _fit_a_menu(field.options):
            return _menu(field), hint
        case "select" | "boolean" | "multi":
            allowed = ", ".join(field.options) or "true, false"
            one = "One on each line, of" if field.kind == "multi" else "One of"
            return _text(field), f"{hint} {one}: {visible(allowed)}".strip()
        case "date":
            return _text(field), f"{hint} A date, like 2027-01-31.".strip()
        case "json":
            return _text(field), f"{hint} In JSON.".strip()
        case "integer" | "number":
            return _text(field), f"{hint} A number.".strip()
        case _:
            return _text(field), hint


def _text(field: FormField) -> Json:
    several = field.kind in ("long_text", "json", "multi") or len(field.value) > _LONG or "\n" in field.value
    element: Json = {"type": "plain_text_input", "action_id": _ELEMENT, "multiline": several}
    return element | ({"initial_value": field.value} if field.value else {})


def _is_number(field: FormField) -> bool:
    """Whether Slack's number input, which knows no exponents, can hold the value exactly."""
    known = _WHOLE if field.kind == "integer" else _NUMBER
    return field.value == "" or known.fullmatch(field.value) is not None


def _number(field: FormField) -> Json:
    element: Json = {
        "type": "number_input",
        "action_id": _ELEMENT,
        "is_decimal_allowed": field.kind == "number",
    }
    return element | ({"initial_value": field.value} if field.value else {})


def _truth(field: FormField) -> Json:
    options = [{"text": plain(word, OPTION_TEXT), "value": word} for word in ("true", "false")]
    chosen = [option for option in options if option["value"] == field.value.strip().casefold()]
    element: Json = {"type": "radio_buttons", "action_id": _ELEMENT, "options": options}
    return element | ({"initial_option": chosen[0]} if chosen else {})


def _is_date(value: str) -> bool:
    """Whether it is a day of the calendar: a picker that begins with another one is refused."""
    try:
        return _DATE.fullmatch(value) is not None and bool(datetime.date.fromisoformat(value))
    except ValueError:
        return False


def _date(field: FormField) -> Json:
    element: Json = {"type": "datepicker", "action_id": _ELEMENT}
    return element | ({"initial_date": field.value} if field.value else {})


def _fit_a_menu(options: Sequence[str]) -> bool:
    return (
        len(options) <= _MENU
        and len(set(options)) == len(options)
        and all(0 < utf16_len(option) <= OPTION_VALUE and option.strip() for option in options)
        and not any(_UNSENDABLE.search(option) for option in options)
    )


def _options(field: FormField) -> list[Json]:
    shown = [cut(flat(option), OPTION_TEXT) for option in field.options]
    if len(set(shown)) < len(shown):
        shown = [cut(f"{number}. {label}", OPTION_TEXT) for number, label in enumerate(shown, 1)]
    return [
        {"text": plain(label, OPTION_TEXT), "value": value}
        for label, value in zip(shown, field.options, strict=True)
    ]


def _offered(options: list[Json]) -> Json:
    """The options as a menu has them; in groups where there are more than one menu may hold."""
    if len(options) <= OPTIONS:
        return {"options": options}
    pieces = [(n, options[n : n + OPTIONS]) for n in range(0, len(options), OPTIONS)]
    return {
        "option_groups": [
            {"label": plain(f"{start + 1} to {start + len(piece)}", OPTION_TEXT), "options": piece}
            for start, piece in pieces
        ]
    }


def _menu(field: FormField) -> Json:
    options = _options(field)
    chosen = [option for option in options if option["value"] == field.value]
    element: Json = {
        "type": "static_select",
        "action_id": _ELEMENT,
        "placeholder": plain("Choose…", PLACEHOLDER),
        **_offered(options),
    }
    return element | ({"initial_option": chosen[0]} if chosen else {})


def _several_in(value: str) -> list[str]:
    """The values that a text names: a JSON list, or one on each line."""
    try:
        told = json.loads(value)
    except ValueError:
        told = None
    if isinstance(told, list):
        return [entry if isinstance(entry, str) else json.dumps(entry) for entry in told]
    return [line.strip() for line in value.splitlines() if line.strip()]


def _can_be_chosen(field: FormField) -> bool:
    """Whether choosing among the options can keep what the field begins with."""
    wanted = _several_in(field.value)
    whole = set(wanted) <= set(field.options) and len(set(wanted)) == len(wanted) <= OPTIONS
    return whole and bool(field.options) and _fit_a_menu(field.options)


def _several(field: FormField) -> Json:
    options, wanted = _options(field), _several_in(field.value)
    chosen = [option for option in options if option["value"] in wanted][:OPTIONS]
    element: Json = {"type": "checkboxes", "action_id": _ELEMENT, "options": options}
    if len(options) > CHECKBOXES:
        element |= {"type": "multi_static_select", "placeholder": plain("Choose…", PLACEHOLDER)}
        del element["options"]
        element |= _offered(options)
    return element | ({"initial_options": chosen} if chosen else {})


def _filled(element: Mapping[str, Any]) -> str | tuple[str, ...] | None:
    """One input's value; None for a choice that was not made, or a foreign element."""
    match element.get("type"):
        case "datepicker":
            date = element.get("selected_date")
            return date if isinstance(date, str) else ""
        case "checkboxes" | "multi_static_select":
            several = element.get("selected_options")
            picked = [one.get("value") for one in several or () if isinstance(one, Mapping)]
            return tuple(value for value in picked if isinstance(value, str))
        case "plain_text_input" | "number_input":
            value = element.get("value")
            return "" if value is None else str(value)
        case "static_select" | "radio_buttons":
            option = element.get("selected_option")
            chosen = option.get("value") if isinstance(option, Mapping) else None
            return chosen if isinstance(chosen, str) else None
        case _:
            return None
