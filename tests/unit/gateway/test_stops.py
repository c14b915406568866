"""Every row of the table of stops in docs/loop.md, in a chat and as `threadgate ask`."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.app import console
from gateway.app.asking import Ask, Watcher, ask_with
from gateway.approvals import Approve, Deny
from gateway.events import TurnDone
from gateway.messages import Message
from gateway.outcome import ABORT_CODES, EXIT_CODES, Outcome, exit_code
from tests.unit.gateway.scene import House, Office, parts, running
from tests.unit.gateway.stops import ROWS, Row, Troubled
from tests.unit.gateway.talk import HERE, TalkChannel, button

DOC = Path(__file__).parents[3] / "docs" / "loop.md"
TABLE = re.compile(r"^\| `(\w+)` \| `(\w+)` \| `?([\w:]+)`?[^|]* \| (\d+)[^|]*\|([^|]+)\|([^|]+)\|$", re.M)
EACH = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def documented() -> dict[str, tuple[str, str, int]]:
    """(status, event, exit code) of each row of the page, by its name."""
    return {
        name: (status, event, int(code)) for name, status, event, code, *_ in TABLE.findall(DOC.read_text())
    }


def test_the_page_the_code_and_these_tests_have_the_same_rows() -> None:
    aborts = set(ABORT_CODES) - {"ConfigError"}
    assert set(documented()) == {outcome.value for outcome in Outcome} | aborts
    assert {row.name for row in ROWS} == set(documented())


@EACH
def test_exit_code_and_status_are_those_of_the_page(row: Row) -> None:
    status, _event, code = documented()[row.name]
    assert exit_code(row.outcome, row.name) == code
    assert row.outcome.status == status


def made(house: House, row: Row) -> dict[str, Any]:
    house.plan["go"] = row.replies
    if row.hold:
        house.hold(row.hold)
    if row.error is None:
        return {}
    model = Troubled(house, row.error)
    return {"model_of": lambda agent: model}


def last_event(house: House) -> str:
    """The last event of the loop, or the error, before the turn was done."""
    names = [event.type for _, event in house.events]
    assert names[-1] == "done"
    return next(name for name in reversed(names) if name.startswith(("loop:", "error")))


def words(messages: list[Message]) -> list[tuple[str, ...]]:
    return [(m.text, *(r.content for r in m.results)) for m in messages]


@EACH
async def test_in_a_chat(row: Row, house: House) -> None:
    _status, event, code = documented()[row.name]
    async with running(house, house.agent(**row.agent), **made(house, row)) as office:
        await office.talk.say("go")
        if row.hold:
            await house.holds[row.hold].is_reached()
        else:
            await office.settle()
        if row.act is not None:
            await row.act(office)
        await office.settle()
        done = house.events[-1][1]
        assert isinstance(done, TurnDone)
        assert (done.outcome, done.status) == (row.outcome.value, row.outcome.status)
        assert done.exit_code == code
        assert last_event(house) == event
        view = await office.store.turn(done.turn_id)
        assert view is not None
        assert view.outcome == row.outcome.value
        house.holds.clear()
        if row.outcome.pending:
            await _goes_on(house, office, row)
            return
        await office.say("and now?")
        for piece in row.sees:
            assert any(piece in text for text in house.world.texts()), house.world.texts()
        assert len([t for t in house.world.texts() if any(p in t for p in row.sees)]) == len(row.sees)
        assert house.world.texts()[-1] == "you said: and now?"
        read = list(house.requests[-1].messages)
        assert (read[0].text, read[-1].text) == ("go", "and now?")
        assert words(read[1:-1]) == list(row.next_reads)


async def _goes_on(house: House, office: Office, row: Row) -> None:
    """There is a card. Nothing is read of the step before it is decided; then the turn goes on."""
    ref, card = house.world.card()
    assert [piece in f"{card.title} {card.summary}" for piece in row.sees] == [True]
    assert [m.text for m in house.requests[-1].messages] == ["go"]
    if card.kind == "question":
        await office.press(ref, button(card, "that"))
        assert house.world.texts(HERE) == ["that one!"]
        return
    await office.say("and now?")
    assert [m.text for m in house.requests[-1].messages] == ["go"]
    await office.press(ref, button(card, "Approve"))
    assert house.world.texts(HERE)[-2:] == ["paid!", "you said: and now?"]


# ---- threadgate ask


@pytest.fixture
def _logging() -> Iterator[None]:
    root, hook = logging.getLogger(), sys.excepthook
    before = list(root.handlers), root.level
    yield
    root.handlers[:], root.level = before
    sys.excepthook = hook


def bench_parts(house: House, row: Row) -> Any:
    given: Mapping[str, Any] = made(house, row)
    return parts(house, TalkChannel(house.world), [house.agent(**row.agent)], **given)


@EACH
async def test_as_a_command(row: Row, house: House, capsys: pytest.CaptureFixture[str]) -> None:
    _status, _event, code = documented()[row.name]
    built, asked = bench_parts(house, row), Ask(agent="helper", text="go")
    running_ = asyncio.create_task(ask_with(built, asked))
    if row.hold:
        await house.holds[row.hold].is_reached()
        if row.by_signal:
            running_.cancel()
        else:
            house.clock.advance(11)
            house.holds[row.hold].go.set()
    came = await running_
    out, err = capsys.readouterr()
    if row.name == "denied":  # nobody is asked at once: it waits first, and is denied by another command
        assert came == EXIT_CODES[Outcome.PENDING_APPROVAL]
        came, err = await _denied(house, row, out.splitlines()[0], err), "denied: denied by"
        out = ""
    assert came == code
    assert row.note in err
    assert "Traceback" not in err
    if row.outcome.pending:
        assert [record.id for record in await _open(house, row)] == out.splitlines()
    else:
        assert out == row.said
    if row.name == "completed":
        assert err == ""


async def _open(house: House, row: Row) -> Any:
    async with console.bench(bench_parts(house, row), lambda event: None) as at:
        return await at.store.pendings()


async def _denied(house: House, row: Row, pending_id: str, err: str) -> int:
    assert "waits for a person" in err
    watcher = Watcher(sys.stdout, sys.stderr, as_json=False)
    async with console.bench(bench_parts(house, row), watcher) as at:
        result = await console.resolve(at, pending_id, Deny())
    assert result.outcome == "resumed"
    return watcher.ended()


async def test_a_session_goes_on_with_the_next_command(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    row = Row(name="crashed", replies=ROWS[-2].replies)
    assert await ask_with(bench_parts(house, row), Ask(agent="helper", text="go")) == 4
    session = capsys.readouterr().err.split("--session ")[1].strip()
    house.plan.clear()
    went_on = Ask(agent="helper", text="and now?", session=session)
    assert await ask_with(bench_parts(house, row), went_on) == 0
    assert capsys.readouterr() == ("you said: and now?\n", "")
    assert words(list(house.requests[-1].messages))[1:3] == list(ROWS[-2].next_reads)
    assert house.ran == ["look x", "send a"]


async def test_an_interrupted_turn_is_brought_to_its_end_without_new_words(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    row = Row(name="completed", replies=[replace(ROWS[0], name="completed").replies[0]], hold="go")
    task = asyncio.create_task(ask_with(bench_parts(house, row), Ask(agent="helper", text="go")))
    await house.holds["go"].is_reached()
    task.cancel()
    assert await task == 1
    session = capsys.readouterr().err.split("--session ")[1].strip()
    built = bench_parts(house, replace(row, hold=""))
    house.holds.clear()
    assert await ask_with(built, Ask(agent="helper", text="", session=session)) == 0
    assert capsys.readouterr() == ("done!\n", "")


async def test_what_an_earlier_turn_waits_for_is_named_again(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    row = next(row for row in ROWS if row.name == "pending_approval")
    assert await ask_with(bench_parts(house, row), Ask(agent="helper", text="go")) == 8
    (pending_id,) = capsys.readouterr().out.splitlines()
    (record,) = await _open(house, row)
    again = Ask(agent="helper", text="hello?", session=record.session_id)
    assert await ask_with(bench_parts(house, row), again) == 8
    assert capsys.readouterr().out.splitlines() == [pending_id]
    watcher = Watcher(sys.stdout, sys.stderr, as_json=False)
    async with console.bench(bench_parts(house, row), watcher) as at:
        await console.resolve(at, pending_id, Approve())
    assert watcher.ended() == 0
    assert capsys.readouterr().out == "you said: hello?\n"
