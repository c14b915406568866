"""Groups, topics, comments, and conversations that change under our hands."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest

from tests.clock import FakeClock
from tests.platforms.telegram import Json, TelegramServer
from tests.scenario.telegram.house import ADA, BOB, EVE, FORUM, GROUP, House, Scene, labels, running

NEW_GROUP = -100999


@pytest.fixture
async def scene(house: House, server: TelegramServer) -> AsyncIterator[Scene]:
    async with running(house, server) as scene:
        yield scene


def data(card: Json, label: str) -> str:
    """What the button with this label carries."""
    rows = card["reply_markup"]["inline_keyboard"]
    return next(str(key["callback_data"]) for row in rows for key in row if key["text"] == label)


# ---- groups


async def test_a_group_is_one_conversation_in_which_everybody_keeps_their_name(scene: Scene) -> None:
    first = scene.call("hello")["message"]
    answer = await scene.sees("You said: hello", GROUP)
    assert answer["reply_to_message"]["message_id"] == first["message_id"]
    scene.say("nobody asked you", BOB, GROUP)
    scene.call("and me?", BOB)
    await scene.sees("You said: and me?", GROUP)
    await scene.rest()
    assert [(m.author, m.text) for m in scene.house.said()] == [("Ada", "hello"), ("Bob", "and me?")]
    assert len(scene.texts(GROUP)) == 2


async def test_c044_in_a_group_only_who_asked_may_decide(scene: Scene) -> None:
    scene.call("pay A-1 30")
    card = await scene.card(chat=GROUP)
    for user in (BOB, EVE):  # one who may talk, one who may not
        click = await scene.press(card, "Approve", user)
        assert click.text.startswith("You may not decide this. Who may: telegram:777:4242")
    assert scene.house.paid == []
    await scene.press(card, "Approve", ADA)
    await scene.sees("Result: paid 30 for A-1", GROUP)


async def test_c044_approvers_and_administrators_decide_where_the_rule_says_so(
    house: House, server: TelegramServer
) -> None:
    agent = house.agent(rule={"approvers": ("telegram:admins",)})
    async with running(house, server, agent=agent) as scene:
        scene.call("pay A-1 30")
        card = await scene.card(chat=GROUP)
        assert (await scene.press(card, "Approve", ADA)).text.startswith("You may not decide this.")
        await scene.press(card, "Approve", BOB)
        await scene.shows(card, "Approved by Bob (telegram:777:4343)")
        await scene.sees("Result: paid 30 for A-1", GROUP)


async def test_c086_strangers_in_a_group_get_no_word_and_no_turn(scene: Scene) -> None:
    scene.server.user(222, "ada", username="ada")
    scene.server.chats[GROUP].members[222] = "member"
    scene.call("let me in", 222)
    scene.call("/status", EVE)
    scene.call("hello")
    await scene.sees("You said: hello", GROUP)
    await scene.rest()
    assert scene.texts(GROUP) == ["You said: hello"]


async def test_c036_bots_and_our_own_messages_start_no_turn(scene: Scene) -> None:
    scene.server.user(999, "Other", is_bot=True, username="other_bot")
    scene.call("hello")
    answer = await scene.sees("You said: hello", GROUP)
    scene.server.push({"message": answer})
    scene.call("and what do you say?", 999)
    scene.say("indeed", 999, GROUP, reply_to=answer["message_id"])
    await scene.rest()
    assert scene.texts(GROUP) == ["You said: hello"]
    assert len(scene.house.requests) == 1


async def test_what_is_written_in_the_name_of_a_channel_is_not_heard_and_comments_are(scene: Scene) -> None:
    """A channel's post comes into its linked group by itself; a comment is a reply to it."""
    channel = {"id": -100777, "type": "channel", "title": "News"}
    scene.server.user(777000, "Telegram", started=False)
    post = scene.say("@gate_bot news", 777000, GROUP, sender_chat=channel, is_automatic_forward=True)
    comment = scene.call("what is new?", reply_to=post["message"]["message_id"], message_thread_id=1)
    answer = await scene.sees("You said: > @", GROUP)
    await scene.rest()
    assert answer["reply_to_message"]["message_id"] == comment["message"]["message_id"]
    assert len(scene.texts(GROUP)) == 1


