"""Questions: options, typed answers, several answers, what is no answer."""

from __future__ import annotations

import json

import pytest

from channels.base import Actor, InboundPress, MessageRef
from gateway.gate import Rule
from gateway.notices import TAKEN_AS_ANSWER
from tests.unit.gateway.scene import House, Office, call, calls, running
from tests.unit.gateway.talk import HERE, button

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


# ---- values of a kind, yes or no, how many


async def test_a_number_is_asked_for_in_a_form_and_a_wrong_one_is_named_at_its_field(house: House) -> None:
    house.plan["go"] = [calls(call("ask_user", question="How many?", kind="integer")), "thank you"]
    async with running(house) as office:
        await office.say("go")
        ref, card = house.world.card()
        (form,), (opener,) = card.forms, card.buttons
        assert (opener.label, form.fields[0].kind) == ("Answer…", "integer")
        assert await faults(office, ref, form.data, answer="a few") == {
            "answer": "a whole number is needed, like 12"
        }
        assert "a whole number is needed" in await office.press(ref, form.data, values={"answer": "a few"})
        await office.press(ref, form.data, values={"answer": " +012 "})
        assert answer(house) == "12"


async def faults(office: Office, ref: str, data: str, **values: str | tuple[str, ...]) -> dict[str, str]:
    assert office.talk.inbound is not None
    press = InboundPress(
        thread=HERE,
        action_id="f",
        actor=Actor("talk", "w", "ann"),
        data=data,
        message_ref=MessageRef(ref),
        sent_at=0.0,
        values=values,
    )
    return dict(await office.talk.inbound.faults(press))


async def test_c051_a_typed_value_that_cannot_be_read_is_told_its_mend_and_used_once(house: House) -> None:
    house.plan["go"] = [calls(call("ask_user", question="When?", kind="date")), "thank you"]
    async with running(house) as office:
        await office.say("go")
        await office.say("03.04.2026")
        assert len(house.world.live()) == 1
        assert "2026-04-03 or 2026-03-04" in house.world.texts()[-1]
        await office.say("31.3.2026")
        assert answer(house) == "2026-03-31"
        assert house.world.texts()[-1] == "thank you"  # and the first attempt is nobody's next message
        assert [m.text for m in await office.log() if m.role == "user" and m.text] == ["go"]


async def test_c051_words_that_are_no_value_at_all_are_the_next_message(house: House) -> None:
    house.plan["go"] = [calls(call("ask_user", question="When?", kind="date")), "thank you"]
    async with running(house) as office:
        await office.say("go")
        await office.say("forget it")
        assert house.world.live() == [] and house.world.texts()[-1] == "you said: forget it"


async def test_yes_or_no_is_one_press(house: House) -> None:
    house.plan["go"] = [calls(call("ask_user", question="Sure?", kind="boolean")), "thank you"]
    async with running(house) as office:
        await office.say("go")
        ref, card = house.world.card()
        assert ([c.label for c in card.choices], card.buttons, card.forms) == (["Yes", "No"], (), ())
        await office.press(ref, button(card, "No"))
        assert answer(house) == "false"


async def test_as_many_options_are_chosen_as_the_question_wants(house: House) -> None:
    async with running(asking(house, multi=True, min=2, allow_text=False)) as office:
        await office.say("go")
        ref, card = house.world.card()
        assert card.summary == "Which env?\nchoose 2"
        await pressed(office, ref, "prod")
        assert "choose at least 2" in await pressed(office, ref, "Confirm")
        await pressed(office, ref, "staging")
        await pressed(office, ref, "Confirm")
        assert answer(house) == "- staging\n- prod"


async def test_none_of_the_options_is_an_answer_where_that_is_allowed(house: House) -> None:
    async with running(asking(house, multi=True, min=0)) as office:
        await office.say("go")
        ref, card = house.world.card()
        assert card.summary == "Which env?\nchoose all that apply, or none"
        told = await pressed(office, ref, "Confirm")
        assert told.endswith("none of them.")
        assert answer(house) == "(none of the options)"


async def test_a_question_that_nobody_could_answer_is_an_error_with_its_mend(house: House) -> None:
    async with running(asking(house, multi=True, min=3)) as office:
        await office.say("go")
        assert house.world.cards == {}
        assert await first_result(office) == "invalid arguments: min: is 3, but there are 2 options"


# ---- several questions

