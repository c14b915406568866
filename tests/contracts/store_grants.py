"""Grants, requests that are passed on, messages that supersede, runs on record: what every store promises."""

from __future__ import annotations

import asyncio

import pytest

from gateway.approvals import CANCELLED, Answer, Approve, Deny, Supersede
from gateway.messages import Json, call_hash
from gateway.store.base import Store
from gateway.store.rows import Given, GrantRecord
from tests.contracts.store_scene import (
    ANN,
    BOB,
    KEY,
    OTHER,
    Stopped,
    StoreHarness,
    all_sent,
    begun,
    parked,
    question,
    replied,
    row,
    say,
    waiting,
    word,
)


async def kinds(store: Store) -> list[str]:
    """The kinds of the record's lines, oldest first."""
    return [line.kind for line in await store.audit_after(0)]


async def grant(store: Store, harness: StoreHarness, scope: str = "always", **more: object) -> GrantRecord:
    """Something that Ann has granted."""
    stop = await waiting(store, harness.clock, **more)  # type: ignore[arg-type]
    await word(store, stop.pendings[0], harness.clock, Approve(scope=scope))  # type: ignore[arg-type]
    return (await store.grants(harness.clock.now()))[0]


def given(stop: Stopped, harness: StoreHarness, *approvers: str) -> Given:
    return Given(
        pending_id=stop.pendings[0].pending_id,
        approvers=approvers,
        actor=ANN,
        by="Ann",
        at=harness.clock.now(),
        via="test",
    )


