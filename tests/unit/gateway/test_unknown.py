"""A call that was cut off: what a person says about it is what the agent reads."""

from __future__ import annotations

from channels.base import Card
from gateway.messages import ToolResult
from gateway.questions import RUN_AGAIN, TREAT_AS_DONE
from tests.unit.gateway.scene import House, call, calls, running
from tests.unit.gateway.talk import button


async def cut_off(house: House) -> None:
    """One process dies while `send` runs."""
    house.plan["go"] = [calls(call("send", to="b")), "over"]
    hold = house.hold("send")
    async with running(house) as office:
        await office.talk.say("go")
        await hold.is_reached()
        await office.kill()
    house.holds.clear()


def read(house: House) -> ToolResult:
    """The result that the model read last."""
    return [r for m in house.requests[-1].messages for r in m.results][-1]


def form_of(card: Card) -> str:
    (form,), (opener,) = card.forms, card.buttons
    assert form.data == opener.data and not form.fields[0].required
    return form.data


async def test_c074_what_the_call_came_to_can_be_told_and_is_its_result(house: House) -> None:
    await cut_off(house)
    async with running(house) as office:
        await office.settle()
        ref, card = house.world.card()
        told = await office.press(ref, form_of(card), values={"answer": " message 17\nis out "})
        assert "treat as done, message 17" in told
        assert house.ran == ["send b"] and house.world.texts() == ["over"]
        result = read(house)
        assert not result.is_error and result.content.endswith("in their words:\nmessage 17\nis out")


async def test_c074_without_a_result_it_is_only_treated_as_done(house: House) -> None:
    await cut_off(house)
    async with running(house) as office:
        await office.settle()
        ref, card = house.world.card()
        await office.press(ref, form_of(card), values={"answer": " "})
        assert read(house).content.endswith("has checked: treat this call as done.")
        assert house.ran == ["send b"]


async def test_c074_a_call_that_runs_again_says_that_it_had_begun_before(house: House) -> None:
    await cut_off(house)
    async with running(house) as office:
        await office.settle()
        ref, card = house.world.card()
        await office.press(ref, button(card, RUN_AGAIN))
        note, _, result = read(house).content.partition("\n")
        assert "had begun before" in note and "Ann" in note and result == "sent to b"
        assert house.ran == ["send b", "send b"]


async def test_c074_the_result_can_be_typed_and_other_words_wait(house: House) -> None:
    await cut_off(house)
    async with running(house) as office:
        await office.settle()
        await office.say("what happened?")
        assert len(house.world.live()) == 1 and house.ran == ["send b"]
        await office.say(f"{TREAT_AS_DONE}: message 17")
        assert house.world.live() == []
        results = [r.content for m in await office.log() for r in m.results]
        assert results[0].endswith("message 17")
        assert house.world.texts()[-1] == "you said: what happened?"
