"""Every error of the library has its place, and none carries a token out."""

from __future__ import annotations

import inspect

import httpx
import pytest
from telegram import error as library

from channels.base import ChannelBusy, ChannelDown, ChannelError, ThreadKey
from channels.telegram.errors import TokenRefused, channel_error, translated

TOKEN = "123456789:AAsecretsecretsecret"
EXAMPLES: dict[type[library.TelegramError], library.TelegramError] = {
    library.TelegramError: library.TelegramError("Invalid server response"),
    library.NetworkError: library.NetworkError(f"httpx.ConnectError: https://x.example/bot{TOKEN}/getMe"),
    library.BadRequest: library.BadRequest("Chat not found"),
    library.TimedOut: library.TimedOut(),
    library.Forbidden: library.Forbidden("Forbidden: bot was blocked by the user"),
    library.ChatMigrated: library.ChatMigrated(-5),
    library.RetryAfter: library.RetryAfter(3),
    library.Conflict: library.Conflict("Conflict"),
    library.InvalidToken: library.InvalidToken(f"The token `{TOKEN}` was rejected by the server."),
    library.EndPointNotFound: library.EndPointNotFound("no such method"),
    library.PassportDecryptionError: library.PassportDecryptionError("no"),
}


def test_the_examples_are_all_the_errors_that_the_library_has() -> None:
    known = {kind for _, kind in inspect.getmembers(library, inspect.isclass)}
    assert {kind for kind in known if issubclass(kind, library.TelegramError)} == EXAMPLES.keys()


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_every_error_leaves_as_the_channels_own_and_without_a_token(
    kind: type[library.TelegramError],
) -> None:
    with pytest.raises(ChannelError) as caught, translated(ThreadKey("telegram", "1", "-4", "")):
        raise EXAMPLES[kind]
    assert "AAsecret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_what_the_caller_needs_is_carried_along() -> None:
    busy = channel_error(library.RetryAfter(3))
    assert isinstance(busy, ChannelBusy)
    assert busy.retry_after == 3.0
    assert isinstance(channel_error(library.InvalidToken()), TokenRefused)
    down = channel_error(library.NetworkError("httpx.ConnectError: All connection attempts failed"))
    assert isinstance(down, ChannelDown)
    assert "All connection attempts failed" in str(down)


@pytest.mark.parametrize(
    ("cause", "unsure"),
    [
        (httpx.ConnectError("no route"), False),
        (httpx.ConnectTimeout("no route"), False),
        (httpx.PoolTimeout("busy"), False),
        (httpx.ReadTimeout("silence"), True),
        (httpx.ReadError("cut"), True),
        (httpx.RemoteProtocolError("cut"), True),
        (httpx.WriteError("cut"), True),
        (None, False),
    ],
)
def test_a_request_may_have_arrived_when_the_connection_broke_after_it_stood(
    cause: Exception | None, unsure: bool
) -> None:
    for kind in (library.TimedOut, library.NetworkError):
        error = kind("broken")
        error.__cause__ = cause
        down = channel_error(error)
        assert isinstance(down, ChannelDown)
        assert down.unsure is unsure
