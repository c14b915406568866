"""A process that dies, at every place that matters, and the one that goes on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from channels.base import ChannelDown, ThreadKey
from gateway.errors import StoreUnavailable
from gateway.messages import ToolResult
from gateway.questions import GIVE_UP, RUN_AGAIN, TREAT_AS_DONE
from gateway.store.rows import Lease, TurnEnd
from gateway.verdicts import INTERRUPTED
from tests.unit.gateway.scene import House, Office, call, calls, running
from tests.unit.gateway.talk import button


async def died_at(house: House, text: str, place: str, **agent: Any) -> None:
    """One process takes a message and dies where the house holds it."""
    hold = house.hold(place)
    async with running(house, house.agent(**agent)) as office:
        await office.talk.say(text)
        await hold.is_reached()
        await office.kill()
    house.holds.clear()


def room(name: str) -> ThreadKey:
    return ThreadKey("talk", "w", name, "")


def results(house: House) -> list[ToolResult]:
    """The results that the model read last."""
    return [r for m in house.requests[-1].messages for r in m.results]


# ---- the model is asked


@pytest.mark.parametrize("place", ["hello", "hello#1"])
async def test_a_model_call_that_was_cut_off_is_made_again(house: House, place: str) -> None:
    house.plan["hello"] = [calls(call("look", at="x")), "seen"]
    await died_at(house, "hello", place)
    async with running(house) as office:
        await office.settle()
        assert house.world.texts() == ["seen"]
        assert house.ran == ["look x"]
        assert [m.role for m in await office.log()] == ["user", "assistant", "user", "assistant"]


# ---- a call runs


async def test_c074_results_on_record_are_used_and_stored_replies_not_asked_for_again(house: House) -> None:
    house.plan["go"] = [calls(call("send", to="a"), call("send", to="b")), "unused"]
    hold = house.hold("send")
    async with running(house) as office:
        await office.talk.say("go")
        await hold.is_reached()
        hold.go.set()
        second = house.hold("send")
        await second.is_reached()
        await office.kill()
    house.holds.clear()
    asked = len(house.requests)
    async with running(house, house.agent(on_unknown="report")) as office:
        await office.settle()
        assert house.ran == ["send a", "send b"]  # neither ran again
        assert len(house.requests) == asked + 1
        assert [(r.content, r.is_error) for r in results(house)] == [
            ("sent to a", False),
            (INTERRUPTED, True),
        ]
        told = house.world.texts()
        assert "unused" in told and any("send" in text and text != "unused" for text in told)


async def test_c074_by_default_a_person_is_asked_what_became_of_a_call_that_was_cut_off(
    house: House,
) -> None:
    house.plan["go"] = [calls(call("look", at="first"), call("send", to="b")), "over"]
    await died_at(house, "go", "send")
    async with running(house) as office:
        await office.settle()
        _ref, card = house.world.card()
        assert card.kind == "question" and "send" in card.summary
        assert [c.label for c in card.choices] == [RUN_AGAIN, TREAT_AS_DONE, GIVE_UP]
        assert card.fields[0].value == "b"
        assert house.ran == ["look first", "send b"]


@pytest.mark.parametrize(
    "choice, ran, content, is_error",
    [
        (RUN_AGAIN, ["send b", "send b"], "sent to b", False),
        (TREAT_AS_DONE, ["send b"], "treat this call as done", False),
        (GIVE_UP, ["send b"], "decided to go on without it", True),
    ],
)
async def test_c074_the_answer_about_a_cut_off_call_is_carried_out_once(
    house: House, choice: str, ran: list[str], content: str, is_error: bool
) -> None:
    house.plan["go"] = [calls(call("send", to="b")), "over"]
    await died_at(house, "go", "send")
    async with running(house) as office:
        await office.settle()
        ref, card = house.world.card()
        await office.press(ref, button(card, choice))
        assert house.ran == ran
        assert house.world.texts() == ["over"]
        assert content in results(house)[0].content and results(house)[0].is_error is is_error
        again = await office.press(ref, button(card, RUN_AGAIN))
        assert again.startswith("Already decided") and house.ran == ran


async def test_c074_a_call_that_is_cut_off_again_is_asked_about_again(house: House) -> None:
    house.plan["go"] = [calls(call("send", to="b")), "over"]
    await died_at(house, "go", "send")
    hold = house.hold("send")
    async with running(house) as office:
        await office.settle()
        ref, card = house.world.card()
        await office.talk.press(ref, button(card, RUN_AGAIN))
        await hold.is_reached()
        await office.kill()
    house.holds.clear()
    async with running(house) as office:
        await office.settle()
        ref, card = house.world.card()
        await office.press(ref, button(card, TREAT_AS_DONE))
        assert house.ran == ["send b", "send b"] and house.world.texts() == ["over"]


@pytest.mark.parametrize("tool, args", [("note", {"text": "x"}), ("look", {"at": "x"})])
async def test_what_may_run_twice_simply_runs_again(house: House, tool: str, args: dict[str, str]) -> None:
    house.plan["go"] = [calls(call(tool, **args)), "over"]
    await died_at(house, "go", tool)
    async with running(house) as office:
        await office.settle()
        assert house.ran == [f"{tool} x"] * 2 and house.world.texts() == ["over"]
        assert house.world.cards == {}


async def test_a_call_that_had_not_begun_runs(house: House) -> None:
    house.plan["go"] = [calls(call("look", at="x"), call("send", to="b")), "over"]
    await died_at(house, "go", "look")
    async with running(house) as office:
        await office.settle()
        assert house.ran == ["look x", "look x", "send b"] and house.world.texts() == ["over"]


async def test_a_call_that_needed_a_person_still_does_after_a_crash_before_the_card(house: House) -> None:
    house.plan["go"] = [calls(call("look", at="x"), call("pay", order="A")), "over"]
    await died_at(house, "go", "look")  # the reply is stored, nobody was asked about `pay` yet
    async with running(house) as office:
        await office.settle()
        assert house.ran == ["look x", "look x"]
        ref, card = house.world.card()
        await office.press(ref, button(card, "Approve"))
        assert house.ran[-1] == "pay A 10" and house.world.texts() == ["over"]


async def test_a_tool_that_is_gone_after_the_restart_is_an_error_result(house: House) -> None:
    house.plan["go"] = [calls(call("send", to="b")), "over"]
    await died_at(house, "go", "send")
    agent = house.agent()
    without = replace(agent, tools=tuple(t for t in agent.tools if t.name != "send"))
    async with running(house, without) as office:
        await office.settle()
        assert [(r.content, r.is_error) for r in results(house)] == [(INTERRUPTED, True)]
        assert house.world.texts()[-1] == "over"


async def test_an_agent_that_is_gone_leaves_the_session_free_and_the_person_told(house: House) -> None:
    house.plan["go"] = [calls(call("send", to="b")), "unused"]
    await died_at(house, "go", "send")
    async with running(house, house.agent(name="another")) as office:
        await office.settle()
        assert "no longer configured" in house.world.texts()[0]
        assert [r.content for m in await office.log() for r in m.results] == [INTERRUPTED]
        assert (await office.session()).status == "idle"


# ---- a person is waited for


async def test_c039_after_a_restart_the_first_click_runs_it_once_and_later_ones_learn_who_it_was(
    house: House,
) -> None:
    house.plan["pay"] = [calls(call("pay", order="A")), "paid"]
    async with running(house, house.agent(rule={"approvers": ("talk:ann", "talk:bob")})) as office:
        await office.say("pay")
        await office.end()
    async with running(house, house.agent(rule={"approvers": ("talk:ann", "talk:bob")})) as office:
        await office.settle()
        ref, card = house.world.card()
        first = await office.press(ref, button(card, "Approve"))
        second = await office.press(ref, button(card, "Approve"))
        third = await office.press(ref, button(card, "Deny"), user="bob")
        assert first.startswith("Approved by Ann")
        for later in (second, third):
            assert later.startswith("Already decided. Approved by Ann")
        assert house.ran == ["pay A 10"] and house.world.texts() == ["paid"]


async def test_c040_what_runs_is_what_was_approved_not_what_the_model_would_say_now(house: House) -> None:
    house.plan["pay"] = [calls(call("pay", order="alpha", amount=80)), "paid"]
    async with running(house) as office:
        await office.say("pay")
        await office.kill()
    house.plan["pay"] = [calls(call("pay", order="beta", amount=20)), "paid"]
    async with running(house) as office:
        await office.settle()
        asked = len(house.requests)
        ref, card = house.world.card()
        record = (await office.pendings())[0]
        assert [f.value for f in card.fields][:2] == ["alpha", "80"]
        assert card.args_hash == record.pending.args_hash
        await office.press(ref, button(card, "Approve"))
        assert house.ran == ["pay alpha 80"]
        assert len(house.requests) == asked + 1  # only to go on with the result
        row = (await office.store.calls((await office.session()).id))[0]
        assert row.args_hash == record.pending.args_hash


async def test_c040_edited_arguments_survive_a_crash_in_the_middle_of_the_call(house: House) -> None:
    house.plan["pay"] = [calls(call("pay", order="A", amount=80)), "paid"]
    hold = house.hold("pay")
    house.holds.pop("pay")
    async with running(house) as office:
        await office.say("pay")
        house.holds["pay"] = hold
        ref, card = house.world.card()
        form = next(f for f in card.forms if f.title.startswith("Edit"))
        await office.talk.press(ref, form.data, values={"order": "A", "amount": "20"})
        await hold.is_reached()
        await office.kill()
    house.holds.clear()
    async with running(house) as office:
        await office.settle()
        ref, card = house.world.card()
        assert [f.value for f in card.fields][:2] == ["A", "20"]
        await office.press(ref, button(card, RUN_AGAIN))
        assert house.ran == ["pay A 20", "pay A 20"]  # never the 80 that the model wanted


async def test_a_decision_whose_process_died_right_after_it_is_carried_out(house: House) -> None:
    house.plan["pay"] = [calls(call("pay", order="A")), "paid"]
    async with running(house) as office:
        await office.say("pay")
        ref, card = house.world.card()
        office.gateway.turns._draining = True  # it decides and does not get around to running it
        await office.press(ref, button(card, "Approve"))
        await office.kill()
    async with running(house) as office:
        await office.settle()
        assert house.ran == ["pay A 10"] and house.world.texts() == ["paid"]


async def test_a_press_that_was_only_stored_is_carried_out_by_the_next_process(house: House) -> None:
    house.plan["pay"] = [calls(call("pay", order="A")), "paid"]
    async with running(house) as office:
        await office.say("pay")
        ref, card = house.world.card()
        await office.talk.press(ref, button(card, "Approve"), action_id="press-1")
        await office.kill()
    async with running(house) as office:
        await office.settle()
        await office.talk.press(ref, button(card, "Approve"), action_id="press-1")  # delivered again
        await office.settle()
        assert house.ran == ["pay A 10"] and house.world.texts() == ["paid"]
        assert [text.split(" by ")[0] for _, text in house.world.answers] == ["Approved"]


async def test_a_card_whose_reference_was_lost_is_adopted_by_the_first_press(house: House) -> None:
    house.plan["pay"] = [calls(call("pay", order="A")), "paid"]
    async with running(house) as office:
        sent = office.store.sent

        async def die(delivery_id: int, ref: str | None, now: float, *, opened: Any = None) -> list[Any]:
            raise StoreUnavailable("the process is about to die")

        office.store.sent = die  # type: ignore[method-assign]
        await office.talk.say("pay")
        await office.until(lambda: house.world.cards)
        office.store.sent = sent  # type: ignore[method-assign]
        await office.kill()
    async with running(house) as office:
        (lost,) = house.world.cards
        card = house.world.cards[lost]
        await office.settle()
        assert len(house.world.cards) == 2  # shown again, because nobody knows that it is there
        told = await office.press(lost, button(card, "Approve"))
        assert told.startswith("Approved")
        assert house.world.live() == []  # both copies
        assert house.ran == ["pay A 10"]


# ---- the answer is sent


async def test_c031_answers_that_were_delivered_are_not_sent_again(house: House) -> None:
    async with running(house) as office:
        for text in ("1", "2", "3"):
            await office.say(text)
        office.talk.held = asyncio.Event()
        office.talk.sending.clear()
        await office.talk.say("4")
        await office.talk.sending.wait()
        await office.kill()
    async with running(house) as office:
        await office.settle()
    sent = [(m.text.removeprefix("you said: "), m.repeat) for _, m in house.world.messages]
    assert sent == [("1", False), ("2", False), ("3", False), ("4", True)]


async def test_the_end_of_a_turn_that_never_reached_the_disk_is_done_again(house: House) -> None:
    house.plan["go"] = [calls(call("note", text="x")), "over"]
    async with running(house) as office:

        async def die(lease: Lease, end: TurnEnd, now: float) -> Any:
            raise StoreUnavailable("the process is about to die")

        office.store.finish = die  # type: ignore[method-assign]
        await office.talk.say("go")
        await office.quiet()
        assert house.world.texts() == []
        await office.kill()
    async with running(house) as office:
        await office.settle()
        assert house.world.texts() == ["over"] and house.ran == ["note x"]


# ---- the store fails while the process lives on


async def test_a_turn_that_the_store_cut_off_is_taken_up_again_by_the_same_process(house: House) -> None:
    house.plan["go"] = [calls(call("note", text="x")), "over"]
    hold = house.hold("other")
    async with running(house) as office:
        await office.talk.say("other", key=room("b"))
        await hold.is_reached()  # another session keeps this process's leases alive
        results_of, failures = office.store.results, [StoreUnavailable("locked"), None]

        async def fail_once(*args: Any, **more: Any) -> Any:
            if (error := failures.pop(0) if failures else None) is not None:
                raise error
            return await results_of(*args, **more)

        office.store.results = fail_once  # type: ignore[method-assign]
        await office.talk.say("go")
        await office.until(lambda: len(failures) == 1 and len(office.gateway.turns._running) == 1)
        for _ in range(3):
            house.clock.advance(1.5)
            await office.gateway.turns.heartbeat_once()
            await office.gateway.turns.sweep_once()
        await office.until(lambda: house.world.texts() == ["over"])
        assert house.ran == ["note x"]
        hold.go.set()
        await office.settle()


async def test_a_claim_that_came_back_to_nobody_is_let_go(house: House) -> None:
    async with running(house) as office:
        accept = office.gateway.turns.start
        office.gateway.turns.start = lambda claim: None  # type: ignore[method-assign,assignment,return-value]
        await office.talk.say("hello")
        office.gateway.turns.start = accept  # type: ignore[method-assign]
        await office.gateway.turns.sweep_once()
        assert house.world.texts() == []
        house.clock.advance(1.5)
        await office.settle()
        assert house.world.texts() == ["you said: hello"]


async def test_a_message_that_cannot_be_stored_is_not_acknowledged(house: House) -> None:
    async with running(house) as office:

        async def locked(*args: Any, **more: Any) -> Any:
            raise StoreUnavailable("locked")

        accept, office.store.accept = office.store.accept, locked  # type: ignore[method-assign]
        with pytest.raises(StoreUnavailable):
            await office.talk.say("hello", message_id="1")
        office.store.accept = accept  # type: ignore[method-assign]
        await office.say("hello", message_id="1")
        assert house.world.texts() == ["you said: hello"]


async def test_a_command_waits_while_the_database_is_locked(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(house) as office:
        failures = [StoreUnavailable("locked"), None]
        session_of = office.store.session_of

        async def fail_once(*args: Any) -> Any:
            if (error := failures.pop(0) if failures else None) is not None:
                raise error
            return await session_of(*args)

        monkeypatch.setattr(office.store, "session_of", fail_once)
        await office.talk.say("/status")
        await office.until(lambda: house.clock.sleeping == 1)
        house.clock.advance(1)
        await office.settle()
        assert len(house.world.texts()) == 1


# ---- all of it together


class Dying:
    """Makes a store fail from its nth write on, as for a process that is about to die."""

    WRITES = ("accept", "reply", "calls_started", "results", "finish", "sent")

    def __init__(self, office: Office, nth: int) -> None:
        self._left, self.dead = nth, False
        for name in self.WRITES:
            setattr(office.store, name, self._write(getattr(office.store, name)))

    def _write(self, really: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def write(*args: Any, **more: Any) -> Any:
            self._left -= 1
            self.dead = self.dead or self._left <= 0
            if self.dead:
                raise StoreUnavailable("the process is about to die")
            return await really(*args, **more)

        return write


async def test_a_crash_at_any_write_loses_nothing_and_does_nothing_twice(house: House) -> None:
    """The same turn, cut off at its first, second, third... write, until it comes through."""
    step = calls(call("send", to="a"), call("note", text="b"))
    house.plan["go"] = [step, calls(call("look", at="c")), "over"]
    for nth in range(1, 40):
        house.ran.clear()
        place = room(f"room{nth}")
        async with running(house) as office:
            dying = Dying(office, nth)
            with contextlib.suppress(StoreUnavailable):
                await office.talk.say("go", key=place, message_id="go")
            await office.until(lambda: not office.gateway.turns._running)
            await office.until(lambda: dying.dead or house.world.texts(place))  # noqa: B023
            if not dying.dead:
                break
            await office.kill()
        async with running(house, house.agent(on_unknown="report")) as office:
            await office.talk.say("go", key=place, message_id="go")  # delivered again
            await office.settle()
            assert house.world.texts(place)[-1:] == ["over"], nth
            assert house.ran.count("send a") == 1, nth
            assert [m.text for m in await office.log(place) if m.role == "user" and m.text] == ["go"]
    assert nth >= 7


async def test_a_platform_that_is_down_is_tried_again_later(house: House) -> None:
    async with running(house) as office:
        office.talk.trouble = [ChannelDown("no route"), ChannelDown("no route")]
        await office.say("hello")
        assert house.world.texts() == []
        for _ in range(3):
            house.clock.advance(5)
            await office.settle()
        assert [(m.text, m.repeat) for _, m in house.world.messages] == [("you said: hello", False)]
