"""The tools that a step has, and what its model is told of them. Pure."""

from __future__ import annotations

from operator import is_

from gateway.agent import Agent
from gateway.messages import canonical_json
from gateway.providers.base import ToolSpec
from gateway.silence import with_silence
from gateway.tools.base import Tool
from gateway.tools.system import ASK_USER, READ_RESULT

# The tools by name, what the model is told of them, and how many characters that and the system prompt
# add to every request.
Toolset = tuple[dict[str, Tool], tuple[ToolSpec, ...], int]
# By the agent's identity: agents are few and live long. With what its sources had, to see a change.
_toolsets: dict[int, tuple[Agent, list[tuple[Tool, ...]], Toolset]] = {}


def toolset(agent: Agent) -> Toolset:
    """The built-in tools, then those of the agent's sources, then its own; later ones replace those of
    the same name. And what the model is told of them."""
    offered = [source.tools() for source in agent.sources]
    known = _toolsets.get(id(agent))
    if known is not None and known[0] is agent and all(map(is_, known[1], offered)):
        return known[2]
    foreign = [tool for tools in reversed(offered) for tool in tools]
    tools = {tool.name: tool for tool in (ASK_USER, READ_RESULT, *foreign, *agent.tools)}
    specs = tuple(
        ToolSpec(name=t.name, description=t.description, input_schema=t.input_schema) for t in tools.values()
    )
    if len(_toolsets) >= 256:
        _toolsets.clear()
    told = sum(len(s.name) + len(s.description) + len(canonical_json(s.input_schema)) for s in specs)
    made = tools, specs, told + len(with_silence(agent.system_prompt, agent.silence))
    _toolsets[id(agent)] = (agent, offered, made)
    return made
