"""Decisions, /stop and /new: what every store promises about people's words."""

from __future__ import annotations

import asyncio
from typing import get_args

import pytest

from gateway.approvals import (
    CLOSED_OUTCOME,
    NEXT,
    Answer,
    Approve,
    Deny,
    Expire,
    PendingKind,
    Resolution,
    Supersede,
)
from gateway.messages import Actor
from gateway.store.base import Store
from gateway.store.rows import Resolved, Verdict
from tests.contracts.store_scene import (
    ANN,
    BOB,
    EVE,
    KEY,
    OTHER,
    Stopped,
    StoreHarness,
    all_sent,
    answer,
    answered,
    begun,
    card,
    finished,
    parked,
    pending,
    question,
    replied,
    row,
    say,
    waiting,
    word,
)

WORDS: dict[str, Resolution] = {
    "approve": Approve(),
    "deny": Deny(),
    "answer": Answer(values=("x",)),
    "expire": Expire(),
    "supersede": Supersede(by="/stop"),
}
KINDS: tuple[PendingKind, ...] = get_args(PendingKind)


async def asking(store: Store, harness: StoreHarness, kind: PendingKind) -> Stopped:
    """A session that waits for one thing of this kind, which has just run out."""
    claim = await begun(store, harness.clock)
    call = row("call", state="waiting")
    await replied(store, claim, call)
    at = harness.clock.now() + 60
    asked = pending(call, expires_at=at) if kind == "approval" else question(call)
    if kind == "question":
        asked = pending(call, kind="question", question=asked.question, expires_at=at)
    ended = await parked(store, claim, harness.clock, asked)
    return Stopped(claim=claim, pendings=(asked,), ended=ended)


