"""How fast we speak: thirty requests a second, twenty a minute in a group, one message a second in a chat.
Signs of life and answers to presses are left alone: they must not use up what messages need.

The windows slide, so that no minute ever holds more than the platform allows; a leaky bucket would let a
burst and its refill through together. When Telegram asks to wait all the same, nothing else goes to that chat
until then: each further try would make the wait longer.
"""

from __future__ import annotations

import asyncio
import datetime
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from telegram.error import RetryAfter
from telegram.ext import BaseRateLimiter

from channels.telegram.errors import seconds_of
from channels.telegram.limits import PER_MINUTE_IN_GROUP, PER_SECOND

_FREE = frozenset({"sendChatAction", "sendMessageDraft", "answerCallbackQuery"})
_KEPT = 1000  # chats whose windows are remembered
_MARGIN = 0.05  # seconds; requests do not travel equally fast

Answer = bool | dict[str, Any] | list[dict[str, Any]]


class Window:
    """At most `most` turns in any `seconds`; who comes first goes first."""

    def __init__(
        self,
        most: int,
        seconds: float,
        sleep: Callable[[float], Awaitable[None]],
        monotonic: Callable[[], float],
    ) -> None:
        self._most, self._seconds = most, seconds
        self._sleep, self._monotonic = sleep, monotonic
        self._taken: deque[float] = deque(maxlen=most)
        self._queue = asyncio.Lock()

    async def turn(self) -> None:
        """Wait for a place and take it."""
        async with self._queue:
            while len(self._taken) == self._most:
                wait = self._taken[0] + self._seconds + _MARGIN - self._monotonic()
                if wait <= 0:
                    break
                await self._sleep(wait)
            self._taken.append(self._monotonic())


class Pacing(BaseRateLimiter[int]):
    """Waits before a request. A 429 is not retried here: whoever asked plans it. Until its time is up,
    requests about the same chat are refused here in the same way, without being sent.

    between: seconds between two messages to one chat, 0 for no pause.
    """

    __slots__ = ("_between", "_chats", "_flooded", "_groups", "_overall", "_time")

    def __init__(
        self, between: float, sleep: Callable[[float], Awaitable[None]], monotonic: Callable[[], float]
    ) -> None:
        self._between, self._time = between, (sleep, monotonic)
        self._overall = Window(PER_SECOND, 1.0, *self._time)
        self._chats: OrderedDict[int, Window] = OrderedDict()
        self._groups: OrderedDict[int, Window] = OrderedDict()
        self._flooded: OrderedDict[str, float] = OrderedDict()  # chat, or method without one -> until when

    async def initialize(self) -> None:
        """Nothing to do."""

    async def shutdown(self) -> None:
        """Nothing to do."""

    async def process_request(
        self,
        callback: Callable[..., Coroutine[Any, Any, Answer]],
        args: Any,
        kwargs: dict[str, Any],
        endpoint: str,
        data: dict[str, Any],
        rate_limit_args: int | None,
    ) -> Answer:
        """Wait for a place in the chat's share and in the whole, then ask."""
        chat = data.get("chat_id")
        place = endpoint if chat is None else str(chat)
        self._refuse_while_flooded(place)
        if endpoint not in _FREE and chat is not None:
            if endpoint.startswith("send") and self._between > 0:
                await self._window(self._chats, int(chat), 1, self._between).turn()
            if int(chat) < 0:
                await self._window(self._groups, int(chat), PER_MINUTE_IN_GROUP, 60.0).turn()
            await self._overall.turn()
        self._refuse_while_flooded(place)  # it may have begun while we waited
        try:
            return await callback(*args, **kwargs)
        except RetryAfter as flood:
            self._flooded[place] = self._time[1]() + seconds_of(flood)
            while len(self._flooded) > _KEPT:
                self._flooded.popitem(last=False)
            raise

    def _refuse_while_flooded(self, place: str) -> None:
        left = self._flooded.get(place, 0.0) - self._time[1]()
        if left > 0:
            raise RetryAfter(datetime.timedelta(seconds=left))
        self._flooded.pop(place, None)

    def _window(self, store: OrderedDict[int, Window], chat: int, most: int, seconds: float) -> Window:
        if chat not in store:
            store[chat] = Window(most, seconds, *self._time)
        store.move_to_end(chat)
        while len(store) > _KEPT:
            store.popitem(last=False)
        return store[chat]