RELEASE = [
    {"name": "env", "question": "Which env?", "options": OPTIONS, "allow_text": False},
    {"name": "count", "question": "How many?", "kind": "integer"},
    {"name": "tell", "question": "Whom to tell?", "options": ["ops", "all"], "multi": True, "min": 0},
]


def releasing(house: House) -> House:
    house.plan["go"] = [calls(call("ask_user", question="The release", questions=RELEASE)), "thank you"]
    return house


async def test_several_questions_are_answered_in_a_form_changed_and_confirmed(house: House) -> None:
    async with running(releasing(house)) as office:
        await office.say("go")
        ref, card = house.world.card()
        assert [b.label for b in card.buttons] == ["Answer…"]
        assert (card.summary, [f.name for f in card.fields]) == ("The release", ["env", "count", "tell"])
        assert card.fields[0].value == "Which env?\n1. staging\n2. prod\n(not answered yet)"
        (form,) = card.forms
        assert [(f.name, f.kind, f.required) for f in form.fields] == [
            ("env", "select", True),
            ("count", "integer", True),
            ("tell", "multi", False),
            ("tell.other", "text", False),
        ]
        wrong = {"env": "moon", "count": "many"}
        assert list(await faults(office, ref, form.data, **wrong)) == ["env", "count"]
        assert "count: a whole number" in await office.press(ref, form.data, values=wrong)
        told = await office.press(ref, form.data, values={"env": "staging", "count": "3"})
        assert told == "Noted: env: staging; count: 3. Not answered yet: tell."

        more = {"env": "prod", "tell": ("ops",), "tell.other": ""}
        assert "Press Confirm" in await office.press(ref, form.data, values=more)
        card = house.world.cards[ref]
        assert [b.label for b in card.buttons] == ["Confirm", "Change…"]
        assert card.fields[0].value.endswith("→ prod")
        values = {f.name: f.value for f in card.forms[0].fields}
        assert values == {"env": "prod", "count": "3", "tell": "ops", "tell.other": ""}
        told = await pressed(office, ref, "Confirm")
        assert told.endswith(": env: prod; count: 3; tell: ops.")
        assert answer(house) == '{"env": "prod", "count": 3, "tell": ["ops"]}'
        assert house.world.cards[ref].fields[1].value == "How many?\na whole number, like 12\n→ 3"


async def test_watchers_are_told_every_one_of_several_questions(house: House) -> None:
    async with running(releasing(house)) as office:
        await office.say("go")
        (data,) = [data for kind, data in await office.stored_events() if kind == "question:pending"]
        event = json.loads(data)
        assert [(part["name"], part["kind"]) for part in event["questions"]] == [
            ("env", "text"),
            ("count", "integer"),
            ("tell", "text"),
        ]
        assert event["questions"][0]["options"] == OPTIONS


async def test_what_is_answered_so_far_survives_a_kill_and_nobody_else_can_change_it(house: House) -> None:
    async with running(releasing(house)) as office:
        await office.say("go")
        ref, card = house.world.card()
        form = card.forms[0].data
        await office.press(ref, form, values={"env": "1", "count": "3", "tell": "all"})
        told = await office.press(ref, form, values={"count": "4"}, user="bob")
        assert told.startswith("You may not")
        await office.kill()
    async with running(house) as office:
        await office.settle()
        await office.press(ref, form, values={"count": "", "tell.other": "the night shift"})
        assert [b.label for b in house.world.cards[ref].buttons] == ["Answer…"]
        assert await office.press(ref, f"v1:{card.card_id}:c") == "Not answered yet: count."
        await office.press(ref, form, values={"count": "5"})
        await pressed(office, ref, "Confirm")
        assert answer(house) == '{"env": "staging", "count": 5, "tell": ["the night shift"]}'


async def test_a_reply_without_any_answer_says_how_to_write_one(house: House) -> None:
    async with running(releasing(house)) as office:
        await office.say("go")
        ref, card = house.world.card()
        assert "like `env: ...`" in await office.press(ref, card.forms[0].data, values={})
        assert "not one of this question's" in await office.press(ref, f"v1:{card.card_id}:0")


async def test_c051_several_questions_are_answered_in_lines(house: House) -> None:
    async with running(releasing(house)) as office:
        await office.say("go")
        await office.say("env: 2\ncount: lots\ntell: ops")
        assert "count: a whole number is needed" in house.world.texts()[-1]
        await office.say("env: 2\ncount: 7\ntell: ops, all")
        assert answer(house) == '{"env": "prod", "count": 7, "tell": ["ops", "all"]}'
        said = [t for t in house.world.texts() if t.startswith("Taken as your answer")]
        assert len(said) == 1 and "env: prod; count: 7; tell: ops, all" in said[0]


