"""`threadgate chat` lists the calls of one step together, and one or all of them can be decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from channels.base import Button, Form, FormField
from channels.terminal.adapter import Pressed
from gateway.app.console import Recorded, TerminalApprover
from gateway.approvals import Approve, Deny, Pending, Resolution
from gateway.messages import call_hash
from gateway.store.sqlite import SqliteStore
from tests.clock import FakeClock
from tests.contracts.harness import an_approval
from tests.unit.app.test_terminal_questions import RELEASE, Typed, asked


def call(number: int) -> Pending:
    args = {"order": f"A-{number}"}
    return Pending(
        pending_id=f"p_{number}",
        kind="approval",
        call_id=f"c{number}",
        tool="pay",
        args=args,
        args_hash=call_hash("pay", args),
        code=f"code{number}",
        preview="-10 EUR\n+20 EUR",
        preview_kind="diff",
        reveal="approvers",
    )


THREE = [call(1), call(2), call(3)]


@pytest.mark.parametrize(("line", "word"), [("1", Approve()), ("2", Deny())])
async def test_one_word_is_said_about_all_calls(line: str, word: Resolution) -> None:
    terminal = Typed(line)
    said = await TerminalApprover(terminal).decide_together(THREE)
    assert said == {"p_1": word, "p_2": word, "p_3": word}
    paper = terminal.paper.getvalue()
    for words in ("Approve 3 calls?", "1. Approve pay?", "3. Approve pay?", "A-1", "A-2", "A-3", "+20 EUR"):
        assert words in paper
    assert "[1] Approve all (3)  [2] Deny all (3)  [3] One by one" in paper


async def test_calls_are_decided_one_by_one_where_somebody_wants_that() -> None:
    terminal = Typed("3", "1", "2")
    approver = TerminalApprover(terminal)
    assert await approver.decide_together(THREE) == {}
    assert await approver.decide(THREE[0]) == Approve()


async def test_all_calls_stay_open_when_nobody_decides() -> None:
    said = await TerminalApprover(Typed("")).decide_together(THREE)
    assert said == {"p_1": None, "p_2": None, "p_3": None}


async def test_a_question_beside_a_call_is_asked_by_itself() -> None:
    terminal = Typed()
    assert await TerminalApprover(terminal).decide_together([call(1), asked(RELEASE)]) == {}
    assert terminal.paper.getvalue() == ""


async def test_a_form_says_what_it_takes_and_several_options_come_back_as_such() -> None:
    form = Form(
        data="v1:p:e",
        title="Edit",
        fields=(
            FormField(name="tags", label="tags", kind="multi", options=("red", "blue", "one, two")),
            FormField(name="more", label="more", kind="multi", options=("red", "one, two")),
            FormField(name="day", label="day", kind="date"),
            FormField(name="loud", label="loud", kind="boolean"),
        ),
    )
    edit = Button(label="Edit", data=form.data)
    terminal = Typed("1", "RED, blue", "one, two", "2027-02-28", "")
    pressed = await terminal.decide(an_approval(forms=(form,), buttons=(edit,)))
    values: dict[str, str | tuple[str, ...]] = {
        "tags": ("red", "blue"),
        "more": ("one, two",),
        "day": "2027-02-28",
    }
    assert pressed == Pressed(data=form.data, values=values)
    paper = terminal.paper.getvalue()
    for words in ("one or several, with commas between; red, blue", "a date like", "true or false"):
        assert words in paper


async def test_what_is_decided_on_the_spot_is_on_record(tmp_path: Path) -> None:
    clock = FakeClock()
    store = SqliteStore(tmp_path / "gateway.db", clock=clock)
    await store.open()
    try:
        approver = Recorded(TerminalApprover(Typed("2", "1", "")), store, clock)
        assert await approver.decide_together(THREE[:2]) == {"p_1": Deny(), "p_2": Deny()}
        approver.session_id = "s_1"
        assert await approver.decide(THREE[2]) == Approve()
        assert await approver.decide(THREE[0]) is None  # nothing was said, nothing is on record
        lines = list(reversed(await store.audit_lines()))
        assert [(line.kind, line.pending_id) for line in lines] == [
            ("denied", "p_1"),
            ("denied", "p_2"),
            ("approved", "p_3"),
        ]
        assert {line.actor for line in lines} == {"cli:local"} and lines[2].session_id == "s_1"
        assert lines[2].body["args_hash"] == THREE[2].args_hash
    finally:
        await store.close()
