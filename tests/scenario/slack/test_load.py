"""Many at once, slow look-ups, a database that stumbles: all is acknowledged in time and kept in order."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Any

import pytest

from gateway.errors import StoreUnavailable
from tests.clock import FakeClock
from tests.platforms.slack import SlackServer
from tests.scenario.slack.house import (
    ADA,
    BOB,
    CLEO,
    GENERAL,
    GUEST,
    HERS,
    TRANSPORTS,
    House,
    Scene,
    running,
)

MANY = 50


def tries(server: SlackServer) -> set[int]:
    """How often deliveries were made that are not our own echo."""
    return {len(delivery.attempts) for delivery in server.deliveries}


@dataclass
class Trouble:
    """A database that refuses the next messages so often."""

    left: int
    asked: int = 0


def troubled(scene: Scene, times: int) -> Trouble:
    store, trouble = scene.gateway.store, Trouble(times)
    accept = store.accept

    async def accept_or_not(*given: Any, **more: Any) -> Any:
        trouble.asked += 1
        if trouble.left > 0:
            trouble.left -= 1
            raise StoreUnavailable("the disk is slow")
        return await accept(*given, **more)

    store.accept = accept_or_not  # type: ignore[method-assign]
    return trouble


@TRANSPORTS
async def test_fifty_messages_in_one_thread_at_once_are_read_in_their_order(
    house: House, server: SlackServer, transport: str
) -> None:
    async with running(house, server, transport=transport) as scene:
        first = scene.call("work")
        await house.at_work.wait()
        for number in range(MANY):
            scene.say(f"number {number:02}", thread=first.ts)
        await server.settled(20)
        assert tries(server) == {1}
        house.let_go.set()
        await scene.sees(f"You said: number {MANY - 1:02}")
        await scene.rest()
        said = [message.text for message in house.said()]
        assert said == ["work", *(f"number {number:02}" for number in range(MANY))]


@TRANSPORTS
async def test_fifty_threads_that_begin_at_once_are_fifty_conversations(
    house: House, server: SlackServer, transport: str
) -> None:
    async with running(house, server, transport=transport) as scene:
        asked = [scene.call(f"number {number:02}") for number in range(MANY)]
        await server.settled(20)
        assert tries(server) == {1}
        await scene.until(lambda: len(scene.posts()) == MANY, "all answers")
        await scene.rest()
        answers = {post.thread: post.text for post in scene.posts()}
        assert answers == {said.ts: f"You said: number {n:02}" for n, said in enumerate(asked)}


async def test_called_into_many_threads_at_once_each_is_acknowledged_in_time_though_slack_is_slow(
    house: House, server: SlackServer
) -> None:
    """Each look at what was said before takes its second; they are not waited for one after the other."""
    async with running(house, server) as scene:
        roots = [scene.say(f"topic {number}", BOB) for number in range(8)]
        await server.settled()
        async with server.held("conversations.replies"):
            for number, root in enumerate(roots):
                scene.call(f"number {number}", thread=root.ts)
            await server.settled(20)
        assert tries(server) == {1}
        await scene.until(lambda: len(scene.posts()) == len(roots), "all answers")


async def test_many_channels_at_once_and_a_look_up_that_hangs_hold_nobody_up(
    house: House, server: SlackServer
) -> None:
    for number in range(20):
        server.channel(f"C{100 + number}", f"room-{number}", [ADA, BOB])
    async with running(house, server) as scene:
        async with server.held("users.info"):
            for number in range(20):
                scene.call("hello", (ADA, BOB)[number % 2], f"C{100 + number}")
            await server.settled(20)
            assert tries(server) == {1}
        for number in range(20):
            await scene.sees("You said: hello", f"C{100 + number}")


@TRANSPORTS
async def test_a_member_whom_slack_is_slow_to_tell_about_is_not_taken_for_a_guest(
    house: House, server: SlackServer, transport: str
) -> None:
    """Where everyone may talk it hangs on that: the message is not taken until it is known."""
    async with running(house, server, transport=transport, users=("*",)) as scene:
        held = server.hold("users.info")
        said = scene.call("hello", CLEO)
        let_in = scene.call("hello", GUEST)
        await server.wait_for(lambda: all(d.attempts[0].failed for d in said.deliveries))
        assert scene.texts() == []
        server.release("users.info")
        assert held.waiting > 0
        server.retry_now()
        await scene.sees("You said: hello", thread=said.ts)
        await scene.rest()
        assert scene.texts() == ["You said: hello"]
        assert all(delivery.acked for delivery in let_in.deliveries)


async def test_a_command_waits_a_moment_for_who_somebody_is(house: House, server: SlackServer) -> None:
    async with running(house, server, users=("*",)) as scene:
        held = server.hold("users.info")
        typed = server.slash(CLEO, GENERAL, "status")
        await server.wait_for(lambda: held.waiting > 0)
        with pytest.raises(TimeoutError):
            await server.wait_for(lambda: typed.acked, 1.2)
        server.release("users.info")
        await typed.taken()
        assert (await scene.told(CLEO)).startswith("Nothing has been said here yet.")


@TRANSPORTS
async def test_a_database_that_refuses_for_a_moment_costs_no_delivery(
    house: House, server: SlackServer, transport: str
) -> None:
    async with running(house, server, transport=transport) as scene:
        trouble = troubled(scene, 4)
        said = scene.say("hello", channel=HERS)
        await said.taken()
        assert trouble.asked == 5 and tries(server) == {1}
        await scene.sees("You said: hello", HERS)


async def test_a_database_that_refuses_for_long_gets_the_message_again(
    house: House, server: SlackServer
) -> None:
    async with running(house, server) as scene:
        trouble = troubled(scene, 10**6)
        said = scene.say("hello", channel=HERS)
        await server.wait_for(lambda: len(said.deliveries[0].attempts) == 2)
        await server.wait_for(lambda: said.deliveries[0].attempts[1].failed)
        trouble.left = 0
        assert server.retry_now() == 1
        await scene.sees("You said: hello", HERS)
        await scene.rest()
        assert scene.texts(HERS) == ["You said: hello"]


@TRANSPORTS
async def test_a_storm_of_retries_under_new_and_old_ids_changes_nothing(
    house: House, server: SlackServer, transport: str
) -> None:
    async with running(house, server, transport=transport) as scene:
        asked = scene.call("pay A-1 30")
        card = await scene.card()
        clicked = server.press(ADA, card.channel, card.ts, "Approve")
        for _ in range(15):
            server.redeliver(asked)
            for delivery in asked.deliveries:
                server.resend(delivery, retry=2)
            server.redeliver(clicked)
        await server.settled(20)
        await scene.sees("Result: paid 30 for A-1", thread=asked.ts)
        await scene.rest()
        assert tries(server) == {1}
        assert len([text for text in scene.texts() if text.startswith("Result")]) == 1
        assert len(house.requests) == 2
    assert house.paid == [{"order": "A-1", "amount": 30}]


async def test_presses_by_many_people_at_once_are_each_answered(house: House, server: SlackServer) -> None:
    people = [f"U{100 + number}" for number in range(30)]
    for person in people:
        server.user(person, f"person{person[1:]}")
    server.channels[GENERAL].members |= set(people)
    async with running(house, server) as scene:
        scene.call("pay A-1 30")
        card = await scene.card()
        presses = [server.press(person, card.channel, card.ts, "Approve") for person in people]
        await asyncio.gather(*(press.taken() for press in presses))
        for person in people:
            assert (await scene.told(person)).startswith("You may not decide this.")
        await scene.press(card, "Approve", ADA)
        await scene.sees("Result: paid 30 for A-1")
    assert len(house.paid) == 1


async def test_answers_to_one_busy_channel_keep_slacks_pace_and_none_is_lost(
    house: House, server: SlackServer
) -> None:
    async with running(house, server, clock=FakeClock(), between=1.0) as scene:
        server.enforce_rates = True
        for number in range(20):
            scene.call(f"number {number:02}")
        await scene.until(lambda: len(scene.posts()) == 20, "all answers")
        await scene.rest()
        posted = server.called("chat.postMessage")
        assert [call.status for call in posted] == [200] * len(posted)
        told = {re.findall(r"\d\d", text)[0] for text in scene.texts()}
        assert len(told) == 20
