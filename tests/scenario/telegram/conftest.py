"""A Bot API server with one bot, Ada, Bob, a group and a forum; and a channel on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from channels.base import ThreadKey
from channels.telegram.adapter import TelegramChannel
from tests.contracts.harness import Inbox
from tests.platforms.telegram import TelegramServer
from tests.platforms.telegram.driving import TOKEN, Naps, quick
from tests.scenario.telegram.house import House

ADA, BOB, EVE, GROUP, FORUM = 4242, 4343, 4444, -100200, -100300
BOT = TOKEN.partition(":")[0]


@dataclass
class Room:
    """Everything that a test of the channel needs."""

    server: TelegramServer
    channel: TelegramChannel
    inbox: Inbox
    naps: Naps
    states: list[str]

    async def state(self, state: str) -> None:
        """Wait, bounded, until receiving stands like that."""
        await self.server.wait_for(lambda: self.states[-1:] == [state])

    def thread(self, chat: int, topic: int | None = None) -> ThreadKey:
        return ThreadKey("telegram", BOT, str(chat), str(topic) if topic else "")

    async def new_channel(self) -> TelegramChannel:
        """A second life of the channel, after the first has been stopped."""
        self.channel = quick(self.server, self.naps)
        await self.channel.start(self.inbox)
        return self.channel


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        server.bot(TOKEN)
        server.user(ADA, "Ada", username="ada")
        server.user(BOB, "Bob")
        server.user(EVE, "Eve", username="eve")
        server.group(GROUP, "Shop", [ADA, BOB, EVE], admins=[BOB])
        server.group(FORUM, "Board", [ADA, BOB, EVE], forum=True)
        yield server
        server.check()


@pytest.fixture
async def room(server: TelegramServer) -> AsyncIterator[Room]:
    naps = Naps()
    states: list[str] = []

    def note(state: str) -> None:
        states.append(state)
        server.changed()

    room = Room(server, quick(server, naps, on_state=note), Inbox(), naps, states)
    await room.channel.start(room.inbox)
    yield room
    await room.channel.stop()


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)
