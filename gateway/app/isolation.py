"""What a worker process needs of the configuration for one run of one agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gateway.agent import Agent
from gateway.config import Config
from gateway.config.agents import module_tools
from gateway.messages import Message
from gateway.options import LoopOptions, LoopRunner, LoopSession
from gateway.worker.claims import described, remote_tools
from gateway.worker.runner import ProcessRunner
from gateway.worker.wire import Job


class Isolation:
    """Agent -> who runs its loop where it is a subagent; None: this process."""

    def __init__(self, config: Config, agents: Mapping[str, Agent]) -> None:
        self._config = config
        self._own = {
            name: frozenset(tool.name for tool in module_tools(config.agents[name].tools, config.folder))
            for name, agent in agents.items()
            if agent.isolation == "process"
        }
        self._runner = ProcessRunner(self._job)

    def __call__(self, agent: Agent) -> LoopRunner | None:
        return self._runner if agent.isolation == "process" else None

    def _job(self, session: LoopSession, message: Message | None, options: LoopOptions) -> Job:
        agent, config = session.agent, self._config
        left = {tool.name for tool in agent.tools}
        own = frozenset(name for name in self._own[agent.name] if name in left)
        gate = options.gate or agent.gate
        names = {agent.model, *agent.failover, *([agent.summary_model] if agent.summary_model else [])}
        return Job(
            agent=replace(agent, tools=(), sources=()),
            references=config.agents[agent.name].tools,
            folder=config.folder,
            own=own,
            remote=tuple(described(tool) for tool in remote_tools(session, own).values()),
            models={name: config.models[name] for name in sorted(names)},
            data_dir=config.gateway.data_dir,
            log=tuple(session.transcript.log),
            message=message,
            grants=gate.grants,
            scope=options.scope,
            session_id=options.session_id,
            turn_id=options.turn_id,
            spent=options.spent,
            known=options.known,
            approver=options.approver is not None,
            approver_name=options.approver_name,
        )

    async def close(self) -> None:
        """End the workers that wait for more."""
        await self._runner.close()
