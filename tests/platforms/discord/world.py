"""The state behind the API: guilds, people, channels, messages, files, and ids. No sockets."""

from __future__ import annotations

import hashlib
import itertools
import mimetypes
import urllib.parse
from collections import defaultdict
from typing import Any

from tests.platforms.discord import ids, limits, permissions
from tests.platforms.discord.clockwork import Clockwork
from tests.platforms.discord.entities import Call, Channel, Guild, Member, Page, Role, Stored, User, iso
from tests.platforms.discord.errors import Refused
from tests.platforms.discord.limits import Json

BOT_PERMISSIONS = (
    f"{permissions.EVERYONE} MANAGE_THREADS"  # what an invite of a careful bot asks for, and more
)


class World(Clockwork):
    """Everything that is, and what became of it."""

    def __init__(self) -> None:
        super().__init__()
        self.token = "OTAwMDAwMDAwMDAwMDAwMDAx.Gtests.a-bot-token-that-only-this-server-knows"
        self.base = ""  # address of the server, without a slash at the end
        self.app_id, self.bot_id = ids.APP, ids.BOT
        self.message_content = True  # whether the intent was granted in the portal
        self.members_intent = True
        self.users: dict[str, User] = {}
        self.guilds: dict[str, Guild] = {}
        self.channels: dict[str, Channel] = {}
        self.files: dict[str, Stored] = {}
        self.commands: list[Json] = []
        self.ephemeral: dict[str, list[Json]] = defaultdict(list)  # user id -> messages only they see
        self.typing: list[tuple[str, float]] = []  # channel, when
        self.calls: list[Call] = []
        self.pages: list[Page] = []
        self.failures: list[str] = []
        self.nonces: dict[tuple[str, str], tuple[str, float]] = {}  # (channel, nonce) -> message, when
        self.reactors: dict[str, dict[str, set[str]]] = {}  # message -> emoji -> user ids
        self.old_edits: dict[str, list[float]] = defaultdict(list)
        self._last_flake = 0
        self._counter = itertools.count(1)
        self._populate()

    def _populate(self) -> None:
        for id, name in ((ids.ADA, "ada"), (ids.BOB, "bob"), (ids.CLEO, "cleo"), (ids.DAN, "dan")):
            self.user(id, name)
        self.user(ids.XENA, "xena")
        self.user(ids.BOT, "threadgate", bot=True)
        self.user(ids.OTHER_BOT, "otherbot", bot=True)
        people = [ids.ADA, ids.BOB, ids.CLEO, ids.DAN, ids.OTHER_BOT]
        guild = self.guild(ids.G1, "Acme", ids.ADA, people, bot_role=ids.BOT_ROLE)
        self.role(ids.G1, ids.OPS, "ops", members=[ids.BOB])
        self.role(ids.G1, ids.ADMINS, "admins", "ADMINISTRATOR", members=[ids.CLEO])
        self.channel(ids.GENERAL, "general")
        self.channel(ids.APPROVALS, "approvals")
        self.channel(ids.PRIVATE, "private")
        hidden, seen = permissions.bits("VIEW_CHANNEL"), permissions.bits("VIEW_CHANNEL SEND_MESSAGES")
        self.overwrite(ids.PRIVATE, guild.id, deny=hidden)
        for id, kind in ((ids.OPS, 0), (ids.BOT_ROLE, 0)):
            self.overwrite(ids.PRIVATE, id, allow=seen, kind=kind)
        forum = self.channel(ids.FORUM, "help", type=limits.FORUM)
        forum.tags = [{"id": ids.TAG, "name": "question", "moderated": False, "emoji_id": None}]
        forum.tags[0]["emoji_name"] = None
        self.channel(ids.READONLY, "announcements")
        self.overwrite(ids.READONLY, guild.id, deny=permissions.bits("SEND_MESSAGES"))
        self.guild(ids.G2, "Beta", ids.XENA, [ids.XENA, ids.ADA], bot_role=ids.G2_BOT_ROLE)
        self.channel(ids.ELSEWHERE, "elsewhere", guild=ids.G2)

    # ---- who and where

    def user(self, id: str, name: str, *, bot: bool = False, display: str = "") -> User:
        """Register a person or a bot."""
        self.users[id] = User(id, name, display or name.title(), bot)
        return self.users[id]

    def guild(self, id: str, name: str, owner: str, members: list[str], *, bot_role: str = "") -> Guild:
        """A guild with our bot in it, which has a managed role."""
        guild = self.guilds[id] = Guild(id, name, owner)
        guild.roles[id] = Role(id, "@everyone", permissions.bits(permissions.EVERYONE), 0)
        for user in [*members, owner, self.bot_id]:
            guild.members.setdefault(user, Member(self.users[user]))
        managed = Role(
            bot_role or self.flake(), "threadgate", permissions.bits(BOT_PERMISSIONS), bot=self.bot_id
        )
        guild.roles[managed.id] = managed
        guild.members[self.bot_id].roles.append(managed.id)
        return guild

    def role(
        self, guild: str, id: str, name: str, allowed: str = "", members: list[str] | None = None
    ) -> Role:
        """A role; `allowed`: names of permissions. Quiet: see `People.change_role` for one that is told."""
        role = Role(id, name, permissions.bits(allowed), len(self.guilds[guild].roles))
        self.guilds[guild].roles[id] = role
        for user in members or []:
            self.guilds[guild].members[user].roles.append(id)
        return role

    def channel(self, id: str, name: str, *, guild: str = ids.G1, type: int = limits.TEXT) -> Channel:
        """A channel of a guild that everybody can read and write. Quiet."""
        self.channels[id] = Channel(id, type, name, guild, position=len(self.channels))
        return self.channels[id]

    def overwrite(self, channel: str, target: str, *, allow: int = 0, deny: int = 0, kind: int = 0) -> None:
        """Permissions of a role (`kind` 0) or member (1) in a channel, replacing what was. Quiet."""
        place = self.channels[channel]
        place.overwrites = [entry for entry in place.overwrites if entry["id"] != target]
        entry = {"id": target, "type": kind, "allow": str(allow), "deny": str(deny)}
        place.overwrites.append(entry)

    def dm(self, user: str) -> Channel:
        """The direct conversation of our bot with a person; made when there is none."""
        id = f"6{user[1:]}"
        if id not in self.channels:
            self.channels[id] = Channel(id, limits.DM, user=user)
        return self.channels[id]

    def shown_channel(self, place: Channel) -> Json:
        """A channel as our bot sees it."""
        user = self.users[place.user].public() if place.user else None
        return place.public(me=self.bot_id, user=user)

    # ---- permissions

    def may(self, user: str, place: Channel) -> int:
        """The permissions of a user there. 0 for one who is not there."""
        if place.type == limits.DM:
            return permissions.ALL if user in (place.user, self.bot_id) else 0
        guild = self.guilds[place.guild]
        member = guild.members.get(user)
        if member is None or (user == self.bot_id and not guild.bot_in):
            return 0
        if guild.owner == user:
            return permissions.ALL
        parent = self.channels.get(place.parent) if place.is_thread else place
        base = permissions.of_roles(
            guild.id, {id: role.permissions for id, role in guild.roles.items()}, member.roles
        )
        overwrites = parent.overwrites if parent else []
        value = permissions.in_channel(base, guild.id, user, member.roles, overwrites)
        private = place.type == limits.PRIVATE_THREAD and user not in place.members
        if private and not permissions.has(value, "MANAGE_THREADS"):
            return 0
        return value if permissions.has(value, "VIEW_CHANNEL") else 0

    def need(self, place: Channel, *names: str) -> None:
        """Our bot needs these permissions there. Raises Refused: 50001 when it sees nothing, 50013 else."""
        value = self.may(self.bot_id, place)
        if not value:
            raise Refused(50001)
        if not all(permissions.has(value, name) for name in names):
            raise Refused(50013)

    def place(self, id: str) -> Channel:
        """The channel that a call names. Raises Refused."""
        if id not in self.channels:
            raise Refused(10003)
        place = self.channels[id]
        self.need(place)
        return place

    # ---- ids, files, messages

    def flake(self) -> str:
        """A new id, later than all before."""
        stamp = (int(self.now() * 1000) - limits.EPOCH) << 22
        self._last_flake = max(self._last_flake + 1, stamp)
        return str(self._last_flake)

    def sent_at(self, id: str) -> float:
        """Unix seconds of the server's clock at which an id was made."""
        return ((int(id) >> 22) + limits.EPOCH) / 1000

    def upload(self, channel: str, name: str, content: bytes, media_type: str = "") -> Json:
        """Keep a file; the attachment that shows it."""
        guessed = media_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
        clean = name.replace(" ", "_")
        stored = Stored(self.flake(), clean, content, guessed, channel)
        self.files[stored.id] = stored
        shown: Json = {
            "id": stored.id,
            "filename": clean,
            "size": len(content),
            "content_type": guessed if not guessed.startswith("text/") else f"{guessed}; charset=utf-8",
        }
        shown["url"] = shown["proxy_url"] = self.signed(stored)
        if guessed.startswith("image/"):
            shown |= {"width": 16, "height": 16}
        return shown

    def signed(self, stored: Stored) -> str:
        """The address of a file, good for a day."""
        expires = int(self.now() + limits.ATTACHMENT_LIFE)
        path = f"/attachments/{stored.channel}/{stored.id}/{urllib.parse.quote(stored.name)}"
        digest = hashlib.sha256(f"{path}{expires}".encode()).hexdigest()
        return f"{self.base}{path}?ex={expires:x}&is={int(self.now()):x}&hm={digest}&"

    def message(self, place: Channel, author: str, content: str, **more: Any) -> Json:
        """A message, not yet stored anywhere."""
        id = more.pop("id", None) or self.flake()
        made: Json = {
            "id": id,
            "channel_id": place.id,
            "type": 0,
            "content": content,
            "author": self.users[author].public(),
            "timestamp": iso(self.now()),
            "edited_timestamp": None,
            "tts": False,
            "pinned": False,
            "mention_everyone": False,
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "embeds": [],
            "components": [],
            "flags": 0,
        }
        return made | more

    def store(self, place: Channel, message: Json) -> Json:
        """Keep a message. Quiet."""
        place.messages[message["id"]] = message
        place.last_message = message["id"]
        place.total += 1
        self.changed()
        return message

    def find(self, place: Channel, id: str) -> Json:
        """A message that is not ephemeral. Raises Refused."""
        if id not in place.messages:
            raise Refused(10008)
        return place.messages[id]

    def note_page(self, message: Json, names: list[str]) -> None:
        """Our bot's message has notified these."""
        if not message["flags"] & (limits.SILENT | limits.EPHEMERAL):
            self.pages += [Page(message["channel_id"], message["id"], who) for who in names]

    # ---- told to sessions

    def dispatch(self, event: str, data: Json, *, guild: str = "", channel: Channel | None = None) -> None:
        """An event for every session that it concerns. `channel`: only where our bot can see that."""
        raise NotImplementedError
