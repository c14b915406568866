"""Messages, reactions, channels and threads."""

from __future__ import annotations

import urllib.parse
from typing import Any

from tests.platforms.discord import limits, permissions, threads
from tests.platforms.discord.asking import Answer, Ask, route
from tests.platforms.discord.checks import THREAD, THREAD_NAME, check_shape, check_thread
from tests.platforms.discord.entities import Channel
from tests.platforms.discord.errors import Refused
from tests.platforms.discord.intents import CONTENT, veiled
from tests.platforms.discord.limits import Json
from tests.platforms.discord.posting import check_old, check_sendable, post, rewrite, unarchive, update
from tests.platforms.discord.shapes import flag, flake, integer, many, nullable, string


def place_of(ask: Ask) -> Channel:
    """The channel in the path."""
    return ask.server.place(ask.params["channel"])


def told(ask: Ask, place: Channel, message: Json) -> Json:
    """A message as REST shows it: without words when the content intent was not granted, and with fresh
    addresses of its files."""
    granted = CONTENT if ask.server.message_content else 0
    seen = veiled(message | ({"guild_id": place.guild} if place.guild else {}), granted, ask.server.bot_id)
    seen = {name: value for name, value in seen.items() if name != "guild_id"}
    if seen.get("attachments"):
        fresh = [(file, ask.server.signed(ask.server.files[file["id"]])) for file in seen["attachments"]]
        seen["attachments"] = [file | {"url": url, "proxy_url": url} for file, url in fresh]
    return seen


def own(ask: Ask, place: Channel) -> Json:
    """The message of the path, which has to be our bot's."""
    message = ask.server.find(place, ask.params["message"])
    if message["author"]["id"] != ask.server.bot_id:
        raise Refused(50005)
    return message


# ---- messages


@route("POST", "/channels/{channel}/messages")
def create_message(ask: Ask) -> Answer:
    message, report = post(ask.server, place_of(ask), ask.body, ask.files)
    ask.note(report)
    return message


@route("PATCH", "/channels/{channel}/messages/{message}")
def edit_message(ask: Ask) -> Answer:
    place = place_of(ask)
    message = own(ask, place)
    if place.archived:
        raise Refused(50083)
    check_old(ask.server, place, message)
    ask.note(rewrite(ask.server, place, message, ask.body, ask.files))
    return update(ask.server, place, message)


@route("DELETE", "/channels/{channel}/messages/{message}")
def delete_message(ask: Ask) -> Answer:
    place = place_of(ask)
    message = ask.server.find(place, ask.params["message"])
    if message["author"]["id"] != ask.server.bot_id:
        if place.type == limits.DM:
            raise Refused(50003)
        ask.server.need(place, "MANAGE_MESSAGES")
    ask.server.delete(place.id, message["id"])
    return None


@route("POST", "/channels/{channel}/messages/bulk-delete")
def delete_messages(ask: Ask) -> Answer:
    place = place_of(ask)
    ask.note(check_shape(ask.body, {"messages": many(flake, 100, 2)}))
    ask.server.need(place, "MANAGE_MESSAGES")
    ask.server.delete(place.id, *map(str, ask.body["messages"]))
    return None


@route("GET", "/channels/{channel}/messages/{message}")
def get_message(ask: Ask) -> Answer:
    place = place_of(ask)
    ask.server.need(place, "READ_MESSAGE_HISTORY")
    return told(ask, place, ask.server.find(place, ask.params["message"]))


@route("GET", "/channels/{channel}/messages", query="limit before after around")
def list_messages(ask: Ask) -> Answer:
    place = place_of(ask)
    if place.type in (limits.FORUM, limits.CATEGORY):
        raise Refused(50008)
    if not permissions.has(ask.server.may(ask.server.bot_id, place), "READ_MESSAGE_HISTORY"):
        return []
    limit = int(ask.query.get("limit", "50"))
    if not 1 <= limit <= limits.LISTED:
        words = [{"code": "NUMBER_TYPE_MAX", "message": "int value should be less than or equal to 100."}]
        raise Refused(50035, errors={"limit": {"_errors": words}})
    found = sorted(place.messages.values(), key=lambda message: int(message["id"]))
    if "after" in ask.query:
        found = [m for m in found if int(m["id"]) > int(ask.query["after"])][:limit]
    elif "before" in ask.query:
        found = [m for m in found if int(m["id"]) < int(ask.query["before"])][-limit:]
    elif "around" in ask.query:
        centre = int(ask.query["around"])
        near = sorted(found, key=lambda message: abs(int(message["id"]) - centre))[:limit]
        found = [message for message in found if message in near]
    else:
        found = found[-limit:]
    return [told(ask, place, message) for message in reversed(found)]


