"""Slack's limits, in code points where text is meant, and the budget and scopes of each call.

A method's budget is Slack's tier for it, in calls a minute for one workspace. Scopes are those of
the bot token; `manifest` asks for exactly what stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from channels.base import Limits

LIMITS: Final = Limits(
    text=3900,  # Slack asks for 4,000 at most in `text`, and chat.update insists
    unit="codepoint",
    button_bytes=64,
    buttons=25,
    button_label=75,
    notice=3000,
    file_in=20_000_000,  # our cap; Slack takes a gigabyte
    file_out=50_000_000,  # likewise
)

# ---- blocks

BLOCKS: Final = 50  # in a message
VIEW_BLOCKS: Final = 100  # in a modal or the home
PAYLOAD: Final = 13_200  # characters of the whole `blocks` as JSON, then msg_blocks_too_long
VIEW_PAYLOAD: Final = 200_000  # characters of a view as JSON; it is refused above 250,000
SECTION: Final = 3000
HEADER: Final = 150
CONTEXT_ELEMENTS: Final = 10
ACTIONS: Final = 25  # elements in one actions block
BUTTON_VALUE: Final = 2000
ACTION_ID: Final = 255
BLOCK_ID: Final = 255
OPTIONS: Final = 100  # in one select, and in one group of one
OPTION_GROUPS: Final = 100
OPTION_TEXT: Final = 75
OPTION_VALUE: Final = 150
CHECKBOXES: Final = 10
RADIOS: Final = 10

# ---- cards of several calls: five buttons of a call measure about 800 of PAYLOAD's characters, and its
# words and arguments half of that, so that a message has room for some ten of them. With two buttons each
# and everything else in a file, some twenty fit; of more, the last are named with their codes only.

ASKED: Final = 10  # people and groups whom one card notifies

# ---- modals

VIEW_TITLE: Final = 24  # and the labels of its buttons
METADATA: Final = 3000
INPUT: Final = 3000  # characters that a text input holds
PLACEHOLDER: Final = 150
LABEL: Final = 2000  # of an input, and its hint

# ---- assistant threads

STATUS_SECONDS: Final = 120.0  # a status vanishes by itself
THREAD_TITLE: Final = 200
PROMPTS: Final = 4  # suggested ones
STREAM_TEXT: Final = 11_990  # characters in one call, which may have 12,000 with our mark
STREAM_SECONDS: Final = 280.0  # a stream is dead after about five minutes

# ---- time

SECONDS_BETWEEN: Final = 1.0  # between two messages to one channel
ACK_SECONDS: Final = 3.0
LOOKUP_SECONDS: Final = 1.0  # what looking up people may take of these
RESPONSE_USES: Final = 5  # of one response_url
RESPONSE_SECONDS: Final = 1800.0
SIGNATURE_SECONDS: Final = 300.0  # a request older than this is a replay

# ---- hosts that may get the bot token when a file is fetched, with all their subdomains

FILE_HOSTS: Final = ("slack.com", "slack-files.com", "slack-gov.com")


class Method(NamedTuple):
    """What one Web API method costs and needs: calls a minute, scopes of the bot token."""

    per_minute: int
    scopes: tuple[str, ...] = ()


_HISTORY: Final = ("channels:history", "groups:history", "im:history", "mpim:history")
_TIER_2, _TIER_3, _TIER_4 = 20, 50, 100

METHODS: Final[Mapping[str, Method]] = MappingProxyType(
    {
        "auth.test": Method(300),
        "apps.connections.open": Method(20),  # with the app token: connections:write
        "chat.postMessage": Method(300, ("chat:write",)),  # and one a second for each channel
        "chat.postEphemeral": Method(_TIER_4, ("chat:write",)),
        "chat.update": Method(_TIER_3, ("chat:write",)),
        "chat.delete": Method(_TIER_3, ("chat:write",)),
        "chat.startStream": Method(_TIER_2, ("chat:write",)),
        "chat.appendStream": Method(_TIER_4, ("chat:write",)),
        "chat.stopStream": Method(_TIER_2, ("chat:write",)),
        "conversations.open": Method(_TIER_3, ("im:write",)),
        "conversations.replies": Method(_TIER_3, _HISTORY),
        "conversations.history": Method(_TIER_3, _HISTORY),
        "users.info": Method(_TIER_4, ("users:read",)),
        "usergroups.list": Method(_TIER_2, ("usergroups:read",)),
        "views.open": Method(_TIER_4),
        "views.publish": Method(_TIER_4),
        "assistant.threads.setStatus": Method(60, ("assistant:write",)),
        "assistant.threads.setTitle": Method(_TIER_3, ("assistant:write",)),
        "assistant.threads.setSuggestedPrompts": Method(_TIER_3, ("assistant:write",)),
        "reactions.add": Method(_TIER_3, ("reactions:write",)),
        "files.info": Method(_TIER_4, ("files:read",)),
        "files.getUploadURLExternal": Method(_TIER_4, ("files:write",)),
        "files.completeUploadExternal": Method(_TIER_4, ("files:write",)),
    }
)

# Which scopes let an event come in. Slack sends one event for each kind of conversation.
EVENTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "app_mention": ("app_mentions:read",),
        "message.channels": ("channels:history",),
        "message.groups": ("groups:history",),
        "message.im": ("im:history",),
        "message.mpim": ("mpim:history",),
        "app_home_opened": (),
        "assistant_thread_started": ("assistant:write",),
        "assistant_thread_context_changed": ("assistant:write",),
        "member_joined_channel": ("channels:read", "groups:read"),
        "channel_unarchive": ("channels:read",),
        "group_unarchive": ("groups:read",),
        "channel_id_changed": ("channels:read",),
        "subteam_updated": ("usergroups:read",),
        "subteam_members_changed": ("usergroups:read",),
        "app_uninstalled": (),
        "tokens_revoked": (),
    }
)

# What the slash command and the shortcut need.
COMMANDS: Final = ("commands",)
APP_SCOPES: Final = ("connections:write",)  # of the app token, for Socket Mode; not in a manifest
