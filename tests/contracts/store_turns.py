"""Claims, leases and the tool journal: what every store promises about running turns."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.errors import LeaseLost
from gateway.history import repaired
from gateway.messages import (
    ENCODER,
    Message,
    Text,
    Thinking,
    ToolUse,
    assistant,
    tool_results,
    user,
)
from gateway.store.base import LEASE_SECONDS, Store
from gateway.store.rows import Claim, Lease
from gateway.verdicts import INTERRUPTED
from tests.contracts.store_scene import (
    KEY,
    OTHER,
    StoreHarness,
    answer,
    answered,
    begun,
    card,
    end,
    finished,
    parked,
    pending,
    replied,
    row,
    say,
    waiting,
    word,
)


async def zombie_writes(store: Store, claim: Claim, clock: Any) -> list[str]:
    """Every write of a turn, by somebody who has lost the session; the names of those let through."""
    lease = claim.lease
    writes = {
        "reply": lambda: store.reply(lease, assistant(row("z").call), [row("z")], ""),
        "calls_started": lambda: store.calls_started(lease, ["c1"], clock.now(), ""),
        "results": lambda: store.results(lease, tool_results([answer("c1")]), "", steer=False),
        "marker": lambda: store.marker(lease, Message(role="user", content=(), kind="trim"), ""),
        "note_events": lambda: store.note_events(lease, "x\n"),
        "finish": lambda: store.finish(lease, end(text="stolen"), clock.now()),
        "park": lambda: parked(store, claim, clock, pending(row("c1"))),
    }
    let_through = []
    for name, write in writes.items():
        try:
            await write()
        except LeaseLost as error:
            assert error.session_id == lease.session_id
        else:
            let_through.append(name)
    return let_through


# What vendors want back exactly as it came: order of keys, empty texts, signs that are easily normalised.
AS_IT_CAME = (
    Thinking(text="", opaque={"type": "thinking", "thinking": "", "signature": "Er4B+/=\u2028e\u0301"}),
    Thinking(text="", opaque={"type": "redacted_thinking", "data": "AAECAw=="}),
    Thinking(text="r1 \u00e9 vs e\u0301\t\r\n", opaque={"reasoning_content": "r1 \u00e9 vs e\u0301\t\r\n"}),
    Text(text="So.", opaque={"thoughtSignature": "c2ln", "a": {"z": 1, "b": [1.5, None, True]}}),
    ToolUse(id="functions.look:0", name="look", input={"z": 1, "a": "\u200b"}, opaque={"extra": {"s": "x"}}),
)


class TurnContract:
    """See gateway.store.base: Who may claim, What is atomic."""

    async def test_c058_c059_c060_what_a_vendor_wants_back_survives_byte_for_byte(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        made = Message(role="assistant", content=AS_IT_CAME, model="anthropic:claude-test")
        asked = row("functions.look:0", "look", z=1, a="\u200b")
        await store.reply(claim.lease, made, [asked], "")
        await harness.kill(store)
        read = (await (await harness.open()).log(claim.lease.session_id))[-1]
        assert read == made
        assert ENCODER.encode(read) == ENCODER.encode(made)
        assert repr(read) == repr(made)  # the order of keys too

    async def test_a_running_session_cannot_be_claimed(self, harness: StoreHarness, store: Store) -> None:
        claim = await begun(store, harness.clock)
        other = await harness.open()
        for one in (store, other):
            assert await one.claim(claim.lease.session_id, harness.clock.now()) is None
        assert await other.claimable(harness.clock.now()) == []

    async def test_a_lease_that_ran_out_is_taken_over_with_a_higher_epoch(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        other = await harness.open()
        harness.clock.advance(LEASE_SECONDS - 0.01)
        assert await other.claim(claim.lease.session_id, harness.clock.now()) is None
        harness.clock.advance(0.01)
        assert await other.claimable(harness.clock.now()) == [claim.lease.session_id]
        taken = await other.claim(claim.lease.session_id, harness.clock.now())
        assert taken is not None and taken.kind == "recover"
        assert taken.lease == Lease(
            session_id=claim.lease.session_id,
            turn_id=claim.lease.turn_id,
            runner=other.runner,
            epoch=claim.lease.epoch + 1,
        )

    async def test_renewing_extends_every_lease_of_this_runner_and_no_other(
        self, harness: StoreHarness, store: Store
    ) -> None:
        other = await harness.open()
        mine, second = await begun(store, harness.clock), await begun(store, harness.clock, key=OTHER)
        theirs = await begun(other, harness.clock, key=KEY._replace(conversation="third"))
        harness.clock.advance(LEASE_SECONDS - 1)
        await store.renew(harness.clock.now())
        harness.clock.advance(2)
        assert await other.claimable(harness.clock.now()) == [theirs.lease.session_id]
        assert {lease.session_id for lease in await store.held()} == {
            mine.lease.session_id,
            second.lease.session_id,
        }
        assert mine.lease in await store.held()

    async def test_c075_a_zombie_can_write_nothing(self, harness: StoreHarness, store: Store) -> None:
        claim = await begun(store, harness.clock)
        await replied(store, claim, row("c1"))
        other = await harness.open()
        harness.clock.advance(LEASE_SECONDS + 1)
        taken = await other.claim(claim.lease.session_id, harness.clock.now())
        assert taken is not None
        before = await other.log(claim.lease.session_id)
        assert await zombie_writes(store, claim, harness.clock) == []
        store.call_done(claim.lease, answer("c1", "late"), None, harness.clock.now())
        await store.release(claim.lease)
        assert await other.log(claim.lease.session_id) == before
        assert [(c.state, c.result) for c in await other.calls(claim.lease.session_id)] == [("allowed", None)]
        assert await other.held() == [taken.lease]

    async def test_after_its_end_a_turn_can_write_nothing(self, harness: StoreHarness, store: Store) -> None:
        claim = await begun(store, harness.clock)
        await finished(store, claim, harness.clock)
        assert await zombie_writes(store, claim, harness.clock) == []

    async def test_a_dead_runner_s_sessions_are_free_at_once(
        self, harness: StoreHarness, store: Store
    ) -> None:
        doomed = await harness.open()
        claim = await begun(doomed, harness.clock)
        assert await store.reap(harness.clock.now()) == []
        await harness.kill(doomed)
        assert await store.reap(harness.clock.now()) == [doomed.runner]
        taken = await store.claim(claim.lease.session_id, harness.clock.now())
        assert taken is not None and (taken.kind, taken.lease.turn_id) == ("recover", claim.lease.turn_id)

    async def test_a_process_that_ended_in_order_leaves_nothing_held(
        self, harness: StoreHarness, store: Store
    ) -> None:
        leaving = await harness.open()
        claim = await begun(leaving, harness.clock)
        await leaving.close()
        await store.reap(harness.clock.now())
        assert await store.claimable(harness.clock.now()) == [claim.lease.session_id]

    async def test_start_up_finds_what_dead_processes_left(self, harness: StoreHarness, store: Store) -> None:
        doomed = await harness.open()
        claim = await begun(doomed, harness.clock)
        await harness.kill(doomed)
        found = await store.start_up(harness.clock.now())
        assert (found.sessions, found.presses) == ((claim.lease.session_id,), ())

    async def test_a_session_given_back_is_recovered_by_anybody(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        await store.release(claim.lease)
        other = await harness.open()
        taken = await other.claim(claim.lease.session_id, harness.clock.now())
        assert taken is not None and taken.kind == "recover"
        assert await zombie_writes(store, claim, harness.clock) == []

    async def test_of_several_processes_exactly_one_claims(self, harness: StoreHarness, store: Store) -> None:
        accepted = await say(store, "hello", harness.clock, claim=False)
        stores = [store, await harness.open(), await harness.open()]
        barrier = asyncio.Barrier(len(stores))

        async def grab(one: Store) -> Claim | None:
            await barrier.wait()
            return await one.claim(accepted.session_id, harness.clock.now())

        claims = [c for c in await asyncio.gather(*map(grab, stores)) if c is not None]
        assert len(claims) == 1 and claims[0].message == user("hello")

    async def test_the_journal_says_how_far_each_call_had_come(
        self, harness: StoreHarness, store: Store
    ) -> None:
        doomed = await harness.open()
        claim = await begun(doomed, harness.clock)
        calls = [row("a"), row("b", amount=1), row("c"), row("d", state="refused"), row("e", repeatable=True)]
        await replied(doomed, claim, *calls, events="line\n")
        await doomed.calls_started(claim.lease, ["a", "b"], harness.clock.now(), "more\n")
        doomed.call_done(claim.lease, answer("a", "short"), "the whole text", harness.clock.now())
        await doomed.note_events(claim.lease, "last\n")  # anything awaited makes it durable
        await harness.kill(doomed)
        await store.reap(harness.clock.now())
        taken = await store.claim(claim.lease.session_id, harness.clock.now())
        assert taken is not None
        assert [(c.call_id, c.state, c.attempt, c.repeatable) for c in taken.calls] == [
            ("a", "done", 1, False),
            ("b", "started", 1, False),
            ("c", "allowed", 0, False),
            ("d", "refused", 0, False),
            ("e", "allowed", 0, True),
        ]
        assert taken.calls[0].result == answer("a", "short")
        assert (taken.calls[1].args, taken.calls[1].args_hash) == ({"amount": 1}, calls[1].args_hash)
        assert await store.full_result(claim.lease.session_id, "a") == "the whole text"
        turn = await store.turn(claim.lease.turn_id)
        assert turn is not None and turn.events == "line\nmore\nlast\n"
        assert taken.log_length == 2

    async def test_a_finished_call_is_not_begun_again(self, harness: StoreHarness, store: Store) -> None:
        claim = await begun(store, harness.clock)
        await replied(store, claim, row("a"))
        await store.calls_started(claim.lease, ["a"], harness.clock.now(), "")
        store.call_done(claim.lease, answer("a"), None, harness.clock.now())
        store.call_done(claim.lease, answer("a", "another"), None, harness.clock.now())
        await store.calls_started(claim.lease, ["a"], harness.clock.now(), "")
        assert [(c.state, c.attempt, c.result) for c in await store.calls(claim.lease.session_id)] == [
            ("done", 1, answer("a"))
        ]

    async def test_the_results_close_the_step(self, harness: StoreHarness, store: Store) -> None:
        claim = await begun(store, harness.clock)
        await replied(store, claim, row("a"), text="one moment")
        await answered(store, claim, answer("a"))
        await store.release(claim.lease)
        taken = await store.claim(claim.lease.session_id, harness.clock.now())
        assert taken is not None and (taken.calls, taken.decisions, taken.log_length) == ((), (), 3)
        log = await store.log(claim.lease.session_id)
        assert repaired(log) == log

    async def test_a_marker_does_not_hide_the_open_step(self, harness: StoreHarness, store: Store) -> None:
        claim = await begun(store, harness.clock)
        await store.marker(claim.lease, Message(role="user", content=(), kind="trim", covers=1), "m\n")
        await replied(store, claim, row("a"))
        await store.release(claim.lease)
        taken = await store.claim(claim.lease.session_id, harness.clock.now())
        assert taken is not None and [c.call_id for c in taken.calls] == ["a"]

    async def test_the_end_of_a_turn_is_one_write(self, harness: StoreHarness, store: Store) -> None:
        claim = await begun(store, harness.clock)
        session = claim.lease.session_id
        ended = await finished(store, claim, harness.clock, "fine", card(pending(row("x")), KEY, session))
        view, turn = await store.session(session), await store.turn(claim.lease.turn_id)
        assert view is not None and (view.status, view.log_length) == ("idle", 2)
        assert turn is not None and (turn.state, turn.outcome) == ("done", "completed")
        assert (turn.spent.steps, turn.ended_at) == (1, harness.clock.now())
        assert [d.kind for d in ended.deliveries] == ["card"] and not ended.more

    async def test_an_end_that_answers_calls_leaves_nothing_of_the_step_behind(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, count=2)
        await word(store, stop.pendings[0], harness.clock)
        claim = await store.claim(stop.session_id, harness.clock.now())
        assert claim is not None and len(claim.decisions) == 2
        cut = tool_results([answer(p.call_id, INTERRUPTED, is_error=True) for p in stop.pendings])
        await store.finish(claim.lease, end("crashed", messages=[cut]), harness.clock.now())
        left = await store.pending(stop.pendings[1].pending_id)
        assert left is not None and (left.state, left.current) == ("superseded", False)
        assert await harness.rows("checkpoints") == 0
        following = await begun(store, harness.clock, "next")
        await replied(store, following, row("later"))
        await store.release(following.lease)
        taken = await store.claim(stop.session_id, harness.clock.now())
        assert taken is not None and taken.decisions == ()

    async def test_a_stop_is_one_write(self, harness: StoreHarness, store: Store) -> None:
        """C039: what a card stands for is on disk before the card can exist."""
        doomed = await harness.open()
        stop = await waiting(
            doomed, harness.clock, count=2, cards=True, expires_at=harness.clock.now() + 60, approvers=("x",)
        )
        await harness.kill(doomed)
        view = await store.session(stop.session_id)
        assert view is not None and (view.status, view.open_pendings) == ("pending", 2)
        records = await store.pendings(session_id=stop.session_id)
        assert {r.id: r.pending for r in records} == {p.pending_id: p for p in stop.pendings}
        assert all(r.state == "open" and r.current and r.agent == "helper" for r in records)
        assert await harness.rows("checkpoints") == 1
        assert await harness.rows("timers") == 2
        assert len(stop.ended.deliveries) == 1  # the other card is behind it in the same thread
        assert await store.next_timer_at() == harness.clock.now() + 60
        turn = await store.turn(stop.claim.lease.turn_id)
        assert turn is not None and (turn.state, turn.outcome) == ("parked", "pending_approval")

    async def test_a_stop_by_a_zombie_leaves_nothing(self, harness: StoreHarness, store: Store) -> None:
        claim = await begun(store, harness.clock)
        await replied(store, claim, row("a", state="waiting"))
        await store.release(claim.lease)
        other = await harness.open()
        await other.claim(claim.lease.session_id, harness.clock.now())
        asked = pending(row("a"), expires_at=harness.clock.now() + 60)
        with pytest.raises(LeaseLost):
            await parked(store, claim, harness.clock, asked, outgoing=[card(asked)])
        for table in ("pendings", "checkpoints", "timers", "deliveries", "audit"):
            assert await harness.rows(table) == 0

    async def test_a_stopped_step_keeps_the_results_that_only_the_checkpoint_has(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        await replied(store, claim, row("a"), row("b", state="waiting"))
        asked = pending(row("b"))
        await parked(store, claim, harness.clock, asked, results={"a": answer("a", "kept")})
        await word(store, asked, harness.clock)
        taken = await store.claim(claim.lease.session_id, harness.clock.now())
        assert taken is not None
        assert [(c.call_id, c.state, c.result) for c in taken.calls] == [
            ("a", "done", answer("a", "kept")),
            ("b", "waiting", None),
        ]

    async def test_a_waiting_session_is_claimed_only_after_a_word(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock)
        await say(store, "and?", harness.clock)
        assert await store.claim(stop.session_id, harness.clock.now()) is None
        assert await store.claimable(harness.clock.now()) == []
        await word(store, stop.pendings[0], harness.clock)
        claim = await store.claim(stop.session_id, harness.clock.now())
        assert claim is not None and claim.kind == "resume"
        assert claim.lease.turn_id != stop.claim.lease.turn_id
        assert (claim.requester, claim.message_id) == (stop.claim.requester, stop.claim.message_id)
        assert (claim.spent.steps, claim.spent.tokens) == (1, 5)
        assert [(d.id, d.state) for d in claim.decisions] == [(stop.pendings[0].pending_id, "approved")]

    async def test_a_word_that_lands_while_a_sibling_goes_on_is_not_lost(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, count=2)
        first, second = stop.pendings
        await word(store, first, harness.clock)
        claim = await store.claim(stop.session_id, harness.clock.now())
        assert claim is not None
        await word(store, second, harness.clock)
        ended = await parked(store, claim, harness.clock, second, new=())
        assert ended.more
        view = await store.session(stop.session_id)
        assert view is not None and view.status == "ready"
        last = await store.claim(stop.session_id, harness.clock.now())
        assert last is not None and last.kind == "resume"
        assert {d.state for d in last.decisions} == {"approved"}

    async def test_what_people_were_asked_comes_oldest_first_even_when_the_clock_stands_still(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        call = row("a", state="waiting")
        await replied(store, claim, call)
        first, second = pending(call, pending_id="p_z"), pending(call, pending_id="p_a")
        for asked in (first, second):
            await parked(store, claim, harness.clock, asked)
            await word(store, asked, harness.clock)
            taken = await store.claim(claim.lease.session_id, harness.clock.now())
            assert taken is not None
            claim = taken
        assert [d.id for d in claim.decisions] == ["p_z", "p_a"]

    async def test_the_claim_brings_the_log_where_it_is_wanted(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        await finished(store, claim, harness.clock)
        session = claim.lease.session_id
        await say(store, "next", harness.clock, claim=False)
        taken = await store.claim(session, harness.clock.now(), have=lambda _: -1)
        assert taken is not None and taken.log is not None
        assert [m.text for m in taken.log] == ["hello", "fine"]
        await finished(store, taken, harness.clock)
        await say(store, "again", harness.clock, claim=False)
        hot = await store.claim(session, harness.clock.now(), have=lambda _: 4)
        assert hot is not None and hot.log is None

    async def test_claimable_lists_the_oldest_first_and_no_more_than_wanted(
        self, harness: StoreHarness, store: Store
    ) -> None:
        sessions = []
        for n in range(4):
            key = KEY._replace(conversation=f"c{n}")
            sessions.append((await say(store, "x", harness.clock, key=key, claim=False)).session_id)
            harness.clock.advance(1)
        assert await store.claimable(harness.clock.now(), limit=3) == sessions[:3]
