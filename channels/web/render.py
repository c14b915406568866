"""What the page shows: answers as safe HTML, arguments as inert text. Pure."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from channels.render.html import safe_html
from channels.render.inert import visible
from channels.web.backend import Json, Option, PendingCard, SessionView
from channels.web.wire import plain, session_body

# The page asks for the same answers again and again; a rendered one never changes.
_html = functools.lru_cache(maxsize=2_000)(safe_html)
_OURS = frozenset({"opaque", "html", "fields"})  # vendor data stays behind; the others are made here
_HTML_CHARS = 200_000  # beyond this the text is shown as it is


def page_session(view: SessionView) -> Json:
    """The session for the page: its messages with `html` beside each text."""
    return {
        **session_body(view),
        "title": visible(view.title),
        "from": view.start,
        "total": view.total,
        "messages": [page_message(message) for message in view.messages],
        "last_event_id": view.last_event_id,
        "cards": [page_card(card) for card in view.cards],
        "calls": [plain(call) for call in view.calls],
        "queued": [plain(message) for message in view.queued],
        "notices": [
            {**plain(notice), "file": visible(notice.file), "html": _html(notice.text)}
            for notice in view.notices
        ],
    }


def page_message(message: Json) -> Json:
    """One message with `html` in the text blocks that a model wrote, and readable call arguments.

    Opaque vendor data stays behind: the page has no use for it.
    """
    content = message.get("content", [])
    from_model = message.get("role") == "assistant"
    return {**message, "content": [_page_block(block, from_model=from_model) for block in content]}


def _page_block(block: Json, *, from_model: bool) -> Json:
    shown = {key: value for key, value in block.items() if key not in _OURS}
    text = block.get("text")
    if block.get("type") == "text" and isinstance(text, str) and from_model and len(text) <= _HTML_CHARS:
        shown["html"] = _html(text)
    if block.get("type") == "tool_use":
        shown["fields"] = fields(block.get("input") or {})
        shown["name"] = visible(str(block.get("name", "")))
    return shown


def page_card(card: PendingCard) -> Json:
    """One card: all its arguments as `fields` of inert text, beside the values for an edit form."""
    return {
        **plain(card),
        "fields": fields(card.args),
        "preview": visible(card.preview),
        "reason": visible(card.reason),
        "question": visible(card.question),
        "options": _options(card.options),
        "parts": [
            {**plain(part), "question": visible(part.question), "options": _options(part.options)}
            for part in card.parts
        ],
    }


def _options(options: Sequence[Option]) -> list[Json]:
    return [{**plain(o), "label": visible(o.label), "description": visible(o.description)} for o in options]


def fields(args: Mapping[str, Any]) -> list[Json]:
    """Every argument, whole, as `{"key", "name", "value", "raw", "size"}`.

    `name` and `value` are for reading: no markup, nothing invisible. `key` and `raw` are for an edit
    form: the real name, and the text itself or its JSON (a browser would round large numbers).
    `size` counts the characters of the real value, so that padding cannot hide any.
    """
    rows: list[Json] = []
    for key, value in args.items():
        raw = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        rows.append({"key": key, "name": visible(key), "value": visible(raw), "raw": raw, "size": len(raw)})
    return rows
