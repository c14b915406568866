"""What a worker says of calls, held against what this side knows and decides itself.

A worker runs foreign code. It may be wrong about anything it tells: whether a call is allowed, with which
arguments, what somebody has answered, what came of a call that runs here, who may decide. So nothing of
that is taken over where this side has its own word for it; where a claim cannot be true, the run ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from gateway.approvals import KnownCall, Pending, Resolution, TurnCheckpoint, settle
from gateway.bucket import Buckets, Circumstances, asked_by_call, sort_calls
from gateway.errors import GatewayError
from gateway.journal import CallRow, Ready
from gateway.markers import MARKERS
from gateway.messages import File, Image, Message, ToolResult, ToolUse
from gateway.options import LoopOptions, LoopSession
from gateway.tools.base import Tool, ToolOutput, full_name
from gateway.tools.system import ASK_USER, READ_RESULT, capped
from gateway.tools.waiting import ChildWaits, NeedsAnswer, Waits
from gateway.worker.wire import Done, Job, LaneCall, RemoteTool, RunTool

NOT_ALLOWED = "not run: nobody has allowed this call"
_ID = re.compile(r"p_[A-Za-z0-9_-]{1,64}", re.ASCII)
_CODE = re.compile(r"[a-z0-9]{1,16}", re.ASCII)


class WorkerLost(GatewayError):
    """The worker ended before its run did. `stopped`: we ended it, because the turn was over for it."""

    def __init__(self, why: str = "", *, stopped: bool = False) -> None:
        self.why, self.stopped = why, stopped
        super().__init__(why)

    def __str__(self) -> str:
        return f"the process of the agent ended before its work did: {self.why or 'nobody knows why'}"


class Claims:
    """What is known here of the calls of one run. Every method raises WorkerLost for what cannot be true."""

    def __init__(self, session: LoopSession, job: Job, options: LoopOptions) -> None:
        self._session, self._job, self._options = session, job, options
        self.offered = remote_tools(session, job.own)
        self._words = [job.message] if job.message is not None else []
        self._settled: dict[str, KnownCall] = {}  # by a person at hand
        self._begun: dict[str, Ready] = {}
        self._ran: set[str] = set()  # calls that have run here, or run now
        self._ended: dict[str, ToolOutput] = {}
        self._waits: dict[str, Waits] = {}
        self._results: dict[str, ToolResult] = {}

    # ---- tools and calls

    def tools(self) -> dict[str, Tool]:
        """All that the agent has, those of the worker's own included."""
        own = {tool.name: tool for tool in (ASK_USER, READ_RESULT, *self._session.agent.tools)}
        return own | self.offered

    def tool(self, name: str) -> Tool:
        """The tool of this name."""
        tools = self.tools()
        if name not in tools:
            raise WorkerLost(f"it would use a tool that it was not given: {name}")
        return tools[name]

    def _call(self, call_id: str) -> ToolUse:
        """A call of the open step, as the model has written it."""
        for call in self._session.transcript.open_calls():
            if call.id == call_id:
                return call
        raise WorkerLost(f"it speaks of a call that is not open: {call_id[:80]}")

    def _before(self, call_id: str) -> KnownCall | None:
        """What people had said about a call before this run, or at hand during it."""
        return self._settled.get(call_id, self._job.known.get(call_id))

    def _sorted(self, call: ToolUse) -> Buckets:
        """The call as our own gate sees it, with what people have said about it."""
        before = self._before(call.id)
        return sort_calls([call], {} if before is None else {call.id: before}, self._circumstances())

    def _circumstances(self) -> Circumstances:
        options = self._options
        return Circumstances(
            agent=self._session.agent,
            tools=self.tools(),
            gate=options.gate or self._session.agent.gate,
            scope=options.scope,
            session_id=options.session_id,
            now=options.clock.now(),
        )

    # ---- the log

    def appended(self, message: Message) -> None:
        """An entry of the log: its model speaks, calls are answered, and nobody else says anything."""
        transcript = self._session.transcript
        _check_parts(message)
        if message.kind in MARKERS:
            _check_marker(message, len(transcript))
        elif message.role == "assistant":
            ids = [call.id for call in message.calls]
            if len(set(ids)) < len(ids) or not transcript.call_ids.isdisjoint(ids):
                raise WorkerLost("it uses the id of an earlier call again")
            if message.kind or any(isinstance(block, ToolResult) for block in message.content):
                raise WorkerLost("it puts results into its model's mouth")
        elif message in self._words:
            self._words.remove(message)
        else:
            self._answers(message)
        transcript.append(message)

    def heard(self, said: Iterable[Message]) -> None:
        """What people have said meanwhile; the worker appends it."""
        self._words += said

    def marker(self, message: Message) -> None:
        """A marker goes into the journal before it goes into the log."""
        if message.kind not in MARKERS:
            raise WorkerLost("it shortens the conversation with what is no marker")
        _check_marker(message, len(self._session.transcript))

    def written(self, message: Message) -> None:
        """A step or its answer goes into the journal: it stands at the end of the log already."""
        if self._session.transcript.log[-1:] != [message]:
            raise WorkerLost("it writes down something else than it says")

    def _answers(self, message: Message) -> None:
        """A message that answers the open step, and says nothing else."""
        results = message.results
        if message.role != "user" or message.kind or len(results) < len(message.content) or not results:
            raise WorkerLost("it puts words into somebody's mouth")
        calls = {call.id: call for call in self._session.transcript.open_calls()}
        if [result.tool_use_id for result in results] != list(calls):
            raise WorkerLost("it answers other calls than those that are open")
        self._check_results({result.tool_use_id: result for result in results}, calls)

    def _check_results(self, results: Mapping[str, ToolResult], calls: Mapping[str, ToolUse]) -> None:
        """Results of calls. Of those that run here it may say that one failed or did not run, and nothing
        else than what came of it."""
        for call_id, result in results.items():
            if call_id not in calls:
                raise WorkerLost(f"it speaks of a call that is not open: {call_id[:80]}")
            before = self._before(call_id)
            known = self._results.get(call_id) or (before.result if before is not None else None)
            foreign = full_name(calls[call_id].name, self.tools()) not in self._job.own | {READ_RESULT.name}
            if foreign and not result.is_error and result != known:
                raise WorkerLost(f"it tells a result that the call {call_id[:80]} did not have")

    # ---- calls that run

    def rows(self, message: Message, rows: Sequence[CallRow]) -> list[CallRow]:
        """The rows of a new step, as they may be written down: what is allowed is what our own gate says."""
        self.written(message)
        calls = {call.id: call for call in message.calls}
        if [row.call.id for row in rows] != list(calls):
            raise WorkerLost("it writes down other calls than those that are open")
        return [self._row(calls[row.call.id], row) for row in rows]

    def _row(self, call: ToolUse, row: CallRow) -> CallRow:
        name = full_name(call.name, self.tools())
        row = replace(row, call=msgspec.structs.replace(call, name=name))
        if name not in self.offered:
            if row.state == "allowed":
                self.tool(name)
            return row
        tool = self.offered[name]
        row = replace(row, repeatable=tool.safe or tool.idempotent)
        ours = next(iter(self._sorted(call).run), None)
        if row.state != "allowed" or (ours is not None and ours.args == row.args):
            return row
        return replace(row, state="waiting")  # whoever takes it up looks again

    def begins(self, lane: Sequence[LaneCall]) -> list[Ready]:
        """Those of a lane that may begin, with our own word for why. A call that runs here and is not
        allowed is left out; it gets no further than `may_run`."""
        found = []
        for one in lane:
            call, tool = self._call(one.call.id), self.tool(one.tool)
            if full_name(call.name, self.tools()) != tool.name:
                raise WorkerLost(f"it would use a tool that it was not given: {one.tool}")
            ours = next((r for r in self._sorted(call).run if r.args == one.args), None)
            if ours is None and tool.name in self.offered:
                continue
            ready = self._begun[call.id] = ours or ready_of(one, call, tool)
            found.append(ready)
        return found

    def may_run(self, request: RunTool) -> Ready | None:
        """The call that is to run here now; None when nobody has allowed it, or it has run already."""
        ready = self._begun.get(request.call_id)
        if ready is None or (ready.tool.name, ready.args) != (request.tool, request.args):
            return None
        if request.tool not in self.offered or request.call_id in self._ran:
            return None
        self._ran.add(request.call_id)
        return ready

    def ran(self, ready: Ready, ended: ToolOutput | Waits) -> None:
        """What came of it. A call that waits has not run yet."""
        if isinstance(ended, Waits):
            self._waits[ready.call.id] = ended
            self._ran.discard(ready.call.id)
        else:
            self._ended[ready.call.id] = ended

    def done(self, frame: Done) -> Ready:
        """A call has its result: which one it was."""
        call = self._call(frame.call.call.id)
        if frame.result.tool_use_id != call.id:
            raise WorkerLost("it tells a result of another call")
        tool = self.tool(full_name(call.name, self.tools()))
        ready = self._begun.get(call.id) or ready_of(frame.call, call, tool)
        _check_parts(Message(role="user", content=(frame.result,)))
        if tool.name in self.offered and not frame.result.is_error:
            ended = self._ended.get(call.id)
            if ended is None or not _is_result(frame, ready, ended):
                raise WorkerLost(f"it tells a result that the call {call.id[:80]} did not have")
        self._results[call.id] = frame.result
        return ready

    def step_ended(self) -> None:
        """The step is answered."""
        self._begun, self._ended, self._waits = {}, {}, {}

    # ---- what waits

    def settle(self, pending: Pending, resolution: Resolution) -> None:
        """A person at hand has spoken."""
        known, before = (
            settle(pending, resolution, self._options.approver_name),
            self._before(pending.call_id),
        )
        if known.said and before is not None:  # one question more of a call that may run
            said = {**before.said, **known.said}
            known = msgspec.structs.replace(known, said=said, note=before.note)
        self._settled[pending.call_id] = known

    def checkpoint(self, checkpoint: TurnCheckpoint | None) -> TurnCheckpoint | None:
        """Where the run ends: nothing is open, or what waits, as we see it."""
        calls = {call.id: call for call in self._session.transcript.open_calls()}
        if (checkpoint is None) == bool(calls):
            raise WorkerLost("it ended in the middle of a step" if calls else "nothing of what it says waits")
        if checkpoint is None:
            return None
        for pending_id, pending in checkpoint.outstanding.items():
            if pending_id != pending.pending_id:
                raise WorkerLost("it mixes up what waits")
        if not checkpoint.outstanding:
            raise WorkerLost("it waits for nothing")
        self._check_results(checkpoint.results_so_far, calls)
        outstanding = {name: self.pending(one) for name, one in checkpoint.outstanding.items()}
        return msgspec.structs.replace(checkpoint, outstanding=outstanding, decided={})

    def pending(self, claimed: Pending) -> Pending:
        """What waits, as our own gate and tools see it: who may decide, and what the card shows."""
        call = self._call(claimed.call_id)
        if claimed.session:
            return self._below(claimed)
        before = self._before(call.id)
        if before is not None and before.pending is not None:
            if before.pending.pending_id != claimed.pending_id:
                raise WorkerLost("it asks twice about the same call")
            return before.pending
        if full_name(call.name, self.tools()) != claimed.tool:
            raise WorkerLost("it asks about another call than the one that is open")
        if not _ID.fullmatch(claimed.pending_id) or not _CODE.fullmatch(claimed.code):
            raise WorkerLost("it makes up ids of its own")
        ours = self._asked(call, claimed)
        return msgspec.structs.replace(ours, pending_id=claimed.pending_id, code=claimed.code)

    def _below(self, claimed: Pending) -> Pending:
        """What a subagent's call waits for: only what was heard of it here."""
        match self._waits.get(claimed.call_id):
            case ChildWaits(session_id=child, pendings=pendings):
                for one in pendings:
                    ours = msgspec.structs.replace(one, call_id=claimed.call_id, session=one.session or child)
                    if ours.pending_id == claimed.pending_id:
                        return ours
        raise WorkerLost("it waits for what is none of its business")

    def _asked(self, call: ToolUse, claimed: Pending) -> Pending:
        at = self._circumstances()
        if claimed.question is not None and claimed.question.about == "call":
            begun = self._begun.get(call.id)
            if begun is None:
                raise WorkerLost("a call asks that has not begun")
            if begun.tool.name not in self.offered:  # the worker's own tool, and its own words
                return asked_by_call(begun, claimed.question, claimed.question.key, at)
            match self._waits.get(call.id):
                case NeedsAnswer(question=question, key=key):
                    return asked_by_call(begun, question, key, at)
            raise WorkerLost("it asks what the tool has not asked")
        buckets = self._sorted(call)
        if buckets.waiting:
            return buckets.waiting[0]
        if not buckets.run:
            raise WorkerLost("it asks about a call that nobody may allow")
        # Our own gate lets it through: what anybody says to this opens nothing.
        allowed = buckets.run[0]
        return Pending(
            pending_id=claimed.pending_id,
            kind="approval",
            call_id=call.id,
            tool=allowed.tool.name,
            args=allowed.args,
            args_hash=allowed.args_hash,
            code=claimed.code,
            secret=tuple(sorted(allowed.tool.secret)),
            schema=allowed.tool.input_schema,
            requested_at=at.now,
        )


