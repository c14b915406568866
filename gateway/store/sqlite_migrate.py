"""Numbered SQL files, applied in order, each in one transaction, recorded with its checksum."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

from gateway.errors import StoreVersionError
from gateway.store.sqlite_writer import with_lock_wait

MIGRATIONS = Path(__file__).parent / "migrations" / "sqlite"
APPLICATION_ID = 0x54474154  # "TGAT": tells our files from other SQLite databases

# One statement sees one state: another process may be making the tables right now.
_STATE = """
SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)
  FROM pragma_application_id, pragma_user_version
"""
_RECORD = """
CREATE TABLE IF NOT EXISTS schema_migrations (
  number     INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  checksum   TEXT NOT NULL,
  applied_at REAL NOT NULL
)
"""


def migrate(db: sqlite3.Connection, now: float) -> None:
    """Bring the schema up to date. Raises StoreVersionError for a foreign or newer database."""
    files = sorted(MIGRATIONS.glob("[0-9]*.sql"))
    if _version(db) == len(files):
        return
    with_lock_wait(lambda: db.execute("BEGIN IMMEDIATE"))
    try:
        applied = _applied(db)
        for number, path in enumerate(files, start=1):
            text = path.read_text(encoding="utf-8")
            if number in applied:
                _check(path, text, applied[number])
                continue
            for statement in _statements(text):
                db.execute(statement)
            row = (number, path.stem, _checksum(text), now)
            db.execute(
                "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)", row
            )
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(files)}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def refuse_foreign(path: str) -> None:
    """Look at a file without changing it. Raises StoreVersionError for a foreign or newer database,
    sqlite3.DatabaseError for what is none."""
    file = Path(path)
    if not file.exists() or file.stat().st_size == 0:
        return
    db = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=0.05)
    try:
        with_lock_wait(lambda: _version(db))
    finally:
        db.close()


def _version(db: sqlite3.Connection) -> int:
    """The number of migrations applied, 0 for an empty file. Raises for what is not ours."""
    application, version, tables = db.execute(_STATE).fetchone()
    if tables and application != APPLICATION_ID:
        raise StoreVersionError("this is a database of another program; name another file")
    known = len(list(MIGRATIONS.glob("[0-9]*.sql")))
    if version > known:
        raise StoreVersionError(
            f"the database has schema version {version}, this program knows {known}: it was written by a "
            "newer version. Update Threadgate; the file was not touched."
        )
    return int(version)


def _applied(db: sqlite3.Connection) -> dict[int, str]:
    db.execute(_RECORD)
    return dict(db.execute("SELECT number, checksum FROM schema_migrations").fetchall())


def _check(path: Path, text: str, recorded: str) -> None:
    if _checksum(text) != recorded:
        raise StoreVersionError(
            f"migration {path.name} differs from the one that was applied to this database"
        )


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _statements(text: str) -> list[str]:
    """Single statements: sqlite3's own rule decides where one ends."""
    statements, current = [], ""
    for line in text.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            statements.append(current.strip())
            current = ""
    return [statement for statement in statements if statement]
