"""How fast calls may leave, on a clock that the test moves."""

from __future__ import annotations

import asyncio

import pytest

from channels.base import ChannelBusy
from channels.slack.limits import METHODS
from channels.slack.pacing import BURST, PATIENCE, Pacing


class Naps:
    """Sleeps that end at once and move the clock."""

    def __init__(self) -> None:
        self.now = 1000.0

    async def __call__(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)

    def monotonic(self) -> float:
        return self.now


def paced(between: float = 1.0) -> tuple[Pacing, Naps]:
    naps = Naps()
    return Pacing(naps, naps.monotonic, between), naps


async def leave(pacing: Pacing, naps: Naps, method: str, channel: str, times: int) -> list[float]:
    """When each of these calls left, in seconds from now; what is refused is asked for again in time."""
    start, left = naps.now, list[float]()
    while len(left) < times:
        try:
            await pacing.turn(method, channel)
        except ChannelBusy as busy:
            await naps(busy.retry_after)
        else:
            left.append(round(naps.now - start, 2))
    return left


async def test_a_channel_gets_a_small_burst_and_then_one_message_a_second() -> None:
    pacing, naps = paced()
    left = await leave(pacing, naps, "chat.postMessage", "C1", 12)
    assert left[:BURST] == [0.0] * BURST
    for start in left:
        assert sum(start <= moment < start + BURST for moment in left) <= BURST
    assert left[-1] <= 12.5


async def test_another_channel_does_not_wait() -> None:
    pacing, naps = paced()
    await leave(pacing, naps, "chat.postMessage", "C1", BURST)
    assert await leave(pacing, naps, "chat.postMessage", "C2", 1) == [0.0]


@pytest.mark.parametrize("method", ["chat.update", "chat.startStream", "usergroups.list"])
async def test_no_minute_holds_more_calls_of_a_method_than_its_tier(method: str) -> None:
    pacing, naps = paced()
    most = METHODS[method].per_minute
    left: list[float] = []
    for number in range(3 * most):
        left += [round(naps.now - 1000.0, 2)]
        await leave(pacing, naps, method, f"C{number}", 1)
        left[-1] = round(naps.now - 1000.0, 2)
    assert left == sorted(left)
    for start in left:
        assert sum(start <= moment < start + 60 for moment in left) <= most


async def test_a_place_that_is_far_away_is_refused_instead_of_waited_for() -> None:
    pacing, naps = paced()
    for number in range(METHODS["chat.update"].per_minute):
        await pacing.turn("chat.update", f"C{number}")
    with pytest.raises(ChannelBusy) as caught:
        await pacing.turn("chat.update", "C1")
    assert PATIENCE < caught.value.retry_after <= 60.1
    assert naps.now == 1000.0


async def test_signs_of_life_leave_half_of_a_tier_to_answers_and_cards() -> None:
    pacing, _ = paced()
    sent = 0
    with pytest.raises(ChannelBusy):
        for number in range(1000):
            await pacing.turn("chat.update", f"C{number}", sign=True)
            sent = number + 1
    assert sent == METHODS["chat.update"].per_minute // 2
    await pacing.turn("chat.update", "C1")


async def test_a_sign_of_life_never_waits() -> None:
    pacing, naps = paced()
    for _ in range(BURST):
        await pacing.turn("chat.postMessage", "C1")
    with pytest.raises(ChannelBusy):
        await pacing.turn("chat.postMessage", "C1", sign=True)
    assert naps.now == 1000.0


async def test_when_slack_asks_to_wait_nothing_more_is_posted_in_that_channel_until_then() -> None:
    pacing, naps = paced()
    pacing.hold("chat.postMessage", "C1", 30.0)
    with pytest.raises(ChannelBusy) as caught:
        await pacing.turn("chat.postMessage", "C1")
    assert caught.value.retry_after == 30.0
    await pacing.turn("chat.postMessage", "C2")
    await pacing.turn("chat.update", "C1")
    naps.now += 30.0
    await pacing.turn("chat.postMessage", "C1")


async def test_of_other_methods_the_wait_is_for_the_whole_workspace() -> None:
    pacing, _ = paced()
    pacing.hold("chat.update", "C1", 5.0)
    with pytest.raises(ChannelBusy):
        await pacing.turn("chat.update", "C2")


async def test_a_later_and_shorter_wait_does_not_shorten_the_first() -> None:
    pacing, _ = paced()
    pacing.hold("users.info", "", 20.0)
    pacing.hold("users.info", "", 1.0)
    with pytest.raises(ChannelBusy) as caught:
        await pacing.turn("users.info")
    assert caught.value.retry_after == 20.0


async def test_without_pacing_only_slacks_own_requests_to_wait_count() -> None:
    pacing, naps = paced(between=0)
    for _ in range(1000):
        await pacing.turn("chat.postMessage", "C1")
    assert naps.now == 1000.0
    pacing.hold("chat.postMessage", "C1", 3.0)
    with pytest.raises(ChannelBusy):
        await pacing.turn("chat.postMessage", "C1")
