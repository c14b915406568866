"""One run in a worker, followed frame by frame: what it writes, tells and asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import assert_never

import msgspec

from gateway.approvals import KnownCall, Resolution
from gateway.budget import Spent
from gateway.errors import GatewayError, IntelligenceUnavailable, RequiredToolServerDown, StoreError
from gateway.events import BudgetCheck
from gateway.journal import CallRow, Ready
from gateway.messages import Message, ToolResult
from gateway.options import LoopOptions, LoopSession, RunResult
from gateway.outcome import Outcome
from gateway.tools.base import ToolOutput
from gateway.tools.lanes import LaneContext, call_tool
from gateway.tools.waiting import ChildWaits, NeedsAnswer, Waits
from gateway.worker.claims import NOT_ALLOWED, Claims, WorkerLost, described, remote_tools
from gateway.worker.frames import BrokenFrame
from gateway.worker.process import Worker
from gateway.worker.wire import (
    Abandoned,
    Appended,
    Assistant,
    Cancel,
    Catalogue,
    Decide,
    Done,
    Failed,
    Finished,
    FullResult,
    Job,
    Marker,
    Reply,
    Request,
    Results,
    Revoked,
    RunTool,
    Started,
    Told,
    ToolEnded,
)

MOST_REQUESTS = 1_000  # that wait for their reply
STOP_SECONDS = 5.0  # that a worker gets to end its run by itself, after a stop and after the deadline


class Following:
    """What the gateway does for one run, and what it knows of it. `known`: of the open step's calls."""

    def __init__(self, session: LoopSession, job: Job, options: LoopOptions) -> None:
        self._session, self._job, self._options = session, job, options
        self._agent = session.agent
        self.known: dict[str, KnownCall] = dict(job.known)
        self._running: dict[str, bool] = {}  # call id -> whether it may simply run again
        self._steps, self._tokens = job.spent.steps, job.spent.tokens
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._lost: BaseException | None = None
        self._began = options.clock.monotonic()
        self._asked = 0.0  # seconds that a person at hand took
        self._asking_since: float | None = None
        self._last_id = 0
        self._claims = Claims(session, job, options)

    @property
    def doubtful(self) -> bool:
        """Whether a call was running of which nobody knows whether it took effect."""
        return not all(self._running.values())

    @property
    def spent(self) -> Spent:
        """What the run has used up so far, as far as it was told."""
        now = self._options.clock.monotonic()
        asked = self._asked + (0.0 if self._asking_since is None else now - self._asking_since)
        seconds = self._job.spent.seconds + now - self._began - asked
        return msgspec.structs.replace(
            self._job.spent, steps=self._steps, tokens=self._tokens, seconds=max(0.0, seconds)
        )

    async def until_the_end(self, worker: Worker) -> RunResult:
        """Serve the worker until its run has an outcome. Raises WorkerLost, or what the run raised."""
        loop = asyncio.get_running_loop()
        stopping: list[asyncio.TimerHandle] = []

        def stop() -> None:
            self._spawn(0, partial(worker.send, Cancel(reason=self._options.cancel.reason)), worker)
            stopping.append(loop.call_later(STOP_SECONDS, self._put_down, worker, "did not stop"))

        unhook = self._options.cancel.hook(stop)
        watch = loop.create_task(self._watch_deadline(worker))
        try:
            return await self._serve(worker)
        finally:
            unhook()
            for timer in stopping:
                timer.cancel()
            tasks = {watch, *self._tasks.values()}
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _serve(self, worker: Worker) -> RunResult:
        while True:
            try:
                frame = await worker.receive()
            except BrokenFrame as error:
                raise self._lost or WorkerLost(str(error)) from error
            match frame:
                case None:
                    raise self._lost or WorkerLost
                case Finished():
                    return self._outcome(frame)
                case Failed():
                    raise _error(frame)
                case Abandoned() | Appended() | Told() | Done():
                    self._hear(frame, worker)
                case _:
                    if frame.id <= self._last_id:
                        raise WorkerLost("it uses a number twice")
                    if len(self._tasks) >= MOST_REQUESTS:
                        raise WorkerLost(f"it asks for more than {MOST_REQUESTS} things at once")
                    self._last_id = frame.id
                    self._spawn(frame.id, partial(self._answer, frame, worker), worker)

    def _hear(self, frame: Abandoned | Appended | Told | Done, worker: Worker) -> None:
        """What needs no reply, in the order in which it was told."""
        match frame:
            case Appended():
                self._claims.appended(frame.message)
            case Told():
                if isinstance(frame.event, BudgetCheck):
                    self._count_tokens(frame.event)
                self._options.on_event(frame.event)
            case Done():
                self._done(frame, worker)
            case Abandoned():
                if frame.id in self._tasks:
                    self._tasks[frame.id].cancel()

    def _outcome(self, frame: Finished) -> RunResult:
        waits = frame.outcome in (Outcome.PENDING_APPROVAL, Outcome.PENDING_QUESTION)
        if waits != (frame.pending is not None):
            raise WorkerLost("its outcome and what waits do not fit")
        spent = self._at_least(frame.spent)
        pending = self._claims.checkpoint(frame.pending)
        if pending is not None:
            pending = msgspec.structs.replace(pending, spent=spent)
        return RunResult(
            outcome=frame.outcome,
            text=frame.text,
            pending=pending,
            spent=spent,
            usage=frame.usage,
            detail=frame.detail,
        )

    def _at_least(self, claimed: Spent) -> Spent:
        """What the run says to have used up, but not less than was seen here."""
        before = self._job.spent
        return msgspec.structs.replace(
            claimed,
            steps=max(claimed.steps, self._steps),
            tokens=max(claimed.tokens, self._tokens),
            seconds=max(claimed.seconds, before.seconds),
            output_cuts=max(claimed.output_cuts, before.output_cuts),
            compactions=max(claimed.compactions, before.compactions),
        )

    # ---- ends that we bring about

    def _put_down(self, worker: Worker, why: str) -> None:
        """Its run is over, it does not know it: the frames end with it."""
        self._lost = self._lost or WorkerLost(f"it {why} and was ended", stopped=True)
        worker.kill()

    def _failed(self, worker: Worker, error: BaseException) -> None:
        self._lost = self._lost or error
        worker.kill()

    async def _watch_deadline(self, worker: Worker) -> None:
        """The loop over there keeps the deadline by itself; this is for one that cannot any more."""
        if self._agent.deadline is None:
            return
        while (left := self._agent.deadline + STOP_SECONDS - self.spent.seconds) > 0:
            await self._options.clock.sleep(left)
        self._put_down(worker, "went on after its deadline")

    def _spawn(self, number: int, work: Callable[[], Awaitable[None]], worker: Worker) -> None:
        async def run() -> None:
            try:
                await work()
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # the store's, above all: the run cannot go on here
                self._failed(worker, error)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks[number] = task
        task.add_done_callback(lambda done: self._forget(number, done))

    def _forget(self, number: int, task: asyncio.Task[None]) -> None:
        if self._tasks.get(number) is task:
            del self._tasks[number]

    # ---- what it asks for

    async def _answer(self, request: Request, worker: Worker) -> None:
        journal = self._options.journal
        reply = Reply(id=request.id)
        match request:
            case Assistant():
                await self._step(request)
            case Started():
                await self._begin(request)
            case Results():
                reply = Reply(id=request.id, messages=await self._end_step(request, worker))
            case Marker():
                self._claims.marker(request.message)
                await journal.marker(request.message)
            case FullResult():
                reply = Reply(id=request.id, text=await journal.full_result(request.call_id))
            case Revoked():
                reply = Reply(id=request.id, revoked=list(await journal.revoked(request.grants)))
            case RunTool():
                reply = Reply(id=request.id, ended=await self._run_tool(request))
            case Decide():
                reply = Reply(id=request.id, said=await self._decide(request))
            case _:
                assert_never(request)
        await worker.send(reply)

    async def _step(self, request: Assistant) -> None:
        self._count_step()
        rows = self._claims.rows(request.message, request.rows)
        await self._options.journal.assistant(request.message, rows)
        self.known = {row.call.id: _known(row) for row in rows}

    async def _begin(self, request: Started) -> None:
        lane = self._claims.begins(request.lane)
        if lane:
            await self._options.journal.started(lane)
        for ready in lane:
            self._running[ready.call.id] = ready.tool.safe or ready.tool.idempotent
            self.known[ready.call.id] = _started(ready)

    async def _end_step(self, request: Results, worker: Worker) -> list[Message]:
        self._claims.written(request.message)
        said = list(await self._options.journal.results(request.message, final=request.final))
        self.known, self._running = {}, {}
        self._claims.step_ended()
        self._claims.heard(said)
        await self._tell_changed_tools(worker)
        return said

    def _count_step(self) -> None:
        self._steps += 1
        if self._steps > self._agent.max_steps:
            raise WorkerLost("it went on after its last step")

    def _count_tokens(self, check: BudgetCheck) -> None:
        self._tokens, most = max(self._tokens, check.tokens), self._agent.max_tokens
        if most is not None and self._tokens >= most:
            raise WorkerLost("it went on after its last token")

    def _done(self, frame: Done, worker: Worker) -> None:
        ready = self._claims.done(frame)
        try:
            self._options.journal.done(ready, frame.result, frame.full)
        except StoreError as error:
            return self._failed(worker, error)
        self._running.pop(ready.call.id, None)
        self.known[ready.call.id] = KnownCall(state="done", result=frame.result)
        return None

    # ---- tools that stay here

    async def _tell_changed_tools(self, worker: Worker) -> None:
        offered = remote_tools(self._session, self._job.own)
        if list(offered.values()) != list(self._claims.offered.values()):
            self._claims.offered = offered
            await worker.send(Catalogue(tools=[described(tool) for tool in offered.values()]))

    async def _run_tool(self, request: RunTool) -> ToolEnded:
        ready = self._claims.may_run(request)
        if ready is None:
            return ToolEnded(output=ToolOutput(text=NOT_ALLOWED, is_error=True))
        options = self._options
        context = LaneContext(
            session_id=options.session_id,
            turn_id=options.turn_id,
            journal=options.journal,
            emit=options.on_event,
            cancel=options.cancel,
            left=lambda: None,
            subagents=options.subagents,
        )
        ended = await call_tool(ready, context)
        self._claims.ran(ready, ended)
        if context.denied:
            return ToolEnded(denied=context.denied[0])
        return _told(ended)

    # ---- a person at hand

    async def _decide(self, request: Decide) -> list[Resolution | None]:
        approver, clock = self._options.approver, self._options.clock
        if approver is None:
            return [None] * len(request.pendings)
        pendings = [self._claims.pending(pending) for pending in request.pendings]
        self._asking_since = began = clock.monotonic()
        try:
            if request.together:
                said = dict(await approver.decide_together(pendings))
            else:
                said = {p.pending_id: await approver.decide(p) for p in pendings}
        finally:
            self._asked += clock.monotonic() - began
            self._asking_since = None
        for pending in pendings:
            if (resolution := said.get(pending.pending_id)) is not None:
                self._claims.settle(pending, resolution)
        return [said.get(pending.pending_id) for pending in pendings]


