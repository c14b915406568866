"""The pieces that cards, modals and the home are made of: Block Kit values with inert text. Pure.

No text here is mrkdwn: plain text and rich text have no control sequences, so nothing that a model or
a person wrote can become a mention, a link or a mark.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from channels.base import Button, Choice, unpack_press
from channels.render.inert import flat
from channels.render.measure import cut, utf16_len
from channels.slack.limits import (
    ACTION_ID,
    ACTIONS,
    BLOCKS,
    BUTTON_VALUE,
    CONTEXT_ELEMENTS,
    HEADER,
    LIMITS,
    PAYLOAD,
    SECTION,
)
from channels.slack.refs import FORM, PRESS

Json = dict[str, Any]

_SPARE: Final = 200  # characters of a payload that Slack may count in another way than we do


def size(blocks: Sequence[Json]) -> int:
    """What a payload measures: its JSON in UTF-16 units."""
    return utf16_len(json.dumps(blocks, ensure_ascii=False, separators=(",", ":")))


def fits(blocks: Sequence[Json]) -> bool:
    """Whether Slack takes these as the blocks of one message."""
    return len(blocks) <= BLOCKS and size(blocks) <= PAYLOAD - _SPARE


# ---- text


def plain(text: str, limit: int) -> Json:
    """A plain text object. Colons stay colons: `:tada:` is no picture."""
    words = cut(text, limit)
    return {"type": "plain_text", "text": words if words.strip() else "…", "emoji": False}


def header(text: str) -> Json:
    return {"type": "header", "text": plain(text, HEADER)}


def section(text: str, accessory: Json | None = None) -> Json:
    block: Json = {"type": "section", "text": plain(text, SECTION)}
    return block | ({"accessory": accessory} if accessory else {})


def context(lines: Sequence[str]) -> Json:
    """Small grey text, each line an element."""
    return {"type": "context", "elements": [plain(line, SECTION) for line in lines[:CONTEXT_ELEMENTS]]}


def words(text: str, *, bold: bool = False, italic: bool = False, code: bool = False) -> Json:
    """A run of rich text."""
    style = {name: True for name, wanted in (("bold", bold), ("italic", italic), ("code", code)) if wanted}
    run: Json = {"type": "text", "text": text or "…"}
    return run | ({"style": style} if style else {})


def paragraph(*runs: Json) -> Json:
    return {"type": "rich_text_section", "elements": list(runs)}


def preformatted(text: str, language: str = "") -> Json:
    box: Json = {"type": "rich_text_preformatted", "elements": [words(text)]}
    return box | ({"language": language} if language else {})


def rich(*elements: Json) -> Json:
    return {"type": "rich_text", "elements": list(elements)}


# ---- controls


def button(number: int, value: Button, forms: frozenset[str], *, short: bool = False) -> Json:
    """number: its place among all controls of the message or view. forms: the data of the buttons
    that open a modal. short: where many share a message."""
    kind = FORM if value.data in forms else PRESS
    name = f"{kind}{number}" if short else f"{kind}{number}:{value.data}"[:ACTION_ID]
    element: Json = {
        "type": "button",
        "text": plain(flat(value.label) or "?", LIMITS.button_label),
        "action_id": name,
        "value": value.data[:BUTTON_VALUE],
    }
    return element | ({"style": value.tone} if value.tone != "plain" else {})


def choice_button(number: int, choice: Choice, label: str) -> Json:
    return button(number, Button(label=label, data=choice.data), frozenset())


def actions(elements: Sequence[Json]) -> list[Json]:
    """As many blocks as the controls need; none for none."""
    return [
        {"type": "actions", "elements": list(elements[at : at + ACTIONS])}
        for at in range(0, len(elements), ACTIONS)
    ]


def refuses(value: Button) -> bool:
    """Whether a button lets nothing run: a no, which people may say without having read everything."""
    packed = unpack_press(value.data)
    if value.harmless or value.tone == "danger":
        return True
    return packed is not None and packed[1].startswith(("deny", "cancel"))
