"""Opening, changing and deleting threads and channels, with what the gateway tells of that."""

from __future__ import annotations

import copy
from typing import Any

from tests.platforms.discord import limits
from tests.platforms.discord.entities import Channel
from tests.platforms.discord.limits import Json
from tests.platforms.discord.posting import announce, update
from tests.platforms.discord.world import World


def open_thread(
    world: World,
    parent: Channel,
    name: str,
    owner: str,
    *,
    message: Json | None = None,
    private: bool = False,
    minutes: int = 1_440,
    tags: list[str] | None = None,
    id: str = "",
) -> Channel:
    """A new thread, told of. From a message it has that message's id."""
    kind = limits.PRIVATE_THREAD if private else limits.PUBLIC_THREAD
    thread = Channel(message["id"] if message else id or world.flake(), kind, name, parent.guild, parent.id)
    thread.owner, thread.created, thread.archive_minutes = owner, world.now(), minutes
    thread.applied = tags or []
    thread.members = {owner: world.now()}
    world.channels[thread.id] = thread
    if parent.type == limits.FORUM:
        parent.last_message = thread.id
    shown = thread.public(me=world.bot_id) | {"newly_created": True}
    world.dispatch("THREAD_CREATE", shown, guild=thread.guild, channel=thread)
    if message is not None:
        _begin(world, parent, thread, message)
    elif parent.type != limits.FORUM and not private:
        where: Json = {"type": 0, "channel_id": thread.id, "guild_id": parent.guild}
        announce(world, parent, world.message(parent, owner, name, type=18, message_reference=where))
    return thread


def _begin(world: World, parent: Channel, thread: Channel, message: Json) -> None:
    """The message gets the thread, and the thread begins with a reference to it."""
    message["flags"] |= limits.HAS_THREAD
    message["thread"] = thread.public()
    update(world, parent, message)
    reference = {"type": 0, "channel_id": parent.id, "message_id": message["id"], "guild_id": parent.guild}
    original = {name: value for name, value in copy.deepcopy(message).items() if name != "thread"}
    starter = world.message(thread, thread.owner, "", type=21, message_reference=reference)
    announce(world, thread, starter | {"referenced_message": original})


def change_thread(world: World, thread: Channel, **changes: Any) -> None:
    """Set `archived`, `locked`, `name` and the like, and tell of it."""
    if "archived" in changes and changes["archived"] != thread.archived:
        thread.archived_at = world.now()
    for name, value in changes.items():
        setattr(thread, name, value)
    world.dispatch("THREAD_UPDATE", thread.public(me=world.bot_id), guild=thread.guild, channel=thread)


def remove_channel(world: World, place: Channel) -> None:
    """A channel, with its threads, or a thread is gone."""
    for thread in [c for c in world.channels.values() if c.parent == place.id and c.is_thread]:
        del world.channels[thread.id]
    if place.is_thread:
        gone: Json = {"id": place.id, "guild_id": place.guild, "parent_id": place.parent, "type": place.type}
        world.dispatch("THREAD_DELETE", gone, guild=place.guild, channel=place)
    else:
        world.dispatch("CHANNEL_DELETE", place.public(), guild=place.guild, channel=place)
    del world.channels[place.id]
    world.changed()


def join(world: World, thread: Channel, user: str) -> None:
    """Somebody becomes a member of a thread."""
    thread.members.setdefault(user, world.now())
    added: Json = {"id": thread.id, "guild_id": thread.guild, "member_count": len(thread.members)}
    member = world.guilds[thread.guild].members[user].public()
    entry = thread.membership(user) | {"member": member, "presence": None}
    added |= {"added_members": [entry], "removed_member_ids": []}
    world.dispatch("THREAD_MEMBERS_UPDATE", added, guild=thread.guild, channel=thread)


def leave(world: World, thread: Channel, user: str) -> None:
    """Somebody is no member of a thread any more."""
    thread.members.pop(user, None)
    gone: Json = {"id": thread.id, "guild_id": thread.guild, "member_count": len(thread.members)}
    gone |= {"added_members": [], "removed_member_ids": [user]}
    world.dispatch("THREAD_MEMBERS_UPDATE", gone, guild=thread.guild, channel=thread)
