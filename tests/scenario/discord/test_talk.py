"""A conversation with approvals, questions and forms, in every kind of place."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.platforms.discord.server import DiscordServer
from tests.scenario.discord.house import (
    ADA,
    BOB,
    BOT,
    FORUM,
    GENERAL,
    ME,
    QUESTIONS,
    House,
    Scene,
    running,
)


@pytest.fixture
async def scene(house: House, server: DiscordServer) -> AsyncIterator[Scene]:
    async with running(house, server) as scene:
        yield scene


# ---- where one talks


async def test_a_mention_opens_a_thread_on_its_message_and_the_session_lives_there(scene: Scene) -> None:
    first = scene.call("hello")
    await scene.sees("You said: hello", first)
    assert scene.server.thread_of(GENERAL, first) == first
    assert scene.server.channels[first].name == "hello"
    scene.say("and now?", place=first)
    await scene.sees("You said: and now?", first)
    await scene.rest()
    assert [m.text for m in scene.house.requests[-1].messages] == ["hello", "You said: hello", "and now?"]
    assert scene.texts(GENERAL) == []
    assert len(await scene.gateway.store.sessions()) == 1


async def test_the_bots_managed_role_calls_it_as_well(scene: Scene) -> None:
    role = scene.server.guilds[scene.server.channels[GENERAL].guild].members[BOT].roles[-1]
    said = scene.say(f"<@&{role}> hello")
    await scene.sees("You said: hello", said)


async def test_what_is_not_meant_for_the_bot_gets_no_answer(scene: Scene) -> None:
    scene.say("lunch, anybody?")
    scene.say("not me", BOB, reply_to=scene.say("who broke it?"))
    talk = scene.server.thread(BOB, GENERAL, "a thread of people")
    scene.say("nobody calls the bot here", BOB, talk)
    ours = scene.call("hello")
    await scene.sees("You said: hello", ours)
    scene.say(f"<@{BOB}> what do you think?", place=ours)
    his = scene.say("a word of mine", BOB, ours)
    await scene.sees("You said: a word of mine", ours)
    scene.say("I think so too", ADA, ours, reply_to=his)
    scene.call("the end", place=ours)
    await scene.sees("You said: the end", ours)
    await scene.rest()
    assert scene.texts(ours) == ["You said: hello", "You said: a word of mine", "You said: the end"]
    assert (scene.texts(GENERAL), scene.texts(talk)) == ([], [])


@pytest.mark.parametrize(
    ("mention", "answered"),
    [("start", ["hello", "go on"]), ("always", ["hello"]), ("never", ["hello", "go on"])],
)
async def test_when_a_mention_is_needed_can_be_chosen(
    house: House, server: DiscordServer, mention: str, answered: list[str]
) -> None:
    async with running(house, server, mention=mention) as scene:
        bare = scene.say("no mention")
        ours = scene.call("hello")
        await scene.sees("You said: hello", ours)
        scene.say("go on", place=ours)
        last = scene.call("the end")
        await scene.sees("You said: the end", last)
        await scene.rest()
        assert scene.texts(ours) == [f"You said: {words}" for words in answered]
        assert scene.texts(bare) == (["You said: no mention"] if mention == "never" else [])


async def test_a_reply_to_the_bot_needs_no_mention(house: House, server: DiscordServer) -> None:
    async with running(house, server, threads=False) as scene:
        scene.call("hello")
        answer = await scene.sees("You said: hello")
        scene.say("and you?", reply_to=answer.id, ping=False)
        assert (await scene.sees("You said: > You said: hello")).text.endswith("and you?")


async def test_without_threads_the_answer_comes_in_place(house: House, server: DiscordServer) -> None:
    async with running(house, server, threads=False) as scene:
        scene.call("hello")
        await scene.sees("You said: hello")
        scene.call("and now?", BOB)
        await scene.sees("You said: and now?")
        await scene.rest()
        assert server.threads(GENERAL) == []
        assert len(await scene.gateway.store.sessions()) == 1


async def test_threads_of_one_channel_are_conversations_of_their_own(scene: Scene) -> None:
    one, two = scene.call("one"), scene.call("two", BOB)
    await scene.sees("You said: one", one)
    await scene.sees("You said: two", two)
    scene.say("one again", place=one)
    await scene.sees("You said: one again", one)
    await scene.rest()
    assert [m.text for m in scene.house.said()] == ["one", "one again"]
    assert len(await scene.gateway.store.sessions()) == 2


async def test_direct_messages_need_no_mention(scene: Scene) -> None:
    scene.say("hello", ADA, ADA)
    scene.say("good day", BOB, BOB)
    await scene.sees("You said: hello", ADA)
    await scene.sees("You said: good day", BOB)
    await scene.rest()
    assert len(scene.texts(ADA)) == len(scene.texts(BOB)) == 1


async def test_a_forum_post_is_a_conversation_when_it_calls_the_bot(scene: Scene) -> None:
    silent = scene.server.post(BOB, FORUM, "Printer", "it is on fire")
    post = scene.server.post(ADA, FORUM, "Build", f"{ME} it is red")
    await scene.sees("You said: it is red", post)
    scene.say("since Tuesday", place=post)
    await scene.sees("You said: since Tuesday", post)
    await scene.rest()
    assert scene.texts(silent) == []


async def test_called_into_a_thread_the_agent_knows_what_was_said_there_before(scene: Scene) -> None:
    root = scene.say("the build is red", BOB)
    talk = scene.server.thread(BOB, GENERAL, "build", root)
    scene.say("since Tuesday", ADA, talk)
    scene.call("what do you think?", place=talk)
    await scene.sees("You said: Written earlier in this thread", talk)
    (asked,) = scene.house.said()
    assert "Bob: the build is red\n> Ada: since Tuesday" in asked.text
    assert asked.text.endswith("what do you think?")


# ---- approvals


async def test_approve_runs_the_call_once_and_the_card_keeps_the_record(scene: Scene) -> None:
    asked = scene.call("pay A-1 30")
    card = await scene.card(place=asked)
    assert "A-1" in card.text
    assert (await scene.press(card, "Approve")).startswith(f"Approved by Ada (discord:{ADA})")
    await scene.sees("Result: paid 30 for A-1", asked)
    await scene.shows(card, "Approved by Ada")
    assert card.labels == []
    await scene.rest()
    assert scene.house.paid == [{"order": "A-1", "amount": 30}]


@pytest.mark.parametrize("place", [ADA, "forum"])
async def test_a_request_can_be_decided_in_private_and_in_a_forum(scene: Scene, place: str) -> None:
    if place == "forum":
        place = scene.server.post(ADA, FORUM, "Payment", f"{ME} pay A-1 30")
    else:
        scene.say("pay A-1 30", ADA, ADA)
    card = await scene.card(place=place)
    await scene.press(card, "Approve")
    await scene.sees("Result: paid 30 for A-1", place)
    await scene.shows(card, "Approved by Ada")


async def test_edited_arguments_are_what_runs(scene: Scene) -> None:
    asked = scene.call("pay A-1 30")
    card = await scene.card(place=asked)
    sent = await scene.fill_in(card, "Edit", {"amount": "12.5"})
    assert sent.acknowledged
    await scene.sees(f"Result: [Ada (discord:{ADA}) approved this call with changed arguments.", asked)
    await scene.shows(card, "Approved with changes by Ada")
    assert scene.house.paid == [{"order": "A-1", "amount": 12.5}]


async def test_a_field_that_makes_no_sense_is_told_and_what_was_typed_is_there_again(scene: Scene) -> None:
    asked = scene.call("pay A-1 30")
    card = await scene.card(place=asked)
    sent = await scene.fill_in(card, "Edit", {"amount": "a lot", "order": "A-2"})
    (message,) = await scene.until(lambda: [m for m in sent.messages if m["components"]], "what is wrong")
    assert "amount" in scene.server.shown(asked, message["id"], ADA)
    assert scene.house.paid == []
    (label,) = scene.server.labels(asked, message["id"], ADA)
    again = await scene.server.press(ADA, asked, message["id"], label).taken()
    await scene.server.submit(again, {"amount": "7"}).taken()
    await scene.sees(f"Result: [Ada (discord:{ADA})", asked)
    await scene.shows(card, "Approved with changes by Ada")
    assert scene.house.paid == [{"order": "A-2", "amount": 7}]


async def test_a_denial_with_feedback_runs_nothing_and_the_feedback_is_the_next_message(scene: Scene) -> None:
    asked = scene.call("pay A-1 30")
    card = await scene.card(place=asked)
    words = {"What should be done instead?": "ask the customer first"}
    assert (await scene.fill_in(card, "Deny with feedback", words)).acknowledged
    await scene.shows(card, "Denied by Ada")
    await scene.sees("You said: ask the customer first", asked)
    assert scene.house.paid == []


async def test_a_plain_denial_ends_the_turn(scene: Scene) -> None:
    asked = scene.call("pay A-1 30")
    card = await scene.card("Deny", asked)
    await scene.press(card, "Deny")
    await scene.shows(card, "Denied by Ada")
    await scene.until(lambda: [t for t in scene.texts(asked) if "Stopped: " in t], "the end of the turn")
    assert scene.house.paid == []


async def test_only_who_asked_may_decide_and_others_are_told_alone(scene: Scene) -> None:
    asked = scene.call("pay A-1 30")
    card = await scene.card(place=asked)
    told = await scene.press(card, "Approve", BOB)
    assert told.startswith(f"You may not decide this. Who may: discord:{ADA}")
    assert (scene.house.paid, scene.whispers(ADA)) == ([], [])
    await scene.press(card, "Approve", ADA)
    await scene.sees("Result: paid 30 for A-1", asked)


# ---- questions


async def test_a_question_is_answered_by_a_button(scene: Scene) -> None:
    asked = scene.call("ask")
    card = await scene.card("prod", asked)
    await scene.press(card, "prod")
    await scene.sees("Result: prod", asked)
    await scene.shows(card, "Answered by Ada")
    assert card.labels == []


async def test_several_answers_are_chosen_in_one_control_and_confirmed(scene: Scene) -> None:
    asked = scene.call("pick")
    card = await scene.card("Confirm", asked)
    assert await scene.press(card, "Confirm") == "Nothing is chosen yet."
    await scene.choose(card, ["red", "blue"])
    await scene.until(lambda: chosen_in(scene, card) == ["red", "blue"], "the card with both")
    await scene.choose(card, ["red", "green"])
    await scene.until(lambda: chosen_in(scene, card) == ["red", "green"], "the card with the others")
    await scene.press(card, "Confirm")
    answer = await scene.sees("Result: ", asked)
    assert "red" in answer.text and "green" in answer.text and "blue" not in answer.text
    await scene.shows(card, "Answered by Ada")


def chosen_in(scene: Scene, post: Any) -> list[str]:
    """The options that a card's select shows as chosen."""
    found: list[str] = []

    def walk(components: list[Any]) -> None:
        for component in components:
            found.extend(o["label"] for o in component.get("options", ()) if o.get("default"))
            walk(component.get("components", []))

    walk(post.message["components"])
    return found


