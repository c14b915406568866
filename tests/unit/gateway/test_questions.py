"""Questions: options, typed answers, several answers, what is no answer."""

from __future__ import annotations

import pytest

from gateway.gate import Rule
from gateway.notices import TAKEN_AS_ANSWER
from tests.unit.gateway.scene import House, Office, call, calls, running
from tests.unit.gateway.talk import button

OPTIONS = ["staging", "prod"]


def asking(house: House, **more: object) -> House:
    args = {"question": "Which env?", "options": OPTIONS, **more}
    house.plan["go"] = [calls(call("ask_user", **args)), "thank you"]
    return house


def answer(house: House) -> str:
    """What the model read as the answer."""
    (result,) = next(m for m in reversed(house.requests[-1].messages) if m.results).results
    return result.content


async def first_result(office: Office) -> str:
    return next(r.content for m in await office.log() for r in m.results)


async def test_an_option_is_pressed(house: House) -> None:
    async with running(asking(house)) as office:
        await office.say("go")
        ref, card = house.world.card()
        assert [c.label for c in card.choices] == OPTIONS
        told = await office.press(ref, button(card, "prod"))
        assert told.startswith("Answered by Ann") and told.endswith("prod.")
        assert answer(house) == "prod" and house.world.texts() == ["thank you"]


@pytest.mark.parametrize("typed", ["2", "Prod", " PROD "])
async def test_c051_a_number_or_a_label_is_the_answer(house: House, typed: str) -> None:
    async with running(asking(house, allow_text=False)) as office:
        await office.say("go")
        await office.say(typed)
        assert answer(house) == "prod"
        assert sorted(house.world.texts()) == [TAKEN_AS_ANSWER.format(answer="prod"), "thank you"]
        assert [m.text for m in await office.log() if m.role == "user" and m.text] == ["go"]  # used once


async def test_c051_free_text_is_the_answer_where_it_is_allowed_and_that_is_said(house: House) -> None:
    async with running(asking(house)) as office:
        await office.say("go")
        await office.say("use the eu cluster")
        assert answer(house) == "use the eu cluster"
        said = [t for t in house.world.texts() if t.startswith("Taken as your answer: use the eu cluster")]
        assert len(said) == 1 and "/stop" in said[0]
        assert house.world.texts()[-1] == "thank you"


async def test_c051_free_text_that_is_no_answer_cancels_the_question_and_is_the_next_turn(
    house: House,
) -> None:
    async with running(asking(house, allow_text=False)) as office:
        await office.say("go")
        await office.say("unrelated: what's the time?")
        assert "closed by a newer message" in await first_result(office)
        assert house.world.texts()[-1] == "you said: unrelated: what's the time?"
        assert house.world.live() == []
        log = [m.text for m in await office.log() if m.role == "user" and m.text]
        assert log == ["go", "unrelated: what's the time?"]


async def test_c051_a_command_is_never_an_answer(house: House) -> None:
    async with running(asking(house)) as office:
        await office.say("go")
        await office.say("/status")
        assert len(house.world.live()) == 1
        await office.say("/stop")
        assert house.world.live() == []
        assert "closed by /stop" in await first_result(office)


async def test_c051_an_approval_is_never_decided_by_free_text(house: House) -> None:
    house.plan["pay"] = [calls(call("pay", order="A")), "paid"]
    async with running(house) as office:
        await office.say("pay")
        for text in ("yes", "approve", "1"):
            await office.say(text)
        assert house.ran == [] and len(house.world.live()) == 1
        noted = [t for t in house.world.texts() if t.startswith("Noted")]
        assert len(noted) == 1  # the first one is told, the others are not
        ref, card = house.world.card()
        await office.press(ref, button(card, "Approve"))
        assert house.world.texts()[-4:] == ["paid", "you said: yes", "you said: approve", "you said: 1"]


async def test_c051_somebody_else_s_words_are_no_answer_and_do_not_hide_the_right_person_s(
    house: House,
) -> None:
    async with running(asking(house)) as office:
        await office.say("go")
        await office.say("I would say staging", user="bob")
        assert len(house.world.live()) == 1
        await office.say("prod")
        assert await first_result(office) == "prod"
        assert house.world.texts()[-1] == "you said: I would say staging"


