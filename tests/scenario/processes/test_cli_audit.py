"""`threadgate audit verify | export`: the record as others check it and take it along."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sqlite3
from datetime import UTC, datetime

import pytest

from gateway.app.record import COLUMNS
from gateway.clock import SystemClock
from gateway.store.sqlite import SqliteStore
from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.gateway import LIMIT, PROGRAM, environment
from tests.scenario.processes.house import RULES, House
from tests.scenario.processes.shell import Ran, threadgate

pytestmark = pytest.mark.crash

SECRETLY = {
    "match": "^secretly",
    "replies": [
        {"calls": [{"tool": "pay_secretly", "args": {"order": "A1", "card": "4111-1111"}}]},
        {"text": "Paid secretly."},
    ],
}


@pytest.fixture
async def house(furnish: Furnish) -> House:
    return furnish(rules=[*RULES, SECRETLY], web=True)


async def audit(house: House, *words: str) -> Ran:
    return await threadgate(house.folder, "audit", *words)


async def paid(house: House, text: str = "pay A1") -> str:
    """A payment that was approved; its session."""
    assert (await threadgate(house.folder, "ask", "clerk", text)).code == 8
    (line,) = (await threadgate(house.folder, "pending", "--json")).lines
    assert (await threadgate(house.folder, "resolve", line["pending_id"], "approve")).code == 0
    return str(line["session_id"])


async def many(house: House, count: int) -> None:
    """A long record."""
    store = SqliteStore(house.folder / "gate.db", clock=SystemClock())
    await store.open()
    await asyncio.gather(
        *(store.audit("tried", "web:x", {"n": n}, 1_750_000_000.0 + n) for n in range(count))
    )
    await store.close()


def spoil(house: House, statement: str) -> None:
    """Change the record the way somebody would who may write to the file."""
    database = sqlite3.connect(house.folder / "gate.db")
    for trigger in ("audit_is_never_changed", "audit_is_never_shortened"):
        database.execute(f"DROP TRIGGER IF EXISTS {trigger}")
    database.execute(statement)
    database.commit()
    database.close()


async def test_a_whole_record_is_said_to_be_whole_with_its_last_hash(house: House) -> None:
    assert (await audit(house, "verify")).done() == "The record is empty."
    await paid(house)
    said = (await audit(house, "verify")).done()
    count, digest = house.rows("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")[0]
    assert said == f"The record is whole: {count} lines. Hash of the last: {digest}"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE audit SET actor = 'cli:eve' WHERE seq = 2", "line 2 does not fit the line before it"),
        ("UPDATE audit SET body = '{}' WHERE seq = 3", "line 3 does not fit"),
        ("DELETE FROM audit WHERE seq = 2", "line 2 does not fit"),
        ("UPDATE audit SET at = at + 1 WHERE seq = 1", "line 1 is not the first line that was written"),
        ("DELETE FROM audit WHERE seq = 1", "line 1 is not the first"),
    ],
)
async def test_the_first_line_that_does_not_fit_is_named(house: House, statement: str, words: str) -> None:
    await paid(house)
    spoil(house, statement)
    ran = await audit(house, "verify")
    assert (ran.code, ran.err) == (1, "") and words in ran.out


async def test_a_changed_line_deep_in_a_long_record_is_found(house: House) -> None:
    await many(house, 1_700)
    spoil(house, "UPDATE audit SET kind = 'approved' WHERE seq = 1234")
    ran = await audit(house, "verify")
    assert ran.code == 1 and "line 1234" in ran.out and "Lines 1 to 1233" in ran.out


async def test_export_writes_every_line_oldest_first_and_no_secret(house: House) -> None:
    session = await paid(house, "secretly now")
    ran = await audit(house, "export")
    assert ran.code == 0 and ran.err == "" and "4111" not in ran.out
    assert [line["kind"] for line in ran.lines] == ["requested", "approved", "executed"]
    assert [line["seq"] for line in ran.lines] == [1, 2, 3]
    for line in ran.lines:
        assert tuple(line) == COLUMNS and line["session_id"] == session
        assert datetime.fromisoformat(line["time"]).timestamp() == pytest.approx(line["at"], abs=0.001)
    requested, approved, executed = ran.lines
    assert requested["args_hash"] == approved["args_hash"] == executed["args_hash"] != ""
    assert (approved["actor"], executed["actor"]) == ("cli:local", "cli:local")
    assert executed["pending_id"] == requested["pending_id"]


async def test_csv_has_the_same_lines_in_columns(house: House) -> None:
    await paid(house)
    lines = (await audit(house, "export")).lines
    rows = list(csv.DictReader(io.StringIO((await audit(house, "export", "--format", "csv")).out)))
    assert [row["hash"] for row in rows] == [line["hash"] for line in lines]
    assert [json.loads(row["body"]) for row in rows] == [line["body"] for line in lines]
    assert tuple(rows[0]) == COLUMNS


async def test_an_empty_record_is_nothing_or_a_line_of_names(house: House) -> None:
    assert (await audit(house, "export")).out == ""
    assert (await audit(house, "export", "--format", "csv")).out == ",".join(COLUMNS) + "\n"


async def test_export_of_one_session_or_since_a_moment(house: House) -> None:
    first, second = await paid(house), await paid(house, "pay A2")
    for session in (first, second):
        found = (await audit(house, "export", "--session", session)).lines
        assert {line["session_id"] for line in found} == {session} and len(found) == 3
    assert (await audit(house, "export", "--session", "s_nobody")).out == ""
    moment = house.value("SELECT at FROM audit WHERE session_id = ? ORDER BY seq LIMIT 1", second)
    since = datetime.fromtimestamp(moment, UTC).isoformat()
    found = (await audit(house, "export", "--since", since)).lines
    assert {line["session_id"] for line in found} == {second}
    assert len((await audit(house, "export", "--since", "2020-01-01")).lines) == 6
    assert (await audit(house, "export", "--since", "2120-01-01T08:00")).out == ""


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--since", "yesterday"), ("--since", "2026-11-30")),
        (("--format", "xml"), ("--format", "jsonl or csv")),
    ],
)
async def test_what_cannot_be_meant_is_refused_with_the_mend(
    house: House, words: tuple[str, ...], named: tuple[str, ...]
) -> None:
    (await audit(house, "export", *words)).failed(2, *named)


async def test_a_reader_that_has_seen_enough_is_no_trouble(house: House) -> None:
    await many(house, 3_000)
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        f"set -o pipefail; {PROGRAM} audit export | head -n 1",
        cwd=house.folder,
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(LIMIT):
        out, err = await process.communicate()
    assert (process.returncode, json.loads(out)["seq"], err) == (0, 1, b"")


async def test_the_record_can_be_checked_beside_a_running_gateway(house: House) -> None:
    await paid(house)
    gateway = await house.start()
    assert (await audit(house, "verify")).done().startswith("The record is whole: 3 lines.")
    await gateway.kill()
