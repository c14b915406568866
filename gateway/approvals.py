"""What waits for a person, and what a person's word does to it. Pure: tables and small functions.

A pending is one call. It is open until one of the moves in `NEXT` closes it, and a closed one
never opens again. `settle` turns a closed pending into what the loop has to know about the call;
what a model reads about it is in `verdicts`.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Literal

import msgspec

from gateway.budget import Spent
from gateway.messages import Actor, Json, ToolResult
from gateway.patience import Escalation, Quiet
from gateway.questions import RUN_AGAIN, TREAT_AS_DONE, Question, answer_text
from gateway.tools.base import Said
from gateway.verdicts import GAVE_UP, closed, edit_note, expired, reads

PendingKind = Literal["approval", "question"]
PendingState = Literal["open", "approved", "denied", "answered", "expired", "superseded"]
ClickOutcome = Literal[
    "resumed", "recorded", "already", "expired", "superseded", "forbidden", "invalid", "unknown"
]
GrantScope = Literal["once", "session", "always"]

CANCELLED, NEWER_MESSAGE = "cancelled", "a newer message"  # why a request was closed: `Supersede.by`


class Pending(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call that waits. `args` are the canonical ones, bound by `args_hash`. `card`: the card that
    it shares with other calls of its step, where it is the one at `place`; empty for one of its own.
    `reveal`: who sees the arguments without asking for them. `preview_image`: a path below the data
    folder."""

    pending_id: str
    kind: PendingKind
    call_id: str
    tool: str
    args: Json
    args_hash: str
    code: str
    reason: str = ""
    rule: str = ""
    approvers: tuple[str, ...] = ()
    notify: tuple[str, ...] = ()
    expires_at: float | None = None
    quorum: int = 1
    four_eyes: bool = False
    secret: tuple[str, ...] = ()
    preview: str = ""
    preview_kind: Literal["text", "diff"] = "text"
    preview_image: str = ""
    reveal: Literal["everyone", "approvers"] = "everyone"
    schema: Json = {}
    question: Question | None = None
    requested_at: float = 0.0  # Unix seconds
    card: str = ""
    place: int = 0
    session: str = ""  # of the subagent whose call it is, which has the row; empty: the loop's own
    remind: tuple[float, ...] = ()  # seconds after the request
    escalate: Escalation | None = None
    quiet: Quiet | None = None

    @property
    def card_id(self) -> str:
        """The card that shows it: the id of the first pending on it."""
        return self.card or self.pending_id


def escalated(pending: Pending, step: Escalation) -> Pending:
    """The request with the people and places that a step adds; who could decide before still can."""
    approvers = pending.approvers
    if step.approvers:
        approvers = tuple(dict.fromkeys((*(approvers or ("requester",)), *step.approvers)))
    notify = tuple(dict.fromkeys((*pending.notify, *step.notify)))
    return msgspec.structs.replace(pending, approvers=approvers, notify=notify)


class KnownCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is already known of one call of a batch that goes on.

    undecided: the gate said that a person must decide, but the program stopped before anybody was
    asked; the gate looks again. allowed: run it with `args`. started: it began, its end is not
    known. done: `result` holds it.
    waiting: `pending` is still open. denied: a person said no, `result` says so.
    `note` is put before the result, so that the model learns what a person changed.
    `news`: `result` is told to watchers when the batch goes on; they have not seen it yet.
    `said`: what was answered to questions of the call itself, by key: it runs again with them.
    """

    state: Literal["undecided", "allowed", "started", "done", "waiting", "denied"]
    args: Json | None = None
    args_hash: str = ""
    result: ToolResult | None = None
    pending: Pending | None = None
    note: str = ""
    news: bool = False
    said: dict[str, Said] = {}


class TurnCheckpoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that one stopped batch still needs.

    results_so_far: by call id. outstanding: by pending id. decided: calls that a person has
    settled and that have not been carried out yet, by call id.
    """

    results_so_far: dict[str, ToolResult] = {}
    outstanding: dict[str, Pending] = {}
    decided: dict[str, KnownCall] = {}
    spent: Spent = Spent()

    def known(self) -> dict[str, KnownCall]:
        """What the loop must know to go on with the batch."""
        calls = {call_id: KnownCall(state="done", result=r) for call_id, r in self.results_so_far.items()}
        calls |= {p.call_id: KnownCall(state="waiting", pending=p) for p in self.outstanding.values()}
        return calls | self.decided


# ---- what a person can say


class Approve(msgspec.Struct, frozen=True, kw_only=True, tag="approve", omit_defaults=True):
    """Yes: once, for this session, or always; perhaps with other arguments."""

    scope: GrantScope = "once"
    edited_args: Json | None = None


class Deny(msgspec.Struct, frozen=True, kw_only=True, tag="deny", omit_defaults=True):
    """No; `feedback` becomes the next thing that the model reads from the person."""

    feedback: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="answer", omit_defaults=True):
    """The answer to a question: one value, several with `multi`, `name=value` for several questions;
    about a cut-off call what is to become of it, perhaps with what it came to."""

    values: tuple[str, ...]


class Expire(msgspec.Struct, frozen=True, kw_only=True, tag="expire", omit_defaults=True):
    """The clock's word, never a person's."""


class Supersede(msgspec.Struct, frozen=True, kw_only=True, tag="supersede", omit_defaults=True):
    """The request is no longer wanted: /new, /stop, or a sibling's denial. `by` says which."""

    by: str


