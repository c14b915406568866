"""The part of the SQLite store that is about schedules."""

from __future__ import annotations

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from gateway.messages import Actor, ThreadKey
from gateway.store.schedule_rows import Kept, Schedule, ScheduleRecord, Standing, Wake, Woken
from gateway.store.sqlite_ops import scheduling

T = TypeVar("T")


class SqliteSchedules(ABC):
    """See gateway.store.base.Store for what each method promises."""

    runner: str

    @abstractmethod
    def _submit(
        self, operation: Callable[[sqlite3.Connection], T], *, hurry: bool = True
    ) -> asyncio.Future[T]:
        """Have the writer do it."""

    @abstractmethod
    async def _read(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        """Do it on the reading connection."""

    async def add_schedule(
        self, schedule_id: str, session_id: str, turn_id: str, schedule: Schedule, due_at: float, most: int
    ) -> ScheduleRecord | None:
        return await self._submit(
            lambda db: scheduling.add(db, schedule_id, session_id, turn_id, schedule, due_at, most)
        )

    async def keep_schedules(self, wanted: Sequence[Standing], now: float) -> Kept:
        return await self._submit(lambda db: scheduling.keep(db, wanted, now))

    async def schedule(self, schedule_id: str) -> ScheduleRecord | None:
        return await self._read(lambda db: scheduling.one(db, schedule_id))

    async def schedules(
        self, *, session_id: str = "", key: ThreadKey | None = None, limit: int = 200
    ) -> list[ScheduleRecord]:
        return await self._read(lambda db: scheduling.live(db, session_id, key, limit))

    async def cancel_schedule(self, schedule_id: str, by: str, actor: Actor, via: str, now: float) -> bool:
        return await self._submit(lambda db: scheduling.cancel(db, schedule_id, by, actor, via, now))

    async def wake(self, wake: Wake) -> Woken:
        return await self._submit(lambda db: scheduling.wake(db, wake, self.runner))
