"""What the test server answers: scripted steps, and their chunks on the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]

CODES = {
    400: "invalid_request_error",
    401: "invalid_api_key",
    403: "permission_denied",
    404: "model_not_found",
    429: "rate_limit_exceeded",
    500: "server_error",
    503: "service_unavailable",
}


@dataclass(frozen=True, kw_only=True)
class Fail:
    """Refuse the next request. `say` is the error's message; `code` and `type` where they matter."""

    status: int
    say: str = "as the test wants"
    code: str | None = None
    type: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None

    def in_words_of(self, flavour: str) -> Any:
        """The body, shaped as the vendor shapes it."""
        if self.body is not None:
            return self.body
        kind = self.type or CODES.get(self.status, "api_error")
        if flavour == "gemini":
            status = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}.get(
                self.status, ""
            )
            return [{"error": {"code": self.status, "message": self.say, "status": self.code or status}}]
        if flavour == "glm":
            return {"error": {"code": self.code or "1210", "message": self.say}}
        error = {"message": self.say, "type": kind}
        return {"error": error if flavour == "kimi" else {**error, "param": None, "code": self.code}}


@dataclass(frozen=True, kw_only=True)
class Say:
    """Answer with this.

    calls: see `call`. cut: what happens after `after` chunks: a clean end, a dropped connection, an
    error chunk (its code, or "error"), or a chunk that is not JSON. hold: wait for this before the
    first chunk. usage: None for an endpoint that says none. done: whether `[DONE]` comes.
    """

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: tuple[Json, ...] = ()
    finish: str | None = None
    usage: Json | None = field(default_factory=dict)
    cut: str = ""
    after: int = 0
    hold: asyncio.Event | None = None
    done: bool = True

    @property
    def finish_reason(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")


Step = Fail | Say


def call(name: str, args: Any, id: str, *, signature: str = "") -> Json:
    """A call; `args` given as a string goes out as it is, broken or not."""
    raw = args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)
    wired: Json = {"id": id, "type": "function", "function": {"name": name, "arguments": raw}}
    if signature:
        wired["extra_content"] = {"google": {"thought_signature": signature}}
    return wired


def counted(step: Say, tokens: int) -> Json:
    usage = {"prompt_tokens": tokens, "completion_tokens": 7}
    usage |= step.usage or {}
    return {"total_tokens": usage["prompt_tokens"] + usage["completion_tokens"], **usage}


def whole(step: Say, model: str, number: int, tokens: int) -> Json:
    """The reply as one JSON value, for a request without `stream`."""
    message: Json = {"role": "assistant", "content": step.text or None}
    if step.reasoning:
        message["reasoning_content"] = step.reasoning
    if step.calls:
        message["tool_calls"] = list(step.calls)
    choice = {"index": 0, "message": message, "finish_reason": step.finish_reason}
    return {
        **_frame(model, number, "chat.completion"),
        "choices": [choice],
        "usage": counted(step, tokens),
    }


def chunks(step: Say, model: str, number: int, tokens: int, flavour: str) -> Iterator[Json]:
    """The reply as the API streams it."""
    frame = _frame(model, number, "chat.completion.chunk")

    def chunk(delta: Json, finish: str | None = None, **more: Any) -> Json:
        return {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more}]}

    yield chunk({"role": "assistant", "content": ""})
    yield from (chunk({"reasoning_content": piece}) for piece in _pieces(step.reasoning, 7))
    yield from (chunk({"content": piece}) for piece in _pieces(step.text, 7))
    yield from (chunk({"refusal": piece}) for piece in _pieces(step.refusal, 7))
    for index, one in enumerate(step.calls):
        yield from (chunk({"tool_calls": [piece]}) for piece in _call(index, one, flavour))
    if step.usage is None:
        yield chunk({}, step.finish_reason)
    elif flavour == "kimi":
        yield chunk({}, step.finish_reason, usage=counted(step, tokens))
    else:
        yield chunk({}, step.finish_reason)
        yield {**frame, "choices": [], "usage": counted(step, tokens)}


def _call(index: int, call: Json, flavour: str) -> Iterator[Json]:
    if flavour in ("gemini", "glm"):  # whole, and Gemini numbers every call 0
        yield {**call, "index": 0 if flavour == "gemini" else index}
        return
    function = call["function"]
    yield {"index": index, **call, "function": {"name": function["name"], "arguments": ""}}
    for piece in _pieces(function["arguments"], 5):
        yield {"index": index, "function": {"arguments": piece}}


def _frame(model: str, number: int, kind: Literal["chat.completion", "chat.completion.chunk"]) -> Json:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 1_700_000_000, "model": model}


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
