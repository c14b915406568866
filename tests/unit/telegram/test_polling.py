"""When the poller confirms, waits and gives up. No network: what is fetched is scripted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from channels.base import ChannelBusy, ChannelDown
from channels.telegram.errors import PollConflict, TokenRefused
from channels.telegram.polling import NotStored, Poller, RawUpdate
from tests.platforms.telegram.driving import Naps


class Script:
    """Answers of the platform in order; then the poller is stopped."""

    def __init__(self, *answers: Sequence[RawUpdate] | Exception) -> None:
        self.answers = list(answers)
        self.offsets: list[int | None] = []
        self.handled: list[int] = []
        self.refused: set[int] = set()  # updates whose first hand-over fails
        self.poll_takes = 0.0  # seconds of a poll that succeeds
        self.silent = False  # fetches that never end
        self.asked, self.begun, self.go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.go_on.set()
        self.naps = Naps()
        self.states: list[str] = []
        self.poller = Poller(
            fetch=self.fetch,
            handle=self.handle,
            sleep=self.naps,
            monotonic=self.naps.monotonic,
            on_state=self.states.append,
        )

    async def fetch(self, offset: int | None) -> Sequence[RawUpdate]:
        self.offsets.append(offset)
        if self.silent:
            self.asked.set()
            await asyncio.Event().wait()
        if not self.answers:
            self.poller.stop()
            return ()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        self.naps.now += self.poll_takes
        return answer

    async def handle(self, update: RawUpdate) -> None:
        if update["update_id"] in self.refused:
            self.refused.remove(update["update_id"])
            raise OSError("disk full")
        self.begun.set()
        await self.go_on.wait()
        self.handled.append(update["update_id"])


def updates(*ids: int) -> list[RawUpdate]:
    return [{"update_id": number} for number in ids]


async def test_the_offset_follows_what_was_handed_over() -> None:
    script = Script(updates(5, 6), updates(9))
    await script.poller.run()
    assert script.offsets == [None, 7, 10]
    assert script.handled == [5, 6, 9]


async def test_the_offset_stops_before_an_update_that_could_not_be_stored() -> None:
    script = Script(updates(5, 6, 7), updates(6, 7))
    script.poller.offset = 5
    script.refused = {6}
    await script.poller.run()
    assert script.offsets == [5, 6, 8]
    assert script.handled == [5, 6, 7]


async def test_a_step_says_that_an_update_was_not_stored() -> None:
    script = Script(updates(5))
    script.refused = {5}
    with pytest.raises(NotStored):
        await script.poller.step()
    assert script.poller.offset is None


async def test_a_flood_limit_is_waited_for_exactly() -> None:
    script = Script(ChannelBusy("telegram", 17.0), updates(1))
    await script.poller.run()
    assert script.naps.taken == [17.0]
    assert script.handled == [1]


async def test_a_network_that_is_away_is_tried_at_least_twice_a_minute() -> None:
    script = Script(*[ChannelDown("away")] * 12, updates(1))
    await script.poller.run()
    assert len(script.naps.taken) == 12
    assert script.naps.taken == sorted(script.naps.taken[:5]) + script.naps.taken[5:]
    assert max(script.naps.taken) <= 30
    assert script.states == ["down", "up", "stopped"]


async def test_waits_start_again_from_the_shortest_after_success() -> None:
    script = Script(*[ChannelDown("away")] * 6, updates(1), ChannelDown("away"))
    await script.poller.run()
    assert script.naps.taken[-1] <= 1.0


async def test_conflicts_double_the_wait_up_to_a_minute_even_between_successes() -> None:
    """Two processes that take turns must drift apart, so a success between conflicts is no calm."""
    answers: list[Sequence[RawUpdate] | Exception] = []
    for number in range(8):
        answers += [PollConflict("409"), updates(number)]
    script = Script(*answers)
    await script.poller.run()
    assert script.naps.taken == [1, 2, 4, 8, 16, 32, 60, 60]


async def test_a_conflict_after_a_long_calm_is_a_new_one() -> None:
    script = Script(PollConflict("409"), PollConflict("409"), updates(1), PollConflict("409"))
    script.poll_takes = 1000.0
    await script.poller.run()
    assert script.naps.taken == [1, 2, 1]


async def test_a_refused_token_ends_the_polling() -> None:
    script = Script(updates(1), TokenRefused(), updates(2))
    with pytest.raises(TokenRefused):
        await script.poller.run()
    assert script.states == ["up", "refused"]
    assert script.handled == [1]


async def test_a_fault_in_between_does_not_end_the_polling() -> None:
    script = Script(KeyError("surprise"), updates(1))
    await script.poller.run()
    assert script.handled == [1]


async def test_stopping_ends_a_poll_that_waits() -> None:
    script = Script()
    script.silent = True
    task = asyncio.create_task(script.poller.run())
    await script.asked.wait()
    script.poller.stop()
    async with asyncio.timeout(5):
        await task
    assert script.poller.state == "stopped"


async def test_stopping_lets_a_hand_over_end() -> None:
    script = Script(updates(1))
    script.go_on.clear()
    task = asyncio.create_task(script.poller.run())
    await script.begun.wait()
    script.poller.stop()
    script.go_on.set()
    async with asyncio.timeout(5):
        await task
    assert (script.handled, script.poller.offset) == ([1], 2)


async def test_cancelling_the_task_is_not_swallowed() -> None:
    script = Script()
    script.silent = True
    task = asyncio.create_task(script.poller.run())
    await script.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
