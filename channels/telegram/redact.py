"""Nothing that the HTTP libraries say may hold the token, which Telegram wants in the address."""

from __future__ import annotations

import logging

_TALKATIVE = ("httpx", "httpcore", "telegram")  # at INFO or DEBUG they write addresses and contents
_SPEAKERS = ("telegram.Bot", "telegram.ext.ExtBot", "httpx", "telegram.request", "channels.telegram")
HIDDEN = "<redacted>"


class HideToken(logging.Filter):
    """Replaces one secret in whatever is logged."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token, self._secret = token, token.partition(":")[2]

    def filter(self, record: logging.LogRecord) -> bool:
        """Never drops a record."""
        text = record.getMessage()
        if self._secret and self._secret in text:
            record.msg = text.replace(self._token, HIDDEN).replace(self._secret, HIDDEN)
            record.args = ()
        return True


def quieten(token: str) -> list[tuple[logging.Logger, HideToken]]:
    """Raise the talkative loggers to WARNING, whatever the root's level, and hide the token in those
    that somebody turns up again. Returns what `forget` undoes."""
    for name in _TALKATIVE:
        logger = logging.getLogger(name)
        if logger.level < logging.WARNING:
            logger.setLevel(logging.WARNING)
    hide = HideToken(token)
    for name in _SPEAKERS:
        logging.getLogger(name).addFilter(hide)
    return [(logging.getLogger(name), hide) for name in _SPEAKERS]


def forget(filters: list[tuple[logging.Logger, HideToken]]) -> None:
    """Take the filters of `quieten` away again."""
    for logger, hide in filters:
        logger.removeFilter(hide)
