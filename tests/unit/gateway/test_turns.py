"""One turn at a time: queueing, steering, interrupting, stopping, draining."""

from __future__ import annotations

import asyncio
from collections import Counter

from channels.base import ThreadKey as Place
from gateway.approvals import Approve
from gateway.events import SessionStarted, TurnDone
from gateway.messages import Actor, ThreadKey
from gateway.notices import DRAINED
from gateway.resolutions import Click
from gateway.store.rows import Ended, Lease, Park
from tests.unit.gateway.scene import HERE, House, call, calls, running
from tests.unit.gateway.talk import button

OTHER = Place("talk", "w", "other", "")


async def test_c075_a_hundred_messages_at_once_are_answered_one_by_one_in_order(house: House) -> None:
    texts = [f"n{n}" for n in range(100)]
    async with running(house) as office:
        other = asyncio.create_task(office.talk.say("meanwhile", key=OTHER))
        await asyncio.gather(*(office.talk.say(text) for text in texts))
        await other
        await office.settle()
        assert house.world.texts() == [f"you said: {text}" for text in texts]
        assert house.world.texts(OTHER) == ["you said: meanwhile"]
        log = await office.log()
        assert [m.text for m in log if m.role == "user"] == texts
        assert [m.role for m in log] == ["user", "assistant"] * 100
    order = [
        e for s, e in house.events if isinstance(e, SessionStarted | TurnDone) and s == log_session(house)
    ]
    kinds = [type(e).__name__ for e in order]
    assert kinds == ["SessionStarted", "TurnDone"] * 100  # never two turns at once


def log_session(house: House) -> str:
    """The session with most events."""
    return Counter(session for session, _ in house.events).most_common(1)[0][0]


async def test_other_sessions_go_on_while_one_is_held_up(house: House) -> None:
    hold = house.hold("slow")
    async with running(house) as office:
        await office.talk.say("slow")
        await hold.is_reached()
        await office.talk.say("quick", key=OTHER)
        await office.until(lambda: house.world.texts(OTHER) == ["you said: quick"])
        assert house.world.texts() == []
        hold.go.set()
        await office.settle()
        assert house.world.texts() == ["you said: slow"]


async def test_c075_two_processes_on_one_file_share_a_session_without_mixing(house: House) -> None:
    async with running(house) as one, running(house) as two:
        for n in range(20):
            await asyncio.gather(one.talk.say(f"a{n}"), two.talk.say(f"b{n}"))
        for _ in range(3):
            await asyncio.gather(one.settle(), two.settle())
        log = await one.log()
        assert sorted(m.text for m in log if m.role == "user") == sorted(
            f"{who}{n}" for n in range(20) for who in "ab"
        )
        assert [m.role for m in log] == ["user", "assistant"] * 40
        for asked, answered in zip(log[::2], log[1::2], strict=True):
            assert answered.text == f"you said: {asked.text}"  # the hot log was never stale
        assert len(house.world.texts()) == 40


async def test_c075_a_message_right_after_a_restart_waits_for_the_unfinished_turn(house: House) -> None:
    house.plan["first"] = [calls(call("note", text="x")), "first is done"]
    hold = house.hold("first#1")
    async with running(house) as office:
        await office.talk.say("first")
        await hold.is_reached()
        await office.kill()
    house.holds.clear()
    async with running(house) as office:
        await office.talk.say("second")
        await office.settle()
        assert house.world.texts() == ["first is done", "you said: second"]
        assert house.ran == ["note x"]


async def test_a_word_of_wake_in_the_last_moment_of_a_turn_is_not_lost(house: House) -> None:
    """The turn has parked in the database and has not left the process's hands: a decision that
    lands now must be taken up without any sweep."""
    house.plan["pay"] = [calls(call("pay", order="A")), "paid"]
    async with running(house) as office:
        really_park = office.store.park
        decided = []

        async def park_and_decide(lease: Lease, park: Park, now: float) -> Ended:
            ended = await really_park(lease, park, now)
            click = Click(
                pending_id=park.new_pendings[0].pending_id,
                resolution=Approve(),
                actor=Actor("talk", "w", "ann"),
            )
            decided.append((await office.gateway.resolutions.decide(click)).outcome)
            return ended

        office.store.park = park_and_decide  # type: ignore[method-assign]
        await office.talk.say("pay")
        await office.quiet()
        assert decided == ["resumed"]
        assert house.ran == ["pay A 10"]
        assert house.world.texts()[-1] == "paid"


