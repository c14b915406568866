"""From a configuration to concrete parts. The only place that names platforms and providers; each
SDK is imported only when the configuration uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from channels.base import Channel
from gateway.agent import Agent
from gateway.app.builtins import BuiltIns
from gateway.app.extras import extra
from gateway.app.gateway import Parts, Web
from gateway.app.isolation import Isolation
from gateway.app.metrics import Metrics
from gateway.app.people import ConfiguredRules, RouteRule
from gateway.app.standing import standing_of
from gateway.app.toolservers import tool_servers, with_tool_servers
from gateway.app.webhooks import Hook
from gateway.clock import Clock, SystemClock
from gateway.commands import menu
from gateway.config import Config, ConfigErrors, build_agents
from gateway.config.people import as_role
from gateway.config.values import DiscordSection, ModelSection, SlackSection, TelegramSection
from gateway.errors import ConfigError
from gateway.letters import WEBHOOK
from gateway.providers.base import Model
from gateway.providers.openai_quirks import Provider as ChatProvider
from gateway.providers.prices import Price, Priced, list_price
from gateway.providers.retry import ResilientModel
from gateway.store.base import Store
from gateway.store.sqlite import SqliteStore

LOCAL = "local"  # the workspace of the web channel and the terminal


def build_parts(config: Config, *, clock: Clock | None = None, channels: bool = True) -> Parts:
    """The parts of the configured gateway. Raises ConfigError, also for what is configured and
    not available yet. `channels=False`: none, for commands that only need store and agents."""
    missing = config.unsupported()
    if missing:
        raise ConfigErrors([ConfigError(*line.split(": ", 1)) for line in missing])
    clock = clock or SystemClock()
    operators = tuple(map(as_role, config.gateway.operators))
    platforms = tuple(_channels(config)) if channels else ()
    rules = _rules(config, operators)
    store = build_store(config, clock)
    data_dir = config.gateway.data_dir
    built_in = BuiltIns(store=store, rules=rules, settings=config.tools, data_dir=data_dir, clock=clock)
    servers = tool_servers(config, clock)
    agents = with_tool_servers(build_agents(config, built_in), config, servers)
    isolation = Isolation(config, agents)
    return Parts(
        store=store,
        agents=agents,
        runner_of=isolation,
        closing=(isolation.close,),
        model_of=model_factory(config, clock),
        models=tuple(config.models),
        rules=rules,
        channels=platforms,
        web=_web(config) if channels else None,
        operators=operators,
        environment=config.gateway.environment,
        drain=config.gateway.drain,
        data_dir=data_dir,
        schedules=tuple(standing_of(config, rules.place)),
        webhooks={name: Hook(url=s.url, secret=s.secret) for name, s in config.webhooks.items()},
        metrics=_metrics(config),
        tool_servers=servers,
        clock=clock,
    )


def _metrics(config: Config) -> Metrics | None:
    if config.metrics is None:
        return None
    with extra("metrics", "metrics"):
        return Metrics()


def build_store(config: Config, clock: Clock) -> Store:
    """The store that the database URL names."""
    path = config.gateway.database.path
    if path is None:
        raise ConfigError("gateway.database", "is not an SQLite URL", "sqlite:///threadgate.db")
    return SqliteStore(path, clock=clock)


def model_factory(config: Config, clock: Clock) -> Callable[[Agent], Model]:
    """See `models_of`."""
    return models_of(config.models, config.gateway.data_dir, clock)


def models_of(sections: Mapping[str, ModelSection], data_dir: Path, clock: Clock) -> Callable[[Agent], Model]:
    """Agent -> its model with retries and failover; each endpoint is made once. Raises ConfigError
    for a script that cannot be read and for an SDK that is missing, before anybody waits for it."""
    for name, section in sections.items():
        _check_sdk(name, section)
    made = {
        name: _priced(_model(name, section, data_dir), section)
        for name, section in sections.items()
        if section.provider == "scripted"
    }
    resilient: dict[tuple[str, ...], Model] = {}

    def model_of(agent: Agent) -> Model:
        names = (agent.model, *agent.failover)
        if names not in resilient:
            for name in names:
                if name not in made:
                    made[name] = _priced(_model(name, sections[name], data_dir), sections[name])
            resilient[names] = ResilientModel([made[name] for name in names], clock=clock, names=names)
        return resilient[names]

    return model_of


def _priced(model: Model, section: ModelSection) -> Model:
    """The model with the configured price, or the one that is known for it at its vendor's own address."""
    price = list_price(model.id, section.base_url)
    if (own := section.price) is not None:
        price = Price(input=own.input, output=own.output, cached=own.cached, cache_write=own.cache_write)
    return model if price is None else Priced(model, price)


def _model(name: str, section: ModelSection, data_dir: Path) -> Model:
    match section.provider:
        case "scripted":
            from gateway.providers.scripted import ScriptedModel, load_script

            if section.script is None:
                raise ConfigError(f"models.{name}.script", "is missing", "a TOML or JSON script file")
            return ScriptedModel(load_script(Path(section.script)), id=section.model or "scripted")
        case "anthropic":
            from gateway.providers.anthropic import AnthropicModel

            return AnthropicModel(
                model=section.model,
                api_key=section.api_key or "",
                base_url=section.base_url,
                max_output_tokens=section.max_output_tokens,
                data_dir=data_dir,
                extra=section.extra,
            )
        case "openai" | "deepseek" | "kimi" | "glm":
            return _chat_model(name, section.provider, section, data_dir)
        case "gemini" if _compatible(section):
            return _chat_model(name, section.provider, section, data_dir)
        case "gemini":
            from gateway.providers.gemini import GeminiModel

            return GeminiModel(
                model=section.model,
                api_key=section.api_key or "",
                base_url=section.base_url,
                max_output_tokens=section.max_output_tokens,
                data_dir=data_dir,
                extra=section.extra,
            )
        case other:
            raise ConfigError(f"models.{name}.provider", f"{other} is not available in this version")


