"""Running calls: safe neighbours together, everything else alone and in order.

One failure is one error result. Every call has a time limit. A call that does not listen when it
is told to stop is abandoned: its late result is thrown away and the turn goes on.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from gateway.cancel import CancelToken
from gateway.errors import GatewayError, LeaseLost, StoreError, ToolError
from gateway.events import Event, SkillLoaded, ToolFinished, ToolStarted
from gateway.journal import Journal, Ready
from gateway.log import redact
from gateway.messages import ToolResult
from gateway.tools.base import CallContext, Subagents, ToolOutput
from gateway.tools.system import capped
from gateway.tools.waiting import DeniedInside, Waits
from gateway.verdicts import STOPPED

GRACE = 0.5  # seconds that a call gets to end after it was told to
_log = logging.getLogger(__name__)
_abandoned: set[asyncio.Task[ToolOutput | Waits]] = set()  # kept referenced until they end by themselves


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneContext:
    """What all calls of one step share. `left`: seconds until the turn's deadline, None: none. `whole`: the
    text of an earlier result.

    Filled in while they run: `waits`, the calls that cannot go on by themselves, which get no result;
    `denied`, what a subagent's call was refused with. With `until_denied` nothing begins after that."""

    session_id: str
    turn_id: str
    journal: Journal
    emit: Callable[[Event], None]
    cancel: CancelToken
    left: Callable[[], float | None]
    whole: Callable[[str], Awaitable[str | None]] | None = None
    subagents: Subagents | None = None
    until_denied: bool = True
    waits: dict[str, Waits] = field(default_factory=dict)
    denied: list[str] = field(default_factory=list)


async def run_lanes(ready: Sequence[Ready], context: LaneContext) -> dict[str, ToolResult]:
    """Run these calls; the results by call id, one for each that ended."""
    results: dict[str, ToolResult] = {}
    for safe, group in itertools.groupby(ready, key=lambda r: r.tool.safe):
        calls = list(group)
        for lane in [calls] if safe else [[call] for call in calls]:
            if context.denied and context.until_denied:
                return results
            results |= await _run_lane(lane, context)
    return results


async def _run_lane(lane: Sequence[Ready], context: LaneContext) -> dict[str, ToolResult]:
    if (output := _too_late(context)) is not None:
        return {ready.call.id: _finish(ready, output, 0.0, context) for ready in lane}
    await context.journal.started(lane)
    for ready in lane:
        shown = ready.tool.masked(ready.args, ready.redact)
        context.emit(ToolStarted(call_id=ready.call.id, tool=ready.tool.name, args=shown))
    runs = [_Run(ready, context) for ready in lane]
    try:
        ended = {run.ready.call.id: await run.result() for run in runs}
        context.waits.update({call_id: end for call_id, end in ended.items() if isinstance(end, Waits)})
        return {call_id: end for call_id, end in ended.items() if isinstance(end, ToolResult)}
    finally:
        for run in runs:
            run.let_go()


