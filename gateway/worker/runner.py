"""Runs the loop of a session in a worker process: the gateway's side.

The worker runs the same loop; what it does to the world goes through here. Its journal is our
journal, tools that stay with the gateway run here, and before one does, our own gate looks again:
what a worker claims to be allowed is not enough.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from gateway.agent import Agent
from gateway.log import redact
from gateway.loop import resume_agent
from gateway.messages import Message
from gateway.options import LoopOptions, LoopSession, RunResult
from gateway.worker.claims import WorkerLost
from gateway.worker.following import Following
from gateway.worker.process import Worker, ending
from gateway.worker.wire import Job, run_frame

IDLE_SECONDS = 60.0  # that a worker waits for the next message of its session
MOST_IDLE = 8
_log = logging.getLogger(__name__)


def _limits(agent: Agent) -> str:
    """What the process was kept to, for whoever wonders why it ended."""
    memory = "" if agent.memory is None else f"memory = {agent.memory // 1_000_000} MB"
    cpu = "" if agent.cpu is None else f"cpu = {agent.cpu:g} s"
    said = ", ".join(limit for limit in (memory, cpu) if limit)
    return f"; its limits: {said}" if said else ""


class ProcessRunner:
    """See gateway.options.LoopRunner. `job` says what a worker needs for one run."""

    def __init__(self, job: Callable[[LoopSession, Message | None, LoopOptions], Job]) -> None:
        self._job = job
        self._idle: OrderedDict[str, tuple[Worker, asyncio.TimerHandle]] = OrderedDict()
        self._leaving: set[asyncio.Task[None]] = set()

    async def __call__(
        self, session: LoopSession, message: Message | None, options: LoopOptions
    ) -> RunResult:
        """One run in a worker. Raises WorkerLost when it ended in the middle, and nothing was running
        whose outcome is not known."""
        before = len(session.transcript)
        job = self._job(session, message, options)
        for _ in range(2):
            following = Following(session, job, options)
            try:
                end = await self._run(following, job, options)
            except WorkerLost as lost:
                _log.warning("worker of session %s: %s", options.session_id, redact(str(lost)))
                if lost.stopped:
                    return await self._wound_up(session, following, options, before)
                if not following.doubtful or session.agent.on_unknown != "ask":
                    raise
                # The loop asks a person about the call that was cut off, before anything else runs.
                job = replace(
                    job,
                    message=None,
                    log=tuple(session.transcript.log),
                    known=following.known,
                    spent=following.spent,
                )
            else:
                return replace(end, messages=tuple(session.transcript.log[before:]))
        raise WorkerLost("the worker ended twice in the same step")

    async def _run(self, following: Following, job: Job, options: LoopOptions) -> RunResult:
        worker = await self._hire(options.session_id, job)
        try:
            await worker.send(run_frame(job))
            end = await following.until_the_end(worker)
        except BaseException as error:
            code = await asyncio.shield(worker.end())
            if isinstance(error, WorkerLost) and not error.why:
                error.why = f"it ended with {ending(code)}{_limits(job.agent)}"
                _log.warning("the last that worker %d said: %s", worker.pid, " | ".join(worker.last_words))
            raise
        # A limit on time is for one run; after a stop a call may not have ended yet, and would speak later.
        if job.agent.cpu is not None or options.cancel.cancelled:
            self._dismiss(worker)
        else:
            self._keep(options.session_id, worker)
        return end

    @staticmethod
    async def _wound_up(
        session: LoopSession, following: Following, options: LoopOptions, before: int
    ) -> RunResult:
        """The worker was ended because it did not stop by itself. Nothing runs any more: the turn is over
        or out of time, so the loop only answers the calls that are open."""
        options = replace(options, known=following.known, spent=following.spent)
        end = await resume_agent(session.agent, session.model, session.transcript, (), options=options)
        return replace(end, messages=tuple(session.transcript.log[before:]))

    # ---- workers

    async def _hire(self, session_id: str, job: Job) -> Worker:
        """The one that has worked for this session before, or a new one."""
        if session_id in self._idle:
            worker, timer = self._idle.pop(session_id)
            timer.cancel()
            if worker.alive:
                return worker
            await worker.end()
        return await Worker.start(job.agent.env)

    def _keep(self, session_id: str, worker: Worker) -> None:
        timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._too_idle, session_id)
        self._idle[session_id] = (worker, timer)
        if len(self._idle) > MOST_IDLE:
            oldest, _ = next(iter(self._idle.items()))
            self._too_idle(oldest)

    def _too_idle(self, session_id: str) -> None:
        worker, timer = self._idle.pop(session_id)
        timer.cancel()
        self._dismiss(worker)

    def _dismiss(self, worker: Worker) -> None:
        async def end() -> None:
            await worker.end()

        task = asyncio.get_running_loop().create_task(end())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        """End those that wait. Those at work end with their runs."""
        while self._idle:
            self._too_idle(next(iter(self._idle)))
        if self._leaving:
            await asyncio.wait(set(self._leaving))
