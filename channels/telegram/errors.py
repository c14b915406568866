"""Telegram's refusals in the channel's own words: the one place that knows the library's errors.

ChannelDown
├── TokenRefused    the bot's token is wrong or was revoked; only the owner can mend it
└── PollConflict    somebody else takes the updates of this bot
NotModified         an edit that changes nothing (never leaves the adapter)
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

import httpx

# The library warns whenever it reads its own durations unless this switch is set, and setting it
# makes them timedelta, which is what is read below.
os.environ.setdefault("PTB_TIMEDELTA", "true")

from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    RetryAfter,
    TelegramError,
    TimedOut,
)

from channels.base import (
    ChannelBusy,
    ChannelDown,
    ChannelError,
    MessageGone,
    PayloadRefused,
    TargetGone,
    ThreadKey,
)


class TokenRefused(ChannelDown):
    """Telegram does not know this token. The text never holds it."""

    def __init__(self) -> None:
        super().__init__(
            "Telegram refuses the bot token (channels.telegram.token): "
            "ask @BotFather for a new one, or mend the one that is configured"
        )


class PollConflict(ChannelDown):
    """Another consumer takes the updates of this bot."""


class NotModified(ChannelError):
    """The message already looks like that."""


_TOKEN = re.compile(r"\d{3,}(?::|%3A)[\w-]{10,}", re.IGNORECASE)

# Words of a 400 (lower case) -> what they mean. Telegram has no finer code than its sentences.
_GONE = (
    "chat not found",
    "message thread not found",
    "topic_closed",
    "topic_deleted",
    "topic_id_invalid",
    "peer_id_invalid",
    "chat_write_forbidden",
    "chat_restricted",
    "chat_admin_required",
    "need administrator rights",
    "have no rights to send",
    "not enough rights to send text messages",
    "user not found",
)
_MESSAGE_GONE = (
    "message to edit not found",
    "message can't be edited",
    "message_id_invalid",
    "message to delete not found",
    "message to react not found",
)


def channel_error(error: TelegramError, target: ThreadKey | None = None) -> ChannelError:
    """The channel's error for one of the library's. `target`: where the message was meant to go."""
    match error:
        case RetryAfter():
            return ChannelBusy("telegram", seconds_of(error))
        case ChatMigrated():
            moved = target._replace(conversation=str(error.new_chat_id), thread="") if target else None
            return TargetGone("the group has become a supergroup with another id", moved)
        case InvalidToken():
            return TokenRefused()
        case Forbidden():
            return TargetGone(error.message)
        case Conflict():
            return PollConflict(error.message)
        case BadRequest():
            return _refusal(error.message)
        case TimedOut():
            return ChannelDown("Telegram did not answer in time", unsure=_unsure(error))
    if "entity too large" in error.message.lower():
        return PayloadRefused("the file is too large for Telegram")
    return ChannelDown(f"Telegram cannot be reached ({_said(error)})", unsure=_unsure(error))


def _unsure(error: TelegramError) -> bool:
    """Whether the request may have arrived: the connection stood, and broke before the answer was there."""
    cause = error.__cause__
    before = httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout
    return isinstance(cause, httpx.HTTPError) and not isinstance(cause, before)


def _refusal(message: str) -> ChannelError:
    words = message.lower()
    if "message is not modified" in words:
        return NotModified(message)
    if any(known in words for known in _MESSAGE_GONE):
        return MessageGone(message)
    if any(known in words for known in _GONE):
        return TargetGone(message)
    return PayloadRefused(message)


def _said(error: TelegramError) -> str:
    """The library's words, short, and without anything that looks like a token."""
    return _TOKEN.sub("<redacted>", error.message)[:200]


def seconds_of(error: RetryAfter) -> float:
    """How long Telegram asks to wait."""
    wait = error.retry_after
    return float(wait) if isinstance(wait, int | float) else wait.total_seconds()


@contextlib.contextmanager
def translated(target: ThreadKey | None = None) -> Iterator[None]:
    """Let only the channel's own errors out. The cause is dropped: it may hold an address with the token."""
    try:
        yield
    except TelegramError as error:
        raise channel_error(error, target) from None
