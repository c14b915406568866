"""Pointing the real discord.py at a server of this package."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from tests.platforms.discord.server import DiscordServer


@contextlib.contextmanager
def pointed_at(server: DiscordServer) -> Iterator[None]:
    """Within the block every client of this process talks to the server."""
    base, gateway = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY
    Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = server.route_base, yarl.URL(server.gateway_url)
    try:
        yield
    finally:
        Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = base, gateway


def usual_intents() -> discord.Intents:
    """What a bot like ours asks for."""
    intents = discord.Intents.none()
    intents.guilds = intents.guild_messages = intents.dm_messages = intents.message_content = True
    return intents
