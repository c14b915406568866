"""The model contract: one request in, one response out, deltas on the way.

Promises of every adapter, checked by tests/contracts/model.py:

- `complete` either returns a whole response or raises one of the errors of `gateway.errors`:
  ModelRateLimited, ModelOverloaded (also for a stream that broke), ModelRejected, ModelAuthError.
  Foreign exceptions never leave an adapter, and no error text holds the key.
- One call of `complete` is one request. Retries, waits and failover belong to the loop's caller
  (`providers/retry.py`), so the SDK's own retries are switched off.
- Deltas are for eyes only: the response is complete without them. An empty one says that the reply
  begins anew; only `providers/retry.py` sends it.
- Cancelling the task ends the request.
- `input` of every ToolUse is a JSON object; what could not be read becomes `invalid`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from gateway.messages import Block, Json, Message

OnDelta = Callable[[str], None]
StopReason = Literal["end", "tool_calls", "length", "refusal", "malformed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What a model is told about a tool."""

    name: str
    description: str
    input_schema: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """Everything one call needs. `messages` is a valid history: see `gateway.history`."""

    system: str
    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int | None = None
    session_id: str = ""  # lets an adapter keep the wire form of a hot session


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call, or of several. `cached` are input tokens read from the provider's prompt cache,
    `cache_written` those written to it; both are part of `input`. `cost`: USD, None where it is not known."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0
    cost: float | None = None

    @property
    def total(self) -> int:
        """What counts toward the budget."""
        return self.input + self.output

    def __add__(self, other: Usage) -> Usage:
        known = self.cost is not None and other.cost is not None
        cost = (self.cost or 0) + (other.cost or 0) if known else None
        if not self.total or not other.total:  # nothing costs nothing
            cost = other.cost if not self.total else self.cost
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            cache_written=self.cache_written + other.cache_written,
            cost=cost,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """One reply. `content` keeps the order in which the model wrote its blocks."""

    content: tuple[Block, ...]
    stop: StopReason
    usage: Usage = field(default_factory=Usage)
    model: str = ""


class Model(Protocol):
    """One endpoint with one model behind it. `id` names both, as stored with each message."""

    @property
    def id(self) -> str: ...

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        """Ask once. See the module's docstring for what may be raised."""

    async def close(self) -> None:
        """Let connections go."""
