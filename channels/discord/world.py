"""What the gateway has told of guilds, channels and roles: as much as reading and answering needs.

It is kept apart from the library's own cache: what comes in is read against the state before it, and a
payload over which the library stumbles is no loss here.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Final

from channels.discord import wire
from channels.discord.limits import ADMINISTRATOR
from channels.discord.wire_json import Node
from channels.discord.wire_values import ChannelInfo, Me

_KEPT: Final = 5000  # deleted channels and threads that are remembered


@dataclass(slots=True)
class Guild:
    """`roles`: the bits of what each role may do."""

    owner: str = ""
    roles: dict[str, int] = field(default_factory=dict)

    def administers(self, user: str, roles: frozenset[str], guild: str) -> bool:
        """Whether somebody with these roles may do everything there."""
        bits = [self.roles.get(role, 0) for role in (*roles, guild)]  # everybody's role has the guild's id
        return user == self.owner != "" or any(bit & ADMINISTRATOR for bit in bits)


class World:
    """Learns from dispatches; answers at once."""

    def __init__(self) -> None:
        self.me: Me | None = None
        self.guilds: dict[str, Guild] = {}
        self._channels: dict[str, ChannelInfo] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._announced: set[str] = set()  # guilds that we are in
        self._left: set[str] = set()  # those that threw us out; a later session may have them again
        self._mine: dict[str, str] = {}  # roles that Discord manages for us -> their guild

    # ---- asked

    def parents(self, channel: str) -> ChannelInfo | None:
        """What is known of a channel or thread."""
        return self._channels.get(channel)

    def was_there(self, channel: str) -> bool:
        """Whether a channel or thread exists, or did until somebody deleted it."""
        return channel in self._channels or channel in self._gone

    def administers(self, user: str, roles: frozenset[str], guild: str) -> bool:
        """Whether somebody with these roles may do everything there."""
        known = self.guilds.get(guild)
        return known is not None and known.administers(user, roles, guild)

    def is_new(self, guild: str) -> bool:
        """Whether a guild that is told of now is one that we have just been let into, maybe again. After an
        outage, and when a session begins, it is not."""
        return guild not in self._announced

    # ---- told

    def learn(self, event: str, data: object) -> None:
        """One dispatch of the gateway. Never raises."""
        node = Node(data)
        match event:
            case "READY":
                self._ready(node)
            case "GUILD_CREATE" if node.id("id"):
                self._guild(node)
            case "GUILD_UPDATE" if node.id("id") in self.guilds:
                self.guilds[node.id("id")].owner = node.id("owner_id")
            case "GUILD_DELETE" if not node.flag("unavailable"):
                self._forget_guild(node.id("id"))
                self._announced.discard(node.id("id"))
                self._left.add(node.id("id"))
            case "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE":
                self._role(node.at("role"), node.id("guild_id"))
            case "GUILD_ROLE_DELETE":
                self._forget_role(node.id("role_id"), node.id("guild_id"))
            case _:
                self._place(event, node)

    def _place(self, event: str, node: Node) -> None:
        match event:
            case "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE":
                self.channel(node.value)
            case "CHANNEL_DELETE" | "THREAD_DELETE":
                self._forget_channel(node.id("id"))
            case "THREAD_LIST_SYNC":
                for thread in node.nodes("threads"):
                    self.channel(thread.value, node.id("guild_id"))

    def channel(self, data: object, guild: str = "") -> None:
        """A channel or thread as Discord describes it. guild: where it belongs, when it does not say."""
        info = wire.channel_info(data)
        own_id = Node(data).id("id")
        if info is not None and own_id:
            self._channels[own_id] = info if info.guild or not guild else replace(info, guild=guild)
            self._gone.pop(own_id, None)

    # ---- what becomes of it

    def _ready(self, node: Node) -> None:
        user = node.id("user", "id")
        if user:
            application = node.id("application", "id") or (self.me.application if self.me else "")
            self.me = Me(user=user, application=application, roles=frozenset(self._mine))
        listed = {guild.id("id") for guild in node.nodes("guilds")} - {""}
        gone = {guild for guild in self._announced - listed if _is_of(guild, node.at("shard").value)}
        self._left |= gone
        self._announced = (self._announced - gone) | (listed - self._left)

    def _guild(self, node: Node) -> None:
        if node.flag("unavailable"):
            return
        own_id = node.id("id")
        self._forget_guild(own_id)
        self._announced.add(own_id)
        self._left.discard(own_id)
        self.guilds[own_id] = Guild(owner=node.id("owner_id"))
        for role in node.nodes("roles"):
            self._role(role, own_id)
        for channel in (*node.nodes("channels"), *node.nodes("threads")):
            self.channel(channel.value, own_id)

    def _forget_guild(self, guild: str) -> None:
        """Nothing of it is known any more; it may come back as it was."""
        self.guilds.pop(guild, None)
        self._channels = {key: info for key, info in self._channels.items() if info.guild != guild}
        self._mine = {role: where for role, where in self._mine.items() if where != guild}

    def _forget_channel(self, channel: str) -> None:
        for one in [channel, *(key for key, info in self._channels.items() if info.parent == channel)]:
            if not one:
                continue
            self._channels.pop(one, None)
            self._gone[one] = None
            while len(self._gone) > _KEPT:
                self._gone.popitem(last=False)

    def _role(self, role: Node, guild: str) -> None:
        own_id, bits = role.id("id"), role.text("permissions")
        if not own_id or guild not in self.guilds:
            return
        self.guilds[guild].roles[own_id] = int(bits) if bits.isdecimal() else 0
        if self.me is not None and role.id("tags", "bot_id") == self.me.user:
            self._mine[own_id] = guild
            self.me = replace(self.me, roles=frozenset(self._mine))

    def _forget_role(self, role: str, guild: str) -> None:
        if guild in self.guilds:
            self.guilds[guild].roles.pop(role, None)
        if self._mine.pop(role, None) is not None and self.me is not None:
            self.me = replace(self.me, roles=frozenset(self._mine))


def _is_of(guild: str, shard: object) -> bool:
    """Whether a guild is told of by this shard, `[number, count]`; one without numbers tells of all."""
    match shard:
        case [int(number), int(count)] if count > 0:
            return (int(guild) >> 22) % count == number
        case _:
            return True