@pytest.mark.parametrize("count", [8, 24])
async def test_many_answers_are_offered_in_a_select(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    options: list[Any] = [f"colour {number}" for number in range(count)]
    monkeypatch.setitem(QUESTIONS, "colours", {"question": "Which?", "options": options})
    asked = scene.call("colours")
    card = await scene.card("colour 7", asked)
    await scene.choose(card, ["colour 7"])
    await scene.sees("Result: colour 7", asked)
    await scene.shows(card, "Answered by Ada")
    assert card.labels == []


async def test_more_answers_than_a_select_holds_are_on_pages(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: list[Any] = [f"colour {number}" for number in range(60)]
    monkeypatch.setitem(QUESTIONS, "colours", {"question": "Which?", "options": options})
    asked = scene.call("colours")
    card = await scene.card("colour 7", asked)
    assert "colour 30" not in card.labels
    for label in ("Next ›", "Next ›", "‹ Previous"):
        turned = await scene.server.press(ADA, asked, card.id, label).taken()
        assert turned.response == 7  # the message itself is changed
    assert "colour 30" in card.labels
    await scene.choose(card, ["colour 30"])
    await scene.sees("Result: colour 30", asked)
    await scene.shows(card, "Answered by Ada")


async def test_several_answers_on_several_pages_are_one_answer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: list[Any] = [f"colour {number}" for number in range(40)]
    monkeypatch.setitem(QUESTIONS, "colours", {"question": "Which?", "options": options, "multi": True})
    asked = scene.call("colours")
    card = await scene.card("Confirm", asked)
    await scene.choose(card, ["colour 3"])
    await scene.until(lambda: chosen_in(scene, card) == ["colour 3"], "the choice")
    await scene.server.press(ADA, asked, card.id, "Next ›").taken()
    await scene.choose(card, ["colour 38", "colour 39"])
    await scene.shows(card, "Chosen so far (3)")
    await scene.press(card, "Confirm")
    answer = await scene.sees("Result: ", asked)
    await scene.shows(card, "Answered by Ada")
    assert re.findall(r"colour \d+", answer.text) == ["colour 3", "colour 38", "colour 39"]


async def test_other_takes_words_of_ones_own(scene: Scene) -> None:
    asked = scene.call("ask")
    card = await scene.card("Other…", asked)
    assert (await scene.fill_in(card, "Other…", {"Where?": "the eu cluster"})).acknowledged
    await scene.sees("Result: the eu cluster", asked)
    await scene.shows(card, "Answered by Ada")


async def test_c051_an_answer_may_be_typed_into_the_thread(scene: Scene) -> None:
    asked = scene.call("ask")
    card = await scene.card("Other…", asked)
    scene.say("2", place=asked)
    await scene.sees("Result: prod", asked)
    await scene.shows(card, "Answered by Ada")
