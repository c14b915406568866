"""Nothing that discord.py or aiohttp say may hold the bot's token or the token of an interaction."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Final

HIDDEN: Final = "<redacted>"

_TALKATIVE: Final = ("discord", "aiohttp")
_SPEAKERS: Final = (
    "channels.discord",
    "discord.client",
    "discord.gateway",
    "discord.http",
    "discord.shard",
    "discord.state",
    "discord.webhook.async",
    "aiohttp.client",
    "asyncio",
)
# The library says "attempting a reconnect" with a whole traceback; we say in our own words how it stands.
_WORDY: Final = frozenset({"discord.client", "discord.shard", "discord.gateway"})
# Bot tokens, and the addresses of interactions, with whose token anybody may answer in our name.
_SECRET: Final = re.compile(
    r"[\w-]{18,}\.[\w-]{4,}\.[\w-]{20,}|(?<=/interactions/)\d+/[^/\s'\"?]+|(?<=/webhooks/)\d+/[^/\s'\"?]+"
)


def redacted(text: str) -> str:
    """The text without anything that looks like a secret of Discord's."""
    return _SECRET.sub(HIDDEN, text)


class HideSecrets(logging.Filter):
    """Replaces these secrets, and whatever looks like one, in whatever is logged."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__()
        self._secrets = [secret for secret in secrets if secret]

    def filter(self, record: logging.LogRecord) -> bool:
        """Never drops a record."""
        text = record.getMessage()
        clean = redacted(text)
        for secret in self._secrets:
            clean = clean.replace(secret, HIDDEN)
        if clean != text:
            record.msg, record.args = clean, ()
        if record.name in _WORDY:
            record.exc_info = None
        return True


def quieten(*secrets: str) -> list[tuple[logging.Logger, HideSecrets]]:
    """Raise the talkative loggers to WARNING, whatever the root's level, and hide the secrets in those
    that somebody turns up again. Returns what `forget` undoes."""
    for name in _TALKATIVE:
        logger = logging.getLogger(name)
        if logger.level < logging.WARNING:
            logger.setLevel(logging.WARNING)
    hide = HideSecrets(secrets)
    for name in _SPEAKERS:
        logging.getLogger(name).addFilter(hide)
    return [(logging.getLogger(name), hide) for name in _SPEAKERS]


def forget(filters: Iterable[tuple[logging.Logger, HideSecrets]]) -> None:
    """Take the filters of `quieten` away again."""
    for logger, hide in filters:
        logger.removeFilter(hide)
