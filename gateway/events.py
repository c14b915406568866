"""What a turn says while it runs: one closed union. The tag is also the wire name.

The promised order is drawn in docs/loop.md and pinned by tests/unit/loop/test_event_order.py.
Arguments in events are masked: secret parameters never leave the loop.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from gateway.messages import ENCODER, Json


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all events."""

    @property
    def type(self) -> str:
        """The wire name."""
        return str(self.__struct_config__.tag)


# ---- from the loop


class BudgetCheck(Event, frozen=True, kw_only=True, tag="budget:check"):
    """Before each model call. Tokens and seconds are those already spent in this turn."""

    step: int
    max_steps: int
    tokens: int
    max_tokens: int | None
    seconds: float
    deadline: float | None


class AssistantDelta(Event, frozen=True, kw_only=True, tag="assistant:delta"):
    """A piece of the answer while it grows. Not stored; the text event is complete without. An empty one: the
    model begins anew, what came before is void."""

    text: str


class AssistantText(Event, frozen=True, kw_only=True, tag="assistant:text"):
    """The whole text of one reply."""

    text: str


class Decided(Event, frozen=True, kw_only=True, tag="actauth:decision"):
    """What the gate said about one call. `rule` names the rule, the grant or the default."""

    call_id: str
    tool: str
    decision: Literal["allow", "ask", "deny", "invalid"]
    reason: str
    rule: str = ""


class ToolStarted(Event, frozen=True, kw_only=True, tag="tool:started"):
    """One call begins to run."""

    call_id: str
    tool: str
    args: Json


class ToolFinished(Event, frozen=True, kw_only=True, tag="tool:result"):
    """One call has its result: it ran, or was refused, denied, skipped or stopped."""

    call_id: str
    tool: str
    content: str
    is_error: bool
    seconds: float = 0.0


class SkillLoaded(Event, frozen=True, kw_only=True, tag="skill:loaded"):
    """A skill's body entered the conversation."""

    skill: str


class Compacted(Event, frozen=True, kw_only=True, tag="prompt:compaction"):
    """The model sees less of the history from now on. Sizes are estimates in tokens."""

    reason: Literal["window", "too_long"]
    before: int
    after: int
    how: str


class LoopDone(Event, frozen=True, kw_only=True, tag="loop:done"):
    """Outcome completed."""

    text: str
    steps: int
    tokens: int


class LoopMaxTurns(Event, frozen=True, kw_only=True, tag="loop:max_turns"):
    """Outcome max_turns: the step cap."""

    steps: int
    tokens: int


class LoopDenied(Event, frozen=True, kw_only=True, tag="loop:denied"):
    """Outcome denied: a person said no."""

    reason: str
    steps: int
    tokens: int


class LoopPendingApproval(Event, frozen=True, kw_only=True, tag="loop:pending_approval"):
    """Outcome pending_approval. `pending` are the ids."""

    pending: list[str]
    steps: int
    tokens: int


class LoopPendingQuestion(Event, frozen=True, kw_only=True, tag="loop:pending_question"):
    """Outcome pending_question. `pending` are the ids."""

    pending: list[str]
    steps: int
    tokens: int


class LoopStopped(Event, frozen=True, kw_only=True, tag="loop:stopped"):
    """Every other outcome."""

    outcome: str
    detail: str
    steps: int
    tokens: int


# ---- around a turn, from `turns`


class SessionStarted(Event, frozen=True, kw_only=True, tag="session"):
    """Always the first event of a turn."""

    session_id: str
    turn_id: str
    agent: str


class ApprovalPending(Event, frozen=True, kw_only=True, tag="approval:pending"):
    """One call waits for permission."""

    pending_id: str
    tool: str
    args: Json
    reason: str
    expires_at: float | None = None


class QuestionPending(Event, frozen=True, kw_only=True, tag="question:pending"):
    """The agent waits for an answer. `kind`: what an own answer has to be. `questions`: several that are
    answered together, each with the same fields as one."""

    pending_id: str
    question: str
    options: list[str]
    multi: bool = False
    allow_text: bool = True
    kind: str = "text"
    questions: list[Json] = []


class TurnDone(Event, frozen=True, kw_only=True, tag="done"):
    """Always the last event of a turn. `usage`: tokens `input` (of it `cached` and `cache_written`) and
    `output`, and `cost` in USD where it is known; empty when no model was asked."""

    session_id: str
    turn_id: str
    outcome: str
    status: str
    text: str
    pending: list[str]
    exit_code: int
    usage: Json = {}


class TurnError(Event, frozen=True, kw_only=True, tag="error"):
    """What went wrong, in words for people. `done` follows."""

    error: str
    message: str


LoopEvent = (
    BudgetCheck
    | AssistantDelta
    | AssistantText
    | Decided
    | ToolStarted
    | ToolFinished
    | SkillLoaded
    | Compacted
    | LoopDone
    | LoopMaxTurns
    | LoopDenied
    | LoopPendingApproval
    | LoopPendingQuestion
    | LoopStopped
)
AnyEvent = LoopEvent | SessionStarted | ApprovalPending | QuestionPending | TurnDone | TurnError

_DECODER = msgspec.json.Decoder(AnyEvent)


def encode_event(event: Event) -> str:
    """One line of JSON; `type` is the wire name."""
    return ENCODER.encode(event).decode()


def decode_event(body: str | bytes) -> Any:
    """The event of one line. Raises msgspec.ValidationError for a foreign shape."""
    return _DECODER.decode(body)
