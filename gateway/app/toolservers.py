"""The configured tool servers, and which of their tools each agent has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from channels.render.inert import visible
from gateway.agent import Agent
from gateway.clock import Clock, SystemClock
from gateway.config import Config
from gateway.config.values import McpSection
from gateway.errors import ConfigError
from gateway.log import redact
from gateway.tools.base import Tool
from gateway.tools.mcp import AgentTools, Selection, ServerSettings, ToolServers


def tool_servers(config: Config, clock: Clock) -> ToolServers:
    """Those of the configuration, not started."""
    settings = [_settings(name, section) for name, section in config.mcp.items()]
    return ToolServers(settings, clock, config.gateway.data_dir)


def _settings(name: str, section: McpSection) -> ServerSettings:
    return ServerSettings(
        name=name,
        command=section.command,
        env=section.env,
        cwd=section.cwd,
        url=section.url or "",
        headers=section.headers,
        token=section.token or "",
        timeout=section.timeout,
        required=section.required,
        tools=section.tools,
        trust=section.trust,
    )


def with_tool_servers(agents: Mapping[str, Agent], config: Config, servers: ToolServers) -> dict[str, Agent]:
    """The agents, each with the tools of the servers that it may use."""
    return {name: _with(agent, config, servers) for name, agent in agents.items()}


def _with(agent: Agent, config: Config, servers: ToolServers) -> Agent:
    entries = config.agents[agent.name].mcp
    chosen = None if entries is None else [Selection(server=name, tools=glob) for name, glob in entries]
    if not servers.settings or chosen == []:
        return agent
    return replace(agent, sources=(*agent.sources, AgentTools(servers, chosen)))


@asynccontextmanager
async def running(servers: ToolServers | None) -> AsyncIterator[None]:
    """The servers for as long as one thing is done; what can be reached is there when it begins. Raises
    RequiredToolServerDown, ConfigError."""
    if servers is None:
        yield
        return
    await servers.start(patience=None)
    try:
        yield
    finally:
        await servers.stop()


async def list_tools(config: Config) -> int:
    """`threadgate mcp list`: what each server offers. 0 when all can be reached, else 1."""
    if not config.mcp:
        raise ConfigError("mcp", "no tool server is configured", "add a table [mcp.NAME]")
    settings = [replace(_settings(name, section), required=False) for name, section in config.mcp.items()]
    servers, console = ToolServers(settings, SystemClock(), config.gateway.data_dir), Console()
    async with running(servers):
        down = servers.down()
        for name in servers.settings:
            if name in down:
                console.print(Text(visible(f"{name} is down: {redact(down[name])}\n")))
            else:
                console.print(_table(name, servers.tools(name)))
    return 1 if down else 0


def _table(server: str, tools: Sequence[Tool]) -> Table:
    table = Table(
        "tool", "what it says of itself", "description", title=Text(visible(server)), title_justify="left"
    )
    for tool in tools:
        hints = "reads only" if tool.safe else "may be repeated" if tool.idempotent else ""
        first = tool.description.strip().partition("\n")[0]
        table.add_row(Text(visible(tool.name), overflow="fold"), hints, Text(visible(first[:200])))
    return table
