"""Notes, rows that a call posts once, and where calls come from: what every store promises."""

from __future__ import annotations

import asyncio

from gateway.messages import ThreadKey
from gateway.store.base import Store
from gateway.store.rows import ChildOrder, Outgoing
from gateway.tools.ports import Note, NoteOwner
from tests.contracts.store_scene import (
    ANN,
    BOB,
    KEY,
    OTHER,
    StoreHarness,
    all_sent,
    begun,
    finished,
    notice,
    replied,
    row,
)

ABOUT_ANN, ABOUT_BOB = NoteOwner.person(ANN, ""), NoteOwner.person(BOB, "")
HERE, THERE = NoteOwner.of_thread(KEY, ""), NoteOwner.of_thread(OTHER, "")


def note(key: str, text: str = "text", at: float = 1.0) -> Note:
    return Note(key=key, text=text, place="chat", at=at)


def file_notice(session_id: str, key: ThreadKey = KEY) -> Outgoing:
    file = {"path": "sent/a.pdf", "name": "a.pdf", "media_type": "application/pdf"}
    return Outgoing(key=key, kind="notice", payload={"text": "here", "file": file}, session_id=session_id)


class NoteContract:
    """See gateway.store.base: notes, put_note, forget_notes, post_once, posted_file, origin."""

    async def test_notes_of_people_threads_and_tenants_are_kept_apart(
        self, harness: StoreHarness, store: Store
    ) -> None:
        owners = [ABOUT_ANN, ABOUT_BOB, HERE, THERE, NoteOwner.person(ANN, "acme")]
        owners += [NoteOwner.of_thread(KEY, "acme"), NoteOwner.of_thread(KEY._replace(thread="7"), "")]
        for number, owner in enumerate(owners):
            assert await store.put_note(owner, note("units", str(number)), 10)
        for number, owner in enumerate(owners):
            assert [n.text for n in await store.notes(owner)] == [str(number)]
        assert await store.forget_notes(ABOUT_ANN) == 1
        assert [len(await store.notes(owner)) for owner in owners] == [0, 1, 1, 1, 1, 1, 1]

    async def test_a_note_replaces_the_one_with_the_same_key_and_outlives_the_process(
        self, harness: StoreHarness, store: Store
    ) -> None:
        await store.put_note(ABOUT_ANN, note("b", "old"), 10)
        await store.put_note(ABOUT_ANN, note("a"), 10)
        await store.put_note(ABOUT_ANN, note("b", "new", at=2.0), 10)
        again = await harness.open()
        assert await again.notes(ABOUT_ANN) == [note("a"), note("b", "new", at=2.0)]

    async def test_no_more_notes_are_kept_than_asked_for(self, harness: StoreHarness, store: Store) -> None:
        assert await store.put_note(ABOUT_ANN, note("a"), 2)
        assert await store.put_note(ABOUT_ANN, note("b"), 2)
        assert not await store.put_note(ABOUT_ANN, note("c"), 2)
        assert await store.put_note(ABOUT_ANN, note("b", "changed"), 2)
        assert await store.put_note(ABOUT_BOB, note("c"), 2)
        assert [n.key for n in await store.notes(ABOUT_ANN)] == ["a", "b"]

    async def test_one_note_or_all_are_forgotten_and_counted(
        self, harness: StoreHarness, store: Store
    ) -> None:
        for key in ("a", "b", "c"):
            await store.put_note(HERE, note(key), 10)
        assert await store.forget_notes(HERE, "b") == 1
        assert await store.forget_notes(HERE, "b") == 0
        assert await store.forget_notes(HERE) == 2
        assert await store.notes(HERE) == []

    async def test_the_notes_of_a_conversation_move_along_with_it(
        self, harness: StoreHarness, store: Store
    ) -> None:
        topic = KEY._replace(thread="7")
        for key in (KEY, topic, OTHER):
            await store.put_note(NoteOwner.of_thread(key, "acme"), note(key.conversation + key.thread), 10)
        await store.put_note(ABOUT_ANN, note("mine"), 10)
        new = KEY._replace(conversation="-100")
        await store.move_thread(KEY, new)
        moved = [NoteOwner.of_thread(key, "acme") for key in (new, new._replace(thread="7"), OTHER, KEY)]
        assert [[n.key for n in await store.notes(owner)] for owner in moved] == [
            ["chat"],
            ["chat7"],
            ["other"],
            [],
        ]
        assert len(await store.notes(ABOUT_ANN)) == 1

    async def test_what_a_call_posts_is_added_once_whoever_else_tries(
        self, harness: StoreHarness, store: Store
    ) -> None:
        second, now = await harness.open(), harness.clock.now()
        rows = [notice("one"), notice("two")]
        tries = await asyncio.gather(*(s.post_once(rows, "s_1:c1", now) for s in (store, second) * 3))
        assert sorted(tries) == [False] * 5 + [True]
        assert await store.post_once([notice("three")], "s_1:c2", now)
        sent = await all_sent(store, await store.due_deliveries(now), harness.clock)
        assert [row.payload["text"] for row in sent] == ["one", "two", "three"]
        assert not await store.post_once(rows, "s_1:c1", now)  # also once they are out
        assert await store.due_deliveries(now) == []

    async def test_what_was_posted_is_behind_what_its_thread_has_already(
        self, harness: StoreHarness, store: Store
    ) -> None:
        now = harness.clock.now()
        first = await store.enqueue([notice("before")], now)
        await store.post_once([notice("after")], "c1", now)
        sent = await all_sent(store, first, harness.clock)
        assert [row.payload["text"] for row in sent] == ["before", "after"]

    async def test_a_file_is_found_by_its_session_and_notice_only(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock)
        session, now = claim.lease.session_id, harness.clock.now()
        await store.post_once([file_notice(session)], "c1", now)
        await store.enqueue(
            [Outgoing(key=KEY, kind="notice", payload={"text": "x"}, session_id=session)], now
        )
        with_file, without = await store.notices(session)
        assert (with_file.text, with_file.file, without.file) == ("here", "a.pdf", "")
        file = await store.posted_file(session, with_file.id)
        assert file is not None and file["path"] == "sent/a.pdf"
        assert await store.posted_file(session, without.id) is None
        assert await store.posted_file("s_other", with_file.id) is None
        assert await store.posted_file(session, 99_999) is None

    async def test_a_call_comes_from_the_person_whose_turn_it_is(
        self, harness: StoreHarness, store: Store
    ) -> None:
        anns = await begun(store, harness.clock, tenant="acme")
        await finished(store, anns, harness.clock)
        bobs = await begun(store, harness.clock, actor=BOB)
        for claim, who in ((anns, ANN), (bobs, BOB)):
            origin = await store.origin(claim.lease.turn_id)
            assert origin is not None
            assert (origin.key, origin.requester, origin.tenant) == (KEY, who, "acme")
            assert origin.session_id == claim.lease.session_id
        for unknown in ("", "s_x.1", f"{anns.lease.session_id}.9", anns.lease.session_id):
            assert await store.origin(unknown) is None

    async def test_a_subagents_call_comes_from_the_conversation_and_the_person_at_the_top(
        self, harness: StoreHarness, store: Store
    ) -> None:
        claim = await begun(store, harness.clock, actor=BOB, tenant="acme")
        await replied(store, claim, row("call1", "researcher"))
        order = ChildOrder(
            lease=claim.lease,
            call_id="call1",
            agent="researcher",
            text="look it up",
            max_depth=3,
            max_children=4,
            max_calls=20,
            rate=30,
            at=harness.clock.now(),
        )
        child = await store.begin_child(order)
        assert child.claim is not None
        origin = await store.origin(child.claim.lease.turn_id)
        assert origin == await store.origin(claim.lease.turn_id)
        assert origin is not None and (origin.key, origin.requester) == (KEY, BOB)
