"""Carrying out a person's word about a pending: one conditional update, one clear answer.

The same path for every click, form, command, typed answer and API call. Nothing is decided here
that the store does not decide: the row after the update says what happened.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from gateway import faults
from gateway.agent import Agent
from gateway.approvals import (
    CLOSED_OUTCOME,
    NEWER_MESSAGE,
    Answer,
    Approve,
    ClickOutcome,
    Deny,
    Resolution,
    Supersede,
    may_decide,
    next_state,
)
from gateway.clock import Clock
from gateway.messages import Actor, Json, ThreadKey
from gateway.notices import NOTED_AS_ANSWER, click_text, drafted_text, person
from gateway.questions import (
    answer_problems,
    answer_words,
    given_problems,
    merged_answers,
    normal_answer,
)
from gateway.reminders import NOWHERE, Reminders
from gateway.store.base import Store
from gateway.store.rows import CardCopy, Claim, PendingRecord, Resolved, TakenPress, Verdict
from gateway.tools.base import MASK, schema_problems

MOST_PLACES = 5  # of a card, where somebody's roles are looked up
MOST_LOOKED_AT = 5_000  # open requests that are searched for somebody's
CHOOSE_ATTEMPTS = 5  # when others press the same card at the same moment
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Click:
    """A person's word. `key` and `ref`: the message that was pressed; None for words that did not
    come from a card (API, command, terminal). `roles`: the platform's ids of the person's roles.
    `resolution` None: the word made no sense for this request, and `trouble` says why. `last`: False when
    the same person is about to say the same about the next call of the card, so that a denial leaves it
    open until then."""

    pending_id: str
    resolution: Resolution | None
    actor: Actor
    name: str = ""
    roles: frozenset[str] = frozenset()
    key: ThreadKey | None = None
    ref: str | None = None
    via: str = ""
    consumes: tuple[ThreadKey, str] | None = None
    trouble: str = ""
    last: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickResult:
    """One of the eight outcomes, in words for the person who clicked, and the row after it.
    `problems`: for `invalid`, (argument, what is wrong)."""

    outcome: ClickOutcome
    text: str
    record: PendingRecord | None = None
    still_open: int = 0
    problems: tuple[tuple[str, str], ...] = field(default=())


RolesOf = Callable[[Actor, ThreadKey], Awaitable[frozenset[str]]]


class Claims(Protocol):
    """Who can run what a decision sets free, right away."""

    @property
    def draining(self) -> bool: ...

    def in_memory(self, session_id: str) -> int: ...

    def start(self, claim: Claim) -> object: ...


class Resolutions:
    """Decides clicks. `wake`: the session has something to go on with. `nudge`: its cards or
    lists look different now. `claims`: where decided turns go on in this process; None: nowhere."""

    def __init__(
        self,
        store: Store,
        agents: Mapping[str, Agent],
        clock: Clock,
        operators: Sequence[str],
        wake: Callable[[str], None],
        nudge: Callable[[str], None],
        claims: Claims | None = None,
        roles_of: RolesOf | None = None,
        reminders: Reminders = NOWHERE,
    ) -> None:
        self._store, self._agents, self._clock = store, agents, clock
        self._operators, self._wake, self._nudge = tuple(operators), wake, nudge
        self._claims, self._roles_of, self._reminders = claims, roles_of, reminders

    async def decide(self, click: Click, taken: TakenPress | None = None) -> ClickResult:
        """Carry out one click. `taken`: the card as the press found it, when that is known.
        Raises StoreError, and nothing for anything that a person can do."""
        record = await self._admitted(click, taken)
        if isinstance(record, ClickResult):
            return record
        record = await self._up_to_date(record, self._clock.now())
        click = _with_secrets(click, record)
        if record.state == "open" and (problems := self._problems(click, record)):
            return await self._invalid(click, problems, record)
        if click.resolution is None:
            return await self._refused(click, CLOSED_OUTCOME.get(record.state, "unknown"), record)
        result = await self._resolve(click, click.resolution, record)
        if result.outcome in CLOSED_OUTCOME.values():
            await self._note(click, result.outcome, record)
        return result

    async def toggle(self, click: Click, value: str, taken: TakenPress | None = None) -> ClickResult:
        """Choose one option of a question with several answers, or take it back."""

        def switched(votes: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(v for v in votes if v != value) if value in votes else (*votes, value)

        def told(chosen: tuple[str, ...]) -> str:
            return f"Chosen: {', '.join(chosen)}" if chosen else "Nothing chosen"

        return await self._choose(click, taken, switched, told)

    async def pick(self, click: Click, values: Sequence[str], taken: TakenPress | None = None) -> ClickResult:
        """Choose this instead of all that was chosen so far; it counts when it is confirmed."""
        record = await self._admitted(click, taken)
        if isinstance(record, ClickResult):
            return record
        question = record.pending.question
        if question is None or not question.confirmed or question.parts:
            return await self._refused(click, "unknown", record)
        if record.state == "open" and (problems := answer_problems(question, values)):
            return await self._invalid(click, problems, record)
        picked = normal_answer(question, values)
        words = NOTED_AS_ANSWER.format(answer=answer_words(question, picked))
        return await self._choose(click, taken, lambda before: picked, lambda now: words)

    async def draft(
        self,
        click: Click,
        values: Sequence[str],
        emptied: Sequence[str] = (),
        taken: TakenPress | None = None,
    ) -> ClickResult:
        """Answer some of several questions, or take answers back; nothing counts before it is confirmed."""
        record = await self._admitted(click, taken)
        if isinstance(record, ClickResult):
            return record
        question = record.pending.question
        if question is None or not question.parts:
            return await self._refused(click, "unknown", record)
        if record.state == "open" and (problems := given_problems(question, values)):
            return await self._invalid(click, problems, record)

        def answered(votes: tuple[str, ...]) -> tuple[str, ...]:
            return merged_answers(question, votes, values, emptied)

        return await self._choose(click, taken, answered, lambda now: drafted_text(question, now))

    async def _choose(
        self,
        click: Click,
        taken: TakenPress | None,
        change: Callable[[tuple[str, ...]], tuple[str, ...]],
        told: Callable[[tuple[str, ...]], str],
    ) -> ClickResult:
        """Change what is chosen so far of an open question, whoever else does at the same moment."""
        record = await self._admitted(click, taken)
        if isinstance(record, ClickResult):
            return record
        now = self._clock.now()
        for _ in range(CHOOSE_ATTEMPTS):
            if record.state != "open" or _ran_out(record, now):
                break
            chosen = change(record.votes)
            if await self._store.choose(record.id, record.votes, chosen, now):
                self._nudge(record.home)
                return ClickResult(outcome="recorded", text=told(chosen), record=record)
            record = await self._store.pending(record.id) or record  # somebody else was quicker
        record = await self._up_to_date(record, now)
        return await self._refused(click, CLOSED_OUTCOME.get(record.state, "unknown"), record)

    async def _up_to_date(self, record: PendingRecord, now: float) -> PendingRecord:
        """The request, ended first where its time has run out and no timer has come to it yet."""
        if record.state != "open" or not _ran_out(record, now):
            return record
        card = await self._store.pendings(card=record.pending.card_id, open_only=False)
        ended = await self._commit(self._reminders.expiry(record, card, now))
        self._nudge(record.home)
        return ended.record or record

    async def _admitted(self, click: Click, taken: TakenPress | None) -> PendingRecord | ClickResult:
        """The pending, when this card is one of its copies and this person may decide it."""
        record = taken.record if taken is not None else await self._store.pending(click.pending_id)
        copies = taken.copies if taken is not None else None
        if record is None or not await self.belongs(click.key, click.ref, record, copies, actor=click.actor):
            await self._note(click, "unknown", record)
            return ClickResult(outcome="unknown", text=click_text("unknown", None))
        if record.state == "open" and not self.may_decide(click.actor, click.roles, record):
            return await self._refused(click, "forbidden", record)
        return record

    async def _invalid(
        self, click: Click, problems: tuple[tuple[str, str], ...], record: PendingRecord
    ) -> ClickResult:
        await self._note(click, "invalid", record)
        words = "; ".join(f"{name}: {text}" if name else text for name, text in problems)
        text = click.trouble or f"Not accepted: {words}"
        return ClickResult(outcome="invalid", text=text, record=record, problems=problems)

    async def _refused(self, click: Click, outcome: ClickOutcome, record: PendingRecord) -> ClickResult:
        await self._note(click, outcome, record)
        return ClickResult(outcome=outcome, text=click_text(outcome, record), record=record)

    async def withdraw(
        self, pending_id: str, actor: Actor, name: str, *, by: str = NEWER_MESSAGE, via: str = ""
    ) -> Resolved:
        """The request is no longer wanted: something else was said instead of an answer, or (`by`) it
        was taken back. Who may do that was looked at before."""
        verdict = Verdict(
            pending_id=pending_id,
            resolution=Supersede(by=by),
            actor=actor,
            by=person(actor, name),
            at=self._clock.now(),
            via=via,
        )
        resolved = await self._commit(verdict)
        if resolved.record is not None:
            self._nudge(resolved.record.home)
        return resolved

    async def roles(self, actor: Actor, key: ThreadKey) -> frozenset[str]:
        """The platform's ids of the roles that a person has in a thread."""
        return frozenset() if self._roles_of is None else await self._roles_of(actor, key)

    async def standing(
        self, actor: Actor, record: PendingRecord, copies: Sequence[CardCopy] | None = None
    ) -> frozenset[str]:
        """The roles that count for this request: those that the person has where it was made and where
        its card stands, and nowhere else. None are looked up where none could decide."""
        if not any(":role:" in name or name.endswith(":admins") for name in record.pending.approvers):
            return frozenset()
        if copies is None:
            copies = await self._store.card_copies(record.id)
        everywhere = ThreadKey(actor.channel, actor.workspace, "", "")
        places = [key for key in (record.key, *(c.key for c in copies)) if key.channel == actor.channel]
        found = frozenset[str]()
        for place in dict.fromkeys([*places[:MOST_PLACES], everywhere]):
            found |= await self.roles(actor, place)
        return found

    def is_operator(self, actor: Actor) -> bool:
        """Whether this person runs the gateway."""
        return str(actor) in self._operators

    async def waiting(self, actor: Actor, limit: int = 50) -> list[PendingRecord]:
        """The open requests that this person may decide, oldest first, at most `limit`."""
        found: list[PendingRecord] = []
        for record in await self._store.pendings(limit=MOST_LOOKED_AT):
            if self.may_decide(actor, await self.standing(actor, record), record):
                found.append(record)
            if len(found) == limit:
                break
        return found

    async def look(self, click: Click) -> PendingRecord | ClickResult:
        """The open request that a click is about, or what the click would come to. Changes nothing."""
        record = await self._store.pending(click.pending_id)
        if record is None or not await self.belongs(
            click.key, click.ref, record, actor=click.actor, adopt=False
        ):
            return ClickResult(outcome="unknown", text=click_text("unknown", None))
        if record.state != "open":
            outcome = CLOSED_OUTCOME.get(record.state, "unknown")
            return ClickResult(outcome=outcome, text=click_text(outcome, record), record=record)
        if not self.may_decide(click.actor, click.roles, record):
            return ClickResult(outcome="forbidden", text=click_text("forbidden", record), record=record)
        return record

    def may_decide(self, actor: Actor, roles: frozenset[str], record: PendingRecord) -> bool:
        """Whether this person may decide this pending."""
        return may_decide(
            actor,
            roles,
            approvers=record.pending.approvers,
            requester=record.requester,
            four_eyes=record.pending.four_eyes,
            operators=self._operators,
        )

    async def _resolve(self, click: Click, resolution: Resolution, record: PendingRecord) -> ClickResult:
        agent = self._agents.get(record.agent)
        if isinstance(resolution, Answer) and record.pending.question is not None:
            resolution = Answer(values=normal_answer(record.pending.question, resolution.values))
        verdict = Verdict(
            pending_id=record.id,
            resolution=resolution,
            actor=click.actor,
            by=person(click.actor, click.name),
            at=self._clock.now(),
            via=click.via,
            stops_batch=click.last and (agent is None or agent.on_denial == "stop"),
            more=isinstance(resolution, Deny) and not click.last,
            consumes=click.consumes,
        )
        resolved = await self._commit(verdict)
        self._nudge(record.home)
        text = click_text(
            resolved.outcome,
            resolved.record,
            still_open=resolved.still_open,
            votes_missing=resolved.votes_missing,
        )
        return ClickResult(
            outcome=resolved.outcome, text=text, record=resolved.record, still_open=resolved.still_open
        )

    async def _commit(self, verdict: Verdict) -> Resolved:
        """The decision, and with it the claim of what it sets free."""
        here = self._claims if self._claims is not None and not self._claims.draining else None
        faults.reach("resolution.before")
        faults.reach("resume.before")
        resolved = await self._store.resolve(
            verdict, claim=here is not None, have=here.in_memory if here is not None else None
        )
        faults.reach("resolution.after")
        if here is not None and resolved.claim is not None:
            faults.reach("resume.after")
            here.start(resolved.claim)
        elif resolved.record is not None:
            self._wake(resolved.record.session_id)
        return resolved

    async def belongs(
        self,
        key: ThreadKey | None,
        ref: str | None,
        record: PendingRecord,
        copies: Sequence[CardCopy] | None = None,
        *,
        actor: Actor | None = None,
        adopt: bool = True,
    ) -> bool:
        """A card's button counts only on a copy of that card that we have posted. A copy whose
        reference was lost with a dead process is recognised by its place and adopted."""
        if key is None:
            return True
        posted = copies if copies is not None else await self._store.card_copies(record.id)
        if any(ref in copy.refs for copy in posted if _is_there(copy.key, key, actor)):
            return True
        if ref and any(copy.unsure for copy in posted if copy.key[:3] == key[:3]):
            if adopt:
                await self._store.adopt_card(record.id, key, ref)
            return True
        return False

    def problems(self, click: Click, record: PendingRecord) -> tuple[tuple[str, str], ...]:
        """(argument, what is wrong) of what a click would do to an open request; empty: nothing."""
        return self._problems(_with_secrets(click, record), record)

    def _problems(self, click: Click, record: PendingRecord) -> tuple[tuple[str, str], ...]:
        pending, resolution = record.pending, click.resolution
        if resolution is None:
            return (("", click.trouble),)
        if next_state(pending.kind, resolution) is None:
            asked = "an answer" if pending.kind == "question" else "approve or deny"
            return (("", f"this request wants {asked}"),)
        match resolution:
            case Answer(values=values) if pending.question is not None:
                return answer_problems(pending.question, values)
            case Approve(scope=scope, edited_args=edited):
                if scope != "once" and pending.quorum > 1:
                    return (("scope", "a request that several people decide is approved once"),)
                if edited is None:
                    return ()
                if pending.quorum > 1:
                    return (("", "a request that several people decide cannot be edited"),)
                return tuple(schema_problems(pending.schema, edited))
            case _:
                return ()

    async def note_invalid(self, click: Click, record: PendingRecord) -> None:
        """A form that was sent and not taken is on record like any other attempt."""
        await self._note(click, "invalid", record)

    async def _note(self, click: Click, what: str, record: PendingRecord | None) -> None:
        """Attempts that changed nothing are on record too."""
        word = type(click.resolution).__name__.lower() if click.resolution is not None else ""
        body: Json = {"via": click.via, "word": word}
        if click.ref:
            body["ref"] = click.ref
        await self._store.audit(
            f"refused_{what}",
            str(click.actor),
            body,
            self._clock.now(),
            session_id=record.session_id if record else "",
            pending_id=click.pending_id[:64],
        )


