"""A Discord channel made quick for tests: what it waits for by itself passes faster."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

from channels.base import Inbound
from channels.discord.adapter import DiscordChannel
from tests.platforms.discord.server import DiscordServer

SPEED = 20  # times as fast as real time


async def hasty_sleep(seconds: float) -> None:
    await asyncio.sleep(seconds / SPEED)


def hasty_clock() -> float:
    return time.monotonic() * SPEED


def quick(server: DiscordServer, **options: Any) -> DiscordChannel:
    """A channel against this server that wastes no time."""
    token = options.pop("token", server.token)
    usual = {"api_base": server.route_base, "sleep": hasty_sleep, "monotonic": hasty_clock}
    return DiscordChannel(token, **{**usual, **options})


@contextlib.asynccontextmanager
async def running(server: DiscordServer, inbound: Inbound, **options: Any) -> AsyncIterator[DiscordChannel]:
    """A channel that is started and stopped."""
    channel = quick(server, **options)
    await channel.start(inbound)
    try:
        yield channel
    finally:
        await channel.stop()
