"""Agents as tools of other agents: the tool itself, who may call whom, and narrowing. Pure.

A subagent's tool hands its task over to whoever runs subagents (`CallContext.subagents`) and gives
back the last words of the conversation that follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from gateway.agent import Agent, Subagent
from gateway.errors import ConfigError, ToolError
from gateway.messages import Json
from gateway.tools.base import CallContext, SubagentCall, Tool, ToolOutput, ToolSource

TIMEOUT = 86_400.0  # seconds; it is the caller's deadline that counts, and the subagent's own
NOT_HERE = "no subagents can be run here"

_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "task": {
            "type": "string",
            "minLength": 1,
            "description": "what to do, with everything that has to be known: nothing else is seen",
        },
        "session": {
            "type": "string",
            "default": "",
            "description": "the session of an earlier result, to go on with that conversation",
        },
    },
    "required": ["task"],
    "additionalProperties": False,
}


def subagent_tool(name: str, description: str, only: Sequence[str] = ()) -> Tool:
    """The tool that gives work to an agent. Calls of one step run together, and one that is run again
    finds the conversation that it has begun."""

    async def call(args: Json, context: CallContext) -> str | ToolOutput:
        if context.subagents is None:
            raise ToolError(NOT_HERE)
        order = SubagentCall(
            agent=name,
            text=args["task"],
            only=tuple(only),
            session_id=context.session_id,
            turn_id=context.turn_id,
            call_id=context.call_id,
            conversation=args.get("session", ""),
        )
        return await context.subagents.call(order)

    return Tool(
        name=name,
        description=description,
        input_schema=_SCHEMA,
        handler=call,
        safe=True,
        idempotent=True,
        timeout=TIMEOUT,
        system="subagent",
    )


def with_subagents(agents: Mapping[str, Agent]) -> dict[str, Agent]:
    """The agents, each with the tools of those that it may call. Raises ConfigError for unknown agents,
    for circles, and for agents that do not say what they are good for."""
    circle = find_circle({name: [s.agent for s in agent.subagents] for name, agent in agents.items()})
    if circle:
        raise ConfigError(f"agents.{circle[0]}.subagents", circle_text(circle), "take one of them out")
    return {
        name: replace(agent, tools=(*agent.tools, *(_tool_of(agent, one, agents) for one in agent.subagents)))
        if agent.subagents
        else agent
        for name, agent in agents.items()
    }


def _tool_of(agent: Agent, one: Subagent, agents: Mapping[str, Agent]) -> Tool:
    called = agents.get(one.agent)
    if called is None:
        raise ConfigError(f"agents.{agent.name}.subagents", f"there is no agent {one.agent!r}")
    if not called.tool_description.strip():
        raise ConfigError(f"agents.{one.agent}.tool_description", *undescribed(agent.name))
    return subagent_tool(one.agent, called.tool_description, one.only)


def undescribed(caller: str) -> tuple[str, str]:
    """(problem, mend) of an agent that another one calls without being told what for."""
    return f"is missing, and {caller} calls this agent", "say what it is good for: the model reads it"


def find_circle(calls: Mapping[str, Sequence[str]]) -> list[str]:
    """Names along which an agent comes to call itself, the first one again at the end; empty: none."""
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for called in calls.get(name, ()):
            if circle := walk(called, [*path, name]):
                return circle
        done.add(name)
        return []

    return next((circle for name in calls if (circle := walk(name, []))), [])


def circle_text(circle: Sequence[str]) -> str:
    """A circle in words."""
    return f"go round in a circle: {' -> '.join(circle)}"


def narrowed(agent: Agent, only: Sequence[Sequence[str]]) -> Agent:
    """The agent as a subagent: with those of its tools whose names fit a glob of each list; without a clock,
    since nobody listens to it later, and without silence, since its caller waits for words. A list that is
    added can only take tools away."""
    kept = (tool for tool in agent.tools if is_left(tool.name, only) and tool.system != "schedule")
    sources = tuple(_Narrowed(source, only) for source in agent.sources) if only else agent.sources
    return replace(agent, tools=tuple(kept), sources=sources, silence=None)


def is_left(name: str, only: Sequence[Sequence[str]]) -> bool:
    """Whether a tool of this name is left by all the lists. The loop's own, `ask_user` and `read_result`, are
    not asked about: they widen nothing. An agent's own tool that is called so is a tool like others."""
    return all(any(fnmatchcase(name, glob) for glob in globs) for globs in only)


class _Narrowed:
    """The tools of a source that are left. See ToolSource."""

    def __init__(self, source: ToolSource, only: Sequence[Sequence[str]]) -> None:
        self._source, self._only = source, only
        self._seen: tuple[Tool, ...] | None = None
        self._left: tuple[Tool, ...] = ()

    def tools(self) -> tuple[Tool, ...]:
        seen = self._source.tools()
        if seen is not self._seen:
            self._seen = seen
            self._left = tuple(tool for tool in seen if is_left(tool.name, self._only))
        return self._left
