"""Sessions of subagents: what every store promises."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gateway.approvals import Approve, Deny, Pending, TurnCheckpoint
from gateway.errors import LeaseLost
from gateway.store.base import Store
from gateway.store.rows import ChildBegun, ChildOrder, Claim, Incoming, Park
from tests.contracts.store_scene import (
    ANN,
    KEY,
    StoreHarness,
    answer,
    answered,
    begun,
    end,
    finished,
    incoming,
    parked,
    pending,
    replied,
    row,
    say,
    word,
)


def order(claim: Claim, call_id: str, harness: StoreHarness, **changes: object) -> ChildOrder:
    """A call of the subagent `ops`, within all limits unless `changes` say otherwise."""
    given = ChildOrder(
        lease=claim.lease,
        call_id=call_id,
        agent="ops",
        text="do it",
        max_depth=3,
        max_children=4,
        max_calls=20,
        rate=30,
        at=harness.clock.now(),
    )
    return replace(given, **changes)


async def called(store: Store, harness: StoreHarness, *calls: str) -> Claim:
    """A turn whose reply calls subagents."""
    claim = await begun(store, harness.clock)
    await replied(store, claim, *(row(c, "ops", repeatable=True) for c in calls))
    return claim


async def child(store: Store, claim: Claim, call_id: str, harness: StoreHarness) -> Claim:
    """The claim of the conversation that a call begins."""
    begun_child = await store.begin_child(order(claim, call_id, harness))
    assert begun_child.claim is not None
    return begun_child.claim


async def stopped(store: Store, claim: Claim, call_id: str, harness: StoreHarness) -> Pending:
    """Have a subagent's turn stop for a person."""
    pays = row(call_id, "pay", state="waiting")
    await replied(store, claim, pays)
    asked = pending(pays)
    await parked(store, claim, harness.clock, asked)
    return asked


async def waits_for(store: Store, claim: Claim, below: Claim, call_id: str, *asked: Pending) -> bool:
    """Have the caller stop for what its subagent waits for; whether it has something to do at once."""
    theirs = [replace(p, call_id=call_id, session=below.lease.session_id) for p in asked]
    checkpoint = TurnCheckpoint(outstanding={p.pending_id: p for p in theirs})
    stop = Park(end=end("pending_approval"), checkpoint=checkpoint, new_pendings=())
    return (await store.park(claim.lease, stop, 0.0)).more


