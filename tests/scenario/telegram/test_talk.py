"""A conversation with approvals, questions and commands; by polling and by webhook."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.platforms.telegram import TelegramServer
from tests.scenario.telegram.house import ADA, BOB, House, Scene, labels, running


@pytest.fixture(params=["polling", "webhook"])
async def scene(request: pytest.FixtureRequest, house: House, server: TelegramServer) -> AsyncIterator[Scene]:
    async with running(house, server, mode=request.param) as scene:
        yield scene


async def test_a_message_gets_one_answer_and_the_next_one_knows_of_it(scene: Scene) -> None:
    scene.say("hello")
    await scene.sees("You said: hello")
    scene.say("and now?")
    await scene.sees("You said: and now?")
    await scene.rest()
    assert scene.texts() == ["You said: hello", "You said: and now?"]
    assert [m.text for m in scene.house.requests[-1].messages] == ["hello", "You said: hello", "and now?"]


async def test_approve_runs_the_call_once_and_the_card_keeps_the_record(scene: Scene) -> None:
    scene.say("pay A-1 30")
    card = await scene.card()
    assert "A-1" in card["text"]
    click = await scene.press(card, "Approve")
    assert click.text.startswith("Approved by Ada (telegram:")
    await scene.sees("Result: paid 30 for A-1")
    decided = await scene.shows(card, "Approved by Ada")
    assert labels(decided) == []
    again = scene.server.press(card, card["reply_markup"]["inline_keyboard"][0][0]["callback_data"], ADA)
    await scene.until(lambda: again.answered, "an answer to the second click")
    assert again.text.startswith("Already decided. Approved by Ada")
    assert scene.house.paid == [{"order": "A-1", "amount": 30}]


async def test_edited_arguments_are_what_runs(scene: Scene) -> None:
    scene.say("pay A-1 30")
    card = await scene.card()
    await scene.press(card, "Edit")
    await scene.reply("amount: 12.5")
    await scene.sees("Result: [Ada (telegram:777:4242) approved this call with changed arguments.")
    decided = await scene.shows(card, "Approved with changes by Ada")
    assert "amount:\n12.5" in decided["text"]
    assert scene.house.paid == [{"order": "A-1", "amount": 12.5}]


async def test_an_edit_that_makes_no_sense_says_which_argument_and_leaves_the_card_open(scene: Scene) -> None:
    scene.say("pay A-1 30")
    card = await scene.card()
    await scene.press(card, "Edit")
    await scene.reply("amount: a lot")
    answer = await scene.sees("amount: ")
    assert answer["reply_to_message"]["text"] == "amount: a lot"
    await scene.press(card, "Approve")
    await scene.sees("Result: paid 30 for A-1")


async def test_a_denial_with_feedback_runs_nothing_and_the_feedback_is_the_next_message(scene: Scene) -> None:
    scene.say("pay A-1 30")
    card = await scene.card()
    await scene.press(card, "Deny with feedback")
    await scene.reply("ask the customer first")
    await scene.shows(card, "Denied by Ada")
    await scene.sees("You said: ask the customer first")
    assert scene.house.paid == []
    assert len(scene.server.calls("sendMessage")) == len(scene.server.from_bot(ADA))


async def test_a_plain_denial_ends_the_turn(scene: Scene) -> None:
    scene.say("pay both")
    card = await scene.card("1 Deny")
    await scene.press(card, "1 Deny")
    now = await scene.shows(card, "another call of the same step was denied")
    assert now["text"].count("Denied by Ada") == 1 and labels(now) == []
    await scene.sees("Stopped: ")
    assert scene.house.paid == []


async def test_several_answers_are_toggled_in_place_and_confirmed(scene: Scene) -> None:
    scene.say("pick")
    card = await scene.card("Confirm")
    assert labels(card)[:3] == ["☐ red", "☐ green", "☐ blue"]
    nothing = await scene.press(card, "Confirm")
    assert nothing.text == "Nothing is chosen yet."
    for sign, colour in (("☐", "red"), ("☐", "blue"), ("☐", "green"), ("☑", "blue")):
        now = await scene.until(lambda: scene.cards(f"{sign} {colour}"), f"{sign} {colour}")  # noqa: B023
        await scene.press(now[0], f"{sign} {colour}")
    done = await scene.until(lambda: scene.cards("☑ green"), "green is chosen")
    await scene.until(lambda: scene.cards("☐ blue"), "blue is not chosen any more")
    await scene.press(done[0], "Confirm")
    await scene.sees("Result: - red\n• green")
    assert len([m for m in scene.server.from_bot(ADA) if "Which ones?" in m["text"]]) == 1
    assert labels(await scene.shows(card, "Answered by Ada")) == []


async def test_other_takes_words_of_ones_own(scene: Scene) -> None:
    scene.say("ask")
    card = await scene.card("Other…")
    await scene.press(card, "Other…")
    await scene.reply("the eu cluster")
    await scene.sees("Result: the eu cluster")
    await scene.shows(card, "Answered by Ada")


@pytest.mark.parametrize(("typed", "answer"), [("2", "prod"), ("Prod", "prod"), ("use the eu", "use the eu")])
async def test_c051_an_answer_may_be_typed(scene: Scene, typed: str, answer: str) -> None:
    scene.say("ask")
    card = await scene.card("Other…")
    scene.say(typed)
    await scene.sees(f"Taken as your answer: {answer}.")
    await scene.sees(f"Result: {answer}")
    await scene.shows(card, "Answered by Ada")
    await scene.rest()
    assert [m.text for m in scene.house.said()] == ["ask"]


async def test_c051_words_that_are_no_answer_end_a_closed_question_and_are_the_next_turn(
    scene: Scene,
) -> None:
    scene.say("ask fixed")
    card = await scene.card("prod")
    scene.say("what time is it?")
    await scene.sees("You said: what time is it?")
    assert labels(await scene.shows(card, "Closed by")) == []
    assert [m.text for m in scene.house.said()] == ["ask fixed", "what time is it?"]


async def test_c051_words_never_approve_and_commands_never_answer(scene: Scene) -> None:
    scene.say("pay A-1 30")
    card = await scene.card()
    scene.say("yes, approve")
    await scene.sees("Noted. Your message is kept")
    scene.say("/status")
    await scene.sees("Agent assistant: waiting for somebody's decision.")
    assert scene.house.paid == []
    await scene.press(card, "Approve")
    await scene.sees("You said: yes, approve")
    assert len(scene.house.paid) == 1


async def test_the_commands_answer(scene: Scene) -> None:
    scene.say("/start")
    await scene.sees("Write to me as to a person.")
    scene.say("/status")
    await scene.sees("Nothing has been said here yet.")
    scene.say("/pending")
    await scene.sees("Nothing waits for a decision here.")
    scene.say("/stop")
    await scene.sees("There is nothing to stop.")
    scene.say("/pair abc")
    await scene.sees("Only those who run me may let people in.")
    scene.say("hello")
    await scene.sees("You said: hello")
    scene.say("/new")
    await scene.sees("A fresh conversation begins here.")
    scene.say("who am I?")
    await scene.sees("You said: who am I?")
    assert [m.text for m in scene.house.said()] == ["who am I?"]


async def test_approve_and_deny_work_by_code(scene: Scene) -> None:
    scene.say("pay A-1 30")
    card = await scene.card()
    code = card["text"].rsplit("Code: ", 1)[1].split()[0]
    scene.say(f"/approve {code.upper()}")
    await scene.sees("Approved by Ada")
    await scene.sees("Result: paid 30 for A-1")
    scene.say("pay A-2 40")
    await scene.until(lambda: any("A-2" in c["text"] for c in scene.cards("Approve")), "the second card")
    scene.say("/deny")
    await scene.sees("Denied by Ada")
    await scene.rest()
    assert scene.house.paid == [{"order": "A-1", "amount": 30}]
    assert scene.cards("Approve") == []


async def test_c041_a_bare_approve_with_two_requests_lists_them_and_changes_nothing(scene: Scene) -> None:
    scene.say("pay both")
    card = await scene.card("Approve all (2)")
    before = labels(card)
    scene.say("/approve")
    await scene.sees("More than one request is open.")
    await scene.rest()
    assert scene.house.paid == []
    assert labels(scene.server.chats[ADA].messages[card["message_id"]]) == before
    await scene.press(card, "2 Approve")
    now = labels(await scene.shows(card, "Approved by Ada"))
    assert "1 Approve" in now and "2 Approve" not in now
    await scene.press(card, "1 Approve")
    await scene.sees("Result: paid 10 for A-1; paid 10 for A-2")
    assert [payment["order"] for payment in scene.house.paid] == ["A-2", "A-1"]


async def test_c046_after_new_the_old_card_is_closed_and_its_buttons_do_nothing(scene: Scene) -> None:
    scene.say("pay A-1 30")
    card = await scene.card()
    scene.say("/new")
    await scene.sees("A fresh conversation begins here. 1 open request(s) were closed.")
    assert labels(await scene.shows(card, "Closed by /new")) == []
    late = scene.server.press(card, card["reply_markup"]["inline_keyboard"][0][0]["callback_data"], ADA)
    await scene.until(lambda: late.answered, "an answer")
    assert "Closed by /new" in late.text
    assert scene.house.paid == []


async def test_stop_ends_what_runs_and_the_next_message_has_its_turn(scene: Scene) -> None:
    scene.say("work")
    await scene.house.at_work.wait()
    scene.say("/stop")
    await scene.sees("Stopped")
    scene.say("hello")
    await scene.sees("You said: hello")


async def test_two_private_chats_do_not_see_each_other(scene: Scene) -> None:
    scene.say("pay A-1 30")
    card = await scene.card()
    scene.say("hello", BOB)
    await scene.sees("You said: hello", BOB)
    await scene.press(card, "Approve")
    await scene.sees("Result: paid 30 for A-1")
    assert scene.texts(BOB) == ["You said: hello"]


async def test_an_edit_changes_a_message_that_waits_and_only_such_a_one(scene: Scene) -> None:
    """As C032 asks: the text of what waits is replaced; later it is recorded, and no turn begins."""
    first = scene.say("work")["message"]["message_id"]
    await scene.house.at_work.wait()
    second = scene.say("helo")["message"]["message_id"]
    scene.server.edit(ADA, second, "hello")
    scene.server.edit(ADA, first, "work harder")
    await scene.until(lambda: not scene.server.bots[next(iter(scene.server.bots))].updates, "taken in")
    scene.house.let_go.set()
    await scene.sees("You said: hello")
    scene.server.edit(ADA, second, "hello again")
    await scene.rest()
    assert scene.texts() == ["Result: worked", "You said: hello"]
    lines = [line for line in await scene.gateway.store.audit_lines() if line.kind == "edited too late"]
    assert [line.body["text"] for line in lines] == ["hello again", "work harder"]


async def test_a_reply_with_a_quote_tells_the_model_what_is_meant(scene: Scene) -> None:
    scene.say("hello")
    answer = await scene.sees("You said: hello")
    scene.say("what is this?", reply_to=answer["message_id"], quote={"text": "You said", "position": 0})
    await scene.sees("You said: > You said")
    assert scene.house.said()[-1].text == "> You said\n\nwhat is this?"
