"""Steps, tokens and time of one turn. Enforced by the loop, not left to the model.

A turn that stopped for a person keeps what it had spent (`Spent` rides in the checkpoint); the
time spent waiting does not count, because only seconds inside the loop are added.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Exhausted = Literal["deadline", "steps", "tokens"]


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one turn: model calls, input plus output tokens, seconds. None: no limit."""

    max_steps: int = 25
    max_tokens: int | None = None
    deadline: float | None = None


class Spent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a turn has used so far."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    output_cuts: int = 0  # replies cut at the model's output limit
    compactions: int = 0


class Meter:
    """Counts one run of the loop on top of what earlier runs of the same turn have spent."""

    __slots__ = ("_before", "_budget", "_started", "compactions", "output_cuts", "steps", "tokens")

    def __init__(self, budget: Budget, spent: Spent, now: float) -> None:
        self._budget, self._before, self._started = budget, spent.seconds, now
        self.steps, self.tokens = spent.steps, spent.tokens
        self.output_cuts, self.compactions = spent.output_cuts, spent.compactions

    @property
    def budget(self) -> Budget:
        """The limits."""
        return self._budget

    def seconds(self, now: float) -> float:
        """Seconds of work so far; `now` is the monotonic clock."""
        return self._before + now - self._started

    def waited(self, seconds: float) -> None:
        """These seconds went by while a person was being asked: they do not count."""
        self._started += seconds

    def left(self, now: float) -> float | None:
        """Seconds until the deadline, None without one."""
        deadline = self._budget.deadline
        return None if deadline is None else deadline - self.seconds(now)

    def exhausted(self, now: float) -> Exhausted | None:
        """The first limit that is used up, in the promised order."""
        left = self.left(now)
        if left is not None and left <= 0:
            return "deadline"
        if self.steps >= self._budget.max_steps:
            return "steps"
        if self._budget.max_tokens is not None and self.tokens >= self._budget.max_tokens:
            return "tokens"
        return None

    def spent(self, now: float) -> Spent:
        """The value for the checkpoint."""
        return Spent(
            steps=self.steps,
            tokens=self.tokens,
            seconds=round(self.seconds(now), 3),
            output_cuts=self.output_cuts,
            compactions=self.compactions,
        )
