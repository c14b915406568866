"""What the test server answers: scripted steps, and their events on the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.platforms.anthropic.rules import Json, redacted, signature

STATUS_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


@dataclass(frozen=True, kw_only=True)
class Fail:
    """Refuse the next request. `say` is the error's message."""

    status: int
    say: str = "as the test wants"
    type: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    details: Json | None = None

    def body(self) -> Json:
        error: Json = {"type": self.type or STATUS_TYPES.get(self.status, "api_error"), "message": self.say}
        if self.details is not None:
            error["details"] = self.details
        return {"type": "error", "error": error, "request_id": "req_test"}


@dataclass(frozen=True, kw_only=True)
class Say:
    """Answer with these blocks (see `text`, `call`, `think`, `redact`).

    cut: what happens after `after` events: a clean end, a dropped connection, an error event of
    this type, or an event that is not JSON. hold: wait for this before the first event.
    """

    blocks: tuple[Json, ...]
    stop: str | None = None
    usage: Json = field(default_factory=dict)
    cut: Literal[
        "", "end", "drop", "overloaded_error", "rate_limit_error", "invalid_request_error", "garbage"
    ] = ""
    after: int = 0
    hold: asyncio.Event | None = None

    @property
    def stop_reason(self) -> str:
        return self.stop or ("tool_use" if any(b["type"] == "tool_use" for b in self.blocks) else "end_turn")


Step = Fail | Say


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def call(name: str, args: Any, id: str) -> Json:
    """A call; `args` given as a string goes out as it is, broken or not."""
    return {"type": "tool_use", "id": id, "name": name, "input": args}


def think(words: str, model: str) -> Json:
    return {"type": "thinking", "thinking": words, "signature": signature(model, words)}


def redact(secret: str, model: str) -> Json:
    return {"type": "redacted_thinking", "data": redacted(model, secret)}


def whole(step: Say, model: str, number: int, tokens: int) -> Json:
    """The reply as one JSON value, for a request without `stream`."""
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(step.blocks),
        "stop_reason": step.stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": tokens, "output_tokens": 7, **step.usage},
    }


def events(step: Say, model: str, number: int, tokens: int) -> Iterator[Json]:
    """The reply as the API streams it."""
    usage = {"input_tokens": tokens, "output_tokens": 1, **step.usage}
    start = {**whole(step, model, number, tokens), "content": [], "stop_reason": None, "usage": usage}
    yield {"type": "message_start", "message": start}
    yield {"type": "ping"}
    for index, block in enumerate(step.blocks):
        yield from _block(index, block)
    said = {"output_tokens": step.usage.get("output_tokens", 7)}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": step.stop_reason, "stop_sequence": None},
        "usage": said,
    }
    yield {"type": "message_stop"}


def _block(index: int, block: Json) -> Iterator[Json]:
    deltas: list[Json] = []
    empty = dict(block)
    match block["type"]:
        case "text":
            empty["text"] = ""
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"], 7)]
        case "thinking":
            empty |= {"thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"], 7)
            ]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case "tool_use":
            empty["input"] = {}
            raw = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *_pieces(raw, 5)]]
    yield {"type": "content_block_start", "index": index, "content_block": empty}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def sse(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
