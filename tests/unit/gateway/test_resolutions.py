"""Every word about a request has one outcome, one text, and its line in the record."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from typing import Any

import pytest

from gateway.approvals import Answer, Approve, ClickOutcome, Deny, Resolution
from gateway.messages import Actor, ThreadKey
from gateway.reminders import NOWHERE
from gateway.resolutions import Click
from gateway.store.rows import PendingRecord
from gateway.timers import Timers
from gateway.tools.base import MASK, tool
from tests.unit.gateway.scene import HERE, House, Office, call, calls, running

ANN, BOB = Actor("talk", "w", "ann"), Actor("talk", "w", "bob")
OPERATOR = Actor("web", "", "local")
YES = Approve()


@dataclass(frozen=True, kw_only=True)
class Told:
    """One row of the table: what happened before, what is said, what comes of it."""

    before: str = ""
    word: Resolution = YES
    actor: Actor = ANN
    outcome: ClickOutcome
    text: str
    noted: str


TABLE: dict[str, Told] = {
    "yes": Told(outcome="resumed", text="Approved by Ann", noted="approved"),
    "no": Told(word=Deny(feedback="never"), outcome="resumed", text="Denied by Ann", noted="denied"),
    "an operator's yes": Told(
        actor=OPERATOR, outcome="resumed", text="Approved by Ann (web:local)", noted="approved"
    ),
    "one of two": Told(
        before="two", outcome="recorded", text="1 more of this step still open", noted="approved"
    ),
    "one voice": Told(before="quorum", outcome="recorded", text="1 more person must agree", noted="agreed"),
    "again": Told(
        before="approved", outcome="already", text="Already decided. Approved by Bob", noted="refused_already"
    ),
    "too late": Told(before="late", outcome="expired", text="Expired", noted="refused_expired"),
    "after /new": Told(
        before="/new", outcome="superseded", text="Closed by /new", noted="refused_superseded"
    ),
    "after /stop": Told(
        before="/stop", outcome="superseded", text="Closed by /stop", noted="refused_superseded"
    ),
    "a stranger": Told(
        actor=Actor("talk", "w", "eve"),
        outcome="forbidden",
        text="Who may: talk:bob, talk:w:ann",
        noted="refused_forbidden",
    ),
    "nobody": Told(
        actor=Actor("talk", "w", ""), outcome="forbidden", text="You may not", noted="refused_forbidden"
    ),
    "wrong kind": Told(
        word=Answer(values=("x",)), outcome="invalid", text="wants approve or deny", noted="refused_invalid"
    ),
    "wrong type": Told(
        word=Approve(edited_args={"order": "A", "amount": "much"}),
        outcome="invalid",
        text="amount: ",
        noted="refused_invalid",
    ),
    "wrong scope": Told(
        before="quorum",
        word=Approve(scope="always"),
        outcome="invalid",
        text="approved once",
        noted="refused_invalid",
    ),
    "edited by many": Told(
        before="quorum",
        word=Approve(edited_args={"order": "B"}),
        outcome="invalid",
        text="cannot be edited",
        noted="refused_invalid",
    ),
    "unknown": Told(before="unknown", outcome="unknown", text="not known here", noted="refused_unknown"),
}


async def prepare(office: Office, before: str) -> str:
    """Bring a request into the state that the row starts from; its id."""
    await office.say("both" if before == "two" else "pay")
    pending_id = (await office.pendings())[0].id
    if before == "approved":
        click = Click(pending_id=pending_id, resolution=Approve(), actor=BOB, name="Bob")
        await office.gateway.resolutions.decide(click)
    elif before == "late":
        office.house.clock.advance(3601)
    elif before.startswith("/"):
        await office.say(before)
    await office.settle()
    return "p_nothing" if before == "unknown" else pending_id


@pytest.mark.parametrize("name", TABLE)
async def test_every_outcome_has_its_text_and_its_line_in_the_record(house: House, name: str) -> None:
    row = TABLE[name]
    for text, orders in (("pay", "A"), ("both", "AB")):
        house.plan[text] = [calls(*(call("pay", order=order) for order in orders)), "paid"]
    rule: dict[str, Any] = {"approvers": ("talk:bob", "requester"), "expires": 3600.0}
    if row.before == "quorum":
        rule["quorum"] = 2
    async with running(house, house.agent(rule=rule)) as office:
        pending_id = await prepare(office, row.before)
        ran = list(house.ran)
        click = Click(pending_id=pending_id, resolution=row.word, actor=row.actor, name="Ann", via="test")
        result = await office.gateway.resolutions.decide(click)
        assert result.outcome == row.outcome
        assert row.text in result.text and "sk-live" not in result.text
        await office.settle()
        line = (await office.store.audit_lines(limit=20))[0]
        noted = next(ln for ln in await office.store.audit_lines() if ln.kind == row.noted)
        assert noted.actor == str(row.actor) and line.seq >= noted.seq
        if (
            row.outcome in ("resumed", "recorded")
            and isinstance(row.word, Approve)
            and row.before != "quorum"
        ):
            assert len(house.ran) == len(ran) + 1
        else:
            assert house.ran == ran
        assert bool(result.problems) == (row.outcome == "invalid")
        assert await office.store.verify_audit() is None


# ---- secrets in edited arguments


async def paid_with(house: House, edited: dict[str, Any]) -> list[dict[str, Any]]:
    """What the tool got after an edit that came from somewhere that never saw the secrets."""
    got: list[dict[str, Any]] = []

    @tool(name="wire")
    async def wire(body: dict[str, Any], rows: list[dict[str, Any]], note: str = "") -> str:
        """Wire."""
        got.append({"body": body, "rows": rows, "note": note})
        return "ok"

    body = {"user": "ann", "inner": {"password": "s3cret"}}
    house.plan["go"] = [calls(call("wire", body=body, rows=[{"pin": "1234"}])), "done"]
    redact = ("body.inner.password", "rows.0.pin")
    agent = house.agent(rules=())
    gate = replace(agent.gate, rules=(replace(agent.gate.rules[0], tool="wire", redact=redact),))
    async with running(house, replace(agent, tools=(wire,), gate=gate)) as office:
        await office.say("go")
        record: PendingRecord = (await office.pendings())[0]
        click = Click(pending_id=record.id, resolution=Approve(edited_args=edited), actor=ANN)
        result = await office.gateway.resolutions.decide(click)
        assert result.outcome == "resumed"
        await office.settle()
    return got


@pytest.mark.parametrize(
    "edited",
    [
        {"body": {"user": "bob", "inner": {"password": MASK}}, "rows": MASK, "note": ""},
        {"body": {"user": "bob", "inner": {}}, "rows": MASK},
        {"body": {"user": "bob", "inner": {"password": MASK}}, "note": ""},
    ],
)
async def test_a_masked_or_missing_secret_keeps_its_stored_value_however_deep(
    house: House, edited: dict[str, Any]
) -> None:
    (got,) = await paid_with(house, edited)
    assert got["body"] == {"user": "bob", "inner": {"password": "s3cret"}}
    assert got["rows"] == [{"pin": "1234"}]


async def test_a_new_secret_is_taken(house: House) -> None:
    edited = {"body": {"user": "ann", "inner": {"password": "new"}}, "rows": [{"pin": "9"}]}
    (got,) = await paid_with(house, edited)
    assert got["body"]["inner"] == {"password": "new"} and got["rows"] == [{"pin": "9"}]


# ---- the clock


async def test_clock_and_person_never_both_win(house: House) -> None:
    house.plan["pay"] = [calls(call("pay", order="A")), "over"]
    async with running(house, house.agent(rule={"expires": 60.0})) as office:
        await office.say("pay")
        pending_id = (await office.pendings())[0].id
        house.clock.advance(60)
        woken: list[str] = []
        timers = Timers(office.store, house.clock, woken.append, lambda session_id: None, NOWHERE)
        assert await timers.sweep_once() == 1
        assert await timers.sweep_once() == 0
        click = Click(pending_id=pending_id, resolution=Approve(), actor=ANN)
        assert (await office.gateway.resolutions.decide(click)).outcome == "expired"
        assert woken == [(await office.session()).id] and house.ran == []


async def test_a_timer_that_nobody_knows_is_dropped_and_the_others_go_on(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.plan["pay"] = [calls(call("pay", order="A")), "over"]
    async with running(house, house.agent(rule={"expires": 60.0})) as office:
        await office.say("pay")
        db = sqlite3.connect(house.folder / "gateway.db")
        with db:
            db.execute("INSERT INTO timers (kind, subject, due_at) VALUES ('odd', 'x', 0)")
        db.close()
        house.clock.advance(60)
        await office.settle()
        assert "odd" in caplog.text
        assert await office.store.next_timer_at() is None
        assert [r.state for r in await office.pendings(open_only=False)] == ["expired"]


async def test_withdrawing_wakes_the_turn_that_asked(house: House) -> None:
    house.plan["go"] = [calls(call("ask_user", question="Which?")), "never mind"]
    async with running(house) as office:
        await office.say("go")
        (record,) = await office.pendings(key=ThreadKey(*HERE))
        await office.gateway.resolutions.withdraw(record.id, ANN, "Ann")
        await office.settle()
        assert house.world.texts() == ["never mind"]
        (closed,) = await office.pendings(open_only=False)
        assert (closed.state, closed.decided_by) == ("superseded", "Ann (talk:w:ann)")
