"""SQLite for the store's conformance suite: one file, several store objects on it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from gateway.store.sqlite import SqliteStore
from tests.clock import FakeClock
from tests.contracts.store_scene import Written

T = TypeVar("T")
FRAME = 4096 + 24  # bytes of one page in the write-ahead log


class SqliteHarness:
    """See tests.contracts.store_scene.StoreHarness."""

    def __init__(self, path: Path, clock: FakeClock | None = None) -> None:
        self.path, self.clock = path, clock or FakeClock()
        self._stores: list[SqliteStore] = []
        self._counted: dict[str, int] = {}

    async def open(self, *, wait: float = 10.0) -> SqliteStore:
        store = SqliteStore(self.path, clock=self.clock, wait=wait)
        await store.open()
        self._stores.append(store)
        return store

    async def kill(self, store: SqliteStore) -> None:
        """What the kernel does to a dead process: locks and files go, nothing is finished."""
        store._writer = None
        os.close(store._presence._held.pop(store.runner))
        for database in (store._reading, store._writing):
            if database is not None:
                await database.close()
        store._reading = store._writing = None

    async def close(self) -> None:
        for store in self._stores:
            await store.close()

    def look(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something to the file that no store knows of."""
        db = sqlite3.connect(self.path)
        try:
            with db:
                return work(db)
        finally:
            db.close()

    async def tamper(self, *statements: str, unguarded: bool = False) -> None:
        def work(db: sqlite3.Connection) -> None:
            if unguarded:
                db.execute("DROP TRIGGER audit_is_never_changed")
                db.execute("DROP TRIGGER audit_is_never_shortened")
            for statement in statements:
                db.execute(statement)

        self.look(work)

    async def rows(self, table: str) -> int:
        return int(self.look(lambda db: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]))  # noqa: S608

    async def tables(self) -> set[str]:
        names = "SELECT name FROM sqlite_master WHERE type = 'table'"
        return {row[0] for row in self.look(lambda db: db.execute(names).fetchall())}

    async def written(self, store: SqliteStore) -> Written:
        def count(db: sqlite3.Connection) -> Written:
            if store.runner not in self._counted:
                db.execute("PRAGMA wal_autocheckpoint = 0")
                db.execute("PRAGMA synchronous = OFF")
                self._counted[store.runner] = 0
            log = self.path.with_name(self.path.name + "-wal")
            frames = log.stat().st_size // FRAME
            pages = self._counted[store.runner] + frames
            if frames > 2_000:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._counted[store.runner] = pages
            return Written(rows=db.total_changes, pages=pages)

        assert store._writing is not None
        return await store._writing.run(count)
