"""The limits that the library does not keep."""

from __future__ import annotations

import asyncio

import pytest

from channels.base import ChannelBusy
from channels.discord.pacing import PATIENCE, Pacing
from tests.clock import FakeClock

ROUTE = "POST /channels/{channel_id}/messages"


def paced(clock: FakeClock, per_second: int = 4) -> Pacing:
    return Pacing(clock.sleep, clock.monotonic, per_second)


async def test_as_many_calls_as_are_allowed_go_out_at_once() -> None:
    clock = FakeClock()
    pacing = paced(clock)
    for place in "1234":
        await pacing.turn(ROUTE, place)
    assert clock.sleeping == 0


async def test_all_channels_share_one_limit_and_who_comes_first_goes_first() -> None:
    clock = FakeClock()
    pacing, went = paced(clock), list[str]()

    async def go(place: str) -> None:
        await pacing.turn(ROUTE, place)
        went.append(place)

    tasks = [asyncio.create_task(go(str(number))) for number in range(10)]
    for expected in (4, 8, 10):
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(went) == expected
        clock.advance(1.0)
    await asyncio.gather(*tasks)
    assert went == [str(number) for number in range(10)]


async def test_what_would_wait_too_long_is_refused_at_once() -> None:
    clock = FakeClock()
    pacing = paced(clock, per_second=1)
    await pacing.turn(ROUTE)
    waiting = [asyncio.create_task(pacing.turn(ROUTE)) for _ in range(int(PATIENCE))]
    await asyncio.sleep(0)
    with pytest.raises(ChannelBusy) as caught:
        await pacing.turn(ROUTE)
    assert caught.value.retry_after > PATIENCE
    clock.advance(PATIENCE)
    await asyncio.gather(*waiting)


async def test_signs_of_life_leave_half_for_answers() -> None:
    clock = FakeClock()
    pacing = paced(clock)
    await pacing.turn(ROUTE, sign=True)
    await pacing.turn(ROUTE, sign=True)
    with pytest.raises(ChannelBusy):
        await pacing.turn(ROUTE, sign=True)
    await pacing.turn(ROUTE)


async def test_a_request_to_wait_holds_that_route_in_that_place_only() -> None:
    clock = FakeClock()
    pacing = paced(clock)
    pacing.hold(ROUTE, "1", 7.0)
    with pytest.raises(ChannelBusy) as caught:
        await pacing.turn(ROUTE, "1")
    assert caught.value.retry_after == 7.0
    await pacing.turn(ROUTE, "2")
    clock.advance(7.0)
    await pacing.turn(ROUTE, "1")


async def test_a_hold_that_begins_while_somebody_waits_counts_for_them() -> None:
    clock = FakeClock()
    pacing = paced(clock, per_second=1)
    await pacing.turn(ROUTE, "1")
    waiting = asyncio.create_task(pacing.turn(ROUTE, "1"))
    await asyncio.sleep(0)
    pacing.hold(ROUTE, "1", 60.0)
    clock.advance(1.0)
    with pytest.raises(ChannelBusy):
        await waiting
