"""Who listens to which session in this process: nudges that rows changed, and what is not stored.

A reply that grows is not stored. Its pieces say after how many events of their run they come, so
that a reader who follows the stored events can put each piece into its place. While somebody
listens, the events themselves are stored without waiting for the turn's next write.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from gateway.events import AssistantDelta, Event, TurnDone
from gateway.store.rows import Claim


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a growing reply, of one run of a turn (see Claim.run). `after` counts the events of
    that run that come before the reply. Without text: it begins anew."""

    turn_id: str
    run: int
    after: int
    text: str


class Listener:
    """One reader's side: `wait` returns at the next nudge or piece; pieces queue up."""

    __slots__ = ("_changed", "_pieces", "live", "stale")

    def __init__(self, *, live: bool) -> None:
        self._changed = asyncio.Event()
        self._pieces: list[Piece] = []
        self.live, self.stale = live, True

    def nudge(self) -> None:
        """There is something new to read in the rows."""
        self.stale = True
        self._changed.set()

    def piece(self, piece: Piece) -> None:
        """A reply has grown. A slow reader gets several pieces as one."""
        last = self._pieces[-1] if self._pieces else None
        if last is not None and last.text and piece.text and replace(last, text=piece.text) == piece:
            self._pieces[-1] = replace(last, text=last.text + piece.text)
        else:
            self._pieces.append(piece)
        self._changed.set()

    def take(self) -> list[Piece]:
        """The pieces since the last call."""
        pieces, self._pieces = self._pieces, []
        return pieces

    async def wait(self, seconds: float) -> None:
        """Until something happens, at most `seconds` (another process may have written)."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            self.stale = True
        self._changed.clear()


class _Run:
    """A turn that runs here, as far as listeners care."""

    __slots__ = ("_run", "_scheduled", "_store", "_turn_id", "count", "dirty", "grown")

    def __init__(self, claim: Claim, store: Callable[[], None]) -> None:
        self._turn_id, self._run, self._store = claim.lease.turn_id, claim.run, store
        self.count, self.grown, self.dirty, self._scheduled = 0, "", False, False

    def runs(self, claim: Claim) -> bool:
        """Whether this is the run that the claim set off."""
        return (self._turn_id, self._run) == (claim.lease.turn_id, claim.run)

    def piece(self, text: str) -> Piece:
        """A piece of the reply that grows now."""
        return Piece(self._turn_id, self._run, self.count, text)

    def store_soon(self) -> None:
        """Have the events stored once the running step lets go of the loop."""
        if self.dirty and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._now)

    def _now(self) -> None:
        self._scheduled = self.dirty = False
        self._store()


class Hub:
    """The listeners of all sessions. `pages`: told of every session that changed."""

    def __init__(self, pages: Callable[[str], None] = lambda session_id: None) -> None:
        self._pages = pages
        self._listeners: defaultdict[str, set[Listener]] = defaultdict(set)
        self._runs: dict[str, _Run] = {}

    @contextmanager
    def listen(self, session_id: str, *, live: bool = True) -> Iterator[Listener]:
        """Listen until the block ends. What a reply has grown to so far comes first. Not `live`:
        only for nudges; the turn need not hurry for this one."""
        listener = Listener(live=live)
        run = self._runs.get(session_id) if live else None
        if run is not None:
            if run.grown:
                listener.piece(run.piece(run.grown))
            run.store_soon()
        self._listeners[session_id].add(listener)
        try:
            yield listener
        finally:
            self._listeners[session_id].discard(listener)
            if not self._listeners[session_id]:
                del self._listeners[session_id]

    def begin(self, claim: Claim, store_events: Callable[[], None]) -> None:
        """A turn begins to run here, or goes on."""
        self._runs[claim.lease.session_id] = _Run(claim, store_events)
        self.nudge(claim.lease.session_id)

    def event(self, claim: Claim, event: Event) -> None:
        """From a running turn, before it is stored."""
        session_id = claim.lease.session_id
        run = self._runs.get(session_id)
        if run is None or not run.runs(claim):
            return
        listeners = self._listeners.get(session_id)
        live = [listener for listener in listeners if listener.live] if listeners else ()
        if isinstance(event, AssistantDelta):
            run.grown = run.grown + event.text if event.text else ""
            for listener in live:
                listener.piece(run.piece(event.text))
        else:
            run.count, run.grown, run.dirty = run.count + 1, "", True
        if isinstance(event, TurnDone):
            del self._runs[session_id]
        elif live:
            run.store_soon()

    def nudge(self, session_id: str) -> None:
        """The session's rows changed."""
        for listener in self._listeners.get(session_id, ()):
            listener.nudge()
        self._pages(session_id)
