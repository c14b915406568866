"""Which roles somebody has in a guild, and whether as a guest: told by what they write, or looked up, and
remembered for a moment."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from channels.base import TargetGone
from channels.discord.limits import ADMINISTRATOR, ROLES_SECONDS
from channels.discord.wire_json import Node
from channels.discord.wire_values import is_guest

KEPT: Final = 5000  # members remembered
ADMINISTRATOR_WORD: Final = "administrator"
_LONGEST: Final = 300  # roles of one member; Discord has 250 in a guild


class Standing(NamedTuple):
    """What somebody is in a guild."""

    roles: frozenset[str] = frozenset()
    guest: bool = True


class People:
    """Look-ups over `member(guild, user)`, which raises ChannelError. administers: whether somebody with
    these roles may do everything there, (user, roles, guild)."""

    def __init__(
        self,
        *,
        member: Callable[[str, str], Awaitable[Mapping[str, Any]]],
        administers: Callable[[str, frozenset[str], str], bool],
        monotonic: Callable[[], float],
    ) -> None:
        self._ask, self._administers, self._monotonic = member, administers, monotonic
        self._known: OrderedDict[tuple[str, str], tuple[float, Standing]] = OrderedDict()
        self._asking: dict[tuple[str, str], asyncio.Task[Standing]] = {}
        self._tasks: set[asyncio.Task[Standing]] = set()
        self._changes = 0  # what was asked before the last one may be out of date

    async def roles(self, user: str, guild: str) -> frozenset[str]:
        """The ids of the person's roles there, and `administrator` where it holds; none for somebody who
        is not there. Raises ChannelError."""
        return (await self._standing(user, guild)).roles

    async def guest(self, user: str, guild: str) -> bool:
        """Whether the person is a guest there, or no member any more. Raises ChannelError."""
        return (await self._standing(user, guild)).guest

    async def _standing(self, user: str, guild: str) -> Standing:
        key = (guild, user)
        known = self._known.get(key)
        if known is not None and self._monotonic() - known[0] < ROLES_SECONDS:
            return known[1]
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._look_up(guild, user), name="discord member")
            self._tasks.add(task)
            task.add_done_callback(lambda done: self._asked(key, done))
        return await asyncio.shield(task)  # others may wait for it too

    def hear(self, event: str, data: object) -> None:
        """Messages and interactions bring their author's roles along."""
        node = Node(data)
        guild, member = node.id("guild_id"), node.at("member")
        user = node.id("author", "id") if event == "MESSAGE_CREATE" else member.id("user", "id")
        if event not in ("MESSAGE_CREATE", "INTERACTION_CREATE") or not guild or not user or not member:
            return
        standing = Standing(_roles(member), is_guest(member))
        bits = member.text("permissions")  # of interactions only
        told = bits.isdecimal() and bool(int(bits) & ADMINISTRATOR)
        self._remember((guild, user), standing, told=told)

    def forget(self, guild: str, user: str = "") -> None:
        """Somebody's roles, or a role, or ("" for the user) the guild has changed: ask again."""
        self._changes += 1
        for key in [key for key in self._known if key[0] == guild and user in ("", key[1])]:
            del self._known[key]
        for key in [key for key in self._asking if key[0] == guild and user in ("", key[1])]:
            del self._asking[key]

    async def close(self) -> None:
        """End what is still being asked."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _asked(self, key: tuple[str, str], task: asyncio.Task[Standing]) -> None:
        self._tasks.discard(task)
        if self._asking.get(key) is task:
            del self._asking[key]
        if not task.cancelled():
            task.exception()  # whoever waited has it; nobody may have

    async def _look_up(self, guild: str, user: str) -> Standing:
        changes = self._changes
        try:
            member = Node(await self._ask(guild, user))
        except TargetGone:  # no member there
            return Standing()
        standing = Standing(_roles(member), is_guest(member))
        if changes == self._changes:
            self._remember((guild, user), standing)
        return standing._replace(roles=self._with_words((guild, user), standing.roles))

    def _remember(self, key: tuple[str, str], standing: Standing, *, told: bool = False) -> None:
        roles = standing.roles
        found = roles | {ADMINISTRATOR_WORD} if told else self._with_words(key, roles)
        self._known[key] = (self._monotonic(), standing._replace(roles=found))
        self._known.move_to_end(key)
        while len(self._known) > KEPT:
            self._known.popitem(last=False)

    def _with_words(self, key: tuple[str, str], roles: frozenset[str]) -> frozenset[str]:
        guild, user = key
        return roles | {ADMINISTRATOR_WORD} if self._administers(user, roles, guild) else roles


def _roles(member: Node) -> frozenset[str]:
    found = [one.id() for one in member.nodes("roles")]
    return frozenset(role for role in found[:_LONGEST] if role)
