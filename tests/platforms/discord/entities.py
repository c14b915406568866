"""What the world consists of, and how each looks on the wire."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from tests.platforms.discord import limits
from tests.platforms.discord.limits import Json


def iso(at: float) -> str:
    """Unix seconds as the API writes them."""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat(timespec="microseconds")


@dataclass
class User:
    """A person or a bot. `closed`: takes no direct messages from us."""

    id: str
    name: str
    display: str = ""
    bot: bool = False
    closed: bool = False

    def public(self) -> Json:
        shown: Json = {
            "id": self.id,
            "username": self.name,
            "global_name": self.display or None,
            "discriminator": "0",
            "avatar": None,
            "avatar_decoration_data": None,
            "public_flags": 0,
        }
        return shown | {"bot": True} if self.bot else shown


@dataclass
class Member:
    """One user in one guild."""

    user: User
    roles: list[str] = field(default_factory=list)
    nick: str | None = None
    joined_at: float = 1_600_000_000.0

    def public(self, *, user: bool = True) -> Json:
        shown: Json = {
            "nick": self.nick,
            "roles": list(self.roles),
            "joined_at": iso(self.joined_at),
            "premium_since": None,
            "deaf": False,
            "mute": False,
            "pending": False,
            "flags": 0,
            "avatar": None,
            "banner": None,
            "communication_disabled_until": None,
        }
        return shown | {"user": self.user.public()} if user else shown


@dataclass
class Role:
    """A role; the one with the guild's id is @everyone. `bot`: managed, of that bot."""

    id: str
    name: str
    permissions: int = 0
    position: int = 1
    mentionable: bool = False
    bot: str = ""

    def public(self) -> Json:
        colours = {"primary_color": 0, "secondary_color": None, "tertiary_color": None}
        shown: Json = {
            "id": self.id,
            "name": self.name,
            "color": 0,
            "colors": colours,
            "hoist": False,
            "icon": None,
            "unicode_emoji": None,
            "position": self.position,
            "permissions": str(self.permissions),
            "managed": bool(self.bot),
            "mentionable": self.mentionable,
            "flags": 0,
        }
        return shown | {"tags": {"bot_id": self.bot}} if self.bot else shown


@dataclass
class Channel:
    """A channel, a direct conversation (`guild` is ""), or a thread (`parent` is its channel)."""

    id: str
    type: int
    name: str = ""
    guild: str = ""
    parent: str = ""
    user: str = ""  # the other side of a direct conversation
    topic: str | None = None
    position: int = 0
    overwrites: list[Json] = field(default_factory=list)
    tags: list[Json] = field(default_factory=list)  # of a forum
    messages: dict[str, Json] = field(default_factory=dict)
    last_message: str | None = None
    # threads
    owner: str = ""
    archived: bool = False
    locked: bool = False
    archive_minutes: int = 1_440
    created: float = 0.0
    archived_at: float = 0.0
    members: dict[str, float] = field(default_factory=dict)  # user id -> when they joined
    applied: list[str] = field(default_factory=list)
    total: int = 0  # messages there ever were

    @property
    def is_thread(self) -> bool:
        return self.type in limits.THREADS

    def public(self, *, me: str = "", user: Json | None = None) -> Json:
        """As the API shows it. `me`: whose membership of a thread is added. `user`: of a direct one."""
        if self.type == limits.DM:
            people = [user] if user else []
            return {"id": self.id, "type": 1, "last_message_id": self.last_message, "flags": 0} | {
                "recipients": people
            }
        shown: Json = {
            "id": self.id,
            "type": self.type,
            "guild_id": self.guild,
            "name": self.name,
            "parent_id": self.parent or None,
            "last_message_id": self.last_message,
            "rate_limit_per_user": 0,
            "flags": 0,
        }
        if self.is_thread:
            return shown | self._thread(me)
        shown |= {
            "position": self.position,
            "permission_overwrites": list(self.overwrites),
            "topic": self.topic,
            "nsfw": False,
        }
        if self.type == limits.FORUM:
            shown |= {
                "available_tags": self.tags,
                "default_reaction_emoji": None,
                "default_sort_order": None,
                "default_forum_layout": 0,
            }
        return shown

    def _thread(self, me: str) -> Json:
        shown: Json = {
            "owner_id": self.owner,
            "message_count": len(self.messages),
            "member_count": len(self.members),
            "total_message_sent": self.total,
            "applied_tags": list(self.applied),
            "thread_metadata": {
                "archived": self.archived,
                "auto_archive_duration": self.archive_minutes,
                "archive_timestamp": iso(self.archived_at or self.created),
                "locked": self.locked,
                "create_timestamp": iso(self.created),
            },
        }
        return shown | {"member": self.membership(me)} if me in self.members else shown

    def membership(self, user: str) -> Json:
        """A member of this thread."""
        joined = iso(self.members[user])
        return {"id": self.id, "user_id": user, "join_timestamp": joined, "flags": 1}


@dataclass
class Guild:
    """A server in Discord's own words."""

    id: str
    name: str
    owner: str
    roles: dict[str, Role] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    commands: list[Json] = field(default_factory=list)
    available: bool = True
    bot_in: bool = True

    def public(self) -> Json:
        """The guild alone, without channels and members."""
        return {
            "id": self.id,
            "name": self.name,
            "icon": None,
            "splash": None,
            "banner": None,
            "description": None,
            "owner_id": self.owner,
            "afk_channel_id": None,
            "afk_timeout": 300,
            "verification_level": 1,
            "default_message_notifications": 1,
            "explicit_content_filter": 0,
            "roles": [role.public() for role in self.roles.values()],
            "emojis": [],
            "stickers": [],
            "features": [],
            "mfa_level": 0,
            "application_id": None,
            "system_channel_id": None,
            "system_channel_flags": 0,
            "rules_channel_id": None,
            "public_updates_channel_id": None,
            "vanity_url_code": None,
            "premium_tier": 0,
            "preferred_locale": "en-US",
            "nsfw_level": 0,
            "premium_progress_bar_enabled": False,
        }


@dataclass
class Stored:
    """The bytes of an attachment."""

    id: str
    name: str
    content: bytes
    media_type: str
    channel: str


@dataclass(frozen=True)
class Call:
    """One entry of the journal. `route`: `POST /channels/{channel}/messages`; `path`: as it was called."""

    method: str
    path: str
    route: str
    body: Json | list[Json] | None
    query: dict[str, str]
    files: tuple[str, ...]  # names
    status: int
    answer: Json | list[Json] | None
    at: float  # Unix seconds of the server's clock


@dataclass(frozen=True)
class Page:
    """Somebody was notified by a message of our bot: a user id, `&` and a role id, `everyone` or `here`."""

    channel: str
    message: str
    who: str
