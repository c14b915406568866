"""Every outcome of a click, on every channel, in the process that asked and in the one after it.

One table (rows.py) and one test: what is stored, what the card shows, what the person is told, what the
model reads, what is on record, and how often the tool ran.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, get_args

import pytest

from gateway.approvals import ClickOutcome
from gateway.notices import click_text
from gateway.reminders import CLOCK
from gateway.store.rows import PendingRecord
from gateway.timers import Timers
from tests.scenario.outcomes import on_discord, on_slack, on_telegram, on_web
from tests.scenario.outcomes.play import Play
from tests.scenario.outcomes.rows import ROWS, Row
from tests.scenario.outcomes.stages import Asked, Make, Person, Stage

CHANNELS: Final[dict[str, Make]] = {
    "slack": on_slack.stage,
    "discord": on_discord.stage,
    "telegram": on_telegram.stage,
    "web": on_web.stage,
}
TABLE: Final = [
    (channel, name) for channel in CHANNELS for name in ROWS if channel not in ROWS[name].never_on
]


@pytest.fixture(autouse=True)
def nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway looks at its timers when a row says so, and never just before a press."""

    async def never(timers: Timers) -> int:
        return 0

    monkeypatch.setattr(Timers, "sweep_once", never)


@asynccontextmanager
async def opened(channel: str, row: Row, folder: Path) -> AsyncIterator[Stage]:
    """The row's stage, with a gateway that runs."""
    async with CHANNELS[channel](Play(folder)) as stage:
        stage.rule = {"approvers": tuple(map(stage.person, row.deciders)), **row.rule}
        async with stage.life:
            await stage.restart()
            yield stage


def test_the_table_has_every_outcome() -> None:
    assert {row.outcome for row in ROWS.values()} == set(get_args(ClickOutcome))


@pytest.mark.parametrize("replaced", [False, True], ids=["same process", "process replaced"])
@pytest.mark.parametrize(("channel", "name"), TABLE)
async def test_c039_c044_c046_c047_c052_every_click_has_one_outcome_and_leaves_exactly_its_traces(
    tmp_path: Path, channel: str, name: str, replaced: bool
) -> None:
    row = ROWS[name]
    async with opened(channel, row, tmp_path) as stage:
        asked = await stage.ask(row.says, row.requests)
        for step in row.before:
            await step(stage, asked)
        if replaced:
            await stage.restart()
            await stage.rest()
        pressed = asked.ids[row.which]
        seq = max((line.seq for line in await stage.store.audit_lines()), default=0)
        told = await stage.press(asked, pressed, row.press)
        await stage.rest()
        record = await stage.record(pressed)
        check_stored(stage, row, record)
        check_told(stage, row, record, told)
        await check_card(stage, row, asked, pressed)
        await check_read(stage, row, record)
        await check_recorded(stage, row, pressed, seq)
        assert stage.play.ran == list(row.ran)


def named(stage: Stage, words: str) -> str:
    """With the people called as the channel calls them."""
    people: tuple[Person, ...] = ("ada", "bob")
    for who in people:
        words = words.replace(f"{{{who}}}", stage.person(who))
    return words


def check_stored(stage: Stage, row: Row, record: PendingRecord) -> None:
    """The row: its state, whose word it was, and nothing of a word that did not count."""
    assert record.state == row.state
    if row.state == "open":
        agreed = (stage.person(row.press.user),) if row.missing else ()
        assert (record.actor, record.decision, record.decided_at) == ("", None, None)
        assert record.votes == agreed
    else:
        assert record.actor == (stage.person(row.decider) if row.decider else str(CLOCK))
        assert record.decision is not None


def check_told(stage: Stage, row: Row, record: PendingRecord, told: str) -> None:
    """What only whoever pressed is told."""
    if row.outcome != "invalid":
        assert told == click_text(row.outcome, record, still_open=row.still_open, votes_missing=row.missing)
    assert told
    assert stage.outcome in ("", row.outcome)
    for words in row.notice:
        assert named(stage, words) in told


async def check_card(stage: Stage, row: Row, asked: Asked, pressed: str) -> None:
    """The words on the card, and whether anything on it can still be pressed for this request."""
    wanted = [named(stage, part) for part in row.card]

    def missing(words: str) -> list[str]:
        return [part for part in wanted if words.count(part) < wanted.count(part)]

    def ready(words: str, controls: list[str]) -> bool:
        return not missing(words) and bool(controls) == row.live

    words, controls = await stage.card(asked, pressed, ready)
    assert missing(words) == []
    assert bool(controls) == row.live


async def check_read(stage: Stage, row: Row, record: PendingRecord) -> None:
    """What the log holds as the call's result, which is what any model reads; and whether one did."""
    log = await stage.store.log(record.session_id)
    results = [r.content for m in log for r in m.results if r.tool_use_id == record.pending.call_id]
    reads = [] if row.reads is None else [row.reads(record)]
    assert results == reads
    assert len(stage.play.requests) == row.asked
    if row.asked > 1:
        assert (record.pending.call_id, reads[0]) in stage.play.read()


async def check_recorded(stage: Stage, row: Row, pressed: str, seq: int) -> None:
    """The lines that the press left, with those of what it set free: by whom, about which request."""
    who, known = stage.person(row.press.user), row.press.wrong in ("", "foreign")
    lines = [line for line in await stage.store.audit_after(seq) if line.actor == who]
    lines = [line for line in lines if line.kind != "viewed"]  # a form that was opened
    assert [line.kind for line in lines] == list(row.record)
    assert {line.pending_id == pressed for line in lines} <= {known}
    assert await stage.store.verify_audit() is None