@route("POST", "/channels/{channel}/typing")
def start_typing(ask: Ask) -> Answer:
    place = place_of(ask)
    check_sendable(ask.server, place)
    ask.server.typing.append((place.id, ask.server.now()))
    return None


# ---- reactions


@route("PUT", "/channels/{channel}/messages/{message}/reactions/{emoji}/@me", query="location type")
def add_reaction(ask: Ask) -> Answer:
    place = place_of(ask)
    ask.server.need(place, "READ_MESSAGE_HISTORY")
    message = ask.server.find(place, ask.params["message"])
    if place.archived:
        raise Refused(50083)
    emoji = urllib.parse.unquote(ask.params["emoji"])
    if not any(r["emoji"]["name"] == emoji for r in message.get("reactions", [])):
        ask.server.need(place, "ADD_REACTIONS")
    if emoji.isascii() and ":" not in emoji:
        raise Refused(10014, 400)
    ask.server.react(ask.server.bot_id, place.id, message["id"], emoji)
    return None


@route("DELETE", "/channels/{channel}/messages/{message}/reactions/{emoji}/@me", query="location")
def remove_reaction(ask: Ask) -> Answer:
    place = place_of(ask)
    emoji = urllib.parse.unquote(ask.params["emoji"])
    message = ask.server.find(place, ask.params["message"])
    ask.server.unreact(ask.server.bot_id, place.id, message["id"], emoji)
    return None


# ---- channels


@route("GET", "/channels/{channel}")
def get_channel(ask: Ask) -> Answer:
    return ask.server.shown_channel(place_of(ask))


@route("PATCH", "/channels/{channel}")
def edit_channel(ask: Ask) -> Answer:
    place = place_of(ask)
    if not place.is_thread:
        ask.server.need(place, "MANAGE_CHANNELS")
        fields = {"name": string(limits.CHANNEL_NAME), "topic": nullable(string(limits.TOPIC, 0))}
        ask.note(check_shape(ask.body, {}, fields))
        place.name, place.topic = ask.body.get("name", place.name), ask.body.get("topic", place.topic)
        ask.server.dispatch("CHANNEL_UPDATE", place.public(), guild=place.guild, channel=place)
        return place.public()
    more = {
        "name": THREAD_NAME,
        "archived": flag,
        "locked": flag,
        "invitable": flag,
        "flags": integer(0, 1 << 4),
    }
    ask.note(check_shape(ask.body, {}, THREAD | more | {"applied_tags": many(flake, limits.TAGS)}))
    _check_thread_change(ask, place)
    names = {"auto_archive_duration": "archive_minutes", "applied_tags": "applied"}
    known = {"name", "archived", "locked", *names}
    changes = {names.get(key, key): value for key, value in ask.body.items() if key in known}
    threads.change_thread(ask.server, place, **changes)
    return place.public(me=ask.server.bot_id)


def _check_thread_change(ask: Ask, place: Channel) -> None:
    body: Json = ask.body
    mine = permissions.has(ask.server.may(ask.server.bot_id, place), "MANAGE_THREADS")
    opens = body.get("archived") is False and place.archived
    if place.archived and not opens:
        raise Refused(50083)
    if mine:
        return
    if "locked" in body or (opens and place.locked):
        raise Refused(50013)
    if opens:
        ask.server.need(place, "SEND_MESSAGES_IN_THREADS")
    elif place.owner != ask.server.bot_id:
        raise Refused(50013)


@route("DELETE", "/channels/{channel}")
def delete_channel(ask: Ask) -> Answer:
    place = place_of(ask)
    if place.type == limits.DM:
        return ask.server.shown_channel(place)
    ask.server.need(place, "MANAGE_THREADS" if place.is_thread else "MANAGE_CHANNELS")
    shown = place.public()
    threads.remove_channel(ask.server, place)
    return shown


# ---- threads


@route("POST", "/channels/{channel}/messages/{message}/threads")
def start_thread(ask: Ask) -> Answer:
    place = place_of(ask)
    if place.type not in (limits.TEXT, 5):
        raise Refused(50024)
    ask.server.need(place, "CREATE_PUBLIC_THREADS", "READ_MESSAGE_HISTORY")
    message = ask.server.find(place, ask.params["message"])
    ask.note(check_thread(ask.body, of_message=True))
    if message["id"] in ask.server.channels:
        raise Refused(160004)
    if message["type"] not in (0, 19, 20, 23):
        raise Refused(50021)
    minutes = ask.body.get("auto_archive_duration") or 1_440
    owner = ask.server.bot_id
    thread = threads.open_thread(ask.server, place, ask.body["name"], owner, message=message, minutes=minutes)
    return thread.public(me=owner)