def ready_of(claimed: LaneCall, call: ToolUse, tool: Tool) -> Ready:
    """A call of the worker's own tools. That somebody had allowed it is for our own gate to say."""
    return Ready(call=call, tool=tool, args=claimed.args, args_hash=claimed.args_hash, redact=claimed.redact)


def _is_result(frame: Done, ready: Ready, ended: ToolOutput) -> bool:
    """Whether this is what the call came to, as the loop writes it down."""
    text = f"{ready.note}\n{ended.text}" if ready.note else ended.text
    short = capped(ready.call.id, text)
    expected = ToolResult(tool_use_id=ready.call.id, content=short, parts=ended.parts)
    full = None if short == text else text
    return not ended.is_error and (frame.result, frame.full) == (expected, full)


def _check_parts(message: Message) -> None:
    """Files are named by paths below the data folder, and come with results only."""
    parts = [part for result in message.results for part in result.parts]
    if message.role == "assistant" and any(isinstance(block, Image | File) for block in message.content):
        raise WorkerLost("it puts files into its model's mouth")
    for part in parts:
        steps = part.path.split("/")
        if not part.path or part.path.startswith("/") or "\\" in part.path or "\0" in part.path:
            raise WorkerLost("it names a file outside of the data folder")
        if part.source or any(step in ("", ".", "..") for step in steps):
            raise WorkerLost("it names a file outside of the data folder")


def _check_marker(message: Message, length: int) -> None:
    """Raises WorkerLost for one that leads nowhere."""
    inside = all(0 <= place < message.covers for place in message.keeps)
    if not 0 <= message.covers <= length or not inside or message.calls or message.results:
        raise WorkerLost("it shortens the conversation where there is nothing")


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
