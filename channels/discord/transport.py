"""The library's client, pointed where the configuration says, and with our own ears in front of its own.

No address is changed globally: another client in this process talks to whomever it did before.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import aiohttp
import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import HTTPClient, Route

from channels.discord.errors import translated

log = logging.getLogger("channels.discord")

API: Final = "https://discord.com/api/v10"
RATE_PATIENCE: Final = 6.0  # seconds that the library waits by itself for the budget of a route
_TIMEOUT: Final = aiohttp.ClientTimeout(total=60, sock_connect=10, sock_read=30)
_AGAIN: Final = 5.0  # seconds that Discord wants between two sessions

Take = Callable[[str, object], None]


class Transport(HTTPClient):
    """The library's HTTP with another base and with timeouts; and the address of the gateway belonging to
    that base."""

    api_base = API

    async def request(self, route: Route, **options: Any) -> Any:
        if self.api_base != API:
            route.url = self.api_base + route.url.removeprefix(Route.BASE)
        options.setdefault("timeout", _TIMEOUT)
        return await super().request(route, **options)

    async def ws_connect(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        usual = DiscordWebSocket.DEFAULT_GATEWAY
        wanted = yarl.URL(url)
        if self.api_base != API and wanted.host == usual.host:
            told = await self.request(Route("GET", "/gateway"))
            wanted = yarl.URL(told["url"]).with_query(wanted.query)
        return await super().ws_connect(str(wanted), compress=compress)


class Ears(dict[str, Callable[[Any], None]]):
    """The parsers of a connection: ours first, which see the state before each event, then the library's,
    whose failing would end the connection."""

    def __init__(self, library: dict[str, Callable[[Any], None]], take: Take) -> None:
        self._take, self._stumbled = take, Counter[str]()
        super().__init__({event: partial(self._both, event, parser) for event, parser in library.items()})

    def __missing__(self, event: str) -> Callable[[Any], None]:
        return partial(self._take, event)

    def _both(self, event: str, library: Callable[[Any], None], data: Any) -> None:
        self._take(event, data)
        try:
            library(data)
        except Exception as error:  # of a shape that it does not expect
            self._stumbled[event] += 1
            if self._stumbled[event] == 1:
                log.warning("discord: the library cannot read %s (%s)", event, type(error).__name__)


class Sides:
    """What a client tells of its connections. `up`: the shards that are connected now."""

    def __init__(self, take: Take) -> None:
        self.take = take
        self.up: set[int] = set()
        self.changed = asyncio.Event()

    def heard(self, event: str, data: object) -> None:
        """A dispatch: READY and RESUMED say that a shard is connected."""
        if event in ("READY", "RESUMED") and isinstance(data, dict):
            shard = data.get("shard")
            number = shard[0] if isinstance(shard, list) and shard else data.get("__shard_id__")
            self.up.add(number if isinstance(number, int) else 0)
            self.changed.set()
        self.take(event, data)

    def lost(self, shard: int) -> None:
        """A shard is no longer connected."""
        self.up.discard(shard)
        self.changed.set()


class _Single(discord.Client):
    sides: Sides
    pause: Callable[[float], Awaitable[None]]

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        if event == "disconnect":
            self.sides.lost(0)
        super().dispatch(event, *args, **kwargs)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        if not initial:
            await self.pause(_AGAIN)


class _Sharded(discord.AutoShardedClient):
    sides: Sides
    pause: Callable[[float], Awaitable[None]]

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        if event == "shard_disconnect":
            self.sides.lost(args[0])
        super().dispatch(event, *args, **kwargs)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        if not initial:
            await self.pause(_AGAIN)


Client = _Single | _Sharded


def intents(*, content: bool) -> discord.Intents:
    """What we ask for; `content` is the one that has to be switched on for the application."""
    wanted = discord.Intents.none()
    wanted.guilds = wanted.guild_messages = wanted.dm_messages = True
    wanted.message_content = content
    return wanted


def make_client(
    api_base: str,
    shards: int | None,
    take: Take,
    pause: Callable[[float], Awaitable[None]],
    *,
    content: bool,
    sharded: bool,
) -> Client:
    """A client that is not connected yet. shards: how many, None for one, or, when `sharded`, as many as
    Discord recommends."""
    options: dict[str, Any] = {
        "intents": intents(content=content),
        "max_messages": None,
        "member_cache_flags": discord.MemberCacheFlags.none(),
        "chunk_guilds_at_startup": False,
        "allowed_mentions": discord.AllowedMentions.none(),
        "guild_ready_timeout": 0.05,  # nobody here waits for the library's own `ready`
    }
    # The library warns once that voice is missing, and then sets these itself.
    discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
    client: Client = _Sharded(shard_count=shards, **options) if sharded else _Single(**options)
    http = Transport(client.http.loop)
    http.api_base = api_base
    # The library accepts no less than 30 s, so that nobody tries again at once; pacing.py sees to that here.
    http.max_ratelimit_timeout = RATE_PATIENCE
    client.http = client._connection.http = http
    client.sides, client.pause = Sides(take), pause
    client._connection.parsers = Ears(client._connection.parsers, client.sides.heard)
    return client


async def recommended_shards(client: Client) -> int:
    """How many shards Discord recommends. The client is logged in. Raises ChannelError."""
    with translated("GET /gateway/bot"):
        told = await client.http.request(Route("GET", "/gateway/bot"))
        return int(told["shards"])
