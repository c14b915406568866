"""Permission bits, and who may do what where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.platforms.discord.limits import Json

BITS = {
    "ADMINISTRATOR": 3,
    "MANAGE_CHANNELS": 4,
    "MANAGE_GUILD": 5,
    "ADD_REACTIONS": 6,
    "VIEW_CHANNEL": 10,
    "SEND_MESSAGES": 11,
    "MANAGE_MESSAGES": 13,
    "EMBED_LINKS": 14,
    "ATTACH_FILES": 15,
    "READ_MESSAGE_HISTORY": 16,
    "MENTION_EVERYONE": 17,
    "MANAGE_ROLES": 28,
    "MANAGE_WEBHOOKS": 29,
    "USE_APPLICATION_COMMANDS": 31,
    "MANAGE_THREADS": 34,
    "CREATE_PUBLIC_THREADS": 35,
    "CREATE_PRIVATE_THREADS": 36,
    "SEND_MESSAGES_IN_THREADS": 38,
}
ALL = (1 << 53) - 1
EVERYONE = (
    "ADD_REACTIONS VIEW_CHANNEL SEND_MESSAGES EMBED_LINKS ATTACH_FILES READ_MESSAGE_HISTORY "
    "USE_APPLICATION_COMMANDS CREATE_PUBLIC_THREADS SEND_MESSAGES_IN_THREADS"
)


def bits(names: str | Iterable[str]) -> int:
    """The number for these permissions, given as names. KeyError for one that is not known."""
    wanted = names.split() if isinstance(names, str) else names
    return sum(1 << BITS[name] for name in set(wanted))


def has(value: int, name: str) -> bool:
    """Whether a permission is among those."""
    return bool(value >> BITS[name] & 1)


def of_roles(guild: str, roles: Mapping[str, int], member: Iterable[str]) -> int:
    """What the roles give. `roles`: permissions by role id; the guild's own id is @everyone."""
    value = roles[guild]
    for role in member:
        value |= roles.get(role, 0)
    return ALL if has(value, "ADMINISTRATOR") else value


def in_channel(base: int, guild: str, user: str, roles: Iterable[str], overwrites: Iterable[Json]) -> int:
    """What the overwrites of a channel leave of `base`: @everyone's, then roles', then the member's."""
    if has(base, "ADMINISTRATOR"):
        return ALL
    by_id = {entry["id"]: (int(entry["allow"]), int(entry["deny"])) for entry in overwrites}
    allow, deny = by_id.get(guild, (0, 0))
    value = base & ~deny | allow
    allow = deny = 0
    for role in roles:
        more, less = by_id.get(role, (0, 0))
        allow, deny = allow | more, deny | less
    value = value & ~deny | allow
    allow, deny = by_id.get(user, (0, 0))
    return value & ~deny | allow
