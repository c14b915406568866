"""Posting updates to a webhook, as the platform does: several at once, each again until it is taken."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx

from tests.platforms.telegram.checks import Json
from tests.platforms.telegram.server import TelegramServer
from tests.platforms.telegram.world import Bot

AGAIN = 0.05  # seconds until an update that was not taken is posted again


class Pusher:
    """Posts what waits for the first bot to `address`, which stands for its public one."""

    def __init__(self, server: TelegramServer, address: str) -> None:
        self._server, self._address = server, address
        self._posting: dict[int, asyncio.Task[None]] = {}
        self.statuses: list[int] = []

    async def run(self) -> None:
        """Post until cancelled."""
        bot = next(iter(self._server.bots.values()))
        async with httpx.AsyncClient(limits=httpx.Limits(max_connections=bot.connections)) as client:
            try:
                while True:
                    await self._server.wait_for(lambda: self._waiting(bot), within=3600)
                    for update in self._waiting(bot):
                        self._posting[id(update)] = asyncio.create_task(self._post(client, bot, update))
            finally:
                for task in list(self._posting.values()):
                    task.cancel()
                await asyncio.gather(*self._posting.values(), return_exceptions=True)

    def _waiting(self, bot: Bot) -> list[Json]:
        free = bot.connections - len(self._posting)
        return [u for u in bot.updates if id(u) not in self._posting][: max(0, free)] if bot.webhook else []

    async def _post(self, client: httpx.AsyncClient, bot: Bot, update: Json) -> None:
        headers = {"X-Telegram-Bot-Api-Secret-Token": bot.webhook.get("secret_token", "")}
        taken = False
        with contextlib.suppress(httpx.HTTPError):
            answer = await client.post(self._address, json=update, headers=headers, timeout=60)
            self.statuses.append(answer.status_code)
            taken = answer.is_success
        if taken:
            bot.updates[:] = [one for one in bot.updates if one is not update]
        else:
            await asyncio.sleep(AGAIN)
        del self._posting[id(update)]
        self._server.changed()


@contextlib.asynccontextmanager
async def pushed(server: TelegramServer, address: str) -> AsyncIterator[Pusher]:
    """Within the block, updates are posted."""
    pusher = Pusher(server, address)
    task = asyncio.create_task(pusher.run())
    try:
        yield pusher
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
