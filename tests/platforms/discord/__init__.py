"""A strict Discord for tests: REST v10 and the gateway over real sockets, with the platform's limits,
clocks and refusals, people to steer, and trouble on demand."""

from tests.platforms.discord.entities import Call, Page
from tests.platforms.discord.errors import Refused
from tests.platforms.discord.gateway import Session
from tests.platforms.discord.interactions import Interaction
from tests.platforms.discord.limits import Json
from tests.platforms.discord.server import DiscordServer

__all__ = ["Call", "DiscordServer", "Interaction", "Json", "Page", "Refused", "Session"]
