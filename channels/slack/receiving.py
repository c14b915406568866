"""One way in for everything that Slack sends, by whichever transport: a bolt app with a single handler.

Bolt acknowledges when its handler returns, and ours returns once the payload is stored. A payload that could
not be stored is not acknowledged; over HTTP the answer is 500 then. Bolt's own checks are off: the signature
is checked over the raw body before anything is read (listener.py), and our own messages are known by wire.py.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal

from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient

from channels.slack.redact import LIBRARY, redacted

log = logging.getLogger("channels.slack")

Kind = Literal["event", "interactive", "command"]
State = Literal["starting", "up", "down", "refused", "stopped"]
Payload = Mapping[str, Any]
Handle = Callable[[Kind, Payload], Awaitable[Mapping[str, Any] | None]]

# What bolt raises for payloads whose shape it does not expect.
_MALFORMED: Final = (KeyError, TypeError, AttributeError, ValueError, IndexError)


def kind_of(payload: Payload) -> Kind:
    """Which of the three this is."""
    if "command" in payload and "type" not in payload:
        return "command"
    return "event" if "event" in payload or payload.get("type") == "event_callback" else "interactive"


class Entrance:
    """`handle(kind, payload)` returns what to answer, None for a bare acknowledgement, once the payload is
    stored; whatever it raises means that it was not."""

    def __init__(self, client: AsyncWebClient, handle: Handle) -> None:
        self._handle = handle
        self._app = AsyncApp(
            name="threadgate",
            logger=LIBRARY,
            client=client,
            signing_secret="",
            before_authorize=self._take,
            request_verification_enabled=False,
            ignoring_self_events_enabled=False,
            ssl_check_enabled=False,
            url_verification_enabled=False,
            attaching_function_token_enabled=False,
            attaching_conversation_kwargs_enabled=False,
        )

    async def envelope(self, request: SocketModeRequest) -> BoltResponse:
        """Take what came over a socket. Its status is 200 when it is to be acknowledged."""
        try:
            answer: BoltResponse = await run_async_bolt_app(self._app, request)
        except _MALFORMED as error:
            return _unreadable(error)
        return answer

    async def posted(self, body: str, headers: Mapping[str, str]) -> BoltResponse:
        """Take what was posted over HTTP, its signature checked."""
        try:
            request = AsyncBoltRequest(body=body, headers=dict(headers))
        except _MALFORMED as error:
            return _unreadable(error)
        return await self._app.async_dispatch(request)

    async def _take(self, body: Any) -> BoltResponse:
        """Bolt's handler: never goes on to bolt's others, so that the response is ours alone."""
        if not isinstance(body, Mapping):
            return BoltResponse(status=200, body="")
        if body.get("type") == "url_verification":
            return BoltResponse(status=200, body={"challenge": str(body.get("challenge", ""))})
        kind = kind_of(body)
        try:
            answer = await self._handle(kind, body)
        except Exception as error:  # by the contract any error means: not stored
            log.error(
                "slack: what came in (%s) could not be stored (%s: %s); it is not acknowledged",
                kind,
                type(error).__name__,
                redacted(str(error)),
            )
            return BoltResponse(status=500, body="")
        return BoltResponse(status=200, body=dict(answer) if answer else "")


def _unreadable(error: Exception) -> BoltResponse:
    """Acknowledged all the same: it would be as unreadable the next time."""
    log.warning("slack: a payload of an unknown shape was dropped (%s)", type(error).__name__)
    return BoltResponse(status=200, body="")
