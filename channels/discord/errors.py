"""Discord's refusals in the channel's own words: the one place that knows its error codes.

ChannelDown
└── Refused              only the owner can mend it; fatal for this channel
    └── TokenRefused     the token is wrong or was reset
TargetGone
├── NoSuchChannel        the channel or thread does not exist (any more, or yet)
├── ThreadArchived       it takes changes again once it was reopened
└── AnswerGone           an interaction can no longer be answered
PayloadRefused
├── ThreadExists         the message has a thread already
└── AlreadyAnswered      the interaction has had its first answer
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import aiohttp
import discord

from channels.base import (
    ChannelBusy,
    ChannelDown,
    ChannelError,
    MessageGone,
    PayloadRefused,
    TargetGone,
)
from channels.discord.redact import redacted

NAME: Final = "discord"
_PATIENCE: Final = 30.0  # seconds to wait when Discord asks to without saying how long
_OLD_EDITS: Final = 60.0  # and when an old message was edited too often


class Refused(ChannelDown):
    """Trying again is useless until the owner has mended the configuration or the application."""


class TokenRefused(Refused):
    """Discord does not take this token. The text never holds it."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"Discord refuses channels.discord.token ({why}): copy the bot's token again from the page Bot "
            "of the application at discord.com/developers"
        )


class NoSuchChannel(TargetGone):
    """Nothing has this id, as far as we may see."""


class ThreadArchived(TargetGone):
    """A thread that is to be reopened first."""


class AnswerGone(TargetGone):
    """The interaction is unknown, or its time is over."""


class ThreadExists(PayloadRefused):
    """Somebody else has opened the thread."""


class AlreadyAnswered(PayloadRefused):
    """A second first answer."""


_NO_CHANNEL: Final = frozenset({10003})
_ANSWER_GONE: Final = frozenset({10015, 10062, 50027})
_TOKEN: Final = frozenset({50014})
_DOWN: Final = frozenset({130000, 40333})
_BUSY: Final = frozenset({20016, 20022, 20028, 20029, 31001, 31002, 40062})
_GONE: Final = frozenset(
    {
        10004,  # unknown guild
        10007,  # unknown member
        10013,  # unknown user
        20001,  # bots may not
        40002,  # the account is to be verified
        40007,  # banned from the guild
        50001,  # missing access
        50003,  # not in a direct conversation
        50007,  # this person takes no messages from us
        50008,  # a forum or a category, where no messages are
        50013,  # missing permissions
        50009,  # the channel wants a verified account
        50024,  # not in channels of this type
        50025,
        50278,  # no guild in common
        160002,  # no permission to read the history
        160006,  # as many active threads as there may be
        160007,
    }
)
_MESSAGE_GONE: Final = frozenset({10008, 50005, 50021})
_LOCKED: Final = 160005
_WORDS: Final = {
    10003: "the channel or thread was deleted, or the bot is not let in",
    10004: "the bot is no longer in this server",
    50001: "the bot may not see this channel",
    50007: "this person takes no direct messages from the bot",
    50013: "the bot lacks a permission there",
    50083: "the thread is archived",
    _LOCKED: "the thread is locked, and the bot may not write there without the permission Manage Threads",
}


def code_error(code: int, what: str, detail: str = "") -> ChannelError | None:
    """The channel's error for one of Discord's codes; None for one that nobody has foreseen."""
    words = f"{_WORDS.get(code) or redacted(detail)[:200] or what} ({code})"
    simple: dict[frozenset[int], ChannelError] = {
        _NO_CHANNEL: NoSuchChannel(words),
        _ANSWER_GONE: AnswerGone(words),
        _TOKEN: TokenRefused(str(code)),
        _DOWN: ChannelDown(f"Discord is in trouble ({code})"),
        _BUSY: ChannelBusy(NAME, _PATIENCE),
        _GONE: TargetGone(words),
        _MESSAGE_GONE: MessageGone(words),
        frozenset({_LOCKED}): TargetGone(words),
        frozenset({50083}): ThreadArchived(words),
        frozenset({40060}): AlreadyAnswered(words),
        frozenset({160004}): ThreadExists(words),
        frozenset({30046}): ChannelBusy(NAME, _OLD_EDITS),
    }
    return next((error for codes, error in simple.items() if code in codes), None)


def api_error(error: discord.HTTPException, what: str) -> ChannelError:
    """The channel's error for one of the library's that came with an answer. `what`: what was asked for."""
    if error.code and (known := code_error(error.code, what, error.text)) is not None:
        return known
    status = error.status
    if status == 429:  # without the header of Discord's own: the address is banned for a while
        return ChannelDown("Discord's front door refuses us for a while (429)")
    if status >= 500:
        return ChannelDown(f"Discord answered {status} to {what}", unsure=status != 503)
    if status == 401:
        return TokenRefused("401")
    if status == 403 and not error.code:  # a page of the front door's, not Discord's own answer
        return ChannelDown("Discord's front door refuses us (403)")
    detail = f"{what}: {status} {error.code} {error.text}"
    return PayloadRefused(redacted(detail)[:300])


def network_error(error: Exception) -> ChannelDown:
    """The channel's error for a connection that failed. `unsure` when it stood, and broke before the
    answer was there."""
    before = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    if isinstance(error, TimeoutError):
        return ChannelDown("Discord did not answer in time", unsure=not before)
    words = f"{type(error).__name__}: {error}" if before else type(error).__name__
    return ChannelDown(f"Discord cannot be reached ({redacted(words)[:200]})", unsure=not before)


@contextlib.contextmanager
def translated(what: str) -> Iterator[None]:
    """Let only the channel's own errors out. The cause is dropped: it may hold the request with a token."""
    try:
        yield
    except discord.RateLimited as error:
        raise ChannelBusy(NAME, error.retry_after) from None
    except discord.LoginFailure:
        raise TokenRefused("401") from None
    except discord.HTTPException as error:
        raise api_error(error, what) from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise network_error(error) from None
    except discord.GatewayNotFound:
        raise ChannelDown("Discord names no gateway") from None
    except (RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
        # A session that was closed meanwhile, or an answer over which the library stumbles.
        raise ChannelDown(
            f"Discord's answer to {what} cannot be read ({type(error).__name__})", unsure=True
        ) from None
