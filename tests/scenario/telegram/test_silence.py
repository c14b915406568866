"""An agent that chooses to say nothing, on Telegram: no draft flashes up, nothing is sent."""

from __future__ import annotations

from typing import Any

from gateway.clock import SystemClock
from gateway.messages import ThreadKey
from gateway.store.schedule_rows import Standing
from gateway.timetable import Timing
from tests.platforms.telegram import TelegramServer
from tests.scenario.telegram.house import ADA, BOT, GROUP, House, Scene, running
from tests.silence import ALMOST, FIRST, TOKEN, Silent


def drafts(server: TelegramServer, chat: int = ADA) -> list[str]:
    return [str(draft["text"]) for draft in server.chats[chat].drafts]


async def kept_silent(scene: Scene, model: Silent) -> None:
    """Wait until the turn has ended, and what it may have sent would be out."""
    await model.begun()
    model.let_go.set()
    await scene.rest()


async def test_c067_nothing_is_sent_and_no_draft_was_shown(house: House, server: TelegramServer) -> None:
    model, agent = Silent(), house.agent(silence=TOKEN)
    async with running(house, server, agent=agent, model=model) as scene:
        scene.say("good night")
        await kept_silent(scene, model)
        assert (scene.texts(), drafts(server)) == ([], [])
        scene.call("lunch, anybody?")
        await kept_silent(scene, model)
        assert scene.texts(GROUP) == []
        scene.say("hello")
        await scene.sees("Hello.")
        await scene.rest()
        assert scene.texts() == ["Hello."]
        assert [m.text for m in model.said] == ["good night", f"{TOKEN}\n", "hello"]


async def test_c067_more_than_the_word_is_an_answer(house: House, server: TelegramServer) -> None:
    model, agent = Silent(), house.agent(silence=TOKEN)
    model.let_go.set()
    async with running(house, server, agent=agent, model=model) as scene:
        scene.say("almost")
        await scene.sees(ALMOST)
        assert all(text != FIRST and not TOKEN.startswith(text) for text in drafts(server))


async def test_c067_a_schedule_with_nothing_new_to_tell_says_nothing(
    house: House, server: TelegramServer
) -> None:
    model, agent = Silent(), house.agent(silence=TOKEN)
    model.let_go.set()
    given: dict[str, Any] = {"timing": Timing(at=SystemClock().now() + 0.2), "instruction": "what is new?"}
    key = ThreadKey("telegram", BOT, str(ADA), "")
    watch = Standing(name="watch", agent="assistant", key=key, **given)
    async with running(house, server, agent=agent, model=model, schedules=[watch]) as scene:
        await kept_silent(scene, model)
        assert scene.texts() == []
