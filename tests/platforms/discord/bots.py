"""A small bot on the real discord.py, and raw calls, for the tests of this server."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, TypeVar

import aiohttp
import discord

from tests.platforms.discord.client import usual_intents
from tests.platforms.discord.limits import Json
from tests.platforms.discord.server import DiscordServer

B = TypeVar("B", bound=discord.Client)


class Bot(discord.Client):
    """Remembers what came. `handle`: what it does with an interaction."""

    def __init__(self, intents: discord.Intents | None = None, **options: Any) -> None:
        options.setdefault("guild_ready_timeout", 0.05)
        super().__init__(intents=intents or usual_intents(), enable_debug_events=True, **options)
        self.tree = discord.app_commands.CommandTree(self)
        self.seen: list[discord.Message] = []
        self.events: list[Json] = []
        self._news = asyncio.Event()
        self.pending: asyncio.Queue[discord.Interaction] = asyncio.Queue()

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """discord.py would wait for five seconds before it identifies again."""

    async def on_message(self, message: discord.Message) -> None:
        self.seen.append(message)
        self._news.set()

    async def heard(self, count: int) -> list[str]:
        """Wait until that many messages came; the words of all."""
        async with asyncio.timeout(10):
            while len(self.seen) < count:
                self._news.clear()
                await self._news.wait()
        return [message.content for message in self.seen]

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        self.pending.put_nowait(interaction)

    async def on_socket_raw_receive(self, frame: str) -> None:
        payload = json.loads(frame)
        if payload["op"] == 0:
            self.events.append(payload)

    def told(self, event: str) -> list[Json]:
        """The data of all events of a kind."""
        return [payload["d"] for payload in self.events if payload["t"] == event]

    def place(self, id: str) -> discord.TextChannel:
        """A text channel from the cache."""
        found = self.get_channel(int(id))
        assert isinstance(found, discord.TextChannel)
        return found

    async def next(self) -> discord.Interaction:
        """The next interaction."""
        async with asyncio.timeout(10):
            return await self.pending.get()


@contextlib.asynccontextmanager
async def running(server: DiscordServer, bot: B, sessions: int = 1) -> AsyncIterator[B]:
    """A bot that is connected and ready."""
    task = asyncio.create_task(bot.start(server.token))
    try:
        await server.wait_ready(sessions)
        async with asyncio.timeout(10):
            await bot.wait_until_ready()
        yield bot
    finally:
        await bot.close()
        await asyncio.gather(task, return_exceptions=True)


class Raw:
    """Calls without a library, for what a library would not send."""

    def __init__(self, server: DiscordServer, session: aiohttp.ClientSession) -> None:
        self.server, self.session = server, session
        self.headers: dict[str, str] = {}

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        files: dict[str, bytes] | None = None,
        token: str | None = None,
    ) -> tuple[int, Any]:
        """Status and JSON of the answer; `headers` are kept."""
        headers = {"Authorization": f"Bot {self.server.token if token is None else token}"}
        data: Any = None
        if files is not None:
            data = aiohttp.FormData(quote_fields=False)
            data.add_field("payload_json", json.dumps(body))
            for number, (name, content) in enumerate(files.items()):
                data.add_field(f"files[{number}]", content, filename=name)
        elif body is not None:
            data = json.dumps(body)
            headers["Content-Type"] = "application/json"
        url = f"{self.server.route_base}{path}"
        async with self.session.request(method, url, data=data, headers=headers) as answer:
            self.headers = dict(answer.headers)
            text = await answer.text()
            return answer.status, json.loads(text) if text else None

    async def refused(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, int]:
        """Status and code of a refusal."""
        status, answer = await self(method, path, body, **more)
        assert status >= 400, answer
        return status, answer["code"]

    async def wrong(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, str]:
        """The leaves of a 50035: path -> code."""
        status, answer = await self(method, path, body, **more)
        assert (status, answer["code"]) == (400, 50035), answer
        return dict(_leaves(answer["errors"], ""))


def _leaves(tree: Json, path: str) -> list[tuple[str, str]]:
    found = []
    for key, node in tree.items():
        if key == "_errors":
            found += [(path, entry["code"]) for entry in node]
        else:
            found += _leaves(node, f"{path}.{key}" if path else key)
    return found
