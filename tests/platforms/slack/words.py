"""The text of messages: what people's clients make of it, and whom it notifies. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from tests.platforms.slack.limits import Json

TOKEN = re.compile(r"<([^<>\n]+)>")
LIVE = re.compile(r"<(@[UW][A-Z0-9]+|![a-z]+(?:\^S[A-Z0-9]+)?)(?:\|[^<>]*)?>")
BARE = re.compile(r"(?<![\w@])@(here|channel|everyone)\b")
BARE_NAME = re.compile(r"(?<![\w@])@([a-z][a-z0-9._-]*)")


def decoded(text: str) -> str:
    """`&lt;`, `&gt;` and `&amp;` as characters, once."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def rich_text(text: str, block_id: str) -> list[Json]:
    """The `blocks` that a person's message with this text on the wire has."""
    elements: list[Json] = []
    end = 0
    for token in TOKEN.finditer(text):
        if token.start() > end:
            elements.append({"type": "text", "text": decoded(text[end : token.start()])})
        elements.append(_element(token[1]))
        end = token.end()
    if end < len(text):
        elements.append({"type": "text", "text": decoded(text[end:])})
    if not elements:
        return []
    section = {"type": "rich_text_section", "elements": elements}
    return [{"type": "rich_text", "block_id": block_id, "elements": [section]}]


def _element(token: str) -> Json:
    body, _, label = token.partition("|")
    if body.startswith("@"):
        return {"type": "user", "user_id": body[1:]}
    if body.startswith("#"):
        return {"type": "channel", "channel_id": body[1:]}
    if body.startswith("!subteam^"):
        return {"type": "usergroup", "usergroup_id": body.removeprefix("!subteam^")}
    if body.startswith("!"):
        return {"type": "broadcast", "range": body[1:]}
    return {"type": "link", "url": decoded(body), **({"text": decoded(label)} if label else {})}


def walk(value: Any) -> Iterator[Json]:
    """Every object inside, outermost first."""
    if isinstance(value, dict):
        yield value
        for entry in value.values():
            yield from walk(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from walk(entry)


def shown(message: Json) -> str:
    """All words that a person sees in the blocks, or in the text where there are none."""
    if not message.get("blocks"):
        return decoded(str(message.get("text", "")))
    pieces = []
    for entry in walk(message["blocks"]):
        if isinstance(entry.get("text"), str):
            is_marked = entry.get("type") == "mrkdwn"
            pieces.append(decoded(entry["text"]) if is_marked else entry["text"])
        elif entry.get("type") == "link":
            pieces.append(entry["url"])
    return "\n".join(pieces)


def notified(message: Json, names: dict[str, str], *, parsed: bool = False) -> list[str]:
    """Whom the message notifies: user ids, group ids, `here`, `channel`, `everyone`.

    `names`: user name to id. `parsed`: bare names count too (link_names, parse=full, and an edit
    that does not say parse=none).
    """
    if not message.get("blocks"):
        return list(_in_mrkdwn(str(message.get("text", "")), names, parsed, parsed))
    found: list[str] = []
    for entry in walk(message["blocks"]):
        match entry.get("type"):
            case "mrkdwn":
                loose = not entry.get("verbatim", False)
                found += _in_mrkdwn(str(entry.get("text", "")), names, loose, parsed)
            case "markdown":
                found += _in_mrkdwn(html.unescape(str(entry.get("text", ""))), names, True, parsed)
            case "user":
                found.append(entry["user_id"])
            case "usergroup":
                found.append(entry["usergroup_id"])
            case "broadcast":
                found.append(entry["range"])
    return found


def _in_mrkdwn(text: str, names: dict[str, str], broadcasts: bool, people: bool) -> Iterator[str]:
    for match in LIVE.finditer(text):
        yield match[1].lstrip("@!").removeprefix("subteam^")
    if broadcasts:
        yield from (match[1] for match in BARE.finditer(text))
    if people:
        yield from (names[match[1]] for match in BARE_NAME.finditer(text) if match[1] in names)
