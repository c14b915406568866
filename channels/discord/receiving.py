"""The connection to Discord's gateway, from the first try to the last.

The library resumes and identifies again by itself. What it gives up on, and what it would wait too long
for, ends its client here, and a new one is made: what came meanwhile is caught up with by catchup.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

import discord
from discord.http import HTTPClient

from channels.base import ChannelDown, ChannelError
from channels.discord.errors import Refused, TokenRefused, network_error, translated
from channels.discord.redact import redacted
from channels.discord.transport import Client, Take, make_client, recommended_shards

log = logging.getLogger("channels.discord")

State = Literal["starting", "up", "down", "refused", "stopped"]
Shards = int | Literal["auto"] | None

RESTART_SECONDS: Final = 45.0  # without a connection, after which a new client is made
HEALTHY_SECONDS: Final = 60.0  # a connection that lasted so long was none of a series of failures
_FIRST_PAUSE, _LAST_PAUSE = 1.0, 30.0  # seconds between two tries
_CLOSING: Final = 5.0
NO_CONTENT: Final = (
    "discord: the application may not read messages: only mentions, direct messages and commands are heard. "
    "Switch on Message Content Intent on the page Bot of the application at discord.com/developers"
)
_WRONG: Final = {
    4010: "the number of shards in channels.discord.shards is wrong",
    4011: "this bot is in so many servers that it needs shards: set channels.discord.shards to auto",
    4012: "Discord no longer speaks the version of the gateway that the library does: update discord.py",
    4013: "Discord does not know an intent that is asked for: update discord.py",
    4014: "Discord does not grant an intent that is asked for",
}


class Gateway:
    """`take(event, data)` is called for every dispatch, before anything else sees it. on_state: told of
    every change. shards: None for one connection, a number, or as many as Discord recommends."""

    def __init__(
        self,
        token: str,
        *,
        api_base: str,
        shards: Shards,
        take: Take,
        on_state: Callable[[State], None],
        sleep: Callable[[float], Awaitable[None]],
        monotonic: Callable[[], float],
    ) -> None:
        self._token, self._api_base, self._shards = token, api_base, shards
        self._take, self._on_state = take, on_state
        self._sleep, self._monotonic = sleep, monotonic
        self._client: Client | None = None
        self.content = True  # whether message content is asked for

    def prepare(self) -> Client:
        """A new client, not connected, through which calls go from now on."""
        count = self._shards if isinstance(self._shards, int) else None
        self._client = make_client(
            self._api_base,
            count,
            self._take,
            self._sleep,
            content=self.content,
            sharded=self._shards is not None,
        )
        return self._client

    def http(self) -> HTTPClient:
        """What calls go through. Raises ChannelDown when nobody is logged in."""
        client = self._client
        if client is None or client.is_closed() or client.http.token is None:
            raise ChannelDown("the channel is not connected")
        return client.http

    async def run(self) -> None:
        """Stay connected until cancelled. Raises Refused."""
        pause = _FIRST_PAUSE
        while True:
            client, began = self.prepare(), self._monotonic()
            try:
                await self._session(client)
            except discord.PrivilegedIntentsRequired:
                if not self.content:
                    raise Refused(_WRONG[4014]) from None
                log.error(NO_CONTENT)
                self.content = False
                continue
            except Refused:
                raise
            except ChannelError as error:
                log.warning("discord: %s; connecting again", error)
            finally:
                await _close(client)
            self._on_state("down")
            if self._monotonic() - began > HEALTHY_SECONDS:
                pause = 0.0
            await self._sleep(pause)
            pause = min(_LAST_PAUSE, max(_FIRST_PAUSE, 2 * pause))

    async def close(self) -> None:
        """Close what is still open."""
        if self._client is not None:
            await _close(self._client)

    async def _session(self, client: Client) -> None:
        """One client's life. Raises ChannelError and PrivilegedIntentsRequired."""
        with translated("logging in"):
            await client.login(self._token)
        if self._shards == "auto":
            client.shard_count = await recommended_shards(client)
        connecting = asyncio.create_task(_connected(client), name="discord connection")
        try:
            await self._watch(client, connecting)
        finally:
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)

    async def _watch(self, client: Client, connecting: asyncio.Task[None]) -> None:
        """Say how it stands until the connection ends for good, or is away for too long."""
        sides, was_up = client.sides, False
        while not connecting.done():
            sides.changed.clear()
            up = len(sides.up) >= (client.shard_count or 1)
            if up or was_up:
                self._on_state("up" if up else "down")
            was_up = was_up or up
            changed = asyncio.ensure_future(sides.changed.wait())
            waits: list[asyncio.Future[Any]] = [connecting, changed]
            if not up:
                waits.append(asyncio.ensure_future(self._sleep(RESTART_SECONDS)))
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                if waits[-1].done() and not up and not changed.done() and not connecting.done():
                    raise ChannelDown("there has been no connection for too long")
            finally:
                for wait in waits[1:]:
                    wait.cancel()
        await connecting


async def _connected(client: Client) -> None:
    """Connected until it ends. Raises ChannelError and PrivilegedIntentsRequired."""
    try:
        await client.connect()
    except discord.ConnectionClosed as closed:
        if closed.code == 4004:
            raise TokenRefused("4004") from None
        if closed.code in _WRONG:
            raise Refused(_WRONG[closed.code]) from None
        raise ChannelDown(f"the gateway closed the connection ({closed.code})") from None
    except discord.PrivilegedIntentsRequired:
        raise
    except discord.DiscordException as error:
        raise ChannelDown(redacted(f"{type(error).__name__}: {error}")[:200]) from None
    except (OSError, TimeoutError) as error:
        raise network_error(error) from None
    except Exception as error:  # the library has stumbled: a new client begins afresh
        log.exception("discord: the connection broke")
        raise ChannelDown(f"the connection broke ({type(error).__name__})") from None
    raise ChannelDown("the connection has ended")


async def _close(client: Client) -> None:
    with contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(_CLOSING):
            await client.close()
    if client.http.token is not None:  # also when that took too long
        await client.http.close()
