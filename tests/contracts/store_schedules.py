"""Schedules: what every store promises about what the clock tells sessions and threads."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from gateway.messages import Actor, ThreadKey, user
from gateway.store.base import Store
from gateway.store.rows import Timer
from gateway.store.schedule_rows import IN_THE_FILE, Kept, Schedule, ScheduleRecord, Standing, Wake
from gateway.timetable import Timing, first_after
from tests.contracts.store_scene import (
    ANN,
    BOB,
    KEY,
    OTHER,
    StoreHarness,
    begun,
    finished,
    fresh,
    notice,
    say,
)

HOUR = 3600.0
NOBODY = Actor("", "", "")


async def planned(
    store: Store, harness: StoreHarness, *, timing: Timing | None = None, most: int = 20, id_: str = ""
) -> tuple[ScheduleRecord | None, str]:
    """A schedule that a turn of Ann's has made, and its session."""
    claim = await begun(store, harness.clock)
    now = harness.clock.now()
    timing = timing or Timing(every=HOUR, since=now)
    due_at = first_after(timing, now)
    assert due_at is not None
    schedule = Schedule(
        code=fresh("c"), timing=timing, instruction="Look.", requester=NOBODY, by="", made_at=now
    )
    lease = claim.lease
    made = await store.add_schedule(
        id_ or fresh("c_"), lease.session_id, lease.turn_id, schedule, due_at, most
    )
    await finished(store, claim, harness.clock)
    return made, lease.session_id


async def due(store: Store, harness: StoreHarness) -> Timer:
    (timer,) = await store.due_timers(harness.clock.now())
    return timer


async def woken(store: Store, harness: StoreHarness, timer: Timer, **changes: Any) -> Any:
    """Carry out a due schedule, with the next time an hour later unless `changes` say otherwise."""
    record = await store.schedule(timer.subject)
    assert record is not None
    given: dict[str, Any] = {
        "record": record,
        "due_at": timer.due_at,
        "planned": timer.due_at,
        "next_at": timer.due_at + HOUR,
        "at": harness.clock.now(),
        "message": user("Look."),
        "title": "Scheduled: Look.",
    }
    return await store.wake(Wake(**{**given, **changes}))


def standing(name: str = "morning", **changes: Any) -> Standing:
    given: dict[str, Any] = {
        "name": name,
        "agent": "helper",
        "key": OTHER,
        "timing": Timing(every=HOUR),
        "instruction": "Look.",
    }
    return Standing(**{**given, **changes})


