"""What the web channel needs from whoever runs the agents: one Protocol and its plain values.

The composition root implements `WebBackend` over the gateway; the tests implement it in memory.
Times are Unix seconds. Argument values arrive masked wherever a parameter is secret. Everything
may raise Unavailable.

BackendError            carries `code`, a message for people, and how to mend it
├── UnknownAgent        404  no agent of that name
├── UnknownSession      404  no session of that id
├── Forbidden           403  this actor may not do that
├── InvalidRequest      422  well-formed, but it cannot be done (a session of another agent, a
│                            position that is no event id); `field` names the culprit
└── Unavailable         503  nothing was stored; the same request may be sent again
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from channels.base import Actor

Json = dict[str, Any]
ClickOutcome = Literal[
    "resumed", "recorded", "already", "expired", "superseded", "forbidden", "invalid", "unknown"
]
Scope = Literal["once", "session", "always"]


class BackendError(Exception):
    """Base: the request cannot be done, and here is why."""

    code = "refused"
    status = 422

    def __init__(self, message: str, *, mend: str = "", field: str = "") -> None:
        self.message, self.mend, self.field = message, mend, field
        super().__init__(message)


class UnknownAgent(BackendError):
    """No agent of that name is configured."""

    code, status = "unknown_agent", 404


class UnknownSession(BackendError):
    """No session of that id is stored."""

    code, status = "unknown_session", 404


class Forbidden(BackendError):
    """The actor may not talk to this agent, or not do this here."""

    code, status = "forbidden", 403


class InvalidRequest(BackendError):
    """Well-formed, but it cannot be done as asked."""

    code, status = "invalid", 422


class Unavailable(BackendError):
    """The store did not take it within its bounded wait. Nothing was stored."""

    code, status = "unavailable", 503


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A message that is stored. `turn_id` is None while no turn has taken it yet.

    queued: another turn of the session runs or waits; this one comes after it.
    duplicate: a message with this `message_id` was stored before; nothing new happened.
    answer: it was a command, like `/status`, and this came of it; there is no turn.
    """

    session_id: str
    message_id: str
    turn_id: str | None = None
    queued: bool = False
    duplicate: bool = False
    answer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WireEvent:
    """One server-sent event. `data` is one line of JSON.

    id: the event's durable position in its session; None for one that is not stored (a delta).
    """

    type: str
    data: str
    id: str | None = None


Scalar = str | int | float | bool
Answered = Scalar | list[Scalar] | dict[str, Scalar | list[Scalar]]
"""An answer: one value, several, or those of several questions by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of a question. `value` is what the answer carries."""

    label: str
    value: str
    description: str = ""


