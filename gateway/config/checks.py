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
    ModelSection,
    RuleSection,
    TelegramWebhookSection,
    WebSection,
)
from gateway.errors import ConfigError

PROVIDERS = frozenset({"anthropic", "scripted"})
CHANNELS = frozenset({"discord", "slack", "telegram", "web"})
TELEGRAM_PORTS = (443, 80, 88, 8443)
LATER = ("webhooks", "mcp", "schedules")


def contradictions(document: Document) -> Iterator[ConfigError]:
    """Every problem that more than one value is needed to see."""
    yield from _default_agent(document)
    for name, model in document.models.items():
        yield from _model(f"models.{name}", model)
    for name, agent in document.agents.items():
        yield from _agent(f"agents.{name}", agent, document)
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
    for name, agent in document.agents.items():
        yield from (
            f"agents.{name}.{key}: this {later}" for key in ("skills", "subagents") if getattr(agent, key)
        )
    yield from (f"{key}: this {later}" for key in LATER if getattr(document, key))
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
        yield ConfigError(
            f"{key}.api_key", "is missing", f'write "env:{model.provider.upper()}_API_KEY" and set it'
        )
    if model.script is not None:
        yield ConfigError(f"{key}.script", "is for the scripted provider only")


def _agent(key: str, agent: AgentSection, document: Document) -> Iterator[ConfigError]:
    add = "add a table [models.main]"
    yield from _known(f"{key}.model", "model", agent.model, document.models, add)
    for place, name in enumerate(agent.failover):
        yield from _known(f"{key}.failover[{place}]", "model", name, document.models, add)
    for place, name in enumerate(agent.subagents):
        yield from _known(f"{key}.subagents[{place}]", "agent", name, document.agents, "")
    for number, rule in enumerate(agent.rules):
        at = f"{key}.rules[{number}]"
        for place, condition in enumerate(rule.when):
            problem = unfit(condition)
            if problem:
                yield ConfigError(f"{at}.when[{place}].value", problem)
        for place, target in enumerate(rule.notify):
            yield from _notified(f"{at}.notify[{place}]", target, document)
        yield from _waiting(at, rule, document)


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
    for name, schedule in document.schedules.items():
        yield from _known(f"schedules.{name}.agent", "agent", schedule.agent, document.agents, "")
        if (schedule.at is None) == (schedule.every is None):
            yield ConfigError(f"schedules.{name}", "needs a time", 'either at = "08:30" or every = "4h"')
    for name, server in document.mcp.items():
        if bool(server.command) == (server.url is not None):
            yield ConfigError(f"mcp.{name}", "needs one way to the server", "either command or url")


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