class ScheduleContract:
    """See the schedules of gateway.store.base.Store."""

    async def test_a_schedule_belongs_to_the_person_whose_turn_made_it(
        self, harness: StoreHarness, store: Store
    ) -> None:
        made, session_id = await planned(store, harness)
        assert made is not None
        assert (made.schedule.requester, made.schedule.by) == (ANN, str(ANN))
        assert (made.session_id, made.key, made.agent, made.is_open) == (session_id, KEY, "helper", True)
        assert made.due_at == harness.clock.now() + HOUR == await store.next_timer_at()
        assert await store.schedules(session_id=session_id) == [made]
        assert await store.schedules(key=KEY) == [] and await store.schedules() == [made]
        (line,) = [line for line in await store.audit_lines() if line.kind == "scheduled"]
        assert (line.actor, line.session_id, line.body["schedule"]) == (str(ANN), session_id, made.id)
        assert "Look." not in str(line.body)

    async def test_the_same_id_again_is_the_same_schedule(self, harness: StoreHarness, store: Store) -> None:
        made, _ = await planned(store, harness, id_="c_1")
        harness.clock.advance(60)
        again, _ = await planned(store, harness, id_="c_1")
        assert again == made and await store.schedules() == [made]

    async def test_there_are_only_so_many_of_one_session(self, harness: StoreHarness, store: Store) -> None:
        first, session_id = await planned(store, harness, most=2)
        assert first is not None and (await planned(store, harness, most=2))[0] is not None
        assert (await planned(store, harness, most=2))[0] is None
        assert await store.cancel_schedule(first.id, "Bob", BOB, "/schedules", harness.clock.now())
        assert (await planned(store, harness, most=2))[0] is not None
        assert len(await store.schedules(session_id=session_id)) == 2

    async def test_a_due_schedule_is_carried_out_once_whoever_tries(
        self, harness: StoreHarness, store: Store
    ) -> None:
        made, session_id = await planned(store, harness)
        assert made is not None
        harness.clock.advance(HOUR)
        timer, other = await due(store, harness), await harness.open()
        tried = await asyncio.gather(*(woken(one, harness, timer) for one in (store, other, store, other)))
        assert sorted(one.done for one in tried) == [False, False, False, True]
        assert await store.queued_texts(session_id) == [(f"schedule:{made.id}@{made.due_at:.3f}", "Look.")]
        assert await store.due_timers(harness.clock.now()) == []
        assert await store.next_timer_at() == made.due_at + HOUR
        claim = await other.claim(session_id, harness.clock.now())
        assert claim is not None and claim.requester == ANN and claim.message == user("Look.")
        (line,) = [line for line in await store.audit_lines() if line.kind == "fired"]
        assert (line.actor, line.session_id, line.body["planned"]) == ("clock", session_id, made.due_at)

    async def test_the_last_time_ends_it(self, harness: StoreHarness, store: Store) -> None:
        made, session_id = await planned(store, harness, timing=Timing(at=harness.clock.now() + 60))
        assert made is not None
        harness.clock.advance(60)
        assert (await woken(store, harness, await due(store, harness), next_at=None)).fired
        assert await store.schedules() == [] and await store.next_timer_at() is None
        assert len(await store.queued_texts(session_id)) == 1
        kept = await store.schedule(made.id)
        assert kept is not None and not kept.is_open

    async def test_a_time_that_is_left_out_is_on_record_and_says_nothing(
        self, harness: StoreHarness, store: Store
    ) -> None:
        made, session_id = await planned(store, harness)
        assert made is not None
        harness.clock.advance(HOUR)
        result = await woken(store, harness, await due(store, harness), message=None)
        assert (result.done, result.fired) == (True, False)
        assert await store.queued_texts(session_id) == []
        assert (await store.audit_lines())[0].kind == "missed"

    async def test_nothing_is_piled_up_behind_one_that_still_waits(
        self, harness: StoreHarness, store: Store
    ) -> None:
        _, session_id = await planned(store, harness)
        await say(store, "first", harness.clock)  # a turn that does not end
        for fired in (True, False, False):
            harness.clock.advance(HOUR)
            assert (await woken(store, harness, await due(store, harness))).fired is fired
        assert len(await store.queued_texts(session_id)) == 1
        kinds = [line.kind for line in await store.audit_lines()]
        assert (kinds.count("fired"), kinds.count("missed")) == (1, 2)

    async def test_cancelled_it_is_never_due_again_and_on_record_once(
        self, harness: StoreHarness, store: Store
    ) -> None:
        made, _ = await planned(store, harness)
        assert made is not None
        harness.clock.advance(HOUR)
        timer, now = await due(store, harness), harness.clock.now()
        assert await store.cancel_schedule(made.id, "Bob", BOB, "/schedules", now)
        assert not await store.cancel_schedule(made.id, "Bob", BOB, "/schedules", now)
        assert not await store.cancel_schedule("c_unknown", "Bob", BOB, "/schedules", now)
        assert await store.due_timers(now) == [] and await store.schedules() == []
        assert not (await woken(store, harness, timer)).done  # somebody had found it due before
        (line,) = [line for line in await store.audit_lines() if line.kind == "cancelled"]
        assert (line.actor, line.body["schedule"]) == (str(BOB), made.id)

    async def test_a_fresh_session_takes_the_schedules_of_the_old_one_along(
        self, harness: StoreHarness, store: Store
    ) -> None:
        made, old = await planned(store, harness)
        assert made is not None
        done = await store.fresh_session(KEY, "helper", "", "Bob", BOB, harness.clock.now())
        assert (done.session_id, done.schedules) == (old, 1)
        (moved,) = await store.schedules(session_id=done.new_session_id)
        assert (moved.id, moved.due_at) == (made.id, made.due_at)
        harness.clock.advance(HOUR)
        result = await woken(store, harness, await due(store, harness))
        assert result.session_id == done.new_session_id
        again = await store.fresh_session(OTHER, "helper", "", "Bob", BOB, harness.clock.now())
        assert again.schedules == 0

    # ---- of the configuration

    async def test_what_the_configuration_wants_is_made_kept_changed_and_ended(
        self, harness: StoreHarness, store: Store
    ) -> None:
        now = harness.clock.now()
        assert await store.keep_schedules([standing(), standing("noon")], now) == Kept(
            made=("morning", "noon")
        )
        before = {record.name: record for record in await store.schedules()}
        harness.clock.advance(60)
        now = harness.clock.now()
        changed = [standing(), standing("noon", instruction="Look closely.")]
        assert await store.keep_schedules(changed, now) == Kept(changed=("noon",))
        after = {record.name: record for record in await store.schedules()}
        assert after["morning"] == before["morning"]
        # What stays when it is due keeps its next time.
        assert (after["noon"].id, after["noon"].due_at) == (before["noon"].id, before["noon"].due_at)
        assert after["noon"].schedule.instruction == "Look closely."
        later = standing("noon", instruction="Look closely.", timing=Timing(every=2 * HOUR))
        assert await store.keep_schedules([later], now) == Kept(changed=("noon",), ended=("morning",))
        (left,) = await store.schedules()
        assert (left.name, left.due_at) == ("noon", now + 2 * HOUR)
        assert await store.keep_schedules([later], now) == Kept()
        assert await store.keep_schedules([later, standing()], now) == Kept(changed=("morning",))

    async def test_several_processes_that_start_at_once_make_it_once(
        self, harness: StoreHarness, store: Store
    ) -> None:
        other, now = await harness.open(), harness.clock.now()
        kept = await asyncio.gather(*(one.keep_schedules([standing()], now) for one in (store, other)))
        assert sorted(one.made for one in kept) == [(), ("morning",)]
        assert len(await store.schedules()) == 1

    async def test_one_that_somebody_cancelled_stays_so_until_it_is_changed(
        self, harness: StoreHarness, store: Store
    ) -> None:
        now = harness.clock.now()
        await store.keep_schedules([standing()], now)
        (made,) = await store.schedules()
        assert (made.schedule.by, made.key, made.session_id) == (IN_THE_FILE, OTHER, "")
        await store.cancel_schedule(made.id, "Bob", BOB, "/schedules", now)
        assert await store.keep_schedules([standing()], now) == Kept(held_back=("morning",))
        assert await store.schedules() == []
        changed = standing(instruction="Look again.")
        assert await store.keep_schedules([changed], now + 60) == Kept(changed=("morning",))
        (again,) = await store.schedules()
        assert again.due_at == now + 60 + HOUR

    async def test_those_of_a_conversation_are_found_from_all_its_threads(
        self, harness: StoreHarness, store: Store
    ) -> None:
        now = harness.clock.now()
        await store.keep_schedules([standing(), standing("noon", key=KEY)], now)
        (found,) = await store.schedules(key=KEY._replace(thread="9"))
        assert found.name == "noon"

    async def test_a_thread_without_a_session_gets_one_and_the_next_time_goes_there_too(
        self, harness: StoreHarness, store: Store
    ) -> None:
        await store.keep_schedules([standing(tenant="acme")], harness.clock.now())
        sessions = set()
        for _ in range(2):
            harness.clock.advance(HOUR)
            result = await woken(store, harness, await due(store, harness))
            claim = await store.claim(result.session_id, harness.clock.now())
            assert claim is not None and claim.key == OTHER
            assert (claim.agent, claim.tenant) == ("helper", "acme")
            assert claim.requester == Actor("schedule", "", "morning")
            await finished(store, claim, harness.clock)
            view = await store.session(result.session_id)
            assert view is not None and view.title == "Scheduled: Look."
            sessions.add(result.session_id)
        assert len(sessions) == 1

    async def test_a_thread_of_its_own_begins_once_when_its_words_are_posted(
        self, harness: StoreHarness, store: Store
    ) -> None:
        await store.keep_schedules([standing()], harness.clock.now())
        harness.clock.advance(HOUR)
        result = await woken(store, harness, await due(store, harness), opener="Scheduled: Look.")
        assert (result.fired, result.session_id) == (True, "")
        assert await store.sessions() == []
        (row,) = await store.due_deliveries(harness.clock.now())
        assert (row.key, row.kind, row.payload["text"]) == (OTHER, "notice", "Scheduled: Look.")
        thread = OTHER._replace(thread="17")
        for _ in range(2):  # told again by a process that did not know
            await store.sent(row.id, "r17", harness.clock.now(), opened=thread)
        (view,) = await store.sessions()
        assert (view.key, view.title, view.queued) == (thread, "Scheduled: Look.", 1)
        claim = await store.claim(view.id, harness.clock.now())
        assert claim is not None and claim.message == user("Look.")
        assert await store.session_of(OTHER) is None

    async def test_no_second_thread_begins_while_the_words_of_the_first_wait(
        self, harness: StoreHarness, store: Store
    ) -> None:
        await store.keep_schedules([standing()], harness.clock.now())
        for fired in (True, False):
            harness.clock.advance(HOUR)
            result = await woken(store, harness, await due(store, harness), opener="Scheduled: Look.")
            assert result.fired is fired

    async def test_words_that_open_nothing_begin_no_session(
        self, harness: StoreHarness, store: Store
    ) -> None:
        (row,) = await store.enqueue([notice("hello")], harness.clock.now())
        await store.sent(row.id, "r1", harness.clock.now(), opened=KEY._replace(thread="1"))
        assert await store.sessions() == []

    async def test_a_conversation_that_moves_takes_its_schedules_along(
        self, harness: StoreHarness, store: Store
    ) -> None:
        await store.keep_schedules([standing(), standing("noon", key=KEY)], harness.clock.now())
        await store.move_thread(OTHER, OTHER._replace(conversation="-100"))
        places = {record.name: record.key for record in await store.schedules()}
        assert places == {"morning": ThreadKey("telegram", "bot", "-100", ""), "noon": KEY}

    async def test_a_schedule_reads_back_as_it_was_written(self, harness: StoreHarness, store: Store) -> None:
        timing = Timing(cron="0 8 * * mon-fri", zone="Europe/Berlin")
        made, _ = await planned(store, harness, timing=timing)
        assert made is not None and made.schedule.timing == timing
        assert msgspec.json.decode(msgspec.json.encode(made.schedule), type=Schedule) == made.schedule
