"""Houses for real processes; every process that a test leaves running is ended by its id."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.platforms.telegram import TelegramServer
from tests.scenario.processes.chat import PrivateChat
from tests.scenario.processes.house import ADA, BOB, TOKEN, House

Furnish = Callable[..., House]


@pytest.fixture
async def furnish(tmp_path: Path) -> AsyncIterator[Furnish]:
    """Make the house of this test; keyword arguments are those of House."""
    houses: list[House] = []

    def make(**options: Any) -> House:
        house = House(folder=tmp_path, **options)
        house.furnish()
        houses.append(house)
        return house

    yield make
    for house in houses:
        await house.clear()


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        server.bot(TOKEN)
        server.user(ADA, "Ada", username="ada")
        server.user(BOB, "Bob")
        yield server
        server.check()


@pytest.fixture
async def house(furnish: Furnish, server: TelegramServer) -> House:
    """A gateway's folder with a Telegram bot."""
    return furnish(api_base=server.api_base)


@pytest.fixture
def chat(server: TelegramServer, house: House) -> PrivateChat:
    return PrivateChat(server, house)
