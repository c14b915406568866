"""Roles: told by what people write, looked up, remembered for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from channels.base import ChannelDown, TargetGone
from channels.discord.limits import ADMINISTRATOR, ROLES_SECONDS
from channels.discord.people import People
from channels.discord.world import World
from tests.clock import FakeClock

GUILD, ADA, BOB, OPS, ADMINS = "10", "1", "2", "30", "31"
CREATED = {
    "id": GUILD,
    "owner_id": BOB,
    "roles": [
        {"id": GUILD, "permissions": "1024"},
        {"id": OPS, "permissions": "2048"},
        {"id": ADMINS, "permissions": str(ADMINISTRATOR)},
    ],
}


class Directory:
    """Members as Discord tells of them. `trouble` is raised instead."""

    def __init__(self) -> None:
        self.clock, self.world = FakeClock(), World()
        self.world.learn("GUILD_CREATE", CREATED)
        self.roles: dict[str, list[str]] = {ADA: [OPS], BOB: []}
        self.trouble: Exception | None = None
        self.asked, self.looking = 0, asyncio.Event()
        self.hold = asyncio.Event()
        self.hold.set()
        self.people = People(
            member=self.member, administers=self.world.administers, monotonic=self.clock.monotonic
        )

    async def member(self, guild: str, user: str) -> Mapping[str, Any]:
        self.asked += 1
        self.looking.set()
        await self.hold.wait()
        if self.trouble is not None:
            raise self.trouble
        return {"user": {"id": user}, "roles": self.roles[user]}


async def test_roles_are_looked_up_once_a_minute() -> None:
    there = Directory()
    assert await there.people.roles(ADA, GUILD) == {OPS}
    there.roles[ADA] = [ADMINS]
    there.clock.advance(ROLES_SECONDS - 1)
    assert await there.people.roles(ADA, GUILD) == {OPS}
    there.clock.advance(1)
    assert await there.people.roles(ADA, GUILD) == {ADMINS, "administrator"}
    assert there.asked == 2


async def test_the_owner_is_an_administrator_without_any_role() -> None:
    assert await Directory().people.roles(BOB, GUILD) == {"administrator"}


async def test_many_who_ask_at_once_share_a_look_up() -> None:
    there = Directory()
    there.hold.clear()
    asking = [asyncio.create_task(there.people.roles(ADA, GUILD)) for _ in range(5)]
    await asyncio.sleep(0)
    there.hold.set()
    assert await asyncio.gather(*asking) == [{OPS}] * 5
    assert there.asked == 1


async def test_who_is_no_member_has_no_roles() -> None:
    there = Directory()
    there.trouble = TargetGone("unknown member")
    assert await there.people.roles("99", GUILD) == frozenset()


async def test_trouble_is_told_and_not_remembered() -> None:
    there = Directory()
    there.trouble = ChannelDown("no network")
    with pytest.raises(ChannelDown):
        await there.people.roles(ADA, GUILD)
    there.trouble = None
    assert await there.people.roles(ADA, GUILD) == {OPS}


async def test_a_message_and_a_press_tell_their_authors_roles() -> None:
    there = Directory()
    message = {"guild_id": GUILD, "author": {"id": ADA}, "member": {"roles": [ADMINS]}}
    there.people.hear("MESSAGE_CREATE", message)
    assert await there.people.roles(ADA, GUILD) == {ADMINS, "administrator"}
    press = {"guild_id": GUILD, "member": {"user": {"id": ADA}, "roles": [OPS], "permissions": "8"}}
    there.people.hear("INTERACTION_CREATE", press)
    assert await there.people.roles(ADA, GUILD) == {OPS, "administrator"}
    assert there.asked == 0


@pytest.mark.parametrize("data", [None, 7, [], {}, {"guild_id": GUILD, "member": {"roles": 3}}])
async def test_shapes_that_nobody_expects_tell_nothing(data: object) -> None:
    there = Directory()
    there.people.hear("MESSAGE_CREATE", data)
    assert await there.people.roles(ADA, GUILD) == {OPS}


async def test_a_change_makes_it_ask_again_also_while_it_asks() -> None:
    there = Directory()
    there.hold.clear()
    before = asyncio.create_task(there.people.roles(ADA, GUILD))
    await asyncio.wait_for(there.looking.wait(), 5)
    there.people.forget(GUILD, ADA)
    there.hold.set()
    await before
    there.roles[ADA] = []
    assert await there.people.roles(ADA, GUILD) == frozenset()
    assert there.asked == 2
    await there.people.close()
