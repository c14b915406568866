"""The first sign of life within a second, and what becomes of it when the answer is there."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.platforms.telegram import TelegramServer
from tests.platforms.telegram.world import Call
from tests.scenario.telegram.house import ADA, FORUM, GROUP, House, Scene, running


@pytest.fixture(params=["polling", "webhook"])
async def scene(request: pytest.FixtureRequest, house: House, server: TelegramServer) -> AsyncIterator[Scene]:
    async with running(house, server, mode=request.param) as scene:
        yield scene


async def first_sign(scene: Scene, chat: int, since: float) -> Call:
    """The first thing that people saw there after that time."""
    signs = {"sendChatAction", "setMessageReaction", "sendMessage", "sendMessageDraft"}

    def found() -> list[Call]:
        return [
            call
            for call in scene.server.journal
            if call.method in signs and call.values.get("chat_id") == str(chat) and call.at >= since
        ]

    return (await scene.until(found, f"a sign of life in {chat}"))[0]


@pytest.mark.parametrize("chat", [ADA, GROUP, FORUM], ids=["private", "group", "forum"])
async def test_a_slow_turn_shows_that_it_works_within_a_second(scene: Scene, chat: int) -> None:
    began = scene.server.clock()
    scene.call("work", chat=chat)
    sign = await first_sign(scene, chat, began)
    assert (sign.method, sign.values["action"]) == ("sendChatAction", "typing")
    assert sign.at - began < 1
    scene.house.let_go.set()
    await scene.sees("Result: worked", chat)


async def test_a_message_that_has_to_wait_gets_a_sign_of_its_own_within_a_second(scene: Scene) -> None:
    scene.say("work")
    await scene.house.at_work.wait()
    began = scene.server.clock()
    waiting = scene.say("hello")["message"]["message_id"]
    chat = scene.server.chats[ADA]
    [reaction] = await scene.until(lambda: chat.reactions, "a reaction")
    assert reaction["message_id"] == waiting
    assert [one["emoji"] for one in reaction["reaction"]] == ["👀"]
    assert scene.server.calls("setMessageReaction")[0].at - began < 1
    scene.house.let_go.set()
    await scene.sees("You said: hello")


async def test_where_reactions_are_not_allowed_a_waiting_message_is_answered_by_typing(scene: Scene) -> None:
    scene.call("work")
    await scene.house.at_work.wait()
    chat = scene.server.chats[GROUP]
    chat.no_reactions = True
    before = len(chat.actions)
    scene.call("hello")
    await scene.until(lambda: len(chat.actions) > before, "typing")
    scene.house.let_go.set()
    await scene.sees("You said: hello", GROUP)


async def test_a_growing_answer_is_a_draft_and_ends_as_exactly_the_final_message(scene: Scene) -> None:
    words = "slow and **bold** and `code`"
    scene.say(words)
    chat = scene.server.chats[ADA]
    await scene.until(lambda: chat.draft, "a draft")
    assert "You said: slow and".startswith(chat.draft)
    scene.house.let_go.set()
    message = await scene.sees("You said: slow and bold and code")
    await scene.rest()
    assert [entity["type"] for entity in message["entities"]] == ["bold", "code"]
    assert chat.draft == ""
    assert scene.texts() == ["You said: slow and bold and code"]


async def test_no_draft_comes_after_the_message_that_ends_it(scene: Scene) -> None:
    """A draft that is on its way when the answer is ready: the answer waits for it."""
    chat = scene.server.chats[ADA]
    async with scene.server.held("sendMessageDraft") as held:
        scene.say("slow answer to a long question")
        await scene.until(lambda: held.waiting, "a draft on its way")
        scene.house.let_go.set()
        [view] = await scene.gateway.store.sessions()
        await scene.gateway.turns.settled(view.id)
        assert scene.texts() == []
    await scene.sees("You said: slow answer")
    await scene.rest()
    assert chat.draft == ""


async def test_a_group_gets_no_drafts_and_no_progress_messages(scene: Scene) -> None:
    scene.call("slow answer")
    await scene.house.at_work.wait()
    await scene.until(lambda: scene.server.chats[GROUP].actions, "typing")
    scene.house.let_go.set()
    await scene.sees("You said: slow answer", GROUP)
    await scene.rest()
    assert scene.server.calls("sendMessageDraft") == []
    assert scene.server.calls("editMessageText") == []
    assert len(scene.texts(GROUP)) == 1
