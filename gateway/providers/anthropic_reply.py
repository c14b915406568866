"""From the Messages API's stream of events to one reply. Pure.

The SDK can assemble a stream itself, but completes half-written arguments on the way; here
arguments are read once, whole, and never repaired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.errors import ModelOverloaded
from gateway.messages import Block, Json, Text, Thinking, ToolUse
from gateway.providers.arguments import CUT_AT_LIMIT, check_arguments, parse_arguments
from gateway.providers.base import ModelResponse, StopReason, Usage

_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "pause_turn": "end",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
# What arrives in pieces: delta type -> (its field, the block's field that it extends).
_PIECES = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
}


@dataclass(slots=True)
class _Growing:
    """One block while it arrives: its first form, and what was added to its fields."""

    raw: Json
    added: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, piece: str) -> None:
        self.added.setdefault(name, []).append(piece)

    def whole(self) -> Json:
        grown = {name: (self.raw.get(name) or "") + "".join(pieces) for name, pieces in self.added.items()}
        return {**self.raw, **grown}


@dataclass(slots=True)
class Accumulator:
    """Takes the events of one stream, in order, and then gives the reply.

    provider names the errors, model_id goes into the reply, names maps wire names of tools back.
    """

    provider: str
    model_id: str
    max_tokens: int
    names: Mapping[str, str]
    _blocks: dict[int, _Growing] = field(default_factory=dict)
    _arguments: dict[int, list[str]] = field(default_factory=dict)
    _usage: Json = field(default_factory=dict)
    _stop: str | None = None

    def feed(self, event: Json) -> str:
        """Take one event; return the piece of visible text in it, often nothing.

        Raises KeyError or TypeError for an event that is not shaped like one.
        """
        match event["type"]:
            case "message_start":
                self._count(event["message"].get("usage") or {})
            case "content_block_start":
                self._blocks[event["index"]] = _Growing(event["content_block"])
            case "content_block_delta":
                return self._grow(event["index"], event["delta"])
            case "message_delta":
                self._stop = event["delta"].get("stop_reason") or self._stop
                self._count(event.get("usage") or {})
            case _:
                pass
        return ""

    def response(self) -> ModelResponse:
        """The whole reply. Raises ModelOverloaded when the stream ended before the model did."""
        if self._stop is None:
            raise ModelOverloaded("the answer broke off", provider=self.provider)
        stop = _STOPS.get(self._stop, "end")
        blocks = [block for index in sorted(self._blocks) if (block := self._block(index)) is not None]
        calls = [block for block in blocks if isinstance(block, ToolUse)]
        full = int(self._usage.get("output_tokens") or 0) >= self.max_tokens
        if stop == "tool_calls" and full and any(call.invalid for call in calls):
            stop = "length"  # some endpoints hide the cut
        if stop in ("end", "tool_calls"):
            stop = "tool_calls" if calls else "end"
        if stop == "length":
            blocks = [_cut(block) for block in blocks]
        elif stop == "refusal":
            blocks = [block for block in blocks if not isinstance(block, ToolUse)]
        return ModelResponse(content=tuple(blocks), stop=stop, usage=_usage(self._usage), model=self.model_id)

    def _count(self, usage: Json) -> None:
        # Totals so far: the last one that is said holds.
        self._usage.update({name: count for name, count in usage.items() if count is not None})

    def _grow(self, index: int, delta: Json) -> str:
        kind = delta["type"]
        if kind == "input_json_delta":
            self._arguments.setdefault(index, []).append(delta["partial_json"])
        elif kind in _PIECES:
            source, target = _PIECES[kind]
            self._blocks[index].add(target, delta[source])
        return str(delta["text"]) if kind == "text_delta" else ""

    def _block(self, index: int) -> Block | None:
        raw = self._blocks[index].whole()
        match raw["type"]:
            case "text":
                return Text(text=raw["text"]) if raw["text"] else None
            case "thinking":
                # Only a signed block can go back; one that was cut has no signature yet.
                return Thinking(text=raw["thinking"], opaque=raw if raw.get("signature") else None)
            case "redacted_thinking":
                return Thinking(opaque=raw)
            case "tool_use":
                return self._call(index, raw)
            case _:
                return None

    def _call(self, index: int, raw: Json) -> ToolUse:
        pieces = self._arguments.get(index)
        args, invalid = (
            parse_arguments("".join(pieces)) if pieces else check_arguments(raw.get("input") or {})
        )
        name = self.names.get(raw["name"], raw["name"])
        return ToolUse(id=raw["id"], name=name, input=args, invalid=invalid)


def _cut(block: Block) -> Block:
    if isinstance(block, ToolUse):
        return ToolUse(id=block.id, name=block.name, input=block.input, invalid=CUT_AT_LIMIT)
    return block


def _usage(counts: Json) -> Usage:
    """The vendor counts cached tokens beside the input; here they are part of it."""
    fresh, cached, written = (
        int(counts.get(name) or 0)
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    return Usage(
        input=fresh + cached + written,
        output=int(counts.get("output_tokens") or 0),
        cached=cached,
        cache_written=written,
    )
