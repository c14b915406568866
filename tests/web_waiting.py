"""The part of the agent house in memory that cancels, passes on and shows requests, and revokes grants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from channels.base import Actor
from channels.web.backend import (
    AuditEntry,
    ClickOutcome,
    ClickResult,
    GrantLine,
    PendingCard,
    ScheduleLine,
    SentFile,
)


def called_by(actor: Actor) -> str:
    return ":".join(part for part in actor if part)


class Waiting:
    """A part of `MemoryBackend`: what waits, how it ends, and the record of it."""

    cards: dict[str, PendingCard]
    now: float

    def __init__(self) -> None:
        self.lines: dict[str, GrantLine] = {}
        self.planned: dict[str, ScheduleLine] = {}
        self.shown: list[str] = []
        self.sent: dict[tuple[str, int], SentFile] = {}
        self.log: list[AuditEntry] = []

    async def pending(self, actor: Actor, mine: bool = False) -> Sequence[PendingCard]:
        return [
            self.seen_by(card, actor)
            for card in self.cards.values()
            if card.state == "open" and not (mine and self._foreign(card, actor))
        ]

    async def sent_file(self, session_id: str, number: int, *, actor: Actor) -> SentFile | None:
        return self.sent.get((session_id, number))

    async def audit(self, limit: int, before: int | None) -> Sequence[AuditEntry]:
        rows = [entry for entry in reversed(self.log) if before is None or entry.seq < before]
        return rows[:limit]

    def seen_by(self, card: PendingCard, actor: Actor) -> PendingCard:
        """Done by `MemoryBackend`."""
        raise NotImplementedError

    def _settle(self, card: PendingCard, status: str, actor: Actor, what: str, detail: str) -> None:
        self.cards[card.pending_id] = replace(
            card, state="decided", status=status, decided_by=called_by(actor), decided_at=self.now
        )
        self.log.append(
            AuditEntry(
                seq=len(self.log) + 1,
                at=self.now,
                actor=called_by(actor),
                what=what,
                session_id=card.session_id,
                pending_id=card.pending_id,
                tool=card.tool,
                args_hash=card.args_hash,
                detail=detail,
            )
        )

    def decide_unseen(self, pending_id: str, actor: Actor) -> None:
        """Somebody approves it elsewhere, and no page hears of it."""
        self._settle(self.cards[pending_id], f"Approved by {called_by(actor)}", actor, "approved", "")

    def expire(self, pending_id: str) -> None:
        self.cards[pending_id] = replace(
            self.cards[pending_id], state="expired", status="Expired; it was not run"
        )

    def _live(self, pending_id: str, actor: Actor) -> PendingCard | ClickResult:
        card = self.cards.get(pending_id)
        if card is None:
            return _told("unknown", "nothing of that id waits here")
        if card.state != "open":
            closed: dict[str, ClickOutcome] = {"decided": "already"}
            return _told(closed.get(card.state, "superseded"), card.status)
        if self._foreign(card, actor):
            return _told("forbidden", f"only {card.deciders} may do that")
        return card

    @staticmethod
    def _foreign(card: PendingCard, actor: Actor) -> bool:
        return bool(card.approvers) and called_by(actor) not in card.approvers

    async def cancel(self, pending_id: str, *, actor: Actor) -> ClickResult:
        card = self._live(pending_id, actor)
        if isinstance(card, ClickResult):
            return card
        status = f"Cancelled by {actor.user}. It did not run, and nobody refused it."
        self.cards[pending_id] = replace(card, state="superseded", status=status, decided_at=self.now)
        return _told("resumed", "Cancelled.", session_id=card.session_id)

    async def give(self, pending_id: str, to: str, *, actor: Actor) -> ClickResult:
        card = self._live(pending_id, actor)
        if isinstance(card, ClickResult):
            return card
        if ":" not in to:
            problems = [{"field": "to", "message": "a name is no id"}]
            return _told("invalid", "a name is no id", problems=problems)
        self.cards[pending_id] = replace(card, approvers=(to,), deciders=to)
        return _told("recorded", f"Who may decide now: {to}.", session_id=card.session_id)

    async def show(self, pending_id: str, *, actor: Actor) -> ClickResult:
        card = self._live(pending_id, actor)
        if isinstance(card, ClickResult):
            return card
        self.shown.append(pending_id)
        return _told("recorded", "Here it is again.", session_id=card.session_id)

    async def grants(self) -> Sequence[GrantLine]:
        return list(self.lines.values())

    async def revoke(self, grant_id: str, *, actor: Actor) -> ClickResult:
        line = self.lines.get(grant_id)
        if line is None:
            return _told("unknown", "there is no such grant", grant_id=grant_id)
        if line.granted_by == "web:boss" and actor.user != "boss":
            return _told("forbidden", "only web:boss may revoke this", grant_id=grant_id)
        del self.lines[grant_id]
        return _told("recorded", f"Revoked: {line.tool}.", grant_id=grant_id)

    async def schedules(self, actor: Actor) -> Sequence[ScheduleLine]:
        return list(self.planned.values())

    async def cancel_schedule(self, schedule_id: str, *, actor: Actor) -> ClickResult:
        line = self.planned.get(schedule_id)
        if line is None:
            return _told("unknown", "there is no such schedule", schedule_id=schedule_id)
        if line.by == "web:boss" and actor.user != "boss":
            return _told("forbidden", "only web:boss may cancel this", schedule_id=schedule_id)
        del self.planned[schedule_id]
        return _told("recorded", f"Cancelled: {line.code}.", schedule_id=schedule_id)


def planned(schedule_id: str, *, by: str = "web:local") -> ScheduleLine:
    """One schedule as the gateway would list it."""
    return ScheduleLine(
        schedule_id=schedule_id,
        code="abcde",
        name="",
        agent="assistant",
        where="web:local:c1",
        session_id="s1",
        instruction="Say what waits.",
        often="every 4h",
        next_at=1_750_000_000.0,
        by=by,
    )


def granted(
    grant_id: str, *, scope: Literal["session", "always"] = "always", by: str = "web:local"
) -> GrantLine:
    """One grant as the gateway would list it."""
    return GrantLine(
        grant_id=grant_id,
        code="abcde",
        scope=scope,
        agent="assistant",
        tool="issue_refund",
        args={"order_id": "A-1001", "api_key": "••••••"},
        session_id="s1" if scope == "session" else "",
        granted_by=by,
        by=by,
        granted_at=1_750_000_000.0,
    )


def _told(outcome: ClickOutcome, message: str, **details: object) -> ClickResult:
    return ClickResult(outcome=outcome, message=message, details=details)
