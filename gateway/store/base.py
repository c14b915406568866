"""The store's contract. One method is one transaction; what it returns is what was committed.

Who may claim. A session has at most one runner at a time: a row with runner, epoch and lease
time. A claim raises the epoch; every write of a turn names runner and epoch, and finds no row
once somebody else has claimed: LeaseLost. A lease that has run out, or whose runner's process is
known to be dead (`reap`), may be claimed by anybody. Renewing is one statement for all sessions
of a runner.

What is atomic. Accepting a message (identity, queue, and when the session is free the claim, the
turn and the log entry). A reply with its calls. A stop: log entries, checkpoint, pendings, card
deliveries, timers. A resolution: the pending's new state, votes, grant, siblings, redraws of every
card, the audit lines. The end of a turn: log entries, outcome, answer delivery.

Order. Writes are carried out in the order in which they were submitted, whatever task submits
them. `call_done` only submits: it is durable when any later awaited write of the same runner
returns. Many writes may share one commit (group commit); each still succeeds or fails alone.

Identity. (channel, workspace, conversation, kind, message id) is unique for ever; a second insert
changes nothing and says `duplicate`.

Failure. StoreUnavailable when the database cannot be written within `wait` seconds: nothing was
stored, and a channel must not acknowledge. StoreVersionError when opening something that is not
ours or newer. Unknown ids give None, never an error.

Every implementation passes tests/contracts/store.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from gateway.journal import CallRow
from gateway.messages import Actor, Json, Message, ThreadKey, ToolResult
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
from gateway.store.schedule_rows import Kept, Schedule, ScheduleRecord, Standing, Wake, Woken
from gateway.tools.ports import Note, NoteOwner, Origin

LEASE_SECONDS = 30.0


class Store(Protocol):
    """See the module's docstring. Times are Unix seconds and always handed in."""

    runner: str  # this process, as written in leases

    async def open(self) -> None:
        """Connect, migrate, announce this runner. Raises StoreVersionError, StoreUnavailable."""

    async def close(self) -> None:
        """Finish what was submitted, let go of everything. Safe to call twice."""

    async def start_up(self, now: float) -> StartUp:
        """What a process does first: `reap`, `redraw_cards`, `presses_left`, `claimable`, in one."""

    # ---- inbox

    async def accept(self, incoming: Incoming, *, claim: bool = True, have: Have | None = None) -> Accepted:
        """Store a message once; with `claim` also begin its turn when the session is free, and
        with `have` bring the log along unless the caller has it. Behind open requests of an agent in
        `supersedes` it closes them all, as `stop` would, unless one asks what became of a cut-off call.
        An `edited` message replaces the text of one that still waits and is otherwise ignored."""

    async def withdraw(self, key: ThreadKey, message_id: str) -> bool:
        """Take a message that still waits out of the queue; False when none waits under that id."""

    async def accept_press(self, press: Press) -> bool:
        """Store a press once; False for one that is known already."""

    async def take_press(self, press: Press, pending_id: str) -> TakenPress:
        """Store a press once, and look up what it is about in the same transaction."""

    async def press_done(self, key: ThreadKey, action_id: str) -> None:
        """The press was carried out and answered."""

    async def presses_left(self) -> list[Press]:
        """Presses that a dead process left behind, oldest first."""

    # ---- turns

    async def claim(self, session_id: str, now: float, *, have: Have | None = None) -> Claim | None:
        """The next work of this session, if it has any and nobody holds it: a dead runner's turn
        before a decision, a decision before a waiting message."""

    async def claimable(self, now: float, limit: int = 100) -> list[str]:
        """Sessions that `claim` would find work in, oldest first."""

    async def renew(self, now: float) -> None:
        """Extend every lease of this runner by LEASE_SECONDS."""

    async def held(self) -> list[Lease]:
        """The leases of this runner, whether or not they have run out."""

    async def cancels(self) -> dict[str, str]:
        """Sessions held by this runner that somebody wants stopped, and why."""

    async def reap(self, now: float) -> list[str]:
        """Free leases and outbox rows of runners that are known to be dead; their names."""

    async def release(self, lease: Lease) -> None:
        """Give a session back in the middle of a turn (drain): anybody may recover it at once."""

    async def reply(self, lease: Lease, message: Message, calls: Sequence[CallRow], events: str) -> None:
        """Append a reply with its calls."""

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
        """These calls begin; `edited`: arguments (and hash) that a person changed, by call id.
        `allowed`: those that a person's word set free, with the id of the grant, empty where the word
        was about this very call. Each such start is a line of the record: `executed`."""

    def call_done(self, lease: Lease, result: ToolResult, full: str | None, now: float) -> None:
        """One call ended. Submits; see the module's docstring."""

    async def results(self, lease: Lease, message: Message, events: str, *, steer: bool) -> list[Message]:
        """Append a step's results, close its checkpoint; with `steer` also append what people
        have said meanwhile, and return it."""

    async def marker(self, lease: Lease, message: Message, events: str) -> None:
        """Append a compaction marker."""

    def note_events(self, lease: Lease, events: str) -> asyncio.Future[None]:
        """Append packed events to the turn. Submits at once, like `call_done`; the future is done
        when they can be read, and need not be awaited."""

    async def finish(self, lease: Lease, end: TurnEnd, now: float) -> Ended:
        """The end of a turn."""

    async def park(self, lease: Lease, park: Park, now: float) -> Ended:
        """A durable stop."""

    async def begin_child(self, order: ChildOrder) -> ChildBegun:
        """Begin the conversation that a call has with a subagent, and its turn: the session, its first
        message, the claim. The same call finds the same session again, without a claim, whatever happened
        meanwhile. The session works for its caller: what it comes to sets the caller `ready` where that has
        stopped, and it ends with the caller's step. Raises LeaseLost."""

    async def child_state(self, session_id: str) -> ChildState | None:
        """How far a subagent's session has come."""

    async def full_result(self, session_id: str, call_id: str) -> str | None:
        """The whole text of a capped tool result."""

    # ---- people

    async def stop(
        self, key: ThreadKey, session_id: str, by: str, actor: Actor, now: float, *, turn_id: str = ""
    ) -> StopDone:
        """Ask the running turn to stop, close what is pending. `session_id` wins over `key`. With
        `turn_id` only while that turn is the session's last: a later one is left alone."""

    async def fresh_session(
        self, key: ThreadKey, agent: str, tenant: str, by: str, actor: Actor, now: float
    ) -> StopDone:
        """Stop the thread's session and point the thread at a new one; what waits moves along."""

    async def set_model(self, session_id: str, model: str, by: str, actor: Actor, now: float) -> bool:
        """Choose the configured model that answers in a session from its next turn on, also one that goes
        on; empty: its agent's own. On record (`model`). False for an unknown session."""

    async def resolve(self, verdict: Verdict, *, claim: bool = False, have: Have | None = None) -> Resolved:
        """One conditional update; its row count decides, the answer follows from the row. With
        `claim` the session's next work is claimed in the same transaction."""

    async def choose(self, pending_id: str, before: Sequence[str], after: Sequence[str], at: float) -> bool:
        """Change what is chosen so far of an open question with several answers; False when it
        is not open any more or somebody else changed it first."""

    async def give(self, given: Given) -> PendingRecord | None:
        """Have others decide an open request: stored, on record (`reassigned`), every card redrawn. The
        row afterwards; None when it is not open any more."""

    async def grants(
        self, now: float, *, agent: str = "", session_id: str = "", limit: int = 100
    ) -> list[GrantRecord]:
        """The grants that hold, newest first: with `agent` those for all its sessions and for this
        one, else all there are."""

    async def grant(self, grant_id: str) -> GrantRecord | None:
        """A grant that was not revoked."""

    async def revoke(self, grant_id: str, by: str, actor: Actor, now: float) -> bool:
        """Take a grant back, for every call that is not decided yet; on record (`revoked`). False when
        there is none to take back."""

    async def pending(self, pending_id: str) -> PendingRecord | None: ...

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
        """Oldest first; those of one card in the order of their calls. Those of a session and of all
        that works below it as an outermost one."""

    async def card_copies(self, pending_id: str) -> list[CardCopy]:
        """The copies of the card that this pending is on."""

    async def adopt_card(self, pending_id: str, key: ThreadKey, ref: str) -> None:
        """A copy whose reference was lost turned up: remember it, so that it is redrawn."""

    async def is_admitted(self, actor: Actor) -> bool:
        """Whether a person who is on no list was let in."""

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
        """The code that this person waits with: the one that still holds, else `code` from now on
        for `seconds`; None when `most` people wait already."""

    async def admit(self, code: str, by: Actor, now: float) -> tuple[Actor, str, ThreadKey] | None:
        """Let the person with this code in: who, the name, and where they asked; None for no such code."""

    async def audit(
        self, kind: str, actor: str, body: Json, now: float, *, session_id: str = "", pending_id: str = ""
    ) -> None:
        """Append one line to the record."""

    # ---- outbox

    async def enqueue(self, outgoing: Sequence[Outgoing], now: float) -> list[Delivery]:
        """Add rows; returns those that this runner may send at once."""

    async def due_deliveries(self, now: float, limit: int = 50) -> list[Delivery]:
        """Claim the next row of every lane that has one due: what is posted in a thread is one
        lane, the redraws of one card message are another."""

    async def part_sent(self, delivery_id: int, ref: str, now: float) -> None:
        """One part of a long message is out."""

    async def sent(
        self, delivery_id: int, ref: str | None, now: float, *, opened: ThreadKey | None = None
    ) -> list[Delivery]:
        """The row is done (`ref`: its last message). Returns what follows, claimed. `opened`: the thread
        that a schedule's words have begun; the session there begins with the schedule's message, once."""

    async def retry_later(self, delivery_id: int, at: float, error: str, *, unsure: bool = False) -> None:
        """Try again at `at`. Not sent for certain: the attempt is not counted as a repeat. `unsure`:
        it may have arrived, so the next attempt is one."""

    async def give_up(self, delivery_id: int, error: str, now: float) -> list[Delivery]:
        """Will never be sent. Returns the thread's next row, claimed."""

    async def next_delivery_at(self) -> float | None:
        """When the next waiting row is due, None when none waits."""

    async def move_thread(self, old: ThreadKey, new: ThreadKey) -> None:
        """A conversation has a new id (Telegram's group upgrade): everything follows."""

    async def post_once(self, outgoing: Sequence[Outgoing], once: str, now: float) -> bool:
        """Add rows for whoever looks next to send, unless rows were added under this key before; False
        then."""

    async def posted_file(self, session_id: str, delivery_id: int) -> Json | None:
        """The file of a notice of this session, as its payload has it; None where there is none."""

    async def redraw_cards(self, now: float) -> int:
        """Queue a redraw for every posted card whose pending is no longer open and which was not
        redrawn since; the number queued. For start-up."""

    # ---- timers

    async def due_timers(self, now: float, limit: int = 100) -> list[Timer]: ...

    async def timer_done(self, timer_id: int) -> None: ...

    async def put_off_timer(self, timer_id: int, at: float) -> None:
        """It is due at `at` instead, unless it is done."""

    async def fire(self, firing: Firing) -> bool:
        """Carry out a due `remind` or `escalate`, once, whoever else tries: the timer, the changes of the
        requests on its card, what is sent, and a line of the record for each (`reminded`, `escalated`).
        Due reminders of the same card end with it. False when nothing was done: somebody was quicker,
        nothing there is open any more, or other requests are than those that were looked at; in the last
        case the timer stays due."""

    async def next_timer_at(self) -> float | None: ...

    # ---- schedules

    async def add_schedule(
        self, schedule_id: str, session_id: str, turn_id: str, schedule: Schedule, due_at: float, most: int
    ) -> ScheduleRecord | None:
        """Have a session woken, for the person whose turn this is; on record (`scheduled`). Again under
        the same id: the one that is stored. None when the session has `most` open ones already."""

    async def keep_schedules(self, wanted: Sequence[Standing], now: float) -> Kept:
        """Bring the configuration's schedules up to date: new ones are made, those that are not wanted any
        more end, changed ones change; what stays when it is due keeps its next planned time. One that
        somebody has cancelled stays so until something about it changes."""

    async def schedule(self, schedule_id: str) -> ScheduleRecord | None:
        """One schedule, open or not."""

    async def schedules(
        self, *, session_id: str = "", key: ThreadKey | None = None, limit: int = 200
    ) -> list[ScheduleRecord]:
        """Open ones, the next first: those of a session, and with `key` those that the configuration has
        for that conversation; with neither all there are."""

    async def cancel_schedule(self, schedule_id: str, by: str, actor: Actor, via: str, now: float) -> bool:
        """End a schedule; on record (`cancelled`). False when it is not open."""

    async def wake(self, wake: Wake) -> Woken:
        """Carry out a due schedule, once, whoever else tries: its next time is set, and its message is
        stored in the session's queue under the identity of schedule and planned time (or the words are,
        that open a thread for it), with a line of the record: `fired`. `missed` instead, and no
        message, where it has none, or where what it has led to last still waits."""

    # ---- notes

    async def notes(self, owner: NoteOwner) -> list[Note]:
        """What is remembered about a person or in a thread, sorted by key."""

    async def put_note(self, owner: NoteOwner, note: Note, most: int) -> bool:
        """Write a note, over the one with the same key; False when there are `most` others already."""

    async def forget_notes(self, owner: NoteOwner, key: str = "") -> int:
        """Delete one note, without a key all of them; how many there were."""

    # ---- looking

    async def origin(self, turn_id: str) -> Origin | None:
        """The thread of a turn, whom it answers, and for which tenant; a subagent's is that of the session
        at the top."""

    async def session(self, session_id: str) -> SessionView | None: ...

    async def session_of(self, key: ThreadKey) -> SessionView | None: ...

    async def own_thread(self, key: ThreadKey, actor: Actor) -> ThreadKey | None:
        """The newest thread of `key`'s conversation whose last turn was this person's, among the
        200 newest; None for none."""

    async def seen(self, channel: str, limit: int = 500) -> list[tuple[ThreadKey, str]]:
        """For each conversation of a channel (at most `limit`; `thread` is empty) the newest message
        id that was ever stored, where ids are numbers of the same length that rise with time."""

    async def sessions(self, limit: int = 100) -> list[SessionView]:
        """Most recently used first; none of subagents."""

    async def log(self, session_id: str, start: int = 0, limit: int = -1) -> list[Message]:
        """The session's messages from `start` on, at most `limit` (below 0: all)."""

    async def notices(self, session_id: str) -> list[Notice]:
        """What the gateway itself said in the session's thread, oldest first."""

    async def queued_texts(self, session_id: str) -> list[tuple[str, str]]:
        """(message id, text) of what waits, in order."""

    async def turn_of_message(self, session_id: str, message_id: str) -> str | None:
        """The turn that took a message, None while it waits."""

    async def turn(self, turn_id: str) -> TurnView | None: ...

    async def turns_after(self, session_id: str, number: int, limit: int = 50) -> list[TurnView]:
        """Turns whose number is at least `number`, in order."""

    async def calls(self, session_id: str) -> list[CallRecord]:
        """Every call of the session, for views."""

    async def audit_lines(self, limit: int = 100, before: int | None = None) -> list[AuditLine]:
        """Newest first."""

    async def audit_after(self, seq: int, limit: int = 500) -> list[AuditLine]:
        """Oldest first, those after this sequence number."""

    async def check_audit(self, seq: int, previous: str, limit: int = 500) -> Checked:
        """Whether the next lines, after the one with this number and hash, fit together."""

    async def verify_audit(self) -> int | None:
        """The sequence number of the first line that does not fit its hash; None: all fit."""
