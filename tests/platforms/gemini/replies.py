"""What the test server answers: scripted steps, and their chunks on the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.platforms.gemini.rules import Json, signature

STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


@dataclass(frozen=True, kw_only=True)
class Fail:
    """Refuse the next request. `say` is the error's message; `named` its status, by default the code's."""

    status: int
    say: str = "as the test wants"
    named: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    details: list[Json] = field(default_factory=list)

    def body(self) -> Json:
        named = STATUSES.get(self.status, "") if self.named is None else self.named
        error: Json = {"code": self.status, "message": self.say}
        if named:
            error["status"] = named
        if self.details:
            error["details"] = self.details
        return {"error": error}


def retry_in(delay: str) -> Json:
    """The detail that says how long to wait."""
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


@dataclass(frozen=True, kw_only=True)
class Say:
    """Answer with these parts (see `text`, `call`, `think`).

    token: what the rest can be asked for with, where the finish is CONTINUATION.
    finish: why it ends; None: it never says. blocked: the prompt's blockReason, without candidates.
    cut: what happens after `after` chunks: a clean end, a dropped connection, an error of this code, an
    error without a code, or an event that is not JSON. hold: wait for this before the first chunk.
    """

    parts: tuple[Json, ...] = ()
    finish: str | None = "STOP"
    blocked: str = ""
    usage: Json = field(default_factory=dict)
    cut: Literal["", "end", "drop", "503", "429", "400", "bare", "garbage", "list"] = ""
    after: int = 0
    hold: asyncio.Event | None = None
    token: str = ""


Step = Fail | Say


def text(words: str, model: str = "", *, signed: Literal["", "last", "apart"] = "") -> Json:
    """Words; signed on their last piece, or on an empty part behind them."""
    return {"text": words, "_signed": signed, "_model": model}


def think(words: str, model: str = "") -> Json:
    """Thoughts, signed where a model is given."""
    return {"text": words, "thought": True, "_signed": "last" if model else "", "_model": model}


def call(name: str, args: Any, *, id: str = "", model: str = "") -> Json:
    """A call, signed where a model is given. `args` None: there are none."""
    part: Json = {"functionCall": {"name": name}}
    if id:
        part["functionCall"] = {"id": id, **part["functionCall"]}
    if args is not None:
        part["functionCall"]["args"] = args
    if model:
        part["thoughtSignature"] = signature(model, part)
    return part


def chunks(step: Say, model: str, tokens: int) -> Iterator[Json]:
    """The reply as the API streams it."""
    usage = {
        "promptTokenCount": tokens,
        "candidatesTokenCount": 7,
        "totalTokenCount": tokens + 7,
        **step.usage,
    }
    common = {"usageMetadata": usage, "modelVersion": model, "responseId": "r1"}
    if step.blocked:
        yield {"promptFeedback": {"blockReason": step.blocked}, **common}
        return
    for part in step.parts:
        for piece in _pieces(part):
            yield {"candidates": [{"content": {"role": "model", "parts": [piece]}, "index": 0}], **common}
    last: Json = {"index": 0, **({"continuationToken": step.token} if step.token else {})}
    if step.finish is not None:
        last["finishReason"] = step.finish
        yield {"candidates": [last], **common}


def whole(step: Say, model: str, tokens: int) -> Json:
    """The reply as one JSON value, for `:generateContent`."""
    *_, last = chunks(step, model, tokens)
    parts = [piece for part in step.parts for piece in _pieces(part)]
    if "candidates" in last and parts:
        last["candidates"][0]["content"] = {"role": "model", "parts": parts}
    return last


def _pieces(part: Json) -> Iterator[Json]:
    sent = {name: value for name, value in part.items() if not name.startswith("_")}
    if "text" not in sent:
        yield sent
        return
    words, signed = sent["text"], part["_signed"]
    pieces = [{**sent, "text": words[start : start + 7]} for start in range(0, len(words), 7)] or [sent]
    if signed == "apart":
        pieces.append({**sent, "text": ""})
    if signed:
        pieces[-1]["thoughtSignature"] = signature(part["_model"], pieces[-1])
    yield from pieces


def sse(value: Any) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\r\n\r\n".encode()
