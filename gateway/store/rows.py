"""What goes into the store and what comes out of it: frozen values, no SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from gateway.approvals import ClickOutcome, Pending, PendingState, Resolution, TurnCheckpoint
from gateway.budget import Spent
from gateway.gate import Grant
from gateway.messages import Actor, Json, Message, ThreadKey, ToolResult
from gateway.patience import Escalation

# Session id -> how many entries of its log the caller has in memory. Called in the store's thread.
Have = Callable[[str], int]
SessionStatus = Literal["idle", "running", "pending", "ready", "closed"]
CallState = Literal["allowed", "refused", "waiting", "started", "done"]
NOTHING_SPENT = Spent()
FEEDBACK = ":feedback"  # ends the message id of a denial's words, which no platform knows


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a person, on its way into the inbox. Identity: (key without thread,
    message_id). `agent` and `tenant` hold for a thread that has no session yet; `session_id`
    names a session directly (the HTTP API). `supersedes`: the agents of which a newer message closes
    what is still open; `by` is its author in words."""

    key: ThreadKey
    message_id: str
    actor: Actor
    message: Message
    agent: str
    tenant: str = ""
    session_id: str = ""
    edited: bool = False
    received_at: float
    supersedes: frozenset[str] = frozenset()
    by: str = ""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The right to write to a session: `epoch` grows with every claim, so a holder that lost the
    lease can never write again, whatever it believes."""

    session_id: str
    turn_id: str
    runner: str
    epoch: int


class CallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the tool journal. `attempt` counts starts."""

    call_id: str
    tool: str
    args: Json
    args_hash: str
    state: CallState
    repeatable: bool
    attempt: int
    result: ToolResult | None


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """Work for one session, with the lease that goes with it.

    message: a new turn; its user message is stored already as the last entry of the log.
    resume: a stopped turn goes on, because somebody decided. recover: a turn whose runner died.
    `log_length` counts the entries of the log, the new user message included. `calls` and
    `decisions` belong to the step that is open, if one is. `cancel`: stop it at once, and why.
    `log`: every entry before this turn's own message, where the claim was asked for it. `model`: the
    configured one that was chosen for the session; empty for its agent's own.

    Of a subagent's session: `parent`, whose call it works for; `root`, the outermost session; `depth`,
    levels below that; `only`, what it is narrowed to. `told`: pendings that the turn had stopped for before.
    """

    kind: Literal["message", "resume", "recover"]
    lease: Lease
    key: ThreadKey
    agent: str
    tenant: str
    requester: Actor
    message_id: str
    log_length: int
    message: Message | None = None
    spent: Spent = NOTHING_SPENT
    calls: tuple[CallRecord, ...] = ()
    decisions: tuple[PendingRecord, ...] = ()
    grants: tuple[Grant, ...] = ()
    cancel: str = ""
    log: tuple[Message, ...] | None = None
    model: str = ""
    parent: str = ""
    root: str = ""
    depth: int = 0
    only: tuple[tuple[str, ...], ...] = ()
    told: tuple[str, ...] = ()

    @property
    def home(self) -> str:
        """The outermost session: itself, or that whose subagent works here."""
        return self.root or self.lease.session_id

    @property
    def run(self) -> int:
        """0 for the turn's first run; a number that rises for each that took it over."""
        return self.lease.epoch if self.kind == "recover" else 0


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an incoming message. `claim` when the runner may start at once.
    `ahead`: messages that wait before it. `waiting_for`: ids of open pendings of the session.
    `closed`: how many it has closed."""

    outcome: Literal["duplicate", "claimed", "queued", "edited"]
    session_id: str
    claim: Claim | None = None
    ahead: int = 0
    waiting_for: tuple[str, ...] = ()
    closed: int = 0


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """One row for the outbox. kinds: `answer` (payload {"seq": n}: the text of that message),
    `notice` (payload {"text": ...}), `card` (draws `pending_id`), `redraw` (brings the card
    message `ref` of `pending_id` up to date; several coalesce)."""

    key: ThreadKey
    kind: Literal["answer", "notice", "card", "redraw"]
    payload: Json
    session_id: str = ""
    pending_id: str = ""
    ref: str = ""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the outbox, claimed for sending. `attempts` counts claims, this one included;
    `repeat`: it may have been sent before. `refs`: the parts that are known to be sent."""

    id: int
    key: ThreadKey
    kind: Literal["answer", "notice", "card", "redraw"]
    payload: Json
    session_id: str
    pending_id: str
    ref: str
    refs: tuple[str, ...]
    attempts: int
    repeat: bool
    reply_to: str = ""


class TurnEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended, for its last transaction. `messages` are log entries not yet stored."""

    outcome: str
    detail: str
    text: str
    messages: tuple[Message, ...]
    events: str
    outgoing: tuple[Outgoing, ...]
    spent: Spent
    usage: Json


class Park(msgspec.Struct, frozen=True, kw_only=True):
    """A durable stop, for its one transaction: the checkpoint, the pendings that are new, the
    deliveries of their cards (claimed by this runner where nothing waits before them)."""

    end: TurnEnd
    checkpoint: TurnCheckpoint
    new_pendings: tuple[Pending, ...]


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """After a turn's last transaction: whether the session has more to do, the outbox rows that this
    runner already holds for sending, and other sessions that have something to go on with."""

    more: bool
    deliveries: tuple[Delivery, ...] = ()
    wakes: tuple[str, ...] = ()


class ChildOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a subagent, on its way into the store. `lease`: of the turn that calls. `session`: the
    conversation that it goes on with; empty: a new one. `only`: globs that this call narrows it to. The
    limits: levels below the outermost session, subagents of the caller at work at once, calls of the
    outermost session's turn, and of that session in a minute."""

    lease: Lease
    call_id: str
    agent: str
    text: str
    session: str = ""
    only: tuple[str, ...] = ()
    max_depth: int
    max_children: int
    max_calls: int
    rate: int
    at: float


ChildRefusal = Literal["", "depth", "children", "calls", "rate", "session", "busy"]


class ChildBegun(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an order: the subagent's session, with the claim of its turn where it is new; or
    why there is none."""

    session_id: str = ""
    claim: Claim | None = None
    refused: ChildRefusal = ""


class ChildState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a subagent's session has come. `waits`: what it has stopped for, as it is in its checkpoint,
    while all of that is open. `outcome`, `detail` and `text` of its last turn."""

    status: SessionStatus
    queued: int
    turn_id: str
    outcome: str = ""
    detail: str = ""
    text: str = ""
    waits: tuple[Pending, ...] = ()

    @property
    def ended(self) -> bool:
        """Nothing more comes of it by itself."""
        return self.status == "idle" and self.queued == 0


class PendingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One pending with its place and its fate. Times in Unix seconds. `by` is in words, `actor`
    in ids; both empty while open. `votes`: who has agreed so far. `attempt`: of the call. `root`: the
    outermost session, with a subagent's call that of whoever called it; `root_call`: the call there that it
    works for; `works_for`: the agent there, empty where that is the session's own."""

    pending: Pending
    session_id: str
    turn_id: str
    agent: str
    key: ThreadKey
    requester: Actor
    state: PendingState
    current: bool
    attempt: int
    requested_at: float
    decided_at: float | None = None
    decided_by: str = ""
    actor: str = ""
    decision: Resolution | None = None
    votes: tuple[str, ...] = ()
    root: str = ""
    root_call: str = ""
    works_for: str = ""

    @property
    def id(self) -> str:
        """The pending's id."""
        return self.pending.pending_id

    @property
    def home(self) -> str:
        """The session that people see it in: the outermost one."""
        return self.root or self.session_id

    @property
    def home_agent(self) -> str:
        """The agent there."""
        return self.works_for or self.agent

    @property
    def home_call(self) -> str:
        """The call there that waits."""
        return self.root_call or self.pending.call_id


class GrantRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One grant that holds, and the request that it was given with: its code, its secret arguments,
    its thread. `by`: who gave it, in words."""

    grant: Grant
    code: str
    secret: tuple[str, ...]
    key: ThreadKey
    by: str
    pending_id: str

    @property
    def id(self) -> str:
        """The grant's id."""
        return self.grant.id


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody else is to decide a request: `approvers` as in a rule. `by` in words."""

    pending_id: str
    approvers: tuple[str, ...]
    actor: Actor
    by: str
    at: float
    via: str = ""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the record, looked at: the last line that fits and its hash, and the first that does
    not. `ended`: nothing comes after it."""

    seq: int
    hash: str
    bad: int | None
    ended: bool


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A person's (or the clock's) word about one pending, on its way into the store.

    stops_batch: a denial that closes the siblings too. consumes: the waiting message (thread and
    message id) that this word was taken from, so that it is used once. The feedback of a denial
    that stops the batch becomes the session's next user message; else the call's result carries it.
    outgoing: what is sent when this word is the one that counts. more: the same person is about to say
    more about the same step, which does not go on before that.
    """

    pending_id: str
    resolution: Resolution
    actor: Actor
    by: str
    at: float
    via: str = ""
    stops_batch: bool = True
    more: bool = False
    consumes: tuple[ThreadKey, str] | None = None
    outgoing: tuple[Outgoing, ...] = ()


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """What the conditional update did. `record` is the row after it. `still_open`: pendings of
    the same step that still wait. `votes_missing`: people who still have to agree to this one.
    `claim`: the session's next work, where it was asked for and nobody else has it."""

    outcome: ClickOutcome
    record: PendingRecord | None
    still_open: int = 0
    votes_missing: int = 0
    claim: Claim | None = None


