"""Webhooks: rows of the outbox that are posted to an address of the configuration, signed.

A row is posted until the receiver says 2xx, with growing pauses, for about a day. It has the same id
each time, so that a receiver can tell a repeat. Nothing of an address or a secret is written to the log.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec

from channels.web.wire import pending_body
from gateway.app.sessions import card_of
from gateway.clock import Clock
from gateway.deliveries import DeliveryFailed, Outlet, Posted
from gateway.errors import ConfigError
from gateway.letters import WEBHOOK
from gateway.messages import Json
from gateway.store.base import Store
from gateway.store.rows import Delivery, PendingRecord

if TYPE_CHECKING:
    import httpx2

SECONDS = 10.0  # for one attempt
FIRST_PAUSE, LAST_PAUSE = 5.0, 3_600.0  # seconds
MOST_ATTEMPTS = 30  # about a day
GONE = 410  # the receiver wants nothing of this any more
USER_AGENT = "threadgate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """Where to, and the key of the signature."""

    url: str
    secret: str


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """`v1=` and the hex HMAC-SHA256 of timestamp, a dot, and the body."""
    digest = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return f"v1={digest.hexdigest()}"


class Webhooks:
    """See gateway.deliveries.Outlet. Raises ConfigError when there are hooks and no HTTP client."""

    def __init__(self, store: Store, hooks: Mapping[str, Hook], clock: Clock) -> None:
        self._store, self._hooks, self._clock = store, hooks, clock
        self._client: httpx2.AsyncClient | None = None
        if hooks:
            _library()

    def serves(self, channel: str) -> bool:
        """Whether a row of this channel is a webhook's."""
        return channel == WEBHOOK

    async def close(self) -> None:
        """Let go of the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def deliver(self, row: Delivery) -> AsyncIterator[Posted]:
        """Post the row."""
        hook = self._hooks.get(row.key.conversation)
        if hook is None:
            raise DeliveryFailed("no webhook of this name is configured", final=row.attempts >= MOST_ATTEMPTS)
        told = await self._told(row)
        if told is not None:
            await self._post(hook, row, msgspec.json.encode({"id": f"d_{row.id}", **told}))
        yield Posted(f"d_{row.id}")

    async def _told(self, row: Delivery) -> Json | None:
        """What is said, None where there is nothing to say any more."""
        if row.kind not in ("card", "redraw"):
            event: Json | None = row.payload.get("event")
            if event is not None:
                return event
            return {"type": "notice", "text": row.payload["text"]} if "text" in row.payload else None
        records = await self._store.pendings(card=row.pending_id, open_only=False)
        if not records:
            return None
        what = "pending" if row.kind == "card" else "changed"
        return {
            "type": f"{records[0].pending.kind}:{what}",
            "pending": [_entry(record) for record in records],
        }

    async def _post(self, hook: Hook, row: Delivery, body: bytes) -> None:
        httpx = _library()
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=SECONDS, follow_redirects=False, trust_env=False)
        timestamp = str(int(self._clock.now()))
        headers = {
            "content-type": "application/json",
            "user-agent": USER_AGENT,
            "x-threadgate-delivery": f"d_{row.id}",
            "x-threadgate-timestamp": timestamp,
            "x-threadgate-signature": signature(hook.secret, timestamp, body),
        }
        try:
            async with self._client.stream("POST", hook.url, content=body, headers=headers) as response:
                status, wait = response.status_code, response.headers.get("retry-after", "")
        except httpx.ConnectError as error:
            raise _failed(row, type(error).__name__) from None
        except httpx.HTTPError as error:  # its words may name the address
            raise _failed(row, type(error).__name__, unsure=True) from None
        if status == GONE:
            raise DeliveryFailed("the receiver answered 410, gone", final=True)
        if not 200 <= status < 300:
            raise _failed(row, f"the receiver answered {status}", wait=wait)


def _failed(row: Delivery, reason: str, *, unsure: bool = False, wait: str = "") -> DeliveryFailed:
    """Again after a while, which grows; a receiver may ask for a longer one."""
    pause = min(LAST_PAUSE, FIRST_PAUSE * 3 ** min(row.attempts - 1, 10))
    if wait.isascii() and wait.isdecimal():
        pause = min(LAST_PAUSE, max(pause, float(wait)))
    return DeliveryFailed(reason, final=row.attempts >= MOST_ATTEMPTS, retry_after=pause, unsure=unsure)


def _entry(record: PendingRecord) -> Json:
    """As in `GET /pending`, and what became of it. What only those who decide may see is left out."""
    card = card_of(record, hidden=record.pending.reveal == "approvers")
    body = pending_body(card)
    return {**body, "state": card.state, "message": card.status}


def _library() -> ModuleType:
    try:
        import httpx2
    except ImportError as error:
        raise ConfigError(
            "webhooks", "need the package httpx2", "pip install 'threadgate[webhooks]'"
        ) from error
    return httpx2


class WithWebhooks:
    """Both ways out. See gateway.deliveries.Outlet."""

    def __init__(self, outlet: Outlet, hooks: Webhooks) -> None:
        self._outlet, self._hooks = outlet, hooks

    def serves(self, channel: str) -> bool:
        """Whether this process can send there."""
        return self._hooks.serves(channel) or self._outlet.serves(channel)

    def deliver(self, row: Delivery) -> AsyncIterator[Posted]:
        """Send the row."""
        return (self._hooks if self._hooks.serves(row.key.channel) else self._outlet).deliver(row)
