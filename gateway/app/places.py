"""What happens to conversations: they get another key, or take messages from us again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from gateway.clock import Clock
from gateway.messages import ThreadKey
from gateway.store.base import Store
from gateway.store.rows import Delivery, Outgoing, PendingRecord

_log = logging.getLogger(__name__)


class Places:
    """Has everything follow, and shows again the cards that nobody can press any more.
    `place`: the thread that a `notify` entry names. `on_deliveries`: sends what is ours to send now."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        place: Callable[[str], ThreadKey | None],
        on_deliveries: Callable[[Sequence[Delivery]], None],
    ) -> None:
        self._store, self._clock, self._place = store, clock, place
        self._on_deliveries = on_deliveries

    async def moved(self, old: ThreadKey, new: ThreadKey) -> None:
        """A conversation, with all its threads, has a new key. Safe to be told twice. Raises StoreError."""
        await self._store.move_thread(old, new)
        _log.warning(
            "%s:%s is %s now; change it where the configuration names it",
            old.channel,
            old.conversation,
            new.conversation,
        )
        await self._show_again(old, new)

    async def back(self, key: ThreadKey) -> None:
        """A conversation takes messages again. What was given up meanwhile stays so, but for what
        still waits for somebody there. Raises StoreError."""
        await self._show_again(key, key)

    async def _show_again(self, old: ThreadKey, new: ThreadKey) -> None:
        """A card for every open request that had one there, or should have had, and has none now."""
        rows: list[Outgoing] = []
        for record in first_on_cards(await self._store.pendings()):
            copies = {copy.key for copy in await self._store.card_copies(record.id)}
            homes = {record.key, *copies, *filter(None, map(self._place, record.pending.notify))}
            wanted = {_as_in(key, new) for key in homes if _in(key, old) or _in(key, new)}
            rows += [
                Outgoing(
                    key=key,
                    kind="card",
                    payload={},
                    session_id=record.session_id,
                    pending_id=record.pending.card_id,
                )
                for key in sorted(wanted - copies)
            ]
        if rows:
            self._on_deliveries(await self._store.enqueue(rows, self._clock.now()))


def first_on_cards(records: Sequence[PendingRecord]) -> list[PendingRecord]:
    """One pending of each card."""
    return list({record.pending.card_id: record for record in reversed(records)}.values())[::-1]


def _in(key: ThreadKey, place: ThreadKey) -> bool:
    """Whether a thread belongs to this conversation."""
    return key[:3] == place[:3]


def _as_in(key: ThreadKey, place: ThreadKey) -> ThreadKey:
    return key._replace(workspace=place.workspace, conversation=place.conversation)
