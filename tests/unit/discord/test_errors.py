"""Every failure of Discord's and of its library has its place, and none carries a token out."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import aiohttp
import discord
import pytest
from aiohttp.client_reqrep import ConnectionKey

from channels.base import ChannelBusy, ChannelDown, ChannelError, MessageGone, PayloadRefused, TargetGone
from channels.discord.errors import (
    AlreadyAnswered,
    AnswerGone,
    NoSuchChannel,
    Refused,
    ThreadArchived,
    ThreadExists,
    TokenRefused,
    translated,
)
from channels.discord.redact import HIDDEN, forget, quieten, redacted

TOKEN = "OTAwMDAwMDAwMDAwMDAwMDAx.Gtests." + "a-token-that-nobody-may-see"


def refusal(status: int, code: int = 0, message: str = "no") -> discord.HTTPException:
    """What the library raises for this answer."""
    answer: Any = SimpleNamespace(status=status, reason="reason")
    return discord.HTTPException(answer, {"code": code, "message": message})


def raised(error: Exception) -> ChannelError:
    with pytest.raises(ChannelError) as caught, translated("POST /channels/{channel_id}/messages"):
        raise error
    assert caught.value.__cause__ is None
    assert TOKEN not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, 10003, NoSuchChannel),
        (404, 10004, TargetGone),
        (404, 10007, TargetGone),
        (404, 10008, MessageGone),
        (404, 10015, AnswerGone),
        (404, 10062, AnswerGone),
        (401, 50027, AnswerGone),
        (401, 0, TokenRefused),
        (403, 50001, TargetGone),
        (403, 50005, MessageGone),
        (403, 50007, TargetGone),
        (403, 50013, TargetGone),
        (400, 50035, PayloadRefused),
        (400, 50083, ThreadArchived),
        (400, 40060, AlreadyAnswered),
        (400, 160004, ThreadExists),
        (400, 160005, TargetGone),
        (413, 40005, PayloadRefused),
        (429, 30046, ChannelBusy),
        (429, 40062, ChannelBusy),
        (400, 999_999, PayloadRefused),
    ],
)
def test_a_code_of_discords_has_its_error(status: int, code: int, kind: type[ChannelError]) -> None:
    assert type(raised(refusal(status, code))) is kind


def test_a_long_wait_says_how_long() -> None:
    busy = raised(discord.RateLimited(7.0))
    assert isinstance(busy, ChannelBusy)
    assert busy.retry_after == 7.0


@pytest.mark.parametrize(("status", "unsure"), [(500, True), (502, True), (504, True), (503, False)])
def test_of_a_broken_server_nobody_knows_what_it_did(status: int, unsure: bool) -> None:
    down = raised(refusal(status))
    assert isinstance(down, ChannelDown)
    assert down.unsure is unsure


@pytest.mark.parametrize("status", [403, 429])
def test_a_ban_at_the_front_door_is_no_refusal_of_discords(status: int) -> None:
    down = raised(refusal(status))
    assert isinstance(down, ChannelDown)
    assert not isinstance(down, Refused)


def test_a_connection_that_never_stood_has_done_nothing() -> None:
    key = ConnectionKey("discord.com", 443, True, True, None, None, None)
    never = raised(aiohttp.ClientConnectorError(key, OSError(111, "refused")))
    broken = raised(aiohttp.ServerDisconnectedError())
    late = raised(TimeoutError())
    assert [error.unsure for error in (never, broken, late) if isinstance(error, ChannelDown)] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("error", [RuntimeError("Session is closed"), KeyError("retry_after"), ValueError()])
def test_what_the_library_stumbles_over_is_trouble_and_no_crash(error: Exception) -> None:
    assert type(raised(error)) is ChannelDown


def test_words_of_a_refusal_hold_no_token() -> None:
    leaky = f"https://discord.com/api/v10/webhooks/1/aW50.abc of {TOKEN}"
    error = raised(refusal(400, 50035, leaky))
    assert HIDDEN in str(error)
    assert "aW50" not in str(error)


def test_secrets_are_hidden_in_addresses() -> None:
    text = "POST https://discord.com/api/v10/interactions/12/aW50ZXJh.x-y/callback and /webhooks/9/tok?wait=1"
    assert (
        redacted(text)
        == f"POST https://discord.com/api/v10/interactions/{HIDDEN}/callback and /webhooks/{HIDDEN}?wait=1"
    )


def test_what_the_library_logs_holds_no_token(caplog: pytest.LogCaptureFixture) -> None:
    filters = quieten(TOKEN)
    try:
        with caplog.at_level(logging.DEBUG, "discord.http"):
            logging.getLogger("discord.http").warning("with %s", {"Authorization": f"Bot {TOKEN}"})
    finally:
        forget(filters)
    assert HIDDEN in caplog.text
    assert TOKEN not in caplog.text


def test_a_refused_token_says_what_to_do() -> None:
    assert "channels.discord.token" in str(TokenRefused("401"))