def _is_there(copy: ThreadKey, pressed: ThreadKey, actor: Actor | None) -> bool:
    """Whether a copy stands where it was pressed; one that was sent to a person stands in a private
    conversation whose id only the platform knew."""
    if copy[:3] == pressed[:3]:
        return True
    person = copy.conversation.removeprefix("user:")
    return actor is not None and copy.channel == pressed.channel and person == actor.user != ""


def _with_secrets(click: Click, record: PendingRecord) -> Click:
    """Edited arguments come from places that never saw the secret ones: those that are left out,
    or come back as the mask, keep their stored values."""
    resolution, stored = click.resolution, record.pending.args
    if not isinstance(resolution, Approve) or resolution.edited_args is None:
        return click
    edited = resolution.edited_args
    for name in record.pending.secret:
        edited = _restored(edited, stored, name)
    if edited == stored:
        return replace(click, resolution=Approve(scope=resolution.scope))
    return replace(click, resolution=Approve(scope=resolution.scope, edited_args=edited))


def _restored(edited: Json, stored: Json, name: str) -> Json:
    """`edited` with the stored value behind `name` (a key or a dot-path, see tools.base.masked)
    where the mask still stands, or nothing."""
    if name in stored:
        return {**edited, name: stored[name]} if edited.get(name, MASK) == MASK else edited
    first, _, rest = name.partition(".")
    if not rest or first not in stored:
        return edited
    inner, before = edited.get(first, MASK), stored[first]
    if inner == MASK:
        return {**edited, first: before}
    if isinstance(inner, dict) and isinstance(before, dict):
        return {**edited, first: _restored(inner, before, rest)}
    return edited


def _ran_out(record: PendingRecord, now: float) -> bool:
    return record.pending.expires_at is not None and record.pending.expires_at <= now
