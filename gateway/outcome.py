"""Why a turn ended, and what a one-shot run exits with."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """The closed set of stops. `docs/loop.md` has the table of what each means to whom."""

    COMPLETED = "completed"
    REFUSED = "refused"
    DENIED = "denied"
    PENDING_APPROVAL = "pending_approval"
    PENDING_QUESTION = "pending_question"
    MAX_TURNS = "max_turns"
    EXHAUSTED_TOKENS = "exhausted_tokens"
    DEADLINE = "deadline"
    STALLED = "stalled"
    LOOP_DETECTED = "loop_detected"
    CANCELLED = "cancelled"
    CRASHED = "crashed"

    @property
    def pending(self) -> bool:
        """The turn waits for a person."""
        return self in (Outcome.PENDING_APPROVAL, Outcome.PENDING_QUESTION)

    @property
    def status(self) -> str:
        """The word of the status field: the step cap is reported as `exhausted_steps`."""
        return "exhausted_steps" if self is Outcome.MAX_TURNS else self.value


EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTELLIGENCE_UNAVAILABLE = 4
EXIT_REQUIRED_TOOL_SERVER_DOWN = 6

# What a crashed turn can carry, by the name of the error; any other is a failure.
ABORT_CODES = {
    "ConfigError": EXIT_USAGE,
    "IntelligenceUnavailable": EXIT_INTELLIGENCE_UNAVAILABLE,
    "RequiredToolServerDown": EXIT_REQUIRED_TOOL_SERVER_DOWN,
}

EXIT_CODES: dict[Outcome, int] = {
    Outcome.COMPLETED: 0,
    Outcome.CANCELLED: 1,
    Outcome.CRASHED: 1,
    Outcome.STALLED: 3,
    Outcome.LOOP_DETECTED: 3,
    Outcome.REFUSED: 5,
    Outcome.DENIED: 5,
    Outcome.MAX_TURNS: 7,
    Outcome.EXHAUSTED_TOKENS: 7,
    Outcome.PENDING_APPROVAL: 8,
    Outcome.PENDING_QUESTION: 8,
    Outcome.DEADLINE: 124,
}


def exit_code(outcome: Outcome, error: str = "") -> int:
    """What a one-shot run exits with; `error` names the error of a crashed turn."""
    return abort_code(error) if outcome is Outcome.CRASHED else EXIT_CODES[outcome]


def abort_code(error: str) -> int:
    """What a run exits with that an error of this name has ended."""
    return ABORT_CODES.get(error, EXIT_FAILED)
