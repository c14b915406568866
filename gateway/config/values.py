"""The configuration file as types. Every key that exists is a field here, and explained in
config.example.toml; durations are in seconds, paths are absolute, secrets are resolved."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from gateway.agent import Busy, Isolation
from gateway.config.parsing import (
    ClockTime,
    CronLine,
    Database,
    DatabaseUrl,
    DiscordPerson,
    DiscordUser,
    EventName,
    FilePath,
    FolderPath,
    Listen,
    NetworkEntry,
    Notified,
    Person,
    PlaceToTalk,
    QuietHours,
    Seconds,
    Secret,
    Shards,
    SilenceToken,
    Size,
    SlackPerson,
    SlackUser,
    SubagentEntry,
    TelegramPerson,
    TelegramUser,
    Text,
    TextTable,
    TimeZone,
    ToolServerEntry,
    ToolsReference,
    Url,
    WebhookSecret,
    WebPerson,
    WebTokens,
)
from gateway.gate import Operator, Reveal, Verdict

Mention = Literal["start", "always", "never"]
Count = Annotated[int, msgspec.Meta(ge=1)]
Amount = Annotated[float, msgspec.Meta(ge=0)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Provider = Literal["anthropic", "openai", "deepseek", "kimi", "glm", "gemini", "scripted"]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all tables of the file."""


class GatewaySection(Section, frozen=True, kw_only=True):
    """`[gateway]`. `default_agent` is filled in when there is only one agent."""

    database: Database = DatabaseUrl("sqlite:///threadgate.db")
    default_agent: Text = ""
    data_dir: FolderPath = Path("var")
    environment: Text = "production"
    drain: Seconds = 10.0
    operators: tuple[Person, ...] = ("cli:local", "web:local")


class PriceSection(Section, frozen=True, kw_only=True):
    """`[models.NAME.price]`: USD for a million tokens. `cached`, `cache_write`: like other input."""

    input: Amount
    output: Amount
    cached: Amount | None = None
    cache_write: Amount | None = None


class ModelSection(Section, frozen=True, kw_only=True):
    """`[models.NAME]`. `model` and `api_key` are needed by every provider but `scripted`. `extra`: further
    fields of every request to it. `price`: instead of the one that is known for the model."""

    provider: Provider
    model: Text = ""
    api_key: Secret | None = None
    base_url: Url | None = None
    max_output_tokens: Count | None = None
    extra: dict[str, Any] = {}
    script: FilePath | None = None
    price: PriceSection | None = None


class ConditionSection(Section, frozen=True, kw_only=True):
    """One entry of a rule's `when`."""

    field: Text
    op: Operator
    value: Any


class ScopeSection(Section, frozen=True, kw_only=True):
    """A rule's `scope`: glob patterns."""

    tenant: Text = "*"
    environment: Text = "*"
    agent: Text = "*"


class EscalateSection(Section, frozen=True, kw_only=True):
    """A rule's `escalate`."""

    after: Seconds
    notify: tuple[Notified, ...] = ()
    approvers: tuple[Person, ...] = ()


class RuleSection(Section, frozen=True, kw_only=True):
    """`[[agents.NAME.rules]]`."""

    tool: Text
    decision: Verdict
    when: tuple[ConditionSection, ...] = ()
    scope: ScopeSection = ScopeSection()
    approvers: tuple[Person, ...] = ()
    notify: tuple[Notified, ...] = ()
    expires: Seconds | None = None
    remind: tuple[Seconds, ...] = ()
    escalate: EscalateSection | None = None
    quiet: QuietHours | None = None
    quorum: Count = 1
    four_eyes: bool = False
    redact: tuple[Text, ...] = ()
    reveal: Reveal = "everyone"
    reason: Text = ""


class AgentSection(Section, frozen=True, kw_only=True):
    """`[agents.NAME]`."""

    model: Text = "main"
    failover: tuple[Text, ...] = ()
    summary_model: Text | None = None
    system_prompt: str = ""
    silence: SilenceToken | None = None
    tools: tuple[ToolsReference, ...] = ()
    skills: tuple[FolderPath, ...] = ()
    skills_budget: Annotated[int, msgspec.Meta(ge=100)] = 2_000
    post_to: tuple[Notified, ...] = ()
    subagents: tuple[SubagentEntry, ...] = ()
    mcp: tuple[ToolServerEntry, ...] | None = None
    tool_description: Text = ""
    isolation: Isolation = "inline"
    env: tuple[Text, ...] = ()
    memory: Size | None = None
    cpu: Seconds | None = None
    max_depth: Count = 3
    max_children: Count = 4
    max_subagent_calls: Count = 20
    subagent_rate: Count = 30
    busy: Busy = "queue"
    while_pending: Literal["queue", "supersede", "answer"] = "queue"
    on_denial: Literal["stop", "continue"] = "stop"
    on_unknown: Literal["ask", "report"] = "ask"
    max_steps: Count = 25
    max_tokens: Count | None = None
    deadline: Seconds | None = None
    stall_after: Annotated[int, msgspec.Meta(ge=2)] = 3
    loop_limit: Count = 4
    context_window: Count = 200_000
    max_output_tokens: Count | None = None
    default_decision: Verdict = "ask"
    rules: tuple[RuleSection, ...] = ()


class HttpFetchSection(Section, frozen=True, kw_only=True):
    """`[tools.http_fetch]`. `allow`: networks that are not public and may be reached all the same."""

    allow: tuple[NetworkEntry, ...] = ()


class ToolsSection(Section, frozen=True, kw_only=True):
    """`[tools]`: settings of built-in tools, for every agent that has them."""

    http_fetch: HttpFetchSection = HttpFetchSection()