Resolution = Approve | Deny | Answer | Expire | Supersede

NEXT: dict[tuple[PendingKind, type[Resolution]], PendingState] = {
    ("approval", Approve): "approved",
    ("approval", Deny): "denied",
    ("approval", Expire): "expired",
    ("approval", Supersede): "superseded",
    ("question", Answer): "answered",
    ("question", Expire): "expired",
    ("question", Supersede): "superseded",
}

CLOSED_OUTCOME: dict[PendingState, ClickOutcome] = {
    "approved": "already",
    "denied": "already",
    "answered": "already",
    "expired": "expired",
    "superseded": "superseded",
}


def next_state(kind: PendingKind, resolution: Resolution) -> PendingState | None:
    """The state that this word leads to; None when it makes no sense for this kind."""
    return NEXT.get((kind, type(resolution)))


# ---- who may decide


def allowed_deciders(
    approvers: Sequence[str], requester: Actor | None, operators: Sequence[str]
) -> frozenset[str]:
    """The written form of everybody who may decide: no approvers means the requester."""
    names = {str(requester)} if requester and (not approvers or "requester" in approvers) else set()
    return frozenset(names | {a for a in approvers if a != "requester"} | set(operators))


def may_decide(
    actor: Actor,
    roles: frozenset[str],
    *,
    approvers: Sequence[str],
    requester: Actor | None,
    four_eyes: bool,
    operators: Sequence[str],
) -> bool:
    """Whether this person may decide. Ids only: `channel:user`, `channel:workspace:user`, or
    `channel:role:id`; `channel:admins` are the administrators of the thread. With `four_eyes` the
    requester may not, an operator or approver or not."""
    if not actor.user:
        return False
    if four_eyes and requester is not None and actor == requester:
        return False
    spelled = {str(actor), f"{actor.channel}:{actor.user}"}
    spelled |= {f"{actor.channel}:role:{role}" for role in roles}
    if "administrator" in roles:
        spelled.add(f"{actor.channel}:admins")
    return not spelled.isdisjoint(allowed_deciders(approvers, requester, operators))


# ---- what the loop has to know


def settle(pending: Pending, resolution: Resolution, by: str) -> KnownCall:
    """What the loop has to know about the call, now that somebody (`by`, in words) or the clock
    has spoken. Raises ValueError for a word that does not fit the kind."""
    if next_state(pending.kind, resolution) is None:
        raise ValueError(f"{type(resolution).__name__} does not settle a {pending.kind}")
    if pending.question is not None and pending.question.about == "call":
        said = {pending.question.key: _said(resolution)}
        return KnownCall(state="allowed", args=pending.args, args_hash=pending.args_hash, said=said)
    match resolution:
        case Approve(edited_args=None):
            return KnownCall(state="allowed", args=pending.args, args_hash=pending.args_hash)
        case Approve(edited_args=edited):
            note = edit_note(pending.args, edited or {}, pending.secret, by)
            return KnownCall(state="allowed", args=edited, note=note)
        case Deny(feedback=feedback):
            text = reads("denied_with_feedback" if feedback else "denied", by=by, feedback=feedback)
            return KnownCall(state="denied", result=_error(pending, text), news=True)
        case Answer(values=values):
            return _answered(pending, values, by)
        case Expire():
            return _news(_error(pending, expired(_thing(pending), _seconds(pending))))
        case Supersede(by=cause):
            return _news(_error(pending, closed(cause, _thing(pending), by)))


def _said(resolution: Resolution) -> Said:
    match resolution:
        case Answer(values=values):
            return Said(values=values)
        case Supersede(by=cause):
            return Said(closed=cause)
        case _:
            return Said(closed="expired")


def _news(result: ToolResult) -> KnownCall:
    return KnownCall(state="done", result=result, news=True)


def _thing(pending: Pending) -> Literal["request", "question"]:
    return "question" if pending.kind == "question" else "request"


def _seconds(pending: Pending) -> float | None:
    if pending.expires_at is None or not pending.requested_at:
        return None
    return pending.expires_at - pending.requested_at


def _answered(pending: Pending, values: tuple[str, ...], by: str) -> KnownCall:
    question = pending.question
    if question is None or question.about != "unknown":
        return _news(ToolResult(tool_use_id=pending.call_id, content=answer_text(question, values)))
    match values:
        case (str(word),) if word == RUN_AGAIN:
            note = reads("unknown_run_again", by=by)
            return KnownCall(state="allowed", args=pending.args, args_hash=pending.args_hash, note=note)
        case (str(word),) if word == TREAT_AS_DONE:
            return _news(ToolResult(tool_use_id=pending.call_id, content=reads("unknown_done", by=by)))
        case (str(word), result) if word == TREAT_AS_DONE:
            text = reads("unknown_done_with_result", by=by, result=result)
            return _news(ToolResult(tool_use_id=pending.call_id, content=text))
        case _:
            return _news(_error(pending, GAVE_UP))


def _error(pending: Pending, text: str) -> ToolResult:
    return ToolResult(tool_use_id=pending.call_id, content=text, is_error=True)


_CODE_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


def new_code() -> str:
    """Five letters that a person can type; short for /approve, never an authority by itself."""
    return "".join(secrets.choice(_CODE_LETTERS) for _ in range(5))