class _Run:
    """One running call: the tool's own task, and the future that ends our waiting for it."""

    __slots__ = ("_context", "_ended", "_limit", "_started", "_task", "_timer", "_unhook", "ready")

    def __init__(self, ready: Ready, context: LaneContext) -> None:
        loop = asyncio.get_running_loop()
        self.ready, self._context, self._started = ready, context, loop.time()
        left = context.left()
        self._limit = ready.tool.timeout if left is None else max(0.0, min(ready.tool.timeout, left))
        self._ended: asyncio.Future[ToolResult | Waits] = loop.create_future()
        self._task = loop.create_task(call_tool(ready, context))
        self._timer = loop.call_later(self._limit, self._give_up, self._too_slow())
        self._unhook = context.cancel.hook(lambda: self._give_up(_stopped()))
        self._task.add_done_callback(self._settle)

    async def result(self) -> ToolResult | Waits:
        return await self._ended

    def let_go(self) -> None:
        """Nobody waits any more: take the hooks off, and end the call if it still runs."""
        self._timer.cancel()
        self._unhook()
        if not self._ended.done():
            self._ended.cancel()
            self._task.cancel()
            _abandoned.add(self._task)

    def _settle(self, task: asyncio.Task[ToolOutput | Waits]) -> None:
        if self._ended.done():
            _forget(task)
        elif task.cancelled():
            self._end(ToolOutput(text="the tool cancelled itself", is_error=True))
        elif (error := task.exception()) is not None:
            self._ended.set_exception(error)
        elif isinstance(end := task.result(), Waits):
            self._ended.set_result(end)
        else:
            self._end(end)

    def _give_up(self, output: ToolOutput) -> None:
        """Tell the call to end; whether it listens or not, its result is ours from now on."""
        if self._ended.done():
            return
        self._task.remove_done_callback(self._settle)
        self._task.cancel()
        _abandoned.add(self._task)
        self._task.add_done_callback(_forget)
        loop = asyncio.get_running_loop()
        grace = loop.call_later(GRACE, self._end, output)

        def ended(_: asyncio.Task[ToolOutput | Waits]) -> None:
            grace.cancel()
            self._end(output)

        self._task.add_done_callback(ended)

    def _end(self, output: ToolOutput) -> None:
        if self._ended.done():
            return
        seconds = asyncio.get_running_loop().time() - self._started
        try:
            result = _finish(self.ready, output, seconds, self._context)
        except Exception as error:  # a journal or listener that fails must end the turn, not hang it
            self._ended.set_exception(error)
        else:
            self._ended.set_result(result)

    def _too_slow(self) -> ToolOutput:
        text = f"the call did not end within {self._limit:g} s and was given up"
        return ToolOutput(text=text, is_error=True)


def _forget(task: asyncio.Task[ToolOutput | Waits]) -> None:
    _abandoned.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.warning("an abandoned call failed later: %s", redact(repr(error)))


def _too_late(context: LaneContext) -> ToolOutput | None:
    """Why nothing more may begin, as every call's result; None when it may."""
    if context.cancel.cancelled:
        return _stopped()
    left = context.left()
    if left is not None and left <= 0:
        return ToolOutput(text="not run: the time for this turn is used up", is_error=True)
    return None


def _stopped() -> ToolOutput:
    return ToolOutput(text=STOPPED, is_error=True)


async def call_tool(ready: Ready, context: LaneContext) -> ToolOutput | Waits:
    """Run the tool; whatever it raises is its error result, except the store's own failures. What it
    has to wait for is handed on: a set future can be awaited without being raised."""
    call = CallContext(
        call_id=ready.call.id,
        session_id=context.session_id,
        turn_id=context.turn_id,
        idempotency_key=f"{context.session_id}:{ready.call.id}",
        full_result=context.whole or context.journal.full_result,
        said=ready.said,
        subagents=context.subagents,
    )
    try:
        outcome = await ready.tool.handler(ready.args, call)
    except (LeaseLost, StoreError):
        raise
    except Waits as waits:
        return waits
    except DeniedInside as denied:
        context.denied.append(str(denied))
        return ToolOutput(text=str(denied), is_error=True)
    except (ToolError, GatewayError) as error:
        return ToolOutput(text=redact(str(error)), is_error=True)
    except (Exception, SystemExit) as error:  # authors raise anything; the model reads what it was
        _log.warning("tool %s failed: %s", ready.tool.name, redact(repr(error)))
        return ToolOutput(text=redact(f"{type(error).__name__}: {error}"), is_error=True)
    return outcome if isinstance(outcome, ToolOutput) else ToolOutput(text=str(outcome))


def _finish(ready: Ready, output: ToolOutput, seconds: float, context: LaneContext) -> ToolResult:
    text = f"{ready.note}\n{output.text}" if ready.note else output.text
    short = capped(ready.call.id, text)
    result = ToolResult(
        tool_use_id=ready.call.id, content=short, is_error=output.is_error, parts=output.parts
    )
    context.journal.done(ready, result, None if short is text else text)
    if ready.tool.system == "skill" and not output.is_error and not ready.args.get("file"):
        context.emit(SkillLoaded(skill=str(ready.args["skill"])))
    context.emit(
        ToolFinished(
            call_id=ready.call.id,
            tool=ready.tool.name,
            content=short,
            is_error=output.is_error,
            seconds=round(seconds, 3),
        )
    )
    return result
