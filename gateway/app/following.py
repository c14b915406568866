"""Following a session's events: the stored ones in order, and what grows between them.

Any process may run the turn: stored events come from rows, looked at when this process hears that
they changed and every POLL seconds besides. Pieces of a growing reply exist in the process that
runs the turn only; each waits here until the events before it were read.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass

from gateway.app.hub import Hub, Listener, Piece
from gateway.app.logs import Logs
from gateway.errors import StoreError
from gateway.eventlog import Stored, WireEvent, event_lines, run_begun, unpack
from gateway.events import AssistantDelta, encode_event
from gateway.log import redact
from gateway.store.base import Store
from gateway.store.rows import TurnView

POLL = 0.5  # seconds between looks at rows that another process may have written
ADVANCES = 200  # turns that one look takes at most
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Between two events: after event `index` of turn `number`, which is number `count` of its run
    (a turn that was taken over has had several)."""

    number: int = 0
    index: int = -1
    turn_id: str = ""
    run: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """One event for a reader, and the turn that it belongs to. `id` None: a piece, not stored."""

    turn_id: str
    type: str
    data: str
    id: str | None = None


class Events:
    """The events of all sessions."""

    def __init__(self, store: Store, logs: Logs, hub: Hub) -> None:
        self._store, self._logs, self._hub = store, logs, hub

    async def place(self, session_id: str, number: int, index: int) -> Place | None:
        """The place right after event `number.index`; None when there is no such event."""
        turns = await self._store.turns_after(session_id, number, 1)
        if not turns or turns[0].number != number:
            return None
        places = _places(turns[0])
        return places[index] if 0 <= index < len(places) else None

    async def ended(self, session_id: str, number: int) -> None:
        """Wait until this turn is over, without hurrying it. Raises StoreError."""
        with self._hub.listen(session_id, live=False) as listener:
            while True:
                turns = await self._store.turns_after(session_id, number, 1)
                if turns and turns[0].number == number and turns[0].state != "running":
                    return
                await listener.wait(POLL)

    async def follow(self, session_id: str, place: Place) -> AsyncIterator[tuple[Followed, ...]]:
        """What comes after a place, without end: batches, each at once. It ends early only when the
        store fails; the reader goes on later from the last id that it saw."""
        waiting: list[Piece] = []
        with self._hub.listen(session_id) as listener:
            while True:
                try:
                    batch, place = await self._look(session_id, place, listener, waiting)
                except StoreError as error:
                    _log.warning("a reader of events was let go: %s", redact(str(error)))
                    return
                if batch:
                    yield tuple(batch)
                if not listener.stale:
                    await listener.wait(POLL)

    async def _look(
        self, session_id: str, place: Place, listener: Listener, waiting: list[Piece]
    ) -> tuple[list[Followed], Place]:
        batch: list[Followed] = []
        _add(waiting, listener.take())
        if listener.stale:
            listener.stale = False
            events, more = await self._stored(session_id, place)
            listener.stale = listener.stale or more
            for event, after in events:
                batch += _due(waiting, place)
                batch.append(Followed(turn_id=after.turn_id, type=event.type, data=event.data, id=event.id))
                place = after
                _forget(waiting, place, done=event.type == "done")
        batch += _due(waiting, place)
        return batch, place

    async def _stored(self, session_id: str, place: Place) -> tuple[list[tuple[WireEvent, Place]], bool]:
        """The stored events after a place, each with the place after it; whether there are more."""
        turns = await self._store.turns_after(session_id, place.number, ADVANCES)
        news = [turn for turn in turns if len(event_lines(turn)) > _skip(turn, place)]
        if not news:
            return [], False
        results: dict[str, str] = {}
        if any('["result",' in turn.events for turn in news):
            # Before the log: a result moves from the journal into the log, never back.
            calls = await self._store.calls(session_id)
            results = {call.call_id: call.result.content for call in calls if call.result is not None}
        first, log = news[0].first_seq, await self._logs.read(session_id)
        results |= {r.tool_use_id: r.content for message in log[first:] for r in message.results}
        events: list[tuple[WireEvent, Place]] = []
        for turn in news:
            skip, stored = _skip(turn, place), Stored(turn=turn, log=log, first_seq=0, results=results)
            events += zip(unpack(stored, skip=skip), _places(turn)[skip:], strict=True)
        return events, len(turns) == ADVANCES


def _skip(turn: TurnView, place: Place) -> int:
    return place.index + 1 if turn.number == place.number else 0


def _places(turn: TurnView) -> list[Place]:
    """The place after each of the turn's events."""
    places, run, count = [], 0, 0
    for index, line in enumerate(event_lines(turn)):
        begun = run_begun(line)
        run, count = (run, count + 1) if begun is None else (begun, 1)
        places.append(Place(number=turn.number, index=index, turn_id=turn.id, run=run, count=count))
    return places


def _add(waiting: list[Piece], pieces: list[Piece]) -> None:
    """A turn that was taken up again says everything again: pieces of its earlier runs go."""
    for piece in pieces:
        waiting[:] = [w for w in waiting if w.turn_id != piece.turn_id or w.run >= piece.run]
        waiting.append(piece)


def _due(waiting: list[Piece], place: Place) -> list[Followed]:
    """Take out the pieces that come right here, as one; before it an empty one where the reply began anew."""
    at = (place.turn_id, place.run, place.count)
    here = [p for p in waiting if (p.turn_id, p.run, p.after) == at]
    if not here:
        return []
    waiting[:] = [p for p in waiting if p not in here]
    texts = [p.text for p in here]
    anew = "" in texts  # what came before the last beginning is void
    if anew:
        texts = texts[len(texts) - texts[::-1].index("") :]
    pieces = [""] * anew + ["".join(texts)] * bool(texts)
    return [
        Followed(turn_id=place.turn_id, type="assistant:delta", data=encode_event(AssistantDelta(text=text)))
        for text in pieces
    ]


def _forget(waiting: list[Piece], place: Place, *, done: bool) -> None:
    """Drop the pieces of replies that are stored by now."""
    now = (place.run, place.count)
    waiting[:] = [p for p in waiting if p.turn_id != place.turn_id or ((p.run, p.after) >= now and not done)]
