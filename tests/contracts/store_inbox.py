"""Identity, order, the queue: what every store promises about what comes in."""

from __future__ import annotations

import asyncio

from gateway.messages import user
from gateway.store.base import Store
from tests.contracts.store_scene import (
    ANN,
    BOB,
    KEY,
    OTHER,
    StoreHarness,
    answer,
    answered,
    begun,
    end,
    finished,
    incoming,
    press,
    replied,
    row,
    say,
    waiting,
    word,
)


class InboxContract:
    """See gateway.store.base: Identity, Order."""

    async def test_c027_a_message_is_stored_once_however_often_and_wherever_it_arrives(
        self, harness: StoreHarness, store: Store
    ) -> None:
        other = await harness.open()
        message = incoming("hello", harness.clock, message_id="71")
        first = await store.accept(message)
        assert first.outcome == "claimed" and first.claim is not None
        again = await other.accept(message)
        assert (again.outcome, again.session_id, again.claim) == ("duplicate", first.session_id, None)
        await finished(store, first.claim, harness.clock)
        assert (await store.accept(message)).outcome == "duplicate"
        view = await other.session(first.session_id)
        assert view is not None and (view.log_length, view.queued, view.status) == (2, 0, "idle")

    async def test_identity_is_the_conversation_s_own(self, harness: StoreHarness, store: Store) -> None:
        here = await say(store, "one", harness.clock, message_id="5")
        there = await say(store, "one", harness.clock, message_id="5", key=OTHER)
        assert here.outcome == there.outcome == "claimed"
        assert here.session_id != there.session_id
        thread = KEY._replace(thread="t9")
        assert (await say(store, "one", harness.clock, message_id="5", key=thread)).outcome == "duplicate"

    async def test_a_waiting_message_can_be_taken_out_of_the_queue_and_no_other(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock, "first", message_id="a")
        await say(store, "second", harness.clock, message_id="b")
        await say(store, "third", harness.clock, message_id="c")
        assert [await store.withdraw(KEY, id_) for id_ in ("a", "b", "b", "z")] == [False, True, False, False]
        assert await store.queued_texts(claim.lease.session_id) == [("c", "third")]
        assert (await say(store, "second", harness.clock, message_id="b")).outcome == "duplicate"

    async def test_a_person_s_newest_thread_of_a_conversation_is_found(
        self, harness: StoreHarness, store: Store
    ) -> None:
        for number, actor in enumerate((ANN, ANN, BOB), 1):
            await say(
                store,
                "hello",
                harness.clock,
                message_id=f"{number}",
                key=KEY._replace(thread=f"{number}"),
                actor=actor,
            )
        assert await store.own_thread(KEY, ANN) == KEY._replace(thread="2")
        assert await store.own_thread(KEY, BOB) == KEY._replace(thread="3")
        assert await store.own_thread(OTHER, ANN) is None

    async def test_the_newest_message_of_every_conversation_is_known(
        self, harness: StoreHarness, store: Store
    ) -> None:
        assert await store.seen(KEY.channel) == []
        for number in (101, 103, 102):
            await say(store, "hello", harness.clock, message_id=f"{number}")
        await say(store, "hello", harness.clock, message_id="cmd|x")
        await store.accept_press(press("999", harness.clock))
        await say(store, "hello", harness.clock, message_id="50", key=OTHER._replace(thread="7"))
        await say(store, "hello", harness.clock, message_id="60", key=OTHER._replace(channel="web"))
        assert await store.seen(KEY.channel) == [(KEY, "103"), (OTHER, "50")]
        assert await store.seen(KEY.channel, limit=1) == [(KEY, "103")]
        assert await store.seen("slack") == []

    async def test_a_message_and_a_press_may_have_the_same_id(
        self, harness: StoreHarness, store: Store
    ) -> None:
        await say(store, "one", harness.clock, message_id="5")
        assert await store.accept_press(press("5", harness.clock))
        assert not await store.accept_press(press("5", harness.clock))

    async def test_accepting_into_a_free_session_begins_the_turn_in_the_same_breath(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock, "hello", tenant="acme", message_id="m-first")
        assert (claim.kind, claim.log_length, claim.agent, claim.tenant) == ("message", 1, "helper", "acme")
        assert (claim.key, claim.requester, claim.message_id) == (KEY, ANN, "m-first")
        assert claim.message == user("hello")
        assert claim.lease.runner == store.runner
        assert [m.text for m in await store.log(claim.lease.session_id)] == ["hello"]
        turn = await store.turn(claim.lease.turn_id)
        assert turn is not None and (turn.number, turn.state, turn.trigger) == (1, "running", "message")

    async def test_without_claim_a_message_only_waits(self, harness: StoreHarness, store: Store) -> None:
        accepted = await say(store, "later", harness.clock, claim=False)
        assert (accepted.outcome, accepted.claim, accepted.ahead) == ("queued", None, 0)
        assert await store.claimable(harness.clock.now()) == [accepted.session_id]

    async def test_messages_of_a_busy_session_queue_in_order(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        session = claim.lease.session_id
        queued = [await say(store, f"n{n}", harness.clock) for n in range(3)]
        assert [(a.outcome, a.ahead) for a in queued] == [("queued", 0), ("queued", 1), ("queued", 2)]
        assert [text for _, text in await store.queued_texts(session)] == ["n0", "n1", "n2"]
        taken = []
        while (await finished(store, claim, harness.clock)).more:
            following = await store.claim(session, harness.clock.now())
            assert following is not None and following.message is not None
            taken.append(following.message.text)
            claim = following
        assert taken == ["n0", "n1", "n2"]
        roles = [m.role for m in await store.log(session)]
        assert roles == ["user", "assistant"] * 4

    async def test_a_new_message_never_overtakes_those_that_wait(
        self, harness: StoreHarness, store: Store
    ) -> None:
        first = await say(store, "first", harness.clock, claim=False)
        second = await say(store, "second", harness.clock)
        assert (second.outcome, second.ahead) == ("queued", 1)
        claim = await store.claim(first.session_id, harness.clock.now())
        assert claim is not None and claim.message == user("first")

    async def test_an_edit_changes_what_waits_and_nothing_else(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock, "running", message_id="a")
        await say(store, "waits", harness.clock, message_id="b")
        edited = await say(store, "waits, mended", harness.clock, message_id="b", edited=True)
        late = await say(store, "too late", harness.clock, message_id="a", edited=True)
        unknown = await say(store, "never seen", harness.clock, message_id="c", edited=True)
        assert (edited.outcome, late.outcome, unknown.outcome) == ("edited", "duplicate", "duplicate")
        assert (edited.session_id, unknown.session_id) == (claim.lease.session_id, "")
        assert await store.queued_texts(claim.lease.session_id) == [("b", "waits, mended")]
        assert [m.text for m in await store.log(claim.lease.session_id)] == ["running"]

    async def test_a_message_behind_a_card_says_what_it_waits_for(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, count=2)
        accepted = await say(store, "and?", harness.clock)
        assert accepted.outcome == "queued"
        assert set(accepted.waiting_for) == {p.pending_id for p in stop.pendings}

    async def test_steering_takes_everything_that_waits_behind_the_results(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        session = claim.lease.session_id
        await replied(store, claim, row("c1"))
        for text in ("faster", "no, slower"):
            await say(store, text, harness.clock, message_id=text)
        said = await answered(store, claim, answer("c1"), steer=True)
        assert [m.text for m in said] == ["faster", "no, slower"]
        log = await store.log(session)
        assert [m.text or [r.content for r in m.results] for m in log[2:]] == [
            ["done"],
            "faster",
            "no, slower",
        ]
        assert await store.queued_texts(session) == []
        assert await store.turn_of_message(session, "faster") == claim.lease.turn_id
        assert not (await finished(store, claim, harness.clock)).more

    async def test_without_steering_messages_wait_for_their_own_turn(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        await replied(store, claim, row("c1"))
        await say(store, "next", harness.clock, message_id="next")
        assert await answered(store, claim, answer("c1")) == []
        assert await store.turn_of_message(claim.lease.session_id, "next") is None
        assert (await finished(store, claim, harness.clock)).more
        following = await store.claim(claim.lease.session_id, harness.clock.now())
        assert following is not None
        assert await store.turn_of_message(claim.lease.session_id, "next") == following.lease.turn_id

    async def test_a_message_that_was_taken_as_an_answer_belongs_to_the_turn_that_goes_on(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock)
        await say(store, "yes", harness.clock, message_id="yes")
        await word(store, stop.pendings[0], harness.clock, consumes=(KEY, "yes"))
        assert await store.queued_texts(stop.session_id) == []
        assert await store.turn_of_message(stop.session_id, "yes") is None
        claim = await store.claim(stop.session_id, harness.clock.now())
        assert claim is not None and claim.kind == "resume"
        assert await store.turn_of_message(stop.session_id, "yes") == claim.lease.turn_id

    async def test_a_session_can_be_named_directly(self, harness: StoreHarness, store: Store) -> None:
        claim = await begun(store, harness.clock)
        await store.finish(claim.lease, end(text="fine"), harness.clock.now())
        named = await say(store, "more", harness.clock, session_id=claim.lease.session_id, key=OTHER)
        assert named.session_id == claim.lease.session_id

    async def test_presses_are_kept_until_they_are_done(self, harness: StoreHarness, store: Store) -> None:
        first, second = press("1", harness.clock, data="x"), press("2", harness.clock, data="y")
        assert await store.accept_press(first) and await store.accept_press(second)
        other = await harness.open()
        assert await other.presses_left() == [first, second]
        await store.press_done(KEY, "1")
        assert await other.presses_left() == [second]
        assert not await other.accept_press(first)

    async def test_a_press_brings_its_card_along(self, harness: StoreHarness, store: Store) -> None:
        stop = await waiting(store, harness.clock, cards=True)
        await store.sent(stop.ended.deliveries[0].id, "77", harness.clock.now())
        taken = await store.take_press(press("1", harness.clock), stop.pendings[0].pending_id)
        assert taken.fresh and taken.record is not None
        assert taken.record.id == stop.pendings[0].pending_id
        assert [copy.refs for copy in taken.copies] == [("77",)]
        again = await store.take_press(press("1", harness.clock), stop.pendings[0].pending_id)
        assert not again.fresh
        unknown = await store.take_press(press("2", harness.clock), "p_unknown")
        assert unknown.fresh and unknown.record is None and unknown.copies == ()

    async def test_two_processes_with_the_same_message_at_once_store_it_once(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stores = [store, await harness.open(), await harness.open()]
        barrier = asyncio.Barrier(len(stores))
        message = incoming("hello", harness.clock)

        async def deliver(one: Store) -> str:
            await barrier.wait()
            return (await one.accept(message)).outcome

        outcomes = await asyncio.gather(*map(deliver, stores))
        assert sorted(outcomes) == ["claimed", "duplicate", "duplicate"]

    async def test_c075_of_many_messages_at_once_one_begins_and_the_others_wait_in_order(
        self, harness: StoreHarness, store: Store
    ) -> None:
        messages = [incoming(f"n{n}", harness.clock) for n in range(100)]
        accepted = await asyncio.gather(*map(store.accept, messages))
        assert [a.outcome for a in accepted] == ["claimed"] + ["queued"] * 99
        assert [a.ahead for a in accepted[1:]] == list(range(99))
        texts = [text for _, text in await store.queued_texts(accepted[0].session_id)]
        assert texts == [f"n{n}" for n in range(1, 100)]
