"""Who listens to which session in this process: nudges that rows changed, and what is not stored."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.events import AssistantDelta, AssistantText, Event, SessionStarted, TurnDone
from gateway.store.rows import Claim

BACKLOG = 1_000  # deltas that a slow listener may fall behind before it misses some


class Listener:
    """One reader's side: `wait` returns at the next nudge or delta; deltas queue up."""

    __slots__ = ("_changed", "deltas", "stale")

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self.deltas: list[str] = []
        self.stale = True

    def nudge(self) -> None:
        """There is something new to read in the rows."""
        self.stale = True
        self._changed.set()

    def delta(self, text: str) -> None:
        """A piece of a growing reply."""
        if len(self.deltas) < BACKLOG:
            self.deltas.append(text)
        self._changed.set()

    async def wait(self, seconds: float) -> None:
        """Until something happens, at most `seconds` (another process may have written)."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            self.stale = True
        self._changed.clear()


class Hub:
    """The listeners of all sessions, and of the lists of sessions and pendings ("")."""

    def __init__(self) -> None:
        self._listeners: defaultdict[str, set[Listener]] = defaultdict(set)
        self._growing: dict[str, str] = {}

    @contextmanager
    def listen(self, session_id: str) -> Iterator[Listener]:
        """Listen until the block ends. What a reply has grown to so far comes first."""
        listener = Listener()
        if growing := self._growing.get(session_id):
            listener.delta(growing)
        self._listeners[session_id].add(listener)
        try:
            yield listener
        finally:
            self._listeners[session_id].discard(listener)
            if not self._listeners[session_id]:
                del self._listeners[session_id]

    def event(self, claim: Claim, event: Event) -> None:
        """From a running turn, before it is stored."""
        session_id = claim.lease.session_id
        match event:
            case AssistantDelta():
                self._growing[session_id] = self._growing.get(session_id, "") + event.text
                for listener in self._listeners.get(session_id, ()):
                    listener.delta(event.text)
            case AssistantText() | TurnDone() | SessionStarted():
                self._growing.pop(session_id, None)

    def nudge(self, session_id: str) -> None:
        """The session's rows changed."""
        for name in (session_id, ""):
            for listener in self._listeners.get(name, ()):
                listener.nudge()
