"""How fast requests may leave, on a clock that the test moves."""

from __future__ import annotations

from typing import Any

import pytest
from telegram.error import RetryAfter

from channels.telegram.errors import seconds_of
from channels.telegram.pacing import Pacing, Window
from tests.platforms.telegram.driving import Naps

ADA, GROUP = 42, -100


async def speak(pacing: Pacing, naps: Naps, endpoint: str, chat: int | None, times: int) -> list[float]:
    """When each of these requests left, in seconds from now."""
    start, left = naps.now, []

    async def callback(*args: Any, **kwargs: Any) -> bool:
        left.append(round(naps.now - start, 3))
        return True

    data = {} if chat is None else {"chat_id": chat}
    for _ in range(times):
        await pacing.process_request(callback, (), {}, endpoint, data, None)
    return left


def paced() -> tuple[Pacing, Naps]:
    naps = Naps()
    return Pacing(1.0, naps, naps.monotonic), naps


async def test_a_private_chat_gets_one_message_a_second() -> None:
    pacing, naps = paced()
    assert await speak(pacing, naps, "sendMessage", ADA, 3) == [0.0, 1.05, 2.1]


async def test_no_minute_of_a_group_holds_more_than_twenty() -> None:
    pacing, naps = paced()
    left = await speak(pacing, naps, "sendMessage", GROUP, 50)
    assert left == sorted(left)
    for start in left:
        assert sum(start <= moment < start + 60 for moment in left) <= 20


async def test_edits_in_a_private_chat_wait_for_nothing() -> None:
    pacing, naps = paced()
    assert await speak(pacing, naps, "editMessageText", ADA, 20) == [0.0] * 20


async def test_signs_of_life_and_answers_to_presses_are_free() -> None:
    pacing, naps = paced()
    for endpoint, chat in (
        ("sendChatAction", GROUP),
        ("sendMessageDraft", ADA),
        ("answerCallbackQuery", None),
    ):
        assert await speak(pacing, naps, endpoint, chat, 50) == [0.0] * 50
    assert naps.taken == []


async def test_all_chats_together_stay_below_thirty_a_second() -> None:
    pacing, naps = paced()
    for chat in range(1, 91):
        await speak(pacing, naps, "editMessageText", chat, 1)
    assert [round(nap, 2) for nap in naps.taken] == [1.05, 1.05]


async def test_a_window_without_a_rush_never_waits() -> None:
    naps = Naps()
    window = Window(2, 10.0, naps, naps.monotonic)
    for _ in range(5):
        await window.turn()
        naps.now += 6
    assert naps.taken == []


async def test_after_a_flood_nothing_more_goes_to_that_chat_until_its_time_is_up() -> None:
    pacing, naps = paced()
    asked: list[str] = []

    async def flooded(*args: Any, **kwargs: Any) -> bool:
        asked.append("flooded")
        raise RetryAfter(30)

    with pytest.raises(RetryAfter):
        await pacing.process_request(flooded, (), {}, "sendMessage", {"chat_id": ADA}, None)
    for endpoint in ("sendMessage", "editMessageText", "sendChatAction"):
        with pytest.raises(RetryAfter) as caught:
            await pacing.process_request(flooded, (), {}, endpoint, {"chat_id": ADA}, None)
        assert seconds_of(caught.value) == 30.0
    assert asked == ["flooded"]
    assert await speak(pacing, naps, "sendMessage", GROUP, 1) == [0.0]
    assert await speak(pacing, naps, "getMe", None, 1) == [0.0]
    naps.now += 30
    assert len(await speak(pacing, naps, "sendMessage", ADA, 1)) == 1


async def test_a_flood_of_a_method_without_a_chat_holds_up_that_method_only() -> None:
    pacing, naps = paced()

    async def flooded(*args: Any, **kwargs: Any) -> bool:
        raise RetryAfter(5)

    with pytest.raises(RetryAfter):
        await pacing.process_request(flooded, (), {}, "answerCallbackQuery", {}, None)
    with pytest.raises(RetryAfter):
        await speak(pacing, naps, "answerCallbackQuery", None, 1)
    assert await speak(pacing, naps, "sendMessage", ADA, 1) == [0.0]
