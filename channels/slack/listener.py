"""Receiving over HTTP: Slack posts to us, and what is signed counts.

We listen on plain HTTP behind whatever ends TLS. One check for events, commands, interactions and options
alike, over the bytes as they came, before any of them is read.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl

from slack_bolt.response import BoltResponse
from starlette.requests import Request
from starlette.responses import Response

from channels.posted import PostListener
from channels.slack.limits import SIGNATURE_SECONDS

log = logging.getLogger("channels.slack")

_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Slack's signature of a request, version 0."""
    signed = b"v0:" + timestamp.encode("latin-1", "replace") + b":" + body
    return "v0=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def is_signed(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Whether Slack signed this within the last five minutes. Without a secret nothing is signed.

    headers: with lower-case names. now: Unix seconds.
    """
    timestamp = headers.get("x-slack-request-timestamp", "")
    given = headers.get("x-slack-signature", "")
    if not secret or not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) < 16):
        return False
    if abs(now - int(timestamp)) > SIGNATURE_SECONDS:
        return False
    return hmac.compare_digest(signature(secret, timestamp, body).encode(), given.encode("utf-8", "replace"))


class Listener:
    """The listening side. `take(body, headers)` answers a request that was signed. `now`: Unix seconds."""

    def __init__(
        self,
        host: str,
        port: int,
        path: str,
        secret: str,
        take: Callable[[str, Mapping[str, str]], Awaitable[BoltResponse]],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._secret, self._take, self._now = secret, take, now
        self.refusals = 0  # requests that were not signed
        self._listening = PostListener(host, port, path, self._respond)

    @property
    def port(self) -> int:
        """Where we listen."""
        return self._listening.port

    async def start(self) -> None:
        """Listen. Raises OSError when the port is taken."""
        await self._listening.start()

    async def stop(self) -> None:
        """Stop listening; requests in flight end first."""
        await self._listening.stop()

    async def _respond(self, request: Request, body: bytes) -> Response:
        if not is_signed(self._secret, request.headers, body, self._now()):
            self._refuse()
            return Response(status_code=401)
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type not in (_JSON, _FORM):
            return Response(status_code=415)
        text = _readable(body, media_type)
        if text is None:
            return Response(status_code=400)
        headers = {name: value for name, value in request.headers.items() if name.startswith("x-slack-")}
        answer = await self._take(text, {**headers, "content-type": _JSON})
        return Response(answer.body or b"", answer.status, media_type=_JSON if answer.body else None)

    def _refuse(self) -> None:
        """Said once: whoever finds the address can send any number of them."""
        level = logging.DEBUG if self.refusals else logging.WARNING
        self.refusals += 1
        log.log(level, "slack: a request without a valid signature was refused; is signing_secret right?")


def _readable(body: bytes, media_type: str) -> str | None:
    """The payload as JSON, None for what is none. Bolt is never shown a form: it takes any that has the word
    "payload" somewhere for an interaction, and would lose a command with that word in its text."""
    try:
        text = body.decode()
        if media_type == _FORM:
            form = dict(parse_qsl(text, keep_blank_values=True))
            text = form["payload"] if "payload" in form else json.dumps(form)
        return text if isinstance(json.loads(text), dict) else None
    except (ValueError, RecursionError):  # no JSON, or nested too deeply for anything of Slack's
        return None
