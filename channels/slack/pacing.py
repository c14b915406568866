"""How fast we speak: each method within its tier, and about one message a second in a channel.

Places are given out in advance, by windows that slide, so that no minute ever holds more than Slack allows.
A place that is only seconds away is waited for; one that is further away is refused as Slack itself would
refuse it, because whoever planned the call can do something better than wait. When Slack asks to wait all the
same, nothing else of that kind goes out until then: each further try would make the wait longer.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Final

from channels.base import ChannelBusy
from channels.slack.limits import METHODS, SECONDS_BETWEEN

BURST: Final = 3  # messages to one channel that may follow one another at once
PATIENCE: Final = 3.0  # seconds that a call waits for its place
MINUTE: Final = 60.0
_MARGIN: Final = 0.05  # seconds; requests do not travel equally fast
_KEPT: Final = 1000  # channels whose windows are remembered
# What makes a message of ours, or a part of one, appear in a channel.
_MESSAGES: Final = frozenset({"chat.postMessage", "chat.startStream", "files.completeUploadExternal"})


class Window:
    """At most `most` places in any `seconds`; who comes first goes first."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._taken: deque[float] = deque(maxlen=most)

    def free_at(self, now: float) -> float:
        """When the next place is free, on the clock of `now`."""
        if len(self._taken) < self._most:
            return now
        return max(now, self._taken[0] + self._seconds + _MARGIN)

    def take(self, at: float) -> None:
        """Take the place at that moment."""
        self._taken.append(at)

    def used(self, now: float) -> float:
        """The share of the places that is taken now, 0 to 1."""
        return sum(at > now - self._seconds for at in self._taken) / self._most


class Pacing:
    """All calls with one bot token.

    between: seconds between two messages to one channel, 0 for no pacing at all (Slack's own requests to
    wait are obeyed all the same). sleep, monotonic: time.
    """

    def __init__(
        self,
        sleep: Callable[[float], Awaitable[None]],
        monotonic: Callable[[], float],
        between: float = SECONDS_BETWEEN,
    ) -> None:
        self._sleep, self._monotonic, self._between = sleep, monotonic, between
        self._methods: dict[str, Window] = {}
        self._channels: OrderedDict[str, Window] = OrderedDict()
        self._held: OrderedDict[tuple[str, str], float] = OrderedDict()  # (method, channel) -> until when

    async def turn(self, method: str, channel: str = "", *, sign: bool = False) -> None:
        """Wait for a place and take it. `sign`: a sign of life, which may use half of a tier only and
        never waits: what it leaves is for answers and cards. Raises ChannelBusy."""
        now = self._monotonic()
        self._refuse_while_held(method, channel, now)
        if self._between <= 0:
            return
        windows = self._windows(method, channel)
        if sign and any(window.used(now) >= 0.5 for window in windows):
            raise ChannelBusy("slack", max(1.0, max(window.free_at(now) for window in windows) - now))
        at = max((window.free_at(now) for window in windows), default=now)
        if at - now > (0.0 if sign else PATIENCE):
            raise ChannelBusy("slack", round(at - now, 2))
        for window in windows:
            window.take(at)
        if at > now:
            await self._sleep(at - now)
            self._refuse_while_held(method, channel, self._monotonic())  # it may have begun meanwhile

    def hold(self, method: str, channel: str, seconds: float) -> None:
        """Slack asks to wait: of posting in that channel, of any other method in the whole workspace."""
        place = _place(method, channel)
        self._held[place] = max(self._held.get(place, 0.0), self._monotonic() + seconds)
        self._held.move_to_end(place)
        while len(self._held) > _KEPT:
            self._held.popitem(last=False)

    def _refuse_while_held(self, method: str, channel: str, now: float) -> None:
        place = _place(method, channel)
        left = self._held.get(place, 0.0) - now
        if left > 0:
            raise ChannelBusy("slack", left)
        self._held.pop(place, None)

    def _windows(self, method: str, channel: str) -> list[Window]:
        windows: list[Window] = []
        known = METHODS.get(method)
        if known is not None:
            windows.append(self._methods.setdefault(method, Window(known.per_minute, MINUTE)))
        if method in _MESSAGES and channel:
            window = self._channels.setdefault(channel, Window(BURST, BURST * self._between))
            self._channels.move_to_end(channel)
            while len(self._channels) > _KEPT:
                self._channels.popitem(last=False)
            windows.append(window)
        return windows


def _place(method: str, channel: str) -> tuple[str, str]:
    return (method, channel) if method in _MESSAGES else (method, "")
