"""What the Bot API refuses, as pure functions. Codes and words are the platform's."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

TEXT_LIMIT = 4096  # UTF-16 units, after parsing
CAPTION_LIMIT = 1024
ENTITY_LIMIT = 100
BUTTON_LIMIT = 100
CALLBACK_BYTES = 64
NOTICE_LIMIT = 200
PLACEHOLDER_LIMIT = 64

ENTITY_TYPES = frozenset(
    [
        "mention",
        "hashtag",
        "cashtag",
        "bot_command",
        "url",
        "email",
        "phone_number",
        "bold",
        "italic",
        "underline",
        "strikethrough",
        "spoiler",
        "blockquote",
        "expandable_blockquote",
        "code",
        "pre",
        "text_link",
        "text_mention",
        "custom_emoji",
    ]
)
FLAT = frozenset({"code", "pre"})  # hold no other entity
QUOTES = frozenset({"blockquote", "expandable_blockquote"})  # do not nest
STYLES = frozenset({"primary", "success", "danger"})
COMMAND = re.compile(r"[a-z0-9_]{1,32}")
DETECTED = {
    "mention": re.compile(r"(?<![\w@])@[A-Za-z]\w{3,31}"),
    "bot_command": re.compile(r"(?<![\w/<>])/[A-Za-z0-9_]{1,32}(?:@\w{5,32})?(?![\w/<>])"),
    "url": re.compile(r"https?://[^\s]+"),
}


class Refused(Exception):
    """One error answer of the platform."""

    def __init__(self, code: int, description: str, parameters: Json | None = None) -> None:
        self.code, self.description, self.parameters = code, description, parameters
        super().__init__(f"{code} {description}")


def bad(description: str) -> Refused:
    """A 400, worded as the platform does."""
    return Refused(400, f"Bad Request: {description}")


def utf16_len(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf16_slice(text: str, offset: int, length: int) -> str:
    """The piece that an entity covers."""
    raw = text.encode("utf-16-le", "surrogatepass")
    return raw[2 * offset : 2 * (offset + length)].decode("utf-16-le", "surrogatepass")


def checked_text(text: str | None, entities: list[Json], *, limit: int = TEXT_LIMIT) -> str:
    """The text as it is stored. Raises Refused."""
    if text is None or not text.strip():
        raise bad("message text is empty")
    return checked_words(text, entities, limit=limit, too_long="message is too long")


def checked_words(text: str, entities: list[Json], *, limit: int, too_long: str) -> str:
    """Length and entities of a text or caption. Raises Refused."""
    if "\0" in text or any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        raise bad("strings must be encoded in UTF-8")
    if utf16_len(text) > limit:
        raise bad(too_long)
    if len(entities) > ENTITY_LIMIT:
        raise bad("too many entities")
    raw = text.encode("utf-16-le")
    for entity in entities:
        _check_entity(entity, raw)
    _check_nesting(entities)
    return text


def _check_entity(entity: Json, raw: bytes) -> None:
    kind, offset, length = entity.get("type"), entity.get("offset"), entity.get("length")
    if kind not in ENTITY_TYPES:
        raise bad("can't parse MessageEntity: unsupported type specified")
    if not isinstance(offset, int) or not isinstance(length, int) or offset < 0 or length < 1:
        raise bad(f"can't parse MessageEntity: {kind} at {offset} of length {length}")
    if 2 * (offset + length) > len(raw):
        raise bad(f"can't parse MessageEntity: {kind} ends after the text")
    for place in (offset, offset + length):
        unit = raw[2 * place : 2 * place + 2]
        if len(unit) == 2 and 0xDC00 <= int.from_bytes(unit, "little") <= 0xDFFF:
            raise bad(f"can't parse MessageEntity: {kind} cuts a surrogate pair")
    if kind == "text_link" and not re.fullmatch(
        r"(https?|tg|mailto|tel|ftp)://?\S+|mailto:\S+", entity.get("url") or ""
    ):
        raise bad("can't parse MessageEntity: text_link without a usable URL")
    if kind == "text_mention" and not isinstance(entity.get("user"), dict):
        raise bad("can't parse MessageEntity: text_mention without a user")


def _check_nesting(entities: list[Json]) -> None:
    spans = sorted((e["offset"], -(e["offset"] + e["length"]), e["type"]) for e in entities)
    stack: list[tuple[int, str]] = []
    for start, negative_end, kind in spans:
        while stack and stack[-1][0] <= start:
            stack.pop()
        if stack and -negative_end > stack[-1][0]:
            raise bad(f"can't parse entities: {kind} overlaps {stack[-1][1]}")
        if stack and (stack[-1][1] in FLAT or {kind, stack[-1][1]} <= QUOTES):
            raise bad(f"can't parse entities: {kind} inside {stack[-1][1]}")
        stack.append((-negative_end, kind))


def detected(text: str, given: list[Json]) -> list[Json]:
    """The entities that the platform adds by itself outside code: mentions, commands, links."""
    taken = [
        (e["offset"], e["offset"] + e["length"]) for e in given if e["type"] in {"code", "pre", "text_link"}
    ]
    found = []
    for kind, pattern in DETECTED.items():
        for match in pattern.finditer(text):
            offset = utf16_len(text[: match.start()])
            length = utf16_len(match.group())
            if not any(start < offset + length and offset < end for start, end in taken):
                found.append({"type": kind, "offset": offset, "length": length})
    return sorted(found, key=lambda entity: entity["offset"])


def checked_markup(markup: Json | None) -> Json | None:
    """A reply_markup as it is stored. Raises Refused."""
    if not markup:
        return None
    if "inline_keyboard" in markup:
        rows = markup["inline_keyboard"]
        buttons = [button for row in rows for button in row]
        if len(buttons) > BUTTON_LIMIT:
            raise bad("reply markup is too long")
        if any(len(row) > 8 for row in rows):
            raise bad("a row holds more than 8 buttons")
        for button in buttons:
            _check_button(button)
        return {"inline_keyboard": rows} if buttons else None
    if markup.get("force_reply"):
        placeholder = markup.get("input_field_placeholder")
        if placeholder is not None and not 1 <= len(placeholder) <= PLACEHOLDER_LIMIT:
            raise bad("invalid input field placeholder")
        return markup
    raise bad("can't parse reply keyboard markup JSON object")


def _check_button(button: Json) -> None:
    if not str(button.get("text", "")).strip():
        raise bad("text buttons are unallowed in the inline keyboard")
    actions = {"callback_data", "url"} & button.keys()
    if len(actions) != 1:
        raise bad("can't parse inline keyboard button: exactly one action is needed")
    if "callback_data" in button and not 1 <= len(str(button["callback_data"]).encode()) <= CALLBACK_BYTES:
        raise bad("BUTTON_DATA_INVALID")
    if "style" in button and button["style"] not in STYLES:
        raise bad("invalid button style")


@dataclass(frozen=True)
class Upload:
    """One file of a multipart request."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True)
class Params:
    """The parameters of one call, by name, as the client sent them."""

    values: dict[str, str]
    files: dict[str, Upload] = field(default_factory=dict)

    def text(self, name: str, default: str | None = None) -> str | None:
        return self.values.get(name, default)

    def integer(self, name: str, default: int | None = None) -> int | None:
        value = self.values.get(name)
        if value is None or value == "":
            return default
        try:
            return int(value)
        except ValueError:
            raise bad(f"invalid {name} specified") from None

    def flag(self, name: str) -> bool:
        return self.values.get(name, "").lower() in {"true", "1", "yes", "y"}

    def json(self, name: str, default: Any = None) -> Any:
        value = self.values.get(name)
        if value is None or value == "":
            return default
        try:
            return json.loads(value)
        except ValueError:
            raise bad(f"can't parse {name} JSON object") from None

    def upload(self, name: str) -> Upload | None:
        attached = self.values.get(name, "")
        if attached.startswith("attach://"):
            return self.files.get(attached.removeprefix("attach://"))
        return self.files.get(name)
