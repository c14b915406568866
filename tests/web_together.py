"""The part of the agent house in memory that asks about several calls at once: `both`, and `closed`, whose
arguments only web:boss sees. `diff` and `picture` ask about one call with a preview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from channels.base import Actor
from channels.web.backend import ClickResult, Json, PendingCard
from tests.web_scripts import Session, approval
from tests.web_waiting import called_by

BOSS = "web:boss"
DIFF = "--- price.txt\n+++ price.txt\n@@ -1 +1 @@\n-20 EUR <b>old</b>\n+30 EUR"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d494844520000000100000001080600000" "01f15c489"
    "0000000d49444154789c6360f8cfc0f01f00050001ff56c7a54b0000000049454e44ae426082"
)  # fmt: skip


class Together:
    """A part of `MemoryBackend`."""

    cards: dict[str, PendingCard]
    now: float

    def many(
        self, session: Session, word: str, numbers: Sequence[int]
    ) -> tuple[list[Json], list[PendingCard]]:
        """The calls that a word asks for, and their cards."""
        made = [self._card(session, word, place, number) for place, number in enumerate(numbers)]
        calls = [
            {"type": "tool_use", "id": card.call_id, "name": card.tool, "input": card.args} for card in made
        ]
        together = [replace(card, card=made[0].pending_id) for card in made]
        return calls, together

    def _card(self, session: Session, word: str, place: int, number: int) -> PendingCard:
        card = approval(number, session.id, session.agent, {"order_id": f"A-{place + 1}"}, self.now)
        card = replace(card, place=place)
        extra: dict[str, dict[str, Any]] = {
            "closed": {"reveal": "approvers", "approvers": (BOSS,), "deciders": BOSS},
            "diff": {"preview": DIFF, "preview_kind": "diff"},
            "picture": {"image": True},
        }
        return replace(card, **extra.get(word, {}))

    def seen_by(self, card: PendingCard, actor: Actor) -> PendingCard:
        """The card as this caller may see it."""
        if card.reveal == "everyone" or called_by(actor) in card.approvers:
            return card
        return replace(card, hidden=True, args={}, args_hash="", code="", preview="")

    async def preview_image(self, pending_id: str, *, actor: Actor) -> tuple[bytes, str] | None:
        card = self.cards.get(pending_id)
        return (PIXEL, "image/png") if card is not None and card.image else None

    async def resolve_card(
        self, card: str, decision: Literal["approve", "deny"], *, actor: Actor
    ) -> ClickResult:
        waiting = [c for c in self.cards.values() if card in (c.card, c.pending_id) and c.state == "open"]
        results = [(one, await self._one(one.pending_id, decision, actor)) for one in waiting]
        if not results:
            return ClickResult(outcome="unknown", message="nothing of that id waits here")
        told = [
            {"pending_id": one.pending_id, "outcome": r.outcome, "message": r.message} for one, r in results
        ]
        last = results[-1][1]
        details = {"card": card, "session_id": waiting[0].session_id, "results": told}
        return ClickResult(
            outcome=last.outcome, message=f"{len(told)} calls: {last.message}", details=details
        )

    async def _one(self, pending_id: str, decision: Literal["approve", "deny"], actor: Actor) -> ClickResult:
        """Done by `MemoryBackend`."""
        raise NotImplementedError
