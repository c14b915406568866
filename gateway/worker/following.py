"""One run in a worker, followed frame by frame: what it writes, tells and asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, assert_never

import msgspec

from gateway.approvals import KnownCall, Pending, Resolution, TurnCheckpoint, settle
from gateway.bucket import Circumstances, sort_calls
from gateway.budget import Spent
from gateway.errors import GatewayError, IntelligenceUnavailable, RequiredToolServerDown, StoreError
from gateway.events import BudgetCheck
from gateway.journal import CallRow, Ready
from gateway.messages import ToolResult
from gateway.options import LoopOptions, LoopSession, RunResult
from gateway.tools.base import Tool, ToolOutput
from gateway.tools.lanes import LaneContext, call_tool
from gateway.tools.system import ASK_USER, READ_RESULT
from gateway.tools.waiting import ChildWaits, NeedsAnswer, Waits
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
    LaneCall,
    Marker,
    RemoteTool,
    Reply,
    Request,
    Results,
    Revoked,
    RunTool,
    Started,
    Told,
    ToolEnded,
)

STOP_SECONDS = 5.0  # that a worker gets to end its run by itself, after a stop and after the deadline
NOT_ALLOWED = "not run: nobody has allowed this call"


class WorkerLost(GatewayError):
    """The worker ended before its run did. `stopped`: we ended it, because the turn was over for it."""

    def __init__(self, why: str = "", *, stopped: bool = False) -> None:
        self.why, self.stopped = why, stopped
        super().__init__(why)

    def __str__(self) -> str:
        return f"the process of the agent ended before its work did: {self.why or 'nobody knows why'}"


class Following:
    """What the gateway does for one run, and what it knows of it. `known`: of the open step's calls."""

    def __init__(self, session: LoopSession, job: Job, options: LoopOptions) -> None:
        self._session, self._job, self._options = session, job, options
        self._agent = session.agent
        self.known: dict[str, KnownCall] = dict(job.known)
        self._running: dict[str, bool] = {}  # call id -> whether it may simply run again
        self._begun: dict[str, Ready] = {}
        self._steps, self._tokens = job.spent.steps, job.spent.tokens
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._lost: BaseException | None = None
        self._began = options.clock.monotonic()
        self._asked = 0.0  # seconds that a person at hand took
        self._asking_since: float | None = None
        self._settled: dict[str, KnownCall] = {}
        self._offered = remote_tools(session, job.own)

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
            self._spawn(0, worker.send(Cancel(reason=self._options.cancel.reason)), worker)
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
                    return _outcome(frame, self._looked_at_again(frame.pending))
                case Failed():
                    raise _error(frame)
                case Abandoned() | Appended() | Told() | Done():
                    self._hear(frame, worker)
                case _:
                    self._spawn(frame.id, self._answer(frame, worker), worker)

    def _hear(self, frame: Abandoned | Appended | Told | Done, worker: Worker) -> None:
        """What needs no reply, in the order in which it was told."""
        match frame:
            case Appended():
                self._session.transcript.append(frame.message)
            case Told():
                if isinstance(frame.event, BudgetCheck):
                    self._tokens = max(self._tokens, frame.event.tokens)
                self._options.on_event(frame.event)
            case Done():
                self._done(frame, worker)
            case Abandoned():
                if frame.id in self._tasks:
                    self._tasks[frame.id].cancel()

    def _looked_at_again(self, checkpoint: TurnCheckpoint | None) -> TurnCheckpoint | None:
        """What waits, as our own gate and tools see it: who may decide, and what the card shows."""
        if checkpoint is None:
            return None
        calls = {call.id: call for call in self._session.transcript.open_calls()}
        outstanding = {}
        for pending_id, pending in checkpoint.outstanding.items():
            call = calls.get(pending.call_id)
            ours: list[Pending] = []
            if call is not None and not pending.session and not (pending.question and pending.question.about):
                ours = sort_calls([call], {}, self._circumstances(self._tool(pending.tool))).waiting
            for one in ours:
                pending = msgspec.structs.replace(one, pending_id=pending_id, code=pending.code)
            outstanding[pending_id] = pending
        return msgspec.structs.replace(checkpoint, outstanding=outstanding)

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

    def _spawn(self, number: int, work: Coroutine[Any, Any, None], worker: Worker) -> None:
        async def run() -> None:
            try:
                await work
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
                self._count_step(request)
                await journal.assistant(request.message, request.rows)
                self.known = {row.call.id: _known(row) for row in request.rows}
            case Started():
                lane = [self._ready(call) for call in request.lane]
                await journal.started(lane)
                for ready in lane:
                    self._begun[ready.call.id] = ready
                    self._running[ready.call.id] = ready.tool.safe or ready.tool.idempotent
                    self.known[ready.call.id] = _started(ready)
            case Results():
                said = list(await journal.results(request.message, final=request.final))
                self.known, self._running, self._begun = {}, {}, {}
                await self._tell_changed_tools(worker)
                reply = Reply(id=request.id, messages=said)
            case Marker():
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

    def _count_step(self, request: Assistant) -> None:
        self._steps += 1
        if self._steps > self._agent.max_steps:
            raise WorkerLost("it went on after its last step")
        strange = {row.call.name for row in request.rows if row.state == "allowed"} - self._names
        if strange:
            raise WorkerLost(f"it would use tools that it was not given: {', '.join(sorted(strange))}")

    @property
    def _names(self) -> set[str]:
        return {*self._job.own, *self._offered, ASK_USER.name, READ_RESULT.name}

    def _done(self, frame: Done, worker: Worker) -> None:
        try:
            self._options.journal.done(self._ready(frame.call), frame.result, frame.full)
        except StoreError as error:
            return self._failed(worker, error)
        call_id = frame.call.call.id
        self._running.pop(call_id, None)
        self.known[call_id] = KnownCall(state="done", result=frame.result)
        return None

    def _ready(self, call: LaneCall) -> Ready:
        return Ready(
            call=call.call,
            tool=self._tool(call.tool),
            args=call.args,
            args_hash=call.args_hash,
            note=call.note,
            approved=call.approved,
            redact=call.redact,
            grant=call.grant,
            said=call.said,
        )

    def _tool(self, name: str) -> Tool:
        tools = {tool.name: tool for tool in (ASK_USER, READ_RESULT, *self._agent.tools)} | self._offered
        if name not in tools:
            raise WorkerLost(f"it would use a tool that it was not given: {name}")
        return tools[name]

    # ---- tools that stay here

    async def _tell_changed_tools(self, worker: Worker) -> None:
        offered = remote_tools(self._session, self._job.own)
        if list(offered.values()) != list(self._offered.values()):
            self._offered = offered
            await worker.send(Catalogue(tools=[described(tool) for tool in offered.values()]))

    async def _run_tool(self, request: RunTool) -> ToolEnded:
        ready = self._begun.get(request.call_id)
        meant = ready is not None and (ready.tool.name, ready.args) == (request.tool, request.args)
        if ready is None or not meant or request.tool not in self._offered or not self._is_allowed(ready):
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
        if context.denied:
            return ToolEnded(denied=context.denied[0])
        return _told(ended)

    def _is_allowed(self, ready: Ready) -> bool:
        """What our own gate says, with what people have decided before this run or at hand during it."""
        call_id, at = ready.call.id, self._circumstances(ready.tool)
        before = self._settled.get(call_id, self._job.known.get(call_id))
        known = {}
        if before is not None and before.state in ("allowed", "started"):
            known[call_id] = msgspec.structs.replace(before, state="allowed")
        allowed = sort_calls([ready.call], known, at).run
        return any(one.args == ready.args for one in allowed)

    def _circumstances(self, tool: Tool) -> Circumstances:
        options = self._options
        return Circumstances(
            agent=self._agent,
            tools={tool.name: tool},
            gate=options.gate or self._agent.gate,
            scope=options.scope,
            session_id=options.session_id,
            now=options.clock.now(),
        )

    # ---- a person at hand

    async def _decide(self, request: Decide) -> list[Resolution | None]:
        approver, clock = self._options.approver, self._options.clock
        if approver is None:
            return [None] * len(request.pendings)
        self._asking_since = began = clock.monotonic()
        try:
            if request.together:
                said = dict(await approver.decide_together(request.pendings))
            else:
                said = {p.pending_id: await approver.decide(p) for p in request.pendings}
        finally:
            self._asked += clock.monotonic() - began
            self._asking_since = None
        for pending in request.pendings:
            self._settle(pending, said.get(pending.pending_id))
        return [said.get(pending.pending_id) for pending in request.pendings]

    def _settle(self, pending: Pending, resolution: Resolution | None) -> None:
        if resolution is not None:
            self._settled[pending.call_id] = settle(pending, resolution, self._options.approver_name)


def remote_tools(session: LoopSession, own: frozenset[str]) -> dict[str, Tool]:
    """The agent's tools that do not go along with a worker, by name."""
    foreign = [tool for source in reversed(session.agent.sources) for tool in source.tools()]
    kept = [tool for tool in session.agent.tools if tool.name not in own]
    return {tool.name: tool for tool in (*foreign, *kept) if tool.name not in own}


def described(tool: Tool) -> RemoteTool:
    """What a worker is told of a tool that stays here."""
    return RemoteTool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        safe=tool.safe,
        idempotent=tool.idempotent,
        timeout=tool.timeout,
        secret=tool.secret,
        system=tool.system,
        unasked=tool.unasked,
    )


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


def _outcome(frame: Finished, pending: TurnCheckpoint | None) -> RunResult:
    return RunResult(
        outcome=frame.outcome,
        text=frame.text,
        pending=pending,
        spent=frame.spent,
        usage=frame.usage,
        detail=frame.detail,
    )


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
