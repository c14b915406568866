"""A strict Bot API server for tests: real HTTP, the platform's limits and refusals, and trouble on demand."""

from tests.platforms.telegram.checks import Json
from tests.platforms.telegram.server import TelegramServer
from tests.platforms.telegram.world import Bot, Chat, Click

__all__ = ["Bot", "Chat", "Click", "Json", "TelegramServer"]
