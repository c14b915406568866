"""A conversation in the words of Anthropic's Messages API. Pure; `anthropic.py` does the talking.

What the API insists on, and what this module makes true for every history, also one that was cut
by a crash or by compaction:

- The first message is a user's, roles alternate, no text is empty.
- Every call is answered exactly once, in the user message directly after it, results first, then
  the rest. A call without a result is answered "interrupted"; a result without a call is dropped.
- An assistant message holds no text after a call and does not end in thinking.
- Thinking goes back only to the model that wrote it, as the raw block, in its order.
- Names and ids match the vendor's patterns; ids are unique in the request.

The request is byte-stable: what one step sent is the beginning of what the next step sends, except
for the `cache_control` marks. Those move with the end of the conversation and are no part of the
prefix that the vendor compares.
"""

from __future__ import annotations

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
    wire_id,
)
from gateway.providers.memo import IdentityMemo
from gateway.providers.names import wire_name
from gateway.providers.schemas import normalised

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})

_CACHE: Json = {"type": "ephemeral"}


def build(
    messages: Sequence[Message],
    *,
    system: str,
    tools: Sequence[ToolSpec],
    model_id: str,
    max_tokens: int,
    model: str = "",
    load: Load = nothing_loaded,
) -> Json:
    """The request body for one conversation, without memory. See `Builder.build`."""
    builder = Builder(model_id=model_id, model=model or model_id, load=load)
    return builder.build(messages, system=system, tools=tools, max_tokens=max_tokens)


class Builder:
    """Builds request bodies and remembers each message's wire form while the message lives.

    model_id: the id under which this model's own messages are stored. model: its name on the wire.
    load: base64 of a picture or PDF, or None when it cannot be shown.
    """

    def __init__(self, *, model_id: str, model: str, load: Load = nothing_loaded) -> None:
        self._model_id, self._model, self._load = model_id, model, load
        self._convert = IdentityMemo[Message, _Converted](self._converted)

    def build(
        self, messages: Sequence[Message], *, system: str, tools: Sequence[ToolSpec], max_tokens: int
    ) -> Json:
        """The body of one request, without `stream`. Blocks are shared with later bodies: only read."""
        body: Json = {"model": self._model, "max_tokens": max_tokens}
        if tools:
            wired = [_tool(tool) for tool in tools]
            body["tools"] = [*wired[:-1], _marked(wired[-1])]
        if system.strip():
            body["system"] = [_marked({"type": "text", "text": clean(system)})]
        assembly = _Assembly()
        for message in visible(messages):
            assembly.add(message.role, self._convert(message))
        body["messages"] = _with_marks(assembly.finish())
        return body

    def unread(self, messages: Sequence[Message]) -> list[Image | File]:
        """The pictures and files that `build` is going to load: those of messages it has not seen."""
        return [part for m in visible(messages) if m not in self._convert for part in files_of(m)]

    def _converted(self, message: Message) -> _Converted:
        if message.role == "assistant":
            return _assistant(message, own=message.model == self._model_id)
        return _user(message, self._load)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Converted:
    """One message: its blocks, with those apart that answer calls. `calls` are original ids."""

    blocks: tuple[Json, ...] = ()
    results: tuple[tuple[str, Json], ...] = ()
    calls: tuple[str, ...] = ()


@dataclass(slots=True)
class _Call:
    """One call that waits for its result."""

    id: str
    wire_id: str
    result: Json | None = None


