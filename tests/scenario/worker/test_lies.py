"""A worker that lies: real processes that speak the frames of a worker, and say what is not so."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.approvals import Approve, KnownCall
from gateway.budget import Spent
from gateway.gate import Gate, Rule
from gateway.history import Transcript
from gateway.messages import ToolUse, assistant, call_hash, user
from gateway.options import RunResult
from gateway.outcome import Outcome
from gateway.worker.claims import NOT_ALLOWED, WorkerLost
from tests.scenario.worker.crew import KEY, Crew, crew, results
from tests.scenario.worker.test_worker import Source, kept
from tests.unit.loop.scene import Person

ROOT = Path(__file__).parents[3]
ALLOWED = Gate(default_decision="allow")
ASKED = Gate(rules=(Rule(tool="fetch", decision="ask", approvers=("slack:T1:ANN",), quorum=2),))
DENIED = Gate(rules=(Rule(tool="fetch", decision="deny"),))


class Stage:
    def __init__(self, crew: Crew, ran: list[str]) -> None:
        self.crew, self.ran = crew, ran

    async def run(self, lie: str | None, gate: Gate = ALLOWED, **more: Any) -> RunResult:
        return await self.crew.run(lie, gate=gate, **more)

    @property
    def told(self) -> list[str]:
        return results(self.crew.transcript.log)


@pytest.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr("gateway.worker.process.MODULE", "tests.scenario.worker.liar")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    ran: list[str] = []
    async with crew(tmp_path, "unused", sources=(Source(kept("fetch", ran)),)) as at:
        yield Stage(at, ran)


async def test_an_allowed_call_runs_once_however_often_it_is_asked_for(stage: Stage) -> None:
    result = await stage.run("runs_twice")
    assert (result.outcome, stage.ran, stage.told) == (Outcome.COMPLETED, ["fetch"], ["fetch"])


@pytest.mark.parametrize("gate", [ASKED, DENIED])
async def test_what_nobody_has_allowed_does_not_run_and_is_not_on_record_as_allowed(
    stage: Stage, gate: Gate
) -> None:
    await stage.run("runs_unasked", gate)
    assert (stage.ran, stage.told) == ([], [NOT_ALLOWED])
    assert [row.state for row in stage.crew.tape.rows] == ["waiting"]
    assert not [word for word in stage.crew.tape.log if word.startswith("started")]


async def test_a_call_that_was_cut_off_does_not_run_again_without_a_word(stage: Stage) -> None:
    begun = ToolUse(id="c1", name="fetch", input={})
    stage.crew.transcript = Transcript([user("go"), assistant(begun, model="fake")])
    known = {"c1": KnownCall(state="started", args={}, args_hash=call_hash("fetch", {}))}
    await stage.run(None, known=known, turn_id="goes_on_unasked")
    assert (stage.ran, stage.told) == ([], [NOT_ALLOWED])


async def test_nobody_has_answered_what_only_the_worker_says(stage: Stage) -> None:
    await stage.run("answers_for_people")
    assert [text for text in stage.told if text.startswith("asks ")] and "huge" not in stage.told[0]


async def test_what_is_shown_to_a_person_at_hand_is_what_would_run(stage: Stage) -> None:
    person = Person(fetch=Approve())
    await stage.run("shows_something_else", ASKED, approver=person)
    assert [(p.args, p.preview, p.quorum) for p in person.asked] == [({"amount": 900}, "", 2)]
    assert stage.ran == ["fetch"]


@pytest.mark.parametrize("lie", ["asks_who_it_likes", "chooses_who_decides"])
async def test_who_may_decide_is_never_the_workers_choice(stage: Stage, lie: str) -> None:
    try:
        stopped = await stage.run(lie, ASKED)
    except WorkerLost:
        return
    assert stopped.pending is not None
    assert [p.approvers for p in stopped.pending.outstanding.values()] == [("slack:T1:ANN",)]


@pytest.mark.parametrize("lie", ["asks_who_it_likes", "chooses_who_decides"])
async def test_nobody_is_asked_about_what_a_rule_denies(stage: Stage, lie: str) -> None:
    with pytest.raises(WorkerLost):
        await stage.run(lie, DENIED)


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        ("invents_a_result", "a result that the call c1 did not have"),
        ("changes_a_result", "a result that the call c1 did not have"),
        ("waits_for_others", "none of its business"),
        ("asks_about_nothing", "a call that is not open"),
        ("speaks_for_people", "words into somebody's mouth"),
        ("rewrites_history", "where there is nothing"),
        ("ends_in_the_middle", "in the middle of a step"),
        ("tells_of_turns", "sent something else"),
        ("names_a_file_elsewhere", "outside of the data folder"),
        ("uses_a_number_twice", "a number twice"),
        ("asks_without_end", "more than 1000 things at once"),
        ("announces_a_huge_frame", "a frame of 4294967295 bytes"),
    ],
)
async def test_what_cannot_be_true_ends_the_run_and_leaves_nothing(stage: Stage, lie: str, why: str) -> None:
    stage.crew.agent = replace(stage.crew.agent, on_unknown="report")
    with pytest.raises(WorkerLost, match=why):
        await stage.run(lie, ASKED if lie == "waits_for_others" else ALLOWED)
    assert [event.type for event in stage.crew.events] == []
    assert stage.told == []
    assert not [message for message in stage.crew.transcript.log if "approved" in message.text]


async def test_no_piece_of_a_key_that_a_worker_says_is_in_the_log(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "gateway.worker")
    with pytest.raises(WorkerLost, match="exit code 3"):
        await stage.run("says_its_key")
    assert "x" * 400 in caplog.text and "y" * 400 in caplog.text
    assert not [length for length in range(4, len(KEY)) if f"x {KEY[:length]}" in caplog.text]
    assert f"y {KEY[:4]}" not in caplog.text


async def test_what_a_run_has_spent_does_not_become_less(stage: Stage) -> None:
    result = await stage.run("has_spent_nothing", spent=Spent(steps=3, tokens=70, seconds=2.0))
    assert (result.spent.steps, result.spent.tokens, result.spent.seconds) == (4, 70, 2.0)
