"""Making room: which markers to append when the history has grown too long.

First old bulky results become stubs, then the older part is summed up, then whole old turns are
left out without a model. The log is never touched, and a cut never falls between a call and its
result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from gateway.history import (
    Transcript,
    covered,
    cut_before,
    oldest_turns_dropped,
    summary_marker,
    summary_request,
    trim_marker,
)
from gateway.messages import Message

Summarise = Callable[[Sequence[Message]], Awaitable[str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Squeezed:
    """The markers to append, in order, and in words how room was made."""

    markers: tuple[Message, ...]
    how: str


async def squeeze(transcript: Transcript, target: int, summarise: Summarise) -> Squeezed | None:
    """Markers that bring the visible part to `target` tokens or as near as one attempt can;
    None when nothing shrinks it. `summarise` returns None when no model could do it."""
    log = transcript.log
    before = transcript.tokens()
    trim = trim_marker(log)
    markers: tuple[Message, ...] = (trim,) if trim is not None else ()
    if markers and _after(log, markers) <= min(target, before - 1):
        return Squeezed(markers=markers, how="trimmed")
    covers = cut_before(log, len(log) - 1)
    if covers > max(1, covered(log)):
        text = await summarise(summary_request(log, covers))
        if text is not None:
            summed = (*markers, summary_marker(text, covers))
            if _after(log, summed) < before:
                return Squeezed(markers=summed, how="summarised")
    dropped = oldest_turns_dropped(log)
    if dropped is not None:
        markers = (*markers, dropped)
    if markers and _after(log, markers) < before:
        return Squeezed(markers=markers, how="trimmed" if dropped is None else "dropped")
    # One turn, and its last results are what is too long.
    trim = trim_marker(log, keep_last=0)
    if trim is not None and _after(log, (trim,)) < before:
        return Squeezed(markers=(trim,), how="trimmed")
    return None


def _after(log: Sequence[Message], markers: Sequence[Message]) -> int:
    return Transcript([*log, *markers]).tokens()
