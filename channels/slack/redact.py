"""Nothing that Slack's libraries or aiohttp say may hold a token, a signing secret or a socket's ticket."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Final

HIDDEN: Final = "<redacted>"
LIBRARY: Final = logging.getLogger("channels.slack.library")  # handed to slack-sdk and slack-bolt

_TALKATIVE: Final = ("slack_sdk", "slack_bolt", "aiohttp")
_SPEAKERS: Final = ("channels.slack", "channels.slack.library", "aiohttp.client", "asyncio")
# Tokens of every kind, tickets of sockets, triggers of modals, and the addresses at which anybody may speak
# in our name.
_SECRET: Final = re.compile(
    r"xox[a-z](?:\.xox[a-z])?-[\w-]+|xapp-[\w-]+|(?<=ticket=)[^\s&'\"]+|(?<=hooks\.slack\.com/)[^\s'\"]+"
    r"|\b\d+\.\d+\.[0-9a-f]{16,}\b"
)


def redacted(text: str) -> str:
    """The text without anything that looks like a secret of Slack's."""
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
        return True


def quieten(*secrets: str) -> list[tuple[logging.Logger, HideSecrets]]:
    """Raise the talkative loggers to WARNING, whatever the root's level, and hide the secrets in those
    that somebody turns up again. Returns what `forget` undoes."""
    for name in _TALKATIVE:
        logger = logging.getLogger(name)
        if logger.level < logging.WARNING:
            logger.setLevel(logging.WARNING)
    # The libraries look at `level` itself, where unset counts as DEBUG; and what they report as an error
    # is reported by us in the channel's own words.
    if LIBRARY.level == logging.NOTSET:
        LIBRARY.setLevel(logging.CRITICAL)
    hide = HideSecrets(secrets)
    for name in _SPEAKERS:
        logging.getLogger(name).addFilter(hide)
    return [(logging.getLogger(name), hide) for name in _SPEAKERS]


def forget(filters: Iterable[tuple[logging.Logger, HideSecrets]]) -> None:
    """Take the filters of `quieten` away again."""
    for logger, hide in filters:
        logger.removeFilter(hide)