# ---- topics


async def test_each_topic_is_a_conversation_of_its_own_and_so_is_the_general_one(scene: Scene) -> None:
    first, second = scene.server.topic(FORUM), scene.server.topic(FORUM)
    for topic, words in ((first, "one"), (second, "two"), (None, "general")):
        scene.call(words, chat=FORUM, topic=topic)
        answer = await scene.sees(f"You said: {words}", FORUM)
        assert answer.get("message_thread_id") == topic
    scene.call("one again", chat=FORUM, topic=first)
    await scene.sees("You said: one again", FORUM)
    await scene.rest()
    assert [m.text for m in scene.house.said()] == ["one", "one again"]
    assert len(await scene.gateway.store.sessions()) == 3


async def test_a_card_of_a_topic_appears_there_and_is_decided_there(scene: Scene) -> None:
    topic = scene.server.topic(FORUM)
    scene.call("pay A-1 30", chat=FORUM, topic=topic)
    card = await scene.card(chat=FORUM)
    assert card["message_thread_id"] == topic
    await scene.press(card, "Approve")
    answer = await scene.sees("Result: paid 30", FORUM)
    assert answer["message_thread_id"] == topic


@pytest.mark.parametrize("state", ["closed", "deleted"])
async def test_an_answer_into_a_topic_that_is_gone_is_given_up_and_the_others_go_on(
    scene: Scene, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic, other = scene.server.topic(FORUM), scene.server.topic(FORUM)
    scene.call("work", chat=FORUM, topic=topic)
    await scene.house.at_work.wait()
    scene.server.chats[FORUM].topics[topic] = state
    scene.house.let_go.set()
    scene.call("hello", chat=FORUM, topic=other)
    await scene.sees("You said: hello", FORUM)
    await scene.rest()
    given_up = [r.getMessage() for r in caplog.records if "given up" in r.getMessage()]
    assert len(given_up) == 1
    assert scene.texts(FORUM) == ["You said: hello"]


# ---- conversations that end and come back


async def test_blocked_in_the_middle_of_a_turn_gives_the_answer_up_with_one_line(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.say("work")
    await scene.house.at_work.wait()
    scene.server.block(ADA)
    scene.house.let_go.set()
    scene.say("hello", BOB)
    await scene.sees("You said: hello", BOB)
    await scene.rest()
    given_up = [r.getMessage() for r in caplog.records if "given up" in r.getMessage()]
    assert len(given_up) == 1
    assert "bot was blocked by the user" in given_up[0]
    scene.server.unblock(ADA)
    scene.say("and now?")
    await scene.sees("You said: and now?")


async def test_a_request_whose_card_was_given_up_is_shown_when_the_person_is_back(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server) as scene:
        async with server.held("getUpdates"):  # blocked after writing, before we answer
            scene.say("pay A-1 30")
            server.block(ADA)
        await scene.until(lambda: house.requests, "the turn")
        await scene.rest()
        assert scene.cards("Approve") == []
        server.unblock(ADA)
        card = await scene.card()
        await scene.press(card, "Approve")
        await scene.sees("Result: paid 30 for A-1")
        await scene.shows(card, "Approved by Ada")


async def test_a_card_for_another_group_is_shown_there_when_the_bot_is_let_in_again(
    house: House, server: TelegramServer
) -> None:
    agent = house.agent(rule={"notify": (f"telegram:{GROUP}",), "approvers": (f"telegram:{BOB}",)})
    async with running(house, server, agent=agent) as scene:
        server.kick(GROUP)
        scene.say("pay A-1 30")
        mine = await scene.card()
        await scene.rest()
        assert (await scene.press(mine, "Approve")).text.startswith("You may not decide this.")
        server.invite(GROUP)
        theirs = await scene.card(chat=GROUP)
        await scene.press(theirs, "Approve", BOB)
        await scene.sees("Result: paid 30 for A-1")
        await scene.shows(mine, "Approved by Bob")
        await scene.shows(theirs, "Approved by Bob")


async def test_thrown_out_of_a_group_and_let_in_again(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.call("work")
    await scene.house.at_work.wait()
    scene.server.kick(GROUP)
    scene.house.let_go.set()
    await scene.rest()
    assert "bot was kicked from the supergroup chat" in caplog.text
    scene.server.invite(GROUP)
    scene.call("hello")
    await scene.sees("You said: hello", GROUP)


# ---- groups that become supergroups


async def test_an_answer_follows_a_group_that_moved_while_the_turn_ran(scene: Scene) -> None:
    """Nobody has told us: the refusal does."""
    scene.call("work")
    await scene.house.at_work.wait()
    scene.server.migrate(GROUP, NEW_GROUP, told=False)
    scene.house.let_go.set()
    await scene.sees("Result: worked", NEW_GROUP)
    scene.call("do you remember?", chat=NEW_GROUP)
    await scene.sees("You said: do you remember?", NEW_GROUP)
    assert [m.text for m in scene.house.said()] == ["work", "do you remember?"]


@pytest.mark.parametrize("told", [True, False], ids=["told", "found out"])
async def test_everything_follows_a_group_that_moved(
    scene: Scene, told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    scene.call("pay A-1 30")
    old = await scene.card(chat=GROUP)
    scene.call("hello", BOB)
    await scene.sees("Noted. Your message is kept", GROUP)
    scene.server.migrate(GROUP, NEW_GROUP, told=told)
    if not told:
        scene.server.press(old, data(old, "Approve"), BOB)  # nothing can be shown there any more
        await scene.gateway.desk.say(scene.gateway_key(GROUP), "anything")
    card = await scene.card(chat=NEW_GROUP)
    assert "A-1" in card["text"]
    await scene.press(card, "Approve")
    await scene.sees("Result: paid 30 for A-1", NEW_GROUP)
    await scene.sees("You said: hello", NEW_GROUP)
    assert labels(await scene.shows(card, "Approved by Ada")) == []
    await scene.rest()
    assert len(scene.house.paid) == 1
    assert len([m for m in scene.server.from_bot(NEW_GROUP) if "Approved by Ada" in m["text"]]) == 1
    assert f"{GROUP} is {NEW_GROUP} now" in caplog.text


async def test_a_move_that_is_told_again_after_a_restart_changes_nothing(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server) as scene:
        scene.call("pay A-1 30")
        await scene.card(chat=GROUP)
        server.migrate(GROUP, NEW_GROUP)
        await scene.card(chat=NEW_GROUP)
        await scene.rest()
    server.push({"message": {**_service(server), "migrate_to_chat_id": NEW_GROUP}})
    async with running(house, server) as scene:
        await scene.rest()
        assert len(scene.cards("Approve", NEW_GROUP)) == 1


def _service(server: TelegramServer) -> Json:
    chat = server.chats[GROUP].public()
    return {"message_id": 900, "date": 1, "chat": chat, "from": server.users[ADA]}


async def test_c046_a_click_after_the_time_ran_out_runs_nothing(house: House, server: TelegramServer) -> None:
    clock = FakeClock()
    agent = house.agent(rule={"expires": 60.0})
    async with running(house, server, agent=agent, clock=clock) as scene:
        scene.say("pay A-1 30")
        card = await scene.card()
        await scene.rest()
        clock.advance(61)
        late = scene.server.press(card, data(card, "Approve"), ADA)
        await scene.until(lambda: late.answered, "an answer")
        assert late.text.startswith("Expired")
        assert labels(await scene.shows(card, "Expired")) == []
        assert house.paid == []
