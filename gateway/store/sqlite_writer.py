"""One writer: whatever has queued up goes into one transaction (group commit).

Every operation is a function of the raw connection and runs in the driver's thread. Operations
of one batch share BEGIN and COMMIT, and so one fsync; a failing one is rolled back alone.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import aiosqlite

from gateway.errors import StoreUnavailable

T = TypeVar("T")
Operation = Callable[[sqlite3.Connection], Any]
Outcome = tuple[bool, Any]  # (succeeded, value or exception)

WAIT = 10.0  # seconds that a batch may wait for another process's write lock
MAX_BATCH = 500  # operations in one transaction
LINGER = 0.004  # seconds that an operation without hurry waits for company


class Database(aiosqlite.Connection):
    """A connection that runs a whole function in the driver's thread: one hop, not one a statement."""

    async def run(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        """Call `operation` with the raw connection, in its thread."""
        result: T = await self._execute(operation, self._conn)  # type: ignore[no-untyped-call]
        return result


async def connect(path: str, *, read_only: bool = False) -> Database:
    """Open one connection: WAL, FULL. Raises sqlite3.Error."""

    def connector() -> sqlite3.Connection:
        # Short waits in the driver, longer ones with jitter around the batch: see _begin.
        return sqlite3.connect(path, timeout=0.05, isolation_level=None, cached_statements=256)

    database = Database(connector, iter_chunk_size=64)
    await database

    def prepare(db: sqlite3.Connection) -> None:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA wal_autocheckpoint = 1000")
        db.execute("PRAGMA journal_size_limit = 67108864")
        if read_only:
            db.execute("PRAGMA query_only = ON")

    await database.run(lambda db: with_lock_wait(lambda: prepare(db)))
    return database


def with_lock_wait(act: Callable[[], T], wait: float = WAIT) -> T:
    """Retry while another process holds the lock: bounded, with jitter. Runs in a thread."""
    give_up_at = time.monotonic() + wait
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode not in _BUSY or time.monotonic() >= give_up_at:
                raise
            time.sleep(random.uniform(0.002, 0.03))  # noqa: S311 - jitter, not a secret


_BUSY = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_BUSY_SNAPSHOT, sqlite3.SQLITE_BUSY_RECOVERY}
)


class Writer:
    """The queue in front of the writing connection."""

    def __init__(self, database: Database, wait: float = WAIT) -> None:
        self._database, self._wait = database, wait
        self._waiting: list[tuple[Operation, asyncio.Future[Any]]] = []
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def submit(
        self, operation: Callable[[sqlite3.Connection], T], *, hurry: bool = True
    ) -> asyncio.Future[T]:
        """Queue one operation. Order of submission is order of execution. Without `hurry` it waits
        up to LINGER for others to share a commit with."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._waiting.append((operation, future))
        if self._task is not None:
            return future
        if hurry:
            self._begin()
        elif self._timer is None:
            self._timer = loop.call_later(LINGER, self._begin)
        return future

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is None and self._waiting:
            self._task = asyncio.get_running_loop().create_task(self._drain())

    async def close(self) -> None:
        """Wait until everything that was submitted is carried out."""
        self._begin()
        while self._task is not None:
            await asyncio.wait({self._task})

    async def _drain(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
                operations = [operation for operation, _ in batch]
                try:
                    outcomes = await self._database.run(lambda db: _commit(db, operations, self._wait))  # noqa: B023
                except sqlite3.Error as error:
                    failure = StoreUnavailable(f"the database could not be written: {error}")
                    failure.__cause__ = error
                    outcomes = [(False, failure)] * len(batch)
                for (_, future), (succeeded, value) in zip(batch, outcomes, strict=True):
                    if future.cancelled():
                        continue
                    if succeeded:
                        future.set_result(value)
                    else:
                        future.set_exception(value)
        finally:
            self._task = None
            if self._waiting:
                self._task = asyncio.get_running_loop().create_task(self._drain())


def _commit(db: sqlite3.Connection, operations: Sequence[Operation], wait: float) -> list[Outcome]:
    """One transaction. Raises sqlite3.Error when nothing of it was stored."""
    with_lock_wait(lambda: db.execute("BEGIN IMMEDIATE"), wait)
    try:
        if len(operations) == 1:
            outcomes = [_alone(db, operations[0])]
        else:
            outcomes = [_in_savepoint(db, operation) for operation in operations]
        if db.in_transaction:
            db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return outcomes


def _alone(db: sqlite3.Connection, operation: Operation) -> Outcome:
    try:
        return True, operation(db)
    except sqlite3.OperationalError:
        raise
    except Exception as error:  # handed to whoever awaits this operation
        db.execute("ROLLBACK")
        return False, error


def _in_savepoint(db: sqlite3.Connection, operation: Operation) -> Outcome:
    db.execute("SAVEPOINT operation")
    try:
        value = operation(db)
    except sqlite3.OperationalError:
        raise
    except Exception as error:  # handed to whoever awaits this operation
        db.execute("ROLLBACK TO operation")
        db.execute("RELEASE operation")
        return False, error
    db.execute("RELEASE operation")
    return True, value
