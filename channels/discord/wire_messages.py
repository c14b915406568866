"""Messages, edits and deletions as Discord sends them -> the channel's values. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from channels.base import InboundChange, InboundMessage, ThreadKey
from channels.discord import refs, wire_text
from channels.discord import wire_values as v
from channels.discord.wire_json import Node
from channels.discord.wire_values import Ignored, Me, Parents, Parsed, Place, Scene
from channels.render.inbound import discord_decoded
from channels.tolerant import Malformed

BULK_LIMIT: Final = 200  # messages that are taken away at once; Discord itself allows half of that

_DEFAULT, _REPLY, _STARTER = 0, 19, 21
TALK: Final = frozenset({_DEFAULT, _REPLY, 20, 23})  # 20, 23: what a program answers to a command
# Joins, pins, boosts, stages, purchases, the alerts of a guild and the like.
NOTICES: Final = frozenset({*range(1, 19), 22, *range(24, 33), *range(36, 40), 44, 46, 63})
_FORWARD: Final = 1  # type of a message_reference
_EPHEMERAL: Final = 1 << 6  # of a message's flags
_TO_OTHERS: Final = re.compile(r"\s*(?:<@(?P<role>&?)!?(?P<id>\d{1,20})>|@everyone|@here)", re.ASCII)


def created(message: Node, scene: Scene) -> Parsed:
    """MESSAGE_CREATE. Raises Malformed."""
    if (skipped := _no_talk(message)) is not None:
        return skipped
    place = _place(message, scene)
    return _said(message, place, scene) if isinstance(place, Place) else place


def updated(message: Node, scene: Scene) -> Parsed:
    """MESSAGE_UPDATE: Discord says this of previews, pins, votes and new threads too: only a person's
    edit counts. Raises Malformed."""
    own_id = message.need_id("id")
    if ours(message, scene.me):
        return Ignored(reason=v.OWN)
    if not message.text("edited_timestamp") or by_a_program(message):
        return Ignored(reason=v.NOT_EDITED)
    if (skipped := _no_talk(message)) is not None:
        return skipped
    before = scene.before(own_id)
    if before == message.text("content"):
        return Ignored(reason=v.SAME_TEXT)
    place = _place(message, scene)
    return _said(message, place, scene, edited=True, before=before) if isinstance(place, Place) else place


def deleted(event: Node, scene: Scene) -> Parsed:
    """MESSAGE_DELETE and MESSAGE_DELETE_BULK. Who wrote them, Discord does not say. Raises Malformed."""
    place = _place(event, scene)
    if not isinstance(place, Place):
        return place
    if event.at("ids").value is None:
        return _gone(event.need_id("id"), place, scene)
    ids = [Node(one.value).id() for one in event.nodes("ids")]
    changes = tuple(_gone(own_id, place, scene) for own_id in dict.fromkeys(filter(None, ids)))
    if not changes:
        raise Malformed("ids")
    return v.Deleted(changes=changes[:BULK_LIMIT])


def earlier(message: Node, thread: ThreadKey, me: Me, parents: Parents) -> InboundMessage | None:
    """A message of the thread's history; None for our own and for what is no talk. What a thread's
    first message shows again is the message in the channel that the thread was begun on."""
    if message.number("type") == _STARTER:
        message = message.at("referenced_message")
    if not message.id("id") or _no_talk(message) is not None:
        return None
    scene = Scene(me=me, mention="start", threads=False, parents=parents, before=_nothing_known)
    guild = "" if thread.workspace == refs.DM else thread.workspace
    place = Place(refs.place_of(thread), guild, thread.conversation, thread.thread, v.TEXT)
    heard = _heard(message, place, scene)
    return replace(heard, thread=thread) if isinstance(heard, InboundMessage) else None


def _nothing_known(_: str) -> None:
    return None


# ---- whether it is for us


def _no_talk(message: Node) -> Ignored | None:
    kind = message.number("type")
    if kind is None or kind in TALK:
        return Ignored(reason=v.HIDDEN) if message.has_flag(_EPHEMERAL) else None
    if kind == _STARTER:
        return Ignored(reason=v.STARTER)
    if kind in NOTICES:
        return Ignored(reason=v.NOTICE)
    return Ignored(reason=v.UNKNOWN_MESSAGE, unknown=True)


def _said(
    message: Node, place: Place, scene: Scene, *, edited: bool = False, before: str | None = None
) -> InboundMessage | Ignored:
    """One message, if it is for us. before: its content before an edit."""
    said = _heard(message, place, scene)
    if isinstance(said, Ignored):
        return said
    was_called = before is not None and discord_decoded(before, bot=scene.me.called).addressed
    said = replace(said, edited=edited, addressed=said.addressed or was_called)
    if said.addressed:
        return said
    if said.from_bot:
        return Ignored(reason=v.NOT_ADDRESSED)
    if _to_others(message, scene.me):
        return Ignored(reason=v.TO_OTHERS)
    begins = not place.thread or (place.is_post and said.message_id == place.thread)
    if begins and scene.mention == "never":
        return replace(said, addressed=True)
    if place.thread and scene.mention != "always":
        return replace(said, ongoing=True)
    return Ignored(reason=v.NOT_ADDRESSED)


def _heard(message: Node, place: Place, scene: Scene) -> InboundMessage | Ignored:
    """One message as it is, whomever it is said to."""
    own_id = message.need_id("id")
    if ours(message, scene.me):
        return Ignored(reason=v.OWN)
    author = message.id("author", "id")
    if not author:
        return Ignored(reason=v.NO_AUTHOR)
    from_bot = by_a_program(message)
    if not wire_text.has_anything(message):
        return Ignored(reason=v.NO_CONTENT)
    words = wire_text.words(message, scene.me, scene.parents, from_bot=from_bot)
    files = wire_text.attachments(message)
    quote = _quote(message, scene.parents)
    # Calling the bot into a thread without a word is a question about that thread.
    called_in = words.addressed and place.thread not in ("", own_id)
    # A message that was fetched does not say what its author is in the guild.
    unsure = bool(place.guild) and not from_bot and not message.at("member")
    if not (words.text.strip() or files or quote or called_in):
        return Ignored(reason=v.NOTHING)
    return InboundMessage(
        thread=_thread(own_id, place, scene),
        message_id=own_id,
        actor=v.actor_of(author),
        text=words.text,
        sent_at=refs.time_of(own_id),
        addressed=_addressed(message, words.addressed, place, scene.me, from_bot=from_bot),
        private=place.private,
        author=v.name_of(message.at("author"), message.at("member")),
        from_bot=from_bot,
        guest=unsure or v.is_guest(message.at("member")),
        guest_unsure=unsure,
        mentioned=words.addressed,
        quote=quote,
        attachments=files,
    )


def _addressed(message: Node, called: bool, place: Place, me: Me, *, from_bot: bool) -> bool:
    """A program must call the bot by name: its replies count for nothing, or two would never end."""
    return called or (not from_bot and (place.private or _replied_to(message) == me.user))


def _to_others(message: Node, me: Me) -> bool:
    """Whether it begins with a mention of somebody else, or replies to another person's message."""
    found = _TO_OTHERS.match(message.text("content"))
    if found is not None and found["id"] not in me.called:
        return True
    return _replied_to(message) not in ("", me.user, message.id("author", "id"))


