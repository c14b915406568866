"""What the clock begins on Slack: a thread of its own in a channel, and what people may say about it."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.clock import SystemClock
from gateway.messages import ThreadKey
from gateway.store.schedule_rows import Standing
from gateway.timetable import Timing
from tests.platforms.slack import SlackServer
from tests.scenario.slack.house import ADA, BOB, GENERAL, TRANSPORTS, House, Scene, running

OPENER = "Scheduled (watch): peek A-7"


def watch(**changes: Any) -> Standing:
    """Due in a moment."""
    given: dict[str, Any] = {
        "name": "watch",
        "agent": "assistant",
        "key": ThreadKey("slack", "T1", GENERAL, ""),
        "timing": Timing(at=SystemClock().now() + 0.2),
        "instruction": "peek A-7",
    }
    return Standing(**{**given, **changes})


def answers(scene: Scene, thread: str | None = None) -> list[str]:
    return [text for text in scene.texts(thread=thread) if "peek A-7" in text and text != OPENER]


@TRANSPORTS
async def test_in_a_channel_it_begins_a_thread_in_which_people_go_on(
    house: House, server: SlackServer, transport: str
) -> None:
    async with running(house, server, transport=transport, schedules=[watch()]) as scene:
        opener = await scene.sees(OPENER)
        assert opener.thread == ""
        await scene.until(lambda: answers(scene, opener.ts), "the answer in its thread")
        scene.say("how nice", thread=opener.ts)
        await scene.sees("You said: how nice", thread=opener.ts)
        await scene.rest()
        assert scene.texts().count(OPENER) == 1 and len(answers(scene)) == 1


async def test_a_lost_answer_to_the_opening_words_begins_one_conversation(
    house: House, server: SlackServer
) -> None:
    async with running(house, server, schedules=[watch()]) as scene:
        server.fail_next("chat.postMessage", "drop", after=True)
        await scene.until(lambda: answers(scene), "the answer")
        await scene.rest()
        assert len(answers(scene)) == 1


@pytest.mark.parametrize("person", ["U2"])
async def test_a_person_is_told_in_private_and_goes_on_there(
    house: House, server: SlackServer, person: str
) -> None:
    planned = [watch(key=ThreadKey("slack", "T1", person, ""))]
    async with running(house, server, schedules=planned) as scene:
        opener = await scene.sees(OPENER, channel="D2")
        scene.say("how nice", BOB, "D2", opener.ts)
        await scene.sees("You said: how nice", channel="D2", thread=opener.ts)


async def test_the_native_command_lists_and_cancels(house: House, server: SlackServer) -> None:
    planned = [watch(timing=Timing(every=3_600.0))]
    async with running(house, server, schedules=planned, approvers=("slack:T1:U2",)) as scene:
        listed = await scene.command("schedules", ADA)
        assert "peek A-7 (every 1h, next " in listed
        (record,) = await scene.gateway.store.schedules()
        code = record.schedule.code
        assert (await scene.command(f"schedules cancel {code}", ADA)).startswith("You may not cancel this")
        assert (await scene.command(f"schedules cancel {code}", BOB)).startswith("Cancelled: ")
        assert await scene.gateway.store.schedules() == []
