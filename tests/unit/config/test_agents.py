"""build_agents: rules become a gate, tools come from the modules that the configuration names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.config import ConfigErrors, build_agents, questionable_rules
from gateway.errors import ConfigError
from gateway.gate import Condition, Gate, Rule, Scope
from gateway.patience import Escalation, Quiet

TOOLS = """
from gateway.tools.base import tool
from {name}_words import WORD

@tool
def pay(order: str, amount: float) -> str:
    '''Pay back.'''
    return WORD

tools = [pay]
single = pay
empty = ()
mixed = (pay, len)
"""


@pytest.fixture(autouse=True)
def unchanged_imports() -> Iterator[None]:
    path, loaded = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - loaded:
        if name.startswith(("tg_", "shop")):
            del sys.modules[name]


@pytest.fixture
def build(load: Any, tmp_path: Path) -> Any:
    """Builds the agents of a configuration whose agent has these lines."""

    def run(lines: str) -> Any:
        return build_agents(load(f"[models.main]\nprovider = 'scripted'\n[agents.desk]\n{lines}\n"))

    (tmp_path / "tg_shop.py").write_text(TOOLS.format(name="tg_shop"))
    (tmp_path / "tg_shop_words.py").write_text("WORD = 'paid'\n")
    return run


def test_the_word_for_saying_nothing_is_off_unless_it_is_given(build: Any) -> None:
    assert build("")["desk"].silence is None
    assert build("silence = ' NO_REPLY '")["desk"].silence == "NO_REPLY"


@pytest.mark.parametrize("word", ["", "OK", "NO REPLY", "nö-antwort", "x" * 41])
def test_a_word_that_cannot_stand_for_nothing_is_refused_with_the_key(build: Any, word: str) -> None:
    error = problem(build, f"silence = '{word}'")
    assert error.key == "agents.desk.silence" and (not word or "NO_REPLY" in error.mend)


def problem(build: Any, lines: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        build(lines)
    return caught.value


def test_an_agent_gets_its_tools_rules_and_limits(build: Any) -> None:
    agent = build(
        """
        system_prompt = "Be kind."
        tools = ["tg_shop:tools", "tg_shop:empty"]
        deadline = "10m"
        max_tokens = 5000
        on_denial = "continue"
        default_decision = "deny"
        [[agents.desk.rules]]
        tool = "pay"
        when = [{ field = "amount", op = "lte", value = 20 }]
        decision = "allow"
        [[agents.desk.rules]]
        tool = "p*"
        decision = "ask"
        scope = { environment = "prod*" }
        approvers = ["telegram:4"]
        expires = "3d"
        remind = ["1h", "1d"]
        escalate = { after = "4h", notify = ["telegram:5"], approvers = ["telegram:6", "slack:T1:S2"] }
        quiet = "22:00-07:30 Europe/Berlin"
        quorum = 2
        four_eyes = true
        redact = ["order"]
        reason = "much money"
        [channels.telegram]
        token = "env:TOKEN"
        """
    )["desk"]
    assert [tool.name for tool in agent.tools] == ["pay"]
    assert (agent.name, agent.system_prompt, agent.deadline, agent.max_tokens) == (
        "desk",
        "Be kind.",
        600.0,
        5000,
    )
    assert agent.on_denial == "continue"
    assert agent.gate == Gate(
        rules=(
            Rule(tool="pay", decision="allow", when=(Condition(field="amount", op="lte", value=20),)),
            Rule(
                tool="p*",
                decision="ask",
                scope=Scope(environment="prod*"),
                approvers=("telegram:4",),
                expires=259_200.0,
                remind=(3_600.0, 86_400.0),
                escalate=Escalation(
                    after=14_400.0, notify=("telegram:5",), approvers=("telegram:6", "slack:role:S2")
                ),
                quiet=Quiet(start=1_320, end=450, zone="Europe/Berlin"),
                quorum=2,
                four_eyes=True,
                redact=("order",),
                reason="much money",
            ),
        ),
        default_decision="deny",
    )


def test_a_package_beside_the_configuration_is_found(build: Any, tmp_path: Path) -> None:
    (tmp_path / "tg_pack").mkdir()
    (tmp_path / "tg_pack" / "inner.py").write_text("tools = []\n")
    assert build("tools = ['tg_pack.inner:tools']")["desk"].tools == ()


def test_the_module_beside_the_configuration_wins_over_a_loaded_namesake(
    build: Any, load: Any, tmp_path: Path
) -> None:
    first = build("tools = ['tg_shop:tools']")["desk"].tools[0]
    other = tmp_path / "other"
    other.mkdir()
    text = "[models.main]\nprovider = 'scripted'\n[agents.desk]\ntools = ['tg_shop:tools']\n"
    (other / "config.toml").write_text(text)
    (other / "tg_shop.py").write_text("tools = []\n")
    again = build_agents(load(text))["desk"].tools[0]
    elsewhere = build_agents(load(text, folder=other))["desk"].tools
    assert again is first
    assert elsewhere == ()


def test_what_the_tools_import_later_is_found_but_hides_nothing(build: Any, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise RuntimeError('the wrong json')\n")
    build("tools = ['tg_shop:tools']")
    assert sys.path[-1] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1


@pytest.mark.parametrize(
    ("reference", "part", "mend"),
    [
        ("tg_none:tools", "no module tg_none", "looked in"),
        ("tg_shop.inner:tools", "no module tg_shop.inner", "looked in"),
        ("tg_shop:tols", "has no 'tols'", "did you mean tools?"),
        ("tg_shop:single", "is a Tool, no list", "write single = [...]"),
        ("tg_shop:WORD", "is a str, no list", "a list of tools"),
        ("tg_shop:mixed", "mixed[1] is a builtin_function_or_method", "@tool"),
        ("tg_needs:tools", "needs the module tg_missing", ""),
        ("tg_fails:tools", "ZeroDivisionError: division by zero", ""),
        ("tg_exits:tools", "SystemExit: 3", ""),
        ("tg_syntax:tools", "SyntaxError", ""),
        ("tg_tells:tools", "RuntimeError: https://host/bot<redacted>/getMe", ""),
        ("string:tools", "Python's own", "another name"),
    ],
)
def test_tools_that_cannot_be_had_are_named_with_the_reason(
    build: Any, tmp_path: Path, reference: str, part: str, mend: str
) -> None:
    (tmp_path / "tg_needs.py").write_text("import tg_missing\n")
    (tmp_path / "tg_fails.py").write_text("1 / 0\n")
    (tmp_path / "tg_exits.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "tg_syntax.py").write_text("tools = [\n")
    (tmp_path / "tg_tells.py").write_text("raise RuntimeError('https://host/bot123456:AAtoken-x/getMe')\n")
    (tmp_path / "string.py").write_text("tools = []\n")
    found = problem(build, f"tools = ['tg_shop:tools', '{reference}']")
    assert found.key == "agents.desk.tools[1]"
    assert part in found.problem
    assert mend in found.mend
    assert str(tmp_path) not in sys.path[:-1]


def test_problems_of_several_agents_are_reported_together(build: Any) -> None:
    found = problem(
        build,
        "tools = ['tg_none:a', 'tg_none:b']\n[agents.b]\ntools = ['tg_none:c']\n"
        "[gateway]\ndefault_agent = 'b'",
    )
    assert isinstance(found, ConfigErrors)
    assert [one.key for one in found.problems] == [
        "agents.desk.tools[0]",
        "agents.desk.tools[1]",
        "agents.b.tools[0]",
    ]


def test_two_tools_of_one_name_are_refused(build: Any) -> None:
    assert problem(build, "tools = ['tg_shop:tools', 'tg_shop:tools']").key == "agents.desk.tools"


def test_a_subagent_is_a_tool_of_its_name_with_what_it_says_about_itself(build: Any) -> None:
    agents = build(
        """
        subagents = ["books", { agent = "ops", tools = ["read_*"] }]
        max_depth = 2
        [agents.books]
        tool_description = "Keeps the books."
        [agents.ops]
        tool_description = "Runs things."
        isolation = "process"
        [gateway]
        default_agent = "desk"
        """
    )
    tools = {tool.name: tool for tool in agents["desk"].tools}
    assert tools["books"].description == "Keeps the books." and tools["books"].safe
    assert [(s.agent, s.only) for s in agents["desk"].subagents] == [("books", ()), ("ops", ("read_*",))]
    assert (agents["desk"].max_depth, agents["ops"].isolation) == (2, "process")


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("subagents = ['desk']\n", "agents.desk.subagents", "desk -> desk"),
        (
            "tool_description = 'd'\nsubagents = ['a']\n[agents.a]\ntool_description = 'a'\n"
            "subagents = ['b']\n[agents.b]\ntool_description = 'b'\nsubagents = ['desk']\n",
            "agents.desk.subagents",
            "desk -> a -> b -> desk",
        ),
        ("subagents = ['a']\n[agents.a]\n", "agents.a.tool_description", "desk calls this agent"),
        ("subagents = [{ tools = ['x'] }]\n", "agents.desk.subagents[0]", "names no agent"),
        ("subagents = [{ agent = 'desk', tool = ['x'] }]\n", "agents.desk.subagents[0]", "unknown key"),
        ("subagents = [{ agent = 'desk', tools = [] }]\n", "agents.desk.subagents[0]", "no list of names"),
        ("isolation = 'proces'\n", "agents.desk.isolation", "not possible"),
        ("max_children = 0\n", "agents.desk.max_children", "1"),
    ],
)
def test_subagents_that_cannot_work_are_refused_at_the_start(
    build: Any, text: str, key: str, says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build(text)
    assert key in str(caught.value) and says in str(caught.value)


def test_rules_with_names_that_never_match_are_questionable(build: Any) -> None:
    agents = build(
        """
        tools = ["tg_shop:tools"]
        [[agents.desk.rules]]
        tool = "pya"
        decision = "deny"
        [[agents.desk.rules]]
        tool = "pay"
        decision = "deny"
        when = [{ field = "amuont", op = "gt", value = 1 }, { field = "order.id", op = "eq", value = "x" }]
        [[agents.desk.rules]]
        tool = "other_*"
        decision = "deny"
        [[agents.desk.rules]]
        tool = "ask_user"
        decision = "allow"
        """
    )
    assert questionable_rules(agents) == [
        "agents.desk.rules[0].tool: the agent has no tool 'pya' (did you mean pay?)",
        "agents.desk.rules[1].when[0].field: pay has no parameter 'amuont' (did you mean amount?)",
    ]
