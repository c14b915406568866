"""What the clock begins on Telegram, where a chat has one conversation."""

from __future__ import annotations

from gateway.clock import SystemClock
from gateway.messages import ThreadKey
from gateway.store.schedule_rows import Standing
from gateway.timetable import Timing
from tests.platforms.telegram import TelegramServer
from tests.scenario.telegram.house import ADA, BOT, House, running


def watch(timing: Timing) -> Standing:
    key = ThreadKey("telegram", BOT, str(ADA), "")
    return Standing(name="watch", agent="assistant", key=key, timing=timing, instruction="peek A-7")


async def test_it_is_told_in_the_conversation_of_the_chat(house: House, server: TelegramServer) -> None:
    async with running(house, server) as scene:
        scene.say("hello")
        await scene.sees("You said: hello")
    soon = Timing(at=SystemClock().now() + 0.2)
    async with running(house, server, schedules=[watch(soon)]) as scene:
        await scene.until(lambda: [t for t in scene.texts() if "peek A-7" in t], "the answer")
        assert len(await scene.gateway.store.sessions()) == 1
        assert not any("Scheduled (watch)" in text for text in scene.texts())


async def test_the_command_lists_and_its_answer_says_when_it_comes(
    house: House, server: TelegramServer
) -> None:
    weekdays = Timing(cron="0 8 * * mon-fri", zone="Europe/Berlin")
    async with running(house, server, schedules=[watch(weekdays)]) as scene:
        scene.say("/schedules")
        await scene.until(
            lambda: [t for t in scene.texts() if "at 08:00 on Monday through Friday (Europe/Berlin)" in t],
            "the list",
        )