class GrantContract:
    """See gateway.store.base: grants, give, accept with `supersedes`, calls_started with `allowed`."""

    async def test_a_grant_is_listed_with_the_request_it_came_from(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, secret=("key",), code="abcde")
        asked = stop.pendings[0]
        await word(store, asked, harness.clock, Approve(scope="session"))
        (found,) = await store.grants(harness.clock.now())
        assert (found.code, found.secret, found.key, found.by) == ("abcde", ("key",), KEY, "Ann")
        assert (found.grant.kind, found.grant.session_id) == ("session", stop.session_id)
        assert (found.grant.tool, found.grant.args) == (asked.tool, asked.args)
        assert (found.grant.granted_by, found.pending_id) == (str(ANN), asked.pending_id)
        assert await store.grant(found.id) == found

    async def test_grants_of_a_session_are_its_own_and_those_for_all_of_its_agent(
        self, harness: StoreHarness, store: Store
    ) -> None:
        own = await waiting(store, harness.clock)
        await word(store, own.pendings[0], harness.clock, Approve(scope="session"))
        harness.clock.advance(1)
        other = await waiting(store, harness.clock, key=OTHER)
        await word(store, other.pendings[0], harness.clock, Approve(scope="always"))
        now = harness.clock.now()
        here = await store.grants(now, agent="helper", session_id=own.session_id)
        there = await store.grants(now, agent="helper", session_id=other.session_id)
        assert [g.grant.kind for g in here] == ["always", "session"]
        assert [g.grant.kind for g in there] == ["always"]
        assert await store.grants(now, agent="nobody", session_id=own.session_id) == []
        assert await store.grants(now) == here and len(await store.grants(now, limit=1)) == 1

    async def test_a_person_who_was_let_in_is_no_grant_that_is_listed(
        self, harness: StoreHarness, store: Store
    ) -> None:
        await store.pairing_code(BOB, "Bob", KEY, "code", harness.clock.now(), 60, 5)
        assert await store.admit("code", ANN, harness.clock.now()) is not None
        assert await store.grants(harness.clock.now()) == []

    async def test_a_revoked_grant_is_gone_for_every_claim_and_on_record(
        self, harness: StoreHarness, store: Store
    ) -> None:
        found = await grant(store, harness)
        assert await store.revoke(found.id, "Bob", BOB, harness.clock.now())
        assert await store.grants(harness.clock.now()) == [] and await store.grant(found.id) is None
        claim = await begun(store, harness.clock, key=OTHER)
        assert claim.grants == ()
        line = (await store.audit_after(0))[-1]
        assert (line.kind, line.actor, line.body["grant"]) == ("revoked", str(BOB), found.id)
        assert line.args_hash == call_hash(found.grant.tool, found.grant.args)
        assert line.pending_id == found.pending_id

    async def test_a_grant_is_revoked_once_whoever_is_quicker(
        self, harness: StoreHarness, store: Store
    ) -> None:
        found, other, now = await grant(store, harness), await harness.open(), harness.clock.now()
        done = await asyncio.gather(
            store.revoke(found.id, "Ann", ANN, now), other.revoke(found.id, "Bob", BOB, now)
        )
        assert sorted(done) == [False, True] and (await kinds(store)).count("revoked") == 1

    async def test_nothing_is_revoked_that_is_no_grant(self, harness: StoreHarness, store: Store) -> None:
        assert await store.grant("g_x") is None
        assert not await store.revoke("g_x", "Ann", ANN, harness.clock.now())
        assert await kinds(store) == []

    # ---- passing on

    async def test_who_decides_can_be_changed_while_it_is_open(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, cards=True, approvers=("telegram:1",))
        await all_sent(store, stop.ended.deliveries, harness.clock)
        changed = await store.give(given(stop, harness, "slack:U2"))
        assert changed is not None and changed.pending.approvers == ("slack:U2",)
        assert changed == await store.pending(changed.id) and changed.state == "open"
        line = (await store.audit_after(0))[-1]
        assert (line.kind, line.actor, line.pending_id) == ("reassigned", str(ANN), changed.id)
        assert (line.body["before"], line.body["after"]) == (["telegram:1"], ["slack:U2"])
        (redraw,) = await store.due_deliveries(harness.clock.now())
        assert (redraw.kind, redraw.pending_id) == ("redraw", changed.id)

    async def test_what_is_closed_or_run_out_is_passed_on_to_nobody(
        self, harness: StoreHarness, store: Store
    ) -> None:
        closed = await waiting(store, harness.clock)
        await word(store, closed.pendings[0], harness.clock, Deny())
        late = await waiting(store, harness.clock, key=OTHER, expires_at=harness.clock.now() + 60)
        harness.clock.advance(60)
        before = await kinds(store)
        for stop in (closed, late):
            assert await store.give(given(stop, harness, "slack:U2")) is None
        unknown = Given(pending_id="p_x", approvers=(), actor=ANN, by="Ann", at=harness.clock.now())
        assert await store.give(unknown) is None and await kinds(store) == before

    # ---- messages that supersede

    async def test_a_newer_message_closes_what_is_open_of_an_agent_that_wants_it(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, count=2)
        accepted = await say(store, "never mind", harness.clock, supersedes=frozenset({"helper"}), by="Ann")
        assert (accepted.outcome, accepted.closed, accepted.waiting_for) == ("queued", 2, ())
        for asked in stop.pendings:
            record = await store.pending(asked.pending_id)
            assert record is not None and (record.state, record.decided_by) == ("superseded", "Ann")
        assert await store.claimable(harness.clock.now()) == [stop.session_id]
        claim = await store.claim(stop.session_id, harness.clock.now())
        assert claim is not None and (claim.kind, claim.cancel) == ("resume", "a newer message by Ann")

    async def test_a_newer_message_closes_nothing_of_another_agent(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock)
        accepted = await say(store, "hello", harness.clock, supersedes=frozenset({"other"}))
        assert accepted.closed == 0 and accepted.waiting_for == (stop.pendings[0].pending_id,)

    async def test_a_message_that_is_known_closes_nothing(self, harness: StoreHarness, store: Store) -> None:
        wanted = frozenset({"helper"})
        stop = await waiting(store, harness.clock)
        first = await say(store, "hello", harness.clock, message_id="9")
        again = await say(store, "hello", harness.clock, message_id="9", supersedes=wanted)
        edited = await say(store, "hallo", harness.clock, message_id="9", edited=True, supersedes=wanted)
        assert (first.outcome, again.outcome, edited.outcome) == ("queued", "duplicate", "edited")
        record = await store.pending(stop.pendings[0].pending_id)
        assert record is not None and record.state == "open"

    async def test_what_became_of_a_cut_off_call_is_not_closed_by_a_message(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        call = row("call", state="waiting")
        await replied(store, claim, call)
        await parked(store, claim, harness.clock, question(call, about="unknown"))
        accepted = await say(store, "hello", harness.clock, supersedes=frozenset({"helper"}))
        assert accepted.closed == 0 and len(accepted.waiting_for) == 1

    # ---- runs on record

    async def test_a_run_that_a_person_set_free_is_on_record_with_its_arguments(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock)
        asked = stop.pendings[0]
        args: Json = {"amount": 5}
        await word(store, asked, harness.clock, Approve(edited_args=args))
        claim = await store.claim(stop.session_id, harness.clock.now())
        assert claim is not None
        digest = call_hash("pay", args)
        await store.calls_started(
            claim.lease,
            [asked.call_id],
            harness.clock.now(),
            "",
            edited={asked.call_id: (args, digest)},
            allowed={asked.call_id: ""},
        )
        line = (await store.audit_after(0))[-1]
        assert (line.kind, line.actor, line.args_hash) == ("executed", str(ANN), digest)
        assert (line.pending_id, line.session_id) == (asked.pending_id, stop.session_id)
        assert (line.body["call"], line.body["attempt"], line.body["by"]) == (asked.call_id, 1, "Ann")

    @pytest.mark.parametrize("granted", [True, False])
    async def test_a_run_without_a_word_of_its_own_is_on_record_by_its_grant_or_not_at_all(
        self, harness: StoreHarness, store: Store, granted: bool
    ) -> None:
        found = await grant(store, harness)
        claim = await begun(store, harness.clock, key=OTHER)
        await replied(store, claim, row("free"))
        before = await kinds(store)
        allowed = {"free": found.id if granted else ""}
        await store.calls_started(claim.lease, ["free"], harness.clock.now(), "", allowed=allowed)
        lines = (await store.audit_after(0))[len(before) :]
        assert [(line.kind, line.actor, line.body["grant"]) for line in lines] == (
            [("executed", str(ANN), found.id)] if granted else []
        )

    async def test_running_again_after_a_crash_is_on_record_as_the_answer_s(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        call = row("call")
        await replied(store, claim, call)
        await store.calls_started(claim.lease, ["call"], harness.clock.now(), "")
        asked = question(call, about="unknown")
        await parked(store, claim, harness.clock, asked)
        await word(store, asked, harness.clock, Answer(values=("run again",)), actor=BOB, by="Bob")
        again = await store.claim(claim.lease.session_id, harness.clock.now())
        assert again is not None
        await store.calls_started(again.lease, ["call"], harness.clock.now(), "", allowed={"call": ""})
        line = (await store.audit_after(0))[-1]
        assert (line.kind, line.actor, line.body["attempt"]) == ("executed", str(BOB), 2)

    # ---- reading the record in pieces

    async def test_the_record_is_read_and_checked_in_pieces(
        self, harness: StoreHarness, store: Store
    ) -> None:
        for n in range(5):
            await store.audit("tried", "web:x", {"n": n}, harness.clock.now())
        assert [line.seq for line in await store.audit_after(1, limit=2)] == [2, 3]
        assert await store.audit_after(5) == []
        first = await store.check_audit(0, "", 2)
        assert (first.seq, first.bad, first.ended) == (2, None, False)
        rest = await store.check_audit(first.seq, first.hash, 10)
        assert (rest.seq, rest.bad, rest.ended) == (5, None, True)
        assert rest.hash == (await store.audit_lines(limit=1))[0].hash
        assert (await store.check_audit(first.seq, "something else", 10)).bad == 3

    async def test_a_piece_says_how_far_it_fits(self, harness: StoreHarness, store: Store) -> None:
        for n in range(5):
            await store.audit("tried", "web:x", {"n": n}, harness.clock.now())
        await harness.tamper("UPDATE audit SET kind = 'approved' WHERE seq = 4", unguarded=True)
        found = await store.check_audit(0, "", 500)
        assert (found.seq, found.bad, found.ended) == (3, 4, False)

    async def test_a_request_taken_back_is_cancelled_on_record(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, count=2)
        resolved = await word(store, stop.pendings[0], harness.clock, Supersede(by=CANCELLED))
        assert (resolved.outcome, resolved.still_open) == ("recorded", 1)
        assert resolved.record is not None and resolved.record.state == "superseded"
        assert await kinds(store) == ["requested", "requested", "cancelled"]
