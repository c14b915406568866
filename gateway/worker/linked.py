"""The worker's side of the pipes, and the loop's ports over it: journal, transcript, tools, approver."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence

from gateway.approvals import Pending, Resolution
from gateway.cancel import CancelToken
from gateway.errors import ToolError
from gateway.history import Transcript
from gateway.journal import CallRow, Ready
from gateway.messages import Json, Message, ToolResult
from gateway.tools.base import CallContext, Tool, ToolOutput
from gateway.tools.waiting import ChildWaits, DeniedInside, NeedsAnswer
from gateway.worker.frames import Unpacker, packed, write_all
from gateway.worker.wire import (
    Abandoned,
    Appended,
    Assistant,
    Cancel,
    Catalogue,
    Decide,
    Done,
    FromGateway,
    FromWorker,
    FullResult,
    Job,
    LaneCall,
    Marker,
    RemoteTool,
    Reply,
    Request,
    Results,
    Revoked,
    Run,
    RunTool,
    Started,
    encoded,
    from_gateway,
    job_of,
)

PIECE = 256 * 1024  # bytes of one read


class Link:
    """The pipes to the gateway. Frames are read by a thread, so that a tool that blocks the loop
    cannot keep this process alive when the gateway has gone."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._loop = asyncio.get_running_loop()
        self._numbers, self._waiting = 0, dict[int, asyncio.Future[Reply]]()
        self.jobs: asyncio.Queue[Job] = asyncio.Queue()
        self.cancel = CancelToken()
        self.catalogue: Callable[[Sequence[RemoteTool]], None] = lambda tools: None
        threading.Thread(target=self._read, name="frames", daemon=True).start()

    def tell(self, frame: FromWorker) -> None:
        """Say it; nothing comes back."""
        write_all(self._writing, packed(encoded(frame)))

    async def ask(self, make: Callable[[int], Request]) -> Reply:
        """Ask, and wait for the reply."""
        self._numbers += 1
        number = self._numbers
        reply = self._waiting[number] = self._loop.create_future()
        try:
            self.tell(make(number))
            answer: Reply = await reply
            return answer
        except asyncio.CancelledError:
            self.tell(Abandoned(id=number))
            raise
        finally:
            del self._waiting[number]

    def _read(self) -> None:
        frames = Unpacker()
        while piece := os.read(self._reading, PIECE):
            for body in frames.feed(piece):
                self._loop.call_soon_threadsafe(self._arrived, from_gateway(body))
        end_everything()

    def _arrived(self, frame: FromGateway) -> None:
        match frame:
            case Reply():
                waiting = self._waiting.get(frame.id)
                if waiting is not None and not waiting.done():
                    waiting.set_result(frame)
            case Cancel():
                self.cancel.cancel(frame.reason)
            case Catalogue():
                self.catalogue(frame.tools)
            case Run():
                self.cancel = CancelToken()
                self.jobs.put_nowait(job_of(frame))


def end_everything() -> None:
    """This process and all that its tools have started."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


# ---- the loop's ports, over the link


class LinkedTranscript(Transcript):
    """Tells the gateway of every new entry, in its place among events and journal."""

    __slots__ = ("_link",)

    def __init__(self, log: Sequence[Message], link: Link) -> None:
        self._link: Link | None = None
        super().__init__(log)
        self._link = link

    def append(self, message: Message) -> None:
        super().append(message)
        if self._link is not None:
            self._link.tell(Appended(message=message))


def _lane_call(ready: Ready) -> LaneCall:
    return LaneCall(
        call=ready.call,
        tool=ready.tool.name,
        args=ready.args,
        args_hash=ready.args_hash,
        note=ready.note,
        approved=ready.approved,
        redact=ready.redact,
        grant=ready.grant,
        said=dict(ready.said),
    )


class LinkedJournal:
    """See gateway.journal.Journal: the gateway's is behind it."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def assistant(self, message: Message, calls: Sequence[CallRow]) -> None:
        await self._link.ask(lambda number: Assistant(id=number, message=message, rows=list(calls)))

    async def started(self, lane: Sequence[Ready]) -> None:
        await self._link.ask(lambda number: Started(id=number, lane=list(map(_lane_call, lane))))

    def done(self, ready: Ready, result: ToolResult, full: str | None) -> None:
        self._link.tell(Done(call=_lane_call(ready), result=result, full=full))

    async def results(self, message: Message, *, final: bool = False) -> Sequence[Message]:
        reply = await self._link.ask(lambda number: Results(id=number, message=message, final=final))
        return reply.messages

    async def marker(self, message: Message) -> None:
        await self._link.ask(lambda number: Marker(id=number, message=message))

    async def full_result(self, call_id: str) -> str | None:
        return (await self._link.ask(lambda number: FullResult(id=number, call_id=call_id))).text

    async def revoked(self, grants: Sequence[str]) -> Sequence[str]:
        return (await self._link.ask(lambda number: Revoked(id=number, grants=list(grants)))).revoked


class LinkedApprover:
    """The person at hand is at the gateway's terminal."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def decide(self, pending: Pending) -> Resolution | None:
        return (await self._ask([pending], together=False))[0]

    async def decide_together(self, pendings: Sequence[Pending]) -> Mapping[str, Resolution | None]:
        said = await self._ask(list(pendings), together=True)
        return {p.pending_id: one for p, one in zip(pendings, said, strict=True) if one is not None}

    async def _ask(self, pendings: list[Pending], *, together: bool) -> list[Resolution | None]:
        reply = await self._link.ask(lambda number: Decide(id=number, pendings=pendings, together=together))
        return reply.said or [None] * len(pendings)


class RemoteTools:
    """See gateway.tools.base.ToolSource: tools that run at the gateway."""

    def __init__(self, link: Link, tools: Sequence[RemoteTool]) -> None:
        self._link = link
        self._tools: tuple[Tool, ...] = ()
        self.change(tools)

    def tools(self) -> tuple[Tool, ...]:
        return self._tools

    def change(self, tools: Sequence[RemoteTool]) -> None:
        """These there are from now on."""
        self._tools = tuple(map(self._tool, tools))

    def _tool(self, remote: RemoteTool) -> Tool:
        async def run(args: Json, context: CallContext) -> ToolOutput:
            return await self._run(remote.name, args, context)

        return Tool(
            name=remote.name,
            description=remote.description,
            input_schema=remote.input_schema,
            handler=run,
            safe=remote.safe,
            idempotent=remote.idempotent,
            timeout=remote.timeout,
            secret=remote.secret,
            system=remote.system,  # type: ignore[arg-type]
            unasked=remote.unasked,
        )

    async def _run(self, name: str, args: Json, context: CallContext) -> ToolOutput:
        reply = await self._link.ask(
            lambda number: RunTool(id=number, call_id=context.call_id, tool=name, args=args)
        )
        ended = reply.ended
        if ended is None:
            raise ToolError(f"{name}: the gateway gave no result")
        if ended.denied is not None:
            raise DeniedInside(ended.denied)
        if ended.question is not None:
            raise NeedsAnswer(ended.question, ended.key)
        if ended.child:
            raise ChildWaits(ended.child, ended.pendings)
        return ended.output or ToolOutput(text="")
