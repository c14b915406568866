"""What waits for a person, and what a person's word does to it. Pure: tables and small functions.

A pending is one call. It is open until one of the moves in `NEXT` closes it, and a closed one
never opens again. `settle` turns a closed pending into what the loop has to know about the call,
and holds every text that a model may read about a decision, in one place.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from gateway.budget import Spent
from gateway.messages import Actor, Json, ToolResult, canonical_json

PendingKind = Literal["approval", "question"]
PendingState = Literal["open", "approved", "denied", "answered", "expired", "superseded"]
ClickOutcome = Literal[
    "resumed", "recorded", "already", "expired", "superseded", "forbidden", "invalid", "unknown"
]
GrantScope = Literal["once", "session", "always"]

RUN_AGAIN, TREAT_AS_DONE, GIVE_UP = "run again", "treat as done", "give up"


class Option(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer that a question offers. `value` is what the model gets; empty: the label."""

    label: str
    value: str = ""
    description: str = ""

    @property
    def result(self) -> str:
        """What the model reads when this is chosen."""
        return self.value or self.label


class Question(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `ask_user` asks. `about` is "unknown" when the gateway itself asks after a crash."""

    text: str
    options: tuple[Option, ...] = ()
    multi: bool = False
    allow_text: bool = True
    about: Literal["", "unknown"] = ""


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

    @property
    def card_id(self) -> str:
        """The card that shows it: the id of the first pending on it."""
        return self.card or self.pending_id


class KnownCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is already known of one call of a batch that goes on.

    undecided: the gate said that a person must decide, but the program stopped before anybody was
    asked; the gate looks again. allowed: run it with `args`. started: it began, its end is not
    known. done: `result` holds it.
    waiting: `pending` is still open. denied: a person said no, `result` says so.
    `note` is put before the result, so that the model learns what a person changed.
    `news`: `result` is told to watchers when the batch goes on; they have not seen it yet.
    """

    state: Literal["undecided", "allowed", "started", "done", "waiting", "denied"]
    args: Json | None = None
    args_hash: str = ""
    result: ToolResult | None = None
    pending: Pending | None = None
    note: str = ""
    news: bool = False


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
    """The answer to a question: one value, several with `multi`."""

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


# ---- what the model reads

_EXPIRED = (
    "not run: the {thing} expired{after} before anybody answered. The tool did not run and no person "
    "refused it; ask again only if the user still wants it."
)
_SUPERSEDED = "not run: the request was closed by {by} before anybody decided. Nobody refused it."
SKIPPED = "skipped: another call of the same step was denied, so this one did not run."
STOPPED = "stopped by user: this call was not finished."
INTERRUPTED = "interrupted, outcome unknown: the call had started and may or may not have run."
GAVE_UP = "interrupted, outcome unknown: a person looked and decided to go on without it."


def settle(pending: Pending, resolution: Resolution, by: str) -> KnownCall:
    """What the loop has to know about the call, now that somebody (`by`, in words) or the clock
    has spoken. Raises ValueError for a word that does not fit the kind."""
    if next_state(pending.kind, resolution) is None:
        raise ValueError(f"{type(resolution).__name__} does not settle a {pending.kind}")
    match resolution:
        case Approve(edited_args=None):
            return KnownCall(state="allowed", args=pending.args, args_hash=pending.args_hash)
        case Approve(edited_args=edited):
            return KnownCall(state="allowed", args=edited, note=_edit_note(pending, edited or {}, by))
        case Deny(feedback=feedback):
            reason = f"denied by {by}" + (f": {feedback}" if feedback else "")
            return KnownCall(state="denied", result=_error(pending, reason), news=True)
        case Answer(values=values):
            return _answered(pending, values, by)
        case Expire():
            thing = "question" if pending.kind == "question" else "approval request"
            return _news(_error(pending, _EXPIRED.format(thing=thing, after=_after(pending))))
        case Supersede(by="denial"):
            return _news(_error(pending, SKIPPED))
        case Supersede(by=cause):
            return _news(_error(pending, _SUPERSEDED.format(by=cause)))


def _news(result: ToolResult) -> KnownCall:
    return KnownCall(state="done", result=result, news=True)


def _after(pending: Pending) -> str:
    if pending.expires_at is None or not pending.requested_at:
        return ""
    minutes = round((pending.expires_at - pending.requested_at) / 60)
    return f" after {minutes} minute{'' if minutes == 1 else 's'}" if minutes else ""


def _answered(pending: Pending, values: tuple[str, ...], by: str) -> KnownCall:
    if pending.question is not None and pending.question.about == "unknown":
        if values == (RUN_AGAIN,):
            return KnownCall(state="allowed", args=pending.args, args_hash=pending.args_hash)
        if values == (TREAT_AS_DONE,):
            text = f"interrupted, but {by} has checked: treat this call as done."
            return _news(ToolResult(tool_use_id=pending.call_id, content=text))
        return _news(_error(pending, GAVE_UP))
    text = values[0] if len(values) == 1 else "\n".join(f"- {value}" for value in values)
    return _news(ToolResult(tool_use_id=pending.call_id, content=text))


def _error(pending: Pending, text: str) -> ToolResult:
    return ToolResult(tool_use_id=pending.call_id, content=text, is_error=True)


def _edit_note(pending: Pending, edited: Json, by: str) -> str:
    """Names what was changed; of what `pending.secret` covers only that it was."""
    proposed = pending.args
    covered = {name.partition(".")[0] for name in pending.secret} | set(pending.secret)
    changes = [
        f"{name}: (not shown)"
        if name in covered
        else f"{name}: {_shown(proposed, name)} -> {_shown(edited, name)}"
        for name in sorted(proposed.keys() | edited.keys())
        if _shown(proposed, name) != _shown(edited, name)
    ]
    what = "; ".join(changes) or "nothing"
    return f"[{by} approved this call with changed arguments. Changed: {what}]"


def _shown(args: Json, name: str) -> str:
    return canonical_json(args[name]) if name in args else "(absent)"


# ---- typed answers


class TypedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a typed message means for an open question. `values` None: it is no answer, the
    question is cancelled and the text becomes the next turn."""

    values: tuple[str, ...] | None


def read_typed_answer(question: Question, text: str) -> TypedAnswer:
    """Numbers and case-folded labels choose options; other text is an answer where allowed."""
    words = text.strip()
    picked = _pick(question.options, words)
    if picked is None and question.multi:
        several = [_pick(question.options, part.strip()) for part in words.split(",")]
        if several and all(p is not None for p in several):
            return TypedAnswer(values=tuple(dict.fromkeys(p for p in several if p is not None)))
    if picked is not None:
        return TypedAnswer(values=(picked,))
    return TypedAnswer(values=(words,) if question.allow_text and words else None)


def _pick(options: Sequence[Option], word: str) -> str | None:
    if word.isdecimal() and len(word) <= 4 and 1 <= int(word) <= len(options):
        return options[int(word) - 1].result
    matches = [o.result for o in options if o.label.casefold() == word.casefold()]
    return matches[0] if len(matches) == 1 else None


def check_answer(question: Question, values: Sequence[str]) -> str | None:
    """What is wrong with a submitted answer, None when nothing is."""
    if not values or any(not value.strip() for value in values):
        return "answer: is empty"
    if len(values) > 1 and not question.multi:
        return "answer: only one value can be chosen"
    known = {name for option in question.options for name in (option.result, option.label)}
    foreign = [value for value in values if value not in known]
    if foreign and not question.allow_text:
        return f"answer: {foreign[0]!r} is not one of the options"
    return None


def normal_answer(question: Question, values: Sequence[str]) -> tuple[str, ...]:
    """Labels become the values that they stand for."""
    by_label: Mapping[str, str] = {option.label: option.result for option in question.options}
    return tuple(by_label.get(value, value) for value in values)


_CODE_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


def new_code() -> str:
    """Five letters that a person can type; short for /approve, never an authority by itself."""
    return "".join(secrets.choice(_CODE_LETTERS) for _ in range(5))
