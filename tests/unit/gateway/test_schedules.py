"""What the clock tells sessions: made by agents and by the configuration, carried out once, cancelled; over
real rows, with a clock that jumps, and with several processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from channels.base import ChannelDown, TargetGone
from channels.base import ThreadKey as Place
from gateway.agent import Agent
from gateway.gate import Rule
from gateway.messages import ThreadKey
from gateway.providers.base import ModelRequest
from gateway.providers.scripted import Reply, ScriptedModel, spoken
from gateway.store.schedule_rows import ScheduleRecord, Standing
from gateway.timetable import Timing
from gateway.tools.base import Tool, tool
from tests.unit.gateway.scene import HERE, House, Office, call, calls, running
from tests.unit.gateway.talk import World, button

HOUR = 3600.0
ROOM = ThreadKey("talk", "w", "board", "")
HEAD = "[Scheduled wake-up ("


def woken(request: ModelRequest) -> Reply:
    """Does what a wake-up says, and what people say: `every 1h: WORDS` and the like make one."""
    start, text = spoken(request.messages)
    results = [result for message in request.messages[start + 1 :] for result in message.results]
    if results:
        return Reply(text="; ".join(result.content for result in results))
    if text.startswith(HEAD):
        text = text.partition("\n")[2]
        return calls(call("pay", order="A")) if text == "pay" else Reply(text=f"woken: {text}")
    when, colon, instruction = text.partition(": ")
    way, _, written = when.partition(" ")
    if colon and way in ("after", "at", "every", "cron"):
        zone = {"timezone": "Europe/Berlin"} if way in ("at", "cron") else {}
        return calls(call("schedule", **{way: written}, instruction=instruction, **zone))
    if text == "list":
        return calls(call("schedules"))
    if text.startswith("cancel "):
        return calls(call("schedules", cancel=text.removeprefix("cancel ")))
    return Reply(text=f"you said: {text}")


def model(**more: Any) -> dict[str, Any]:
    scripted = ScriptedModel(woken)
    return {"model_of": lambda agent: scripted, **more}


def standing(**changes: Any) -> Standing:
    given: dict[str, Any] = {
        "name": "watch",
        "agent": "helper",
        "key": ROOM,
        "timing": Timing(every=HOUR),
        "instruction": "look around",
    }
    return Standing(**{**given, **changes})


def said(world: World, key: Any = HERE) -> list[str]:
    """What was answered to wake-ups there."""
    return [text for text in world.texts(Place(*key)) if text.startswith("woken: ")]


async def later(office: Office, hours: float) -> None:
    office.house.clock.advance(hours=hours)
    await office.settle()


async def only(office: Office) -> ScheduleRecord:
    (record,) = await office.store.schedules()
    return record


# ---- made by an agent


async def test_an_agent_has_itself_woken_once(house: House) -> None:
    async with running(house, **model()) as office:
        await office.say("after 2h: look again")
        assert house.world.texts()[-1].startswith("scheduled, code ")
        await later(office, 1.99)
        assert said(house.world) == []
        await later(office, 0.01)
        assert said(house.world) == ["woken: look again"]
        await later(office, 48)
        assert said(house.world) == ["woken: look again"]
        assert await office.store.schedules() == []
        kinds = await office.audit()
        assert (kinds.count("scheduled"), kinds.count("fired")) == (1, 1)


async def test_the_agent_reads_that_nobody_wrote_it_just_now(house: House) -> None:
    async with running(house, **model()) as office:
        await office.say("cron 0 8 * * *: look again")
        await later(office, 24)
        message = next(m for m in await office.log() if m.text.startswith(HEAD))
        head, _, instruction = message.text.partition("\n")
        assert instruction == "look again" and message.author == "schedule"
        assert "due Mon 2025-06-16 08:00 Europe/Berlin" in head and "Nobody wrote this just now" in head


async def test_an_interval_does_not_drift_however_late_it_is_looked_at(house: House) -> None:
    async with running(house, **model()) as office:
        await office.say("every 1h: look")
        start = (await only(office)).due_at
        for minutes in (63, 62, 59):
            house.clock.advance(minutes=minutes)
            await office.settle()
        assert len(said(house.world)) == 3
        assert (await only(office)).due_at == start + 3 * HOUR


async def test_an_approval_asks_the_person_who_was_talking_when_it_was_scheduled(house: House) -> None:
    async with running(house, **model()) as office:
        await office.say("after 1h: pay", user="ann")
        await office.say("hello", user="bob")
        await later(office, 1)
        (ref, card), *more = house.world.cards.items()
        assert more == [] and "talk:w:ann" in card.deciders
        assert (await office.press(ref, button(card, "Approve"), user="bob")).startswith("You may not")
        assert (await office.press(ref, button(card, "Approve"), user="ann")).startswith("Approved")
        assert house.ran == ["pay A 10"]


async def test_the_answer_of_a_wake_up_quotes_no_message(house: House) -> None:
    async with running(house, **model()) as office:
        await office.say("after 1h: look")
        await later(office, 1)
        (message,) = [m for _, m in house.world.messages if m.text == "woken: look"]
        assert message.reply_to == ""


@pytest.mark.parametrize(
    ("given", "mend"),
    [
        ({}, "nothing says when; give one of after"),
        ({"after": "1h", "every": "1h"}, "after and every are given together; give one"),
        ({"after": "soon"}, "after: 'soon' is no duration; write one like 90m"),
        ({"after": "400d"}, "after: at most 366d ahead"),
        ({"every": "10s"}, "every: from 1m to 366d are possible, not 10s"),
        ({"at": "tomorrow"}, "at: this is no moment; write 2026-03-31 08:30"),
        (
            {"at": "2020-01-01 08:00"},
            "at: Wed 2020-01-01 08:00 UTC is over; it is Sun 2025-06-15 15:06 UTC now",
        ),
        ({"cron": "0 8 * *"}, "cron: a cron line has five fields"),
        ({"cron": "0 8 * * *", "timezone": "Mars/Base"}, "timezone: 'Mars/Base' is not known here"),
    ],
)
async def test_what_cannot_be_scheduled_is_an_error_that_names_the_mend(
    house: House, given: dict[str, str], mend: str
) -> None:
    house.plan["try"] = [calls(call("schedule", instruction="look", **given)), "so be it"]
    async with running(house) as office:
        await office.say("try")
        (result,) = [result for message in await office.log() for result in message.results]
        assert result.is_error and mend in result.content
        assert await office.store.schedules() == []


async def test_only_so_many_are_open_in_one_conversation(house: House) -> None:
    async with running(house, **model()) as office:
        for number in range(20):
            await office.say(f"every 1d: look {number}")
        await office.say("every 1d: one more")
        assert "20 are open in this conversation already; cancel one first" in house.world.texts()[-1]
        assert len(await office.store.schedules()) == 20


async def test_the_agent_lists_what_is_scheduled_here_and_takes_one_back(house: House) -> None:
    async with running(house, **model(schedules=[standing(key=ThreadKey(*HERE))])) as office:
        await office.say("list")
        assert house.world.texts()[-1] == "nothing is scheduled in this conversation"
        await office.say("every 4h: look")
        own, of_the_file = sorted(await office.store.schedules(), key=lambda record: record.name)
        code = own.schedule.code
        await office.say("list")
        assert house.world.texts()[-1] == f"{code}: every 4h, next Sun 2025-06-15 19:06 UTC: look"
        await office.say(f"cancel {of_the_file.schedule.code}")
        assert "no schedule of this conversation" in house.world.texts()[-1]
        await office.say(f"cancel {code}")
        assert house.world.texts()[-1] == f"cancelled: {code}"
        assert [record.name for record in await office.store.schedules()] == ["watch"]


async def test_a_rule_may_forbid_it_or_ask_a_person(house: House) -> None:
    asks = house.agent(rules=(Rule(tool="schedule", decision="ask"),))
    async with running(house, asks, **model()) as office:
        await office.say("every 1h: look")
        assert await office.store.schedules() == []
        ((ref, card),) = house.world.cards.items()
        await office.press(ref, button(card, "Approve"))
        assert (await only(office)).schedule.timing.every == HOUR


async def test_an_own_tool_of_the_same_name_replaces_the_built_in_one(house: House) -> None:
    @tool
    async def schedule(instruction: str) -> str:
        """Book it elsewhere."""
        return f"booked {instruction}"

    agent = house.agent()
    house.plan["book"] = [calls(call("schedule", instruction="it")), "fine"]
    async with running(house, replace(agent, tools=(*agent.tools, schedule))) as office:
        await office.say("book")
        (result,) = [result for message in await office.log() for result in message.results]
        assert result.content == "booked it"
        names = [one.name for one in office.gateway.parts.agents["helper"].tools]
        assert names.count("schedule") == 1 and "schedules" in names


# ---- outages and clocks


async def test_what_was_missed_is_made_up_for_once(house: House) -> None:
    async with running(house, **model()) as office:
        await office.say("every 1h: look")
        start = (await only(office)).due_at
    house.clock.advance(hours=30.5)
    async with running(house, **model()) as office:
        await office.settle()
        assert said(house.world) == ["woken: look"]
        head = next(m.text for m in await office.log() if m.text.startswith(HEAD))
        assert "30 min late" in head
        assert (await only(office)).due_at == start + 30 * HOUR
        await later(office, 0.5)
        assert len(said(house.world)) == 2


async def test_what_was_missed_is_left_out_where_that_is_wanted(house: House) -> None:
    planned = [standing(missed="skip")]
    async with running(house, **model(schedules=planned)):
        pass
    house.clock.advance(hours=10.5)
    async with running(house, **model(schedules=planned)) as office:
        await office.settle()
        assert said(house.world, ROOM) == [] and "missed" in await office.audit()
        await later(office, 0.5)
        assert said(house.world, ROOM) == ["woken: look around"]


async def test_a_time_that_has_just_come_counts_as_kept_after_an_outage(house: House) -> None:
    planned = [standing(missed="skip")]
    async with running(house, **model(schedules=planned)):
        pass
    house.clock.advance(hours=10, minutes=2)
    async with running(house, **model(schedules=planned)) as office:
        await office.settle()
        assert said(house.world, ROOM) == ["woken: look around"]


async def test_a_clock_that_jumps_back_makes_nothing_happen_again(house: House) -> None:
    async with running(house, **model()) as office:
        await office.say("every 1h: look")
        await later(office, 3)
        assert len(said(house.world)) == 1
        house.clock.set_wall(house.clock.now() - 2.5 * HOUR)
        await office.settle()
        await later(office, 2.4)
        assert len(said(house.world)) == 1
        await later(office, 1.1)
        assert len(said(house.world)) == 2


async def test_a_process_that_died_after_it_had_stored_the_wake_up_ran_it_once(house: House) -> None:
    async with running(house, **model()) as office:
        await office.say("after 1h: look")
        house.clock.advance(hours=1)
        office.gateway.turns._draining = True  # it dies before it gets to the turn
        assert await office.gateway.timers.sweep_once() == 1
        await office.kill()
    async with running(house, **model()) as office:
        await office.settle()
        assert said(house.world) == ["woken: look"]


async def test_two_processes_carry_it_out_once(house: House) -> None:
    async with running(house, **model()) as one, running(house, **model()) as two:
        await one.say("every 1h: look")
        for _ in range(3):
            house.clock.advance(hours=1)
            await two.gateway.timers.sweep_once()
            await one.gateway.timers.sweep_once()
            await two.settle()
            await one.settle()
        assert said(house.world) == ["woken: look"] * 3


async def test_a_wake_up_waits_behind_a_turn_and_is_not_piled_up(house: House) -> None:
    async with running(house) as office:
        house.plan["go"] = [calls(call("schedule", every="1h", instruction="look")), "fine"]
        await office.say("go")
        held = house.hold("busy")
        await office.talk.say("busy")
        await held.is_reached()
        for _ in range(5):
            house.clock.advance(hours=1)
            await office.gateway.turns.heartbeat_once()
            await office.gateway.timers.sweep_once()
        held.go.set()
        await office.settle()
        assert sum(m.text.startswith(HEAD) for m in await office.log()) == 1
        kinds = await office.audit()
        assert (kinds.count("fired"), kinds.count("missed")) == (1, 4)


# ---- of the configuration


async def test_a_thread_that_does_not_exist_yet_begins_with_it(house: House) -> None:
    async with running(house, **model(schedules=[standing()])) as office:
        await later(office, 1)
        assert said(house.world, ROOM) == ["woken: look around"]
        view = await office.session(Place(*ROOM))
        assert view.agent == "helper" and view.title == "Scheduled: look around"
        await later(office, 1)
        assert (await office.session(Place(*ROOM))).id == view.id


def threaded(**more: Any) -> dict[str, Any]:
    """A platform on which a message begins a thread."""
    return model(schedules=[standing()], threaded=frozenset({"talk"}), **more)


async def test_in_a_channel_every_time_begins_a_thread_of_its_own(house: House) -> None:
    async with running(house, **threaded()) as office:
        await later(office, 1)
        await later(office, 1)
        assert house.world.texts(Place(*ROOM)) == ["Scheduled (watch): look around"] * 2
        threads = [key for key, text in house.world.said if text == "woken: look around"]
        assert len(set(threads)) == 2 and all(key.thread.startswith("below-") for key in threads)
        # People go on there, and it is the same conversation.
        before = len(await office.log(threads[0]))
        await office.say("thanks", key=threads[0], ongoing=True, addressed=False)
        assert len(await office.log(threads[0])) == before + 2
        assert house.world.texts(threads[0])[-1] == "you said: thanks"


async def test_words_that_could_not_be_posted_at_first_begin_their_thread_once(house: House) -> None:
    async with running(house, **threaded()) as office:
        office.talk.trouble = [ChannelDown("away")]
        await later(office, 1)
        assert house.world.said == []
        house.clock.advance(60)
        await office.settle()
        assert house.world.texts(Place(*ROOM)) == ["Scheduled (watch): look around"]
        assert [text for _, text in house.world.said].count("woken: look around") == 1


async def test_a_place_that_is_gone_costs_this_time_only(house: House) -> None:
    async with running(house, **threaded()) as office:
        office.talk.trouble = [TargetGone("archived")]
        await later(office, 1)
        assert house.world.said == [] and await office.store.sessions() == []
        await later(office, 1)
        assert [text for _, text in house.world.said].count("woken: look around") == 1


async def test_removed_from_the_configuration_it_ends(house: House) -> None:
    async with running(house, **model(schedules=[standing()])):
        pass
    async with running(house, **model()) as office:
        assert await office.store.schedules() == []
        await later(office, 5)
        assert house.world.said == []
        line = next(line for line in await office.store.audit_lines() if line.kind == "cancelled")
        assert (line.actor, line.body["name"]) == ("the configuration", "watch")


async def test_unchanged_it_keeps_its_next_time_over_a_restart(house: House) -> None:
    async with running(house, **model(schedules=[standing()])) as office:
        before = await only(office)
    house.clock.advance(minutes=30)
    async with running(house, **model(schedules=[standing()])) as office:
        assert await only(office) == before


async def test_nobody_but_those_who_decide_may_approve_what_the_clock_began(house: House) -> None:
    planned = [standing(instruction="pay")]
    async with running(house, **model(schedules=planned, approvers={"talk": ("talk:bob",)})) as office:
        await later(office, 1)
        ((ref, card),) = house.world.cards.items()
        assert (await office.press(ref, button(card, "Approve"), user="ann")).startswith("You may not")
        assert (await office.press(ref, button(card, "Approve"), user="bob")).startswith("Approved")


# ---- people


async def test_people_see_what_is_scheduled_here_and_when_it_comes_next(house: House) -> None:
    async with running(house, **model(schedules=[standing()])) as office:
        await office.say("/schedules")
        assert house.world.texts()[-1] == "Nothing is scheduled here."
        await office.say("every 4h: look")
        made = next(record for record in await office.store.schedules() if not record.name)
        await office.say("/schedules")
        assert house.world.texts()[-1] == (
            f"- `{made.schedule.code}` look (every 4h, next Sun 2025-06-15 19:06 UTC, in 4 h; by talk:w:ann)"
        )
        await office.say("/schedules", key=Place(*ROOM))
        assert "look around (every 1h" in house.world.texts(Place(*ROOM))[-1]


async def test_everywhere_is_for_those_who_run_it_and_tells_others_nothing(house: House) -> None:
    async with running(house, **model(schedules=[standing()], approvers={"talk": ("talk:bob",)})) as office:
        await office.say("/schedules all", user="ann")
        assert house.world.texts()[-1].startswith("Only those who run me")
        await office.say("/schedules all", user="bob")
        assert "for another conversation" in house.world.texts()[-1]
        assert "look around" not in house.world.texts()[-1]
        await office.say("/schedules all", user="bob", private=True)
        assert "look around" in house.world.texts()[-1]


@pytest.mark.parametrize(("user", "may"), [("ann", True), ("bob", False)])
async def test_whoever_had_it_made_cancels_it_and_others_do_not(house: House, user: str, may: bool) -> None:
    async with running(house, **model()) as office:
        await office.say("every 1h: look", user="ann")
        code = (await only(office)).schedule.code
        await office.say(f"/schedules cancel {code.upper()}", user=user)
        words = "Cancelled: " if may else "You may not cancel this. Who may: talk:w:ann"
        assert house.world.texts()[-1].startswith(words)
        await later(office, 1)
        assert said(house.world) == ([] if may else ["woken: look"])
        assert (await office.audit()).count("cancelled" if may else "refused_forbidden") == 1


async def test_those_who_decide_in_the_channel_cancel_any(house: House) -> None:
    async with running(house, **model(schedules=[standing()], approvers={"talk": ("talk:bob",)})) as office:
        code = (await only(office)).schedule.code
        await office.say(f"/schedules cancel {code}", user="ann")
        assert house.world.texts()[-1] == f"There is no schedule '{code}' here."
        await office.say(f"/schedules cancel {code}", user="bob")
        assert await office.store.schedules() == []


@pytest.mark.parametrize("words", ["cancel", "give x", "cancel a b"])
async def test_other_words_are_told_what_is_possible(house: House, words: str) -> None:
    async with running(house) as office:
        await office.say(f"/schedules {words}")
        assert house.world.texts()[-1].startswith("Write `/schedules` for this thread")


async def test_stop_ends_what_runs_and_leaves_what_is_scheduled(house: House) -> None:
    async with running(house, **model()) as office:
        await office.say("every 1h: look")
        await office.say("/stop")
        await later(office, 1)
        assert said(house.world) == ["woken: look"]


async def test_a_fresh_conversation_goes_on_with_what_is_scheduled(house: House) -> None:
    async with running(house, **model()) as office:
        await office.say("every 1h: look")
        old = await office.session()
        await office.say("/new")
        assert house.world.texts()[-1].endswith(" 1 schedule goes on here (/schedules).")
        await later(office, 1)
        assert (await office.session()).id != old.id
        assert (await office.log())[0].text.partition("\n")[2] == "look"


async def test_where_nobody_can_be_reached_nothing_is_scheduled(house: House) -> None:
    from gateway.app.console import ask, bench
    from tests.unit.gateway.scene import parts
    from tests.unit.gateway.talk import TalkChannel

    given = parts(house, TalkChannel(house.world), (house.agent(),), **model())
    async with bench(given, lambda event: None) as at:
        session_id = await ask(at, "helper", "every 1h: look")
        results = [r for message in await at.store.log(session_id) for r in message.results]
        assert results[0].is_error and "nobody could be reached here" in results[0].content
        assert await at.store.schedules() == []


def test_every_agent_may_have_itself_woken_and_keeps_its_own_tools(house: House) -> None:
    from tests.unit.gateway.scene import parts
    from tests.unit.gateway.talk import TalkChannel

    def names(tools: Sequence[Tool]) -> list[str]:
        return [one.name for one in tools]

    agent: Agent = house.agent()
    planned = parts(house, TalkChannel(house.world), (agent,)).with_planning.agents["helper"]
    assert names(planned.tools) == ["schedule", "schedules", *names(agent.tools)]
