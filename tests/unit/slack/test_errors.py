"""Every failure of Slack's and of its library has its place, and none carries a token out."""

from __future__ import annotations

import logging

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from slack_sdk.errors import SlackApiError, SlackRequestError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from channels.base import ChannelBusy, ChannelDown, ChannelError, MessageGone, PayloadRefused, TargetGone
from channels.slack.errors import (
    Refused,
    ScopeMissing,
    SocketModeOff,
    StreamOver,
    TokenRefused,
    code_error,
    translated,
)
from channels.slack.redact import HIDDEN, forget, quieten, redacted

TOKEN = "xoxb-111-222-" + "secretsecret"


def refusal(data: object, status: int = 200, **headers: str) -> SlackApiError:
    """What the library raises for this answer, the token of the request in it."""
    response = AsyncSlackResponse(
        client=AsyncWebClient(TOKEN),
        http_verb="POST",
        api_url=f"https://slack.com/api/x?token={TOKEN}",
        req_args={"headers": {"Authorization": f"Bearer {TOKEN}"}},
        data=data,  # type: ignore[arg-type]
        headers=headers,
        status_code=status,
    )
    return SlackApiError(f"failed with {TOKEN}", response)


def raised(error: Exception, method: str = "chat.postMessage") -> ChannelError:
    with pytest.raises(ChannelError) as caught, translated(method):
        raise error
    assert "secretsecret" not in str(caught.value)
    assert caught.value.__suppress_context__
    return caught.value


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("channel_not_found", TargetGone),
        ("not_in_channel", TargetGone),
        ("is_archived", TargetGone),
        ("user_disabled", TargetGone),
        ("user_not_in_channel", TargetGone),
        ("restricted_action_thread_locked", TargetGone),
        ("message_not_found", MessageGone),
        ("cant_update_message", MessageGone),
        ("edit_window_closed", MessageGone),
        ("message_not_in_streaming_state", StreamOver),
        ("msg_too_long", PayloadRefused),
        ("msg_blocks_too_long", PayloadRefused),
        ("invalid_blocks", PayloadRefused),
        ("no_text", PayloadRefused),
        ("missing_scope", ScopeMissing),
        ("invalid_auth", TokenRefused),
        ("token_revoked", TokenRefused),
        ("account_inactive", TokenRefused),
        ("internal_error", ChannelDown),
        ("service_unavailable", ChannelDown),
        ("ratelimited", ChannelBusy),
        ("a_code_of_tomorrow", PayloadRefused),
    ],
)
def test_each_code_is_of_its_kind(code: str, kind: type[ChannelError]) -> None:
    assert type(raised(refusal({"ok": False, "error": code}))) is kind


def test_a_refused_token_names_the_setting_that_is_to_be_mended() -> None:
    with pytest.raises(TokenRefused) as caught, translated("apps.connections.open", "app_token"):
        raise refusal({"ok": False, "error": "not_allowed_token_type"})
    assert caught.value.setting == "app_token"
    assert isinstance(caught.value, Refused)
    assert isinstance(SocketModeOff(), Refused)


def test_a_missing_scope_is_named() -> None:
    error = raised(refusal({"ok": False, "error": "missing_scope", "needed": "files:write", "provided": "x"}))
    assert isinstance(error, ScopeMissing)
    assert (error.method, error.needed) == ("chat.postMessage", "files:write")


def test_why_blocks_were_refused_is_told_without_secrets() -> None:
    told = {"messages": [f"[ERROR] must be less than 3001 characters {TOKEN}"]}
    error = raised(refusal({"ok": False, "error": "invalid_blocks", "response_metadata": told}))
    assert "3001" in str(error)


def test_a_flood_limit_carries_the_seconds_to_wait() -> None:
    answers: list[object] = [{"ok": False, "error": "ratelimited"}, {}, ""]
    for data in answers:
        error = raised(refusal(data, 429, **{"Retry-After": "17"}))
        assert isinstance(error, ChannelBusy)
        assert error.retry_after == 17.0
    nothing_said = raised(refusal({"ok": False, "error": "ratelimited"}, 429))
    assert isinstance(nothing_said, ChannelBusy)
    assert nothing_said.retry_after == 30.0


@pytest.mark.parametrize(("status", "unsure"), [(500, True), (502, True), (504, True), (503, False)])
def test_a_server_error_may_have_done_it_unless_it_was_turned_away_at_the_door(
    status: int, unsure: bool
) -> None:
    error = raised(refusal({}, status))
    assert isinstance(error, ChannelDown)
    assert error.unsure is unsure


def test_an_answer_that_is_no_json_is_trouble_and_unsure() -> None:
    answers: list[object] = ["<html>", {}]
    for data in answers:
        error = raised(refusal(data, 200))
        assert isinstance(error, ChannelDown)
        assert error.unsure
    for stumbled in (AttributeError("'str' object has no attribute 'get'"), ValueError("binary data")):
        assert isinstance(raised(stumbled), ChannelDown)


KEY = ConnectionKey("slack.com", 443, True, True, None, None, None)


@pytest.mark.parametrize(
    ("error", "unsure"),
    [
        (aiohttp.ClientConnectorError(KEY, OSError(111, "refused")), False),
        (aiohttp.ConnectionTimeoutError("no route"), False),
        (aiohttp.ServerDisconnectedError(), True),
        (aiohttp.ClientOSError(104, "reset"), True),
        (aiohttp.ClientPayloadError("cut"), True),
        (aiohttp.SocketTimeoutError("silence"), True),
        (TimeoutError(), True),
        (ConnectionResetError(), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_call_may_have_arrived_when_the_connection_broke_after_it_stood(
    error: Exception, unsure: bool
) -> None:
    down = raised(error)
    assert isinstance(down, ChannelDown)
    assert down.unsure is unsure


def test_a_fault_of_the_library_leaves_as_one_of_the_channels_own() -> None:
    assert isinstance(raised(SlackRequestError(TOKEN)), ChannelDown)


def test_codes_are_told_apart_whatever_is_known_beside_them() -> None:
    error = code_error("ratelimited", "users.info", wait=5.0)
    assert isinstance(error, ChannelBusy)
    assert error.retry_after == 5.0


@pytest.mark.parametrize(
    "secret",
    [
        TOKEN,
        "xoxe.xoxb-1-abcdefgh",
        "xapp-1-A1-2-abcdef",
        "wss://wss.slack.com/link/?ticket=abcdef-123&app_id=A1",
        "https://hooks.slack.com/actions/T1/22/abcdef",
    ],
)
def test_whatever_looks_like_a_secret_is_hidden(secret: str) -> None:
    clean = redacted(f"failed at {secret} today")
    assert "abcdef" not in clean
    assert "secretsecret" not in clean
    assert HIDDEN in clean
    assert clean.endswith("today")


def test_what_the_libraries_log_holds_no_token(caplog: pytest.LogCaptureFixture) -> None:
    filters = quieten(TOKEN, "", "signing-secret-of-ours")
    try:
        logging.getLogger("channels.slack").error("sent %s with %s", TOKEN, "signing-secret-of-ours")
        logging.getLogger("channels.slack").error("wss://x/?ticket=%s", "abcdef")
    finally:
        forget(filters)
    assert [record.getMessage() for record in caplog.records] == [
        f"sent {HIDDEN} with {HIDDEN}",
        f"wss://x/?ticket={HIDDEN}",
    ]
    assert logging.getLogger("slack_sdk").level >= logging.WARNING