async def test_what_was_typed_before_the_question_came_is_no_answer(house: House) -> None:
    hold = house.hold("go")
    async with running(asking(house)) as office:
        await office.talk.say("go")
        await hold.is_reached()
        await office.talk.say("prod")
        hold.go.set()
        await office.settle()
        assert len(house.world.live()) == 1
        ref, card = house.world.card()
        await office.press(ref, button(card, "staging"))
        assert house.world.texts() == ["thank you", "you said: prod"]


async def test_c052_an_answer_hours_after_a_restart_goes_on(house: House) -> None:
    async with running(asking(house)) as office:
        await office.say("go")
        await office.kill()
    house.clock.advance(hours=3)
    async with running(house) as office:
        await office.settle()
        ref, card = house.world.card()
        await office.press(ref, button(card, "staging"))
        assert answer(house) == "staging" and house.world.texts() == ["thank you"]


async def test_c052_an_answer_after_the_question_s_own_end_is_told_so(house: House) -> None:
    rules = (Rule(tool="ask_user", decision="ask", expires=60.0),)
    async with running(asking(house), house.agent(rules=rules)) as office:
        await office.say("go")
        ref, card = house.world.card()
        house.clock.advance(61)
        told = await office.press(ref, button(card, "staging"))
        assert told.startswith("Expired")
        assert "question expired" in answer(house)
        assert house.world.live() == []
        await office.say("staging")
        assert house.world.texts()[-1] == "you said: staging"


async def pressed(office: Office, ref: str, label: str) -> str:
    return await office.press(ref, button(office.world.cards[ref], label))


async def test_several_options_are_chosen_and_confirmed(house: House) -> None:
    async with running(asking(house, multi=True)) as office:
        await office.say("go")
        ref, _card = house.world.card()
        assert await pressed(office, ref, "Confirm") == "Nothing is chosen yet."
        assert await pressed(office, ref, "prod") == "Chosen: prod"
        assert [c.label for c in house.world.cards[ref].choices if c.chosen] == ["prod"]
        assert await pressed(office, ref, "staging") == "Chosen: prod, staging"
        assert await pressed(office, ref, "prod") == "Chosen: staging"
        assert await pressed(office, ref, "prod") == "Chosen: staging, prod"
        await pressed(office, ref, "Confirm")
        assert answer(house) == "- staging\n- prod"


async def test_choosing_is_for_those_who_may_answer_and_only_on_the_card(house: House) -> None:
    async with running(asking(house, multi=True)) as office:
        await office.say("go")
        ref, card = house.world.card()
        assert (await office.press(ref, button(card, "prod"), user="bob")).startswith("You may not")
        assert "not known here" in await office.press("forwarded", button(card, "prod"))
        assert (await office.pendings())[0].votes == ()
        assert (await office.audit())[-2:] == ["refused_forbidden", "refused_unknown"]


async def test_choosing_after_the_end_says_what_became_of_the_question(house: House) -> None:
    rules = (Rule(tool="ask_user", decision="ask", expires=60.0),)
    async with running(asking(house, multi=True), house.agent(rules=rules)) as office:
        await office.say("go")
        ref, card = house.world.card()
        house.clock.advance(61)
        assert (await office.press(ref, button(card, "prod"))).startswith("Expired")
        assert (await office.press(ref, button(card, "prod"))).startswith("Expired")
        await office.say("go")
        ref, card = house.world.card()
        await office.press(ref, button(card, "prod"))
        await pressed(office, ref, "Confirm")
        assert (await office.press(ref, button(card, "staging"))).startswith(
            "Already decided. Answered by Ann"
        )


async def test_own_words_come_through_the_form(house: House) -> None:
    async with running(asking(house)) as office:
        await office.say("go")
        ref, card = house.world.card()
        assert await office.press(ref, card.forms[0].data, values={"answer": "  "}) == "The answer is empty."
        await office.press(ref, card.forms[0].data, values={"answer": "eu-1"})
        assert answer(house) == "eu-1"
