"""Skills and built-in tools in the configuration: what is named is there, and what cannot be is told."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from gateway.config import build_agents
from gateway.config.values import AgentSection
from gateway.errors import ConfigError
from gateway.tools.base import Tool, tool
from gateway.tools.ports import BUILT_IN

AGENT = "[models.main]\nprovider = 'scripted'\n[agents.desk]\nsystem_prompt = 'Be kind.'\n"
TELEGRAM = "[channels.telegram]\ntoken = 'env:TOKEN'\n"


def write_skill(folder: Path, name: str, description: str = "What it does.") -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: {description}\n---\nDo {name}.\n"
    )


def made(name: str, agent: str, section: AgentSection) -> Sequence[Tool]:
    """A tool of the name that is asked for."""

    @tool(name=name)
    async def run() -> str:
        """Run."""
        return name

    return (run,)


# ---- skills


def test_skills_beside_the_configuration_are_listed_in_the_prompt_and_read_by_a_tool(
    load: Any, tmp_path: Path
) -> None:
    write_skill(tmp_path / "skills", "zip")
    write_skill(tmp_path / "skills", "pay")
    write_skill(tmp_path / "more", "answer")
    config = load(AGENT + "skills = ['skills', 'more/answer']\n")
    assert config.unsupported() == []
    agent = build_agents(config)["desk"]
    head, *lines = agent.system_prompt.split("\n\n")[1].splitlines()
    assert agent.system_prompt.startswith("Be kind.\n\n") and "Skill" in head
    assert lines == [f"- {name}: What it does." for name in ("answer", "pay", "zip")]
    assert [(t.name, t.system) for t in agent.tools] == [("Skill", "skill")]
    assert build_agents(config)["desk"].system_prompt == agent.system_prompt


def test_the_budget_holds_for_the_index(load: Any, tmp_path: Path) -> None:
    for number in range(40):
        write_skill(tmp_path / "skills", f"skill-{number}", "word " * 40)
    agent = build_agents(load(AGENT + "skills = ['skills']\nskills_budget = 100\n"))["desk"]
    assert len(agent.system_prompt) <= len("Be kind.\n\n") + 400
    assert agent.system_prompt.endswith("more: ask by name.")


OWN = """
from gateway.tools.base import tool

@tool(name="Skill")
def own() -> str:
    "Own."

tools = [own]
"""


def test_an_authors_own_tool_called_skill_replaces_ours(
    load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", sys.modules.copy())
    write_skill(tmp_path / "skills", "pay")
    (tmp_path / "tg_own.py").write_text(OWN)
    agent = build_agents(load(AGENT + "skills = ['skills']\ntools = ['tg_own:tools']\n"))["desk"]
    assert [(t.name, t.system) for t in agent.tools] == [("Skill", "")]


@pytest.mark.parametrize(
    ("line", "key"),
    [("skills = ['none']", "agents.desk.skills[0]"), ("skills = ['bad']", "SKILL.md")],
)
def test_a_skill_that_cannot_be_read_is_told_at_the_start(
    load: Any, tmp_path: Path, line: str, key: str
) -> None:
    write_skill(tmp_path / "bad", "Pay")
    with pytest.raises(ConfigError) as caught:
        build_agents(load(AGENT + line))
    assert caught.value.key.endswith(key)


# ---- built-in tools


def test_built_in_tools_are_named_without_a_module(load: Any) -> None:
    names = ", ".join(f"'{name}'" for name in BUILT_IN)
    config = load(AGENT + f"tools = [{names}]\npost_to = ['telegram:4']\n" + TELEGRAM)
    agent = build_agents(config, made)["desk"]
    assert [t.name for t in agent.tools] == list(BUILT_IN)
    with pytest.raises(ConfigError) as caught:
        build_agents(config)
    assert "needs a running gateway" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("http_fetc", "did you mean http_fetch?"),
        ("Memory", "did you mean memory?"),
        ("shell", "one of: files, http_fetch"),
    ],
)
def test_an_unknown_built_in_tool_is_an_error_with_the_nearest_name(
    problems: Any, name: str, mend: str
) -> None:
    found = problems(AGENT + f"tools = ['{name}']\n")["agents.desk.tools[0]"]
    assert f"there is no built-in tool {name!r}" in found.problem
    assert mend in found.mend and "module:attribute" in found.mend


@pytest.mark.parametrize(
    ("lines", "key", "part"),
    [
        ("tools = ['post_message']\n", "agents.desk.post_to", "is missing"),
        ("post_to = ['telegram:4']\n", "agents.desk.post_to", "is not used"),
        ("tools = ['post_message']\npost_to = ['slack:T1:C9']\n", "agents.desk.post_to[0]", "not configured"),
        (
            "tools = ['post_message']\npost_to = ['webhook:pager']\n",
            "agents.desk.post_to[0]",
            "nobody reads a webhook",
        ),
        ("tools = ['post_message']\npost_to = ['#general']\n", "agents.desk.post_to[0]", "a channel"),
        ("skills_budget = 5\n", "agents.desk.skills_budget", "100"),
        ("[tools.http_fetch]\nallow = ['10.0.0.1/8']\n", "tools.http_fetch.allow[0]", "host bits"),
        ("[tools.http_fetch]\nallow = ['intranet']\n", "tools.http_fetch.allow[0]", "no network"),
        ("[tools.http_fetc]\n", "tools.http_fetc", "unknown key"),
    ],
)
def test_what_does_not_fit_together_is_named_by_key(problems: Any, lines: str, key: str, part: str) -> None:
    found = problems(AGENT + lines + TELEGRAM)
    assert list(found) == [key]
    assert part in found[key].problem


def test_inner_networks_are_opened_by_name(load: Any) -> None:
    allowed = load(AGENT + "[tools.http_fetch]\nallow = ['127.0.0.1', 'fd00::/8']\n").tools.http_fetch.allow
    assert allowed == (ip_network("127.0.0.1"), ip_network("fd00::/8"))
