"""What is left of an agent's tools where it is a subagent."""

from __future__ import annotations

import pytest

from gateway.tools.base import full_name
from gateway.tools.subagent import narrowed
from gateway.toolset import toolset
from tests.unit.loop.scene import Ran, agent


class Source:
    def __init__(self, *names: str) -> None:
        self._tools = tuple(Ran().tool(name) for name in names)

    def tools(self) -> tuple[object, ...]:
        return self._tools


@pytest.mark.parametrize("name", ["ask_user", "read_result"])
def test_a_tool_of_the_authors_that_is_called_like_one_of_the_loops_is_taken_away_like_others(
    name: str,
) -> None:
    own = Ran().tool(name)
    left = narrowed(agent(own, Ran().tool("look")), [["look"]])
    tools = toolset(left)[0]
    assert set(tools) == {"ask_user", "read_result", "look"}
    assert tools[name] is not own and tools[name].system == name


def test_a_bare_name_means_none_of_a_server_that_was_taken_away() -> None:
    source = Source("mcp__x__add", "mcp__y__add", "mcp__x__pay", "resource_read")
    left = narrowed(agent(sources=(source,)), [["mcp__y__*"]])
    tools = toolset(left)[0]
    assert set(tools) == {"ask_user", "read_result", "mcp__y__add"}
    assert full_name("add", tools) == "mcp__y__add"
    assert full_name("pay", tools) not in tools
