"""What callers of the web channel may see: the arguments of a request whose rule says
`reveal = "approvers"` are for those who may decide it, wherever they would appear."""

from __future__ import annotations

import asyncio
import json
import mimetypes
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gateway.app.following import Followed
from gateway.app.outlet import below
from gateway.clock import Clock
from gateway.messages import Actor, Json
from gateway.resolutions import Resolutions
from gateway.store.base import Store
from gateway.store.rows import PendingRecord

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})  # no SVG: it can hold scripts
_ALL = 100_000  # requests of one session
_KEPT = 10_000  # looks remembered, so that a page that asks again and again is on record once


class Eyes:
    """Who sees what. Tokens have no roles: only ids count."""

    def __init__(self, store: Store, resolutions: Resolutions, clock: Clock, folder: Path) -> None:
        """`folder`: the data folder, below which the pictures of previews are."""
        self._store, self._resolutions, self._clock, self._folder = store, resolutions, clock, folder
        self._looked: dict[tuple[Actor, str], None] = {}

    def see(self, actor: Actor, record: PendingRecord) -> bool:
        """Whether all of a request is for this caller."""
        if record.pending.reveal == "everyone":
            return True
        return self._resolutions.may_decide(actor, frozenset(), record)

    async def viewed(self, actor: Actor, records: Sequence[PendingRecord]) -> None:
        """What only deciders see is shown to one of them now: that is on record. Raises StoreError."""
        for record in records:
            look = (actor, record.id)
            closed = record.pending.reveal == "approvers" and record.state == "open"
            if not closed or look in self._looked or not self.see(actor, record):
                continue
            body: Json = {"tool": record.pending.tool, "what": "card", "via": "http"}
            await self._store.audit(
                "viewed",
                str(actor),
                body,
                self._clock.now(),
                session_id=record.session_id,
                pending_id=record.id,
            )
            self._looked[look] = None
            while len(self._looked) > _KEPT:
                del self._looked[next(iter(self._looked))]

    async def image(self, actor: Actor, record: PendingRecord) -> tuple[bytes, str] | None:
        """The picture that goes with a request, and its media type; None where there is none to see."""
        name = record.pending.preview_image
        kind = mimetypes.guess_type(name)[0] or ""
        if not name or kind not in IMAGES or not self.see(actor, record):
            return None
        path = await asyncio.to_thread(below, self._folder, name)
        return None if path is None else (await asyncio.to_thread(path.read_bytes), kind)


class EventEyes:
    """One reader of one session's events."""

    def __init__(self, store: Store, eyes: Eyes, actor: Actor, session_id: str) -> None:
        self._store, self._eyes, self._actor, self._session_id = store, eyes, actor, session_id
        self._turn_id, self._hidden = "", frozenset[str]()

    async def read(self, event: Followed) -> Followed:
        """The event as this reader may have it. Raises StoreError."""
        if event.type not in ("approval:pending", "tool:started"):
            return event
        data = json.loads(event.data)
        if event.type == "approval:pending":
            record = await self._store.pending(data["pending_id"])
            closed = record is not None and not self._eyes.see(self._actor, record)
        else:
            closed = data["call_id"] in await self._hidden_in(event.turn_id)
        if not closed:
            return event
        return replace(event, data=json.dumps({**data, "args": {}, "hidden": True}, ensure_ascii=False))

    async def _hidden_in(self, turn_id: str) -> frozenset[str]:
        """Looked up once for each turn: a call that was asked about runs in a later one."""
        if turn_id != self._turn_id:
            records = await self._store.pendings(session_id=self._session_id, open_only=False, limit=_ALL)
            own = (r for r in records if r.session_id == self._session_id)
            closed = (r for r in own if not self._eyes.see(self._actor, r))
            self._turn_id, self._hidden = turn_id, frozenset(r.pending.call_id for r in closed)
        return self._hidden
