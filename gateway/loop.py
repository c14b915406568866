"""The loop: Reason -> Act -> Observe, two doors, one room.

`run_agent` begins with a person's message, `resume_agent` with the results that a stopped step
was waiting for. Both build one frozen LoopInput and enter `_run_loop`, which reads from top to
bottom. The loop does no I/O of its own and keeps nothing between calls: models, tools and the
journal are handed in, and what must be durable goes through the journal before the loop goes on.

The order of events and the table of stops are in docs/loop.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gateway.agent import Agent
from gateway.approvals import KnownCall, TurnCheckpoint
from gateway.cancel import Stopped
from gateway.history import Transcript, repaired, resumable
from gateway.messages import Message, ToolResult, user
from gateway.options import Approver, LoopInput, LoopOptions, RunResult
from gateway.outcome import Outcome
from gateway.providers.base import Model
from gateway.run import Run

__all__ = [
    "Approver",
    "KnownCall",
    "LoopInput",
    "LoopOptions",
    "RunResult",
    "TurnCheckpoint",
    "resume_agent",
    "run_agent",
]


async def run_agent(
    agent: Agent,
    model: Model,
    user_message: str | Message,
    history: Sequence[Message] | Transcript = (),
    *,
    options: LoopOptions | None = None,
) -> RunResult:
    """Run one turn. A `Transcript` is extended in place and trusted to be valid; any other
    history is copied and mended first. Raises IntelligenceUnavailable when no model answers."""
    transcript = history if isinstance(history, Transcript) else Transcript(repaired(history))
    before = len(transcript)
    transcript.append(user(user_message) if isinstance(user_message, str) else user_message)
    return await _enter(agent, model, transcript, before, None, {}, options or LoopOptions())


async def resume_agent(
    agent: Agent,
    model: Model,
    history: Sequence[Message] | Transcript,
    resolution: Sequence[ToolResult],
    *,
    options: LoopOptions | None = None,
) -> RunResult:
    """Go on with a stopped step. `history` ends with the assistant message that made the calls;
    `resolution` answers all of them, unless `options.known` says how to go on with the others.
    Raises ValueError when a call is answered by neither, or when nothing is open."""
    options = options or LoopOptions()
    transcript = history if isinstance(history, Transcript) else Transcript(resumable(history))
    calls = transcript.open_calls()
    known = {
        **options.known,
        **{r.tool_use_id: KnownCall(state="done", result=r) for r in resolution},
    }
    if not calls:
        if known:
            raise ValueError("the history does not end with calls that wait for results")
        return await _enter(agent, model, transcript, len(transcript), None, {}, options)
    missing = [call.id for call in calls if call.id not in known]
    if missing and not options.known:
        raise ValueError(f"the resolution does not answer {', '.join(missing)}")
    batch = next(m for m in reversed(transcript.log) if m.role == "assistant")
    return await _enter(agent, model, transcript, len(transcript), batch, known, options)


async def _enter(
    agent: Agent,
    model: Model,
    transcript: Transcript,
    before: int,
    batch: Message | None,
    known: Mapping[str, KnownCall],
    options: LoopOptions,
) -> RunResult:
    loop_input = LoopInput(
        agent=agent, model=model, transcript=transcript, batch=batch, known=known, options=options
    )
    return await _run_loop(loop_input, before)


async def _run_loop(given: LoopInput, before: int) -> RunResult:
    run = Run(given, before)
    batch, known = given.batch, given.known
    while True:
        if batch is None:
            if stop := run.guard():
                return run.stopped(*stop)
            try:
                reply = await run.reason()
            except Stopped as stop_now:
                return run.stopped(Outcome(stop_now.why))
            if isinstance(reply, RunResult):
                return reply
            if not reply.calls:
                return run.done(reply)
            batch, known = reply, {}
            run.transcript.append(batch)

        buckets = await run.bucket(batch, known)
        results = await run.act(batch.calls, buckets)
        if buckets.waiting and run.closed_by(buckets) is None and not run.cancelled:
            return run.pending(buckets, results)

        await run.observe(batch.calls, buckets, results)
        if run.closing is not None:
            return run.stopped(*run.closing)
        if (reason := run.closed_by(buckets)) is not None:
            return run.denied(reason)
        batch = None
