"""Any words about any requests, by anybody, at any time: the store and a table agree on each."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.approvals import (
    CLOSED_OUTCOME,
    NEXT,
    Approve,
    Deny,
    Expire,
    PendingState,
    Resolution,
    Supersede,
)
from tests.contracts.sqlite_harness import SqliteHarness
from tests.contracts.store_scene import ANN, BOB, EVE, waiting, word

COUNT = 3
WORDS = st.sampled_from(
    [
        Approve(),
        Approve(scope="session"),
        Deny(),
        Deny(feedback="no"),
        Expire(),
        Supersede(by="a newer message"),
    ]
)
STEPS = st.lists(
    st.tuples(
        st.integers(0, COUNT - 1), WORDS, st.sampled_from([ANN, BOB, EVE]), st.sampled_from([0, 0, 40, 61])
    ),
    max_size=8,
)


class Table:
    """What should become of the requests, in a few lines."""

    def __init__(self, quorum: int, stops: bool, ends_at: float) -> None:
        self.states: list[PendingState] = ["open"] * COUNT
        self.votes: list[set[str]] = [set() for _ in range(COUNT)]
        self._quorum, self._stops, self._ends_at = quorum, stops, ends_at

    def say(self, which: int, said: Resolution, who: str, now: float) -> str:
        """The outcome."""
        if self.states[which] != "open":
            return CLOSED_OUTCOME[self.states[which]]
        over = now >= self._ends_at
        if isinstance(said, Expire) and not over:
            return "unknown"
        if over:
            self.states[which] = "expired"
            return self._decided() if isinstance(said, Expire) else "expired"
        if isinstance(said, Approve):
            self.votes[which].add(who)
            if len(self.votes[which]) < self._quorum:
                return "recorded"
        self.states[which] = NEXT["approval", type(said)]
        if isinstance(said, Deny) and self._stops:
            self.states = ["superseded" if state == "open" else state for state in self.states]
        return self._decided()

    def _decided(self) -> str:
        return "recorded" if "open" in self.states else "resumed"


async def play(
    folder: Path, steps: list[tuple[int, Resolution, object, int]], quorum: int, stops: bool
) -> None:
    harness = SqliteHarness(folder / "threadgate.db")
    one, two = await harness.open(), await harness.open()
    ends_at = harness.clock.now() + 60
    stop = await waiting(one, harness.clock, count=COUNT, quorum=quorum, expires_at=ends_at)
    table = Table(quorum, stops, ends_at)
    for number, (which, said, who, pause) in enumerate(steps):
        harness.clock.advance(pause)
        store = (one, two)[number % 2]
        asked = stop.pendings[which]
        resolved = await word(store, asked, harness.clock, said, actor=who, stops_batch=stops)
        assert resolved.outcome == table.say(which, said, str(who), harness.clock.now())
        records = [await store.pending(p.pending_id) for p in stop.pendings]
        assert [r.state for r in records if r is not None] == table.states
        assert all((r.decision is None) == (r.state == "open") for r in records if r is not None)
        view = await store.session(stop.session_id)
        moved = any(state != "open" for state in table.states)
        assert view is not None and view.status == ("ready" if moved else "pending")
    assert await one.verify_audit() is None
    closings = [ln for ln in await one.audit_lines(limit=500) if ln.kind in set(table.states) - {"open"}]
    assert len(closings) == sum(state != "open" for state in table.states)  # each closed once
    await harness.close()


@settings(max_examples=60)
@given(STEPS, st.sampled_from([1, 1, 2]), st.booleans())
def test_words_do_what_the_table_says_whatever_their_order(
    steps: list[tuple[int, Resolution, object, int]], quorum: int, stops: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder), steps, quorum, stops))
