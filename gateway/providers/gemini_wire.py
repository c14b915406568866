"""A conversation in the words of Gemini's own API (v1beta). Pure; `gemini.py` does the talking.

What the API insists on, and what this module makes true for every history, also one that was cut
by a crash or by compaction:

- The first content is a user's, the last one too; no content and no part is empty.
- The calls of one step stand in one model content; ONE user content directly after it holds exactly
  one function response for each of them, in their order. A call without a result is answered
  "interrupted"; a result without a call is dropped. What people say beside results is a content of
  its own, so that nobody has to guess where a turn begins.
- A thought signature goes back on the part that brought it, and only to the model that made it. In
  the current turn the first call of every step must have one; a step that brought none (another
  model made it) carries the value that the API documents for this.
- Names and ids match the vendor's patterns; ids are unique in the request.

The request is byte-stable: what one step sent is the beginning of what the next step sends. Only
where a turn with an unsigned step ends, that step loses its stand-in for a signature.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

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

# Documented for steps that the API did not make itself ("transferring history from a different model").
# It goes out as it stands, not as bytes in base64: see ai.google.dev/gemini-api/docs/thought-signatures.
UNSIGNED = "skip_thought_signature_validator"
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
READ_TYPES = IMAGE_TYPES | {"application/pdf"}
_AUDIO = "audio/"
_IN_RESULTS = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf"})
_OLDER = re.compile(r"(?:models/)?(?:gemini-[12]\b|gemini-pro|gemma)")


def is_older(model: str) -> bool:
    """Whether a model is of the families before Gemini 3: they check no signatures, and take pictures
    beside results, not in them."""
    return _OLDER.match(model) is not None


def gemini_name(name: str) -> str:
    """A tool's name as this vendor takes it: like everywhere, and begun by a letter or underscore."""
    return wire_name(name, letter_first=True)


def build(
    messages: Sequence[Message],
    *,
    system: str,
    tools: Sequence[ToolSpec],
    model_id: str,
    model: str,
    max_tokens: int | None = None,
    load: Load = nothing_loaded,
) -> Json:
    """The request body for one conversation, without memory. See `Builder.build`."""
    builder = Builder(model_id=model_id, model=model, load=load)
    return builder.build(messages, system=system, tools=tools, max_tokens=max_tokens)