class PeopleContract:
    """See gateway.store.base: A resolution, /stop, /new."""

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("said", WORDS)
    async def test_an_open_pending_moves_as_the_table_says_and_never_again(
        self, harness: StoreHarness, store: Store, kind: PendingKind, said: str
    ) -> None:
        stop = await asking(store, harness, kind)
        asked, resolution = stop.pendings[0], WORDS[said]
        if said == "expire":
            harness.clock.advance(60)
        resolved = await word(store, asked, harness.clock, resolution)
        state = NEXT.get((kind, type(resolution)))
        if state is None:
            assert resolved.outcome == "invalid"
            assert resolved.record is not None and resolved.record.state == "open"
            return
        assert (resolved.outcome, resolved.still_open) == ("resumed", 0)
        record = resolved.record
        assert record is not None
        assert (record.state, record.decision, record.decided_by) == (state, resolution, "Ann")
        assert (record.actor, record.decided_at) == (str(ANN), harness.clock.now())
        for later in WORDS.values():
            again = await word(store, asked, harness.clock, later, actor=BOB, by="Bob")
            fits = (kind, type(later)) in NEXT
            assert again.outcome == (CLOSED_OUTCOME[state] if fits else "invalid")
            assert again.record == record

    async def test_nobody_can_decide_what_does_not_exist(self, harness: StoreHarness, store: Store) -> None:
        resolved = await word(store, pending(row("x")), harness.clock)
        assert (resolved.outcome, resolved.record) == ("unknown", None)

    async def test_c039_of_two_processes_exactly_one_decides(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock)
        other = await harness.open()
        barrier = asyncio.Barrier(2)

        async def click(one: Store, who: Actor, resolution: Resolution) -> Resolved:
            await barrier.wait()
            asked = stop.pendings[0]
            return await word(one, asked, harness.clock, resolution, actor=who, by=f"by {who.user}")

        results = await asyncio.gather(click(store, ANN, Approve()), click(other, BOB, Deny()))
        assert sorted(r.outcome for r in results) == ["already", "resumed"]
        winner = next(r for r in results if r.outcome == "resumed")
        assert [r.record for r in results] == [winner.record, winner.record]
        claims = await asyncio.gather(
            *(s.claim(stop.session_id, harness.clock.now()) for s in (store, other))
        )
        assert sum(c is not None for c in claims) == 1

    async def test_deciding_can_claim_what_it_sets_free(self, harness: StoreHarness, store: Store) -> None:
        stop = await waiting(store, harness.clock)
        verdict = Verdict(
            pending_id=stop.pendings[0].pending_id,
            resolution=Approve(),
            actor=ANN,
            by="Ann",
            at=harness.clock.now(),
        )
        resolved = await store.resolve(verdict, claim=True, have=lambda _: -1)
        assert resolved.claim is not None and resolved.claim.kind == "resume"
        assert await store.claim(stop.session_id, harness.clock.now()) is None
        again = await store.resolve(verdict, claim=True)
        assert (again.outcome, again.claim) == ("already", None)

    async def test_c046_at_the_moment_of_its_end_a_request_has_expired_sweep_or_no_sweep(
        self, harness: StoreHarness, store: Store
    ) -> None:
        at = harness.clock.now() + 60
        stop = await waiting(store, harness.clock, cards=True, expires_at=at)
        await store.sent(stop.ended.deliveries[0].id, "77", harness.clock.now())
        harness.clock.advance(60)
        click = await word(store, stop.pendings[0], harness.clock)
        assert click.outcome == "expired" and click.record is not None
        assert (click.record.state, click.record.actor) == ("expired", "")
        assert click.record.decision == Expire()
        assert [d.kind for d in await store.due_deliveries(harness.clock.now())] == ["redraw"]
        kinds = [line.kind for line in await store.audit_lines()]
        assert "expired" in kinds and "approved" not in kinds and "denied" not in kinds
        assert await store.next_timer_at() is None

    async def test_c046_a_moment_before_its_end_a_request_can_be_decided_and_the_clock_cannot(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, expires_at=harness.clock.now() + 60)
        harness.clock.advance(59.999)
        early = await word(store, stop.pendings[0], harness.clock, Expire())
        assert early.record is not None and early.record.state == "open"
        assert (await word(store, stop.pendings[0], harness.clock)).outcome == "resumed"

    async def test_without_an_end_a_request_never_expires(self, harness: StoreHarness, store: Store) -> None:
        stop = await waiting(store, harness.clock)
        harness.clock.advance(hours=24 * 365)
        early = await word(store, stop.pendings[0], harness.clock, Expire())
        assert early.record is not None and early.record.state == "open"
        assert (await word(store, stop.pendings[0], harness.clock)).outcome == "resumed"

    async def test_a_request_of_an_earlier_generation_is_closed_alone(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, count=2)
        old, kept = stop.pendings
        await harness.tamper(f"UPDATE pendings SET generation = -1 WHERE id = '{old.pending_id}'")  # noqa: S608
        assert (await word(store, old, harness.clock)).outcome == "superseded"
        assert (await word(store, kept, harness.clock)).outcome == "resumed"

    async def test_siblings_are_decided_one_by_one_in_any_order(
        self, harness: StoreHarness, store: Store
    ) -> None:
        """C041: three calls, three ids, three independent decisions."""
        stop = await waiting(store, harness.clock, count=3)
        third, first, second = stop.pendings[2], stop.pendings[0], stop.pendings[1]
        outcomes = [await word(store, asked, harness.clock) for asked in (third, first, second)]
        assert [(r.outcome, r.still_open) for r in outcomes] == [
            ("recorded", 2),
            ("recorded", 1),
            ("resumed", 0),
        ]

    async def test_a_denial_closes_the_siblings_and_redraws_every_card(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, count=3, cards=True, expires_at=harness.clock.now() + 60)
        await all_sent(store, stop.ended.deliveries, harness.clock)
        denied = await word(store, stop.pendings[1], harness.clock, Deny())
        assert (denied.outcome, denied.still_open) == ("resumed", 0)
        records = [await store.pending(p.pending_id) for p in stop.pendings]
        assert [r.state for r in records if r is not None] == ["superseded", "denied", "superseded"]
        assert next(r.decision for r in records if r is not None) == Supersede(by="denial")
        assert await store.next_timer_at() is None
        redraws = await all_sent(store, await store.due_deliveries(harness.clock.now()), harness.clock)
        assert sorted(d.pending_id for d in redraws) == sorted(p.pending_id for p in stop.pendings)
        assert {d.kind for d in redraws} == {"redraw"}

    async def test_c045_a_denial_that_does_not_stop_the_step_leaves_the_siblings(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, count=2)
        denied = await word(
            store, stop.pendings[0], harness.clock, Deny(feedback="not on Friday"), stops_batch=False
        )
        assert (denied.outcome, denied.still_open) == ("recorded", 1)
        assert await store.queued_texts(stop.session_id) == []  # the call's result carries the words

    async def test_a_step_does_not_go_on_before_the_last_of_several_words(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, count=3)
        first, second, third = stop.pendings
        for asked in (first, second):
            said = await word(store, asked, harness.clock, Deny(), stops_batch=False, more=True)
            assert said.outcome == "recorded"
            assert await store.claim(stop.session_id, harness.clock.now()) is None
        assert (await word(store, third, harness.clock, Deny())).outcome == "resumed"
        records = await store.pendings(session_id=stop.session_id, open_only=False)
        assert [record.state for record in records] == ["denied"] * 3
        claim = await store.claim(stop.session_id, harness.clock.now())
        assert claim is not None and claim.kind == "resume"

    async def test_feedback_is_the_next_message_before_everything_that_waits(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock)
        await say(store, "said earlier", harness.clock)
        await word(store, stop.pendings[0], harness.clock, Deny(feedback="use the sandbox"))
        texts = [text for _, text in await store.queued_texts(stop.session_id)]
        assert texts == ["use the sandbox", "said earlier"]
        claim = await store.claim(stop.session_id, harness.clock.now())
        assert claim is not None and claim.kind == "resume"
        await answered(store, claim, answer(stop.pendings[0].call_id, "denied", is_error=True))
        assert (await finished(store, claim, harness.clock)).more
        following = await store.claim(stop.session_id, harness.clock.now())
        assert following is not None and following.message is not None
        assert (following.message.text, following.message.author) == ("use the sandbox", "Ann")
        assert following.requester == ANN

    async def test_a_quorum_counts_people_not_clicks(self, harness: StoreHarness, store: Store) -> None:
        stop = await waiting(store, harness.clock, quorum=3)
        asked = stop.pendings[0]
        votes = [(ANN, "recorded", 2), (ANN, "recorded", 2), (BOB, "recorded", 1), (EVE, "resumed", 0)]
        for who, outcome, missing in votes:
            resolved = await word(store, asked, harness.clock, actor=who, by=who.user)
            assert (resolved.outcome, resolved.votes_missing) == (outcome, missing)
        record = await store.pending(asked.pending_id)
        assert record is not None and record.votes == (str(ANN), str(BOB), str(EVE))
        kinds = [line.kind for line in await store.audit_lines()]
        assert (kinds.count("agreed"), kinds.count("approved")) == (2, 1)

    async def test_one_person_can_refuse_what_several_must_approve(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, quorum=2)
        await word(store, stop.pendings[0], harness.clock)
        assert (await word(store, stop.pendings[0], harness.clock, Deny(), actor=BOB)).outcome == "resumed"
        late = await word(store, stop.pendings[0], harness.clock, actor=EVE)
        assert late.outcome == "already"

    async def test_two_last_votes_at_once_are_both_counted(self, harness: StoreHarness, store: Store) -> None:
        stop = await waiting(store, harness.clock, quorum=2)
        other = await harness.open()
        results = await asyncio.gather(
            word(store, stop.pendings[0], harness.clock, actor=ANN),
            word(other, stop.pendings[0], harness.clock, actor=BOB),
        )
        assert sorted(r.outcome for r in results) == ["recorded", "resumed"]

    async def test_a_vote_after_the_end_is_too_late(self, harness: StoreHarness, store: Store) -> None:
        stop = await waiting(store, harness.clock, quorum=2, expires_at=harness.clock.now() + 60)
        harness.clock.advance(61)
        assert (await word(store, stop.pendings[0], harness.clock)).outcome == "expired"

    async def test_a_grant_is_stored_exactly_as_wide_as_the_click(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock)
        await word(store, stop.pendings[0], harness.clock, Approve(scope="session"))
        claim = await store.claim(stop.session_id, harness.clock.now())
        assert claim is not None
        grant = claim.grants[0]
        assert (grant.kind, grant.tool, grant.args) == ("session", "pay", {"amount": 0})
        assert (grant.agent, grant.session_id, grant.granted_by) == ("helper", stop.session_id, str(ANN))
        assert (await begun(store, harness.clock, key=OTHER)).grants == ()
        await answered(store, claim, answer(stop.pendings[0].call_id))
        await finished(store, claim, harness.clock)
        assert (await begun(store, harness.clock)).grants == (grant,)

    async def test_a_grant_for_always_holds_for_the_agent_everywhere(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock)
        await word(store, stop.pendings[0], harness.clock, Approve(scope="always", edited_args={"amount": 7}))
        grants = (await begun(store, harness.clock, key=OTHER)).grants
        assert [(g.kind, g.args, g.session_id) for g in grants] == [("always", {"amount": 7}, "")]
        third = KEY._replace(conversation="third")
        assert (await begun(store, harness.clock, key=third, agent="another")).grants == ()

    async def test_an_approval_for_once_grants_nothing(self, harness: StoreHarness, store: Store) -> None:
        stop = await waiting(store, harness.clock)
        await word(store, stop.pendings[0], harness.clock)
        assert await harness.rows("grants") == 0

    async def test_choices_are_changed_only_by_who_has_seen_the_last_ones(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        call = row("ask", "ask_user", state="waiting")
        await replied(store, claim, call)
        asked = question(call, multi=True)
        ended = await parked(store, claim, harness.clock, asked, outgoing=[card(asked)])
        await store.sent(ended.deliveries[0].id, "77", harness.clock.now())
        now = harness.clock.now()
        assert await store.choose(asked.pending_id, [], ["a"], now)
        assert not await store.choose(asked.pending_id, [], ["b"], now)
        assert await store.choose(asked.pending_id, ["a"], ["a", "b"], now)
        record = await store.pending(asked.pending_id)
        assert record is not None and record.votes == ("a", "b")
        assert [d.kind for d in await store.due_deliveries(now)] == ["redraw"]  # two changes, one redraw
        await word(store, asked, harness.clock, Answer(values=("a", "b")))
        assert not await store.choose(asked.pending_id, ["a", "b"], [], now)
        assert not await store.choose("p_unknown", [], ["a"], now)

    async def test_pendings_are_found_by_session_thread_and_code(
        self, harness: StoreHarness, store: Store
    ) -> None:
        here = await waiting(store, harness.clock, count=2)
        harness.clock.advance(1)
        there = await waiting(store, harness.clock, key=OTHER)
        ids = [p.pending_id for p in (*here.pendings, *there.pendings)]
        assert sorted(r.id for r in await store.pendings()) == sorted(ids)
        assert [r.id for r in await store.pendings()][-1] == ids[-1]
        assert {r.id for r in await store.pendings(session_id=here.session_id)} == set(ids[:2])
        assert [r.id for r in await store.pendings(key=OTHER)] == [ids[2]]
        assert [r.id for r in await store.pendings(code=there.pendings[0].code)] == [ids[2]]
        assert len(await store.pendings(limit=1)) == 1
        await word(store, there.pendings[0], harness.clock)
        assert await store.pendings(key=OTHER) == []
        assert [r.state for r in await store.pendings(key=OTHER, open_only=False)] == ["approved"]
        assert await store.pending("p_unknown") is None