def _replied_to(message: Node) -> str:
    """Whose message it replies to, "" for nobody's or when Discord does not tell."""
    if message.number("type") != _REPLY:
        return ""
    return message.id("referenced_message", "author", "id")


# ---- who and where


def ours(message: Node, me: Me) -> bool:
    """Whether our application wrote it, as an answer to an interaction too."""
    return message.text("author", "id") == me.user != "" or (
        me.application != ""
        and me.application in (message.text("application_id"), message.text("webhook_id"))
    )


def by_a_program(message: Node) -> bool:
    return (
        bool(message.text("webhook_id"))
        or message.flag("author", "bot")
        or message.flag("author", "system")
        or message.number("type") in (20, 23)
    )


def _place(event: Node, scene: Scene) -> Place | v.PlaceWanted:
    channel = event.need_id("channel_id")
    place = v.place_in(channel, event.id("guild_id"), scene.parents(channel), scene.parents)
    return place or v.PlaceWanted(channel=channel)


def _thread(message: str, place: Place, scene: Scene) -> ThreadKey:
    """The thread of a message; in a channel the one that it may begin."""
    return refs.in_thread(place.key, message) if scene.threads and place.can_open else place.key


def _gone(message: str, place: Place, scene: Scene) -> InboundChange:
    return InboundChange(thread=_thread(message, place, scene), kind="deleted", message_id=message)


def _quote(message: Node, parents: Parents) -> str:
    """What it replies to, or forwards."""
    if message.number("message_reference", "type") == _FORWARD or message.at("message_snapshots").value:
        return wire_text.snapshots_text(message, parents)
    if message.number("type") != _REPLY:
        return ""
    return wire_text.quoted(message.at("referenced_message"), parents)
