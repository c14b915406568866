"""One running turn per session: claim, run, park, resume, recover.

Messages and decisions put work into rows; whoever claims a session does its work. A claim that
this process holds runs as one task. Nothing here is needed to survive: killed at any place, the
rows say what is left, and the next sweep of any process goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway import faults
from gateway.agent import Agent
from gateway.attachments import to_fetch
from gateway.cancel import CancelToken, Stopped
from gateway.children import Children
from gateway.clock import Clock
from gateway.errors import (
    ConfigError,
    GatewayError,
    IntelligenceUnavailable,
    LeaseLost,
    RequiredToolServerDown,
    StoreError,
)
from gateway.eventlog import EventLines
from gateway.events import Event, SessionStarted, TurnError
from gateway.gate import Scope
from gateway.history import Transcript, repaired
from gateway.knowledge import known_calls, new_pendings, own_grants, pendings_below
from gateway.letters import Letters
from gateway.log import redact
from gateway.messages import Message, ThreadKey
from gateway.notices import DRAINED
from gateway.options import Approver, LoopOptions, RunResult
from gateway.outcome import Outcome
from gateway.providers.base import Model
from gateway.roster import Roster, RunnerOf
from gateway.session import Session
from gateway.store.base import LEASE_SECONDS, Store
from gateway.store.rows import Accepted, Claim, Delivery, Ended, Incoming, Lease, Outgoing, Park
from gateway.turn_ends import broken_off, done_event, pending_event, turn_end, unstored, with_text
from gateway.turn_journal import TurnJournal

HOT_SESSIONS = 512  # transcripts kept in memory
ORPHAN_AFTER = 1.0  # seconds; no claim is on its way for so long
FETCH_SECONDS = 120.0  # for the files of one message
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPorts:
    """Where a turn's words go. `on_run`: a turn begins or goes on; calling what is handed over has
    its events stored soon, for those who watch (they are stored with the next write anyway).
    `on_event`: every event, before it is stored. `on_commit`: the session has something new to
    read. `on_deliveries`: outbox rows that are ours to send now. `prepare`: fetches the files of
    the messages that a turn begins with."""

    on_run: Callable[[Claim, Callable[[], None]], None] = lambda claim, store_events: None
    on_event: Callable[[Claim, Event], None] = lambda claim, event: None
    on_commit: Callable[[str], None] = lambda session_id: None
    on_deliveries: Callable[[Sequence[Delivery]], None] = lambda rows: None
    prepare: Callable[[ThreadKey, Sequence[Message]], Awaitable[None]] | None = None


class Turns:
    """The runner of turns of one process."""

    def __init__(
        self,
        store: Store,
        agents: Mapping[str, Agent],
        model_of: Callable[[Agent], Model],
        clock: Clock,
        letters: Letters,
        *,
        ports: TurnPorts | None = None,
        environment: str = "production",
        approver: Approver | None = None,
        runner_of: RunnerOf | None = None,
        models: Collection[str] = (),
    ) -> None:
        self._store, self._agents, self._clock = store, agents, clock
        self._roster = Roster(agents, model_of, runner_of, models)
        self._letters, self._ports, self._environment = letters, ports or TurnPorts(), environment
        self._approver = approver
        self._hot: OrderedDict[str, Session] = OrderedDict()
        self._running: dict[str, tuple[asyncio.Task[RunResult | None], CancelToken]] = {}
        self._claiming: set[asyncio.Task[None]] = set()
        self._again: set[str] = set()
        self._orphans: dict[Lease, float] = {}
        self._interrupts = any(agent.busy == "interrupt" for agent in agents.values())
        self._draining = False
        self._renewed_at = 0.0

    # ---- work comes in

    async def accept(self, incoming: Incoming) -> Accepted:
        """Store a message and, when its session is free, begin its turn in the background."""
        faults.reach("inbox.before")
        faults.reach("lease.before")
        accepted = await self._store.accept(incoming, claim=not self._draining, have=self.in_memory)
        faults.reach("inbox.after")
        if accepted.claim is not None:
            faults.reach("lease.after")
            self.start(accepted.claim)
        elif accepted.outcome == "queued":
            await self._interrupt_if_wanted(incoming, accepted)
        return accepted

    async def _interrupt_if_wanted(self, incoming: Incoming, accepted: Accepted) -> None:
        if not self._interrupts or accepted.waiting_for:
            return
        session_id, running = accepted.session_id, self._running.get(accepted.session_id)
        view = await self._store.session(session_id)
        agent = self._agents.get(view.agent) if view is not None else None
        if view is None or agent is None or agent.busy != "interrupt":
            return
        # What runs is an earlier message's turn only while this one still waits.
        if await self._store.turn_of_message(session_id, incoming.message_id) is not None:
            return
        await self._store.stop(
            incoming.key,
            session_id,
            "a newer message",
            incoming.actor,
            self._clock.now(),
            turn_id=view.turn_id,
        )
        if running is not None:
            running[1].cancel("interrupted by a newer message")

    def wake(self, session_id: str) -> None:
        """Look at a session soon: something happened that may be work."""
        if self._draining:
            return
        if session_id in self._running:
            self._again.add(session_id)  # it may be past the point where it would have seen it
            return
        task = asyncio.get_running_loop().create_task(self._claim_and_start(session_id))
        self._claiming.add(task)
        task.add_done_callback(self._claiming.discard)
        task.add_done_callback(_report)

    async def _claim_and_start(self, session_id: str) -> None:
        if self._draining:
            return
        faults.reach("lease.before")
        faults.reach("resume.before")
        claim = await self._store.claim(session_id, self._clock.now(), have=self.in_memory)
        if claim is not None:
            faults.reach("lease.after")
            if claim.kind == "resume":
                faults.reach("resume.after")
            self.start(claim)

    def in_memory(self, session_id: str) -> int:
        """How many entries of the session's log are here, -1 for none at all."""
        session = self._hot.get(session_id)
        return -1 if session is None else len(session.transcript)

    @property
    def draining(self) -> bool:
        """Nothing new begins here any more."""
        return self._draining

    def start(self, claim: Claim) -> asyncio.Task[RunResult | None]:
        """Run a claim as a task of its own."""
        session_id, token = claim.lease.session_id, CancelToken()
        if claim.cancel:
            token.cancel(claim.cancel)
        task = asyncio.get_running_loop().create_task(self._run(claim, token))
        self._running[session_id] = (task, token)
        task.add_done_callback(lambda done: self._ended(session_id, done))
        return task

    def _ended(self, session_id: str, task: asyncio.Task[RunResult | None]) -> None:
        if self._running.get(session_id, (None,))[0] is task:
            del self._running[session_id]
            self._look_again(session_id)
        _report(task)

    def _look_again(self, session_id: str) -> None:
        if session_id in self._again:
            self._again.discard(session_id)
            self.wake(session_id)

    def cancel(self, session_id: str, reason: str) -> bool:
        """Stop what this process runs for the session; False when it runs nothing."""
        running = self._running.get(session_id)
        if running is None:
            return False
        running[1].cancel(reason)
        return True

    # ---- duties

    async def sweep_once(self) -> int:
        """Take up what dead or slow processes left and what nobody has started; how many."""
        now = self._clock.now()
        await self._store.reap(now)
        await self._let_go_of_orphans(now)
        sessions = [] if self._draining else await self._store.claimable(now)
        for session_id in sessions:
            self.wake(session_id)
        return len(sessions)

    async def _let_go_of_orphans(self, now: float) -> None:
        """A session that we hold and do not run: its turn was cut off by a store that failed, or
        the claim came back to nobody. Anybody may have it."""
        idle = [lease for lease in await self._store.held() if lease.session_id not in self._running]
        self._orphans = {lease: self._orphans.get(lease, now) for lease in idle}
        for lease, since in self._orphans.items():
            if now - since >= ORPHAN_AFTER:
                await self._store.release(lease)

    async def heartbeat_once(self) -> None:
        """Keep our leases, hear of stops that others asked for."""
        if not self._running:
            return
        now = self._clock.now()
        if now - self._renewed_at > LEASE_SECONDS / 3:
            self._renewed_at = now
            await self._store.renew(now)
        for session_id, reason in (await self._store.cancels()).items():
            self.cancel(session_id, reason)

    async def drain(self, seconds: float) -> None:
        """Start nothing new; let running turns end within `seconds`; give the rest back to be
        recovered, and tell their threads."""
        self._draining = True
        if self._claiming:
            await asyncio.wait(set(self._claiming))
        tasks = [task for task, _ in self._running.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        left = [task for task, _ in self._running.values()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=5.0)

    async def settled(self, session_id: str) -> None:
        """Wait until this process runs nothing for the session (it may still have work)."""
        while True:
            running = self._running.get(session_id)
            if running is not None:
                await asyncio.wait({running[0]})
            elif self._claiming:
                await asyncio.wait(set(self._claiming))
            else:
                return

    # ---- one turn

    async def _run(self, claim: Claim, token: CancelToken) -> RunResult | None:
        try:
            return await self._turn(claim, token)
        except BaseException as error:
            self._hot.pop(claim.lease.session_id, None)  # it may hold entries that were never stored
            if isinstance(error, LeaseLost):
                _log.warning("session %s is run by somebody else now", claim.lease.session_id)
                return None
            if isinstance(error, asyncio.CancelledError):
                await self._give_back(claim)
                return None
            raise

    async def _give_back(self, claim: Claim) -> None:
        """The process ends before the turn does."""
        await self._store.release(claim.lease)
        turn = await self._store.turn(claim.lease.turn_id)
        mute = bool(claim.parent) or not self._letters.posts(claim.key)
        if turn is None or turn.state != "running" or mute:
            return
        notice = Outgoing(
            key=claim.key, kind="notice", payload={"text": DRAINED}, session_id=claim.lease.session_id
        )
        self._ports.on_deliveries(await self._store.enqueue([notice], self._clock.now()))

    async def _turn(self, claim: Claim, token: CancelToken) -> RunResult:
        lease, events = claim.lease, EventLines(claim.run)
        try:
            agent = self._roster.agent_of(claim)
            runner = self._roster.runner_of(claim, agent)
            session = await self._warm(claim, agent)
        except ConfigError as error:  # trying again would not help
            return await self._crashed(claim, events, redact(str(error)), "ConfigError")

        def emit(event: Event) -> None:
            events.add(event, len(session.transcript))
            self._ports.on_event(claim, event)

        self._ports.on_run(claim, lambda: self._store_events(claim, events))
        emit(SessionStarted(session_id=lease.session_id, turn_id=lease.turn_id, agent=agent.name))
        options = self._options(claim, session, token, events, emit)
        try:
            await self._fetch_files(claim, session, token)
            result = await runner(session, claim.message if claim.kind == "message" else None, options)
        except (LeaseLost, asyncio.CancelledError, StoreError):
            raise
        except (IntelligenceUnavailable, RequiredToolServerDown) as error:
            return await self._crashed(claim, events, redact(str(error)), type(error).__name__)
        except Exception as error:  # the turn's last line: nothing may leave a session stuck
            _log.exception("turn %s failed", lease.turn_id)
            detail = redact(f"{type(error).__name__}: {error}") if isinstance(error, GatewayError) else ""
            return await self._crashed(claim, events, detail, type(error).__name__)
        await self._close(claim, session, result, events, emit)
        if result.pending is None and isinstance(options.subagents, Children):
            options.subagents.let_go()
        return result

    def _store_events(self, claim: Claim, events: EventLines) -> None:
        """Somebody watches: do not let the events wait for the next write."""
        lines = events.take_whole()
        if not lines:
            return
        try:
            written = self._store.note_events(claim.lease, lines)
        except StoreError as error:  # the turn's own next write fails as well, and is heard
            _log.debug("events were not stored ahead: %s", redact(str(error)))
        else:
            written.add_done_callback(lambda _: self._committed(claim))

    async def _fetch_files(self, claim: Claim, session: Session, token: CancelToken) -> None:
        """Have the files of what was said last at hand; a turn does not fail for one of them."""
        said = [claim.message] if claim.message is not None else session.transcript.log[-1:]
        if self._ports.prepare is None or next(to_fetch(said), None) is None:
            return
        try:
            async with token.within(FETCH_SECONDS):
                await self._ports.prepare(claim.key, said)
        except Stopped as stopped:
            _log.warning("the files of turn %s were not all fetched: %s", claim.lease.turn_id, stopped)

    async def _warm(self, claim: Claim, agent: Agent) -> Session:
        """The session with its log in memory: kept from the last turn, or read once."""
        session_id = claim.lease.session_id
        known = claim.log_length - (1 if claim.kind == "message" else 0)
        session = self._hot.get(session_id)
        if session is None or len(session.transcript) != known or session.agent is not agent:
            log = claim.log if claim.log is not None else (await self._store.log(session_id))[:known]
            mended = repaired(log) if claim.kind == "message" else list(log)
            transcript = Transcript(mended if len(mended) == known else log)
            session = self._roster.session(agent, transcript)
            self._hot[session_id] = session
            while len(self._hot) > HOT_SESSIONS:
                self._hot.popitem(last=False)
        self._hot.move_to_end(session_id)
        session.model = self._roster.model(agent, claim.model)
        return session

    def _options(
        self,
        claim: Claim,
        session: Session,
        token: CancelToken,
        events: EventLines,
        emit: Callable[[Event], None],
    ) -> LoopOptions:
        lease, agent = claim.lease, session.agent
        journal = TurnJournal(
            self._store,
            lease,
            self._clock,
            events,
            lambda: self._committed(claim),
            steer=agent.busy == "steer",
        )
        gate = replace(agent.gate, grants=own_grants(claim)) if claim.grants else agent.gate
        children = Children(self._store, self._clock, self, self._agents, claim, token)
        return LoopOptions(
            journal=journal,
            on_event=emit,
            clock=self._clock,
            cancel=token,
            approver=self._approver,
            gate=gate,
            scope=Scope(tenant=claim.tenant, environment=self._environment, agent=agent.name),
            session_id=lease.session_id,
            turn_id=lease.turn_id,
            spent=claim.spent,
            known=known_calls(claim.calls, claim.decisions),
            subagents=children if agent.subagents else None,
            summary_model=session.summary_model,
        )

    # ---- ends

    async def _close(
        self,
        claim: Claim,
        session: Session,
        result: RunResult,
        events: EventLines,
        emit: Callable[[Event], None],
    ) -> None:
        length, added = len(session.transcript), await self._added(claim, session, result)
        if result.pending is not None:
            ids = new_pendings(result.pending, claim.decisions)
            waiting = result.pending.outstanding
            new = self._letters.asked(claim, [waiting[pending_id] for pending_id in ids])
            for pending in (*new, *pendings_below(result.pending, claim.told)):
                emit(pending_event(pending))
            emit(done_event(claim, result))
            outgoing = self._letters.at_a_stop(claim, result, new, length, added)
            end = turn_end(result, (), events, outgoing)
            faults.reach("stop.before")
            ended = await self._store.park(
                claim.lease,
                Park(end=end, checkpoint=result.pending, new_pendings=tuple(new)),
                self._clock.now(),
            )
            faults.reach("stop.after")
        else:
            emit(done_event(claim, result))
            outgoing = self._letters.at_the_end(claim, result, length, added)
            end = turn_end(result, unstored(result), events, outgoing)
            faults.reach("final.before")
            ended = await self._store.finish(claim.lease, end, self._clock.now())
            faults.reach("final.after")
        self._after(claim, with_text(ended, result.text))

    async def _added(self, claim: Claim, session: Session, result: RunResult) -> Sequence[Message]:
        """What the turn has put into the log, in a process that died as well."""
        view = await self._store.turn(claim.lease.turn_id) if claim.kind == "recover" else None
        return result.messages if view is None else session.transcript.log[view.first_seq :]

    async def _crashed(self, claim: Claim, events: EventLines, detail: str, error: str) -> RunResult:
        """The loop could not go on. The log is left valid, with all that is known of the step that was open,
        so that the next message goes on from there; the person is told."""
        detail = detail or "an unexpected error; the log of the gateway has it"
        result = RunResult(outcome=Outcome.CRASHED, detail=detail, spent=claim.spent)
        self._hot.pop(claim.lease.session_id, None)

        def emit(event: Event) -> None:
            events.add(event, claim.log_length)
            self._ports.on_event(claim, event)

        emit(TurnError(error=error, message=detail))
        emit(done_event(claim, result, error))
        log = await self._store.log(claim.lease.session_id)
        open_calls = Transcript(log).open_calls()
        rows = await self._store.calls(claim.lease.session_id) if open_calls else ()
        messages = broken_off(open_calls, rows)
        view = await self._store.turn(claim.lease.turn_id)
        added = [*log[view.first_seq :], *messages] if view is not None else messages
        outgoing = self._letters.at_the_end(claim, result, claim.log_length, added)
        ended = await self._store.finish(
            claim.lease, turn_end(result, messages, events, outgoing), self._clock.now()
        )
        self._after(claim, ended)
        return result

    def _committed(self, claim: Claim) -> None:
        """Something new can be read: in the session, and where people see what works below theirs."""
        self._ports.on_commit(claim.lease.session_id)
        if claim.root:
            self._ports.on_commit(claim.root)

    def _after(self, claim: Claim, ended: Ended) -> None:
        session_id = claim.lease.session_id
        # Somebody's next message may have begun a new turn already: only our own entry goes.
        if (running := self._running.get(session_id)) and running[0] is asyncio.current_task():
            del self._running[session_id]
        self._committed(claim)
        for woken in ended.wakes:
            self.wake(woken)
        if ended.deliveries:
            self._ports.on_deliveries(ended.deliveries)
        if ended.more:
            self._again.add(session_id)
        self._look_again(session_id)


def _report(task: asyncio.Task[RunResult | None] | asyncio.Task[None]) -> None:
    """A turn that failed in the store is left for the next sweep; say so."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a turn was cut off and will be taken up again: %s", redact(repr(error)))
