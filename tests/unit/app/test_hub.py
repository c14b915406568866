"""What listeners in the same process hear of a running turn."""

from __future__ import annotations

import asyncio
import json

from gateway.app.following import Place, _due
from gateway.app.hub import Hub, Piece
from gateway.events import AssistantDelta, AssistantText, Event, SessionStarted, TurnDone
from gateway.messages import Actor, ThreadKey
from gateway.store.rows import Claim, Lease

CLAIM = Claim(
    kind="message",
    lease=Lease(session_id="s", turn_id="s.1", runner="r", epoch=1),
    key=ThreadKey("web", "local", "c", ""),
    agent="assistant",
    tenant="",
    requester=Actor("web", "", "local"),
    message_id="m",
    log_length=1,
)
BEGUN = SessionStarted(session_id="s", turn_id="s.1", agent="assistant")
DONE = TurnDone(
    session_id="s", turn_id="s.1", outcome="completed", status="completed", text="", pending=[], exit_code=0
)


class Run:
    """A turn that runs: what it says, and how often its events were stored ahead."""

    def __init__(self, hub: Hub, claim: Claim = CLAIM) -> None:
        self.hub, self.claim, self.stored = hub, claim, 0
        hub.begin(claim, self._store)

    def _store(self) -> None:
        self.stored += 1

    def say(self, *events: Event) -> None:
        for event in events:
            self.hub.event(self.claim, event)


async def test_a_slow_reader_gets_the_pieces_of_a_reply_as_one() -> None:
    hub = Hub()
    run = Run(hub)
    with hub.listen("s") as listener:
        run.say(BEGUN, AssistantDelta(text="a"), AssistantDelta(text="b"))
        run.say(AssistantText(text="ab"), AssistantDelta(text="c"))
        assert listener.take() == [Piece("s.1", 0, 1, "ab"), Piece("s.1", 0, 2, "c")]
        assert listener.take() == []


async def test_whoever_joins_late_hears_what_has_grown_so_far_and_nothing_older() -> None:
    hub = Hub()
    run = Run(hub)
    run.say(BEGUN, AssistantDelta(text="old"), AssistantText(text="old"), AssistantDelta(text="new"))
    with hub.listen("s") as listener:
        run.say(AssistantDelta(text="er"))
        assert listener.take() == [Piece("s.1", 0, 2, "newer")]
    run.say(AssistantText(text="newer"), DONE)
    with hub.listen("s") as listener:
        assert listener.take() == []


async def test_a_reply_that_begins_anew_is_told_as_such_and_late_listeners_hear_the_new_one_only() -> None:
    hub = Hub()
    run = Run(hub)
    with hub.listen("s") as listener:
        run.say(BEGUN, *(AssistantDelta(text=text) for text in ("half a", " reply", "", "the", " whole")))
        pieces = listener.take()
        assert [piece.text for piece in pieces] == ["half a reply", "", "the whole"]
        at = Place(number=1, turn_id="s.1", count=1)
        told = [json.loads(event.data)["text"] for event in _due(pieces, at)]
        assert (told, pieces) == (["", "the whole"], [])
    with hub.listen("s") as late:
        assert [piece.text for piece in late.take()] == ["the whole"]


async def test_events_are_stored_ahead_once_per_step_and_only_while_somebody_watches() -> None:
    hub = Hub()
    run = Run(hub)
    run.say(BEGUN)
    with hub.listen("s", live=False):
        run.say(AssistantText(text="a"))
        await asyncio.sleep(0)
        assert run.stored == 0
    with hub.listen("s"):
        run.say(AssistantText(text="b"), AssistantText(text="c"))
        await asyncio.sleep(0)
        assert run.stored == 1
        run.say(AssistantDelta(text="d"))
        await asyncio.sleep(0)
        assert run.stored == 1


async def test_a_run_that_lost_its_turn_is_not_heard_any_more() -> None:
    hub = Hub()
    lost = Run(hub)
    taken = Claim(
        kind="recover",
        lease=Lease(session_id="s", turn_id="s.1", runner="r", epoch=2),
        key=CLAIM.key,
        agent="assistant",
        tenant="",
        requester=CLAIM.requester,
        message_id="m",
        log_length=1,
    )
    again = Run(hub, taken)
    with hub.listen("s") as listener:
        lost.say(BEGUN, AssistantDelta(text="ghost"))
        again.say(BEGUN, AssistantDelta(text="real"))
        assert listener.take() == [Piece("s.1", 2, 1, "real")]


async def test_a_nudge_reaches_the_sessions_listeners_and_the_pages() -> None:
    told: list[str] = []
    hub = Hub(told.append)
    with hub.listen("s") as listener, hub.listen("other") as other:
        listener.stale = other.stale = False
        hub.nudge("s")
        assert (listener.stale, other.stale) == (True, False)
        await listener.wait(10)
    assert told == ["s"]
