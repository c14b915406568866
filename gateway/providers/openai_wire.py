"""A conversation in the words of the Chat Completions API. Pure; `openai.py` does the talking.

What the vendors insist on, and what this module makes true for every history, also one that was cut
by a crash or by compaction:

- Every call is answered exactly once, by tool messages directly after the message that made it, in
  call order. A call without a result is answered "interrupted"; a result without a call is dropped.
  Pictures of results follow in a user message, for tool messages hold text only.
- No message is empty, the first one is a user's (or the system's), and the last is not the model's.
- Arguments are a JSON object as text. Names and ids match the vendor's patterns; ids are unique.
- `reasoning_content` goes back unchanged, on the message that it came with, and only to the model that
  wrote it. Where a vendor needs it on every message, one of another model gets a placeholder; vendors
  that do not know the field never see it. The same holds for Gemini's signatures, whose stand-in is
  the value that Google documents for steps of other models, in the current turn only.

The request is byte-stable: what one step sent is the beginning of what the next step sends. Only at
Gemini, where a turn with a step of another model ends, that step loses its stand-in for a signature.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.messages import File, Image, Json, Message, Text, Thinking, ToolResult, ToolUse
from gateway.providers.base import ToolSpec
from gateway.providers.conversation import (
    BEGINNING,
    GO_ON,
    INTERRUPTED,
    NO_OUTPUT,
    Load,
    clean,
    files_of,
    named_file,
    nothing_loaded,
    unused,
    visible,
)
from gateway.providers.memo import IdentityMemo
from gateway.providers.openai_quirks import Quirks
from gateway.providers.schemas import normalised

PLACEHOLDER = "(Another model took this step; its reasoning is not known.)"
UNSIGNED = "skip_thought_signature_validator"
ERROR = "Error: "
IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def build(
    messages: Sequence[Message],
    *,
    quirks: Quirks,
    system: str = "",
    tools: Sequence[ToolSpec] = (),
    model_id: str,
    model: str,
    max_tokens: int | None = None,
    load: Load = nothing_loaded,
) -> Json:
    """The request body for one conversation, without memory. See `Builder.build`."""
    builder = Builder(quirks=quirks, model_id=model_id, model=model, load=load)
    return builder.build(messages, system=system, tools=tools, max_tokens=max_tokens)


class Builder:
    """Builds request bodies and remembers each message's wire form while the message lives.

    model_id: the id under which this model's own messages are stored. model: its name on the wire.
    load: base64 of a picture or PDF, or None when it cannot be shown. placeholders: fill in for
    reasoning that the vendor needs; off where thinking is switched off.
    """

    def __init__(
        self,
        *,
        quirks: Quirks,
        model_id: str,
        model: str,
        load: Load = nothing_loaded,
        placeholders: bool = True,
    ) -> None:
        self._quirks, self._model_id, self._model, self._load = quirks, model_id, model, load
        self._placeholders = placeholders and quirks.reasoning == "needed"
        self._convert = IdentityMemo[Message, _Converted](self._converted)

    def build(
        self, messages: Sequence[Message], *, system: str, tools: Sequence[ToolSpec], max_tokens: int | None
    ) -> Json:
        """The body of one request, without `stream`. Messages are shared with later bodies: only read."""
        body: Json = {"model": self._model}
        if tools:
            body["tools"] = [self._tool(tool) for tool in tools]
        limit = max_tokens or self._quirks.default_max_tokens
        if limit:
            body[self._quirks.max_tokens] = limit
        assembly = _Assembly(self._quirks, signed=self._quirks.signatures.match(self._model) is not None)
        if system.strip():
            role = "developer" if self._quirks.developer.match(self._model) else "system"
            assembly.wire.append({"role": role, "content": clean(system)})
        for message in visible(messages):
            assembly.add(message.role, self._convert(message))
        body["messages"] = assembly.finish()
        return body

    def unread(self, messages: Sequence[Message]) -> list[Image | File]:
        """The pictures and files that `build` is going to load: those of messages it has not seen."""
        return [part for m in visible(messages) if m not in self._convert for part in files_of(m)]

    def _tool(self, tool: ToolSpec) -> Json:
        function: Json = {"name": self._quirks.name(tool.name)}
        if tool.description.strip():
            function["description"] = clean(tool.description)
        schema = normalised(tool.input_schema, self._quirks.dialect)
        if schema["properties"] or self._quirks.dialect != "gemini_openapi":
            function["parameters"] = schema
        return {"type": "function", "function": function}

    def _converted(self, message: Message) -> _Converted:
        if message.role == "assistant":
            return self._assistant(message, own=message.model == self._model_id)
        return self._user(message)

    def _assistant(self, message: Message, *, own: bool) -> _Converted:
        words = [clean(b.text) for b in message.content if isinstance(b, Text) and b.text.strip()]
        calls = [self._call(call, own=own) for call in message.calls]
        if not words and not calls:
            return _Converted()
        wired: Json = {"role": "assistant", "content": "\n\n".join(words) or self._quirks.beside_calls}
        reasoning = _reasoning(message) if own and self._quirks.reasoning != "refused" else ""
        if reasoning or self._placeholders:
            wired["reasoning_content"] = reasoning or PLACEHOLDER
        if calls:
            wired["tool_calls"] = calls
        return _Converted(said=(wired,), calls=tuple(call.id for call in message.calls))

    def _call(self, call: ToolUse, *, own: bool) -> Json:
        function = {"name": self._quirks.name(call.name), "arguments": _spelled(call.input)}
        wired: Json = {"id": self._id(call.id), "type": "function", "function": function}
        if own and self._quirks.signatures.match(self._model) and "extra_content" in (call.opaque or {}):
            wired["extra_content"] = (call.opaque or {})["extra_content"]
        return wired

    def _id(self, id: str) -> str:
        if self._quirks.ids.fullmatch(id):
            return id
        return "call_" + hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def _user(self, message: Message) -> _Converted:
        parts: list[Json] = []
        results: list[_Result] = []
        for block in message.content:
            match block:
                case Text(text=text) if text.strip():
                    named = f"{message.author}: {text}" if message.author and not parts else text
                    parts.append(_text(named))
                case ToolResult():
                    results.append(self._result(block))
                case Image() | File():
                    parts.append(self._attachment(block))
                case _:
                    pass
        said = ({"role": "user", "content": _content(parts)},) if parts else ()
        return _Converted(said=said, results=tuple(results))

    def _result(self, result: ToolResult) -> _Result:
        lines = [clean(result.content) if result.content.strip() else NO_OUTPUT]
        if result.is_error and not lines[0].lower().startswith("error"):
            lines[0] = ERROR + lines[0]
        shown = []
        for part in result.parts:
            wired = self._attachment(part)
            if wired["type"] == "text":
                lines.append(wired["text"])
            else:
                shown.append(wired)
        return _Result(answers=result.tool_use_id, content="\n".join(lines), shown=tuple(shown))

    def _attachment(self, part: Image | File) -> Json:
        data = self._load(part)
        url = f"data:{part.media_type};base64,{data}"
        if data is None:
            return _text(named_file(part, gone=True))
        if part.media_type in IMAGE_TYPES and self._quirks.images.match(self._model):
            return {"type": "image_url", "image_url": {"url": url}}
        if part.media_type == "application/pdf" and self._quirks.files.match(self._model):
            return {"type": "file", "file": {"filename": clean(part.name or "file.pdf"), "file_data": url}}
        return _text(named_file(part, gone=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """What answers one call. `answers` is its original id, `shown` what follows in a message of its own."""

    answers: str
    content: str
    shown: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Converted:
    """One message: what it says on the wire, and the results apart. `calls` are original ids."""

    said: tuple[Json, ...] = ()
    results: tuple[_Result, ...] = ()
    calls: tuple[str, ...] = ()


@dataclass(slots=True)
class _Call:
    """One call that waits for its result."""

    id: str
    wire_id: str
    name: str
    result: _Result | None = None


@dataclass(slots=True)
class _Assembly:
    """Puts converted messages together, one after the other."""

    quirks: Quirks
    signed: bool = False
    wire: list[Json] = field(default_factory=list)
    _used: set[str] = field(default_factory=set)
    _open: list[_Call] = field(default_factory=list)
    _said: list[Json] = field(default_factory=list)
    _turn: int = 0  # where the current turn begins

    def add(self, role: str, message: _Converted) -> None:
        if role == "user":
            for result in message.results:
                self._answer(result)
            self._said += message.said
        elif message.said:
            self._close_user()
            self._assistant(message)

    def finish(self) -> list[Json]:
        self._close_user()
        if self.wire and self.wire[-1]["role"] == "assistant":
            self._say({"role": "user", "content": GO_ON})
        if self.signed:
            self._sign()
        return self.wire

    def _answer(self, result: _Result) -> None:
        for call in self._open:
            if call.id == result.answers and call.result is None:
                call.result = result
                return

    def _close_user(self) -> None:
        shown: list[Json] = []
        for call in self._open:
            content = call.result.content if call.result is not None else ERROR + INTERRUPTED
            self.wire.append({"role": "tool", "tool_call_id": call.wire_id, "content": content})
            if call.result is not None and call.result.shown:
                shown += [_text(f"(Part of the result of {call.name}:)"), *call.result.shown]
        if shown:
            self.wire.append({"role": "user", "content": shown})
        for message in self._said:
            self._say(message)
        self._open, self._said = [], []

    def _say(self, message: Json) -> None:
        self._turn = len(self.wire)
        self.wire.append(message)

    def _assistant(self, message: _Converted) -> None:
        if not self.wire or self.wire[-1]["role"] in ("system", "developer"):
            self._say({"role": "user", "content": BEGINNING})
        elif self.wire[-1]["role"] == "assistant":
            self._say({"role": "user", "content": GO_ON})
        (wired,) = message.said
        calls = list(wired.get("tool_calls", ()))
        for index, (call, original) in enumerate(zip(calls, message.calls, strict=True)):
            new = unused(call["id"], self._used, self.quirks.longest_id)
            self._open.append(_Call(original, new, call["function"]["name"]))
            if new != call["id"]:
                calls[index] = {**call, "id": new}
        self.wire.append({**wired, "tool_calls": calls} if calls else wired)

    def _sign(self) -> None:
        """In the current turn, every step whose first call has no signature gets the stand-in for one."""
        for index in range(self._turn, len(self.wire)):
            calls = self.wire[index].get("tool_calls")
            if calls and "extra_content" not in calls[0]:
                first = {**calls[0], "extra_content": {"google": {"thought_signature": UNSIGNED}}}
                self.wire[index] = {**self.wire[index], "tool_calls": [first, *calls[1:]]}


def _reasoning(message: Message) -> str:
    """What this model wrote as `reasoning_content`, unchanged."""
    opaque = [block.opaque or {} for block in message.content if isinstance(block, Thinking)]
    return "".join(
        raw["reasoning_content"] for raw in opaque if isinstance(raw.get("reasoning_content"), str)
    )


def _content(parts: list[Json]) -> str | list[Json]:
    """Text alone goes as text: not every model takes a list."""
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _text(text: str) -> Json:
    return {"type": "text", "text": clean(text)}


def _spelled(arguments: Json) -> str:
    return clean(json.dumps(arguments, ensure_ascii=False))
