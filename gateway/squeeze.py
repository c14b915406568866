"""Making room: which markers to append when the history has grown too long.

One attempt takes these measures in order until the visible part is small enough:

1. Old bulky results become stubs, which say how to read them again.
2. The turns before the running one are summed up by a model.
3. Where no model can do that, the oldest turns are left out.
4. The bulky results of the last steps become stubs too.
5. Within the running turn, the steps before the last ones are summed up; where no model can do
   that, they are left out and their calls are named. What people have asked for stays word for word.

The log is never touched, a cut never falls between a call and its result, and every marker
shortens what is seen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from gateway.markers import (
    covered,
    cut_before,
    estimate,
    kept,
    step_starts,
    steps_dropped,
    summary_marker,
    summary_request,
    tails,
    trim_marker,
    turn_starts,
    turns_dropped,
    view,
)
from gateway.messages import Message

Summarise = Callable[[Sequence[Message]], Awaitable[str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Squeezed:
    """The markers to append, in order, and in words how room was made."""

    markers: tuple[Message, ...]
    how: str


@dataclass(slots=True)
class _Attempt:
    """The log with the markers so far. `size`: of what is visible, in estimated tokens."""

    log: list[Message]
    target: int
    size: int
    markers: list[Message] = field(default_factory=list)
    how: list[str] = field(default_factory=list)

    @property
    def enough(self) -> bool:
        return bool(self.markers) and self.size <= self.target

    def seen_with(self, marker: Message) -> int:
        return estimate(view([*self.log, marker]))

    def take(self, marker: Message | None, how: str) -> bool:
        """Append a marker if it makes room; whether it does."""
        if marker is None or (size := self.seen_with(marker)) >= self.size:
            return False
        self.log.append(marker)
        self.markers.append(marker)
        self.how.append(how)
        self.size = size
        return True


async def squeeze(
    log: Sequence[Message], target: int, summarise: Summarise, *, room: int = 400_000
) -> Squeezed | None:
    """Markers that bring the visible part to `target` estimated tokens or as near as can be; None when
    nothing shrinks it. `summarise` returns None when no model could do it; what it is given has at most
    about `room` characters."""
    at = _Attempt([*log], target, estimate(view(log)))
    at.take(trim_marker(at.log), "trimmed")
    if not at.enough:
        await _sum_up_turns(at, summarise, room)
    if not at.enough:
        _drop_turns(at)
    if not at.enough:
        at.take(trim_marker(at.log, keep_last=0), "trimmed")
    if not at.enough:
        await _cut_steps(at, summarise, room)
    if not at.markers:
        return None
    return Squeezed(markers=tuple(at.markers), how=" and ".join(dict.fromkeys(at.how)))


async def _sum_up_turns(at: _Attempt, summarise: Summarise, room: int) -> None:
    covers = cut_before(at.log, len(at.log) - 1)
    if covers <= max(1, covered(at.log)):
        return
    text = await summarise(summary_request(at.log, covers, room))
    if text is not None:
        at.take(summary_marker(text, covers), "summarised")


def _drop_turns(at: _Attempt) -> None:
    """Leave out as few of the oldest turns as it takes."""
    places = turn_starts(at.log, covered(at.log) + 1)
    if not places:
        return
    seen_from = tails(at.log)
    covers = next((place for place in places if seen_from[place] <= 4 * at.target), places[-1])
    at.take(turns_dropped(at.log, covers), "dropped")


async def _cut_steps(at: _Attempt, summarise: Summarise, room: int) -> None:
    covers = _step_to_begin_with(at)
    if covers is None:
        return
    text = await summarise(summary_request(at.log, covers, room))
    if text is None or not at.take(summary_marker(text, covers, kept(at.log, covers)), "summarised"):
        at.take(steps_dropped(at.log, covers), "dropped")


def _step_to_begin_with(at: _Attempt) -> int | None:
    """The first step of the running turn with which the rest is small enough; the end of the log when
    even the last step is not. None when the running turn has no step that could go."""
    start = max(cut_before(at.log, len(at.log)), covered(at.log))
    steps = step_starts(at.log, start)
    if not steps:
        return None
    seen_from = tails(at.log)
    half = 2 * at.target  # characters: the other half of the room is for the summary and for what is kept
    return next((place for place in steps[1:] if seen_from[place] <= half), len(at.log))
