"""What SQLite's file itself has to keep: locks, versions, migrations, handles."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import shutil
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import StoreError, StoreUnavailable, StoreVersionError
from gateway.store import sqlite_migrate
from gateway.store.sqlite import SqliteStore
from tests.contracts.sqlite_harness import SqliteHarness
from tests.contracts.store_scene import ANN, KEY, answer, begun, finished, incoming, replied, row, say

SOON = 30.0  # seconds that a test waits at most


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[SqliteHarness]:
    made = SqliteHarness(tmp_path / "threadgate.db")
    yield made
    await made.close()


class Holder:
    """Another program that holds the write lock."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("BEGIN IMMEDIATE")

    def let_go(self) -> None:
        self._db.execute("ROLLBACK")
        self._db.close()


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ---- locks


async def test_c078_eight_writers_a_long_reader_and_a_slow_one_lose_nothing(harness: SqliteHarness) -> None:
    stores = [await harness.open() for _ in range(8)]
    await say(stores[0], "first", harness.clock)
    reader = sqlite3.connect(harness.path, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM inbox").fetchone() == (1,)
    holder = Holder(harness.path)
    asyncio.get_running_loop().call_later(3.0, holder.let_go)

    async def write(number: int, store: SqliteStore) -> list[str]:
        outcomes = list[str]()
        for n in range(200):
            key = KEY._replace(conversation=f"c{number}-{n}")
            outcomes.append((await store.accept(incoming("x", harness.clock, key=key))).outcome)
        return outcomes

    async with asyncio.timeout(100):
        written = await asyncio.gather(*(write(n, store) for n, store in enumerate(stores)))
    assert written == [["claimed"] * 200] * 8
    assert reader.execute("SELECT count(*) FROM inbox").fetchone() == (1,)
    reader.execute("ROLLBACK")
    reader.close()
    assert await harness.rows("inbox") == await harness.rows("turns") == 1_601
    # With the reader gone the log is used from its start again; it never grows without bound.
    log = harness.path.with_name("threadgate.db-wal")
    await harness.tamper("PRAGMA wal_checkpoint(TRUNCATE)")
    await say(stores[0], "after", harness.clock, key=KEY._replace(conversation="after"))
    assert log.stat().st_size < 1_000_000


@pytest.mark.parametrize("pragma, value", [("journal_mode", "wal"), ("synchronous", 2), ("query_only", 0)])
async def test_the_writer_is_durable(harness: SqliteHarness, pragma: str, value: str | int) -> None:
    store = await harness.open()
    assert store._writing is not None
    found = await store._writing.run(lambda db: db.execute(f"PRAGMA {pragma}").fetchone()[0])
    assert found == value


async def test_c078_a_message_is_refused_when_the_database_stays_locked_and_stored_when_it_is_not(
    harness: SqliteHarness,
) -> None:
    store = await harness.open(wait=0.2)
    message = incoming("hello", harness.clock)
    holder = Holder(harness.path)
    with pytest.raises(StoreUnavailable):
        await store.accept(message)
    assert await store.sessions() == []  # reading goes on meanwhile
    holder.let_go()
    assert (await store.accept(message)).outcome == "claimed"


async def test_a_lock_that_is_let_go_in_time_is_only_waited_for(harness: SqliteHarness) -> None:
    store = await harness.open(wait=10.0)
    holder = Holder(harness.path)
    accepting = asyncio.create_task(store.accept(incoming("hello", harness.clock)))
    asyncio.get_running_loop().call_later(0.3, holder.let_go)
    async with asyncio.timeout(SOON):
        assert (await accepting).outcome == "claimed"


async def test_everything_that_shared_a_refused_commit_is_refused(harness: SqliteHarness) -> None:
    store = await harness.open(wait=0.1)
    holder = Holder(harness.path)
    keys = [KEY._replace(conversation=f"c{n}") for n in range(5)]
    writes = [store.accept(incoming("x", harness.clock, key=key)) for key in keys]
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert {type(r) for r in results} == {StoreUnavailable}
    holder.let_go()
    assert await harness.rows("inbox") == 0


async def test_a_result_whose_note_was_refused_is_not_mistaken_for_stored(harness: SqliteHarness) -> None:
    store = await harness.open(wait=0.1)
    claim = await begun(store, harness.clock)
    await replied(store, claim, row("a"))
    holder = Holder(harness.path)
    store.call_done(claim.lease, answer("a"), None, harness.clock.now())
    with pytest.raises(StoreUnavailable):
        await store.renew(harness.clock.now())
    holder.let_go()
    assert [(c.state, c.result) for c in await store.calls(claim.lease.session_id)] == [("allowed", None)]


# ---- versions


def make_text(path: Path) -> None:
    path.write_text("this is no database, only a long enough text. " * 100)


def make_foreign(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE notes (text TEXT)")
    db.commit()
    db.close()


def make_newer(path: Path) -> None:
    make_ours(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 9999")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def make_ours(path: Path) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    sqlite_migrate.migrate(db, 1.0)
    db.close()


@pytest.mark.parametrize("make", [make_text, make_foreign, make_newer])
async def test_a_file_that_is_not_ours_is_refused_and_not_touched(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "threadgate.db"
    make(path)
    before = digest(path)
    with pytest.raises(StoreVersionError):
        await SqliteStore(path).open()
    assert digest(path) == before
    assert not path.with_name("threadgate.db.holders").exists()


async def test_a_damaged_file_of_ours_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "threadgate.db"
    make_ours(path)
    data = bytearray(path.read_bytes())
    data[100:4_000] = b"\xff" * 3_900
    path.write_bytes(data)
    with pytest.raises(StoreVersionError):
        await SqliteStore(path).open()


async def test_a_place_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    folder = tmp_path / "threadgate.db"
    folder.mkdir()
    (folder / "inside").touch()
    with pytest.raises(StoreError):
        await SqliteStore(folder).open()


async def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "new" / "threadgate.db"
    path.parent.mkdir()
    path.touch()
    store = SqliteStore(path)
    await store.open()
    assert await store.sessions() == []
    await store.close()


@pytest.mark.parametrize("with_index", [True, False])
async def test_what_a_killed_process_left_in_the_log_beside_the_file_is_found(
    tmp_path: Path, with_index: bool
) -> None:
    path, clock = tmp_path / "threadgate.db", SqliteHarness(tmp_path / "x").clock
    store = SqliteStore(path, clock=clock)
    await store.open()
    claim = await begun(store, clock)
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for name in ("threadgate.db", "threadgate.db-wal", *(["threadgate.db-shm"] if with_index else [])):
        shutil.copy(tmp_path / name, crashed)
    await store.close()
    after = SqliteStore(crashed / "threadgate.db", clock=clock)
    await after.open()
    assert await after.reap(clock.now()) == [claim.lease.runner]
    assert await after.claimable(clock.now()) == [claim.lease.session_id]
    await after.close()


# ---- migrations


def schema(path: Path) -> list[tuple[str, ...]]:
    db = sqlite3.connect(path)
    try:
        return db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()
    finally:
        db.close()


async def test_a_fresh_database_is_what_all_migrations_one_by_one_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = tmp_path / "once.db"
    store = SqliteStore(at_once)
    await store.open()
    await store.close()
    step_by_step, files = tmp_path / "steps.db", sorted(sqlite_migrate.MIGRATIONS.glob("*.sql"))
    monkeypatch.setattr(sqlite_migrate, "MIGRATIONS", tmp_path / "migrations")
    sqlite_migrate.MIGRATIONS.mkdir()
    for file in files:
        shutil.copy(file, sqlite_migrate.MIGRATIONS)
        db = sqlite3.connect(step_by_step, isolation_level=None)
        sqlite_migrate.migrate(db, 1.0)
        db.close()
    assert schema(step_by_step) == schema(at_once)
    assert len(files) >= 1


async def test_a_later_migration_is_applied_once_and_a_changed_earlier_one_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = tmp_path / "threadgate.db", tmp_path / "migrations"
    shutil.copytree(sqlite_migrate.MIGRATIONS, folder)
    monkeypatch.setattr(sqlite_migrate, "MIGRATIONS", folder)
    make_ours(path)
    number = len(list(folder.glob("*.sql"))) + 1
    (folder / f"{number:04}_later.sql").write_text("CREATE TABLE later (id INTEGER);\nDROP TABLE later;\n")
    make_ours(path)
    make_ours(path)
    db = sqlite3.connect(path)
    names = [row[0] for row in db.execute("SELECT name FROM schema_migrations ORDER BY number")]
    db.close()
    assert names == [file.stem for file in sorted(folder.glob("*.sql"))]
    first = min(folder.glob("*.sql"))
    first.write_text(first.read_text() + "\n-- changed afterwards\n")
    (folder / f"{number + 1:04}_last.sql").write_text("SELECT 1;\n")
    with pytest.raises(StoreVersionError, match=first.name):
        make_ours(path)


async def test_a_migration_that_fails_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = tmp_path / "threadgate.db", tmp_path / "migrations"
    shutil.copytree(sqlite_migrate.MIGRATIONS, folder)
    monkeypatch.setattr(sqlite_migrate, "MIGRATIONS", folder)
    make_ours(path)
    before = schema(path)
    (folder / "0099_bad.sql").write_text("CREATE TABLE half (id INTEGER);\nNONSENSE;\n")
    with pytest.raises(StoreError):
        await SqliteStore(path).open()
    assert schema(path) == before


async def test_two_processes_may_open_a_new_file_at_the_same_moment(harness: SqliteHarness) -> None:
    stores = await asyncio.gather(*(harness.open() for _ in range(6)))
    assert len({store.runner for store in stores}) == 6
    assert await harness.rows("schema_migrations") >= 1


# ---- handles


def handles(path: Path) -> list[str]:
    """Files of this database that the process has open."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except FileNotFoundError:
            continue
        if target.startswith(str(path)):
            found.append(target)
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
class Rows:
    """What a query has found, read to its end."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._rows = cursor.fetchall()

    def fetchone(self) -> Any:
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[Any]:
        return self._rows


def test_a_file_that_another_process_furnishes_while_it_is_looked_at_is_ours(tmp_path: Path) -> None:
    path, looks = tmp_path / "new.db", list[str]()

    class Late(sqlite3.Connection):
        """Right after its first look, the other process makes everything."""

        def execute(self, sql: str, *values: Any) -> Any:
            found = Rows(super().execute(sql, *values))
            looks.append(sql)
            if len(looks) == 1:
                with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
                    sqlite_migrate.migrate(other, 1.0)
            return found

    with contextlib.closing(sqlite3.connect(path, isolation_level=None, factory=Late)) as db:
        sqlite_migrate.migrate(db, 2.0)
        migrations = len(list(sqlite_migrate.MIGRATIONS.glob("*.sql")))
        assert db.execute("SELECT count(*), max(applied_at) FROM schema_migrations").fetchone() == (
            migrations,
            1.0,
        )


async def test_closing_leaves_no_thread_no_file_and_no_lock(tmp_path: Path) -> None:
    path, clock = tmp_path / "threadgate.db", SqliteHarness(tmp_path / "x").clock
    before = set(threading.enumerate())
    store = SqliteStore(path, clock=clock)
    await store.open()
    claim = await begun(store, clock)
    await asyncio.gather(
        *(store.session(claim.lease.session_id) for _ in range(20))
    )  # one reader, not twenty
    during = set(threading.enumerate()) - before
    assert len(during) == 2 and len(handles(path)) > 0
    await finished(store, claim, clock)
    await store.close()
    await store.close()
    assert handles(path) == []
    for thread in set(threading.enumerate()) - before:
        thread.join(SOON)  # it has said that it ends; the last step is the interpreter's
    assert [t for t in threading.enumerate() if t not in before] == []
    assert list(path.with_name("threadgate.db.holders").iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
@pytest.mark.parametrize("make", [make_text, make_foreign, make_newer])
async def test_a_refused_file_leaves_no_thread_and_no_handle(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "threadgate.db"
    make(path)
    before = set(threading.enumerate())
    with pytest.raises(StoreVersionError):
        await SqliteStore(path).open()
    left = [t for t in threading.enumerate() if t not in before and not t.name.startswith("asyncio")]
    assert left == []
    assert handles(path) == []


async def test_a_dead_process_is_known_by_its_lock_and_a_living_one_is_not_touched(
    harness: SqliteHarness,
) -> None:
    store, alive, doomed = [await harness.open() for _ in range(3)]
    for one, name in ((alive, "a"), (doomed, "d")):
        await begun(one, harness.clock, key=KEY._replace(conversation=name))
    await harness.kill(doomed)
    assert await store.reap(harness.clock.now()) == [doomed.runner]
    await store.stop(KEY._replace(conversation="a"), "", "Ann", ANN, harness.clock.now())
    assert len(await alive.cancels()) == 1
