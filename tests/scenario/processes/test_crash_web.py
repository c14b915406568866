"""A gateway behind its HTTP API, killed at every fault point that lies on that way."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from gateway import faults
from tests.scenario.processes.chat import RUN_AGAIN, TREAT_AS_DONE
from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.gateway import GatewayProcess
from tests.scenario.processes.house import House
from tests.scenario.processes.page import Caller, Json

pytestmark = pytest.mark.crash

# Pages read rows: nothing is posted to them, and a click is the request itself. Nothing has a timer.
ELSEWHERE = {"card", "ref", "press", "redraw", "redrawn", "send", "sent", "timer"}
POINTS = [point for point in faults.POINTS if point.partition(".")[0] not in ELSEWHERE]
BEHIND_CLICK = {"resolution", "resume", "approved", "results", "final"}
UNKNOWN = {"started.after", "done.before", "approved.before", "approved.after"}
UNDECIDED = {"resolution.before", "resume.before"}
PERHAPS_UNKNOWN = {"done.after", "stop.before", "results.before"}


@pytest.fixture
async def house(furnish: Furnish) -> House:
    return furnish(web=True)


@pytest.fixture
async def caller(house: House) -> AsyncIterator[Caller]:
    caller = Caller(house)
    yield caller
    await caller.close()


async def reborn(first: GatewayProcess, house: House, caller: Caller) -> None:
    await first.died()
    await caller.use(await house.start())


async def settled(house: House, caller: Caller) -> tuple[Json | None, list[str]]:
    """Answer questions about calls in doubt by what the ledger says, until an approval waits or
    nothing does; that approval, and the tools that were asked about."""
    asked: list[str] = []
    while True:
        await house.rest()
        waiting = await caller.pending()
        questions = [entry for entry in waiting if entry["kind"] == "question"]
        if not questions:
            return (waiting[0] if waiting else None), asked
        tool = questions[0]["tool"]
        asked.append(tool)
        value = TREAT_AS_DONE if house.ledger(tool) else RUN_AGAIN
        answered = await caller.answer(questions[0]["pending_id"], value)
        assert answered is not None
        assert answered["outcome"] == ("recorded" if len(waiting) > 1 else "resumed")


@pytest.mark.parametrize("point", POINTS)
async def test_killed_there_it_answers_once_and_does_everything_once(
    point: str, house: House, caller: Caller
) -> None:
    first = await house.start(fault=point)
    await caller.use(first)
    behind_click = point.partition(".")[0] in BEHIND_CLICK
    posted = await caller.say("pay A1", "m1")
    if not behind_click:
        await reborn(first, house, caller)
        posted = await caller.say("pay A1", "m1")
    assert posted is not None
    session_id = posted["session_id"]
    card, asked = await settled(house, caller)
    assert card is not None
    clicked = await caller.resolve(card["pending_id"])
    if behind_click:
        await reborn(first, house, caller)
        again = await caller.resolve(card["pending_id"])
        assert again is not None
        assert again["outcome"] == ("resumed" if point in UNDECIDED else "already")
    else:
        assert clicked is not None
        assert clicked["outcome"] == "resumed"
    nothing, more = await settled(house, caller)
    assert nothing is None
    asked += more

    assert [line["tool"] for line in house.ledger()] == ["note", "pay"]
    if point in UNKNOWN:
        assert len(asked) == 1
    elif point not in PERHAPS_UNKNOWN:
        assert asked == []
    house.assert_valid()
    session = await caller.ended(session_id)
    said = [(m["role"], m["content"][0].get("text", "")) for m in session["messages"]]
    assert said == [("user", "pay A1"), ("assistant", ""), ("user", ""), ("assistant", "Paid A1.")]

    before = session["messages"]
    repeated = await caller.say("pay A1", "m1")
    assert repeated is not None
    assert repeated["duplicate"]
    late = await caller.resolve(card["pending_id"], "deny")
    assert late is not None
    assert late["outcome"] == "already"
    await house.rest()
    assert (await caller.get(f"/sessions/{session_id}"))["messages"] == before
    assert len(house.ledger()) == 2
