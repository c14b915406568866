"""What somebody may try through agents that give work to agents, and what comes of it."""

from __future__ import annotations

import asyncio

import pytest

from channels.base import ThreadKey as Place
from gateway.tools.subagent import with_subagents
from tests.unit.gateway.scene import House, call, calls, running
from tests.unit.gateway.talk import button
from tests.unit.gateway.test_subagents import children, family, results


async def test_a_stranger_s_press_on_a_card_from_below_changes_nothing(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="pay it")), "paid for you"]
    house.plan["pay it"] = [calls(call("pay", order="A")), "paid A"]
    async with running(house, *family(house)) as office:
        await office.say("go")
        ref, card = house.world.card()
        await office.press(ref, button(card, "Approve"), user="eve")
        (record,) = await office.pendings()
        await office.say(f"/approve {record.pending.code}", user="eve")
        assert [p.state for p in await office.pendings()] == ["open"]
        assert house.ran == [] and "refused_forbidden" in await office.audit()


async def test_whoever_asked_at_the_top_cannot_approve_below_where_four_eyes_are_wanted(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="have it paid")), "top"]
    house.plan["have it paid"] = [calls(call("deep", task="pay it")), "middle"]
    house.plan["pay it"] = [calls(call("pay", order="A")), "bottom"]
    rule = {"four_eyes": True, "approvers": ("talk:ann", "talk:bob")}
    agents = [
        house.agent(name=a.name, subagents=a.subagents, tool_description=a.tool_description, rule=rule)
        for a in family(house, below=True)
    ]
    async with running(house, *with_subagents({a.name: a for a in agents}).values()) as office:
        await office.say("go", user="ann")
        (record,) = await office.pendings()
        assert record.requester.user == "ann"
        await office.say(f"/approve {record.pending.code}", user="ann")
        assert house.ran == []
        await office.say(f"/approve {record.pending.code}", user="bob")
        assert house.ran == ["pay A 10"]


async def test_a_conversation_of_another_thread_cannot_be_gone_on_with(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="first")), "one"]
    house.plan["first"] = ["the secret is 42"]
    async with running(house, *family(house)) as office:
        await office.say("go")
        (child,) = await children(office)
        root = (await office.session()).id
        elsewhere = Place("talk", "w", "other", "")
        for number, session in enumerate((child, root)):
            house.plan[f"steal {number}"] = [calls(call("ops", task="tell me", session=session)), "no"]
            await office.say(f"steal {number}", key=elsewhere)
            view = await office.session(elsewhere)
            told = [r.content for m in await office.log(elsewhere) for r in m.results][-1]
            assert told.startswith("not run: there is no session"), (view, told)
        assert [m.text for m in await office.store.log(child)] == ["first", "the secret is 42"]


async def test_a_caller_that_is_no_longer_configured_ends_in_words_when_what_waits_below_is_decided(
    house: House,
) -> None:
    house.plan["go"] = [calls(call("ops", task="pay it")), "paid for you"]
    house.plan["pay it"] = [calls(call("pay", order="A")), "paid A"]
    async with running(house, *family(house)) as office:
        await office.say("go")
        await office.kill()
    left = [agent for agent in family(house) if agent.name != "boss"]
    async with running(house, *left) as office:
        ref, card = house.world.card()
        await office.press(ref, button(card, "Approve"))
        await office.settle()
        for session in [(await office.session()).id, *await children(office)]:
            view = await office.store.session(session)
            assert view is not None and view.status == "idle"
        assert house.ran == ["pay A 10"]
        assert "no longer configured" in " ".join(house.world.texts())


async def test_a_subagent_that_is_no_longer_configured_is_an_error_for_its_caller(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="pay it")), "I see"]
    house.plan["pay it"] = [calls(call("pay", order="A")), "paid A"]
    async with running(house, *family(house)) as office:
        await office.say("go")
        await office.kill()
    left = [agent for agent in family(house) if agent.name != "ops"]
    async with running(house, *left) as office:
        ref, card = house.world.card()
        await office.press(ref, button(card, "Approve"))
        await office.settle()
        for session in [(await office.session()).id, *await children(office)]:
            view = await office.store.session(session)
            assert view is not None and view.status == "idle"
        assert house.ran == []


@pytest.mark.parametrize("turns", range(12))
async def test_a_stop_that_races_the_start_of_what_works_below_leaves_nothing_at_work(
    house: House, turns: int
) -> None:
    house.plan["go"] = [calls(call("ops", task="wait")), "never said"]
    hold = house.hold("wait")
    async with running(house, *family(house)) as office:
        await office.talk.say("go")
        for _ in range(turns * 3):
            await asyncio.sleep(0)
        await office.talk.say("/stop")
        hold.go.set()
        await office.settle()
        for session in [(await office.session()).id, *await children(office)]:
            view = await office.store.session(session)
            assert view is not None and (view.status, view.queued) == ("idle", 0)


async def test_a_narrowed_conversation_stays_narrowed_when_it_goes_on_under_a_wider_configuration(
    house: House,
) -> None:
    house.plan["go"] = [calls(call("ops", task="first")), "one"]
    house.plan["first"] = ["hello"]
    async with running(house, *family(house, only=["look"])) as office:
        await office.say("go")
        (child,) = await children(office)
        await office.kill()
    house.plan["more"] = [calls(call("ops", task="note it", session=child)), "two"]
    house.plan["note it"] = [calls(call("note", text="x")), "tried"]
    async with running(house, *family(house)) as office:
        await office.say("more")
        assert house.ran == []
        assert (await results(office))[-1] == "tried"
