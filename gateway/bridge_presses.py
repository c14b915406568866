"""From presses to what they say: choices, and the fields of submitted forms. Pure.

The letters of the choices are explained in bridge.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from channels.base import InboundPress, unpack_press
from gateway import bridge_questions
from gateway.approvals import Approve, Deny, Pending, Resolution
from gateway.bridge import (
    ALWAYS,
    APPROVE,
    APPROVE_ALL,
    CANCEL,
    DENY,
    DENY_ALL,
    EDIT,
    FEEDBACK,
    FEEDBACK_FIELD,
    GIVE,
    NULL,
    POST,
    SESSION,
    SHOW,
    value_text,
    without_null,
)
from gateway.bridge_questions import Bad, Draft, Picked, Toggle, text_of
from gateway.messages import Json, canonical_json
from gateway.store.rows import PendingRecord
from gateway.tools.base import MASK, masked


def wants_to_see(press: InboundPress) -> bool:
    """Whether somebody wants to see what the public card does not show."""
    unpacked = unpack_press(press.data)
    return unpacked is not None and unpacked[1] == SHOW


def managed(press: InboundPress) -> str:
    """What somebody wants done with a request besides deciding it: POST, CANCEL or GIVE; empty for
    anything else."""
    unpacked = unpack_press(press.data)
    choice = unpacked[1] if unpacked is not None else ""
    return choice if choice in (POST, CANCEL, GIVE) else ""


def wants_all(press: InboundPress) -> Resolution | None:
    """What a press says about every call of its card; None when it is about one."""
    unpacked = unpack_press(press.data)
    choice = unpacked[1] if unpacked is not None else ""
    if choice == APPROVE_ALL:
        return Approve()
    return Deny() if choice == DENY_ALL else None


def pressed_card(press: InboundPress) -> str | None:
    """The id of the pressed card, None for data that we did not make."""
    unpacked = unpack_press(press.data)
    return None if unpacked is None else unpacked[0]


def read_press(press: InboundPress, record: PendingRecord) -> Resolution | Toggle | Picked | Draft | Bad:
    """What a press means for this pending."""
    unpacked = unpack_press(press.data)
    choice = unpacked[1] if unpacked else ""
    question = record.pending.question
    if question is not None:
        return bridge_questions.read_answer(choice, press, question, record)
    simple: dict[str, Callable[[], Resolution]] = {
        APPROVE: Approve,
        SESSION: lambda: Approve(scope="session"),
        ALWAYS: lambda: Approve(scope="always"),
        DENY: Deny,
        FEEDBACK: lambda: Deny(feedback=text_of(press, FEEDBACK_FIELD).strip()),
    }
    if choice in simple:
        return simple[choice]()
    if choice == EDIT and not press.values:
        return Bad(text="Nothing was filled in. The form behind the button changes arguments.")
    if choice == EDIT:
        edited = read_form(press.values, record.pending)
        return edited if isinstance(edited, Bad) else Approve(edited_args=edited)
    return Bad(text="This button is not one of this request's.")


def read_form(values: Mapping[str, str | tuple[str, ...]], pending: Pending) -> Json | Bad:
    """The arguments that a submitted edit form means: typed by the schema, on top of the stored
    ones; a field that was left out keeps its value."""
    args, shown = dict(pending.args), masked(pending.args, pending.secret)
    properties = pending.schema.get("properties", {})
    for name, raw in values.items():
        text = raw if isinstance(raw, str) else " ".join(raw)
        if name not in args and name not in properties:
            return Bad(text=f"{name}: there is no such argument", field=name)
        if name in pending.secret and text in ("", MASK):
            continue
        if name in shown and _same(text, value_text(shown[name])):
            continue  # left as it was, masked parts and all
        value = _typed(text, properties.get(name, {}), args.get(name))
        if isinstance(value, Bad):
            return Bad(text=f"{name}: {value.text}", field=name)
        args[name] = value
    return args


def _same(text: str, before: str) -> bool:
    """Whether a field came back unchanged; platforms mend line ends and the space around."""
    return text.replace("\r\n", "\n").strip() == before.replace("\r\n", "\n").strip()


_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _typed(text: str, schema: Json, before: object) -> object:
    """One field's text as the schema wants it, or Bad."""
    schema, nullable = without_null(schema)
    words, kind = text.strip(), schema.get("type")
    if nullable and (not words or (words == NULL and kind != "string")):
        return None
    for entry in schema.get("enum", ()):
        if str(entry) == words:
            return entry
    try:
        match kind:
            case "integer":
                return int(words)
            case "number":
                return _number(words)
            case "boolean":
                return _BOOLEANS[words.casefold()]
            case "string":
                return text
            case _ if kind is None and isinstance(before, str):
                return text
            case _:
                return json.loads(words)
    except (ValueError, KeyError):
        return Bad(text=f"is not {'JSON' if kind in (None, 'object', 'array') else f'a valid {kind}'}")


def _number(words: str) -> float | int:
    if words.lstrip("+-").isdecimal():
        return int(words)  # exact, however long
    value = float(words)
    canonical_json(value)  # refuses nan and the infinities
    return value
