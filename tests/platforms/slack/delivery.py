"""Deliveries to the app: acknowledged within three seconds, or repeated as Slack repeats them."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import aiohttp

from tests.platforms.slack import limits
from tests.platforms.slack.limits import Json
from tests.platforms.slack.world import Timer, World

Kind = Literal["events_api", "interactive", "slash_commands"]
FORM = "application/x-www-form-urlencoded"


@dataclass
class Attempt:
    """One try to hand something over. `via`: an address or the id of a connection."""

    via: str
    at: float
    retry: int
    reason: str = ""  # of the failure before it
    failed: str = ""  # how this one failed, "" for not (yet)
    envelope_id: str = ""


@dataclass(eq=False)
class Delivery:
    """One payload on its way. `answer` is the body of the acknowledgement, {} for an empty one."""

    world: Deliveries = field(repr=False)
    id: str  # event_id of an event
    kind: Kind
    payload: Json = field(repr=False)
    user: str
    when_done: Callable[[Delivery], None] | None = None
    attempts: list[Attempt] = field(default_factory=list)
    acked: bool = False
    failed: str = ""  # why it was given up
    answer: Json = field(default_factory=dict)
    timer: Timer | None = None  # of the repetition to come

    @property
    def in_flight(self) -> bool:
        return not self.acked and not self.failed and self.timer is None

    async def taken(self, within: float = 30.0) -> Delivery:
        """Wait until the app has acknowledged. AssertionError when Slack gave it up."""
        await self.world.wait_for(lambda: self.acked or bool(self.failed), within)
        assert not self.failed, f"{self.kind} was given up: {self.failed}"
        return self

    @property
    def payload_type(self) -> str:
        return str(self.payload.get("event", self.payload).get("type", self.kind))


class Deliveries(World):
    """The queue of what the app is told, and posting it by HTTP. Sockets are in sockets.py."""

    def __init__(self) -> None:
        super().__init__()
        self.deliveries: list[Delivery] = []
        self.ack_within = limits.ACKNOWLEDGE
        self._addresses: dict[Kind, str] = {}
        self._posting: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None

    def deliver_to(
        self, events: str | None, interactions: str | None = None, commands: str | None = None
    ) -> None:
        """Post to these addresses from now on; None: Socket Mode again. One address may serve for all."""
        self._addresses = {}
        if events is not None:
            self._addresses = {
                "events_api": events,
                "interactive": interactions or events,
                "slash_commands": commands or events,
            }

    # ---- life of a delivery

    def deliver(
        self,
        kind: Kind,
        payload: Json,
        user: str,
        when_done: Callable[[Delivery], None] | None = None,
        *,
        retry: int = 0,
    ) -> Delivery:
        """Hand a payload to the app."""
        id = str(payload.get("event_id") or self.new_id("I"))
        delivery = Delivery(self, id, kind, payload, user, when_done)
        self.deliveries.append(delivery)
        self.attempt(delivery, retry, "http_error" if retry else "")
        return delivery

    def attempt(self, delivery: Delivery, retry: int, reason: str) -> None:
        """Try once to hand it over."""
        delivery.timer = None
        address = self._addresses.get(delivery.kind)
        attempt = Attempt(address or "", self.now(), retry, reason)
        delivery.attempts.append(attempt)
        if address:
            task = asyncio.get_running_loop().create_task(self._post(delivery, attempt, address))
            self._posting.add(task)
            task.add_done_callback(self._posting.discard)
        else:
            self.send(delivery, attempt)

    def send(self, delivery: Delivery, attempt: Attempt) -> None:
        """Send an envelope to one connection."""
        raise NotImplementedError

    def attempt_failed(self, delivery: Delivery, attempt: Attempt, reason: str) -> None:
        """The try came to nothing: again later, or never."""
        attempt.failed = reason
        if delivery.acked or delivery.failed or delivery.attempts[-1] is not attempt:
            return
        if delivery.kind == "events_api" and attempt.retry < len(limits.RETRIES):
            due = self.now() + limits.RETRIES[attempt.retry]
            delivery.timer = self.at(due, lambda: self.attempt(delivery, attempt.retry + 1, reason))
        else:
            self._finish(delivery, failed=reason)
            if delivery.kind != "events_api":
                self.troubles.append((delivery.user, delivery.payload_type, reason))
        self.changed()

    def acknowledged(self, delivery: Delivery, answer: Json) -> None:
        """The app has taken it."""
        if delivery.acked or delivery.failed:
            return
        delivery.answer, delivery.acked = answer, True
        self._finish(delivery)

    def _finish(self, delivery: Delivery, failed: str = "") -> None:
        delivery.failed = failed
        if delivery.timer is not None:
            delivery.timer.cancel()
            delivery.timer = None
        if delivery.when_done is not None:
            delivery.when_done(delivery)
        self.changed()

    def retry_now(self) -> int:
        """Send everything that waits for its repetition at once; how many that were."""
        waiting = [d.timer for d in self.deliveries if d.timer is not None]
        for timer in waiting:
            timer.fire()
        return len(waiting)

    async def settled(self, within: float = 30.0) -> None:
        """Wait until nothing is in flight: all is acknowledged, given up, or waits for its repetition."""
        await self.wait_for(lambda: not any(d.in_flight for d in self.deliveries), within)

    # ---- HTTP

    async def _post(self, delivery: Delivery, attempt: Attempt, address: str) -> None:
        body, content_type = self.encoded(delivery)
        headers = self.signed(body)
        if attempt.retry:
            headers["X-Slack-Retry-Num"] = str(attempt.retry)
            headers["X-Slack-Retry-Reason"] = attempt.reason
        try:
            async with asyncio.timeout(self.ack_within):
                status, text, more = await self.post(address, body, content_type, headers)
        except TimeoutError:
            self.attempt_failed(delivery, attempt, "http_timeout")
            return
        except aiohttp.ClientError:
            self.attempt_failed(delivery, attempt, "connection_failed")
            return
        if 200 <= status < 300:
            self.acknowledged(delivery, answered(text))
            self._check_answer(delivery)
        else:
            if more.get("X-Slack-No-Retry") == "1":
                attempt.retry = len(limits.RETRIES)
            self.attempt_failed(delivery, attempt, "http_error")

    def _check_answer(self, delivery: Delivery) -> None:
        if delivery.answer and delivery.payload.get("type") in {"block_actions", "event_callback"}:
            self.failures.append(f"a body in the answer to {delivery.payload_type}: {delivery.answer}")

    def encoded(self, delivery: Delivery) -> tuple[bytes, str]:
        """The body and its content type."""
        match delivery.kind:
            case "events_api":
                return json.dumps(delivery.payload).encode(), "application/json"
            case "interactive":
                return urllib.parse.urlencode({"payload": json.dumps(delivery.payload)}).encode(), FORM
            case "slash_commands":
                return urllib.parse.urlencode(delivery.payload).encode(), FORM

    def signed(self, body: bytes, timestamp: str | None = None, secret: str | None = None) -> dict[str, str]:
        """The headers that prove a request. The time is the real one, not the server's clock."""
        stamp = str(int(time.time())) if timestamp is None else timestamp
        key = (self.app.signing_secret if secret is None else secret).encode()
        digest = hmac.new(key, f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}

    async def post(
        self, address: str, body: bytes, content_type: str, headers: dict[str, str]
    ) -> tuple[int, str, dict[str, str]]:
        """One request as Slack makes it: status, text and headers of the answer."""
        assert self._session is not None, "the server is not running"
        base = {"Content-Type": content_type, "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)"}
        async with self._session.post(
            address, data=body, headers=base | headers, allow_redirects=False
        ) as answer:
            return answer.status, await answer.text(), dict(answer.headers)

    async def post_signed(
        self,
        body: bytes | str,
        *,
        content_type: str = "application/json",
        timestamp: str | None = None,
        secret: str | None = None,
        signature: str | None = None,
        url: str | None = None,
    ) -> tuple[int, str]:
        """Any request, well signed or not (`signature=""`: no header at all). Status and text."""
        raw = body.encode() if isinstance(body, str) else body
        headers = self.signed(raw, timestamp, secret)
        if signature is not None:
            headers["X-Slack-Signature"] = signature
        headers = {name: value for name, value in headers.items() if value}
        status, text, _ = await self.post(url or self._addresses["events_api"], raw, content_type, headers)
        return status, text

    async def verify_url(self) -> bool:
        """url_verification: whether the challenge comes back."""
        challenge = self.new_id("challenge")
        body = {"token": self.app.verification, "challenge": challenge, "type": "url_verification"}
        status, text = await self.post_signed(json.dumps(body))
        return status == 200 and challenge in text


def answered(text: str) -> Json:
    """The body of an acknowledgement as an object; bare words are a `text`."""
    if not text.strip():
        return {}
    try:
        body: Any = json.loads(text)
    except ValueError:
        return {"text": text}
    return body if isinstance(body, dict) else {"text": text}