AnswerKind = Literal["text", "number", "integer", "date", "boolean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of several questions of a card, in the card's own words for one. `answered`: its answer so
    far, not confirmed yet; None: it has none."""

    name: str
    question: str
    options: tuple[Option, ...] = ()
    multi: bool = False
    allow_text: bool = True
    hint: str = ""
    least: int = 1
    most: int | None = None
    answer_kind: AnswerKind = "text"
    answered: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCard:
    """One call that waits, or waited, for a person.

    approvers: who may decide, as stable ids; `deciders`: the same in words.
    state, status, decided_by, decided_at: what came of it; `status` is a sentence for people.
    args_hash: SHA-256 over tool and canonical arguments, hex.
    schema: the tool's JSON schema, for a typed edit form; None: no editing.
    secret: parameters shown masked. Left out of `edited_args`, they keep their stored values.
    card: the same for all calls that are decided together, where this one is the one at `place`.
    preview: what the tool's author shows beside the arguments; `image`: there is a picture as well.
    reveal: who sees the arguments; hidden: whoever asked does not, and they are left out.
    scopes: how far an approval may reach here; `covers`: what more than once would cover, in words.
    home: the channel in whose thread it was asked for, where cards are posted; empty: none are.
    about: `unknown`: the gateway itself asks what became of this call.
    hint: what may be answered, in words. least, most: how many options, with `multi`. answer_kind: what an
    own answer has to be. parts: several questions that are answered together. confirm: one answer can be
    changed until it is confirmed; `answered`: what was chosen so far, elsewhere perhaps.
    works_for: the agent of the session, where `agent` is one that it has called; else empty.
    """

    pending_id: str
    kind: Literal["approval", "question"]
    session_id: str
    agent: str
    tool: str
    args: Json
    reason: str
    requested_at: float
    expires_at: float | None = None
    approvers: tuple[str, ...] = ()
    call_id: str = ""
    state: Literal["open", "decided", "expired", "superseded"] = "open"
    status: str = ""
    decided_by: str = ""
    decided_at: float | None = None
    args_hash: str = ""
    deciders: str = ""
    code: str = ""
    preview: str = ""
    preview_kind: Literal["text", "diff"] = "text"
    image: bool = False
    card: str = ""
    place: int = 0
    reveal: Literal["everyone", "approvers"] = "everyone"
    hidden: bool = False
    schema: Json | None = None
    secret: tuple[str, ...] = ()
    scopes: tuple[Scope, ...] = ("once", "session")
    covers: str = ""
    question: str = ""
    options: tuple[Option, ...] = ()
    multi: bool = False
    allow_text: bool = True
    about: Literal["", "unknown"] = ""
    home: str = ""
    hint: str = ""
    least: int = 1
    most: int | None = None
    answer_kind: AnswerKind = "text"
    parts: tuple[Part, ...] = ()
    confirm: bool = False
    answered: tuple[str, ...] = ()
    works_for: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantLine:
    """What is not asked about any more: this tool with exactly these arguments, of one session or of
    every session of the agent. `by`: who gave it, in words; `granted_by`: the same as an id."""

    grant_id: str
    code: str
    scope: Literal["session", "always"]
    agent: str
    tool: str
    args: Json
    session_id: str
    granted_by: str
    by: str
    granted_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleLine:
    """What a session or a thread is told by the clock. `name`: in the configuration, empty for one that an
    agent made; `session_id`: the session that it wakes, empty for one of the configuration. `where`: the
    thread; `often`: when, in words; `next_at`: Unix seconds; `by`: who had it made, in words."""

    schedule_id: str
    code: str
    name: str
    agent: str
    where: str
    session_id: str
    instruction: str
    often: str
    next_at: float
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallState:
    """One call of the batch that is still open: its result is not in the messages yet."""

    call_id: str
    tool: str
    state: Literal["allowed", "started", "done", "waiting", "unknown"]
    content: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedMessage:
    """A stored message that no turn has taken yet."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that was said beside the conversation. `after` messages came before it. `file`: the name of a
    file that is had under `number`; empty for none."""

    text: str
    kind: Literal["notice", "error"] = "notice"
    at: float = 0.0
    after: int = 0
    number: int = 0
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFile:
    """A file that an agent has sent. `path`: where it is on this machine."""

    path: Path
    name: str
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """One session as it stands.

    status: `idle`, `queued`, `running`, `pending_approval`, `pending_question`, or how the last turn
    ended.
    messages: `{"role", "content": [blocks]}` each, append-only, in order; from number `start` on, of
    `total`.
    last_event_id: read BEFORE the messages, so that the events after it leave no gap.
    cards: every pending of the session, settled ones too, oldest first.
    calls: the open batch. queued: what waits for its turn. All three are for the page.
    """

    session_id: str
    agent: str
    status: str
    messages: Sequence[Json]
    start: int = 0
    total: int = 0
    title: str = ""
    last_event_id: str | None = None
    cards: Sequence[PendingCard] = ()
    calls: Sequence[CallState] = ()
    queued: Sequence[QueuedMessage] = ()
    notices: Sequence[Notice] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """One line of the session list."""

    session_id: str
    agent: str
    status: str
    title: str
    updated_at: float
    pending: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickResult:
    """What came of a decision or an answer: one of eight outcomes and a sentence for people.

    details: any of `pending_id`, `session_id`, `turn_id`, `by`, `at` (who decided, when),
    `still_open`, `deciders` (who may), and for `invalid` `problems`:
    `[{"field": dotted path or "", "message": ...}]`.
    """

    outcome: ClickOutcome
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One line of the audit log. `what` is the action in one word or two."""

    seq: int
    at: float
    actor: str
    what: str
    session_id: str = ""
    pending_id: str = ""
    tool: str = ""
    args_hash: str = ""
    detail: str = ""
    hash: str = ""


class WebBackend(Protocol):
    """Agents, sessions and pendings, as the web channel sees them.

    Whatever returns has been stored. Nothing here waits for a turn but `wait_turn` and the two
    event streams, and those may be cancelled at any time without harm to the turn.

    A stream that joins while a reply grows gets what it missed of that reply as one
    `assistant:delta`, after the stored events and before the next piece: joined deltas are whole.
    Deltas come from the process that runs the turn; streams of other processes do without. A second
    `session` event of one turn means that another run took it up: a reply begins anew.
    """

    def agents(self) -> Sequence[str]:
        """The names of the configured agents."""

    def default_agent(self) -> str:
        """The one that answers when nobody chose."""

    async def post_message(
        self, agent: str, text: str, *, actor: Actor, session_id: str | None, message_id: str | None
    ) -> Posted:
        """Store a person's message. `session_id` None: a new session. A `message_id` seen before in
        the session (or, without one, by this actor) makes a duplicate and returns the first one's ids.

        Raises UnknownAgent, UnknownSession, Forbidden, InvalidRequest, Unavailable.
        """

    async def wait_turn(self, posted: Posted) -> Json:
        """Wait until the turn that took the message is done: the fields of its `done` event
        (`session_id, turn_id, outcome, status, text, pending, exit_code, usage`)."""

    async def turn_events(self, posted: Posted, *, actor: Actor) -> AsyncIterator[WireEvent]:
        """The events of the turn that takes the message: `session` first, `done` last, then the end."""

    async def session(self, session_id: str, start: int = 0, *, actor: Actor) -> SessionView:
        """One session, with its messages from number `start` on. Raises UnknownSession."""

    async def sessions(self) -> Sequence[SessionSummary]:
        """All sessions, the one that moved last first; bounded to what a page can show."""

    async def events(self, session_id: str, after: str | None, *, actor: Actor) -> AsyncIterator[WireEvent]:
        """Every stored event after `after` (None: from the first one), then live ones, without end
        and without a gap. Raises UnknownSession, and InvalidRequest for an `after` that is no event
        of this session; both from the call itself, before the first event."""

    async def pending(self, actor: Actor, mine: bool = False) -> Sequence[PendingCard]:
        """What waits for a person now, oldest first; `mine`: only what this actor may decide."""

    async def preview_image(self, pending_id: str, *, actor: Actor) -> tuple[bytes, str] | None:
        """The picture that goes with a request, and its media type; None where there is none for this
        caller."""

    async def sent_file(self, session_id: str, number: int, *, actor: Actor) -> SentFile | None:
        """A file that was sent in a session; None where there is none."""

    async def cancel(self, pending_id: str, *, actor: Actor) -> ClickResult:
        """Take a request back: `resumed` or `recorded`, else why not. Nobody has refused it."""

    async def give(self, pending_id: str, to: str, *, actor: Actor) -> ClickResult:
        """Have somebody else decide; `to` as rules write it. `recorded`, else why not."""

    async def show(self, pending_id: str, *, actor: Actor) -> ClickResult:
        """Post the card once more in its thread. `recorded`, else why not."""

    async def grants(self) -> Sequence[GrantLine]:
        """What is granted now, newest first; secret arguments masked."""

    async def revoke(self, grant_id: str, *, actor: Actor) -> ClickResult:
        """Take a grant back. `recorded`, `forbidden` or `unknown`."""

    async def schedules(self, actor: Actor) -> Sequence[ScheduleLine]:
        """What is scheduled: everything for those who run the gateway, else what this actor had made, and
        what wakes sessions of this page. The next first."""

    async def cancel_schedule(self, schedule_id: str, *, actor: Actor) -> ClickResult:
        """End a schedule. `recorded`, `forbidden` or `unknown`."""

    async def resolve(
        self,
        pending_id: str,
        decision: Literal["approve", "deny"],
        *,
        edited_args: Json | None,
        scope: Scope,
        feedback: str,
        actor: Actor,
    ) -> ClickResult:
        """Decide one approval. `edited_args` are the complete new arguments."""

    async def resolve_card(
        self, card: str, decision: Literal["approve", "deny"], *, actor: Actor
    ) -> ClickResult:
        """Decide every open approval of a card, one after the other; after denials the step is closed
        with the last one. The details have `results`: `pending_id`, `outcome` and `message` of each."""

    async def answer(self, pending_id: str, answer: Answered, *, actor: Actor) -> ClickResult:
        """Answer one question: option values or free text."""

    async def stop(self, session_id: str, *, actor: Actor) -> Json:
        """Stop what the session does. Raises UnknownSession, Forbidden.
        Returns `{"stopped": bool, "message": a sentence}`."""

    async def audit(self, limit: int, before: int | None) -> Sequence[AuditEntry]:
        """The newest entries first; `before` a sequence number to page back."""

    def health(self) -> Json:
        """That the process is alive: `{"status": "ok", ...}`, no secrets, no I/O."""

    async def ready(self) -> tuple[bool, Json]:
        """Whether it can do its work, and each check with its state."""

    def metrics(self) -> bytes | None:
        """Prometheus text; None: metrics are off."""
