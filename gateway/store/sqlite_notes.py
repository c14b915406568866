"""The part of the SQLite store that the built-in tools use."""

from __future__ import annotations

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from gateway.messages import Json
from gateway.store.rows import Outgoing
from gateway.store.sqlite_ops import notes
from gateway.tools.ports import Note, NoteOwner, Origin

T = TypeVar("T")


class SqliteNotes(ABC):
    """See gateway.store.base.Store for what each method promises."""

    @abstractmethod
    def _submit(
        self, operation: Callable[[sqlite3.Connection], T], *, hurry: bool = True
    ) -> asyncio.Future[T]: ...

    @abstractmethod
    async def _read(self, operation: Callable[[sqlite3.Connection], T]) -> T: ...

    async def origin(self, turn_id: str) -> Origin | None:
        return await self._read(lambda db: notes.origin(db, turn_id))

    async def post_once(self, outgoing: Sequence[Outgoing], once: str, now: float) -> bool:
        return await self._submit(lambda db: notes.post_once(db, outgoing, once, now))

    async def posted_file(self, session_id: str, delivery_id: int) -> Json | None:
        return await self._read(lambda db: notes.posted_file(db, session_id, delivery_id))

    async def notes(self, owner: NoteOwner) -> list[Note]:
        return await self._read(lambda db: notes.notes(db, owner))

    async def put_note(self, owner: NoteOwner, note: Note, most: int) -> bool:
        return await self._submit(lambda db: notes.put(db, owner, note, most))

    async def forget_notes(self, owner: NoteOwner, key: str = "") -> int:
        return await self._submit(lambda db: notes.forget(db, owner, key))
