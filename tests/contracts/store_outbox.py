"""What goes out: order, repeats, redraws. What every store promises about the outbox."""

from __future__ import annotations

from gateway.approvals import Deny
from gateway.messages import ThreadKey
from gateway.store.base import Store
from gateway.store.rows import Delivery, Outgoing
from tests.contracts.store_scene import (
    ANN,
    KEY,
    OTHER,
    Stopped,
    StoreHarness,
    all_sent,
    begun,
    card,
    finished,
    notice,
    say,
    waiting,
    word,
)


def texts(rows: list[Delivery]) -> list[str]:
    return [str(row.payload["text"]) for row in rows]


async def shown(store: Store, harness: StoreHarness, ref: str = "77", key: ThreadKey = KEY) -> Stopped:
    """A card that is out."""
    stop = await waiting(store, harness.clock, cards=True, key=key)
    await store.sent(stop.ended.deliveries[0].id, ref, harness.clock.now())
    return stop


class OutboxContract:
    """See gateway.store.base, outbox."""

    async def test_a_thread_s_messages_go_out_one_after_the_other(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claimed = await store.enqueue([notice("1"), notice("2"), notice("x", OTHER)], harness.clock.now())
        assert texts(claimed) == ["1", "x"]
        claimed += await store.enqueue([notice("3")], harness.clock.now())
        assert await store.due_deliveries(harness.clock.now()) == []
        out = await all_sent(store, claimed[:1], harness.clock)
        assert texts(out) == ["1", "2", "3"]
        assert await store.due_deliveries(harness.clock.now()) == []

    async def test_what_a_row_carries_comes_back(self, harness: StoreHarness, store: Store) -> None:
        row = Outgoing(key=KEY, kind="answer", payload={"seq": 4, "reply_to": "m9"}, session_id="s1")
        (first,) = await store.enqueue([row], harness.clock.now())
        assert (first.kind, first.payload, first.session_id) == ("answer", {"seq": 4}, "s1")
        assert (first.reply_to, first.refs, first.attempts, first.repeat) == ("m9", (), 1, False)
        await store.retry_later(first.id, harness.clock.now(), "busy")
        (again,) = await store.due_deliveries(harness.clock.now())
        assert (again.reply_to, again.payload, again.attempts) == ("m9", {"seq": 4}, 2)

    async def test_a_row_that_may_have_arrived_is_a_repeat_from_then_on(
        self, harness: StoreHarness, store: Store
    ) -> None:
        now = harness.clock.now()
        (first,) = await store.enqueue([notice("1")], now)
        await store.retry_later(first.id, now, "the answer was lost", unsure=True)
        (again,) = await store.due_deliveries(now)
        await store.retry_later(again.id, now, "busy")
        (third,) = await store.due_deliveries(now)
        assert [row.repeat for row in (first, again, third)] == [False, True, True]

    async def test_a_row_that_must_wait_holds_up_its_thread_and_no_other(
        self, harness: StoreHarness, store: Store
    ) -> None:
        now = harness.clock.now()
        first, other = await store.enqueue([notice("1"), notice("x", OTHER)], now)
        await store.enqueue([notice("2")], now)
        await store.retry_later(first.id, now + 5, "busy")
        assert await store.due_deliveries(now) == []
        assert texts(await all_sent(store, [other], harness.clock)) == ["x"]
        harness.clock.advance(5)
        assert await store.next_delivery_at() is not None
        (again,) = await store.due_deliveries(harness.clock.now())
        assert (again.id, again.repeat, again.attempts) == (first.id, False, 2)
        assert texts(await all_sent(store, [again], harness.clock)) == ["1", "2"]
        assert await store.next_delivery_at() is None

    async def test_a_row_that_may_have_arrived_all_the_same_comes_back_as_a_repeat(
        self, harness: StoreHarness, store: Store
    ) -> None:
        (row,) = await store.enqueue([notice("1")], harness.clock.now())
        await store.retry_later(row.id, harness.clock.now(), "no answer", unsure=True)
        (again,) = await store.due_deliveries(harness.clock.now())
        assert again.repeat
        await store.part_sent(again.id, "a", harness.clock.now())
        await store.retry_later(again.id, harness.clock.now(), "busy")
        (last,) = await store.due_deliveries(harness.clock.now())
        assert not last.repeat  # it is known which part is out

    async def test_a_row_that_can_never_be_sent_lets_the_next_one_go(
        self, harness: StoreHarness, store: Store
    ) -> None:
        (first,) = await store.enqueue([notice("1")], harness.clock.now())
        await store.enqueue([notice("2")], harness.clock.now())
        following = await store.give_up(first.id, "blocked", harness.clock.now())
        assert texts(following) == ["2"]

    async def test_only_one_process_gets_a_row(self, harness: StoreHarness, store: Store) -> None:
        (first,) = await store.enqueue([notice("1")], harness.clock.now())
        await store.retry_later(first.id, harness.clock.now(), "")
        other = await harness.open()
        both = [await s.due_deliveries(harness.clock.now()) for s in (store, other)]
        assert [len(rows) for rows in both] == [1, 0]

    async def test_no_more_rows_are_claimed_than_wanted(self, harness: StoreHarness, store: Store) -> None:
        keys = [KEY._replace(conversation=f"c{n}") for n in range(5)]
        for row in await store.enqueue([notice("x", key) for key in keys], harness.clock.now()):
            await store.retry_later(row.id, harness.clock.now(), "")
        assert len(await store.due_deliveries(harness.clock.now(), limit=3)) == 3
        assert len(await store.due_deliveries(harness.clock.now(), limit=3)) == 2

    async def test_c031_what_was_sent_is_never_sent_again(self, harness: StoreHarness, store: Store) -> None:
        doomed = await harness.open()
        for text in ("1", "2", "3"):
            (row,) = await doomed.enqueue([notice(text)], harness.clock.now())
            await doomed.sent(row.id, f"ref{text}", harness.clock.now())
        (flying,) = await doomed.enqueue([notice("4")], harness.clock.now())
        await harness.kill(doomed)
        await store.start_up(harness.clock.now())
        (again,) = await store.due_deliveries(harness.clock.now())
        assert (again.id, again.repeat) == (flying.id, True)
        assert await all_sent(store, [again], harness.clock) == [again]
        assert await store.due_deliveries(harness.clock.now()) == []

    async def test_c031_words_whose_sender_died_twice_are_given_up(
        self, harness: StoreHarness, store: Store
    ) -> None:
        doomed = await harness.open()
        await doomed.enqueue([notice("1"), notice("2")], harness.clock.now())
        await harness.kill(doomed)
        second = await harness.open()
        await second.reap(harness.clock.now())
        assert texts(await second.due_deliveries(harness.clock.now())) == ["1"]
        await harness.kill(second)
        await store.reap(harness.clock.now())
        left = await store.due_deliveries(harness.clock.now())
        assert [(d.payload["text"], d.repeat) for d in left] == [("2", False)]

    async def test_a_card_is_tried_until_it_is_out_however_often_its_sender_dies(
        self, harness: StoreHarness, store: Store
    ) -> None:
        doomed = await harness.open()
        stop = await waiting(doomed, harness.clock, cards=True)
        for _ in range(3):
            await harness.kill(doomed)
            doomed = await harness.open()
            await doomed.reap(harness.clock.now())
            (again,) = await doomed.due_deliveries(harness.clock.now())
            assert (again.kind, again.repeat) == ("card", True)
        await doomed.sent(again.id, "77", harness.clock.now())
        copies = await store.card_copies(stop.pendings[0].pending_id)
        assert [(c.refs, c.unsure) for c in copies] == [(("77",), True)]

    async def test_the_parts_that_are_out_are_not_repeated(self, harness: StoreHarness, store: Store) -> None:
        doomed = await harness.open()
        (row,) = await doomed.enqueue([notice("long")], harness.clock.now())
        await doomed.part_sent(row.id, "a", harness.clock.now())
        await doomed.part_sent(row.id, "b", harness.clock.now())
        await harness.kill(doomed)
        await store.reap(harness.clock.now())
        (again,) = await store.due_deliveries(harness.clock.now())
        assert (again.refs, again.repeat) == (("a", "b"), True)
        await store.part_sent(again.id, "c", harness.clock.now())
        await store.retry_later(again.id, harness.clock.now(), "busy")
        (last,) = await store.due_deliveries(harness.clock.now())
        assert (last.refs, last.repeat) == (("a", "b", "c"), False)

    async def test_a_waiting_redraw_gives_way_to_a_newer_one(
        self, harness: StoreHarness, store: Store
    ) -> None:
        redraw = Outgoing(key=KEY, kind="redraw", payload={}, pending_id="p1", ref="77")
        (flying,) = await store.enqueue([redraw], harness.clock.now())
        for _ in range(5):
            assert await store.enqueue([redraw], harness.clock.now()) == []
        out = await all_sent(store, [flying], harness.clock)
        assert [(d.kind, d.ref) for d in out] == [("redraw", "77"), ("redraw", "77")]

    async def test_a_redraw_does_not_wait_behind_what_is_being_sent(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await shown(store, harness)
        await store.enqueue([notice("slow"), notice("next")], harness.clock.now())
        await word(store, stop.pendings[0], harness.clock)
        (redraw,) = await store.due_deliveries(harness.clock.now())
        assert (redraw.kind, redraw.ref) == ("redraw", "77")
        assert await store.sent(redraw.id, None, harness.clock.now()) == []

    async def test_a_card_decided_on_its_way_out_is_redrawn_at_once(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, cards=True)
        await word(store, stop.pendings[0], harness.clock)
        following = await store.sent(stop.ended.deliveries[0].id, "77", harness.clock.now())
        assert [(d.kind, d.ref) for d in following] == [("redraw", "77")]

    async def test_every_copy_of_a_card_is_redrawn(self, harness: StoreHarness, store: Store) -> None:
        stop = await waiting(store, harness.clock)
        asked = stop.pendings[0]
        rows = await store.enqueue([card(asked), card(asked, OTHER)], harness.clock.now())
        for row, ref in zip(rows, ("1", "2"), strict=True):
            await store.sent(row.id, ref, harness.clock.now())
        await word(store, asked, harness.clock, Deny())
        redraws = await store.due_deliveries(harness.clock.now())
        assert {(d.key, d.ref) for d in redraws} == {(KEY, "1"), (OTHER, "2")}

    async def test_the_copies_say_which_of_them_may_exist_unseen(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, cards=True)
        asked, row = stop.pendings[0], stop.ended.deliveries[0]
        copies = [await store.card_copies(asked.pending_id)]
        await store.retry_later(row.id, harness.clock.now(), "no answer")
        copies.append(await store.card_copies(asked.pending_id))
        (again,) = await store.due_deliveries(harness.clock.now())
        await store.sent(again.id, "77", harness.clock.now())
        copies.append(await store.card_copies(asked.pending_id))
        assert [[(c.refs, c.unsure) for c in found] for found in copies] == [
            [((), True)],
            [((), True)],
            [(("77",), True)],
        ]
        certain = await shown(store, harness, "78", OTHER)
        assert [c.unsure for c in await store.card_copies(certain.pendings[0].pending_id)] == [False]

    async def test_a_lost_card_that_turns_up_is_redrawn_with_the_others(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await shown(store, harness)
        asked = stop.pendings[0]
        await store.adopt_card(asked.pending_id, KEY, "lost")
        await word(store, asked, harness.clock)
        redraws = await all_sent(store, await store.due_deliveries(harness.clock.now()), harness.clock)
        assert {d.ref for d in redraws} == {"77", "lost"}

    async def test_a_lost_card_that_turns_up_after_the_decision_is_redrawn_at_once(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await shown(store, harness)
        await word(store, stop.pendings[0], harness.clock)
        await all_sent(store, await store.due_deliveries(harness.clock.now()), harness.clock)
        await store.adopt_card(stop.pendings[0].pending_id, KEY, "lost")
        assert [d.ref for d in await store.due_deliveries(harness.clock.now())] == ["lost"]

    async def test_at_start_posted_cards_of_closed_requests_are_redrawn_once(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await shown(store, harness)
        assert await store.redraw_cards(harness.clock.now()) == 0
        await word(store, stop.pendings[0], harness.clock)
        assert await store.redraw_cards(harness.clock.now()) == 0  # one is queued already
        await harness.tamper("DELETE FROM deliveries WHERE kind = 'redraw'")
        assert await store.redraw_cards(harness.clock.now()) == 1
        (redraw,) = await store.due_deliveries(harness.clock.now())
        await store.sent(redraw.id, None, harness.clock.now())
        assert (redraw.kind, redraw.ref) == ("redraw", "77")
        assert await store.redraw_cards(harness.clock.now()) == 0

    async def test_a_conversation_that_moved_takes_everything_along(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, cards=True)
        await say(store, "next", harness.clock)
        new = ThreadKey("telegram", "bot", "-100", "")
        await store.move_thread(KEY, new)
        view = await store.session_of(new)
        assert view is not None and (view.id, view.key) == (stop.session_id, new)
        assert await store.session_of(KEY) is None
        assert [r.key for r in await store.pendings(key=new)] == [new]
        await store.retry_later(stop.ended.deliveries[0].id, harness.clock.now(), "moved")
        assert [d.key for d in await store.due_deliveries(harness.clock.now())] == [new]

    async def test_a_conversation_that_moved_to_where_people_talk_already_keeps_what_is_there(
        self, harness: StoreHarness, store: Store
    ) -> None:
        old = await begun(store, harness.clock)
        there = await begun(store, harness.clock, key=OTHER)
        await store.move_thread(KEY, OTHER)
        view = await store.session_of(OTHER)
        assert view is not None and view.id == there.lease.session_id
        await finished(store, old, harness.clock, "fine", notice("still told"))
        moved = await store.session(old.lease.session_id)
        assert moved is not None and moved.key == OTHER

    async def test_what_the_gateway_said_is_found_in_its_place(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        session = claim.lease.session_id
        said = Outgoing(key=KEY, kind="notice", payload={"text": "hm"}, session_id=session)
        harness.clock.advance(1)
        await store.enqueue([said], harness.clock.now())
        harness.clock.advance(1)
        await finished(store, claim, harness.clock)
        notices = await store.notices(session)
        assert [(n.text, n.at, n.after) for n in notices] == [("hm", harness.clock.now() - 1, 1)]

    async def test_a_stop_s_cards_are_handed_over_claimed(self, harness: StoreHarness, store: Store) -> None:
        stop = await waiting(store, harness.clock, count=2, cards=True)
        assert [d.pending_id for d in stop.ended.deliveries] == [stop.pendings[0].pending_id]
        out = await all_sent(store, stop.ended.deliveries, harness.clock)
        assert [d.pending_id for d in out] == [p.pending_id for p in stop.pendings]
        done = await store.stop(KEY, "", "Ann", ANN, harness.clock.now())
        assert len(done.closed) == 2
