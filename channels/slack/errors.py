"""Slack's refusals in the channel's own words: the one place that knows its error codes.

ChannelDown
└── Refused             only the owner can mend it; fatal for this channel
    ├── TokenRefused    a token is wrong, revoked, or of the wrong kind
    └── SocketModeOff   the app does not use Socket Mode (any more)
PayloadRefused
└── ScopeMissing        the app was installed without a permission that this call needs
MessageGone
└── StreamOver          the message does not take streamed text (any more)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from channels.base import (
    ChannelBusy,
    ChannelDown,
    ChannelError,
    MessageGone,
    PayloadRefused,
    TargetGone,
)
from channels.slack.redact import redacted

NAME: Final = "slack"
_PATIENCE: Final = 30.0  # seconds to wait when Slack asks to without saying how long


class Refused(ChannelDown):
    """Trying again is useless until the owner has mended the configuration or the app."""


class TokenRefused(Refused):
    """Slack does not take this token. The text never holds it. `setting`: the key that holds it."""

    def __init__(self, setting: str, why: str) -> None:
        self.setting = setting
        super().__init__(
            f"Slack refuses channels.slack.{setting} ({why}): copy it again from the app's page at "
            "api.slack.com/apps, or reinstall the app there"
        )


class SocketModeOff(Refused):
    """The app is not, or no longer, in Socket Mode."""

    def __init__(self) -> None:
        super().__init__(
            "Socket Mode is switched off for this app: switch it on at api.slack.com/apps, "
            "or configure channels.slack.signing_secret to receive over HTTP"
        )


class ScopeMissing(PayloadRefused):
    """The app lacks a scope. `needed` as Slack names it."""

    def __init__(self, method: str, needed: str) -> None:
        self.method, self.needed = method, needed
        super().__init__(
            f"Slack refuses {method}: the app lacks the scope {needed or 'for it'}; "
            "update the app from `threadgate slack manifest` and reinstall it"
        )


class StreamOver(MessageGone):
    """A stream has died or was never one; the message itself may still be there."""


# Codes that name the token, wherever they come from.
_TOKEN: Final = frozenset(
    {
        "invalid_auth",
        "not_authed",
        "account_inactive",
        "token_revoked",
        "token_expired",
        "not_allowed_token_type",
        "two_factor_setup_required",
    }
)
_SCOPE: Final = frozenset({"missing_scope", "no_scope"})
_BUSY: Final = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})
_DOWN: Final = frozenset(
    {
        "service_unavailable",
        "request_timeout",
        "team_added_to_org",
        "org_login_required",
        "external_channel_migrating",
        "accesslimited",
    }
)
# Slack: "it is possible that some aspect of the operation succeeded".
_DOWN_UNSURE: Final = frozenset({"internal_error", "fatal_error", "failed_sending_message", "update_failed"})
_GONE: Final = frozenset(
    {
        "channel_not_found",
        "not_in_channel",
        "is_archived",
        "channel_is_archived",
        "user_not_found",
        "users_not_found",
        "user_disabled",
        "user_not_visible",
        "user_not_in_channel",
        "cannot_dm_bot",
        "thread_not_found",
        "messages_tab_disabled",
        "restricted_action",
        "restricted_action_read_only_channel",
        "restricted_action_thread_only_channel",
        "restricted_action_non_threadable_channel",
        "restricted_action_thread_locked",
        "channel_type_not_supported",
        "method_not_supported_for_channel_type",
        "invalid_channel",
        "invalid_channel_id",
        "ekm_access_denied",
        "team_access_not_granted",
        "team_not_found",
        "no_permission",
        "access_denied",
        "external_dm_cannot_interact",
        "not_allowed_for_grid",
    }
)
_MESSAGE_GONE: Final = frozenset(
    {
        "message_not_found",
        "cant_update_message",
        "cant_delete_message",
        "edit_window_closed",
        "bad_timestamp",
        "invalid_message_timestamp",
        "invalid_ts",
        "message_not_owned_by_app",
        "compliance_exports_prevent_deletion",
    }
)
_STREAM: Final = frozenset({"message_not_in_streaming_state", "streaming_state_conflict"})
_SURE_STATUSES: Final = frozenset({503})  # refused at the door; of the other 5xx nobody knows


def code_error(
    code: str,
    method: str,
    *,
    setting: str = "bot_token",
    detail: str = "",
    needed: str = "",
    wait: float = _PATIENCE,
) -> ChannelError:
    """The channel's error for one of Slack's codes. `setting`: which token the call was made with.
    A code that nobody has foreseen counts as a refusal of the content."""
    simple: dict[frozenset[str], ChannelError] = {
        _TOKEN: TokenRefused(setting, code),
        _SCOPE: ScopeMissing(method, needed),
        _BUSY: ChannelBusy(NAME, wait),
        _DOWN: ChannelDown(f"Slack is in trouble ({code})"),
        _DOWN_UNSURE: ChannelDown(f"Slack is in trouble ({code})", unsure=True),
        _GONE: TargetGone(code),
        _MESSAGE_GONE: MessageGone(code),
        _STREAM: StreamOver(code),
    }
    for codes, error in simple.items():
        if code in codes:
            return error
    words = f"{method}: {code}" + (f" ({detail})" if detail else "")
    return PayloadRefused(redacted(words)[:300])


def status_error(status: int, headers: Mapping[str, str], what: str) -> ChannelError:
    """The channel's error for an answer that is no JSON of Slack's. `what`: what was asked for."""
    if status == 429:
        return ChannelBusy(NAME, retry_after(headers))
    if status >= 500:
        return ChannelDown(f"Slack answered {status} to {what}", unsure=status not in _SURE_STATUSES)
    if status == 200:
        return ChannelDown(f"Slack's answer to {what} cannot be read", unsure=True)
    return PayloadRefused(f"Slack answered {status} to {what}")


def retry_after(headers: Mapping[str, str]) -> float:
    """How long Slack asks to wait, in seconds."""
    for name, value in headers.items():
        if name.lower() == "retry-after" and value.isdecimal():
            return float(value)
    return _PATIENCE


def api_error(error: SlackApiError, method: str, setting: str = "bot_token") -> ChannelError:
    """The channel's error for one of the library's that came with an answer."""
    answer: Any = error.response
    headers: Mapping[str, str] = getattr(answer, "headers", None) or {}
    status = int(getattr(answer, "status_code", 0) or getattr(answer, "status", 0) or 0)
    data = getattr(answer, "data", None)
    if status == 429:
        return ChannelBusy(NAME, retry_after(headers))
    if isinstance(data, Mapping) and isinstance(data.get("error"), str):
        return code_error(
            data["error"],
            method,
            setting=setting,
            detail=_detail(data),
            needed=str(data.get("needed", "")),
            wait=retry_after(headers),
        )
    return status_error(status, headers, method)


def network_error(error: Exception) -> ChannelDown:
    """The channel's error for a connection that failed. `unsure` when it stood, and broke before the
    answer was there."""
    before = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    if isinstance(error, TimeoutError):
        return ChannelDown("Slack did not answer in time", unsure=not before)
    words = f"{type(error).__name__}: {error}" if before else type(error).__name__
    return ChannelDown(f"Slack cannot be reached ({redacted(words)[:200]})", unsure=not before)


def _detail(data: Mapping[str, Any]) -> str:
    """Why blocks or arguments were refused, as far as Slack says."""
    said: list[str] = []
    metadata = data.get("response_metadata")
    if isinstance(metadata, Mapping) and isinstance(metadata.get("messages"), list):
        said += [str(message) for message in metadata["messages"]]
    if isinstance(data.get("errors"), list):
        said += [str(message) for message in data["errors"]]
    return "; ".join(said)


@contextlib.contextmanager
def translated(method: str, setting: str = "bot_token") -> Iterator[None]:
    """Let only the channel's own errors out. The cause is dropped: it may hold the request with the token."""
    try:
        yield
    except SlackApiError as error:
        raise api_error(error, method, setting) from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise network_error(error) from None
    except (SlackClientError, ValueError, AttributeError) as error:
        # The library stumbles over answers that are neither JSON nor text.
        raise ChannelDown(
            f"Slack's answer to {method} cannot be read ({type(error).__name__})", unsure=True
        ) from None