def _known(row: CallRow) -> KnownCall:
    match row.state:
        case "allowed":
            return KnownCall(state="allowed", args=row.args, args_hash=row.args_hash)
        case "waiting":
            return KnownCall(state="undecided")
        case "refused":
            result = row.result or ToolResult(tool_use_id=row.call.id, content=NOT_ALLOWED, is_error=True)
            return KnownCall(state="done", result=result)
        case _:
            assert_never(row.state)


def _started(ready: Ready) -> KnownCall:
    return KnownCall(state="started", args=dict(ready.args), args_hash=ready.args_hash, said=dict(ready.said))


def _told(ended: ToolOutput | Waits) -> ToolEnded:
    match ended:
        case ToolOutput():
            return ToolEnded(output=ended)
        case NeedsAnswer(question=question, key=key):
            return ToolEnded(question=question, key=key)
        case ChildWaits(session_id=child, pendings=pendings):
            return ToolEnded(child=child, pendings=pendings)
        case _:
            return ToolEnded(
                output=ToolOutput(text=f"the call waits for something unknown: {ended}", is_error=True)
            )


def _error(frame: Failed) -> GatewayError:
    """The run's own error, as its class here; any other was the worker's end."""
    match frame.error:
        case "IntelligenceUnavailable":
            return IntelligenceUnavailable(frame.message)
        case "RequiredToolServerDown":
            return RequiredToolServerDown(frame.message)
        case _:
            return WorkerLost(f"{frame.error}: {frame.message}")