async def test_a_session_that_another_process_went_on_with_is_read_again(house: House) -> None:
    async with running(house) as one:
        await one.say("one")
        async with running(house) as two:
            await two.say("two")
        await one.say("three")
        seen = [m.text for m in house.requests[-1].messages]
        assert seen == ["one", "you said: one", "two", "you said: two", "three"]


# ---- busy


async def test_steered_words_come_behind_the_step_s_results(house: House) -> None:
    house.plan["go"] = [calls(call("send", to="x")), "unused"]
    house.plan["no, left"] = ["turning left"]
    hold = house.hold("send")
    async with running(house, house.agent(busy="steer")) as office:
        await office.talk.say("go")
        await hold.is_reached()
        await office.talk.say("right")
        await office.talk.say("no, left")
        hold.go.set()
        await office.settle()
        log = await office.log()
        shape = [m.text or ([r.content for r in m.results] if m.results else "calls") for m in log]
        assert shape == ["go", "calls", ["sent to x"], "right", "no, left", "turning left"]
        assert house.world.texts() == ["turning left"]
        await office.say("next")  # the log in memory is as long as the one in the database
        assert [m.text for m in house.requests[-1].messages][-2:] == ["turning left", "next"]


async def test_what_is_said_during_the_last_answer_of_a_steered_agent_gets_its_own_turn(
    house: House,
) -> None:
    hold = house.hold("go")
    async with running(house, house.agent(busy="steer")) as office:
        await office.talk.say("go")
        await hold.is_reached()
        await office.talk.say("and this")
        hold.go.set()
        await office.settle()
        assert house.world.texts() == ["you said: go", "you said: and this"]


async def test_a_newer_message_interrupts_and_is_answered(house: House) -> None:
    house.plan["dig"] = [calls(call("send", to="x")), "unused"]
    hold = house.hold("send")
    async with running(house, house.agent(busy="interrupt")) as office:
        await office.talk.say("dig")
        await hold.is_reached()
        await office.talk.say("stop digging")
        await office.settle()
        texts = house.world.texts()
        assert texts[-1] == "you said: stop digging"
        assert texts[0].startswith("Stopped") and "newer message" in texts[0]
        log = await office.log()
        assert [r.content for m in log for r in m.results] == ["stopped by user: this call was not finished."]


async def test_an_agent_that_was_chosen_with_a_command_says_itself_whether_it_is_interrupted(
    house: House,
) -> None:
    hold = house.hold("dig")
    patient, hasty = house.agent(), house.agent(name="hasty", busy="interrupt")
    async with running(house, patient, hasty) as office:
        await office.say("/agent hasty")
        await office.talk.say("dig")
        await hold.is_reached()
        await office.talk.say("stop digging")
        await office.settle()
        assert house.world.texts()[-1] == "you said: stop digging"


async def test_messages_in_a_row_interrupt_each_other_and_the_last_is_always_answered(house: House) -> None:
    async with running(house, house.agent(busy="interrupt")) as office:
        for n in range(30):
            await office.talk.say(f"n{n}")
            if n % 3 == 0:
                await asyncio.sleep(0)
        await office.settle()
        assert house.world.texts()[-1] == "you said: n29"
        assert (await office.session()).status == "idle"
        await office.log()


# ---- /stop


