"""Everybody's App Home, as it was last drawn: kept right while somebody looks at it.

Slack says when a home is opened and nothing more. What changes meanwhile is drawn by the process that knows:
a decided request leaves the homes that list it, a new one comes into those that were opened a moment ago.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

from channels.base import Actor, Card, Inbound
from channels.slack import home
from channels.slack.calls import Calls

LOOKS_SECONDS: Final = 300.0  # for which somebody who has opened it may still be looking
MOST_LOOKING: Final = 10  # homes that are drawn anew for a new request
KEPT: Final = 1000


@dataclass(slots=True)
class _Home:
    opened: float = float("-inf")
    listed: frozenset[str] = frozenset()


class Homes:
    """`inbound` is set when it is known."""

    def __init__(self, calls: Calls, monotonic: Callable[[], float]) -> None:
        self.inbound: Inbound | None = None
        self._calls, self._monotonic = calls, monotonic
        self._homes: OrderedDict[Actor, _Home] = OrderedDict()
        self._orders: WeakValueDictionary[Actor, asyncio.Lock] = WeakValueDictionary()

    async def opened(self, actor: Actor) -> None:
        """Somebody looks. Raises ChannelError."""
        self._of(actor).opened = self._monotonic()
        await self.publish(actor)

    async def publish(self, actor: Actor, note: str = "") -> None:
        """Draw what waits for this person, below the note. Raises ChannelError."""
        if self.inbound is None:
            return
        order = self._orders.setdefault(actor, asyncio.Lock())
        async with order:  # or an older list could be drawn over a newer one
            waiting = await self.inbound.waiting(actor)
            self._of(actor).listed = frozenset(
                one.card_id for card in waiting for one in (card, *card.calls) if one.state == "open"
            )
            await self._calls.publish_home(actor.user, home.view(waiting, note))

    def stale(self, card: Card) -> list[Actor]:
        """Whose home lists what is settled now."""
        settled = {one.card_id for one in (card, *card.calls) if one.state != "open"}
        return [actor for actor, home in self._homes.items() if not settled.isdisjoint(home.listed)]

    def looking(self) -> list[Actor]:
        """Who may be looking right now, those who came last."""
        since = self._monotonic() - LOOKS_SECONDS
        actors = [actor for actor, home in self._homes.items() if home.opened >= since]
        return sorted(actors, key=lambda actor: self._homes[actor].opened)[-MOST_LOOKING:]

    def _of(self, actor: Actor) -> _Home:
        known = self._homes.setdefault(actor, _Home())
        self._homes.move_to_end(actor)
        while len(self._homes) > KEPT:
            self._homes.popitem(last=False)
        return known
