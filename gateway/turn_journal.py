"""The loop's journal over the store: every write names the lease and takes the events along."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway import faults
from gateway.clock import Clock
from gateway.eventlog import EventLines
from gateway.journal import CallRow, Ready
from gateway.messages import Message, ToolResult
from gateway.store.base import Store
from gateway.store.rows import Lease


class TurnJournal:
    """See gateway.journal.Journal. `on_commit` is called after each write that others may see."""

    def __init__(
        self,
        store: Store,
        lease: Lease,
        clock: Clock,
        events: EventLines,
        on_commit: Callable[[], None],
        *,
        steer: bool,
    ) -> None:
        self._store, self._lease, self._clock = store, lease, clock
        self._events, self._on_commit, self._steer = events, on_commit, steer

    async def assistant(self, message: Message, calls: Sequence[CallRow]) -> None:
        faults.reach("assistant.before")
        await self._store.reply(self._lease, message, calls, self._events.take())
        faults.reach("assistant.after")
        self._events.know(message)
        self._on_commit()

    async def started(self, lane: Sequence[Ready]) -> None:
        """What may run twice needs no row that says it began: after a crash it simply runs again."""
        allowed = {ready.call.id: ready.grant for ready in lane if ready.approved or ready.grant}
        if allowed or any(not _repeatable(ready) for ready in lane):
            faults.reach("started.before")
            ids = [ready.call.id for ready in lane]
            edited = {ready.call.id: (ready.args, ready.args_hash) for ready in lane if ready.note}
            await self._store.calls_started(
                self._lease, ids, self._clock.now(), self._events.take(), edited=edited, allowed=allowed
            )
            faults.reach("started.after")
            self._on_commit()
        if any(ready.approved for ready in lane):
            faults.reach("approved.before")

    def done(self, ready: Ready, result: ToolResult, full: str | None) -> None:
        if ready.approved:
            faults.reach("approved.after")
        faults.reach("done.before")
        self._store.call_done(self._lease, result, full, self._clock.now())
        faults.reach("done.after")

    async def results(self, message: Message, *, final: bool = False) -> Sequence[Message]:
        faults.reach("results.before")
        said = await self._store.results(
            self._lease, message, self._events.take(), steer=self._steer and not final
        )
        faults.reach("results.after")
        self._on_commit()
        return said

    async def marker(self, message: Message) -> None:
        await self._store.marker(self._lease, message, self._events.take())

    async def revoked(self, grants: Sequence[str]) -> Sequence[str]:
        return [grant for grant in grants if await self._store.grant(grant) is None]

    async def full_result(self, call_id: str) -> str | None:
        return await self._store.full_result(self._lease.session_id, call_id)


def _repeatable(ready: Ready) -> bool:
    return ready.tool.safe or ready.tool.idempotent
