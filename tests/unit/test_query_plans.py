"""No statement reads a whole table that grows with use: what a session or a start costs does not
depend on how much has happened before."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

import pytest

from gateway.store.sqlite_migrate import migrate
from gateway.store.sqlite_ops.codec import SQL

# Not by an index, and why that is well.
BUT = {
    "session_view": "the beginning of a statement; its WHERE comes from the caller",
    "turn_view": "the same",
    "pending": "the same",
    "last_audit": "in the order of the key, one row",
    "move_sessions": "once in the life of a group",
}


@pytest.fixture(name="db", scope="module")
def db_fixture() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate(db, 0.0)
    return db


def plan(db: sqlite3.Connection, statement: str) -> list[str]:
    named = set(re.findall(r"(?<![\w']):(\w+)", statement))
    values: Any = dict.fromkeys(named, 1) if named else (1,) * statement.count("?")
    return [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", values)]


@pytest.mark.parametrize("name", sorted(set(SQL) - set(BUT)))
def test_a_statement_finds_its_rows_by_an_index(db: sqlite3.Connection, name: str) -> None:
    whole = [step for step in plan(db, SQL[name]) if re.match(r"SCAN (?!\(|r VIRTUAL)\w+(?! USING)$", step)]
    assert whole == []
