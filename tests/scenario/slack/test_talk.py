"""A conversation with approvals, questions and commands, over Socket Mode and over HTTP."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.platforms.slack import SlackServer
from tests.scenario.slack.house import (
    ADA,
    BOB,
    GENERAL,
    GROUP,
    HERS,
    HIS,
    QUESTIONS,
    House,
    Scene,
    running,
)


@pytest.fixture(params=["socket", "http"])
async def scene(request: pytest.FixtureRequest, house: House, server: SlackServer) -> AsyncIterator[Scene]:
    async with running(house, server, transport=request.param) as scene:
        yield scene


# ---- where one talks


async def test_a_mention_begins_a_thread_that_goes_on_without_one(scene: Scene) -> None:
    first = scene.call("hello")
    answer = await scene.sees("You said: hello")
    assert answer.thread == first.ts
    scene.say("and now?", thread=first.ts)
    assert (await scene.sees("You said: and now?")).thread == first.ts
    await scene.rest()
    assert [m.text for m in scene.house.requests[-1].messages] == ["hello", "You said: hello", "and now?"]
    assert len(scene.house.requests) == 2  # a mention comes as two events and is one message


async def test_what_is_not_meant_for_the_bot_gets_no_answer(scene: Scene) -> None:
    scene.say("lunch, anybody?")
    talk = scene.say("who broke it?", BOB)
    scene.say("not me", ADA, thread=talk.ts)  # a thread of people
    ours = scene.call("hello")
    await scene.sees("You said: hello")
    scene.say("<@U2> what do you think?", thread=ours.ts)  # to somebody else, in our thread
    scene.call("the end", thread=ours.ts)
    await scene.sees("You said: the end")
    await scene.rest()
    assert scene.texts() == ["You said: hello", "You said: the end"]


@pytest.mark.parametrize(
    ("mention", "answered"),
    [("start", ["hello", "go on"]), ("always", ["hello"]), ("never", ["no mention", "hello", "go on"])],
)
async def test_when_a_mention_is_needed_can_be_chosen(
    house: House, server: SlackServer, mention: str, answered: list[str]
) -> None:
    async with running(house, server, mention=mention) as scene:
        scene.say("no mention")
        await server.settled()
        await scene.rest()
        ours = scene.call("hello")
        await scene.sees("You said: hello")
        scene.say("go on", thread=ours.ts)
        await server.settled()
        await scene.rest()
        assert scene.texts() == [f"You said: {words}" for words in answered]


async def test_threads_of_one_channel_are_conversations_of_their_own(scene: Scene) -> None:
    one, two = scene.call("one"), scene.call("two", BOB)
    await scene.sees("You said: one", thread=one.ts)
    await scene.sees("You said: two", thread=two.ts)
    scene.say("one again", thread=one.ts)
    await scene.sees("You said: one again", thread=one.ts)
    await scene.rest()
    assert [m.text for m in scene.house.said()] == ["one", "one again"]
    assert len(await scene.gateway.store.sessions()) == 2


async def test_direct_messages_need_no_mention(scene: Scene) -> None:
    hers, his = scene.say("hello", channel=HERS), scene.say("good day", BOB, HIS)
    assert (await scene.sees("You said: hello", HERS)).thread == hers.ts
    assert (await scene.sees("You said: good day", HIS)).thread == his.ts
    await scene.rest()
    assert len(scene.texts(HERS)) == len(scene.texts(HIS)) == 1


async def test_in_a_group_conversation_the_bot_answers_when_it_is_mentioned(scene: Scene) -> None:
    scene.say("hello", channel=GROUP)
    called = scene.call("and you?", BOB, GROUP)
    assert (await scene.sees("You said: and you?", GROUP)).thread == called.ts
    await scene.rest()
    assert len(scene.texts(GROUP)) == 1


async def test_called_into_a_thread_the_agent_knows_what_was_said_there_before(scene: Scene) -> None:
    root = scene.say("the build is red", BOB)
    scene.say("since Tuesday", ADA, thread=root.ts)
    scene.call("what do you think?", thread=root.ts)
    await scene.sees("You said: Written earlier in this thread", thread=root.ts)
    (asked,) = scene.house.said()
    assert "bob: the build is red\n> ada: since Tuesday" in asked.text
    assert asked.text.endswith("what do you think?")


async def test_an_assistant_thread_is_a_conversation_with_prompts_and_a_title(scene: Scene) -> None:
    opened = scene.server.open_assistant(ADA)
    seen = await scene.until(
        lambda: scene.server.assistant(opened.channel, opened.ts).prompts, "suggested prompts"
    )
    assert seen
    scene.say("hello there", channel=opened.channel, thread=opened.ts)
    answer = await scene.sees("You said: hello there", opened.channel)
    assert answer.thread == opened.ts
    await scene.until(lambda: scene.server.assistant(opened.channel, opened.ts).title, "a title")
    await scene.rest()
    assert scene.server.status(opened.channel, opened.ts) == ""


# ---- approvals


async def test_approve_runs_the_call_once_and_the_card_keeps_the_record(scene: Scene) -> None:
    asked = scene.call("pay A-1 30")
    card = await scene.card()
    assert card.thread == asked.ts
    assert "A-1" in card.text
    assert (await scene.press(card, "Approve")).startswith("Approved by ada (slack:T1:U1)")
    await scene.sees("Result: paid 30 for A-1", thread=asked.ts)
    await scene.shows(card, "Approved by ada")
    assert card.labels == []
    await scene.rest()
    assert scene.house.paid == [{"order": "A-1", "amount": 30}]


async def test_edited_arguments_are_what_runs(scene: Scene) -> None:
    scene.call("pay A-1 30")
    card = await scene.card()
    sent = await scene.fill_in(card, "Edit", {"amount": "12.5"})
    assert sent.outcome == "closed"
    await scene.sees("Result: [ada (slack:T1:U1) approved this call with changed arguments.")
    await scene.shows(card, "Approved with changes by ada")
    assert scene.house.paid == [{"order": "A-1", "amount": 12.5}]


async def test_a_field_that_makes_no_sense_is_told_at_the_field_and_the_modal_stays(scene: Scene) -> None:
    # Slack itself lets only numbers into a number's field; what it lets through is looked at again.
    agent_args: dict[str, Any] = {"amount": "1e999"}
    scene.call("pay A-1 30")
    card = await scene.card()
    sent = await scene.fill_in(card, "Edit", agent_args)
    assert (sent.outcome, len(sent.errors)) == ("errors", 1)
    assert scene.house.paid == []
    again = await scene.server.submit_view(ADA, {"amount": "7"})
    assert again.outcome == "closed"
    await scene.sees("Result: [ada")
    assert scene.house.paid == [{"order": "A-1", "amount": 7}]


async def test_a_denial_with_feedback_runs_nothing_and_the_feedback_is_the_next_message(scene: Scene) -> None:
    scene.call("pay A-1 30")
    card = await scene.card()
    sent = await scene.fill_in(
        card, "Deny with feedback", {"What should be done instead?": "ask the customer first"}
    )
    assert sent.outcome == "closed"
    await scene.shows(card, "Denied by ada")
    await scene.sees("You said: ask the customer first")
    assert scene.house.paid == []


async def test_a_plain_denial_ends_the_turn(scene: Scene) -> None:
    scene.call("pay both")
    card = await scene.card("Deny all (2)")
    await scene.press(card, "1 Deny")
    await scene.shows(card, "another call of the same step was denied")
    assert card.text.count("Denied by ada") == 1 and card.labels == []
    await scene.until(lambda: [t for t in scene.texts() if "Stopped: " in t], "the end of the turn")
    assert scene.house.paid == []


async def test_only_who_asked_may_decide_and_others_are_told_alone(scene: Scene) -> None:
    scene.call("pay A-1 30")
    card = await scene.card()
    told = await scene.press(card, "Approve", BOB)
    assert told.startswith("You may not decide this. Who may: slack:T1:U1")
    assert (scene.house.paid, scene.whispers(ADA)) == ([], [])
    await scene.press(card, "Approve", ADA)
    await scene.sees("Result: paid 30 for A-1")


# ---- questions


async def test_a_question_is_answered_by_a_button(scene: Scene) -> None:
    scene.call("ask")
    card = await scene.card("prod")
    await scene.press(card, "prod")
    await scene.sees("Result: prod")
    await scene.shows(card, "Answered by ada")
    assert card.labels == []


async def test_several_answers_are_chosen_in_one_control_and_confirmed(scene: Scene) -> None:
    scene.call("pick")
    card = await scene.card("Confirm")
    assert await scene.press(card, "Confirm") == "Nothing is chosen yet."
    scene.server.choose(ADA, card.channel, card.ts, ["red", "blue"])
    scene.server.choose(ADA, card.channel, card.ts, ["red", "green"])
    await scene.press(card, "Confirm")
    answer = await scene.sees("Result: ")
    assert "red" in answer.text and "green" in answer.text and "blue" not in answer.text
    await scene.shows(card, "Answered by ada")


@pytest.mark.parametrize(("count", "kind"), [(8, "static_select"), (60, "static_select")])
async def test_many_answers_are_offered_in_a_select(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, count: int, kind: str
) -> None:
    options: list[Any] = [f"colour {number}" for number in range(count)]
    monkeypatch.setitem(QUESTIONS, "colours", {"question": "Which?", "options": options})
    scene.call("colours")
    card = await scene.card("colour 7")
    assert kind in str(card.blocks)
    await scene.press(card, "colour 7")
    await scene.sees("Result: colour 7")
    await scene.shows(card, "Answered by ada")
    assert card.labels == []


async def test_many_answers_of_which_several_count_are_chosen_in_a_select(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: list[Any] = [f"colour {number}" for number in range(40)]
    monkeypatch.setitem(QUESTIONS, "colours", {"question": "Which?", "options": options, "multi": True})
    scene.call("colours")
    card = await scene.card("Confirm")
    assert "multi_static_select" in str(card.blocks)
    scene.server.choose(ADA, card.channel, card.ts, ["colour 3", "colour 38"])
    await scene.press(card, "Confirm")
    answer = await scene.sees("Result: ")
    await scene.shows(card, "Answered by ada")
    assert re.findall(r"colour \d+", answer.text) == ["colour 3", "colour 38"]


async def test_other_takes_words_of_ones_own(scene: Scene) -> None:
    scene.call("ask")
    card = await scene.card("Other…")
    sent = await scene.fill_in(card, "Other…", {"Where?": "the eu cluster"})
    assert sent.outcome == "closed"
    await scene.sees("Result: the eu cluster")
    await scene.shows(card, "Answered by ada")


async def test_c051_an_answer_may_be_typed_into_the_thread(scene: Scene) -> None:
    asked = scene.call("ask")
    card = await scene.card("Other…")
    scene.say("2", thread=asked.ts)
    await scene.sees("Result: prod")
    await scene.shows(card, "Answered by ada")


async def test_an_empty_answer_is_told_at_its_field(scene: Scene) -> None:
    scene.call("open")
    card = await scene.card("Answer…")
    sent = await scene.fill_in(card, "Answer…", {"Which name?": "   "})
    assert sent.outcome == "errors"
    again = await scene.server.submit_view(ADA, {"Which name?": "Jo"})
    assert again.outcome == "closed"
    await scene.sees("Result: Jo")


# ---- the home


async def test_the_home_lists_what_waits_for_the_person_who_looks_and_its_buttons_work(scene: Scene) -> None:
    scene.server.open_home(BOB)
    await scene.until(lambda: scene.server.home(BOB), "a home")
    asked = scene.call("pay A-1 30")
    card = await scene.card()
    scene.server.open_home(ADA)
    await scene.until(lambda: "A-1" in str(scene.server.home(ADA)), "the request in the home")
    scene.server.open_home(BOB)
    await scene.server.settled()
    assert "A-1" not in str(scene.server.home(BOB))
    await scene.server.press_home(ADA, "Approve").taken()
    await scene.sees("Result: paid 30 for A-1", thread=asked.ts)
    await scene.shows(card, "Approved by ada")
    await scene.until(lambda: "Approved by ada" in str(scene.server.home(ADA)), "what became of it")
    assert "v1:" not in str(scene.server.home(ADA))  # nothing is left to press
    await scene.rest()
    assert scene.house.paid == [{"order": "A-1", "amount": 30}]


# ---- commands


async def test_a_slash_command_is_answered_for_its_author_alone(scene: Scene) -> None:
    assert (await scene.command("status")).startswith("Nothing has been said here yet.")
    assert "Nothing waits" in await scene.command("pending")
    assert "new" in await scene.command("help")
    assert "help" in await scene.command("nonsense")
    assert scene.texts(GENERAL) == []


async def test_a_request_is_decided_by_its_code_in_a_slash_command(scene: Scene) -> None:
    scene.call("pay A-1 30")
    card = await scene.card()
    code = card.text.rsplit("Code: ", 1)[1].split()[0]
    assert (await scene.command(f"approve {code.upper()}")).startswith("Approved by ada")
    await scene.sees("Result: paid 30 for A-1")
    await scene.shows(card, "Approved by ada")


@pytest.mark.parametrize("sign", ["/", "!"])
async def test_commands_are_plain_words_in_threads(scene: Scene, sign: str) -> None:
    asked = scene.call("work")
    await scene.house.at_work.wait()
    scene.call(f"{sign}stop", thread=asked.ts)
    await scene.sees("Stopped", thread=asked.ts)
    scene.call(f"{sign}status", thread=asked.ts)
    await scene.sees("Agent assistant", thread=asked.ts)
    scene.say("hello", thread=asked.ts)
    await scene.sees("You said: hello", thread=asked.ts)


async def test_c046_after_new_the_old_card_is_closed_and_its_buttons_do_nothing(scene: Scene) -> None:
    asked = scene.call("pay A-1 30")
    card = await scene.card()
    late = scene.server.press  # the button as it was drawn
    scene.call("/new", thread=asked.ts)
    await scene.sees("A fresh conversation begins here. 1 open request(s) were closed.")
    await scene.shows(card, "Closed by /new")
    assert card.labels == []
    with pytest.raises(AssertionError):
        late(ADA, card.channel, card.ts, "Approve")
    assert scene.house.paid == []


async def test_the_shortcut_asks_the_agent_about_a_message(scene: Scene) -> None:
    said = scene.say("disk is at 97 %", BOB)
    await scene.server.shortcut(ADA, GENERAL, said.ts).taken()
    view = await scene.server.wait_view(ADA)
    label = next(block["label"]["text"] for block in view["blocks"] if block["type"] == "input")
    assert (await scene.server.submit_view(ADA, {label: "is that bad?"})).outcome == "closed"
    answer = await scene.sees("You said: ", thread=said.ts)
    assert "disk is at 97 %" in answer.text and "is that bad?" in answer.text
