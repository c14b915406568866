"""From the stream of Gemini's responses to one reply. Pure.

A text may arrive in several parts, and each part may carry a thought signature that has to go back on
exactly that part. The words become one block all the same; its opaque data lists the lengths of its
parts and their signatures.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.errors import ModelAuthError, ModelError, ModelOverloaded, ModelRejected
from gateway.messages import Block, Json, Text, Thinking, ToolUse, new_id
from gateway.providers.arguments import CUT_AT_LIMIT, check_arguments
from gateway.providers.base import ModelResponse, StopReason, Usage

# Every reason that the SDK knows; a test checks that none is missing. An error where the reply is none.
FINISH: dict[str, StopReason | type[ModelError]] = {
    "FINISH_REASON_UNSPECIFIED": "end",
    "STOP": "end",
    "MAX_TOKENS": "length",
    # The endpoint withheld the answer, or the rest of it.
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "LANGUAGE": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "ESCALATION": "refusal",
    "MODEL_ARMOR": "refusal",
    "IMAGE_SAFETY": "refusal",
    "IMAGE_PROHIBITED_CONTENT": "refusal",
    "IMAGE_RECITATION": "refusal",
    # The model wrote what nobody can use. Asked again it mostly does better.
    "MALFORMED_FUNCTION_CALL": "malformed",
    "UNEXPECTED_TOOL_CALL": "malformed",
    "TOO_MANY_TOOL_CALLS": "malformed",
    "MALFORMED_RESPONSE": "malformed",
    "IMAGE_OTHER": "malformed",
    "NO_IMAGE": "malformed",
    "OTHER": "malformed",
    # The SDK asks for the rest by itself; what still ends like this broke off.
    "CONTINUATION": ModelOverloaded,
    "PUP_LIMITED_DISABLED": ModelAuthError,
    "MISSING_THOUGHT_SIGNATURE": ModelRejected,
}


@dataclass(slots=True)
class _Written:
    """Text or thoughts while they arrive: pieces with the signature of the part that they end."""

    thought: bool
    pieces: list[tuple[list[str], str | None]] = field(default_factory=list)

    def add(self, text: str, signature: str | None) -> None:
        # Pieces without a signature are one part that was cut for the way.
        if signature is None and self.pieces and self.pieces[-1][1] is None:
            self.pieces[-1][0].append(text)
        else:
            self.pieces.append(([text], signature))

    def block(self) -> Block | None:
        parts = [("".join(texts), signature) for texts, signature in self.pieces]
        text = "".join(words for words, _ in parts)
        signed = any(signature is not None for _, signature in parts)
        if not text and not signed:
            return None
        opaque = {"parts": [[len(words), signature] for words, signature in parts]} if signed else None
        return (Thinking if self.thought else Text)(text=text, opaque=opaque)


@dataclass(slots=True)
class Accumulator:
    """Takes the chunks of one stream, in order, and then gives the reply.

    provider names the errors, model_id goes into the reply, names maps wire names of tools back.
    """

    provider: str
    model_id: str
    names: Mapping[str, str]
    _blocks: list[_Written | ToolUse] = field(default_factory=list)
    _finish: str = ""
    _blocked: str = ""
    _usage: Any = None

    def feed(self, chunk: Any) -> str:
        """Take one chunk, a GenerateContentResponse; return the visible text in it, often nothing."""
        self._usage = chunk.usage_metadata or self._usage
        feedback = chunk.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            self._blocked = str(feedback.block_reason.value)
        if not chunk.candidates:
            return ""
        candidate = chunk.candidates[0]
        if candidate.finish_reason is not None:
            self._finish = str(candidate.finish_reason.value)
        parts = (candidate.content.parts if candidate.content is not None else None) or []
        return "".join(self._part(part) for part in parts)

    def _part(self, part: Any) -> str:
        signature = base64.b64encode(part.thought_signature).decode() if part.thought_signature else None
        if part.function_call is not None:
            self._blocks.append(self._call(part.function_call, signature))
        elif part.text is not None:
            thought = bool(part.thought)
            last = self._blocks[-1] if self._blocks else None
            if not isinstance(last, _Written) or last.thought != thought:
                last = _Written(thought)
                self._blocks.append(last)
            last.add(part.text, signature)
            return "" if thought else str(part.text)
        return ""

    def _call(self, call: Any, signature: str | None) -> ToolUse:
        args, invalid = check_arguments(call.args if call.args is not None else {})
        opaque: Json = {} if signature is None else {"thoughtSignature": signature}
        if not call.id:
            opaque["id"] = None  # ours is for the log; the vendor never sees it
        name = call.name or ""
        return ToolUse(
            id=call.id or new_id("call"),
            name=self.names.get(name, name),
            input=args,
            invalid=invalid,
            opaque=opaque or None,
        )

    def response(self) -> ModelResponse:
        """The whole reply. Raises ModelOverloaded when the stream ended before the model did, and what
        FINISH says for reasons that leave no reply."""
        stop = self._stop()
        blocks = [one if isinstance(one, ToolUse) else one.block() for one in self._blocks]
        content = [block for block in blocks if block is not None]
        calls = [block for block in content if isinstance(block, ToolUse)]
        if stop == "end" and calls:
            stop = "tool_calls"  # the API calls that STOP as well
        if stop == "length":
            content = [_cut(block) for block in content]
        elif stop in ("refusal", "malformed"):
            content = [block for block in content if not isinstance(block, ToolUse)]
        if not any(map(_substantial, content)):
            content = [block for block in content if not isinstance(block, Text)]  # a lone signature
        return ModelResponse(
            content=tuple(content), stop=stop, usage=_counted(self._usage), model=self.model_id
        )

    def _stop(self) -> StopReason:
        if self._blocked:
            return "refusal"
        if not self._finish:
            raise ModelOverloaded("the answer broke off", provider=self.provider)
        stop = FINISH.get(self._finish, "end")
        if isinstance(stop, str):
            return stop
        words = f"the answer ended with {self._finish}"
        if stop is ModelRejected:
            raise ModelRejected(words, provider=self.provider, about_thinking=True)
        raise stop(words, provider=self.provider)


def _substantial(block: Block) -> bool:
    return isinstance(block, ToolUse) or (isinstance(block, Text) and bool(block.text))


def _cut(block: Block) -> Block:
    if isinstance(block, ToolUse):
        return ToolUse(
            id=block.id, name=block.name, input=block.input, invalid=CUT_AT_LIMIT, opaque=block.opaque
        )
    return block


def _counted(usage: Any) -> Usage:
    """Cached tokens are part of the prompt here as there; thoughts are paid for as output."""
    if usage is None:
        return Usage()
    return Usage(
        input=(usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
        output=(usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
        cached=usage.cached_content_token_count or 0,
    )
