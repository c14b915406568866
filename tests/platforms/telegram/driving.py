"""A Telegram channel made quick for tests: no pauses between messages, and no waits between tries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from channels.telegram.adapter import TelegramChannel
from tests.platforms.telegram.server import TelegramServer

TOKEN = "777:AAsecretsecretsecretsecretsecretsecret"


class Naps:
    """Sleeps that end at once and are remembered, in seconds."""

    def __init__(self) -> None:
        self.taken: list[float] = []
        self.during: Callable[[], None] = lambda: None  # what happens while somebody sleeps
        self.now = 1000.0

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        self.now += seconds
        self.during()
        await asyncio.sleep(0)

    def monotonic(self) -> float:
        return self.now


def quick(server: TelegramServer, naps: Naps | None = None, **options: Any) -> TelegramChannel:
    """A channel against this server that wastes no time."""
    naps = naps or Naps()
    return TelegramChannel(
        TOKEN, api_base=server.api_base, between=0, sleep=naps, monotonic=naps.monotonic, **options
    )
