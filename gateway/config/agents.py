"""From checked sections to Agent values: rules, and the tools of the modules that are named."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from gateway.agent import Agent
from gateway.config.people import as_role
from gateway.config.problems import Bad, combined, nearest
from gateway.config.values import AgentSection, EscalateSection, RuleSection
from gateway.errors import ConfigError
from gateway.gate import Condition, Gate, Rule, Scope
from gateway.log import redact
from gateway.patience import Escalation
from gateway.tools.base import FOREIGN, Tool
from gateway.tools.skills import SKILL_TOOL, index, load_skills, skill_tool
from gateway.tools.subagent import with_subagents

DECORATE = "decorate functions with @tool"


class Configured(Protocol):
    """What is needed of a Config here."""

    @property
    def agents(self) -> dict[str, AgentSection]: ...

    @property
    def folder(self) -> Path: ...


# The built-in tools of one name for an agent of this name and section. Raises ConfigError.
BuiltIn = Callable[[str, str, AgentSection], Sequence[Tool]]


def _no_built_in(name: str, agent: str, section: AgentSection) -> Sequence[Tool]:
    raise ConfigError(f"agents.{agent}.tools", f"{name} needs a running gateway")


def build_agents(config: Configured, built_in: BuiltIn = _no_built_in) -> dict[str, Agent]:
    """Every configured agent by name. Imports the tools' modules, beside the configuration first, and
    reads the skills. `built_in`: makes the tools that are named without a module.

    Raises ConfigError, or ConfigErrors with all problems found.
    """
    problems: list[ConfigError] = []
    agents = {}
    for name, section in config.agents.items():
        try:
            agents[name] = _agent(name, section, config.folder, problems, built_in)
        except ConfigError as error:
            problems.append(error)
    if problems:
        raise combined(problems)
    return with_subagents(agents)


def _agent(
    name: str, section: AgentSection, folder: Path, problems: list[ConfigError], built_in: BuiltIn
) -> Agent:
    tools: list[Tool] = []
    for place, reference in enumerate(section.tools):
        try:
            own = ":" in reference
            tools.extend(_tools(reference, folder) if own else built_in(reference, name, section))
        except Bad as bad:
            problems.append(ConfigError(f"agents.{name}.tools[{place}]", bad.problem, bad.mend))
    prompt = _with_skills(name, section, tools)
    return Agent(
        name=name,
        system_prompt=prompt,
        model=section.model,
        failover=section.failover,
        summary_model=section.summary_model,
        silence=section.silence,
        tools=tuple(tools),
        gate=Gate(rules=tuple(map(_rule, section.rules)), default_decision=section.default_decision),
        busy=section.busy,
        while_pending=section.while_pending,
        on_denial=section.on_denial,
        on_unknown=section.on_unknown,
        max_steps=section.max_steps,
        max_tokens=section.max_tokens,
        deadline=section.deadline,
        stall_after=section.stall_after,
        loop_limit=section.loop_limit,
        context_window=section.context_window,
        max_output_tokens=section.max_output_tokens,
        tool_description=section.tool_description,
        subagents=section.subagents,
        isolation=section.isolation,
        env=section.env,
        memory=section.memory,
        cpu=section.cpu,
        max_depth=section.max_depth,
        max_children=section.max_children,
        max_subagent_calls=section.max_subagent_calls,
        subagent_rate=section.subagent_rate,
    )


def _with_skills(name: str, section: AgentSection, tools: list[Tool]) -> str:
    """The system prompt with the index of skills; the tool that reads them joins `tools`, unless the author
    has one of that name."""
    folders = [(f"agents.{name}.skills[{place}]", folder) for place, folder in enumerate(section.skills)]
    skills = load_skills(folders)
    if not skills:
        return section.system_prompt
    if not any(tool.name == SKILL_TOOL for tool in tools):
        tools.append(skill_tool(skills))
    return "\n\n".join(filter(None, (section.system_prompt, index(skills, section.skills_budget))))


def _rule(section: RuleSection) -> Rule:
    return Rule(
        tool=section.tool,
        decision=section.decision,
        when=tuple(Condition(field=one.field, op=one.op, value=one.value) for one in section.when),
        scope=Scope(
            tenant=section.scope.tenant, environment=section.scope.environment, agent=section.scope.agent
        ),
        approvers=tuple(map(as_role, section.approvers)),
        notify=section.notify,
        expires=section.expires,
        quorum=section.quorum,
        four_eyes=section.four_eyes,
        redact=section.redact,
        reveal=section.reveal,
        reason=section.reason,
        remind=section.remind,
        escalate=_escalation(section.escalate),
        quiet=section.quiet,
    )


def _escalation(section: EscalateSection | None) -> Escalation | None:
    if section is None:
        return None
    approvers = tuple(map(as_role, section.approvers))
    return Escalation(after=section.after, notify=section.notify, approvers=approvers)


def module_tools(references: Iterable[str], folder: Path) -> list[Tool]:
    """The tools of those of these references that name modules. Raises ConfigError."""
    tools = []
    for reference in references:
        if ":" in reference:
            try:
                tools += _tools(reference, folder)
            except Bad as bad:
                raise ConfigError(reference, bad.problem, bad.mend) from bad
    return tools


def _tools(reference: str, folder: Path) -> list[Tool]:
    module_name, _, attribute = reference.partition(":")
    module = _import(module_name, folder)
    if not hasattr(module, attribute):
        public = [name for name in vars(module) if not name.startswith("_")]
        raise Bad(f"the module {module_name} has no {attribute!r}", nearest(attribute, public))
    value = getattr(module, attribute)
    if not isinstance(value, list | tuple):
        mend = f"write {attribute} = [...]" if isinstance(value, Tool) else "a list of tools is needed"
        raise Bad(f"{reference} is a {type(value).__name__}, no list", mend)
    for place, item in enumerate(value):
        if not isinstance(item, Tool):
            raise Bad(f"{reference}[{place}] is a {type(item).__name__}, no Tool", DECORATE)
    return list(value)


def _import(name: str, folder: Path) -> ModuleType:
    beside = _make_room(name.partition(".")[0], folder)
    if beside:
        sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise Bad(
                f"there is no module {name}", f"looked in {folder} and among the installed ones"
            ) from error
        raise Bad(f"{name} needs the module {error.name}, which is not installed") from error
    except (Exception, SystemExit) as error:  # a foreign module may do anything while it is imported
        raise Bad(f"{name} cannot be imported: {type(error).__name__}: {redact(str(error))}") from error
    finally:
        if beside and str(folder) in sys.path:
            sys.path.remove(str(folder))
            # Last, so that what the tools import later is still found but hides nothing.
            if str(folder) not in sys.path:
                sys.path.append(str(folder))


def _make_room(top: str, folder: Path) -> bool:
    """Whether the module lies beside the configuration. A namesake from elsewhere is forgotten."""
    spec = PathFinder.find_spec(top, [str(folder)])
    if spec is None:
        return False
    loaded = sys.modules.get(top)
    if loaded is None or _same_place(loaded, spec):
        return True
    if top in sys.stdlib_module_names:
        raise Bad(f"the module {top} has the name of one of Python's own", "give it another name")
    for name in [name for name in sys.modules if name == top or name.startswith(f"{top}.")]:
        del sys.modules[name]
    return True


def _same_place(loaded: ModuleType, spec: ModuleSpec) -> bool:
    if spec.origin is not None:
        return getattr(loaded, "__file__", None) == spec.origin
    return list(getattr(loaded, "__path__", [])) == list(spec.submodule_search_locations or [])


def questionable_rules(agents: Mapping[str, Agent]) -> list[str]:
    """Rules that can never hold because of a wrong name, one line each: worth a warning."""
    return [line for agent in agents.values() for line in _questionable(agent)]


def _questionable(agent: Agent) -> Iterator[str]:
    tools: dict[str, Any] = {tool.name: tool.input_schema for tool in agent.tools}
    for number, rule in enumerate(agent.gate.rules):
        key = f"agents.{agent.name}.rules[{number}]"
        if set(rule.tool) & set("*?[") or (agent.sources and rule.tool.startswith(FOREIGN)):
            continue  # what tool servers have is not known before they run
        schema = tools.get(rule.tool)
        if schema is None:
            if rule.tool not in BUILT_IN:
                mend = nearest(rule.tool, {*tools, *BUILT_IN})
                yield f"{key}.tool: the agent has no tool {rule.tool!r} ({mend})"
            continue
        parameters = schema.get("properties", {})
        for place, condition in enumerate(rule.when):
            known = any(
                condition.field == name or condition.field.startswith(f"{name}.") for name in parameters
            )
            if not known and schema.get("additionalProperties") is False:
                mend = nearest(condition.field, parameters, none="it has no parameters")
                yield f"{key}.when[{place}].field: {rule.tool} has no parameter {condition.field!r} ({mend})"


BUILT_IN = frozenset(
    {"ask_user", "schedule", "schedules", "Skill", "read_result", "resource_list", "resource_read"}
)
