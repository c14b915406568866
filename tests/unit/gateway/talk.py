"""A chat platform in memory: what people wrote and pressed goes in, what they would see is kept."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from channels.base import (
    Abilities,
    Actor,
    Attachment,
    Card,
    ChannelError,
    Inbound,
    InboundMessage,
    InboundPress,
    Limits,
    MessageRef,
    OutboundMessage,
    Progress,
    ThreadKey,
)

HERE = ThreadKey("talk", "w", "room", "")
ELSEWHERE = ThreadKey("talk", "w", "desk", "")
CUT = "\n---\n"  # where this platform cuts a long message


@dataclass
class World:
    """What the platform knows; outlives every process that talks to it."""

    said: list[tuple[ThreadKey, str]] = field(default_factory=list)
    messages: list[tuple[ThreadKey, OutboundMessage]] = field(default_factory=list)
    cards: dict[str, Card] = field(default_factory=dict)
    places: dict[str, ThreadKey] = field(default_factory=dict)
    answers: list[tuple[str, str]] = field(default_factory=list)
    roles: dict[str, frozenset[str]] = field(default_factory=dict)
    roles_at: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    earlier: list[InboundMessage] = field(default_factory=list)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def texts(self, key: ThreadKey = HERE) -> list[str]:
        """What was written in a thread."""
        return [text for where, text in self.said if where == key]

    def card(self, *, state: str = "open", key: ThreadKey | None = None) -> tuple[MessageRef, Card]:
        """The only card in that state."""
        found = [
            (MessageRef(ref), card)
            for ref, card in self.cards.items()
            if card.state == state and (key is None or self.places[ref] == key)
        ]
        assert len(found) == 1, [(ref, card.state, card.title) for ref, card in self.cards.items()]
        return found[0]

    def live(self) -> list[MessageRef]:
        """Cards with controls."""
        parts = {ref: (card, *card.calls) for ref, card in self.cards.items()}
        return [MessageRef(ref) for ref, all_ in parts.items() if any(p.buttons or p.choices for p in all_)]


class TalkChannel:
    """See channels.base.Channel. `trouble`: what the next calls raise; `held`: sends wait for it;
    `lost`: the next card is posted and its reference never comes back."""

    name = "talk"
    abilities = Abilities(forms=True)
    limits = Limits(text=4_000, unit="codepoint")

    def __init__(self, world: World) -> None:
        self.world = world
        self.inbound: Inbound | None = None
        self.trouble: list[ChannelError | Exception | None] = []
        self.held: asyncio.Event | None = None
        self.sending = asyncio.Event()

    async def start(self, inbound: Inbound) -> None:
        self.inbound = inbound

    async def stop(self) -> None:
        self.inbound = None

    def parts(self, message: OutboundMessage) -> Sequence[OutboundMessage]:
        return [replace(message, text=text) for text in message.text.split(CUT)]

    async def send(self, target: ThreadKey, message: OutboundMessage) -> MessageRef:
        await self._call()
        self.world.said.append((target, message.text))
        self.world.messages.append((target, message))
        return self._ref()

    def below(self, target: ThreadKey, ref: MessageRef) -> ThreadKey:
        return target if target.thread else target._replace(thread=f"below-{ref}")

    async def edit(self, ref: MessageRef, message: OutboundMessage) -> None:
        await self._call()

    async def show(self, target: ThreadKey, card: Card) -> MessageRef:
        await self._call()
        ref = self._ref()
        self.world.cards[ref], self.world.places[ref] = card, target
        return ref

    async def redraw(self, ref: MessageRef, card: Card) -> None:
        await self._call()
        assert ref in self.world.cards
        self.world.cards[ref] = card

    async def notify_actor(self, press: InboundPress, text: str) -> None:
        self.world.answers.append((press.actor.user, text))

    async def progress(self, target: ThreadKey, state: Progress) -> None:
        """Nobody looks."""

    async def fetch_file(self, attachment: Attachment, into: Path, limit: int) -> None:
        raise ChannelError("there are no files here")

    async def roles(self, actor: Actor, thread: ThreadKey) -> frozenset[str]:
        there = self.world.roles_at.get((thread.conversation, actor.user), frozenset())
        return self.world.roles.get(actor.user, frozenset()) | there

    async def private(self, actor: Actor) -> ThreadKey | None:
        return ThreadKey("talk", "w", f"dm-{actor.user}", "")

    async def earlier(self, thread: ThreadKey, before: str, limit: int) -> Sequence[InboundMessage]:
        return self.world.earlier[-limit:]

    async def _call(self) -> None:
        self.sending.set()
        if self.held is not None:
            await self.held.wait()
        error = self.trouble.pop(0) if self.trouble else None
        if error is not None:
            raise error

    def _ref(self) -> MessageRef:
        return MessageRef(f"r{next(self.world.numbers)}")

    # ---- people

    async def say(
        self, text: str, *, user: str = "ann", key: ThreadKey = HERE, message_id: str = "", **more: Any
    ) -> str:
        """A person writes; the message's id."""
        assert self.inbound is not None
        identity = message_id or f"m{next(self.world.numbers)}"
        message = InboundMessage(
            thread=key,
            message_id=identity,
            actor=Actor("talk", "w", user),
            text=text,
            sent_at=0.0,
            author=user.title(),
            **more,
        )
        await self.inbound.message(message)
        return identity

    async def press(
        self,
        ref: str | None,
        data: str,
        *,
        user: str = "ann",
        key: ThreadKey | None = None,
        values: Mapping[str, str | tuple[str, ...]] | None = None,
        action_id: str = "",
    ) -> None:
        """A person presses something on the message `ref`."""
        assert self.inbound is not None
        where = key if key is not None else self.world.places.get(ref or "", HERE)
        await self.inbound.press(
            InboundPress(
                thread=where,
                action_id=action_id or f"a{next(self.world.numbers)}",
                actor=Actor("talk", "w", user),
                data=data,
                message_ref=MessageRef(ref) if ref else None,
                sent_at=0.0,
                values=values or {},
                author=user.title(),
            )
        )


def button(card: Card, label: str) -> str:
    """What a button, an option or a form of this card carries."""
    by_label = {b.label: b.data for b in card.buttons} | {c.label: c.data for c in card.choices}
    return by_label[label]
