"""The Agent value: who answers, with which tools, under which rules and budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gateway.errors import ConfigError
from gateway.gate import Gate
from gateway.tools.base import Tool, ToolSource

Busy = Literal["queue", "steer", "interrupt"]
WhilePending = Literal["queue", "supersede", "answer"]
Isolation = Literal["inline", "process"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subagent:
    """An agent that another one may call. `only`: globs of the tool names that are left to it; empty: all
    that it has."""

    agent: str
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent. `model` is the name of a configured model; `run_agent` is handed the model itself.
    `summary_model` names the one that sums up what was long ago; None: `model`.

    silence: the word with which it says nothing; None: every turn ends with words.

    sources: further tools, which may change between two steps. Of tools with the same name the agent's
    own win, then those of the first source.

    max_tokens, deadline: input plus output tokens, and seconds of work, of one turn; None: no limit.
    stall_after: identical replies (text and calls) in a row that end the turn as `stalled`.
    while_pending: what a message means while something waits for people. queue: it comes next; supersede:
    it closes what waits; answer: it answers an open question, whatever it says.
    loop_limit: how often one identical call may run in a turn before it ends as `loop_detected`.

    tool_description: what other agents' models read about it. isolation: where its loop runs as a subagent.
    With "process": env names the variables that the process gets besides the usual ones; memory (bytes) and
    cpu (seconds of one run) are its limits.
    subagents: agents that it may call, each as a tool of that name. max_depth: how deep the tree below a
    conversation of this agent may go; max_children: subagents of one turn at work at once;
    max_subagent_calls: of one turn, those below its subagents included; subagent_rate: of one conversation
    in a minute.
    """

    name: str
    system_prompt: str = ""
    model: str = "main"
    failover: tuple[str, ...] = ()
    summary_model: str | None = None
    silence: str | None = None
    tools: tuple[Tool, ...] = ()
    sources: tuple[ToolSource, ...] = ()
    gate: Gate = field(default_factory=Gate)
    busy: Busy = "queue"
    while_pending: WhilePending = "queue"
    on_denial: Literal["stop", "continue"] = "stop"
    on_unknown: Literal["ask", "report"] = "ask"
    max_steps: int = 25
    max_tokens: int | None = None
    deadline: float | None = None
    stall_after: int = 3
    loop_limit: int = 4
    context_window: int = 200_000
    max_output_tokens: int | None = None
    tool_description: str = ""
    subagents: tuple[Subagent, ...] = ()
    isolation: Isolation = "inline"
    env: tuple[str, ...] = ()
    memory: int | None = None
    cpu: float | None = None
    max_depth: int = 3
    max_children: int = 4
    max_subagent_calls: int = 20
    subagent_rate: int = 30

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for tool in self.tools:
            if tool.name in seen:
                raise ConfigError(f"agents.{self.name}.tools", f"two tools are named {tool.name!r}")
            seen.add(tool.name)
        if self.max_steps < 1:
            raise ConfigError(f"agents.{self.name}.max_steps", f"is {self.max_steps}", "at least 1")
