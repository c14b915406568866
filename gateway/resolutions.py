"""Carrying out a person's word about a pending: one conditional update, one clear answer.

The same path for every click, form, command, typed answer and API call. Nothing is decided here
that the store does not decide: the row after the update says what happened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gateway import faults
from gateway.agent import Agent
from gateway.approvals import (
    Answer,
    Approve,
    ClickOutcome,
    Resolution,
    Supersede,
    check_answer,
    may_decide,
    next_state,
    normal_answer,
)
from gateway.clock import Clock
from gateway.messages import Actor, ThreadKey
from gateway.notices import click_text, person
from gateway.store.base import Store
from gateway.store.rows import PendingRecord, Verdict
from gateway.tools.base import MASK, schema_problems

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Click:
    """A person's word. `key` and `ref`: the message that was pressed; None for words that did not
    come from a card (API, command, terminal). `roles`: the platform's ids of the person's roles."""

    pending_id: str
    resolution: Resolution
    actor: Actor
    name: str = ""
    roles: frozenset[str] = frozenset()
    key: ThreadKey | None = None
    ref: str | None = None
    via: str = ""
    consumes: tuple[ThreadKey, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickResult:
    """One of the eight outcomes, in words for the person who clicked, and the row after it.
    `problems`: for `invalid`, (argument, what is wrong)."""

    outcome: ClickOutcome
    text: str
    record: PendingRecord | None = None
    still_open: int = 0
    problems: tuple[tuple[str, str], ...] = field(default=())


class Resolutions:
    """Decides clicks. `wake`: the session has something to go on with. `nudge`: its cards or
    lists look different now."""

    def __init__(
        self,
        store: Store,
        agents: Mapping[str, Agent],
        clock: Clock,
        operators: Sequence[str],
        wake: Callable[[str], None],
        nudge: Callable[[str], None],
    ) -> None:
        self._store, self._agents, self._clock = store, agents, clock
        self._operators, self._wake, self._nudge = tuple(operators), wake, nudge

    async def decide(self, click: Click) -> ClickResult:
        """Carry out one click. Never raises for anything that a person can do."""
        record = await self._store.pending(click.pending_id)
        if record is None or not await self.belongs(click.key, click.ref, record):
            await self._note(click, "unknown", record)
            return ClickResult(outcome="unknown", text=click_text("unknown", None))
        click = _with_secrets(click, record)
        if record.state == "open":
            if not self.may_decide(click.actor, click.roles, record):
                await self._note(click, "forbidden", record)
                return ClickResult(outcome="forbidden", text=click_text("forbidden", record), record=record)
            problems = self._problems(click.resolution, record)
            if problems:
                words = "; ".join(f"{name}: {text}" if name else text for name, text in problems)
                return ClickResult(
                    outcome="invalid", text=f"Not accepted: {words}", record=record, problems=problems
                )
        return await self._resolve(click, record)

    def changed(self, session_id: str) -> None:
        """Something of this session looks different now."""
        self._nudge(session_id)

    async def withdraw(self, pending_id: str, actor: Actor, name: str) -> None:
        """The question is no longer wanted: something else was said instead of an answer."""
        verdict = Verdict(
            pending_id=pending_id,
            resolution=Supersede(by="a newer message"),
            actor=actor,
            by=person(actor, name),
            at=self._clock.now(),
        )
        resolved = await self._store.resolve(verdict)
        if resolved.record is not None:
            self._wake(resolved.record.session_id)
            self._nudge(resolved.record.session_id)

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

    async def _resolve(self, click: Click, record: PendingRecord) -> ClickResult:
        agent = self._agents.get(record.agent)
        resolution = click.resolution
        if isinstance(resolution, Answer) and record.pending.question is not None:
            resolution = Answer(values=normal_answer(record.pending.question, resolution.values))
        verdict = Verdict(
            pending_id=record.id,
            resolution=resolution,
            actor=click.actor,
            by=person(click.actor, click.name),
            at=self._clock.now(),
            via=click.via,
            stops_batch=agent is None or agent.on_denial == "stop",
            consumes=click.consumes,
        )
        faults.reach("resolution.before")
        resolved = await self._store.resolve(verdict)
        faults.reach("resolution.after")
        self._wake(record.session_id)
        self._nudge(record.session_id)
        text = click_text(
            resolved.outcome,
            resolved.record,
            still_open=resolved.still_open,
            votes_missing=resolved.votes_missing,
        )
        return ClickResult(
            outcome=resolved.outcome, text=text, record=resolved.record, still_open=resolved.still_open
        )

    async def belongs(self, key: ThreadKey | None, ref: str | None, record: PendingRecord) -> bool:
        """A card's button counts only on a copy of that card that we have posted. A copy whose
        reference was lost with a dead process is recognised by its place and adopted."""
        if key is None:
            return True
        copies = [copy for copy in await self._store.card_copies(record.id) if copy.key[:3] == key[:3]]
        if any(ref in copy.refs for copy in copies):
            return True
        if ref and any(copy.unsure for copy in copies):
            await self._store.adopt_card(record.id, key, ref)
            return True
        return False

    def _problems(self, resolution: Resolution, record: PendingRecord) -> tuple[tuple[str, str], ...]:
        pending = record.pending
        if next_state(pending.kind, resolution) is None:
            asked = "an answer" if pending.kind == "question" else "approve or deny"
            return (("", f"this request wants {asked}"),)
        match resolution:
            case Answer(values=values) if pending.question is not None:
                wrong = check_answer(pending.question, values)
                return (("answer", wrong.removeprefix("answer: ")),) if wrong else ()
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

    async def _note(self, click: Click, what: str, record: PendingRecord | None) -> None:
        """Attempts that changed nothing are on record too."""
        body = {"via": click.via, "word": type(click.resolution).__name__.lower()}
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


def _with_secrets(click: Click, record: PendingRecord) -> Click:
    """Edited arguments come from places that never saw the secret ones: those that are left out,
    or come back as the mask, keep their stored values."""
    resolution, stored = click.resolution, record.pending.args
    if not isinstance(resolution, Approve) or resolution.edited_args is None:
        return click
    edited = resolution.edited_args
    kept = {
        name: stored[name]
        for name in record.pending.secret
        if name in stored and edited.get(name, MASK) == MASK
    }
    if {**edited, **kept} == stored:
        return replace(click, resolution=Approve(scope=resolution.scope))
    return replace(click, resolution=Approve(scope=resolution.scope, edited_args={**edited, **kept}))
