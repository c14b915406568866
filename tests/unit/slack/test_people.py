"""Who counts as a member, and how seldom Slack is asked about it. The look-ups are scripted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from channels.base import Actor, ChannelDown, PayloadRefused
from channels.slack.people import (
    KEPT,
    PERSON_SECONDS,
    STALE_SECONDS,
    STRANGER,
    UNKNOWN,
    People,
    person_of,
)

ADA = Actor("slack", "T1", "U1")
MEMBER = {"id": "U1", "team_id": "T1", "profile": {"display_name": "ada", "real_name": "Ada Lovelace"}}


class Directory:
    """What Slack would say, and how often it was asked."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.users: dict[str, Mapping[str, Any]] = {"U1": MEMBER}
        self.groups: dict[str, Sequence[str]] = {"S1": ["U1", "U2"], "S2": []}
        self.asked: list[str] = []
        self.being_asked = asyncio.Event()
        self.answering = asyncio.Event()
        self.answering.set()
        self.down = False
        self.people = People(user=self.user, groups=self.all_groups, monotonic=lambda: self.now)

    async def user(self, user: str) -> Mapping[str, Any]:
        self.asked.append(user)
        self.being_asked.set()
        await self.answering.wait()
        if self.down:
            raise ChannelDown("away")
        return self.users.get(user, {})

    async def all_groups(self) -> Mapping[str, Sequence[str]]:
        self.asked.append("groups")
        await self.answering.wait()
        if self.down:
            raise ChannelDown("away")
        return self.groups


@pytest.mark.parametrize(
    ("changes", "guest", "words"),
    [
        ({}, False, set()),
        ({"is_admin": True}, False, {"admin"}),
        ({"is_admin": True, "is_owner": True}, False, {"admin", "owner"}),
        ({"is_restricted": True}, True, {"guest"}),
        ({"is_ultra_restricted": True}, True, {"guest"}),
        ({"team_id": "T2"}, True, {"external"}),
        ({"team_id": "T2", "is_admin": True, "is_owner": True}, True, {"external"}),
        ({"is_stranger": True}, True, {"external"}),
        ({"team_id": "E1", "enterprise_user": {"teams": ["T1", "T7"]}}, False, set()),
        ({"is_admin": "true"}, False, set()),
    ],
)
def test_c086_members_guests_and_external_people_are_told_apart(
    changes: dict[str, Any], guest: bool, words: set[str]
) -> None:
    person = person_of({**MEMBER, **changes}, ADA, "T1")
    assert (person.name, person.guest, person.words) == ("ada", guest, frozenset(words))


def test_nobody_and_the_deleted_are_strangers() -> None:
    assert person_of({}, ADA, "T1") == STRANGER
    assert person_of({**MEMBER, "deleted": True}, ADA, "T1") == STRANGER
    assert STRANGER.guest


async def test_a_person_is_asked_about_once_in_a_while() -> None:
    directory = Directory()
    for _ in range(3):
        assert (await directory.people.person(ADA, "T1")).name == "ada"
    assert directory.asked == ["U1"]
    directory.now += 601
    await directory.people.person(ADA, "T1")
    assert directory.asked == ["U1", "U1"]


async def test_several_who_want_to_know_at_once_ask_once() -> None:
    directory = Directory()
    directory.answering.clear()
    waiting = [asyncio.create_task(directory.people.roles(ADA, "T1")) for _ in range(5)]
    await asyncio.sleep(0)
    directory.answering.set()
    assert {await task for task in waiting} == {frozenset({"S1"})}
    assert directory.asked == ["U1", "groups"]


async def test_groups_are_asked_for_once_a_minute_for_everybody() -> None:
    directory = Directory()
    directory.users["U2"] = {**MEMBER, "id": "U2"}
    assert await directory.people.roles(ADA, "T1") == {"S1"}
    assert await directory.people.roles(ADA._replace(user="U2"), "T1") == {"S1"}
    assert directory.asked.count("groups") == 1
    directory.groups = {}
    directory.now += 61
    assert await directory.people.roles(ADA, "T1") == frozenset()


async def test_a_change_is_heeded_at_once() -> None:
    directory = Directory()
    await directory.people.roles(ADA, "T1")
    directory.users["U1"] = {**MEMBER, "is_restricted": True}
    directory.groups = {}
    directory.people.forget()
    assert await directory.people.roles(ADA, "T1") == {"guest"}


async def test_what_was_asked_before_a_change_is_not_remembered() -> None:
    directory = Directory()
    directory.answering.clear()
    asked = asyncio.create_task(directory.people.person(ADA, "T1"))
    await directory.being_asked.wait()
    directory.people.forget()
    directory.users["U1"] = {**MEMBER, "is_restricted": True}
    directory.being_asked.clear()
    again = asyncio.create_task(directory.people.person(ADA, "T1"))
    await directory.being_asked.wait()
    directory.answering.set()
    await asked
    assert (await again).guest
    assert (await directory.people.person(ADA, "T1")).guest
    assert directory.asked == ["U1", "U1"]


async def test_roles_that_cannot_be_told_are_an_error_and_not_an_empty_set() -> None:
    directory = Directory()
    directory.down = True
    with pytest.raises(ChannelDown):
        await directory.people.roles(ADA, "T1")
    directory.down = False
    assert await directory.people.roles(ADA, "T1") == {"S1"}


async def test_a_quick_look_gives_somebody_unknown_when_slack_is_away_or_slow() -> None:
    directory = Directory()
    directory.down = True
    assert await directory.people.quickly(ADA, "T1") == UNKNOWN
    directory.down = False
    directory.answering.clear()
    assert await directory.people.quickly(ADA, "T1", 0.01) == UNKNOWN
    directory.answering.set()
    assert (await directory.people.person(ADA, "T1")).name == "ada"
    await directory.people.close()


async def test_who_was_known_not_long_ago_still_is_when_slack_does_not_tell() -> None:
    directory = Directory()
    assert not (await directory.people.person(ADA, "T1")).guest
    directory.down = True
    directory.now += PERSON_SECONDS + 1
    assert (await directory.people.quickly(ADA, "T1")).name == "ada"
    directory.now += STALE_SECONDS
    assert await directory.people.quickly(ADA, "T1") == UNKNOWN
    await directory.people.close()


async def test_whom_slack_refuses_to_tell_about_is_a_stranger_for_good() -> None:
    async def refused(user: str) -> Mapping[str, Any]:
        raise PayloadRefused("user_not_visible")

    people = People(user=refused, groups=Directory().all_groups, monotonic=lambda: 0.0)
    assert await people.quickly(ADA, "T1") == STRANGER


async def test_memory_is_bounded() -> None:
    directory = Directory()
    for number in range(KEPT + 1):
        user = f"U{number}"
        directory.users[user] = {**MEMBER, "id": user}
        await directory.people.person(ADA._replace(user=user), "T1")
    directory.asked.clear()
    await directory.people.person(ADA._replace(user="U0"), "T1")
    await directory.people.person(ADA._replace(user=f"U{KEPT}"), "T1")
    assert directory.asked == ["U0"]