class ChildContract:
    """See gateway.store.base: begin_child, child_state, and what finish, park, stop and resolve do to
    callers and to what works below."""

    async def test_a_call_begins_a_session_that_knows_where_it_belongs(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await called(store, harness, "c1")
        below = await store.begin_child(order(claim, "c1", harness, only=("read_*",)))
        assert below.claim is not None and below.refused == ""
        begun_turn = below.claim
        assert (begun_turn.parent, begun_turn.root) == (claim.lease.session_id,) * 2
        assert (begun_turn.depth, begun_turn.only) == (1, (("read_*",),))
        assert (begun_turn.agent, begun_turn.key, begun_turn.requester) == ("ops", KEY, ANN)
        assert begun_turn.message is not None and begun_turn.message.text == "do it"
        view = await store.session(below.session_id)
        assert view is not None and (view.parent, view.root) == (claim.lease.session_id,) * 2
        assert [s.id for s in await store.sessions()] == [claim.lease.session_id]
        here = await store.session_of(KEY)
        assert here is not None and here.id == claim.lease.session_id

    async def test_narrowing_adds_up_from_level_to_level(self, harness: StoreHarness, store: Store) -> None:
        claim = await called(store, harness, "c1")
        upper = (await store.begin_child(order(claim, "c1", harness, only=("a*", "b")))).claim
        assert upper is not None
        lower = (await store.begin_child(order(upper, "c1", harness, only=("ab*",)))).claim
        assert lower is not None
        assert (lower.depth, lower.only) == (2, (("a*", "b"), ("ab*",)))
        assert lower.root == claim.lease.session_id

    async def test_what_a_conversation_was_narrowed_to_holds_when_it_is_gone_on_with(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await called(store, harness, "c1", "c2")
        first = (await store.begin_child(order(claim, "c1", harness, only=("a*",)))).claim
        assert first is not None
        await finished(store, first, harness.clock)
        await answered(store, claim, answer("c1"), answer("c2"))
        await replied(store, claim, row("c3", "ops", repeatable=True))
        below = order(claim, "c3", harness, session=first.lease.session_id, only=("ab*",))
        again = (await store.begin_child(below)).claim
        assert again is not None and again.lease.session_id == first.lease.session_id
        assert again.only == (("a*",), ("ab*",))

    async def test_the_same_call_finds_the_same_session_also_in_another_process(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await called(store, harness, "c1")
        first = await store.begin_child(order(claim, "c1", harness))
        again = await store.begin_child(order(claim, "c1", harness, text="other", max_calls=1))
        assert again == ChildBegun(session_id=first.session_id)
        await harness.kill(store)
        other = await harness.open()
        await other.reap(harness.clock.now())
        taken = await other.claim(claim.lease.session_id, harness.clock.now())
        assert taken is not None and taken.kind == "recover"
        found = await other.begin_child(order(taken, "c1", harness))
        assert found == ChildBegun(session_id=first.session_id)
        below = await other.claim(first.session_id, harness.clock.now())
        assert below is not None and (below.kind, below.parent) == ("recover", claim.lease.session_id)

    async def test_who_lost_the_lease_begins_nothing(self, harness: StoreHarness, store: Store) -> None:
        claim = await called(store, harness, "c1")
        stale = replace(claim.lease, epoch=claim.lease.epoch - 1)
        with pytest.raises(LeaseLost):
            await store.begin_child(order(claim, "c1", harness, lease=stale))
        assert await harness.rows("sessions") == 1

    @pytest.mark.parametrize(
        ("limit", "why"),
        [
            ({"max_depth": 0}, "depth"),
            ({"max_children": 1}, "children"),
            ({"max_calls": 1}, "calls"),
            ({"rate": 1}, "rate"),
            ({"session": "s_nobody"}, "session"),
        ],
    )
    async def test_what_a_limit_forbids_is_not_begun(
        self, harness: StoreHarness, store: Store, limit: dict[str, object], why: str
    ) -> None:
        claim = await called(store, harness, "c1", "c2")
        await store.begin_child(order(claim, "c1", harness))
        refused = await store.begin_child(order(claim, "c2", harness, **limit))
        assert refused == ChildBegun(refused=why)  # type: ignore[arg-type]
        assert await harness.rows("sessions") == 2

    async def test_limits_are_those_of_a_turn_and_of_a_minute(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await called(store, harness, "c1")
        await finished(store, await child(store, claim, "c1", harness), harness.clock)
        await answered(store, claim, answer("c1"))
        await finished(store, claim, harness.clock)
        claim = await called(store, harness, "c2", "c3")
        assert (await store.begin_child(order(claim, "c2", harness, max_calls=1))).refused == ""
        assert (await store.begin_child(order(claim, "c3", harness, rate=2))).refused == "rate"
        harness.clock.advance(61)
        assert (await store.begin_child(order(claim, "c3", harness, rate=2))).refused == ""

    async def test_one_conversation_takes_several_calls_one_after_the_other(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await called(store, harness, "c1", "c2")
        below = await child(store, claim, "c1", harness)
        session = below.lease.session_id
        busy = await store.begin_child(order(claim, "c2", harness, session=session))
        assert busy.refused == "busy"
        await finished(store, below, harness.clock)
        same_step = await store.begin_child(order(claim, "c2", harness, session=session))
        assert same_step.refused == "busy"
        await answered(store, claim, answer("c1"), answer("c2"))
        await replied(store, claim, row("c3", "ops", repeatable=True))
        other = await store.begin_child(order(claim, "c3", harness, session=session, agent="eyes"))
        assert other.refused == "session"
        more = await store.begin_child(order(claim, "c3", harness, session=session, text="more"))
        assert more.session_id == session and more.claim is not None and more.claim.log_length == 3

    async def test_how_far_it_has_come_can_be_read(self, harness: StoreHarness, store: Store) -> None:
        claim = await called(store, harness, "c1")
        below = await child(store, claim, "c1", harness)
        session = below.lease.session_id
        state = await store.child_state(session)
        assert state is not None and state.status == "running" and not state.ended
        asked = await stopped(store, below, "x", harness)
        state = await store.child_state(session)
        assert state is not None and [p.pending_id for p in state.waits] == [asked.pending_id]
        await word(store, asked, harness.clock)
        state = await store.child_state(session)
        assert state is not None and state.status == "ready" and state.waits == ()
        resumed = await store.claim(session, harness.clock.now())
        assert resumed is not None and resumed.told == (asked.pending_id,)
        await answered(store, resumed, answer("x"))
        await finished(store, resumed, harness.clock, "there you are")
        state = await store.child_state(session)
        assert state is not None and state.ended
        assert (state.outcome, state.text) == ("completed", "there you are")
        assert await store.child_state("s_nobody") is None

    async def test_what_waits_below_is_the_outermost_sessions(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await called(store, harness, "c1")
        below = await child(store, claim, "c1", harness)
        lower = await child(store, below, "c1", harness)
        asked = await stopped(store, lower, "x", harness)
        root = claim.lease.session_id
        (record,) = await store.pendings(session_id=root)
        assert (record.id, record.home, record.home_call) == (asked.pending_id, root, "c1")
        assert (record.agent, record.works_for) == ("ops", "helper")
        assert [p.id for p in await store.pendings(key=KEY)] == [record.id]
        view = await store.session(root)
        assert view is not None and view.open_pendings == 1
        queued = await say(store, "well?", harness.clock)
        assert queued.waiting_for == (asked.pending_id,)

    async def test_a_caller_that_waits_is_set_going_by_every_move_below(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await called(store, harness, "c1")
        root, below = claim.lease.session_id, await child(store, claim, "c1", harness)
        asked = await stopped(store, below, "x", harness)
        assert not await waits_for(store, claim, below, "c1", asked)
        await word(store, asked, harness.clock)
        again = await store.claim(below.lease.session_id, harness.clock.now())
        assert again is not None and await store.claim(root, harness.clock.now()) is None
        await answered(store, again, answer("x"))
        pays = row("y", "pay", state="waiting")
        await replied(store, again, pays)
        ended = await parked(store, again, harness.clock, pending(pays))
        assert ended.wakes == (root,)
        assert await store.claimable(harness.clock.now()) == [root]
        resumed = await store.claim(root, harness.clock.now())
        assert resumed is not None and resumed.kind == "resume"

    async def test_the_end_below_sets_the_caller_going(self, harness: StoreHarness, store: Store) -> None:
        claim = await called(store, harness, "c1")
        root, below = claim.lease.session_id, await child(store, claim, "c1", harness)
        asked = await stopped(store, below, "x", harness)
        await waits_for(store, claim, below, "c1", asked)
        await word(store, asked, harness.clock)
        again = await store.claim(below.lease.session_id, harness.clock.now())
        assert again is not None
        await answered(store, again, answer("x"))
        assert (await finished(store, again, harness.clock)).wakes == (root,)
        assert await store.claim(root, harness.clock.now()) is not None

    async def test_a_move_below_while_the_caller_stops_is_not_lost(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await called(store, harness, "c1")
        below = await child(store, claim, "c1", harness)
        asked = await stopped(store, below, "x", harness)
        await word(store, asked, harness.clock)
        assert await waits_for(store, claim, below, "c1", asked)
        assert claim.lease.session_id in await store.claimable(harness.clock.now())

    async def test_a_stop_closes_everything_below(self, harness: StoreHarness, store: Store) -> None:
        claim = await called(store, harness, "c1", "c2")
        waiting_one = await child(store, claim, "c1", harness)
        running_one = await child(store, claim, "c2", harness)
        lower = await child(store, running_one, "c1", harness)
        asked = await stopped(store, waiting_one, "x", harness)
        done = await store.stop(KEY, "", "Ann", ANN, harness.clock.now())
        assert done.running and [p.id for p in done.closed] == [asked.pending_id]
        assert set(await store.cancels()) == {
            claim.lease.session_id,
            running_one.lease.session_id,
            lower.lease.session_id,
        }
        again = await store.claim(waiting_one.lease.session_id, harness.clock.now())
        assert again is not None and again.cancel.startswith("/stop by Ann")
        late = await word(store, asked, harness.clock)
        assert late.outcome == "superseded"

    async def test_an_answered_call_has_nothing_below_any_more(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await called(store, harness, "c1", "c2")
        first, second = [await child(store, claim, c, harness) for c in ("c1", "c2")]
        asked = await stopped(store, first, "x", harness)
        await answered(store, claim, answer("c1"), answer("c2"))
        record = await store.pending(asked.pending_id)
        assert record is not None and record.state == "superseded"
        assert set(await store.cancels()) == {second.lease.session_id}

    async def test_words_with_a_denial_wait_in_the_subagents_session(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await called(store, harness, "c1")
        root, below = claim.lease.session_id, await child(store, claim, "c1", harness)
        asked = await stopped(store, below, "x", harness)
        await waits_for(store, claim, below, "c1", asked)
        await word(store, asked, harness.clock, Deny(feedback="otherwise"))
        again = await store.claim(below.lease.session_id, harness.clock.now())
        assert again is not None
        await answered(store, again, answer("x", is_error=True))
        ended = await store.finish(again.lease, end("denied"), harness.clock.now())
        assert ended.more and ended.wakes == ()
        state = await store.child_state(below.lease.session_id)
        assert state is not None and not state.ended
        goes_on = await store.claim(below.lease.session_id, harness.clock.now())
        assert goes_on is not None and goes_on.message is not None
        assert (goes_on.message.text, goes_on.parent) == ("otherwise", root)

    async def test_for_this_session_means_the_outermost_one(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await called(store, harness, "c1", "c2")
        below = await child(store, claim, "c1", harness)
        asked = await stopped(store, below, "x", harness)
        await word(store, asked, harness.clock, Approve(scope="session"))
        other = await child(store, claim, "c2", harness)
        assert [g.session_id for g in other.grants] == [claim.lease.session_id]
        now = harness.clock.now()
        listed = await store.grants(now, agent="helper", session_id=claim.lease.session_id)
        assert [g.grant.agent for g in listed] == ["ops"]

    async def test_a_message_that_supersedes_closes_what_waits_below(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await called(store, harness, "c1")
        below = await child(store, claim, "c1", harness)
        asked = await stopped(store, below, "x", harness)
        await waits_for(store, claim, below, "c1", asked)
        newer: Incoming = incoming("instead", harness.clock, supersedes=frozenset({"helper"}), by="Ann")
        accepted = await store.accept(newer)
        assert accepted.closed == 1 and accepted.waiting_for == ()