async def test_c076_stop_ends_a_long_call_and_hello_gets_a_normal_turn(house: House) -> None:
    house.plan["work"] = [calls(call("send", to="x")), "unused"]
    hold = house.hold("send")
    async with running(house) as office:
        await office.talk.say("work")
        await hold.is_reached()
        loop = asyncio.get_running_loop()
        began = loop.time()
        await office.talk.say("/stop")
        await office.talk.say("hello")
        await office.until(lambda: "you said: hello" in house.world.texts())
        assert loop.time() - began < 2.0
        await office.settle()
        texts = house.world.texts()
        assert len([t for t in texts if t.startswith("Stopped. ") or t == "Stopped."]) == 1
        assert any(t.startswith("Stopped (/stop by Ann") for t in texts)
        log = await office.log()
        assert [r.content for m in log for r in m.results] == ["stopped by user: this call was not finished."]


async def test_c076_a_deaf_tool_is_abandoned_and_its_late_result_thrown_away(house: House) -> None:
    house.plan["work"] = [calls(call("deaf")), "unused"]
    hold = house.hold("deaf")
    async with running(house) as office:
        await office.talk.say("work")
        await hold.is_reached()
        loop = asyncio.get_running_loop()
        began = loop.time()
        await office.talk.say("/stop")
        await office.until(lambda: any(t.startswith("Stopped (") for t in house.world.texts()))
        assert loop.time() - began < 2.0
        await office.say("hello")
        hold.go.set()
        await office.settle()
        assert "you said: hello" in house.world.texts()
        log = await office.log()
        assert [r.content for m in log for r in m.results] == ["stopped by user: this call was not finished."]


async def test_c076_stop_while_an_approval_waits_closes_it_and_frees_the_session(house: House) -> None:
    house.plan["pay"] = [calls(call("pay", order="A"), call("pay", order="B")), "unused"]
    async with running(house) as office:
        await office.say("pay")
        [(_, card)] = [house.world.card()]
        assert [part.state for part in card.calls] == ["open", "open"]
        await office.say("/stop")
        assert house.world.live() == []
        assert {card.state for card in house.world.cards.values()} == {"superseded"}
        await office.say("hello")
        assert house.world.texts()[-1] == "you said: hello"
        assert house.ran == []
        assert (await office.session()).open_pendings == 0


async def test_stop_reaches_a_turn_that_another_process_runs(house: House) -> None:
    hold = house.hold("work")
    async with running(house) as one, running(house) as two:
        await one.talk.say("work")
        await hold.is_reached()
        await two.talk.say("/stop")
        await two.gateway.intake.idle()
        await one.gateway.turns.heartbeat_once()
        await one.settle()
        await two.settle()
        assert any(t.startswith("Stopped (/stop by Ann") for t in house.world.texts())


# ---- drain


async def test_c077_what_ends_within_the_limit_is_delivered(house: House) -> None:
    hold = house.hold("slow")
    async with running(house, drain=10.0) as office:
        await office.talk.say("slow")
        await hold.is_reached()
        ending = asyncio.create_task(office.end())
        await office.until(lambda: office.gateway.turns.draining)
        hold.go.set()
        await ending
    assert house.world.texts() == ["you said: slow"]


async def test_c077_what_does_not_end_is_given_back_told_once_and_taken_up_again(house: House) -> None:
    house.plan["work"] = [calls(call("note", text="x")), "done with it"]
    hold = house.hold("work#1")
    async with running(house, drain=0.05) as office:
        await office.talk.say("work")
        await hold.is_reached()
        await office.end()
    assert house.world.texts() == [DRAINED]
    house.holds.clear()
    async with running(house) as office:
        await office.settle()
        assert house.world.texts() == [DRAINED, "done with it"]
        assert house.ran == ["note x"]
        assert [m.repeat for _, m in house.world.messages] == [False, False]


async def test_c077_a_call_that_is_cut_off_by_the_end_is_asked_about_afterwards(house: House) -> None:
    house.plan["work"] = [calls(call("send", to="x")), "done with it"]
    hold = house.hold("send")
    async with running(house, drain=0.05) as office:
        await office.talk.say("work")
        await hold.is_reached()
        await office.end()
    house.holds.clear()
    async with running(house) as office:
        await office.settle()
        _ref, card = house.world.card()
        assert card.kind == "question" and "send" in card.summary
        assert house.ran == ["send x"]


