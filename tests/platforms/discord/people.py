"""What people, other bots and moderators do: words, threads, roles, channels."""

from __future__ import annotations

import copy
from typing import Any

from tests.platforms.discord import ids, limits, permissions, threads
from tests.platforms.discord.asking import Upload
from tests.platforms.discord.checks import mentioned
from tests.platforms.discord.entities import Channel, Guild, iso
from tests.platforms.discord.errors import Refused
from tests.platforms.discord.limits import Json
from tests.platforms.discord.posting import announce, compose, event_of, notify, publish, unarchive, update
from tests.platforms.discord.pressing import File, Pressing


class People(Pressing):
    """The driving side. Texts are as on the wire: `<@id>` mentions."""

    # ---- words

    def say(
        self,
        user: str,
        channel: str,
        text: str = "",
        *,
        reply_to: str = "",
        ping: bool = True,
        files: tuple[File, ...] | list[File] = (),
        **more: Any,
    ) -> Json:
        """A person writes; `channel` may be their own id for the direct conversation. `ping`: a reply
        mentions whom it answers. `more` are fields of the message. Returns the message as it is stored."""
        place = self.dm(channel) if channel in self.users else self.channels[channel]
        assert self.may(user, place), f"{user} does not see {channel}"
        assert place.type != limits.FORUM, "a forum has posts, no messages"
        assert not (place.locked and place.is_thread), "the thread is locked"
        message = self.message(place, user, text, **more)
        message["attachments"] = [self.upload(place.id, *file) for file in files]
        replied = self._reply(place, message, reply_to, ping=ping) if reply_to else ""
        self._mention(place, message, replied)
        if place.is_thread:
            unarchive(self, place)
            place.members.setdefault(user, self.now())
        return announce(self, place, message)

    def _reply(self, place: Channel, message: Json, to: str, *, ping: bool) -> str:
        original = place.messages[to]
        message["type"] = 19
        reference: Json = {"type": 0, "channel_id": place.id, "message_id": to}
        message["message_reference"] = reference | ({"guild_id": place.guild} if place.guild else {})
        message["referenced_message"] = copy.deepcopy(original)
        return str(original["author"]["id"]) if ping else ""

    def _mention(self, place: Channel, message: Json, replied: str = "") -> None:
        names = mentioned(message["content"])
        people = dict.fromkeys([*(n for n in names if n in self.users), *([replied] if replied else [])])
        message["mentions"] = [self._mentioned(place, user) for user in people]
        roles = self.guilds[place.guild].roles if place.guild else {}
        message["mention_roles"] = [name[1:] for name in names if name[1:] in roles]
        message["mention_everyone"] = bool({"everyone", "here"} & set(names))

    def _mentioned(self, place: Channel, user: str) -> Json:
        shown = self.users[user].public()
        members = self.guilds[place.guild].members if place.guild else {}
        return shown | {"member": members[user].public(user=False)} if user in members else shown

    def edit(self, channel: str, message: str, text: str) -> Json:
        """Somebody changes their message."""
        place = self.channels[channel]
        found = place.messages[message]
        found["content"], found["edited_timestamp"] = text, iso(self.now())
        self._mention(place, found)
        return update(self, place, found)

    def touch(self, channel: str, message: str) -> Json:
        """MESSAGE_UPDATE without an edit: the preview of a link has been made."""
        place = self.channels[channel]
        found = place.messages[message]
        found["embeds"] = [{"type": "link", "url": "https://example.com/", "title": "A preview"}]
        return update(self, place, found)

    def redeliver(self, message: Json) -> None:
        """MESSAGE_CREATE once more, as after a replay."""
        place = self.channels[message["channel_id"]]
        told = event_of(self, place, message)
        self.dispatch("MESSAGE_CREATE", told, guild=place.guild, channel=place)

    def bot_says(self, channel: str, text: str, *, reply_to: str = "", ping: bool = True) -> Json:
        """Another bot writes."""
        return self.say(ids.OTHER_BOT, channel, text, reply_to=reply_to, ping=ping)

    def webhook_says(self, channel: str, text: str, name: str = "Build server") -> Json:
        """A webhook writes."""
        place = self.channels[channel]
        message = self.message(place, ids.OTHER_BOT, text, webhook_id=ids.WEBHOOK)
        message["author"] = {
            "id": ids.WEBHOOK,
            "username": name,
            "global_name": None,
            "discriminator": "0000",
            "avatar": None,
            "bot": True,
        }
        self._mention(place, message)
        return announce(self, place, message)

    def react(self, user: str, channel: str, message: str, emoji: str) -> None:
        """Somebody reacts."""
        self._reaction("MESSAGE_REACTION_ADD", user, channel, message, emoji)

    def unreact(self, user: str, channel: str, message: str, emoji: str) -> None:
        """Somebody takes a reaction back."""
        self._reaction("MESSAGE_REACTION_REMOVE", user, channel, message, emoji)

    def _reaction(self, event: str, user: str, channel: str, id: str, emoji: str) -> None:
        place = self.channels[channel]
        message = place.messages[id]
        people = self.reactors.setdefault(id, {}).setdefault(emoji, set())
        (people.add if event.endswith("ADD") else people.discard)(user)
        message["reactions"] = [
            {
                "emoji": {"id": None, "name": name},
                "count": len(who),
                "me": self.bot_id in who,
                "me_burst": False,
                "count_details": {"burst": 0, "normal": len(who)},
                "burst_colors": [],
            }
            for name, who in self.reactors[id].items()
            if who
        ]
        told: Json = {"user_id": user, "channel_id": channel, "message_id": id, "type": 0, "burst": False}
        told |= {"emoji": {"id": None, "name": emoji}, "message_author_id": message["author"]["id"]}
        if place.guild:
            told |= {"guild_id": place.guild, "member": self.guilds[place.guild].members[user].public()}
        self.dispatch(event, told, guild=place.guild, channel=place)

    def types(self, user: str, channel: str) -> None:
        """Somebody is typing."""
        place = self.dm(channel) if channel in self.users else self.channels[channel]
        told: Json = {"channel_id": place.id, "user_id": user, "timestamp": int(self.now())}
        if place.guild:
            told |= {"guild_id": place.guild, "member": self.guilds[place.guild].members[user].public()}
        self.dispatch("TYPING_START", told, guild=place.guild, channel=place)

    # ---- threads and channels

    def thread(self, user: str, channel: str, name: str, message: str = "", *, private: bool = False) -> str:
        """Somebody opens a thread, on a message or alone; its id."""
        parent = self.channels[channel]
        origin = parent.messages[message] if message else None
        return threads.open_thread(self, parent, name, user, message=origin, private=private).id

    def post(self, user: str, forum: str, title: str, text: str, *, files: tuple[File, ...] = ()) -> str:
        """Somebody opens a forum post; its id, which is also that of its first message."""
        place = threads.open_thread(self, self.channels[forum], title, user)
        self.say(user, place.id, text, files=files, id=place.id)
        return place.id

    def first_post(self, thread: Channel, body: Json, files: dict[int, Upload]) -> Json:
        """The first message of a forum post of our bot."""
        message, _ = compose(self, thread, body, files, at=("message",))
        message["id"] = thread.id
        notify(self, thread, message, body.get("allowed_mentions"))
        publish(self, thread, message)
        return message

    def archive(self, thread: str, *, locked: bool = False) -> None:
        """A moderator or time closes a thread."""
        threads.change_thread(self, self.channels[thread], archived=True, locked=locked)

    def reopen(self, thread: str) -> None:
        """A thread is open again, and not locked."""
        threads.change_thread(self, self.channels[thread], archived=False, locked=False)

    def lock(self, thread: str) -> None:
        """A moderator locks a thread; it stays open for moderators."""
        threads.change_thread(self, self.channels[thread], locked=True)

    def join(self, user: str, thread: str) -> None:
        """Somebody becomes a member of a thread."""
        threads.join(self, self.channels[thread], user)

    def delete_channel(self, channel: str) -> None:
        """A channel with its threads, or a thread, is deleted."""
        threads.remove_channel(self, self.channels[channel])

    def create_channel(self, id: str, name: str, *, guild: str = ids.G1, type: int = limits.TEXT) -> str:
        """A channel is made; its id."""
        place = self.channel(id, name, guild=guild, type=type)
        self.dispatch("CHANNEL_CREATE", place.public(), guild=guild, channel=place)
        return id

    def set_overwrite(self, channel: str, target: str, *, allow: str = "", deny: str = "") -> None:
        """Permissions of a role or member in a channel; names as `VIEW_CHANNEL SEND_MESSAGES`."""
        place = self.channels[channel]
        kind = 0 if target in self.guilds[place.guild].roles else 1
        given, taken = permissions.bits(allow), permissions.bits(deny)
        self.overwrite(channel, target, allow=given, deny=taken, kind=kind)
        self.dispatch("CHANNEL_UPDATE", place.public(), guild=place.guild, channel=place)

    def deny_bot(self, channel: str, names: str) -> None:
        """Our bot may not do this in a channel any more; "" gives everything back."""
        self.set_overwrite(channel, self.bot_id, deny=names)

    # ---- roles, members, guilds

    def change_role(self, guild: str, role: str, allowed: str) -> None:
        """A role may do exactly this from now on."""
        found = self.guilds[guild].roles[role]
        found.permissions = permissions.bits(allowed)
        told = {"guild_id": guild, "role": found.public()}
        self.dispatch("GUILD_ROLE_UPDATE", told, guild=guild)

    def take_from_bot(self, names: str, guild: str = ids.G1) -> None:
        """Our bot's own role loses these permissions, and so does @everyone."""
        for role in self.guilds[guild].roles.values():
            if role.id == guild or role.bot == self.bot_id:
                role.permissions &= ~permissions.bits(names)
                told = {"guild_id": guild, "role": role.public()}
                self.dispatch("GUILD_ROLE_UPDATE", told, guild=guild)

    def grant(self, user: str, role: str, guild: str = ids.G1) -> None:
        """Somebody gets a role."""
        self.guilds[guild].members[user].roles.append(role)
        self._member_changed(guild, user)

    def revoke(self, user: str, role: str, guild: str = ids.G1) -> None:
        """Somebody loses a role."""
        self.guilds[guild].members[user].roles.remove(role)
        self._member_changed(guild, user)

    def _member_changed(self, guild: str, user: str) -> None:
        told = self.guilds[guild].members[user].public() | {"guild_id": guild}
        self.dispatch("GUILD_MEMBER_UPDATE", told, guild=guild)

    def kick(self, user: str, guild: str = ids.G1) -> None:
        """A person leaves a guild; our bot too, with its own id."""
        if user == self.bot_id:
            self.guilds[guild].bot_in = False
            self.dispatch("GUILD_DELETE", {"id": guild}, guild=guild)
            return
        member = self.guilds[guild].members.pop(user)
        told = {"guild_id": guild, "user": member.user.public()}
        self.dispatch("GUILD_MEMBER_REMOVE", told, guild=guild)

    def invite(self, guild: str = ids.G1) -> None:
        """Our bot comes into a guild again."""
        self.guilds[guild].bot_in = True
        self.dispatch("GUILD_CREATE", self.guild_state(self.guilds[guild]), guild=guild)

    def outage(self, guild: str = ids.G1, *, over: bool = False) -> None:
        """A guild is unavailable for a while; `over`: it is back."""
        self.guilds[guild].available = over
        if over:
            self.dispatch("GUILD_CREATE", self.guild_state(self.guilds[guild]), guild=guild)
        else:
            self.dispatch("GUILD_DELETE", {"id": guild, "unavailable": True}, guild=guild)

    def block(self, user: str) -> None:
        """A person takes no direct messages from us: 50007."""
        self.users[user].closed = True

    def unblock(self, user: str) -> None:
        """A person takes direct messages again."""
        self.users[user].closed = False

    def guild_of(self, id: str) -> Guild:
        """The guild that a call names. Raises Refused."""
        if id not in self.guilds:
            raise Refused(10004)
        if not self.guilds[id].bot_in:
            raise Refused(50001)
        return self.guilds[id]