@route("POST", "/channels/{channel}/threads", query="use_nested_fields")
def start_thread_alone(ask: Ask) -> Answer:
    place = place_of(ask)
    minutes = (ask.body.get("auto_archive_duration") if isinstance(ask.body, dict) else None) or 1_440
    owner = ask.server.bot_id
    if place.type == limits.FORUM:
        ask.server.need(place, "SEND_MESSAGES")
        ask.note(check_thread(ask.body, forum=True))
        tags = [str(tag) for tag in ask.body.get("applied_tags") or []]
        thread = threads.open_thread(ask.server, place, ask.body["name"], owner, minutes=minutes, tags=tags)
        message = ask.server.first_post(thread, ask.body["message"], ask.files)
        return thread.public(me=owner) | {"message": message}
    if place.type not in (limits.TEXT, 5):
        raise Refused(50024)
    ask.note(check_thread(ask.body))
    private = ask.body.get("type", limits.PRIVATE_THREAD) == limits.PRIVATE_THREAD
    ask.server.need(place, "CREATE_PRIVATE_THREADS" if private else "CREATE_PUBLIC_THREADS")
    thread = threads.open_thread(ask.server, place, ask.body["name"], owner, private=private, minutes=minutes)
    return thread.public(me=owner)


def thread_of(ask: Ask) -> Channel:
    """The thread in the path. Raises Refused."""
    place = place_of(ask)
    if not place.is_thread:
        raise Refused(50024)
    return place


@route("PUT", "/channels/{channel}/thread-members/{user}")
def join_thread(ask: Ask) -> Answer:
    thread = thread_of(ask)
    if thread.archived:
        raise Refused(50083)
    user = ask.server.bot_id if ask.params["user"] == "@me" else ask.params["user"]
    if user not in ask.server.guilds[thread.guild].members:
        raise Refused(10007)
    if user != ask.server.bot_id:
        check_sendable(ask.server, thread)
        unarchive(ask.server, thread)
    threads.join(ask.server, thread, user)
    return None


@route("DELETE", "/channels/{channel}/thread-members/{user}")
def leave_thread(ask: Ask) -> Answer:
    thread = thread_of(ask)
    if ask.params["user"] != "@me":
        ask.server.need(thread, "MANAGE_THREADS")
    user = ask.server.bot_id if ask.params["user"] == "@me" else ask.params["user"]
    threads.leave(ask.server, thread, user)
    return None


@route("GET", "/channels/{channel}/thread-members/{user}", query="with_member")
def get_thread_member(ask: Ask) -> Answer:
    thread = thread_of(ask)
    user = ask.server.bot_id if ask.params["user"] == "@me" else ask.params["user"]
    if user not in thread.members:
        raise Refused(10007)
    return thread.membership(user)


@route("GET", "/channels/{channel}/thread-members", query="with_member after limit")
def list_thread_members(ask: Ask) -> Answer:
    thread = thread_of(ask)
    if not ask.server.members_intent:
        raise Refused(50001)
    return [thread.membership(user) for user in thread.members]


@route("GET", "/channels/{channel}/threads/archived/public", query="before limit")
def archived_threads(ask: Ask) -> Answer:
    place = place_of(ask)
    ask.server.need(place, "READ_MESSAGE_HISTORY")
    found = [c for c in ask.server.channels.values() if c.parent == place.id and c.archived]
    return listed(ask, [c for c in found if c.type == limits.PUBLIC_THREAD])


@route("GET", "/guilds/{guild}/threads/active")
def active_threads(ask: Ask) -> Answer:
    guild = ask.server.guild_of(ask.params["guild"])
    found = [c for c in ask.server.channels.values() if c.guild == guild.id and c.is_thread]
    return listed(ask, [c for c in found if not c.archived and ask.server.may(ask.server.bot_id, c)])


def listed(ask: Ask, found: list[Channel]) -> Json:
    """Threads, with our bot's memberships."""
    me = ask.server.bot_id
    newest: list[Any] = sorted(found, key=lambda c: int(c.id), reverse=True)
    members = [thread.membership(me) for thread in newest if me in thread.members]
    return {"threads": [thread.public() for thread in newest], "members": members, "has_more": False}
