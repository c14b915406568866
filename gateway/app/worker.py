"""`python -m gateway.app.worker`: the loop of one agent in a process of its own. See gateway.worker.

Standard output belongs to the frames; what tools print goes to standard error. When the gateway is
gone, its end of the pipe is closed, and everything here ends with it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from gateway.agent import Agent
from gateway.clock import SystemClock
from gateway.errors import GatewayError
from gateway.events import Event, LoopEvent
from gateway.log import redact, register_secret, setup_logging
from gateway.loop import resume_agent, run_agent
from gateway.options import LoopOptions, RunResult
from gateway.providers.base import Model
from gateway.tools.base import Tool
from gateway.worker.linked import Link, LinkedApprover, LinkedJournal, LinkedTranscript, RemoteTools
from gateway.worker.wire import Failed, Finished, Job, Told


class Workbench:
    """Puts the parts of jobs together. What the agent may not use besides memory and time is set before
    anything of its own is loaded."""

    def __init__(self) -> None:
        self._tools: dict[tuple[tuple[str, ...], Path], list[Tool]] = {}
        self._models: Callable[[Agent], Model] | None = None
        self._limited = False

    def tools(self, job: Job) -> tuple[Tool, ...]:
        """Those of the agent's own that it may use."""
        from gateway.config.agents import module_tools

        if not self._limited:
            self._limited = True
            _limit(job.agent)
        place = (job.references, job.folder)
        if place not in self._tools:
            self._tools[place] = module_tools(job.references, job.folder)
        return tuple(tool for tool in self._tools[place] if tool.name in job.own)

    def model(self, job: Job, name: str) -> Model:
        """This model, and those that take over. The configuration does not change while a gateway runs."""
        from gateway.app.build import models_of

        if self._models is None:
            for section in job.models.values():
                register_secret(str(section.api_key or ""))
            self._models = models_of(job.models, job.data_dir, SystemClock())
        return self._models(replace(job.agent, model=name))


def _limit(agent: Agent) -> None:
    """Caps of the operating system, before anything of the agent's own is loaded."""
    if agent.memory is None and agent.cpu is None:
        return
    import resource

    if agent.memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (agent.memory, agent.memory))
    if agent.cpu is not None:
        seconds = max(1, round(agent.cpu))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


class Jobs:
    """Does one job after the other; parts that several share are made once."""

    def __init__(self, link: Link, workbench: Workbench) -> None:
        self._link, self._workbench = link, workbench

    async def serve(self) -> None:
        """Until the gateway closes the pipe, which ends the process."""
        while True:
            job = await self._link.jobs.get()
            try:
                end = await self._run(job)
            except Exception as error:  # whatever it was, the gateway has to hear of it
                logging.getLogger(__name__).exception("the run failed")
                told = str(error) if isinstance(error, GatewayError) else repr(error)
                if isinstance(error, MemoryError):
                    told = "it needed more memory than `memory` of the agent allows"
                self._link.tell(Failed(error=type(error).__name__, message=redact(told)))
            else:
                self._link.tell(_finished(end))

    async def _run(self, job: Job) -> RunResult:
        tools, model = self._workbench.tools(job), self._workbench.model(job, job.agent.model)
        summary = job.agent.summary_model
        remote = RemoteTools(self._link, job.remote)
        self._link.catalogue = remote.change
        agent = replace(job.agent, tools=tools, sources=(remote,))
        transcript = LinkedTranscript(job.log, self._link)
        options = LoopOptions(
            journal=LinkedJournal(self._link),
            on_event=self._tell_event,
            clock=SystemClock(),
            cancel=self._link.cancel,
            approver=LinkedApprover(self._link) if job.approver else None,
            approver_name=job.approver_name,
            gate=replace(agent.gate, grants=job.grants),
            scope=job.scope,
            session_id=job.session_id,
            turn_id=job.turn_id,
            spent=job.spent,
            known=job.known,
            summary_model=self._workbench.model(job, summary) if summary is not None else None,
        )
        if job.message is None:
            return await resume_agent(agent, model, transcript, (), options=options)
        return await run_agent(agent, model, job.message, transcript, options=options)

    def _tell_event(self, event: Event) -> None:
        self._link.tell(Told(event=cast(LoopEvent, event)))  # the union is closed


def _finished(end: RunResult) -> Finished:
    return Finished(
        outcome=end.outcome,
        text=end.text,
        pending=end.pending,
        spent=end.spent,
        usage=end.usage,
        detail=end.detail,
    )


def _take_pipes() -> tuple[int, int]:
    """The pipes to the gateway, out of the way of everything that reads and prints."""
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return reading, writing


async def _main(reading: int, writing: int) -> None:
    link = Link(reading, writing)
    await Jobs(link, Workbench()).serve()


def main() -> None:
    """Serve the gateway until it is gone."""
    reading, writing = _take_pipes()
    setup_logging(logging.WARNING)
    asyncio.run(_main(reading, writing))


if __name__ == "__main__":
    main()
