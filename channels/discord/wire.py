"""What Discord's gateway sends -> the channel's values. Pure, and free of the library: plain JSON comes in.

`parse` takes any JSON without raising: what is none of our business comes back as `Ignored` with one
of the reasons of `wire_values`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from channels.base import InboundChange, InboundMessage, ThreadKey
from channels.discord import refs, wire_interactions, wire_text, wire_use
from channels.discord import wire_messages as messages
from channels.discord import wire_values as v
from channels.discord.wire_json import Node
from channels.discord.wire_values import (
    ChannelInfo,
    Handle,
    Ignored,
    Me,
    Mention,
    Parents,
    Parsed,
    Place,
    Scene,
)
from channels.tolerant import Malformed

KIND_LIMIT: Final = 80  # characters of what an ignored payload is counted under

_CLOSED: Final = frozenset({"CHANNEL_DELETE", "THREAD_DELETE"})
_ROLES: Final = frozenset({"GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE", "GUILD_ROLE_DELETE"})
_MEMBERS: Final = frozenset({"GUILD_MEMBER_ADD", "GUILD_MEMBER_REMOVE", "GUILD_MEMBER_UPDATE"})
_UNUSED_FAMILIES: Final = (
    "APPLICATION_COMMAND_",
    "AUTO_MODERATION_",
    "CHANNEL_",
    "EMBEDDED_ACTIVITY_",
    "ENTITLEMENT_",
    "GUILD_",
    "INTEGRATION_",
    "INVITE_",
    "MESSAGE_POLL_VOTE_",
    "MESSAGE_REACTION_",
    "STAGE_INSTANCE_",
    "SUBSCRIPTION_",
    "VOICE_",
)
_UNUSED: Final = frozenset(
    {
        "PRESENCE_UPDATE",
        "RATE_LIMITED",
        "READY",
        "RESUMED",
        "SOUNDBOARD_SOUNDS",
        "THREAD_LIST_SYNC",
        "THREAD_MEMBER_UPDATE",
        "TYPING_START",
        "USER_UPDATE",
        "WEBHOOKS_UPDATE",
    }
)


def parse(
    event: str,
    data: object,
    me: Me,
    *,
    mention: Mention = "start",
    threads: bool = True,
    parents: Parents,
    before: Callable[[str], str | None] = lambda _: None,
) -> Parsed:
    """What one dispatch of the gateway means. Never raises, whatever it is.

    event, data: its `t` and `d`. A message that was fetched instead is a MESSAGE_CREATE whose
    `guild_id` is to be put in, unless `parents` knows its channel. parents: what was known of a channel
    or thread before this dispatch. before: the content of a message, likewise. threads: whether a
    message in a channel begins a thread.
    """
    node = Node(data)
    scene = Scene(me=me, mention=mention, threads=threads, parents=parents, before=before)
    try:
        parsed = _read(event, node, scene)
    except Malformed as error:
        parsed = Ignored(reason=f"{v.MALFORMED}: {error}", unknown=True)
    if isinstance(parsed, Ignored):
        return Ignored(reason=parsed.reason, kind=_kind_of(event, node), unknown=parsed.unknown)
    return parsed


def handle_of(data: object) -> Handle | None:
    """How an interaction can be answered, whatever it means; None for what is no interaction."""
    try:
        return wire_use.handle(Node(data))
    except Malformed:
        return None


def earlier(message: object, thread: ThreadKey, me: Me, parents: Parents) -> InboundMessage | None:
    """One message of a thread's history; None for our own and for what is no talk."""
    return messages.earlier(Node(message), thread, me, parents)


def channel_info(channel: object) -> ChannelInfo | None:
    """What Discord's own description of a channel or thread says, None for what is none."""
    return v.channel_info(Node(channel))


def conversations(guild: object) -> list[ThreadKey]:
    """All channels of GUILD_CREATE in which anything can be said; none of a guild that cannot be reached."""
    node = Node(guild)
    own_id = node.id("id")
    if not own_id or node.flag("unavailable"):
        return []
    found = [c for c in node.nodes("channels") if c.id("id") and c.number("type") != v.CATEGORY]
    return [refs.thread_key(own_id, channel.id("id")) for channel in found]


def file_url(message: object, attachment: str) -> str:
    """The address of one file of a message that was just fetched, "" when it is gone."""
    return wire_text.file_url(Node(message), attachment)


def _read(event: str, node: Node, scene: Scene) -> Parsed:
    match event:
        case "MESSAGE_CREATE":
            return messages.created(node, scene)
        case "MESSAGE_UPDATE":
            return messages.updated(node, scene)
        case "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK":
            return messages.deleted(node, scene)
        case "INTERACTION_CREATE":
            return wire_interactions.interaction(node, scene)
    return _place(event, node, scene) or _people(event, node) or _rest(event)


def _kind_of(event: str, node: Node) -> str:
    """What an ignored payload is, without anything that a person wrote."""
    names = [event]
    if event.startswith(("MESSAGE_CREATE", "MESSAGE_UPDATE", "INTERACTION")):
        names += [str(kind) for kind in (node.number("type"), node.number("data", "component_type")) if kind]
    return " ".join(names)[:KIND_LIMIT]


# ---- conversations


def _place(event: str, node: Node, scene: Scene) -> Parsed | None:
    """What became of a conversation; None for events of other kinds."""
    match event:
        case "THREAD_UPDATE":
            known = scene.parents(node.need_id("id"))
            return _back(node, scene) if known is None or known.closed else Ignored(reason=v.NOT_BACK)
        case "THREAD_CREATE":
            return Ignored(reason=v.UNUSED_EVENT) if node.flag("newly_created") else _back(node, scene)
        case "THREAD_MEMBERS_UPDATE":
            return _joined(node, scene)
        case "GUILD_DELETE":
            return Ignored(reason=v.OUTAGE if node.flag("unavailable") else v.WE_LEFT)
    return Ignored(reason=v.CLOSED) if event in _CLOSED else None


def _back(thread: Node, scene: Scene) -> Parsed:
    """A thread that takes messages, and did not before or was not known."""
    info = v.channel_info(thread)
    own_id = thread.need_id("id")
    if info is None or info.closed:
        return Ignored(reason=v.CLOSED)
    place = v.place_in(own_id, info.guild, info, scene.parents)
    if place is None or not place.thread:
        raise Malformed("parent_id")
    return InboundChange(thread=place.key, kind="back")


def _joined(event: Node, scene: Scene) -> Parsed:
    """Who came into a thread; we ourselves may have been let in again."""
    if not any(one.text("user_id") == scene.me.user for one in event.nodes("added_members")):
        return Ignored(reason=v.SOMEBODY_ELSE)
    thread = event.need_id("id")
    place = v.place_in(thread, event.need_id("guild_id"), scene.parents(thread), scene.parents)
    if not isinstance(place, Place):
        return v.PlaceWanted(channel=thread)
    return InboundChange(thread=place.key, kind="back")


# ---- people, and the rest


def _people(event: str, node: Node) -> Parsed | None:
    if event in _MEMBERS:
        return v.PeopleChanged(guild=node.need_id("guild_id"), user=node.need_id("user", "id"))
    if event in _ROLES:
        return v.PeopleChanged(guild=node.need_id("guild_id"))
    if event == "GUILD_UPDATE":  # it may have another owner
        return v.PeopleChanged(guild=node.need_id("id"))
    return None


def _rest(event: str) -> Ignored:
    if event in _UNUSED or event.startswith(_UNUSED_FAMILIES):
        return Ignored(reason=v.UNUSED_EVENT)
    return Ignored(reason=v.UNKNOWN_EVENT, unknown=True)