def _chat_model(name: str, provider: ChatProvider, section: ModelSection, data_dir: Path) -> Model:
    from gateway.providers.openai import ChatModel

    return ChatModel(
        provider=provider,
        model=section.model,
        api_key=section.api_key or "",
        base_url=section.base_url,
        max_output_tokens=section.max_output_tokens,
        data_dir=data_dir,
        extra=section.extra,
    )


def _check_sdk(name: str, section: ModelSection) -> None:
    """Raises ConfigError, naming the extra of this package, where the vendor's SDK is not installed. It is
    only looked for: to import one takes a second, and that can wait for the first message."""
    sdk, extra = "openai", "openai"
    if section.provider == "scripted":
        return
    if section.provider == "anthropic":
        sdk = extra = "anthropic"
    elif section.provider == "gemini" and not _compatible(section):
        sdk, extra = "google.genai", "gemini"
    parent = sdk.partition(".")[0]
    if find_spec(parent) is None or find_spec(sdk) is None:
        problem = f"{section.provider} needs the package {sdk}, which is not installed"
        raise ConfigError(f"models.{name}.provider", problem, f"pip install 'threadgate[{extra}]'")


def _compatible(section: ModelSection) -> bool:
    """Whether an address is that of Gemini's interface in the manner of OpenAI's."""
    return (section.base_url or "").rstrip("/").endswith("/openai")


def _channels(config: Config) -> list[Channel]:
    channels: list[Channel] = []
    discord, slack, telegram = config.channels.discord, config.channels.slack, config.channels.telegram
    if discord is not None:
        with extra("channels.discord", "discord"):
            channels.append(_discord(discord, config))
    if slack is not None:
        with extra("channels.slack", "slack"):
            channels.append(_slack(slack))
    if telegram is not None:
        with extra("channels.telegram", "telegram"):
            channels.append(_telegram(telegram))
    return channels


def _discord(section: DiscordSection, config: Config) -> Channel:
    from channels.discord.adapter import DiscordChannel

    return DiscordChannel(
        section.token,
        api_base=section.api_base,
        threads=section.threads,
        mention=section.mention,
        shards=section.shards or "auto",
        guilds=section.guilds,
        agents=tuple(config.agents),
        models=tuple(config.models),
        file_limit=section.file_limit,
    )


def _slack(section: SlackSection) -> Channel:
    from channels.slack.adapter import SlackChannel

    return SlackChannel(
        section.bot_token,
        app_token=section.app_token,
        signing_secret=section.signing_secret,
        api_base=section.api_base,
        listen=section.listen,
        connections=section.connections,
        mention=section.mention,
        file_limit=section.file_limit,
    )


def _telegram(section: TelegramSection) -> Channel:
    from channels.telegram.adapter import TelegramChannel
    from channels.telegram.webhook import WebhookSettings

    webhook = section.webhook
    return TelegramChannel(
        section.token,
        api_base=section.api_base,
        commands=menu(),
        file_limit=section.file_limit,
        webhook=None
        if webhook is None
        else WebhookSettings(
            url=webhook.url, secret=webhook.secret, host=webhook.listen[0], port=webhook.listen[1]
        ),
    )


def _web(config: Config) -> Web | None:
    section = config.channels.web
    if section is None:
        return None
    return Web(host=section.host, port=section.port, tokens=section.token)


def _rules(config: Config, operators: tuple[str, ...]) -> ConfiguredRules:
    users: dict[str, frozenset[str]] = {"web": frozenset("*"), "cli": frozenset("*")}
    approvers: dict[str, tuple[str, ...]] = {}
    workspaces = {"web": LOCAL, "cli": LOCAL}
    if config.webhooks:
        workspaces[WEBHOOK] = LOCAL
    on = config.channels
    chats = {"discord": on.discord, "slack": on.slack, "telegram": on.telegram}
    present = {name: section for name, section in chats.items() if section is not None}
    for name, section in present.items():
        users[name] = frozenset(
            as_role(f"{name}:{entry}").removeprefix(f"{name}:") for entry in section.users
        )
        approvers[name] = tuple(as_role(f"{name}:{entry}") for entry in section.approvers)
        workspaces[name] = ""  # every entry names its own
    if on.telegram is not None:
        workspaces["telegram"] = on.telegram.token.partition(":")[0]
    if on.web is not None and on.web.approvers:
        approvers["web"] = tuple(f"web:{entry}" for entry in on.web.approvers)
    threaded = {"discord": on.discord, "slack": on.slack}
    return ConfiguredRules(
        default_agent=config.gateway.default_agent,
        users=users,
        approvers=approvers,
        routes=[RouteRule(match=r.match, agent=r.agent, tenant=r.tenant) for r in config.routes],
        workspaces=workspaces,
        operators=operators,
        pairing=frozenset(name for name, section in present.items() if section.pairing),
        context={name: s.thread_context for name, s in threaded.items() if s is not None},
        hooks={name: section.events for name, section in config.webhooks.items()},
        threaded=frozenset(name for name, s in threaded.items() if s is not None),
        shared=frozenset({"web"} if on.web is not None and len(on.web.token) > 1 else ()),
    )