async def test_c077_input_during_the_drain_is_stored_and_answered_after_the_start(house: House) -> None:
    hold = house.hold("slow")
    async with running(house, drain=5.0) as office:
        await office.talk.say("slow")
        await hold.is_reached()
        ending = asyncio.create_task(office.end())
        await office.until(lambda: office.gateway.turns.draining)
        await office.talk.say("late", key=OTHER)
        hold.go.set()
        await ending
    assert house.world.texts(OTHER) == []
    async with running(house) as office:
        await office.settle()
        assert house.world.texts(OTHER) == ["you said: late"]


async def test_c077_a_waiting_approval_does_not_hold_up_the_end_and_survives_it(house: House) -> None:
    house.plan["pay"] = [calls(call("pay", order="A")), "paid"]
    async with running(house, drain=60.0) as office:
        await office.say("pay")
        async with asyncio.timeout(5):
            await office.end()
    assert len(house.world.live()) == 1
    async with running(house) as office:
        await office.settle()
        assert len(house.world.live()) == 1
        assert [r.state for r in await office.pendings(key=ThreadKey(*HERE))] == ["open"]


async def test_c077_an_answer_that_is_being_sent_is_waited_for(house: House) -> None:
    async with running(house) as office:
        office.talk.held = asyncio.Event()
        await office.talk.say("hello")
        async with asyncio.timeout(5):
            await office.talk.sending.wait()
        ending = asyncio.create_task(office.end())
        await office.until(lambda: office.gateway.deliveries._closed)
        office.talk.held.set()
        await ending
    assert house.world.texts() == ["you said: hello"]
    async with running(house) as office:
        await office.settle()
        assert house.world.texts() == ["you said: hello"]


async def test_c077_an_answer_that_cannot_be_sent_before_the_end_is_sent_after_the_start(
    house: House,
) -> None:
    hold = house.hold("slow")
    async with running(house, drain=5.0) as office:
        await office.talk.say("slow")
        await hold.is_reached()
        await office.gateway.deliveries.close(0.0)  # nothing is sent any more
        hold.go.set()
        await office.end()
    assert house.world.texts() == []
    async with running(house) as office:
        await office.settle()
        assert [(m.text, m.repeat) for _, m in house.world.messages] == [("you said: slow", False)]


# ---- waiting for it


async def test_settled_waits_through_everything_that_follows_in_this_process(house: House) -> None:
    hold = house.hold("one")
    async with running(house) as office:
        await office.talk.say("one")
        await office.talk.say("two")
        await hold.is_reached()
        session = (await office.session()).id
        settled = asyncio.create_task(office.gateway.turns.settled(session))
        await asyncio.sleep(0)
        assert not settled.done()
        hold.go.set()
        async with asyncio.timeout(5):
            await settled
        assert [m.text for m in (await office.log())[1::2]] == ["you said: one", "you said: two"]
        await office.gateway.turns.settled("s_unknown")


async def test_a_result_whose_note_was_lost_is_still_in_the_step_s_results(house: House) -> None:
    """The note alone fails; the write that carries the results comes through."""
    house.plan["go"] = [calls(call("send", to="x"), call("pay", order="A")), "over"]
    async with running(house) as office:
        office.store.call_done = lambda *args: None  # type: ignore[method-assign]
        await office.say("go")
        del office.store.call_done
        ref, card = house.world.card()
        assert card.kind == "approval"
        await office.press(ref, button(card, "Approve"))
        assert house.ran == ["send x", "pay A 10"]  # nobody had to be asked what became of `send`
        results = [r.content for m in await office.log() for r in m.results]
        assert results == ["sent to x", "paid 10 for A"]


async def test_a_caller_that_goes_away_does_not_take_the_turn_along(house: House) -> None:
    async with running(house) as office:
        caller = asyncio.create_task(office.talk.say("hello"))
        await asyncio.sleep(0)
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        await office.store.renew(house.clock.now())  # behind the message, in the writer's order
        assert len(await office.store.held()) == 1
        for _ in range(3):
            house.clock.advance(1.5)
            await office.settle()
        assert house.world.texts() == ["you said: hello"]
