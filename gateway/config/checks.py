"""What must fit together across tables, and what this version cannot do yet. Pure."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec

from gateway.config.problems import nearest
from gateway.config.values import (
    AgentSection,
    ConditionSection,
    Document,
    McpSection,
    ModelSection,
    RuleSection,
    ScheduleSection,
    TelegramWebhookSection,
    WebSection,
)
from gateway.errors import ConfigError
from gateway.timetable import LONGEST, SHORTEST, duration_text
from gateway.tools.subagent import circle_text, find_circle, undescribed

PROVIDERS = frozenset({"anthropic", "deepseek", "gemini", "glm", "kimi", "openai", "scripted"})
# The variable that each vendor's own tools read.
KEY_VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "kimi": "MOONSHOT_API_KEY",
    "glm": "ZAI_API_KEY",
    "gemini": "GEMINI_API_KEY",
}
# Fields of a request that the gateway itself answers for.
OWN_FIELDS = frozenset(
    {"model", "messages", "system", "tools", "stream", "stream_options", "n", "contents", "functions"}
)
CHANNELS = frozenset({"discord", "slack", "telegram", "web"})
LEAST_MEMORY = 256_000_000  # bytes of addresses; Python, the loop and a thread take most of them
TELEGRAM_PORTS = (443, 80, 88, 8443)
HOOKED = ("approval:pending", "question:pending", "done")  # what webhooks can be told of


def contradictions(document: Document) -> Iterator[ConfigError]:
    """Every problem that more than one value is needed to see."""
    yield from _default_agent(document)
    for name, model in document.models.items():
        yield from _model(f"models.{name}", model)
    for name, agent in document.agents.items():
        yield from _agent(f"agents.{name}", agent, document)
    calls = {name: [one.agent for one in agent.subagents] for name, agent in document.agents.items()}
    circle = find_circle(calls)
    if circle:
        yield ConfigError(f"agents.{circle[0]}.subagents", circle_text(circle), "take one of them out")
    yield from _referring_tables(document)
    yield from _channels(document)


def not_available(document: Document) -> Iterator[str]:
    """What is configured and would be ignored: one line each, the key first."""
    later = "is not available in this version"
    for name, channel in msgspec.structs.asdict(document.channels).items():
        if name not in CHANNELS and channel is not None:
            yield f"channels.{name}: this channel {later}"
    for name, model in document.models.items():
        if model.provider not in PROVIDERS:
            yield f"models.{name}.provider: {model.provider} {later}"
    yield from (f"{key} administrators by group are {later[3:]}" for key in _admins(document))
    if document.gateway.database.startswith("postgresql:"):
        yield f"gateway.database: PostgreSQL {later}, use sqlite:///threadgate.db"


def _admins(document: Document) -> Iterator[str]:
    """Where the administrators of a place are named as a group and there is no place to look at."""
    for name in ("discord", "telegram"):
        if f"{name}:admins" in document.gateway.operators:
            yield f"gateway.operators: {name}"


def _known(key: str, what: str, name: str, known: Any, mend: str) -> Iterator[ConfigError]:
    if name not in known:
        yield ConfigError(key, f"there is no {what} {name!r}", nearest(name, known, none=mend))


def _default_agent(document: Document) -> Iterator[ConfigError]:
    name = document.gateway.default_agent
    if not document.agents:
        yield ConfigError("agents", "no agent is configured", "add a table [agents.assistant]")
    elif name:
        yield from _known("gateway.default_agent", "agent", name, document.agents, "")
    elif len(document.agents) > 1:
        yield ConfigError(
            "gateway.default_agent", "is missing", f"one of: {', '.join(sorted(document.agents))}"
        )


def _model(key: str, model: ModelSection) -> Iterator[ConfigError]:
    if model.provider == "scripted":
        return
    if not model.model:
        yield ConfigError(f"{key}.model", "is missing", f"the name of a model of {model.provider}")
    if model.api_key is None:
        variable = KEY_VARIABLES[model.provider]
        mend = f'write "env:{variable}" and set it'
        if model.base_url is not None:
            mend += '; a server that wants no key takes any: "none"'
        yield ConfigError(f"{key}.api_key", "is missing", mend)
    for field in sorted(OWN_FIELDS & set(model.extra)):
        yield ConfigError(f"{key}.extra.{field}", "is the gateway's own", "take it out")
    if not _is_json(model.extra):
        yield ConfigError(f"{key}.extra", "holds a date or a number that JSON has not", "put it into quotes")
    if model.script is not None:
        yield ConfigError(f"{key}.script", "is for the scripted provider only")


def _agent(key: str, agent: AgentSection, document: Document) -> Iterator[ConfigError]:
    add = "add a table [models.main]"
    yield from _known(f"{key}.model", "model", agent.model, document.models, add)
    for place, name in enumerate(agent.failover):
        yield from _known(f"{key}.failover[{place}]", "model", name, document.models, add)
    if agent.summary_model is not None:
        yield from _known(f"{key}.summary_model", "model", agent.summary_model, document.models, add)
    yield from _memory(key, agent)
    for place, one in enumerate(agent.subagents):
        yield from _known(f"{key}.subagents[{place}]", "agent", one.agent, document.agents, "")
        called = document.agents.get(one.agent)
        if called is not None and not called.tool_description:
            name = key.removeprefix("agents.")
            yield ConfigError(f"agents.{one.agent}.tool_description", *undescribed(name))
    for place, (name, _) in enumerate(agent.mcp or ()):
        yield from _known(
            f"{key}.mcp[{place}]", "tool server", name, document.mcp, f"add a table [mcp.{name}]"
        )
    yield from _post_to(key, agent, document)
    for number, rule in enumerate(agent.rules):
        at = f"{key}.rules[{number}]"
        for place, condition in enumerate(rule.when):
            problem = unfit(condition)
            if problem:
                yield ConfigError(f"{at}.when[{place}].value", problem)
        for place, target in enumerate(rule.notify):
            yield from _notified(f"{at}.notify[{place}]", target, document)
        yield from _waiting(at, rule, document)


def _memory(key: str, agent: AgentSection) -> Iterator[ConfigError]:
    if agent.memory is not None and agent.memory < LEAST_MEMORY:
        mend = f"{LEAST_MEMORY // 1_000_000}MB at least, what its tools need on top"
        yield ConfigError(f"{key}.memory", "is too little for a process to start with", mend)


def _post_to(key: str, agent: AgentSection, document: Document) -> Iterator[ConfigError]:
    """Where `post_message` may post, and whether it may be used at all."""
    if "post_message" in agent.tools and not agent.post_to:
        yield ConfigError(f"{key}.post_to", "is missing", 'post_message needs threads: ["slack:T1:C9"]')
    if agent.post_to and "post_message" not in agent.tools:
        yield ConfigError(f"{key}.post_to", "is not used", 'add "post_message" to tools')
    for place, target in enumerate(agent.post_to):
        if target.startswith("webhook:"):
            yield ConfigError(f"{key}.post_to[{place}]", "nobody reads a webhook", "name a thread")
        else:
            yield from _notified(f"{key}.post_to[{place}]", target, document)


def _waiting(at: str, rule: RuleSection, document: Document) -> Iterator[ConfigError]:
    """What is to happen while nobody decides."""
    late, mend = "comes after the request has expired", "a shorter time, or a longer expires"
    expires = rule.expires if rule.expires is not None else math.inf
    for place, seconds in enumerate(rule.remind):
        if seconds >= expires:
            yield ConfigError(f"{at}.remind[{place}]", late, mend)
    escalate = rule.escalate
    if escalate is None:
        return
    if escalate.after >= expires:
        yield ConfigError(f"{at}.escalate.after", late, mend)
    if not (escalate.notify or escalate.approvers):
        yield ConfigError(f"{at}.escalate", "names nobody", "give it notify, approvers, or both")
    for place, target in enumerate(escalate.notify):
        yield from _notified(f"{at}.escalate.notify[{place}]", target, document)


def _notified(key: str, target: str, document: Document) -> Iterator[ConfigError]:
    channel, _, name = target.partition(":")
    if channel == "webhook":
        yield from _known(key, "webhook", name, document.webhooks, f"add a table [webhooks.{name}]")
    elif getattr(document.channels, channel) is None:
        yield ConfigError(
            key, f"the channel {channel} is not configured", f"add a table [channels.{channel}]"
        )


def _referring_tables(document: Document) -> Iterator[ConfigError]:
    for place, route in enumerate(document.routes):
        yield from _known(f"routes[{place}].agent", "agent", route.agent, document.agents, "")
    for name, webhook in document.webhooks.items():
        for place, event in enumerate(webhook.events):
            if event not in HOOKED:
                yield ConfigError(
                    f"webhooks.{name}.events[{place}]", f"{event} is not sent", f"one of: {', '.join(HOOKED)}"
                )
    for name, schedule in document.schedules.items():
        yield from _schedule(f"schedules.{name}", schedule, document)
    for name, server in document.mcp.items():
        yield from _tool_server(name, server)


def _schedule(key: str, schedule: ScheduleSection, document: Document) -> Iterator[ConfigError]:
    yield from _known(f"{key}.agent", "agent", schedule.agent, document.agents, "")
    yield from _notified(f"{key}.thread", schedule.thread, document)
    if sum(way is not None for way in (schedule.at, schedule.every, schedule.cron)) != 1:
        yield ConfigError(
            key, "needs one time", 'one of at = "08:30", every = "4h" and cron = "0 8 * * mon-fri"'
        )
    if schedule.every is not None and not SHORTEST <= schedule.every <= LONGEST:
        yield ConfigError(
            f"{key}.every", "is out of range", f"{duration_text(SHORTEST)} to {duration_text(LONGEST)}"
        )


def _tool_server(name: str, server: McpSection) -> Iterator[ConfigError]:
    if bool(server.command) == (server.url is not None):
        yield ConfigError(f"mcp.{name}", "needs one way to the server", "either command or url")
        return
    if "__" in name or name.startswith("_") or name.endswith("_"):
        yield ConfigError(
            f"mcp.{name}", "would blur the names of its tools, mcp__SERVER__TOOL", "no _ at an end"
        )
    for key in ("headers", "token") if server.command else ("env", "cwd"):
        if getattr(server, key):
            way = "url" if server.command else "command"
            yield ConfigError(f"mcp.{name}.{key}", f"is for a server with {way}")
    if server.token and any(header.lower() == "authorization" for header in server.headers):
        yield ConfigError(f"mcp.{name}.token", "stands beside a header Authorization", "one of the two")


def _channels(document: Document) -> Iterator[ConfigError]:
    channels = document.channels
    slack = channels.slack
    if slack is not None and slack.app_token is None and slack.signing_secret is None:
        yield ConfigError("channels.slack.app_token", "is missing", "or signing_secret for HTTP")
    for name in ("discord", "telegram"):  # on Slack ids beside "*" are those of guests
        section = getattr(channels, name)
        if section is not None and "*" in section.users and len(section.users) > 1:
            yield ConfigError(f"channels.{name}.users", '"*" beside ids', 'either ["*"] for everyone, or ids')
    if channels.telegram is not None and channels.telegram.webhook is not None:
        yield from _webhook(channels.telegram.webhook)
    if channels.web is not None:
        yield from _web(channels.web)


def _webhook(webhook: TelegramWebhookSection) -> Iterator[ConfigError]:
    """What Telegram would refuse when it is told the address."""
    parts = urlsplit(webhook.url)
    if parts.scheme != "https" or (parts.port or 443) not in TELEGRAM_PORTS:
        ports = ", ".join(map(str, TELEGRAM_PORTS))
        yield ConfigError(
            "channels.telegram.webhook.url",
            "Telegram posts to https addresses on certain ports only",
            f"write https://host/path, or with one of the ports {ports}",
        )


def _web(web: WebSection) -> Iterator[ConfigError]:
    if not web.token and not _is_loopback(web.host):
        mend = 'write token = "env:THREADGATE_TOKEN" and set it, or host = "127.0.0.1"'
        yield ConfigError(
            "channels.web.token", f"is missing, and {web.host} can be reached from outside", mend
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def unfit(condition: ConditionSection) -> str:
    """Why a condition's value does not fit its operator; empty if it does."""
    value = condition.value
    match condition.op:
        case "gt" | "gte" | "lt" | "lte":
            fits = isinstance(value, int | float) and not isinstance(value, bool)
            return "" if fits else f"{condition.op} compares numbers"
        case "in":
            return "" if isinstance(value, list) and value else "in needs a list of possible values"
        case "matches":
            return _bad_pattern(value)
        case "contains" if isinstance(value, list | dict):
            return "contains looks for one value"
    return "" if _is_json(value) else "dates are text here: put it into quotes"


def _bad_pattern(value: Any) -> str:
    if not isinstance(value, str):
        return "matches needs a regular expression"
    import regex  # here, because only rules with `matches` need it and it takes a while

    try:
        regex.compile(value)
    except regex.error as error:
        return f"not a regular expression: {error}"
    return ""


def _is_json(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_json(item) for item in value)
    if isinstance(value, dict):
        return all(_is_json(item) for item in value.values())
    return isinstance(value, str | bool | int | float)