async def test_a_question_s_card_changes_nothing_of_an_answered_one(house: House) -> None:
    async with running(releasing(house)) as office:
        await office.say("go")
        ref, card = house.world.card()
        form = card.forms[0].data
        await office.press(ref, form, values={"env": "1", "count": "3", "tell": "all"})
        await pressed(office, ref, "Confirm")
        assert (await office.press(ref, form, values={"count": "9"})).startswith("Already decided")
        assert await faults(office, ref, form, count="x") == {}


# ---- answers that can be changed until they are confirmed


async def test_one_answer_can_be_changed_until_it_is_confirmed_where_that_is_asked_for(house: House) -> None:
    async with running(asking(house, confirm=True)) as office:
        await office.say("go")
        ref, card = house.world.card()
        assert [b.label for b in card.buttons] == ["Other…"]
        told = await pressed(office, ref, "prod")
        assert told == "Noted as your answer: prod. It counts when you press Confirm on the card."
        shown = house.world.cards[ref]
        assert [c.label for c in shown.choices] == ["staging", "✓ prod"]
        assert shown.summary.splitlines()[-1] == "Your answer so far: prod"
        await pressed(office, ref, "staging")
        assert [c.label for c in house.world.cards[ref].choices] == ["✓ staging", "prod"]
        form = house.world.cards[ref].forms[0]
        await office.press(ref, form.data, values={"answer": "the eu cluster"})
        shown = house.world.cards[ref]
        assert shown.summary.splitlines()[-1] == "Your answer so far: the eu cluster"
        assert shown.forms[0].fields[0].value == "the eu cluster"
        assert len(await office.pendings()) == 1 and house.world.texts() == []
        assert (await pressed(office, ref, "Confirm")).endswith("the eu cluster.")
        assert answer(house) == "the eu cluster"
        assert (await office.press(ref, button(shown, "prod"))).startswith("Already decided")


async def test_what_is_typed_for_such_a_question_is_shown_and_waits_for_the_confirmation(
    house: House,
) -> None:
    asked = asking(house, question="How many?", options=[], kind="integer", confirm=True)
    async with running(asked) as office:
        await office.say("go")
        ref, card = house.world.card()
        assert [b.label for b in card.buttons] == ["Answer…"]
        await office.say("12")
        await office.say("13")
        assert house.world.texts()[-1].startswith("Noted as your answer: 13.")
        assert house.world.cards[ref].summary.splitlines()[-1] == "Your answer so far: 13"
        assert "whole number" in await office.press(ref, card.forms[0].data, values={"answer": "many"})
        await pressed(office, ref, "Confirm")
        assert answer(house) == "13"
        assert [m.text for m in await office.log() if m.role == "user" and m.text] == ["go"]  # used once


async def test_nothing_can_be_confirmed_before_it_is_answered_nor_chosen_by_others(house: House) -> None:
    async with running(asking(house, confirm=True)) as office:
        await office.say("go")
        ref, card = house.world.card()
        confirm = button(card, "prod").rpartition(":")[0] + ":c"
        assert await office.press(ref, confirm) == "Nothing is chosen yet."
        assert "You may not" in await office.press(ref, button(card, "prod"), user="bob")
        await office.press(ref, button(card, "prod"))
        await office.kill()
    async with running(asking(house, confirm=True)) as office:
        assert house.world.cards[ref].choices[1].label == "✓ prod"
        await pressed(office, ref, "Confirm")
        assert answer(house) == "prod"


async def test_own_words_join_what_is_chosen_and_count_when_that_is_confirmed(house: House) -> None:
    async with running(asking(house, multi=True)) as office:
        await office.say("go")
        ref, card = house.world.card()
        await pressed(office, ref, "prod")
        told = await office.press(ref, card.forms[0].data, values={"answer": "the eu cluster"})
        assert told.startswith("Noted as your answer: prod, the eu cluster")
        assert house.world.cards[ref].summary.splitlines()[-1] == "Your answer so far: the eu cluster"
        await pressed(office, ref, "staging")
        await pressed(office, ref, "Confirm")
        assert answer(house) == "- staging\n- prod\n- the eu cluster"
