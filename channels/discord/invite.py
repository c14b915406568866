"""The address by which a bot is invited into a server, with exactly what it needs there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import urlencode

from channels.discord.limits import PERMISSIONS
from channels.discord.refs import is_id

SCOPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bot": "to be a member of the server",
        "applications.commands": "to have slash commands and the message command there",
    }
)

WHY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "view_channel": "to see the channels in which it is spoken to",
        "send_messages": "to answer, and to show cards",
        "send_messages_in_threads": "to answer in threads and forum posts, and to reopen an archived one",
        "create_public_threads": "to open a thread on the message that mentions it",
        "attach_files": "to send files, and arguments that are too long for a card",
        "read_message_history": "to reply to messages, to read a thread that it is called into, and to catch "
        "up with what was written while it was offline",
        "add_reactions": "to mark a message that waits its turn",
    }
)
"""The reason for each permission that is asked for."""

_ADDRESS: Final = "https://discord.com/oauth2/authorize"


def permissions() -> int:
    """The bits of everything in `WHY`."""
    return sum(PERMISSIONS[name] for name in WHY)


def url(application_id: str) -> str:
    """Where the owner of a server lets the bot in. Raises ValueError for what is no application's id."""
    if not is_id(application_id):
        raise ValueError(f"an application's id is a number of up to 20 digits: {application_id!r}")
    query = {
        "client_id": application_id,
        "scope": " ".join(SCOPES),
        "permissions": str(permissions()),
        "integration_type": "0",  # into a server, not for one person
    }
    return f"{_ADDRESS}?{urlencode(query)}"
