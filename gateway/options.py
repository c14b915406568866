"""What the loop is given and what it gives back: plain values, no behaviour."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gateway.agent import Agent
from gateway.approvals import KnownCall, Pending, Resolution, TurnCheckpoint
from gateway.budget import Spent
from gateway.cancel import CancelToken
from gateway.clock import Clock, SystemClock
from gateway.events import Event
from gateway.gate import Gate, Scope
from gateway.history import Transcript
from gateway.journal import Journal, MemoryJournal
from gateway.messages import Message
from gateway.outcome import Outcome
from gateway.providers.base import Model, Usage
from gateway.tools.base import Subagents


class Approver(Protocol):
    """A person at hand (the terminal): asks now. None: nobody decides now, stop durably."""

    async def decide(self, pending: Pending) -> Resolution | None: ...

    async def decide_together(self, pendings: Sequence[Pending]) -> Mapping[str, Resolution | None]:
        """Asked first, where several calls of one step wait: what is said about them together, by pending
        id. Those that are left out are asked about one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOptions:
    """Everything around one run. The defaults run in memory, without a person at hand."""

    journal: Journal = field(default_factory=MemoryJournal)
    on_event: Callable[[Event], None] = lambda event: None
    clock: Clock = field(default_factory=SystemClock)
    cancel: CancelToken = field(default_factory=CancelToken)
    approver: Approver | None = None
    approver_name: str = "the person at the terminal"
    gate: Gate | None = None
    scope: Scope = field(default_factory=Scope)
    session_id: str = ""
    turn_id: str = ""
    spent: Spent = field(default_factory=Spent)
    known: Mapping[str, KnownCall] = field(default_factory=dict)
    summary_model: Model | None = None  # sums up what was long ago; None: the turn's own model
    subagents: Subagents | None = None


class LoopSession(Protocol):
    """What a LoopRunner needs of a conversation (gateway.session.Session is one)."""

    @property
    def agent(self) -> Agent: ...

    @property
    def model(self) -> Model: ...

    @property
    def transcript(self) -> Transcript: ...


class LoopRunner(Protocol):
    """Who runs the loop for a session: in this process, or somewhere else."""

    async def __call__(
        self, session: LoopSession, message: Message | None, options: LoopOptions
    ) -> RunResult:
        """One run: answer `message`, or with None go on with the step that is open. Afterwards the
        transcript of the session holds everything that the run has added, as the journal does. Raises
        what run_agent raises: IntelligenceUnavailable, LeaseLost, StoreError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopInput:
    """What `_run_loop` starts from, wherever it came from. `batch`: an assistant message at the
    end of the transcript whose calls are not all answered, and `known` what is known of them."""

    agent: Agent
    model: Model
    transcript: Transcript
    batch: Message | None
    known: Mapping[str, KnownCall]
    options: LoopOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """One outcome. `messages` are those added by this run, the user's message included.
    `pending` is set for the two pending outcomes; `detail` says more for the odd ones. `silent`: the
    answer is the agent's word for saying nothing; there is no text."""

    outcome: Outcome
    text: str = ""
    messages: tuple[Message, ...] = ()
    pending: TurnCheckpoint | None = None
    spent: Spent = field(default_factory=Spent)
    usage: Usage = field(default_factory=Usage)
    detail: str = ""
    silent: bool = False

    @property
    def status(self) -> str:
        """The outcome's word, `exhausted_steps` for the step cap."""
        return self.outcome.status
