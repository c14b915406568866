"""The configured tool servers, and which of their tools each agent has."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec

from channels.render.inert import visible
from gateway.agent import Agent
from gateway.app.tables import show
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


async def list_tools(config: Config, *, as_json: bool) -> int:
    """`threadgate mcp list`: what each server offers. 0 when all can be reached, else 1."""
    if not config.mcp:
        raise ConfigError("mcp", "no tool server is configured", "add a table [mcp.NAME]")
    settings = [replace(_settings(name, section), required=False) for name, section in config.mcp.items()]
    servers = ToolServers(settings, SystemClock(), config.gateway.data_dir)
    async with running(servers):
        down = servers.down()
        for name in servers.settings:
            if as_json:
                _print_json(name, redact(down.get(name, "")), servers.tools(name))
            elif name in down:
                sys.stdout.write(f"{visible(name)} is down: {visible(redact(down[name]))}\n")
            else:
                _print_tools(name, servers.tools(name))
    return 1 if down else 0


def _print_json(server: str, reason: str, tools: Sequence[Tool]) -> None:
    """One server a line. `reason`: why it is down."""
    line = {
        "server": server,
        "state": "down" if reason else "up",
        "reason": reason,
        "tools": []
        if reason
        else [
            {
                "tool": tool.name,
                "description": tool.description,
                "reads_only": tool.safe,
                "idempotent": tool.idempotent,
                "input_schema": tool.input_schema,
            }
            for tool in tools
        ],
    }
    sys.stdout.write(msgspec.json.encode(line).decode() + "\n")


def _print_tools(server: str, tools: Sequence[Tool]) -> None:
    rows = []
    for tool in tools:
        hints = "reads only" if tool.safe else "may be repeated" if tool.idempotent else ""
        rows.append((tool.name, hints, tool.description.strip().partition("\n")[0][:200]))
    if rows:
        show(("tool", "what it says of itself", "description"), rows, title=server)
    else:
        sys.stdout.write(f"{visible(server)} is there, and has no tools.\n")
