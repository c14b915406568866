"""Who carries out a claim: which agent, with which tools left, on which model, and where its loop runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from gateway.agent import Agent
from gateway.errors import ConfigError
from gateway.history import Transcript
from gateway.options import LoopRunner
from gateway.providers.base import Model
from gateway.session import Session, inline
from gateway.store.rows import Claim
from gateway.tools.subagent import narrowed

RunnerOf = Callable[[Agent], LoopRunner | None]
_log = logging.getLogger(__name__)


class Roster:
    """The configured agents. `runner_of`: runs the loops of those that want a process of their own.
    `models`: the names that may be chosen for a session."""

    def __init__(
        self,
        agents: Mapping[str, Agent],
        model_of: Callable[[Agent], Model],
        runner_of: RunnerOf | None,
        models: Collection[str] = (),
    ) -> None:
        self._agents, self._model_of, self._runner_of = agents, model_of, runner_of
        self._models = frozenset(models)
        self._narrowed: dict[tuple[str, tuple[tuple[str, ...], ...]], Agent] = {}

    def agent_of(self, claim: Claim) -> Agent:
        """The claim's agent, for a subagent with the tools that are left to it: the same object every time.
        Raises ConfigError."""
        agent = self._agents.get(claim.agent)
        if agent is None:
            raise ConfigError("agents", f"the agent {claim.agent!r} is no longer configured")
        if not claim.parent:
            return agent
        known = (agent.name, claim.only)
        if known not in self._narrowed:
            self._narrowed[known] = narrowed(agent, claim.only)
        return self._narrowed[known]

    def runner_of(self, claim: Claim, agent: Agent) -> LoopRunner:
        """Where the loop of this claim runs. Raises ConfigError."""
        if not claim.parent or agent.isolation == "inline":
            return inline
        runner = self._runner_of(agent) if self._runner_of is not None else None
        if runner is None:
            raise ConfigError(f"agents.{agent.name}.isolation", "processes cannot be started here")
        return runner

    def session(self, agent: Agent, transcript: Transcript) -> Session:
        """The agent's conversation so far, with its models. Raises ConfigError."""
        return Session(agent, self._model_of(agent), transcript, summary_model=self._summary_model(agent))

    def model(self, agent: Agent, chosen: str) -> Model:
        """The model that answers: the one chosen for the session, while it is configured, else the agent's
        own. What takes over when it does not answer stays the same. Raises ConfigError."""
        if chosen and chosen not in self._models:
            _log.warning("the model %r is no longer configured; %r answers", chosen, agent.model)
        if chosen not in self._models or chosen == agent.model:
            return self._model_of(agent)
        others = tuple(name for name in agent.failover if name != chosen)
        return self._model_of(replace(agent, model=chosen, failover=others))

    def _summary_model(self, agent: Agent) -> Model | None:
        if agent.summary_model is None:
            return None
        others = (agent.model, *agent.failover)
        return self._model_of(replace(agent, model=agent.summary_model, failover=others))
