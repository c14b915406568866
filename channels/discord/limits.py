"""Discord's limits, and the permissions and intents that each call and event need.

Text is counted in UTF-16 units, which is never less than what Discord counts. Sizes are bytes, times
are seconds. The budgets of single routes come with each answer and are the library's affair; here is
what it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from channels.base import Limits

LIMITS: Final = Limits(
    text=2000,
    unit="utf16",
    button_bytes=64,
    buttons=15,  # of one card: more would leave no room for its words
    button_label=80,
    notice=2000,
    file_in=25_000_000,
    file_out=10_485_760,  # of a guild without boosts, and of a DM
)

# ---- messages

FILES: Final = 10  # in one message
REQUEST: Final = 25 * 1024 * 1024  # the whole of one request
NONCE: Final = 25
HISTORY: Final = 100  # messages in one look back
THREAD_NAME: Final = 100
SUPPRESS_EMBEDS: Final = 1 << 2  # flag of a message
EPHEMERAL: Final = 1 << 6  # flag of an interaction's answer
COMPONENTS_V2: Final = 1 << 15  # flag: the message consists of components alone

# ---- components

COMPONENTS: Final = 40  # in a message, those inside others counted too
DISPLAY: Final = 4000  # units of all the text that a message's components show
ROW: Final = 5  # buttons side by side
CUSTOM_ID: Final = 100
OPTIONS: Final = 25  # of one select
OPTION: Final = 100  # an option's label, its description and its value
PLACEHOLDER: Final = 150

# ---- cards

ASKED: Final = 10  # people and roles that one card notifies
# Calls that one card shows with buttons: of 40 components 12 are for what belongs to all of them, the menu of
# their other choices included; a call takes 4, its text and a row with a yes and a no. With all five buttons
# it takes 7. More calls than that are listed with their codes.
CALLS: Final = 7

# ---- modals

MODAL_TITLE: Final = 45
MODAL_FIELDS: Final = 5
MODAL_LABEL: Final = 45
MODAL_HINT: Final = 100  # the small text under a label
MODAL_PLACEHOLDER: Final = 100
INPUT: Final = 4000  # what a text input holds
RADIOS: Final = 10  # at least two
CHECKBOXES: Final = 10

# ---- commands

COMMANDS: Final = 100
COMMAND_NAME: Final = 32
COMMAND_WORDS: Final = 100  # a command's description, and an option's
COMMAND_OPTIONS: Final = 25
COMMAND_SIZE: Final = 8000  # all the words of one command
CHOICES: Final = 25  # suggested at once
CHOICE: Final = 100  # a suggestion's name and its value

# ---- time

ACK_SECONDS: Final = 3.0  # until the first answer to an interaction
STORE_SECONDS: Final = 2.0  # what storing a press may take of these
TOKEN_SECONDS: Final = 900.0  # an interaction's token is dead after that
TYPING_SECONDS: Final = 8.0  # Discord shows the sign for ten
PROGRESS_SECONDS: Final = 2.5  # between two edits of one progress message
FRESH_SECONDS: Final = 60.0  # so long a progress message may become the answer
ROLES_SECONDS: Final = 60.0  # what was learnt of a member's roles counts so long
PER_SECOND: Final = 50  # requests of one bot, whatever they are about

# ---- catching up after a start

CATCH_UP_MESSAGES: Final = 100  # of one conversation
CATCH_UP_CONVERSATIONS: Final = 50

# ---- permissions: the bits of those that we know

PERMISSIONS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "add_reactions": 1 << 6,
        "view_channel": 1 << 10,
        "send_messages": 1 << 11,
        "attach_files": 1 << 15,
        "read_message_history": 1 << 16,
        "create_public_threads": 1 << 35,
        "send_messages_in_threads": 1 << 38,
    }
)
ADMINISTRATOR: Final = 1 << 3  # never asked for; seen in other people's roles


class Method(NamedTuple):
    """What one REST route needs: permissions of the bot in that place, () for none."""

    permissions: tuple[str, ...] = ()


_SEE: Final = "view_channel"

METHODS: Final[Mapping[str, Method]] = MappingProxyType(
    {
        "GET /gateway": Method(),
        "GET /gateway/bot": Method(),
        "GET /users/@me": Method(),
        "GET /oauth2/applications/@me": Method(),
        "POST /users/@me/channels": Method(),
        "GET /guilds/{guild_id}/members/{user_id}": Method(),
        "GET /guilds/{guild_id}/threads/active": Method((_SEE,)),
        "GET /channels/{channel_id}": Method((_SEE,)),
        "PATCH /channels/{channel_id}": Method((_SEE, "send_messages_in_threads")),  # reopens a thread
        "GET /channels/{channel_id}/messages": Method((_SEE, "read_message_history")),
        "GET /channels/{channel_id}/messages/{message_id}": Method((_SEE, "read_message_history")),
        # An answer that refers to a message needs the history; files need attach_files.
        "POST /channels/{channel_id}/messages": Method(
            (
                _SEE,
                "send_messages",
                "send_messages_in_threads",
                "attach_files",
                "read_message_history",
            )
        ),
        "PATCH /channels/{channel_id}/messages/{message_id}": Method((_SEE,)),
        "DELETE /channels/{channel_id}/messages/{message_id}": Method((_SEE,)),
        "POST /channels/{channel_id}/messages/{message_id}/threads": Method((_SEE, "create_public_threads")),
        "POST /channels/{channel_id}/typing": Method((_SEE, "send_messages", "send_messages_in_threads")),
        "PUT /channels/{channel_id}/messages/{message_id}/reactions/{emoji}/@me": Method(
            (_SEE, "read_message_history", "add_reactions")
        ),
        "DELETE /channels/{channel_id}/messages/{message_id}/reactions/{emoji}/@me": Method(
            (_SEE, "read_message_history")
        ),
        # Interactions: their own token is all they need.
        "POST /interactions/{webhook_id}/{webhook_token}/callback": Method(),
        "POST /webhooks/{webhook_id}/{webhook_token}": Method(),
        "PATCH /webhooks/{webhook_id}/{webhook_token}/messages/@original": Method(),
        "GET /webhooks/{webhook_id}/{webhook_token}/messages/@original": Method(),
        "DELETE /webhooks/{webhook_id}/{webhook_token}/messages/@original": Method(),
        # Commands: the scope applications.commands.
        "GET /applications/{application_id}/commands": Method(),
        "PUT /applications/{application_id}/commands": Method(),
        "GET /applications/{application_id}/guilds/{guild_id}/commands": Method(),
        "PUT /applications/{application_id}/guilds/{guild_id}/commands": Method(),
    }
)

# ---- intents: what the gateway sends us

INTENTS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "guilds": 1 << 0,  # channels, threads, roles: where a message belongs
        "guild_messages": 1 << 9,
        "dm_messages": 1 << 12,
        "message_content": 1 << 15,  # privileged: to be switched on in the developer portal
    }
)
