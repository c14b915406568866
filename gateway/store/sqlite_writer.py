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
from functools import partial
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

    def post(self, operation: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Have `operation` called with the raw connection, in its thread."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._tx.put_nowait((future, partial(operation, self._conn)))
        return future

    async def run(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        """Call `operation` with the raw connection, in its thread."""
        return await self.post(operation)


async def connect(
    path: str, *, read_only: bool = False, look_first: Callable[[str], None] = lambda path: None
) -> Database:
    """Open one connection: WAL, FULL. `look_first` sees the file before anything is written to it.
    Raises sqlite3.Error, and whatever `look_first` raises."""

    def connector() -> sqlite3.Connection:
        look_first(path)
        # Short waits in the driver, longer ones with jitter around the batch: see _begin.
        return sqlite3.connect(path, timeout=0.05, isolation_level=None, cached_statements=256)

    database = Database(connector, iter_chunk_size=64)
    try:
        await database
    except BaseException:
        # The driver's thread reports its end to the loop, which must still be there.
        await asyncio.to_thread(database._thread.join)
        raise

    def prepare(db: sqlite3.Connection) -> None:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA wal_autocheckpoint = 4000")
        db.execute("PRAGMA journal_size_limit = 67108864")
        if read_only:
            db.execute("PRAGMA query_only = ON")

    try:
        await database.run(lambda db: with_lock_wait(lambda: prepare(db)))
    except BaseException:
        await database.close()
        raise
    return database


def with_lock_wait(act: Callable[[], T], wait: float = WAIT) -> T:
    """Retry while another process holds the lock: bounded, with jitter. Runs in a thread."""
    give_up_at = time.monotonic() + wait
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            # The low byte is the kind; the rest says more about it.
            if error.sqlite_errorcode & 0xFF not in _BUSY or time.monotonic() >= give_up_at:
                raise
            time.sleep(random.uniform(0.002, 0.03))  # noqa: S311 - jitter, not a secret


_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class Writer:
    """The queue in front of the writing connection."""

    def __init__(self, database: Database, wait: float = WAIT) -> None:
        self._database, self._wait = database, wait
        self._waiting: list[tuple[Operation, asyncio.Future[Any]]] = []
        self._running: list[tuple[Operation, asyncio.Future[Any]]] = []
        self._begin: asyncio.Handle | None = None
        self._wanted = self._soon = False
        self._idle: asyncio.Future[None] | None = None

    def submit(
        self, operation: Callable[[sqlite3.Connection], T], *, hurry: bool = True
    ) -> asyncio.Future[T]:
        """Queue one operation. Order of submission is order of execution. Without `hurry` it waits
        up to LINGER for others to share a commit with."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._waiting.append((operation, future))
        self._wanted = self._wanted or hurry
        if not self._running:
            self._schedule()
        return future

    def _schedule(self) -> None:
        """Begin the next transaction: in the next round of the loop, so that what others submit in
        this one shares the commit; or a little later when nobody is in a hurry."""
        loop = asyncio.get_running_loop()
        if self._wanted and not self._soon:
            self._cancel_begin()
            self._begin, self._soon = loop.call_soon(self._flush), True
        elif self._begin is None:
            self._begin = loop.call_later(LINGER, self._flush)

    async def close(self) -> None:
        """Carry out everything that was submitted."""
        if self._waiting and not self._running:
            self._flush()
        if self._running:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    def _cancel_begin(self) -> None:
        if self._begin is not None:
            self._begin.cancel()
        self._begin, self._soon = None, False

    def _flush(self) -> None:
        """Hand what waits to the driver's thread, as one transaction."""
        self._cancel_begin()
        self._wanted = len(self._waiting) > MAX_BATCH
        self._running, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
        operations = [operation for operation, _ in self._running]
        wait = self._wait
        posted = self._database.post(lambda db: _commit(db, operations, wait))
        posted.add_done_callback(self._flushed)

    def _flushed(self, posted: asyncio.Future[list[Outcome]]) -> None:
        batch, self._running = self._running, []
        for (_, future), (succeeded, value) in zip(batch, _outcomes(posted, len(batch)), strict=True):
            if future.cancelled():
                continue
            if succeeded:
                future.set_result(value)
            else:
                future.set_exception(value)
        if self._waiting:
            if self._idle is None:
                self._schedule()
            else:
                self._flush()
        elif self._idle is not None and not self._idle.done():
            self._idle.set_result(None)


def _outcomes(posted: asyncio.Future[list[Outcome]], count: int) -> list[Outcome]:
    """What became of each operation; nothing was stored when the transaction itself failed."""
    error = posted.exception()
    if error is None:
        return posted.result()
    if isinstance(error, sqlite3.Error):
        failure = StoreUnavailable(f"the database could not be written: {error}")
        failure.__cause__ = error
        return [(False, failure)] * count
    return [(False, error)] * count


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