class Builder:
    """Builds request bodies and remembers each message's wire form while the message lives.

    model_id: the id under which this model's own messages are stored. model: its name on the wire.
    load: base64 of a picture or file, or None when it cannot be shown.
    """

    def __init__(self, *, model_id: str, model: str, load: Load = nothing_loaded) -> None:
        self._model_id, self._load, self._older = model_id, load, is_older(model)
        self._convert = IdentityMemo[Message, _Converted](self._converted)

    def build(
        self, messages: Sequence[Message], *, system: str, tools: Sequence[ToolSpec], max_tokens: int | None
    ) -> Json:
        """The body of one request. Parts are shared with later bodies: only read."""
        body: Json = {}
        if system.strip():
            body["systemInstruction"] = {"parts": [_text(system)]}
        if tools:
            body["tools"] = [{"functionDeclarations": [_tool(tool) for tool in tools]}]
        if max_tokens is not None:
            body["generationConfig"] = {"maxOutputTokens": max_tokens}
        assembly = _Assembly()
        for message in visible(messages):
            assembly.add(message.role, self._convert(message))
        contents = assembly.finish()
        body["contents"] = contents if self._older else _signed(contents)
        return body

    def unread(self, messages: Sequence[Message]) -> list[Image | File]:
        """The pictures and files that `build` is going to load: those of messages it has not seen."""
        return [part for m in visible(messages) if m not in self._convert for part in files_of(m)]

    def _converted(self, message: Message) -> _Converted:
        if message.role == "assistant":
            return _model_parts(message, own=message.model == self._model_id)
        return _user_parts(message, self._load, older=self._older)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What answers a call: the response itself, and what goes beside it."""

    id: str
    response: Json
    inside: tuple[Json, ...] = ()
    beside: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Converted:
    """One message. `calls`: (original id, whether the wire has it) for each call among the parts."""

    parts: tuple[Json, ...] = ()
    answers: tuple[_Answer, ...] = ()
    calls: tuple[tuple[str, bool], ...] = ()


@dataclass(slots=True)
class _Call:
    """One call that waits for its result. An empty `wire_id`: the model gave it none."""

    id: str
    wire_id: str
    name: str
    answer: _Answer | None = None

    def answered(self) -> Json:
        answer = self.answer
        response: Json = {"name": self.name, "response": {"error": INTERRUPTED}}
        if answer is not None:
            response["response"] = answer.response
            if answer.inside:
                response["parts"] = list(answer.inside)
        if self.wire_id:
            response["id"] = self.wire_id
        return {"functionResponse": response}


@dataclass(slots=True)
class _Assembly:
    """Puts converted messages together, one after the other."""

    _wire: list[Json] = field(default_factory=list)
    _used: set[str] = field(default_factory=set)
    _open: list[_Call] = field(default_factory=list)
    _said: list[Json] = field(default_factory=list)

    def add(self, role: str, message: _Converted) -> None:
        if role == "user":
            for answer in message.answers:
                self._answer(answer)
            self._said += message.parts
        elif message.parts:  # an empty model content does not exist on the wire
            self._close_user()
            self._model(message)

    def finish(self) -> list[Json]:
        self._close_user()
        if self._wire and self._wire[-1]["role"] == "model":
            self._wire.append({"role": "user", "parts": [_text(GO_ON)]})
        return self._wire

    def _answer(self, answer: _Answer) -> None:
        for call in self._open:
            if call.id == answer.id and call.answer is None:
                call.answer = answer
                return

    def _close_user(self) -> None:
        if self._open:
            parts = [call.answered() for call in self._open]
            for call in self._open:
                parts += call.answer.beside if call.answer is not None else ()
            self._wire.append({"role": "user", "parts": parts})
        if self._said:
            self._wire.append({"role": "user", "parts": self._said})
        self._open, self._said = [], []

    def _model(self, message: _Converted) -> None:
        if not self._wire:
            self._wire.append({"role": "user", "parts": [_text(BEGINNING)]})
        parts, ids = list(message.parts), iter(message.calls)
        for index, part in enumerate(parts):
            if "functionCall" in part:
                id, on_wire = next(ids)
                call = part["functionCall"]
                new = unused(wire_id(id), self._used) if on_wire else ""
                self._open.append(_Call(id, new, call["name"]))
                if new:
                    parts[index] = {**part, "functionCall": {"id": new, **call}}
        if self._wire[-1]["role"] == "model":
            self._wire[-1] = {"role": "model", "parts": self._wire[-1]["parts"] + parts}
        else:
            self._wire.append({"role": "model", "parts": parts})


def turn_start(contents: Sequence[Json]) -> int:
    """Where the current turn begins: at the last words of a user that are no function responses."""
    for index in range(len(contents) - 1, -1, -1):
        content = contents[index]
        if content["role"] == "user" and not any("functionResponse" in part for part in content["parts"]):
            return index
    return 0


def _signed(contents: list[Json]) -> list[Json]:
    """In the current turn, every step whose first call has no signature gets the stand-in for one."""
    for index in range(turn_start(contents), len(contents)):
        parts = contents[index]["parts"]
        first = next((number for number, part in enumerate(parts) if "functionCall" in part), None)
        if first is not None and "thoughtSignature" not in parts[first]:
            signed = {**parts[first], "thoughtSignature": UNSIGNED}
            contents[index] = {
                "role": contents[index]["role"],
                "parts": [*parts[:first], signed, *parts[first + 1 :]],
            }
    return contents


def _model_parts(message: Message, *, own: bool) -> _Converted:
    said: list[Json] = []
    acted: list[Json] = []
    calls: list[tuple[str, bool]] = []
    # Another model's words go before its calls; this one's parts keep the order of their signatures.
    for block in message.content:
        target = acted if own else said
        match block:
            case Thinking(text=text, opaque=dict() as raw) if own:
                target += _pieces(text, raw, {"thought": True})
            case Text(text=text, opaque=raw):
                target += _pieces(text, raw if own else None, {})
            case ToolUse():
                raw = (block.opaque or {}) if own else {}
                part: Json = {"functionCall": {"name": gemini_name(block.name), "args": block.input}}
                if signature := raw.get("thoughtSignature"):
                    part["thoughtSignature"] = signature
                acted.append(part)
                calls.append((block.id, raw.get("id", True) is not None))
            case _:
                pass
    parts = said + acted
    if not any("functionCall" in p or (p["text"].strip() and not p.get("thought")) for p in parts):
        return _Converted()
    return _Converted(parts=tuple(parts), calls=tuple(calls))


def _pieces(text: str, opaque: Json | None, more: Json) -> Iterator[Json]:
    """The text as the parts that it arrived in: `opaque` lists their lengths and signatures."""
    signed: Any = (opaque or {}).get("parts")
    if not isinstance(signed, list) or sum(length for length, _ in signed) != len(text):
        if text.strip() and not more:
            yield _text(text)
        return
    start = 0
    for length, signature in signed:
        piece = clean(text[start : start + length])
        start += length
        if signature is not None:
            yield {"text": piece, **more, "thoughtSignature": signature}
        elif piece:
            yield {"text": piece, **more}


def _user_parts(message: Message, load: Load, *, older: bool) -> _Converted:
    parts: list[Json] = []
    answers: list[_Answer] = []
    for block in message.content:
        match block:
            case Text(text=text) if text.strip():
                named = f"{message.author}: {text}" if message.author and not parts else text
                parts.append(_text(named))
            case ToolResult():
                answers.append(_answer(block, load, older=older))
            case Image() | File():
                parts.append(_attachment(block, load))
            case _:
                pass
    return _Converted(parts=tuple(parts), answers=tuple(answers))


def _answer(result: ToolResult, load: Load, *, older: bool) -> _Answer:
    lines = [clean(result.content) if result.content.strip() else NO_OUTPUT]
    shown: list[Json] = []
    for part in result.parts:
        wired = _attachment(part, load)
        if "text" in wired or not (older or part.media_type in _IN_RESULTS):
            lines.append(named_file(part, gone=load(part) is None))
        else:
            shown.append(wired)
    response = {"error" if result.is_error else "output": "\n".join(lines)}
    beside, inside = (tuple(shown), ()) if older else ((), tuple(shown))
    return _Answer(id=result.tool_use_id, response=response, inside=inside, beside=beside)


def _attachment(part: Image | File, load: Load) -> Json:
    readable = part.media_type in READ_TYPES or part.media_type.startswith(_AUDIO)
    data = load(part)
    if data is None or not readable:
        return _text(named_file(part, gone=data is None))
    return {"inlineData": {"mimeType": part.media_type, "data": data}}


def _text(text: str) -> Json:
    return {"text": clean(text)}


def _tool(tool: ToolSpec) -> Json:
    wired: Json = {"name": gemini_name(tool.name)}
    if tool.description.strip():
        wired["description"] = clean(tool.description)
    wired["parametersJsonSchema"] = normalised(tool.input_schema, "gemini")
    return wired
