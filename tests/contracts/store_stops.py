"""/stop and /new: what every store promises about ending what runs and what waits."""

from __future__ import annotations

from gateway.approvals import Supersede
from gateway.store.base import Store
from gateway.store.rows import StopDone
from tests.contracts.store_scene import (
    ANN,
    KEY,
    OTHER,
    StoreHarness,
    answer,
    answered,
    begun,
    card,
    finished,
    parked,
    pending,
    replied,
    row,
    say,
    waiting,
    word,
)


class StopContract:
    """See gateway.store.base.Store.stop and fresh_session."""

    async def test_c076_a_running_turn_is_asked_to_stop_wherever_it_runs(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        other = await harness.open()
        done = await other.stop(KEY, "", "Ann", ANN, harness.clock.now())
        assert (done.session_id, done.running, done.closed) == (claim.lease.session_id, True, ())
        assert await store.cancels() == {claim.lease.session_id: "/stop by Ann"}
        assert await other.cancels() == {}
        await finished(store, claim, harness.clock)
        assert await store.cancels() == {}
        assert (await begun(store, harness.clock, "hello")).cancel == ""

    async def test_a_stop_outlives_the_runner_that_should_have_heard_it(
        self, harness: StoreHarness, store: Store
    ) -> None:
        doomed = await harness.open()
        claim = await begun(doomed, harness.clock)
        await store.stop(KEY, "", "Ann", ANN, harness.clock.now())
        await harness.kill(doomed)
        await store.reap(harness.clock.now())
        taken = await store.claim(claim.lease.session_id, harness.clock.now())
        assert taken is not None and taken.cancel == "/stop by Ann"

    async def test_c076_what_waits_is_closed_and_its_cards_redrawn(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, count=2, cards=True, expires_at=harness.clock.now() + 60)
        following = await store.sent(stop.ended.deliveries[0].id, "1", harness.clock.now())
        await store.sent(following[0].id, "2", harness.clock.now())
        done = await store.stop(KEY, "", "Ann", ANN, harness.clock.now())
        assert not done.running
        assert {r.id for r in done.closed} == {p.pending_id for p in stop.pendings}
        assert all(r.decision == Supersede(by="/stop") for r in done.closed)
        assert await store.next_timer_at() is None
        redraws = await store.due_deliveries(harness.clock.now())
        redraws += await store.sent(redraws[0].id, None, harness.clock.now())
        assert {(d.kind, d.ref) for d in redraws} == {("redraw", "1"), ("redraw", "2")}
        claim = await store.claim(stop.session_id, harness.clock.now())
        assert claim is not None and (claim.kind, claim.cancel) == ("resume", "/stop by Ann")
        late = await word(store, stop.pendings[0], harness.clock)
        assert late.outcome == "superseded"

    async def test_a_card_that_was_asked_for_while_the_stop_came_in_does_not_outlive_the_turn(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        call = row("a", state="waiting")
        await replied(store, claim, call)
        await store.stop(KEY, "", "Ann", ANN, harness.clock.now())
        asked = pending(call)
        ended = await parked(store, claim, harness.clock, asked, outgoing=[card(asked)])
        assert ended.more
        await store.sent(ended.deliveries[0].id, "77", harness.clock.now())
        resumed = await store.claim(claim.lease.session_id, harness.clock.now())
        assert resumed is not None and resumed.cancel == "/stop by Ann"
        await answered(store, resumed, answer("a", "stopped", is_error=True))
        await finished(store, resumed, harness.clock)
        assert (await word(store, asked, harness.clock)).outcome == "superseded"
        assert [d.ref for d in await store.due_deliveries(harness.clock.now())] == ["77"]
        view = await store.session(claim.lease.session_id)
        assert view is not None and (view.status, view.open_pendings) == ("idle", 0)

    async def test_a_decided_turn_that_has_not_gone_on_yet_is_stopped_too(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock)
        await word(store, stop.pendings[0], harness.clock)
        done = await store.stop(KEY, "", "Ann", ANN, harness.clock.now())
        assert done.running
        claim = await store.claim(stop.session_id, harness.clock.now())
        assert claim is not None and claim.cancel == "/stop by Ann"

    async def test_where_nothing_happens_there_is_nothing_to_stop(
        self, harness: StoreHarness, store: Store
    ) -> None:
        assert await store.stop(KEY, "", "Ann", ANN, harness.clock.now()) == StopDone(session_id="")
        claim = await begun(store, harness.clock)
        await finished(store, claim, harness.clock)
        done = await store.stop(KEY, "", "Ann", ANN, harness.clock.now())
        assert done == StopDone(session_id=claim.lease.session_id)
        assert (await begun(store, harness.clock)).cancel == ""

    async def test_a_session_named_by_id_wins_over_the_thread(
        self, harness: StoreHarness, store: Store
    ) -> None:
        here = await begun(store, harness.clock)
        await begun(store, harness.clock, key=OTHER)
        done = await store.stop(OTHER, here.lease.session_id, "Ann", ANN, harness.clock.now())
        assert done.session_id == here.lease.session_id
        assert list(await store.cancels()) == [here.lease.session_id]

    async def test_a_stop_meant_for_one_turn_leaves_a_later_one_alone(
        self, harness: StoreHarness, store: Store
    ) -> None:
        first = await begun(store, harness.clock)
        await finished(store, first, harness.clock)
        second = await begun(store, harness.clock)
        session, now = first.lease.session_id, harness.clock.now()
        done = await store.stop(KEY, session, "Ann", ANN, now, turn_id=first.lease.turn_id)
        assert not done.running and await store.cancels() == {}
        done = await store.stop(KEY, session, "Ann", ANN, now, turn_id=second.lease.turn_id)
        assert done.running

    async def test_messages_that_wait_survive_a_stop(self, harness: StoreHarness, store: Store) -> None:
        claim = await begun(store, harness.clock)
        await say(store, "next", harness.clock)
        done = await store.stop(KEY, "", "Ann", ANN, harness.clock.now())
        assert done.queued == 1
        assert (await finished(store, claim, harness.clock)).more

    async def test_a_fresh_session_takes_along_what_waits_and_closes_the_rest(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock)
        await say(store, "next", harness.clock)
        done = await store.fresh_session(KEY, "ops", "acme", "Ann", ANN, harness.clock.now())
        assert (done.session_id, done.queued) == (stop.session_id, 1)
        assert [r.id for r in done.closed] == [stop.pendings[0].pending_id]
        new = await store.session_of(KEY)
        assert new is not None and (new.id, new.agent) == (done.new_session_id, "ops")
        claim = await store.claim(new.id, harness.clock.now())
        assert claim is not None and claim.message is not None
        assert (claim.message.text, claim.tenant, claim.agent) == ("next", "acme", "ops")
        assert (await store.session(stop.session_id)) is not None
        old = await store.claim(stop.session_id, harness.clock.now())
        assert old is not None and old.cancel == "/new by Ann"
        late = await word(store, stop.pendings[0], harness.clock)
        assert late.outcome == "superseded" and late.record is not None
        assert late.record.decision == Supersede(by="/new")

    async def test_a_fresh_session_in_a_silent_thread_is_just_one(
        self, harness: StoreHarness, store: Store
    ) -> None:
        done = await store.fresh_session(KEY, "ops", "", "Ann", ANN, harness.clock.now())
        assert done == StopDone(session_id="", new_session_id=done.new_session_id)
        accepted = await say(store, "hello", harness.clock)
        assert accepted.session_id == done.new_session_id

    async def test_a_chosen_model_is_in_every_claim_of_its_session_from_then_on(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        session = claim.lease.session_id
        assert claim.model == ""
        assert await store.set_model(session, "large", "Ann", ANN, harness.clock.now())
        assert await store.set_model("s_none", "large", "Ann", ANN, harness.clock.now()) is False
        view = await store.session(session)
        assert view is not None and view.model == "large"
        await say(store, "waits", harness.clock)
        await finished(store, claim, harness.clock)
        queued = await store.claim(session, harness.clock.now())
        assert queued is not None and queued.model == "large"
        await store.release(queued.lease)
        again = await store.claim(session, harness.clock.now())
        assert again is not None and (again.kind, again.model) == ("recover", "large")
        await finished(store, again, harness.clock)
        assert (await begun(store, harness.clock)).model == "large"
        assert [line.kind for line in await store.audit_lines()].count("model") == 1

    async def test_a_chosen_model_answers_also_where_a_turn_goes_on(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock)
        await store.set_model(stop.session_id, "large", "Ann", ANN, harness.clock.now())
        await word(store, stop.pendings[0], harness.clock)
        claim = await store.claim(stop.session_id, harness.clock.now())
        assert claim is not None and (claim.kind, claim.model) == ("resume", "large")
        await store.set_model(stop.session_id, "", "Ann", ANN, harness.clock.now())
        await finished(store, claim, harness.clock)
        assert (await begun(store, harness.clock)).model == ""

    async def test_a_fresh_session_has_its_agents_own_model(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        await store.set_model(claim.lease.session_id, "large", "Ann", ANN, harness.clock.now())
        await store.fresh_session(KEY, "ops", "", "Ann", ANN, harness.clock.now())
        assert (await begun(store, harness.clock)).model == ""