class RouteSection(Section, frozen=True, kw_only=True):
    """`[[routes]]`."""

    match: Text
    agent: Text
    tenant: Text = ""


class WebhookSection(Section, frozen=True, kw_only=True):
    """`[webhooks.NAME]`."""

    url: Url
    secret: Secret
    events: tuple[EventName, ...] = ("approval:pending", "question:pending", "done")


class McpSection(Section, frozen=True, kw_only=True):
    """`[mcp.NAME]`: a server that is started (`command`, `env`, `cwd`) or reached (`url`, `headers`,
    `token`). `timeout`: seconds for one call, and for the start. `tools`: globs of those that are offered.
    `trust`: whether what its tools say of themselves may open the gate."""

    command: tuple[Text, ...] = ()
    env: TextTable = {}
    cwd: FolderPath | None = None
    url: Url | None = None
    headers: TextTable = {}
    token: Secret | None = None
    timeout: Seconds = 60.0
    required: bool = False
    tools: tuple[Text, ...] = ("*",)
    trust: bool = False


class ScheduleSection(Section, frozen=True, kw_only=True):
    """`[[schedules]]` with a `name`, or `[schedules.NAME]`: an instruction at times of the day (`at`, `cron`,
    on the clocks of `timezone`) or at an interval."""

    agent: Text
    thread: PlaceToTalk
    instruction: Text
    at: ClockTime | None = None
    every: Seconds | None = None
    cron: CronLine | None = None
    timezone: TimeZone = "UTC"
    missed: Literal["once", "skip"] = "once"
    tenant: Text = ""


class SlackSection(Section, frozen=True, kw_only=True):
    """`[channels.slack]`. With `app_token` over Socket Mode, else over HTTP: Slack posts to `listen`
    (plain HTTP, for whatever ends TLS in front of it) what it signs with `signing_secret`. `users`: ids
    and user groups; empty: nobody; `"*"`: every full member, guests and other organisations only by
    id. `mention`: whether the bot has to be mentioned to `start` a thread only, `always` or `never`.
    `connections`: sockets that are held open at once. `thread_context`: how many earlier messages are
    read when the bot is called into a thread. `pairing`, `file_limit`: see TelegramSection."""

    bot_token: Secret
    app_token: Secret | None = None
    signing_secret: Secret | None = None
    api_base: Url = "https://slack.com/api/"
    users: tuple[SlackUser, ...] = ()
    approvers: tuple[SlackPerson, ...] = ()
    pairing: bool = True
    mention: Mention = "start"
    thread_context: Annotated[int, msgspec.Meta(ge=0, le=100)] = 20
    connections: Annotated[int, msgspec.Meta(ge=1, le=10)] = 2
    listen: Listen = ("127.0.0.1", 3000)
    file_limit: Size = 20_000_000


class DiscordSection(Section, frozen=True, kw_only=True):
    """`[channels.discord]`. `threads`: a mention or /ask in a channel opens a thread; otherwise it is
    answered in place. `shards`: how many gateway connections; 0: as many as Discord says. `guilds`:
    servers that get the slash commands at once, for development; empty: everywhere. `mention`,
    `thread_context`, `pairing`, `file_limit`: see SlackSection."""

    token: Secret
    api_base: Url = "https://discord.com/api/v10"
    users: tuple[DiscordUser, ...] = ()
    approvers: tuple[DiscordPerson, ...] = ()
    pairing: bool = True
    mention: Mention = "start"
    threads: bool = True
    thread_context: Annotated[int, msgspec.Meta(ge=0, le=100)] = 20
    shards: Shards = 1
    guilds: tuple[DiscordUser, ...] = ()
    file_limit: Size = 20_000_000


class TelegramWebhookSection(Section, frozen=True, kw_only=True):
    """`[channels.telegram.webhook]`: be posted to instead of polling. `listen` is plain HTTP, for whatever
    ends TLS in front of it."""

    url: Url
    secret: WebhookSecret
    listen: Listen = ("127.0.0.1", 8081)


class TelegramSection(Section, frozen=True, kw_only=True):
    """`[channels.telegram]`. Empty `users`: nobody; `("*",)`: everyone. `pairing`: unknown people in
    private chats get a code that an operator or approver confirms. `file_limit`: bytes of a file that
    is fetched."""

    token: Secret
    api_base: Url = "https://api.telegram.org"
    users: tuple[TelegramUser, ...] = ()
    approvers: tuple[TelegramPerson, ...] = ()
    pairing: bool = True
    file_limit: Size = 20_000_000
    webhook: TelegramWebhookSection | None = None


class WebSection(Section, frozen=True, kw_only=True):
    """`[channels.web]`. `token` maps names to secrets; a single secret is named `default`."""

    host: Text = "127.0.0.1"
    port: Port = 8080
    token: WebTokens = {}
    approvers: tuple[WebPerson, ...] = ()


class ChannelsSection(Section, frozen=True, kw_only=True):
    """`[channels]`. A channel without a table is off."""

    slack: SlackSection | None = None
    discord: DiscordSection | None = None
    telegram: TelegramSection | None = None
    web: WebSection | None = None


class MetricsSection(Section, frozen=True, kw_only=True):
    """`[metrics]`: its presence switches /metrics on."""


class Document(Section, frozen=True, kw_only=True):
    """The whole file."""

    gateway: GatewaySection = GatewaySection()
    models: dict[str, ModelSection] = {}
    agents: dict[str, AgentSection] = {}
    tools: ToolsSection = ToolsSection()
    routes: tuple[RouteSection, ...] = ()
    webhooks: dict[str, WebhookSection] = {}
    mcp: dict[str, McpSection] = {}
    schedules: dict[str, ScheduleSection] = {}
    channels: ChannelsSection = ChannelsSection()
    metrics: MetricsSection | None = None