class CardCopy(msgspec.Struct, frozen=True, kw_only=True):
    """One posted (or to be posted) copy of a card. `unsure`: it may exist more than once, or its
    reference is not known yet, because a sender died or has not come back. `dress`: what it shows of
    its requests beside what every copy does, the payload of its row and of every redraw: `revealed` (true,
    or the ids of the requests on it) what others have to ask for, `managed` more buttons."""

    key: ThreadKey
    refs: tuple[str, ...]
    unsure: bool
    dress: Json = {}

    def reveals(self, pending_id: str) -> bool:
        """Whether it shows all of this request."""
        revealed = self.dress.get("revealed", False)
        return pending_id in revealed if isinstance(revealed, list) else bool(revealed)


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """A session as others see it. A subagent's has a `parent` and a `root`; what waits below a root
    counts as the root's. `model`: see Claim."""

    id: str
    key: ThreadKey
    agent: str
    status: SessionStatus
    turn_id: str
    title: str
    log_length: int
    created_at: float
    updated_at: float
    queued: int = 0
    open_pendings: int = 0
    parent: str = ""
    root: str = ""
    model: str = ""


class TurnView(msgspec.Struct, frozen=True, kw_only=True):
    """A turn as others see it. `events` are packed lines (see gateway.eventlog)."""

    id: str
    session_id: str
    number: int
    trigger: str
    state: Literal["running", "parked", "done"]
    outcome: str
    detail: str
    text: str
    agent: str
    events: str
    spent: Spent
    usage: Json
    first_seq: int
    started_at: float
    ended_at: float | None


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was said beside the conversation. `after` entries of the log came before it. `file`: the
    name of a file that comes with it (see Store.posted_file); empty for none."""

    text: str
    at: float
    after: int
    id: int = 0
    file: str = ""


class StopDone(msgspec.Struct, frozen=True, kw_only=True):
    """What /stop or /new found: a turn was running, or about to go on after a decision; these
    pendings were closed; so many messages still wait. `session_id`: the session that was stopped,
    empty when the thread has none. `schedules`: how many wake the new session from now on."""

    session_id: str
    running: bool = False
    closed: tuple[PendingRecord, ...] = ()
    queued: int = 0
    new_session_id: str = ""
    schedules: int = 0


class Timer(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is due at a time. `expiry`, `remind` and `escalate`: subject is a pending id."""

    id: int
    kind: str
    subject: str
    due_at: float
    body: Json = {}


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """What a due `remind` or `escalate` does, for its one transaction. `pending_ids`: the requests on the
    card that were open when `outgoing` was written. `step`: what an escalation adds to them."""

    timer: Timer
    at: float
    pending_ids: tuple[str, ...]
    outgoing: tuple[Outgoing, ...] = ()
    step: Escalation | None = None


class Press(msgspec.Struct, frozen=True, kw_only=True):
    """One press, on its way into the inbox; kept until it has been carried out."""

    key: ThreadKey
    action_id: str
    actor: Actor
    body: Json
    received_at: float


class StartUp(msgspec.Struct, frozen=True, kw_only=True):
    """What a process finds when it starts: presses that were only stored, and sessions that have
    work and no runner."""

    presses: tuple[Press, ...]
    sessions: tuple[str, ...]


class TakenPress(msgspec.Struct, frozen=True, kw_only=True):
    """A stored press and the card it belongs to. `fresh`: not known before."""

    fresh: bool
    record: PendingRecord | None
    copies: tuple[CardCopy, ...]


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the record. `hash` covers the line and the hash before it."""

    seq: int
    at: float
    kind: str
    actor: str
    session_id: str
    pending_id: str
    args_hash: str
    body: Json
    previous: str
    hash: str
