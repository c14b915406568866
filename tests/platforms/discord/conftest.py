"""discord.py imports `audioop`, which is deprecated; pytest would take the warning for an error."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "'audioop' is deprecated", DeprecationWarning)
    import discord  # noqa: F401

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.platforms.discord.bots import Bot, Raw, running
from tests.platforms.discord.client import pointed_at
from tests.platforms.discord.server import DiscordServer


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    """A server of its own, at which discord.py is pointed."""
    async with DiscordServer() as server:
        with pointed_at(server):
            yield server


@pytest.fixture
async def raw(server: DiscordServer) -> AsyncIterator[Raw]:
    """Calls without a library."""
    async with aiohttp.ClientSession() as session:
        yield Raw(server, session)


@pytest.fixture
async def bot(server: DiscordServer) -> AsyncIterator[Bot]:
    """A bot that is connected and ready."""
    async with running(server, Bot()) as bot:
        yield bot
