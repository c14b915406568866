"""A Discord with two guilds, people, a forum and other bots; and a folder for a gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.platforms.discord.server import DiscordServer
from tests.scenario.discord.house import House


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as server:
        yield server
        server.check()


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)
