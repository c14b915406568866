"""How fast we speak: what the library does not know of Discord's limits.

The budget of each route comes with every answer, and the library keeps to it. The limit over all
routes together it learns only by exceeding it, so that is kept here. And when Discord asks to wait for long,
nothing else of that kind goes out until then: whoever planned the call can do something better than wait.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Final

from channels.base import ChannelBusy
from channels.discord.errors import NAME
from channels.discord.limits import PER_SECOND

PATIENCE: Final = 3.0  # seconds that a call waits for its place
_RESERVE: Final = 5  # places in each second that are left free: requests do not travel equally fast
_KEPT: Final = 1000  # requests to wait that are remembered


class Window:
    """At most `most` places in any `seconds`; who comes first goes first."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._taken: deque[float] = deque(maxlen=most)

    def free_at(self, now: float) -> float:
        """When the next place is free, on the clock of `now`."""
        if len(self._taken) < self._most:
            return now
        return max(now, self._taken[0] + self._seconds)

    def take(self, at: float) -> None:
        """Take the place at that moment."""
        self._taken.append(at)

    def used(self, now: float) -> float:
        """The share of the places that is taken now, 0 to 1."""
        return sum(at > now - self._seconds for at in self._taken) / self._most


class Pacing:
    """All calls with one bot token. Interactions are answered outside of it: Discord does not count them.

    sleep, monotonic: time.
    """

    def __init__(
        self,
        sleep: Callable[[float], Awaitable[None]],
        monotonic: Callable[[], float],
        per_second: int = PER_SECOND - _RESERVE,
    ) -> None:
        self._sleep, self._monotonic = sleep, monotonic
        self._window = Window(per_second, 1.0)
        self._held: OrderedDict[tuple[str, str], float] = OrderedDict()  # (route, place) -> until when

    async def turn(self, route: str, place: str = "", *, sign: bool = False) -> None:
        """Wait for a place and take it. `sign`: a sign of life, which may use half of what there is and
        never waits: what it leaves is for answers and cards. Raises ChannelBusy."""
        now = self._monotonic()
        self._refuse_while_held(route, place, now)
        at = self._window.free_at(now)
        if sign and self._window.used(now) >= 0.5:
            raise ChannelBusy(NAME, 1.0)
        if at - now > PATIENCE:
            raise ChannelBusy(NAME, round(at - now, 2))
        self._window.take(at)
        if at > now:
            await self._sleep(at - now)
            self._refuse_while_held(route, place, self._monotonic())  # it may have begun meanwhile

    def hold(self, route: str, place: str, seconds: float) -> None:
        """Discord asks to wait with this route, in this place."""
        key = (route, place)
        self._held[key] = max(self._held.get(key, 0.0), self._monotonic() + seconds)
        self._held.move_to_end(key)
        while len(self._held) > _KEPT:
            self._held.popitem(last=False)

    def _refuse_while_held(self, route: str, place: str, now: float) -> None:
        left = self._held.get((route, place), 0.0) - now
        if left > 0:
            raise ChannelBusy(NAME, left)
        self._held.pop((route, place), None)
