"""From the chunks of a Chat Completions stream to one reply. Pure.

Arguments are read once, whole, and never repaired.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.errors import ModelOverloaded
from gateway.messages import Block, Json, Text, Thinking, ToolUse
from gateway.providers.arguments import CUT_AT_LIMIT, parse_arguments
from gateway.providers.base import ModelResponse, StopReason, Usage
from gateway.providers.openai_quirks import finish_of

# Where reasoning arrives: the vendors' own word, and what common servers of open models write.
_REASONING = ("reasoning_content", "reasoning")


@dataclass(slots=True)
class _Growing:
    """One call while it arrives."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: Json | None = None


@dataclass(slots=True)
class Accumulator:
    """Takes the chunks of one stream, in order, and then gives the reply.

    provider names the errors, model_id goes into the reply, names maps wire names of tools back.
    max_tokens: the limit that was sent, None for none.
    """

    provider: str
    model_id: str
    max_tokens: int | None
    names: Mapping[str, str]
    _text: list[str] = field(default_factory=list)
    _reasoning: list[str] = field(default_factory=list)
    _refusal: list[str] = field(default_factory=list)
    _calls: list[_Growing] = field(default_factory=list)
    _places: dict[int, _Growing] = field(default_factory=dict)
    _usage: Json = field(default_factory=dict)
    _finish: str | None = None

    def feed(self, chunk: Json) -> str:
        """Take one chunk; return the piece of visible text in it, often nothing.

        Raises AttributeError, KeyError or TypeError for a chunk that is not shaped like one.
        """
        self._count(chunk.get("usage"))
        piece = ""
        for choice in chunk.get("choices") or ():
            self._count(choice.get("usage"))  # Kimi says it here
            piece += self._grow(choice.get("delta") or {})
            self._finish = choice.get("finish_reason") or self._finish
        return piece

    def response(self) -> ModelResponse:
        """The whole reply. Raises ModelOverloaded when the stream ended before the model did."""
        if self._finish is None:
            raise ModelOverloaded("the answer broke off", provider=self.provider)
        finish = finish_of(self._finish)
        if finish == "broken":
            raise ModelOverloaded(f"the answer broke off: {self._finish[:60]}", provider=self.provider)
        stop: StopReason = "refusal" if self._refusal else finish
        calls = [self._call(number, call) for number, call in enumerate(self._calls)]
        usage = _usage(self._usage)
        full = self.max_tokens is not None and usage.output >= self.max_tokens
        if stop == "tool_calls" and full and any(call.invalid for call in calls):
            stop = "length"  # some endpoints hide the cut
        if stop in ("end", "tool_calls"):
            stop = "tool_calls" if calls else "end"
        if stop == "length":
            calls = [_cut(call) for call in calls]
        elif stop in ("refusal", "malformed"):
            calls = []
        blocks: list[Block] = [*self._said(), *calls]
        return ModelResponse(content=tuple(blocks), stop=stop, usage=usage, model=self.model_id)

    def _said(self) -> list[Block]:
        blocks: list[Block] = []
        if reasoning := "".join(self._reasoning):
            blocks.append(Thinking(text=reasoning, opaque={"reasoning_content": reasoning}))
        if text := "".join(self._text) or "".join(self._refusal):
            blocks.append(Text(text=text))
        return blocks

    def _count(self, usage: Any) -> None:
        # Totals so far: the last ones that are said hold.
        if isinstance(usage, dict):
            self._usage.update({name: count for name, count in usage.items() if count is not None})

    def _grow(self, delta: Json) -> str:
        for name in _REASONING:
            if isinstance(delta.get(name), str):
                self._reasoning.append(delta[name])
                break  # a server that says it twice, for old and new clients
        if delta.get("refusal"):
            self._refusal.append(str(delta["refusal"]))
        for piece in delta.get("tool_calls") or ():
            self._extend(piece)
        text = delta.get("content")
        if not isinstance(text, str):
            return ""
        self._text.append(text)
        return text

    def _extend(self, piece: Json) -> None:
        function = piece.get("function") or {}
        call = self._growing(piece.get("index"), piece.get("id") or "")
        call.id = call.id or piece.get("id") or ""
        call.name = call.name or function.get("name") or ""
        arguments = function.get("arguments")
        if isinstance(arguments, dict):  # as GLM documents it
            arguments = json.dumps(arguments, ensure_ascii=False)
        if arguments:
            call.arguments.append(arguments)
        if isinstance(piece.get("extra_content"), dict):
            call.extra = {**(call.extra or {}), **piece["extra_content"]}

    def _growing(self, index: Any, id: str) -> _Growing:
        """The call that a piece belongs to. Some endpoints number all of them 0, or none."""
        place = index if isinstance(index, int) else (len(self._calls) if id else len(self._calls) - 1)
        call = self._places.get(place)
        if call is None or (id and call.id and id != call.id):
            call = self._places[place] = _Growing()
            self._calls.append(call)
        return call

    def _call(self, number: int, call: _Growing) -> ToolUse:
        args, invalid = parse_arguments("".join(call.arguments))
        return ToolUse(
            id=call.id or f"call_{number}",
            name=self.names.get(call.name, call.name),
            input=args,
            invalid=invalid,
            opaque={"extra_content": call.extra} if call.extra else None,
        )


def _cut(call: ToolUse) -> ToolUse:
    return ToolUse(id=call.id, name=call.name, input=call.input, invalid=CUT_AT_LIMIT, opaque=call.opaque)


def _usage(counts: Json) -> Usage:
    """Cached tokens are part of the input everywhere, under three different names."""
    prompt, completion = _number(counts.get("prompt_tokens")), _number(counts.get("completion_tokens"))
    details = counts.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    cached = (
        details.get("cached_tokens") or counts.get("prompt_cache_hit_tokens") or counts.get("cached_tokens")
    )
    # Gemini counts thoughts in the total only.
    output = max(completion, _number(counts.get("total_tokens")) - prompt)
    return Usage(
        input=prompt,
        output=output,
        cached=_number(cached),
        cache_written=_number(details.get("cache_write_tokens")),
    )


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0
