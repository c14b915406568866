"""A small bolt app against the server, which writes down what it gets: for tests of the server itself."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from aiohttp import web
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from tests.platforms.slack.limits import Json
from tests.platforms.slack.server import SlackServer

Answer = Callable[[Json], Awaitable[Json | None]]


class Listener:
    """Gets everything, answers `{}` or what `answers` says for the type of a payload."""

    def __init__(self, server: SlackServer) -> None:
        self.server = server
        self.got: list[Json] = []
        self.answers: dict[str, Answer] = {}
        self.client = AsyncWebClient(token=server.app.bot_token, base_url=server.api_base, retry_handlers=[])
        self.app = AsyncApp(
            client=self.client,
            signing_secret=server.app.signing_secret,
            process_before_response=True,
            ignoring_self_events_enabled=False,
            request_verification_enabled=True,
        )
        self.app.use(self._take)

    async def _take(self, body: Json, ack: Any) -> Any:
        self.got.append(body)
        self.server.changed()
        answer = self.answers.get(self.kind(body))
        return await ack(**(await answer(body) or {})) if answer is not None else await ack()

    @staticmethod
    def kind(body: Json) -> str:
        """events by their own type, commands as `command`."""
        return str(body.get("event", body).get("type") or "command")

    def of(self, kind: str) -> list[Json]:
        """What came of one kind, in order."""
        return [body for body in self.got if self.kind(body) == kind]

    @contextlib.asynccontextmanager
    async def connected(self, ping_interval: float = 0.2) -> AsyncIterator[AsyncSocketModeHandler]:
        """One Socket Mode connection."""
        handler = AsyncSocketModeHandler(self.app, self.server.app.app_token, ping_interval=ping_interval)
        before = self.server.connected
        await handler.connect_async()
        await self.server.wait_for(lambda: self.server.connected > before)
        try:
            yield handler
        finally:
            await handler.close_async()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """The app behind HTTP; its address."""
        app = self.app.web_app("/slack/events")
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
        finally:
            await runner.cleanup()
