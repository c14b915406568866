"""What goes out over a platform that is slow, down, strict, or gone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from channels.base import ChannelBusy, ChannelDown, MessageGone, PayloadRefused, TargetGone, ThreadKey
from gateway.deliveries import FIRST_RETRY, LAST_RETRY, LAST_WHILE_DOWN, ODD_ATTEMPTS
from gateway.errors import StoreUnavailable
from gateway.messages import ThreadKey as Key
from tests.unit.gateway.scene import HERE, House, call, calls, running
from tests.unit.gateway.talk import CUT, button


@pytest.fixture
def long(house: House) -> House:
    house.plan["long"] = [CUT.join(("one", "two", "three"))]
    return house


async def test_parts_go_out_in_order(long: House) -> None:
    async with running(long) as office:
        await office.say("long")
        assert long.world.texts() == ["one", "two", "three"]


@pytest.mark.parametrize("trouble", [ChannelBusy("talk", 7.0), ChannelDown("no route"), OSError("odd")])
async def test_no_part_that_is_out_is_sent_again_when_a_later_one_fails(
    long: House, trouble: Exception
) -> None:
    async with running(long) as office:
        office.talk.trouble = [None, None, trouble]
        await office.say("long")
        assert long.world.texts() == ["one", "two"]
        long.clock.advance(10)
        await office.settle()
        assert long.world.texts() == ["one", "two", "three"]


async def test_a_crash_between_two_parts_repeats_none_that_is_out(long: House) -> None:
    async with running(long) as office:
        parts_out = asyncio.Event()

        async def hold_third(*args: Any, **more: Any) -> Any:
            if len(long.world.said) == 2:
                parts_out.set()
                await asyncio.Event().wait()
            return await send(*args, **more)

        send, office.talk.send = office.talk.send, hold_third  # type: ignore[method-assign]
        await office.talk.say("long")
        async with asyncio.timeout(5):
            await parts_out.wait()
        await office.kill()
    async with running(long) as office:
        await office.settle()
        assert [(m.text, m.repeat) for _, m in long.world.messages] == [
            ("one", False),
            ("two", False),
            ("three", True),  # it may have been under way
        ]


async def test_what_the_platform_asks_to_wait_is_waited(house: House) -> None:
    async with running(house) as office:
        office.talk.trouble = [ChannelBusy("talk", 30.0)]
        await office.say("hello")
        await office.say("next")
        house.clock.advance(29)
        await office.settle()
        assert house.world.texts() == []
        house.clock.advance(1)
        await office.settle()
        assert house.world.texts() == ["you said: hello", "you said: next"]


async def test_retries_come_further_and_further_apart(house: House) -> None:
    async with running(house) as office:
        office.talk.trouble = [ChannelDown("no route")] * 12
        await office.say("hello")
        waits = []
        while not house.world.texts():
            due = await office.store.next_delivery_at()
            assert due is not None
            waits.append(due - house.clock.now())
            house.clock.advance(waits[-1])
            await office.settle()
        expected = [min(LAST_WHILE_DOWN, FIRST_RETRY * 2**n) for n in range(12)]
        assert waits == pytest.approx(expected)


@pytest.mark.parametrize("trouble", [TargetGone("blocked"), PayloadRefused("too odd"), MessageGone("gone")])
async def test_what_is_refused_for_good_lets_the_next_message_go(house: House, trouble: Exception) -> None:
    async with running(house) as office:
        office.talk.trouble = [trouble]
        await office.say("hello")
        await office.say("next")
        assert house.world.texts() == ["you said: next"]


async def test_a_failure_that_nobody_has_foreseen_is_tried_again_and_then_given_up(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(house) as office:
        office.talk.trouble = [RuntimeError("a bug")] * ODD_ATTEMPTS
        await office.say("hello")
        await office.say("next")
        for _ in range(ODD_ATTEMPTS):
            house.clock.advance(LAST_RETRY)
            await office.settle()
        assert house.world.texts() == ["you said: next"]
        assert "a bug" in caplog.text


async def test_a_conversation_that_moved_gets_its_messages_in_the_new_place(house: House) -> None:
    new = ThreadKey("talk", "w", "new", "")
    async with running(house) as office:
        office.talk.trouble = [TargetGone("upgraded", moved_to=new)]
        await office.say("hello")
        assert (house.world.texts(), house.world.texts(new)) == ([], ["you said: hello"])
        await office.say("again", key=new)
        seen = [m.text for m in house.requests[-1].messages]
        assert seen == ["hello", "you said: hello", "again"]


async def test_one_thread_that_is_held_up_holds_up_no_other(house: House) -> None:
    other = ThreadKey("talk", "w", "other", "")
    async with running(house) as office:
        office.talk.trouble = [ChannelBusy("talk", 60.0)]
        await office.say("hello")
        await office.say("hello", key=other)
        assert (house.world.texts(), house.world.texts(other)) == ([], ["you said: hello"])


async def test_what_was_sent_is_noted_however_long_the_database_is_locked(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(house) as office:
        failures = [StoreUnavailable("locked")] * 2
        sent = office.store.sent

        async def fail_twice(*args: Any, **more: Any) -> Any:
            if failures:
                raise failures.pop()
            return await sent(*args, **more)

        monkeypatch.setattr(office.store, "sent", fail_twice)
        await office.talk.say("hello")
        for _ in range(2):
            await office.until(lambda: house.clock.sleeping == 1)
            house.clock.advance(5)
        await office.settle()
        await office.say("next")
        assert house.world.texts() == ["you said: hello", "you said: next"]


async def test_rows_for_a_channel_that_is_not_here_wait_for_who_has_it(house: House) -> None:
    async with running(house) as office:
        talk = office.gateway.channels.pop("talk")
        await office.say("hello")
        office.gateway.channels["talk"] = talk
        house.clock.advance(LAST_RETRY)
        await office.settle()
        assert house.world.texts() == ["you said: hello"]


async def test_rows_handed_over_after_the_close_are_left_to_the_next_process(house: House) -> None:
    async with running(house) as office:
        await office.gateway.deliveries.close(0.0)
        await office.gateway.desk.say(Key(*HERE), "late")
        await office.gateway.deliveries.idle()
        assert house.world.texts() == []
    async with running(house) as office:
        await office.settle()
        assert [(m.text, m.repeat) for _, m in house.world.messages] == [("late", False)]


async def test_a_card_is_tried_again_and_stands_once(house: House) -> None:
    house.plan["pay"] = [calls(call("pay", order="A")), "paid"]
    async with running(house) as office:
        office.talk.trouble = [ChannelDown("no route")]
        await office.say("pay")
        assert house.world.cards == {}
        house.clock.advance(2)
        await office.settle()
        ref, card = house.world.card()
        assert not card.repeat
        await office.press(ref, button(card, "Approve"))
        assert house.ran == ["pay A 10"]


async def test_words_before_the_calls_come_before_the_card(house: House) -> None:
    house.plan["pay"] = [calls(call("pay", order="A"), text="I will pay."), "paid"]
    async with running(house) as office:
        await office.say("pay")
        assert house.world.texts() == ["I will pay."]
        ref, card = house.world.card()
        await office.press(ref, button(card, "Approve"))
        assert house.world.texts() == ["I will pay.", "paid"]
