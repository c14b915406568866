"""What the clock begins on Discord: a thread of its own in a channel, and what people may say about it."""

from __future__ import annotations

from typing import Any

from gateway.clock import SystemClock
from gateway.messages import ThreadKey
from gateway.store.schedule_rows import Standing
from gateway.timetable import Timing
from tests.platforms.discord.server import DiscordServer
from tests.scenario.discord.house import ADA, BOB, G1, GENERAL, House, Scene, running

OPENER = "Scheduled (watch): peek A-7"


def watch(**changes: Any) -> Standing:
    """Due in a moment."""
    given: dict[str, Any] = {
        "name": "watch",
        "agent": "assistant",
        "key": ThreadKey("discord", G1, GENERAL, ""),
        "timing": Timing(at=SystemClock().now() + 0.2),
        "instruction": "peek A-7",
    }
    return Standing(**{**given, **changes})


def answers(scene: Scene, place: str = GENERAL) -> list[str]:
    return [text for text in scene.texts(place) if "peek A-7" in text and OPENER not in text]


async def test_in_a_channel_it_begins_a_thread_in_which_people_go_on(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server, schedules=[watch()]) as scene:
        opener = await scene.until(
            lambda: [post for post in scene.posts() if OPENER in post.text], "the opening words"
        )
        thread = opener[0].id
        await scene.until(lambda: answers(scene, thread), "the answer in its thread")
        assert answers(scene) == []
        scene.say("how nice", place=thread)
        await scene.sees("You said: how nice", thread)


async def test_without_threads_it_is_answered_in_place(house: House, server: DiscordServer) -> None:
    async with running(house, server, schedules=[watch()], threads=False) as scene:
        await scene.until(lambda: answers(scene), "the answer")
        assert server.threads(GENERAL) == []


async def test_a_person_is_told_in_private(house: House, server: DiscordServer) -> None:
    planned = [watch(key=ThreadKey("discord", "@me", f"user:{BOB}", ""))]
    async with running(house, server, schedules=planned) as scene:
        await scene.until(lambda: answers(scene, BOB), "the answer")
        scene.say("how nice", BOB, BOB)
        await scene.sees("You said: how nice", BOB)


async def test_the_native_command_lists_and_cancels(house: House, server: DiscordServer) -> None:
    planned = [watch(timing=Timing(every=3_600.0))]
    async with running(house, server, schedules=planned, approvers=(f"discord:{BOB}",)) as scene:
        assert "peek A-7 (every 1h, next " in await scene.command("schedules", ADA)
        (record,) = await scene.gateway.store.schedules()
        cancel = f"cancel {record.schedule.code}"
        assert (await scene.command("schedules", ADA, what=cancel)).startswith("You may not cancel this")
        assert (await scene.command("schedules", BOB, what=cancel)).startswith("Cancelled: ")
        assert await scene.gateway.store.schedules() == []
