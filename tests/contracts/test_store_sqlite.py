"""The store's contract, kept by SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.store.base import Store
from tests.contracts.sqlite_harness import SqliteHarness
from tests.contracts.store import StoreContract


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[SqliteHarness]:
    made = SqliteHarness(tmp_path / "threadgate.db")
    yield made
    await made.close()


@pytest.fixture
async def store(harness: SqliteHarness) -> Store:
    return await harness.open()


class TestSqliteStore(StoreContract):
    """All of tests/contracts/store.py."""
