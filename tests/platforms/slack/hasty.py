"""A Slack channel made quick for tests: no pacing, and what it waits for by itself passes faster."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any, Literal

from channels.base import Inbound
from channels.slack.adapter import SlackChannel
from tests.platforms.slack.server import SlackServer

Transport = Literal["socket", "http"]
SPEED = 20  # times as fast as real time


async def hasty_sleep(seconds: float) -> None:
    await asyncio.sleep(seconds / SPEED)


def hasty_clock() -> float:
    return time.monotonic() * SPEED


def quick(server: SlackServer, over: Transport = "socket", **options: Any) -> SlackChannel:
    """A channel against this server that wastes no time."""
    secret = (
        {"app_token": server.app.app_token}
        if over == "socket"
        else {"signing_secret": server.app.signing_secret}
    )
    return SlackChannel(
        options.pop("bot_token", server.app.bot_token),
        **{
            "api_base": server.api_base,
            "listen": ("127.0.0.1", 0),
            "between": 0,
            "sleep": hasty_sleep,
            "monotonic": hasty_clock,
            **secret,
            **options,
        },
    )


async def begin(server: SlackServer, channel: SlackChannel, inbound: Inbound) -> None:
    """Start it, and have the server deliver to it."""
    await channel.start(inbound)
    if channel.http_port:
        server.deliver_to(f"http://127.0.0.1:{channel.http_port}/slack/events")


@contextlib.asynccontextmanager
async def running(
    server: SlackServer, inbound: Inbound, over: Transport = "socket", **options: Any
) -> AsyncIterator[SlackChannel]:
    """A channel that is started and stopped."""
    channel = quick(server, over, **options)
    await begin(server, channel, inbound)
    try:
        yield channel
    finally:
        await channel.stop()
        server.deliver_to(None)