@dataclass(slots=True)
class _Assembly:
    """Puts converted messages together, one after the other."""

    _wire: list[Json] = field(default_factory=list)
    _used: set[str] = field(default_factory=set)
    _open: list[_Call] = field(default_factory=list)
    _said: list[Json] = field(default_factory=list)

    def add(self, role: str, message: _Converted) -> None:
        if role == "user":
            for answers, block in message.results:
                self._answer(answers, block)
            self._said += message.blocks
        elif message.blocks:  # an empty assistant message does not exist on the wire
            self._close_user()
            self._assistant(message)

    def finish(self) -> list[Json]:
        self._close_user()
        if self._wire and self._wire[-1]["role"] == "assistant":
            # Ending in words of the model would ask it to complete them; many models refuse that.
            self._wire.append({"role": "user", "content": [_text(GO_ON)]})
        return self._wire

    def _answer(self, answers: str, block: Json) -> None:
        for call in self._open:
            if call.id == answers and call.result is None:
                same = call.wire_id == block["tool_use_id"]
                call.result = block if same else {**block, "tool_use_id": call.wire_id}
                return

    def _close_user(self) -> None:
        content = [call.result or _interrupted(call.wire_id) for call in self._open] + self._said
        if content:
            self._wire.append({"role": "user", "content": content})
        self._open, self._said = [], []

    def _assistant(self, message: _Converted) -> None:
        if not self._wire:
            self._wire.append({"role": "user", "content": [_text(BEGINNING)]})
        self._open = [_Call(id, unused(wire_id(id), self._used)) for id in message.calls]
        blocks = list(message.blocks)
        ids = iter(self._open)
        for index, block in enumerate(blocks):
            if block["type"] == "tool_use" and (new := next(ids).wire_id) != block["id"]:
                blocks[index] = {**block, "id": new}
        if self._wire[-1]["role"] == "assistant":
            self._wire[-1] = {"role": "assistant", "content": self._wire[-1]["content"] + blocks}
        else:
            self._wire.append({"role": "assistant", "content": blocks})


def _assistant(message: Message, *, own: bool) -> _Converted:
    said: list[Json] = []  # everything up to the first call, and texts from behind it
    acted: list[Json] = []  # the first call and all after it but texts
    for block in message.content:
        match block:
            case Thinking(opaque=raw) if own and raw is not None:
                (acted or said).append(raw)
            case Text(text=text) if text.strip():
                said.append(_text(text))
            case ToolUse():
                acted.append(_tool_use(block))
            case _:
                pass
    blocks = said + acted
    while blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        blocks.pop()
    return _Converted(blocks=tuple(blocks), calls=tuple(call.id for call in message.calls))


def _user(message: Message, load: Load) -> _Converted:
    blocks: list[Json] = []
    results: list[tuple[str, Json]] = []
    for block in message.content:
        match block:
            case Text(text=text) if text.strip():
                named = f"{message.author}: {text}" if message.author and not blocks else text
                blocks.append(_text(named))
            case ToolResult():
                results.append((block.tool_use_id, _tool_result(block, load)))
            case Image() | File():
                blocks.append(_attachment(block, load))
            case _:
                pass
    return _Converted(blocks=tuple(blocks), results=tuple(results))


def _text(text: str) -> Json:
    return {"type": "text", "text": clean(text)}


def _tool_use(call: ToolUse) -> Json:
    return {"type": "tool_use", "id": wire_id(call.id), "name": wire_name(call.name), "input": call.input}


def _tool_result(result: ToolResult, load: Load) -> Json:
    text = clean(result.content) if result.content.strip() else NO_OUTPUT
    block: Json = {"type": "tool_result", "tool_use_id": wire_id(result.tool_use_id), "content": text}
    if result.parts:
        block["content"] = [_text(text), *(_attachment(part, load) for part in result.parts)]
    if result.is_error:
        block["is_error"] = True
    return block


def _attachment(part: Image | File, load: Load) -> Json:
    kind = "image" if part.media_type in IMAGE_TYPES else "document"
    readable = kind == "image" or part.media_type == "application/pdf"
    data = load(part)
    if data is None or not readable:
        return _text(named_file(part, gone=data is None))
    return {"type": kind, "source": {"type": "base64", "media_type": part.media_type, "data": data}}


def _interrupted(id: str) -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": INTERRUPTED, "is_error": True}


def _tool(tool: ToolSpec) -> Json:
    wired: Json = {
        "name": wire_name(tool.name),
        "input_schema": normalised(tool.input_schema, "anthropic"),
    }
    if tool.description.strip():
        wired["description"] = clean(tool.description)
    return wired


def _with_marks(messages: list[Json]) -> list[Json]:
    """Cache marks on the last two user messages: one is what the step before wrote, the other what
    the next step will read."""
    users = [index for index, message in enumerate(messages) if message["role"] == "user"]
    for index in users[-2:]:
        content = messages[index]["content"]
        messages[index] = {"role": "user", "content": [*content[:-1], _marked(content[-1])]}
    return messages


def _marked(block: Json) -> Json:
    return {**block, "cache_control": _CACHE}
