"""The record, timers, views, commits: the rest of what every store promises."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from gateway.approvals import Approve, Deny, Expire
from gateway.errors import LeaseLost, StoreUnavailable
from gateway.messages import Message, user
from gateway.store.base import Store
from gateway.store.rows import AuditLine
from tests.contracts.store_scene import (
    ANN,
    BOB,
    KEY,
    OTHER,
    StoreHarness,
    answer,
    answered,
    begun,
    finished,
    incoming,
    replied,
    row,
    say,
    waiting,
    word,
)

TABLES = {
    "threads",
    "sessions",
    "messages",
    "turns",
    "tool_calls",
    "checkpoints",
    "pendings",
    "grants",
    "inbox",
    "deliveries",
    "timers",
    "audit",
    "notes",
}


async def lines(store: Store) -> list[AuditLine]:
    """The record, oldest first."""
    return list(reversed(await store.audit_lines()))


class RecordContract:
    """See gateway.store.base: audit, timers, looking, Order, Failure."""

    async def test_the_record_says_who_decided_what_on_which_arguments(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, count=2)
        first, second = stop.pendings
        edited = Approve(edited_args={"amount": 5})
        await word(store, first, harness.clock, edited, via="telegram message 7")
        await word(store, second, harness.clock, Deny(feedback="no"), actor=BOB, by="Bob")
        found = await lines(store)
        assert [line.kind for line in found] == ["requested", "requested", "edited", "approved", "denied"]
        changed, approved, denied = found[2:]
        assert (changed.actor, changed.body["changed"]) == (str(ANN), ["amount"])
        assert changed.args_hash == approved.body["executed_hash"] != first.args_hash
        assert (approved.actor, approved.pending_id) == (str(ANN), first.pending_id)
        assert (approved.args_hash, approved.session_id) == (first.args_hash, stop.session_id)
        assert approved.body["via"] == "telegram message 7"
        assert approved.body["executed_hash"] not in ("", first.args_hash)
        assert (denied.actor, denied.body["feedback"]) == (str(BOB), "no")
        assert [line.seq for line in found] == [1, 2, 3, 4, 5]

    async def test_c047_an_expiry_is_on_record_as_the_clock_s_and_nobody_s(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, expires_at=harness.clock.now() + 60)
        harness.clock.advance(60)
        await word(store, stop.pendings[0], harness.clock, Expire(), actor=ANN._replace(user=""), by="clock")
        assert [line.kind for line in await lines(store)] == ["requested", "expired"]

    async def test_the_record_fits_its_hashes_whoever_writes(
        self, harness: StoreHarness, store: Store
    ) -> None:
        other = await harness.open()
        for n in range(5):
            await store.audit("tried", "web:x", {"n": n, "text": "ä\u2028"}, 17)  # a whole number too
            await other.audit("tried", "web:y", {"n": n}, harness.clock.now(), pending_id="p")
        assert await store.verify_audit() is None
        found = await lines(store)
        assert [line.previous for line in found] == ["", *(line.hash for line in found[:-1])]
        assert [line.seq for line in await store.audit_lines(limit=2, before=6)] == [5, 4]

    async def test_a_changed_line_is_found(self, harness: StoreHarness, store: Store) -> None:
        for n in range(4):
            await store.audit("tried", "web:x", {"n": n}, harness.clock.now())
        await harness.tamper("UPDATE audit SET actor = 'web:y' WHERE seq = 3", unguarded=True)
        assert await store.verify_audit() == 3

    async def test_a_missing_line_is_found(self, harness: StoreHarness, store: Store) -> None:
        for n in range(4):
            await store.audit("tried", "web:x", {"n": n}, harness.clock.now())
        await harness.tamper("DELETE FROM audit WHERE seq = 2", unguarded=True)
        assert await store.verify_audit() == 2

    @pytest.mark.parametrize(
        "statement",
        ["UPDATE audit SET actor = 'web:y'", "DELETE FROM audit", "DELETE FROM audit WHERE seq = 1"],
    )
    async def test_the_record_refuses_to_be_changed(
        self, harness: StoreHarness, store: Store, statement: str
    ) -> None:
        await store.audit("tried", "web:x", {}, harness.clock.now())
        with pytest.raises(Exception, match="append-only"):
            await harness.tamper(statement)
        assert len(await store.audit_lines()) == 1

    async def test_timers_are_due_at_their_moment_until_they_are_done(
        self, harness: StoreHarness, store: Store
    ) -> None:
        now = harness.clock.now()
        later = await waiting(store, harness.clock, expires_at=now + 60)
        sooner = await waiting(store, harness.clock, expires_at=now + 30, key=OTHER)
        assert await store.next_timer_at() == now + 30
        assert await store.due_timers(now + 29.9) == []
        due = await store.due_timers(now + 60)
        assert [t.subject for t in due] == [s.pendings[0].pending_id for s in (sooner, later)]
        assert {t.kind for t in due} == {"expiry"}
        await store.timer_done(due[0].id)
        assert [t.id for t in await store.due_timers(now + 60)] == [due[1].id]
        assert len(await store.due_timers(now + 60, limit=0)) == 0

    async def test_there_are_exactly_thirteen_tables(self, harness: StoreHarness, store: Store) -> None:
        counts = {table: await harness.rows(table) for table in TABLES}
        assert set(counts.values()) == {0}
        assert await harness.tables() == TABLES | {"schema_migrations"}

    async def test_unknown_ids_are_none_and_never_an_error(self, harness: StoreHarness, store: Store) -> None:
        now = harness.clock.now()
        assert await store.session("s_x") is None
        assert await store.session_of(KEY) is None
        assert await store.turn("t_x") is None and await store.turn("s_x.1") is None
        assert await store.turn_of_message("s_x", "1") is None
        assert await store.claim("s_x", now) is None
        assert await store.full_result("s_x", "c") is None
        assert [await store.log("s_x"), await store.notices("s_x"), await store.calls("s_x")] == [[], [], []]
        assert [await store.queued_texts("s_x"), await store.turns_after("s_x", 0)] == [[], []]
        assert await store.card_copies("p_x") == []
        assert await store.sent(99, "r", now) == [] and await store.give_up(99, "", now) == []
        assert await store.next_timer_at() is None and await store.next_delivery_at() is None
        await store.stop(KEY, "s_x", "Ann", ANN, now)
        await store.stop(KEY, "s_x", "Ann", ANN, now, turn_id="s_x.1")
        await store.press_done(KEY, "1")
        await store.timer_done(99)

    async def test_views_show_sessions_turns_and_pieces_of_the_log(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock, "x" * 100)
        session = claim.lease.session_id
        await finished(store, claim, harness.clock, "one")
        harness.clock.advance(1)
        await begun(store, harness.clock, "other", key=OTHER)
        harness.clock.advance(1)
        second = await begun(store, harness.clock, "two")
        await say(store, "three", harness.clock)
        view = await store.session(session)
        assert view is not None
        assert (view.title, view.turn_id, view.queued) == ("x" * 60, second.lease.turn_id, 1)
        assert (view.created_at, view.updated_at) == (harness.clock.now() - 2, harness.clock.now())
        assert next(v.id for v in await store.sessions()) == session
        assert len(await store.sessions(limit=1)) == 1
        assert [t.number for t in await store.turns_after(session, 2)] == [2]
        assert [t.first_seq for t in await store.turns_after(session, 0)] == [0, 2]
        assert [t.number for t in await store.turns_after(session, 0, limit=1)] == [1]
        assert [m.text for m in await store.log(session, 1)] == ["one", "two"]
        assert [m.text for m in await store.log(session, 1, 1)] == ["one"]

    async def test_what_is_written_comes_back_as_it_was(self, harness: StoreHarness, store: Store) -> None:
        said = Message(
            role="user", content=user("ünïcode \u2028 \x00 👩‍👩‍👧").content, author="Ann", kind="note"
        )
        claim = await begun(store, harness.clock, message=said)
        assert await store.log(claim.lease.session_id) == [said]

    async def test_writes_are_carried_out_in_the_order_in_which_they_were_submitted(
        self, harness: StoreHarness, store: Store
    ) -> None:
        async def note(n: int) -> None:
            await store.audit("tried", "web:x", {"n": n}, harness.clock.now())

        await asyncio.gather(*(note(n) for n in range(700)))
        assert [line.body["n"] for line in reversed(await store.audit_lines(limit=700))] == list(range(700))

    async def test_one_failing_write_does_not_harm_those_that_share_its_commit(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        await store.release(claim.lease)
        other = await harness.open()
        await other.claim(claim.lease.session_id, harness.clock.now())
        results = await asyncio.gather(
            store.accept(incoming("one", harness.clock, key=OTHER)),
            store.reply(claim.lease, user("stolen"), [], ""),
            store.accept(incoming("two", harness.clock, key=OTHER)),
            return_exceptions=True,
        )
        assert isinstance(results[1], LeaseLost)
        assert not isinstance(results[0], BaseException) and not isinstance(results[2], BaseException)
        assert (results[0].outcome, results[2].outcome) == ("claimed", "queued")

    async def test_a_write_that_nobody_waits_for_any_more_is_still_carried_out(
        self, harness: StoreHarness, store: Store
    ) -> None:
        task = asyncio.create_task(store.audit("tried", "web:x", {}, harness.clock.now()))
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await store.audit("second", "web:x", {}, harness.clock.now())
        assert [line.kind for line in await lines(store)] == ["tried", "second"]

    async def test_closing_carries_out_what_was_submitted_and_takes_nothing_new(
        self, harness: StoreHarness, store: Store
    ) -> None:
        closing = await harness.open()
        writes = [asyncio.create_task(closing.audit("tried", "x", {"n": n}, 1.0)) for n in range(20)]
        await asyncio.sleep(0)
        await closing.close()
        await asyncio.gather(*writes)
        await closing.close()
        assert len(await store.audit_lines()) == 20
        with pytest.raises(StoreUnavailable):
            await closing.audit("late", "x", {}, 1.0)
        with pytest.raises(StoreUnavailable):
            await closing.sessions()

    async def test_a_turn_costs_the_same_however_long_the_session_is(
        self, harness: StoreHarness, store: Store
    ) -> None:
        costs = {}
        for number in range(1, 2_001):
            before = await harness.written(store)
            claim = await begun(store, harness.clock, f"question {number:06}")
            await replied(store, claim, row(f"call{number:06}", amount=1), events="line\n")
            await store.calls_started(claim.lease, [f"call{number:06}"], harness.clock.now(), "")
            await answered(store, claim, answer(f"call{number:06}"))
            await finished(store, claim, harness.clock, f"answer {number:06}")
            costs[number] = await harness.written(store) - before
        assert len(await store.log(claim.lease.session_id)) == 8_000
        rows_early = {costs[n].rows for n in range(5, 15)}
        rows_late = {costs[n].rows for n in range(1_990, 2_001)}
        assert rows_early == rows_late and len(rows_late) == 1
        # Pages differ with the luck of splits and the trees' heights, not with the length.
        early = sum(costs[n].pages for n in range(5, 105)) / 100
        late = sum(costs[n].pages for n in range(1_901, 2_001)) / 100
        assert late <= early + 6
