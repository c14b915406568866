"""What platforms with threads need: going on without a mention, context, private answers, guests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from channels.base import Actor, ChannelDown, InboundChange, InboundMessage, ThreadKey
from gateway.app.people import ConfiguredRules
from gateway.bridge import EARLIER, EARLIER_CHARACTERS
from gateway.notices import NOT_LISTED
from tests.unit.gateway.scene import HERE, House, Office, running

THREAD = ThreadKey("talk", "w", "room", "100")
ROOT = ThreadKey("talk", "w", "room", "")


def rules(*users: str, context: int = 0) -> ConfiguredRules:
    return ConfiguredRules(
        default_agent="helper",
        users={"talk": frozenset(users)},
        workspaces={"talk": "w"},
        context={"talk": context},
    )


def earlier(*texts: str) -> list[InboundMessage]:
    return [
        InboundMessage(
            thread=THREAD,
            message_id=str(n),
            actor=Actor("talk", "w", "bob"),
            text=text,
            sent_at=0.0,
            author="Bob",
        )
        for n, text in enumerate(texts)
    ]


async def asked(office: Office) -> list[str]:
    return [message.text for message in await office.log(THREAD) if message.role == "user"]


async def test_in_a_thread_with_a_session_nobody_has_to_mention_the_agent_again(house: House) -> None:
    async with running(house) as office:
        await office.say("before", key=THREAD, addressed=False, ongoing=True)
        assert await office.store.sessions() == []
        await office.say("begin", key=THREAD)
        await office.say("go on", key=THREAD, addressed=False, ongoing=True, user="bob")
        await office.say("aside", key=THREAD, addressed=False, ongoing=False)
        assert await asked(office) == ["begin", "go on"]


async def test_a_stranger_who_talks_in_a_thread_is_neither_answered_nor_turned_away(house: House) -> None:
    async with running(house) as office:
        await office.say("begin", key=THREAD)
        await office.say("me too", key=THREAD, addressed=False, ongoing=True, user="eve")
        await office.say("and me", key=THREAD, user="eve")
        assert await asked(office) == ["begin"]
        assert office.world.texts(THREAD) == ["you said: begin"]


async def test_called_into_a_thread_the_agent_reads_what_was_said_before_once(house: House) -> None:
    house.world.earlier = earlier("the disk is full", "  ", "line one\nline two")
    async with running(house, rules=rules("ann", context=2)) as office:
        await office.say("help", key=THREAD, message_id="101")
        await office.say("and now?", key=THREAD, message_id="102")
        first, second = await asked(office)
        assert first == f"{EARLIER}\n> Bob: line one\n> line two\n\nhelp"
        assert second == "and now?"


@pytest.mark.parametrize("how", ["its beginning", "no context wanted", "a command"])
async def test_there_is_no_context_where_it_is_not_needed(house: House, how: str) -> None:
    house.world.earlier = earlier("secret talk")
    async with running(house, rules=rules("ann", context=0 if how == "no context wanted" else 5)) as office:
        if how == "a command":
            await office.say("/status", key=THREAD, message_id="101")
        await office.say("help", key=THREAD, message_id="100" if how == "its beginning" else "102")
        assert ("secret talk" in (await asked(office))[0]) is (how == "a command")


async def test_much_context_is_cut_at_its_old_end(house: House) -> None:
    house.world.earlier = earlier("old " * 1000, "new " * 1000)
    async with running(house, rules=rules("ann", context=5)) as office:
        await office.say("help", key=THREAD, message_id="101")
        [text] = await asked(office)
        assert "new" in text and "old" not in text and len(text) < EARLIER_CHARACTERS + 200


@pytest.mark.parametrize("trouble", ["fails", "hangs"])
async def test_a_platform_that_does_not_tell_costs_the_context_and_not_the_message(
    house: House, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.app.inbound.EARLIER_SECONDS", 0.01)

    async def broken(thread: ThreadKey, before: str, limit: int) -> Sequence[InboundMessage]:
        if trouble == "fails":
            raise ChannelDown("no network")
        await asyncio.Event().wait()
        return ()

    async with running(house, rules=rules("ann", context=5)) as office:
        monkeypatch.setattr(office.talk, "earlier", broken)
        await office.say("help", key=THREAD, message_id="101")
        assert await asked(office) == ["help"]


async def test_called_by_name_alone_the_agent_says_what_it_understands_and_starts_no_turn(
    house: House,
) -> None:
    async with running(house) as office:
        for _ in range(2):
            await office.say(" ", key=THREAD, message_id="101")
        assert await office.store.sessions() == []
        assert len(office.world.texts(THREAD)) == 1 and "/help" in office.world.texts(THREAD)[0]
    house.world.earlier = earlier("the disk is full")
    async with running(house, rules=rules("ann", context=5)) as office:
        await office.say("", key=THREAD, message_id="102")
        assert "the disk is full" in (await asked(office))[0]


async def test_an_agent_can_be_asked_for_by_name_where_a_conversation_begins(house: House) -> None:
    async with running(house, house.agent(), house.agent(name="ops")) as office:
        await office.say("one", key=THREAD, agent="ops")
        await office.say("two", key=THREAD._replace(thread="200"), agent="nobody")
        await office.say("three", key=THREAD, agent="helper")
        assert (await office.session(THREAD)).agent == "ops"
        assert (await office.session(THREAD._replace(thread="200"))).agent == "helper"


async def test_everyone_does_not_mean_guests_unless_they_are_named(house: House) -> None:
    async with running(house, rules=rules("*", "kim")) as office:
        for user, guest in (("zoe", False), ("max", True), ("kim", True)):
            await office.say(f"hello from {user}", user=user, guest=guest, key=THREAD)
        assert await asked(office) == ["hello from zoe", "hello from kim"]


async def test_a_role_may_talk_and_is_looked_up_each_time(house: House) -> None:
    async with running(house, rules=rules("role:ops")) as office:
        await office.say("first", key=THREAD)
        house.world.roles["ann"] = frozenset({"ops"})
        await office.say("second", key=THREAD, guest=True)
        house.world.roles["ann"] = frozenset({"dev"})
        await office.say("third", key=THREAD)
        assert await asked(office) == ["second"]


async def test_a_hidden_command_is_answered_to_its_author_alone(house: House) -> None:
    async with running(house) as office:
        await office.say("/help", key=ROOT, hidden=True, message_id="cmd1")
        [(where, message)] = office.world.messages
        assert where == ROOT and message.only == Actor("talk", "w", "ann") and message.reply_to == "cmd1"


async def test_a_hidden_command_beside_all_threads_means_the_author_s_newest_one(house: House) -> None:
    other, newest = THREAD._replace(thread="200"), THREAD._replace(thread="300")
    async with running(house) as office:
        await office.say("one", key=THREAD)
        await office.say("two", key=other)
        await office.say("three", key=newest, user="bob")
        await office.say("!new", key=ROOT, hidden=True)
        assert (await office.session(other)).log_length == 0
        assert (await office.session(newest)).log_length == (await office.session(THREAD)).log_length == 2


async def test_a_hidden_command_of_a_stranger_is_refused_in_private(house: House) -> None:
    async with running(house) as office:
        await office.say("/pending", key=ROOT, hidden=True, user="eve")
        [(_, message)] = office.world.messages
        assert message.text == NOT_LISTED and message.only == Actor("talk", "w", "eve")


async def test_a_message_that_its_author_takes_away_while_it_waits_is_not_answered(house: House) -> None:
    hold = house.hold("one")
    async with running(house) as office:
        await office.talk.say("one", message_id="1")
        await hold.is_reached()
        await office.talk.say("two", message_id="2")
        await office.talk.say("three", message_id="3")
        assert office.talk.inbound is not None
        for gone in ("1", "2", "9"):
            await office.talk.inbound.change(InboundChange(thread=HERE, kind="deleted", message_id=gone))
        hold.go.set()
        await office.settle()
        log = await office.log()
        assert [m.text for m in log if m.role == "user"] == ["one", "three"]
