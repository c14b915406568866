"""Reminders and escalations: what every store promises about what the clock does to open requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.approvals import Deny
from gateway.patience import Escalation, Quiet
from gateway.store.base import Store
from gateway.store.rows import Firing, Timer
from tests.contracts.store_scene import (
    ANN,
    KEY,
    OTHER,
    Stopped,
    StoreHarness,
    all_sent,
    card,
    notice,
    waiting,
    word,
)

HOUR = 3600.0
STEP = Escalation(after=HOUR, notify=("telegram:9",), approvers=("telegram:3",))


def firing(stop: Stopped, timer: Timer, at: float, **changes: Any) -> Firing:
    """What a due timer does: a notice, unless `changes` say otherwise."""
    given: dict[str, Any] = {
        "timer": timer,
        "at": at,
        "pending_ids": tuple(p.pending_id for p in stop.pendings),
        "outgoing": (notice("still waiting"),),
    }
    return Firing(**{**given, **changes})


async def texts(store: Store, harness: StoreHarness) -> list[str]:
    """The notices that wait to be sent, sent."""
    rows = await all_sent(store, await store.due_deliveries(harness.clock.now()), harness.clock)
    return [row.payload["text"] for row in rows if row.kind == "notice"]


class TimerContract:
    """See gateway.store.base.Store.fire and put_off_timer, and the timers of a stop."""

    async def test_a_stop_sets_every_timer_of_its_requests(self, harness: StoreHarness, store: Store) -> None:
        now = harness.clock.now()
        await waiting(store, harness.clock, remind=(60.0, 120.0), escalate=STEP, expires_at=now + 2 * HOUR)
        due = await store.due_timers(now + 3 * HOUR)
        assert [(timer.kind, timer.due_at - now) for timer in due] == [
            ("remind", 60.0),
            ("remind", 120.0),
            ("escalate", HOUR),
            ("expiry", 2 * HOUR),
        ]

    async def test_quiet_hours_move_what_is_said_and_never_the_end(
        self, harness: StoreHarness, store: Store
    ) -> None:
        now = harness.clock.now()
        minute = int(now // 60 % 1440)
        quiet = Quiet(start=minute, end=(minute + 180) % 1440)
        await waiting(
            store, harness.clock, remind=(60.0,), escalate=STEP, quiet=quiet, expires_at=now + 9_000
        )
        # What would come after the end does not come at all.
        assert [timer.kind for timer in await store.due_timers(now + 9_000)] == ["expiry"]
        later = await waiting(store, harness.clock, remind=(60.0,), quiet=quiet, key=OTHER)
        (timer,) = [t for t in await store.due_timers(now + 4 * HOUR) if t.kind == "remind"]
        assert timer.subject == later.pendings[0].pending_id
        assert now + 10_740 < timer.due_at <= now + 10_800

    async def test_a_decision_ends_every_timer(self, harness: StoreHarness, store: Store) -> None:
        stop = await waiting(
            store,
            harness.clock,
            remind=(60.0,),
            escalate=STEP,
            expires_at=harness.clock.now() + 2 * HOUR,
        )
        await word(store, stop.pendings[0], harness.clock)
        assert await store.next_timer_at() is None

    async def test_a_reminder_is_sent_once_whoever_tries_and_is_on_record(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, remind=(60.0,))
        harness.clock.advance(60)
        now = harness.clock.now()
        (timer,) = await store.due_timers(now)
        other = await harness.open()
        tried = await asyncio.gather(
            *(one.fire(firing(stop, timer, now)) for one in (store, other, store, other))
        )
        assert sorted(tried) == [False, False, False, True]
        assert await texts(store, harness) == ["still waiting"]
        assert await store.due_timers(now) == []
        (line,) = [line for line in await store.audit_lines() if line.kind == "reminded"]
        assert (line.actor, line.pending_id) == ("clock", stop.pendings[0].pending_id)

    async def test_reminders_of_a_card_that_are_due_together_are_one_and_a_later_one_stays(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, count=2, remind=(60.0, 120.0, HOUR), card="p_shared")
        harness.clock.advance(180)
        now = harness.clock.now()
        due = await store.due_timers(now)
        assert len(due) == 4
        assert [await store.fire(firing(stop, timer, now)) for timer in due] == [True, False, False, False]
        assert [timer.due_at - now for timer in await store.due_timers(now + HOUR)] == [HOUR - 180] * 2
        kinds = [line.kind for line in await store.audit_lines()]
        assert kinds.count("reminded") == 2  # one for each request

    async def test_a_timer_of_a_request_that_is_closed_does_nothing(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, remind=(60.0,), escalate=STEP)
        harness.clock.advance(HOUR)
        now = harness.clock.now()
        due = await store.due_timers(now)
        await word(store, stop.pendings[0], harness.clock, Deny())
        assert [await store.fire(firing(stop, timer, now, step=STEP)) for timer in due] == [False, False]
        assert await texts(store, harness) == []
        assert {line.kind for line in await store.audit_lines()} & {"reminded", "escalated"} == set()

    async def test_a_timer_of_a_request_that_has_run_out_does_nothing_and_is_done(
        self, harness: StoreHarness, store: Store
    ) -> None:
        now = harness.clock.now()
        stop = await waiting(store, harness.clock, remind=(60.0,), expires_at=now + 120)
        (timer,) = await store.due_timers(now + 60)
        assert not await store.fire(firing(stop, timer, now + 120))
        assert [timer.kind for timer in await store.due_timers(now + 120)] == ["expiry"]
        assert await texts(store, harness) == []

    async def test_words_about_requests_that_are_no_longer_those_are_not_said(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, count=2, remind=(60.0,), card="p_shared")
        harness.clock.advance(60)
        now = harness.clock.now()
        timer = (await store.due_timers(now))[1]
        await word(store, stop.pendings[0], harness.clock)
        assert not await store.fire(firing(stop, timer, now))
        assert [timer.id] == [left.id for left in await store.due_timers(now)]
        assert await store.fire(firing(stop, timer, now, pending_ids=(timer.subject,)))
        assert await texts(store, harness) == ["still waiting"]

    async def test_an_escalation_lets_others_decide_too_and_shows_it_everywhere(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock, cards=True, remind=(60.0,), escalate=STEP)
        await all_sent(store, stop.ended.deliveries, harness.clock)
        harness.clock.advance(HOUR)
        now = harness.clock.now()
        (asked,) = stop.pendings
        timer = next(timer for timer in await store.due_timers(now) if timer.kind == "escalate")
        rows = (card(asked, OTHER), notice("others are asked too"))
        assert await store.fire(firing(stop, timer, now, step=STEP, outgoing=rows))
        record = await store.pending(asked.pending_id)
        assert record is not None and record.state == "open"
        assert record.pending.approvers == ("requester", "telegram:3")
        assert record.pending.notify == ("telegram:9",)
        sent = await all_sent(store, await store.due_deliveries(now), harness.clock)
        assert {(row.kind, row.key) for row in sent} == {("redraw", KEY), ("card", OTHER), ("notice", KEY)}
        (line,) = [line for line in await store.audit_lines() if line.kind == "escalated"]
        assert line.body["approvers"] == ["telegram:3"] and line.args_hash == asked.args_hash
        assert await store.next_timer_at() is None  # the reminder is part of it

    @pytest.mark.parametrize("moved", [60.0, 0.5])
    async def test_a_timer_that_is_put_off_is_due_then(
        self, harness: StoreHarness, store: Store, moved: float
    ) -> None:
        stop = await waiting(store, harness.clock, remind=(60.0,))
        harness.clock.advance(60)
        now = harness.clock.now()
        (timer,) = await store.due_timers(now)
        await store.put_off_timer(timer.id, now + moved)
        assert await store.due_timers(now) == [] and await store.next_timer_at() == now + moved
        (again,) = await store.due_timers(now + moved)
        assert await store.fire(firing(stop, again, now + moved))
        await store.put_off_timer(timer.id, now + 2 * moved)
        assert await store.next_timer_at() is None

    async def test_what_a_word_brings_along_is_sent_only_where_it_counts(
        self, harness: StoreHarness, store: Store
    ) -> None:
        stop = await waiting(store, harness.clock)
        for actor in (ANN, ANN):
            rows = (notice("over"),)
            await word(store, stop.pendings[0], harness.clock, Deny(), actor=actor, outgoing=rows)
        assert await texts(store, harness) == ["over"]
