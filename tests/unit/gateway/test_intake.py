"""What comes in: once each, from people who may talk, commands before words."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from channels.base import ThreadKey
from tests.contracts.sqlite_harness import SqliteHarness
from tests.unit.gateway.scene import ELSEWHERE, HERE, House, call, calls, running
from tests.unit.gateway.talk import button

OPS = ThreadKey("talk", "w", "ops", "")


async def test_c027_a_message_delivered_three_times_is_one_turn_and_one_answer(house: House) -> None:
    hold = house.hold("hello")
    async with running(house) as office:
        await office.talk.say("hello", message_id="71")
        await hold.is_reached()
        await office.talk.say("hello", message_id="71")
        await office.kill()
    house.holds.clear()
    async with running(house) as office:
        await office.talk.say("hello", message_id="71")
        await office.settle()
        await office.say("hello", message_id="71")
        assert house.world.texts() == ["you said: hello"]
        assert [m.role for m in await office.log()] == ["user", "assistant"]


async def test_c086_only_ids_count_and_strangers_are_told_once_and_in_private(house: House) -> None:
    async with running(house) as office:
        for _ in range(2):
            await office.say("hello", user="eve", private=True)
        await office.say("hello", user="ann2")
        await office.say("/new", user="eve")
        assert len(house.world.texts()) == 1 and "eve" in house.world.texts()[0]
        assert await office.store.sessions() == [] and house.requests == []


async def test_c086_an_empty_list_means_nobody(house: House) -> None:
    async with running(house) as office:
        rules = replace(office.gateway.parts.rules, users={})
        office.gateway.intake._rules = rules
        await office.say("hello")
        assert house.requests == []


@pytest.mark.parametrize("more", [{"from_bot": True}, {"addressed": False}])
async def test_what_is_not_meant_for_the_agent_is_left_alone(house: House, more: dict[str, bool]) -> None:
    async with running(house) as office:
        await office.say("hello", **more)
        assert house.world.texts() == [] and await office.store.sessions() == []


async def test_a_route_names_agent_and_tenant_and_new_keeps_them(house: House) -> None:
    async with running(house, house.agent(), house.agent(name="ops")) as office:
        await office.say("hello", key=OPS)
        assert (await office.session(OPS)).agent == "ops"
        await office.say("/new", key=OPS)
        assert (await office.session(OPS)).agent == "ops"
        hold = house.hold("again")
        await office.talk.say("again", key=OPS)
        await hold.is_reached()
        await office.kill()
    other = await SqliteHarness(house.folder / "gateway.db", house.clock).open()
    await other.reap(house.clock.now())
    (session,) = await other.claimable(house.clock.now())
    claim = await other.claim(session, house.clock.now())
    assert claim is not None and (claim.agent, claim.tenant) == ("ops", "acme")
    await other.close()


async def test_a_quoted_message_comes_before_the_words_about_it(house: House) -> None:
    async with running(house) as office:
        await office.say("really?", quote="it is\ndone")
        assert house.requests[-1].messages[-1].text == "> it is\n> done\n\nreally?"


async def test_an_edit_of_a_waiting_message_is_what_gets_answered(house: House) -> None:
    hold = house.hold("first")
    async with running(house) as office:
        await office.talk.say("first")
        await hold.is_reached()
        await office.talk.say("secnod", message_id="2")
        await office.talk.say("second", message_id="2", edited=True)
        await office.talk.say("/stop", message_id="2", edited=True)  # an edit is never a command
        hold.go.set()
        await office.settle()
        assert house.world.texts() == ["you said: first", "you said: /stop"]


async def test_a_command_that_is_delivered_again_is_carried_out_once(house: House) -> None:
    async with running(house) as office:
        await office.say("hello")
        await office.say("/new", message_id="9")
        first = (await office.session()).id
        await office.say("/new", message_id="9")
        assert (await office.session()).id == first
        assert len(house.world.texts()) == 2


async def test_a_command_that_was_only_stored_is_carried_out_after_the_restart(house: House) -> None:
    async with running(house) as office:
        await office.say("hello")
        old = (await office.session()).id
        await office.talk.say("/new", message_id="9")
        await office.kill()
    async with running(house) as office:
        await office.settle()
        assert (await office.session()).id != old
        await office.talk.say("/new", message_id="9")
        await office.settle()
        assert [t for t in house.world.texts() if t.startswith("A fresh")] == house.world.texts()[1:2]
        assert await office.store.presses_left() == []


async def test_a_press_that_comes_in_while_left_ones_are_looked_up_is_carried_out_once(house: House) -> None:
    house.plan["pay"] = [calls(call("pay", order="A")), "paid"]
    async with running(house) as office:
        await office.say("pay")
        ref, card = house.world.card()
        await office.talk.press(ref, button(card, "Approve"), action_id="1")
        office.gateway.intake.replay(await office.store.presses_left())
        await office.settle()
        assert len(house.world.answers) == 1 and house.ran == ["pay A 10"]


async def test_an_unknown_slash_word_goes_to_the_agent(house: House) -> None:
    async with running(house) as office:
        await office.say("/etc/hosts is odd")
        assert house.world.texts() == ["you said: /etc/hosts is odd"]


async def test_threads_are_strangers(house: House) -> None:
    async with running(house) as office:
        await asyncio.gather(office.talk.say("one"), office.talk.say("two", key=ELSEWHERE))
        await office.settle()
        assert [m.text for m in await office.log(HERE)] == ["one", "you said: one"]
        assert [m.text for m in await office.log(ELSEWHERE)] == ["two", "you said: two"]
