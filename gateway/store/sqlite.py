"""SQLite on aiosqlite: one file, one writing connection with group commit, readers beside it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import msgspec

from gateway.clock import Clock, SystemClock
from gateway.errors import StoreUnavailable, StoreVersionError
from gateway.journal import CallRow
from gateway.messages import Actor, Json, Message, ThreadKey, ToolResult, new_id
from gateway.store.base import LEASE_SECONDS
from gateway.store.presence import Presence
from gateway.store.rows import (
    Accepted,
    AuditLine,
    CallRecord,
    CardCopy,
    Checked,
    ChildBegun,
    ChildOrder,
    ChildState,
    Claim,
    Delivery,
    Ended,
    Firing,
    Given,
    GrantRecord,
    Have,
    Incoming,
    Lease,
    Notice,
    Outgoing,
    Park,
    PendingRecord,
    Press,
    Resolved,
    SessionView,
    StartUp,
    StopDone,
    TakenPress,
    Timer,
    TurnEnd,
    TurnView,
    Verdict,
)
from gateway.store.sqlite_migrate import migrate, refuse_foreign
from gateway.store.sqlite_notes import SqliteNotes
from gateway.store.sqlite_ops import (
    admitting,
    audit,
    children,
    grants,
    inbox,
    looking,
    outbox,
    people,
    timing,
    turns,
)
from gateway.store.sqlite_ops.codec import SQL
from gateway.store.sqlite_schedules import SqliteSchedules
from gateway.store.sqlite_writer import WAIT, Database, Writer, connect

T = TypeVar("T")


class SqliteStore(SqliteNotes, SqliteSchedules):
    """See gateway.store.base.Store for what each method promises."""

    def __init__(self, path: Path, *, clock: Clock | None = None, wait: float = WAIT) -> None:
        self.runner = new_id("r")
        self._path, self._wait = path, wait
        self._clock = clock or SystemClock()
        self._presence = Presence(path.with_name(path.name + ".holders"))
        self._writing: Database | None = None
        self._reading: Database | None = None
        self._writer: Writer | None = None
        self._opening = asyncio.Lock()
        self._unawaited: set[asyncio.Future[None]] = set()

    async def open(self) -> None:
        """Create or migrate the file. Raises StoreVersionError, StoreUnavailable."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writing = await connect(str(self._path), look_first=refuse_foreign)
            await self._writing.run(lambda db: migrate(db, self._clock.now()))
            self._presence.announce(self.runner)
        except StoreVersionError as error:
            await self.close()
            raise StoreVersionError(f"{self._path.name}: {error}") from error
        except sqlite3.DatabaseError as error:
            await self.close()
            if isinstance(error, sqlite3.OperationalError):
                raise StoreUnavailable(f"cannot open the database {self._path.name}: {error}") from error
            raise StoreVersionError(
                f"{self._path.name} is not a database of Threadgate, or it is damaged: {error}. "
                "Restore a backup, or name another file."
            ) from error
        except OSError as error:
            await self.close()
            raise StoreUnavailable(f"cannot open the database {self._path}: {error.strerror}") from error
        self._writer = Writer(self._writing, self._wait)

    async def close(self) -> None:
        """Carry out what was submitted, close both connections."""
        writer, self._writer = self._writer, None  # from here on nothing new is taken
        if writer is not None:
            await writer.close()
        async with self._opening:
            for database in (self._reading, self._writing):
                if database is not None:
                    await database.close()
            self._reading = self._writing = None
        self._presence.leave(self.runner)

    def _submit(
        self, operation: Callable[[sqlite3.Connection], T], *, hurry: bool = True
    ) -> asyncio.Future[T]:
        if self._writer is None:
            raise StoreUnavailable("the database is closed")
        return self._writer.submit(operation, hurry=hurry)

    async def _read(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        """On the reading connection, opened when first needed."""
        if self._writer is None:
            raise StoreUnavailable("the database is closed")
        try:
            reading = self._reading if self._reading is not None else await self._open_reading()
            return await reading.run(operation)
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(f"the database could not be read: {error}") from error

    async def _open_reading(self) -> Database:
        async with self._opening:
            if self._writer is None:
                raise StoreUnavailable("the database is closed")
            if self._reading is None:
                self._reading = await connect(str(self._path), read_only=True)
            return self._reading

    # ---- inbox

    async def start_up(self, now: float) -> StartUp:
        def look(db: sqlite3.Connection) -> StartUp:
            self._free_dead(db)
            outbox.redraw_stale(db, now)
            rows = db.execute(SQL["claimable"], {"now": now, "limit": 100}).fetchall()
            return StartUp(presses=tuple(inbox.presses_left(db)), sessions=tuple(row[0] for row in rows))

        return await self._submit(look)

    async def accept(self, incoming: Incoming, *, claim: bool = True, have: Have | None = None) -> Accepted:
        return await self._submit(
            lambda db: people.superseding(db, incoming, inbox.accept(db, incoming, self.runner, claim, have))
        )

    async def accept_press(self, press: Press) -> bool:
        return await self._submit(lambda db: inbox.accept_press(db, press))

    async def take_press(self, press: Press, pending_id: str) -> TakenPress:
        def take(db: sqlite3.Connection) -> TakenPress:
            fresh = inbox.accept_press(db, press)
            record = people.pending(db, pending_id)
            return TakenPress(
                fresh=fresh, record=record, copies=tuple(outbox.card_copies(db, pending_id)) if record else ()
            )

        return await self._submit(take)

    async def withdraw(self, key: ThreadKey, message_id: str) -> bool:
        return await self._submit(lambda db: inbox.withdraw(db, key, message_id))

    async def press_done(self, key: ThreadKey, action_id: str) -> None:
        await self._submit(lambda db: inbox.done(db, key, action_id, "press"), hurry=False)

    async def presses_left(self) -> list[Press]:
        return await self._read(inbox.presses_left)

    # ---- turns

    async def claim(self, session_id: str, now: float, *, have: Have | None = None) -> Claim | None:
        return await self._submit(lambda db: turns.claim(db, session_id, self.runner, now, have))

    async def claimable(self, now: float, limit: int = 100) -> list[str]:
        values = {"now": now, "limit": limit}
        rows = await self._read(lambda db: db.execute(SQL["claimable"], values).fetchall())
        return [row[0] for row in rows]

    async def renew(self, now: float) -> None:
        await self._submit(lambda db: db.execute(SQL["renew"], (now + LEASE_SECONDS, self.runner)).rowcount)

    async def held(self) -> list[Lease]:
        rows = await self._read(lambda db: db.execute(SQL["leases"], (self.runner,)).fetchall())
        return [Lease(session_id=r[0], turn_id=r[1], runner=r[2], epoch=r[3]) for r in rows]

    async def cancels(self) -> dict[str, str]:
        return dict(await self._read(lambda db: db.execute(SQL["cancels"], (self.runner,)).fetchall()))

    async def reap(self, now: float) -> list[str]:
        rows = await self._read(lambda db: db.execute(SQL["runners"]).fetchall())
        if all(name == self.runner for (name,) in rows):
            return []
        return await self._submit(self._free_dead)

    def _free_dead(self, db: sqlite3.Connection) -> list[str]:
        """Free what dead runners hold; their names."""
        names = [name for (name,) in db.execute(SQL["runners"]).fetchall() if name != self.runner]
        dead = [name for name in names if self._presence.is_dead(name)]
        for name in dead:
            db.execute(SQL["free_leases"], (name,))
            db.execute(SQL["free_deliveries"], (name,))
        return dead

    async def release(self, lease: Lease) -> None:
        values = (lease.session_id, lease.runner, lease.epoch)
        await self._submit(lambda db: db.execute(SQL["release"], values).rowcount)

    async def reply(self, lease: Lease, message: Message, calls: Sequence[CallRow], events: str) -> None:
        now = self._clock.now()
        await self._submit(lambda db: turns.reply(db, lease, message, calls, events, now))

    async def calls_started(
        self,
        lease: Lease,
        call_ids: Sequence[str],
        now: float,
        events: str,
        *,
        edited: Mapping[str, tuple[Json, str]] = MappingProxyType({}),
        allowed: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        await self._submit(lambda db: turns.calls_started(db, lease, call_ids, now, events, edited, allowed))

    def call_done(self, lease: Lease, result: ToolResult, full: str | None, now: float) -> None:
        self._unheard(self._submit(lambda db: turns.call_done(db, lease, result, full, now), hurry=False))

    def _unheard(self, future: asyncio.Future[None]) -> asyncio.Future[None]:
        """Nobody need wait: the next awaited write of the same lease fails in the same way."""
        self._unawaited.add(future)
        future.add_done_callback(self._unawaited.discard)
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return future

    async def results(self, lease: Lease, message: Message, events: str, *, steer: bool) -> list[Message]:
        now = self._clock.now()
        return await self._submit(lambda db: turns.results(db, lease, message, events, steer, now))

    async def marker(self, lease: Lease, message: Message, events: str) -> None:
        now = self._clock.now()
        await self._submit(lambda db: turns.marker(db, lease, message, events, now))

    def note_events(self, lease: Lease, events: str) -> asyncio.Future[None]:
        return self._unheard(self._submit(lambda db: turns.note_events(db, lease, events)))

    async def finish(self, lease: Lease, end: TurnEnd, now: float) -> Ended:
        return await self._submit(lambda db: turns.finish(db, lease, end, now))

    async def park(self, lease: Lease, park: Park, now: float) -> Ended:
        return await self._submit(lambda db: turns.park(db, lease, park, now))

    async def begin_child(self, order: ChildOrder) -> ChildBegun:
        return await self._submit(lambda db: children.begin(db, order, self.runner))

    async def child_state(self, session_id: str) -> ChildState | None:
        return await self._read(lambda db: children.state(db, session_id))

    async def full_result(self, session_id: str, call_id: str) -> str | None:
        return await self._read(lambda db: looking.full_result(db, session_id, call_id))

    # ---- people

    async def stop(
        self, key: ThreadKey, session_id: str, by: str, actor: Actor, now: float, *, turn_id: str = ""
    ) -> StopDone:
        return await self._submit(
            lambda db: people.stop(db, key, session_id, by, actor, "/stop", now, turn_id)
        )

    async def fresh_session(
        self, key: ThreadKey, agent: str, tenant: str, by: str, actor: Actor, now: float
    ) -> StopDone:
        return await self._submit(lambda db: people.fresh_session(db, key, agent, tenant, by, actor, now))

    async def set_model(self, session_id: str, model: str, by: str, actor: Actor, now: float) -> bool:
        return await self._submit(lambda db: people.set_model(db, session_id, model, by, actor, now))

    async def resolve(self, verdict: Verdict, *, claim: bool = False, have: Have | None = None) -> Resolved:
        def decide(db: sqlite3.Connection) -> Resolved:
            resolved = people.resolve(db, verdict)
            if not claim or resolved.record is None:
                return resolved
            work = turns.claim(db, resolved.record.session_id, self.runner, verdict.at, have)
            return msgspec.structs.replace(resolved, claim=work)

        return await self._submit(decide)

    async def choose(self, pending_id: str, before: Sequence[str], after: Sequence[str], at: float) -> bool:
        return await self._submit(lambda db: people.choose(db, pending_id, before, after, at))

    async def give(self, given: Given) -> PendingRecord | None:
        return await self._submit(lambda db: people.give(db, given))

    async def grants(
        self, now: float, *, agent: str = "", session_id: str = "", limit: int = 100
    ) -> list[GrantRecord]:
        return await self._read(lambda db: grants.live(db, now, agent, session_id, limit))

    async def grant(self, grant_id: str) -> GrantRecord | None:
        return await self._read(lambda db: grants.one(db, grant_id))

    async def revoke(self, grant_id: str, by: str, actor: Actor, now: float) -> bool:
        return await self._submit(lambda db: grants.revoke(db, grant_id, by, actor, now))

    async def pending(self, pending_id: str) -> PendingRecord | None:
        return await self._read(lambda db: people.pending(db, pending_id))

    async def pendings(
        self,
        *,
        session_id: str = "",
        key: ThreadKey | None = None,
        code: str = "",
        card: str = "",
        open_only: bool = True,
        limit: int = 200,
    ) -> list[PendingRecord]:
        return await self._read(
            lambda db: looking.pendings(db, session_id, key, code, card, open_only, limit)
        )

    async def card_copies(self, pending_id: str) -> list[CardCopy]:
        return await self._read(lambda db: outbox.card_copies(db, pending_id))

    async def adopt_card(self, pending_id: str, key: ThreadKey, ref: str) -> None:
        now = self._clock.now()
        await self._submit(lambda db: outbox.adopt_card(db, pending_id, key, ref, now))

    async def is_admitted(self, actor: Actor) -> bool:
        return await self._read(lambda db: admitting.is_admitted(db, actor))

    async def pairing_code(
        self,
        actor: Actor,
        name: str,
        key: ThreadKey,
        code: str,
        now: float,
        seconds: float,
        most: int,
    ) -> str | None:
        return await self._submit(
            lambda db: admitting.pairing_code(db, actor, name, key, code, now, seconds, most)
        )

    async def admit(self, code: str, by: Actor, now: float) -> tuple[Actor, str, ThreadKey] | None:
        return await self._submit(lambda db: admitting.admit(db, code, by, now))

    async def audit(
        self, kind: str, actor: str, body: Json, now: float, *, session_id: str = "", pending_id: str = ""
    ) -> None:
        await self._submit(
            lambda db: audit.append_audit(
                db, now, kind, actor, body, session_id=session_id, pending_id=pending_id
            )
        )

    # ---- outbox

    async def enqueue(self, outgoing: Sequence[Outgoing], now: float) -> list[Delivery]:
        return await self._submit(lambda db: outbox.enqueue(db, outgoing, self.runner, now))

    async def due_deliveries(self, now: float, limit: int = 50) -> list[Delivery]:
        return await self._submit(lambda db: outbox.due(db, self.runner, now, limit), hurry=False)

    async def part_sent(self, delivery_id: int, ref: str, now: float) -> None:
        await self._submit(lambda db: outbox.part_sent(db, delivery_id, ref))

    async def sent(
        self, delivery_id: int, ref: str | None, now: float, *, opened: ThreadKey | None = None
    ) -> list[Delivery]:
        return await self._submit(
            lambda db: outbox.sent(db, delivery_id, ref, self.runner, now, opened), hurry=False
        )

    async def retry_later(self, delivery_id: int, at: float, error: str, *, unsure: bool = False) -> None:
        await self._submit(lambda db: outbox.retry_later(db, delivery_id, at, error, unsure))

    async def give_up(self, delivery_id: int, error: str, now: float) -> list[Delivery]:
        return await self._submit(lambda db: outbox.give_up(db, delivery_id, error, self.runner, now))

    async def next_delivery_at(self) -> float | None:
        return await self._read(lambda db: looking.first(db, "next_delivery_at"))

    async def move_thread(self, old: ThreadKey, new: ThreadKey) -> None:
        await self._submit(lambda db: outbox.move_thread(db, old, new))

    async def redraw_cards(self, now: float) -> int:
        return await self._submit(lambda db: outbox.redraw_stale(db, now))

    # ---- timers

    async def due_timers(self, now: float, limit: int = 100) -> list[Timer]:
        return await self._read(lambda db: looking.due_timers(db, now, limit))

    async def timer_done(self, timer_id: int) -> None:
        await self._submit(lambda db: db.execute(SQL["timer_done"], (timer_id,)).rowcount)

    async def put_off_timer(self, timer_id: int, at: float) -> None:
        await self._submit(lambda db: timing.put_off(db, timer_id, at))

    async def fire(self, firing: Firing) -> bool:
        return await self._submit(lambda db: timing.fire(db, firing))

    async def next_timer_at(self) -> float | None:
        return await self._read(lambda db: looking.first(db, "next_timer_at"))

    # ---- looking

    async def session(self, session_id: str) -> SessionView | None:
        return await self._read(lambda db: looking.session(db, session_id))

    async def session_of(self, key: ThreadKey) -> SessionView | None:
        return await self._read(lambda db: looking.session_of(db, key))

    async def own_thread(self, key: ThreadKey, actor: Actor) -> ThreadKey | None:
        return await self._read(lambda db: looking.own_thread(db, key, actor))

    async def seen(self, channel: str, limit: int = 500) -> list[tuple[ThreadKey, str]]:
        return await self._read(lambda db: looking.seen(db, channel, limit))

    async def sessions(self, limit: int = 100) -> list[SessionView]:
        return await self._read(lambda db: looking.sessions(db, limit))

    async def log(self, session_id: str, start: int = 0, limit: int = -1) -> list[Message]:
        return await self._read(lambda db: looking.log(db, session_id, start, limit))

    async def notices(self, session_id: str) -> list[Notice]:
        return await self._read(lambda db: looking.notices(db, session_id))

    async def queued_texts(self, session_id: str) -> list[tuple[str, str]]:
        return await self._read(lambda db: looking.queued_texts(db, session_id))

    async def turn_of_message(self, session_id: str, message_id: str) -> str | None:
        return await self._read(lambda db: looking.turn_of_message(db, session_id, message_id))

    async def turn(self, turn_id: str) -> TurnView | None:
        return await self._read(lambda db: looking.turn(db, turn_id))

    async def turns_after(self, session_id: str, number: int, limit: int = 50) -> list[TurnView]:
        return await self._read(lambda db: looking.turns_after(db, session_id, number, limit))

    async def calls(self, session_id: str) -> list[CallRecord]:
        return await self._read(lambda db: looking.calls(db, session_id))

    async def audit_lines(self, limit: int = 100, before: int | None = None) -> list[AuditLine]:
        return await self._read(lambda db: audit.audit_lines(db, limit, before))

    async def audit_after(self, seq: int, limit: int = 500) -> list[AuditLine]:
        return await self._read(lambda db: audit.audit_after(db, seq, limit))

    async def check_audit(self, seq: int, previous: str, limit: int = 500) -> Checked:
        return await self._read(lambda db: audit.check(db, seq, previous, limit))

    async def verify_audit(self) -> int | None:
        return await self._read(audit.verify_audit)
