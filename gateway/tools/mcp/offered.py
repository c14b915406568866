"""A server's tools as ours: names, hints, and the handler that has the call made."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from mcp_types import CallToolResult
from mcp_types import Tool as RemoteTool

from gateway.errors import ConfigError
from gateway.log import redact
from gateway.messages import Json
from gateway.tools.base import CallContext, Handler, Said, Tool, ToolOutput
from gateway.tools.mcp.calls import Call, run_call
from gateway.tools.mcp.content import Storage, tool_output
from gateway.tools.mcp.server import Connection, ToolServer
from gateway.tools.mcp.settings import ConnectionLost

LONGEST_DESCRIPTION = 10_000  # characters
_log = logging.getLogger(__name__)


def offered_tools(server: ToolServer, data_dir: Path) -> tuple[Tool, ...]:
    """The tools that the configuration lets through. One that cannot be used is left out, the rest stays."""
    tools: dict[str, Tool] = {}
    for remote in server.tools:
        if not server.settings.offers(remote.name):
            continue
        if remote.name in tools:
            _log.warning("tool server %s has two tools %r; the second is left out", server.name, remote.name)
            continue
        try:
            tools[remote.name] = _tool(server, remote, Storage(data_dir))
        except ConfigError as error:
            _log.warning("tool server %s: a tool is left out: %s", server.name, redact(str(error))[:500])
    return tuple(tools.values())


def _tool(server: ToolServer, remote: RemoteTool, storage: Storage) -> Tool:
    """Raises ConfigError for a name or a schema that cannot be used."""
    hints = remote.annotations
    reads = hints is not None and hints.read_only_hint is True
    again = hints is not None and hints.idempotent_hint is True
    if remote.input_schema.get("type") != "object":
        raise ConfigError(f"tool {remote.name!r}", "its schema does not describe an object")
    return Tool(
        name=server.settings.full_name(remote.name),
        description=_description(server, remote),
        input_schema=remote.input_schema,
        handler=_handler(server, remote.name, storage, again=reads),
        safe=reads,
        idempotent=reads or again,
        timeout=server.settings.timeout,
        unasked=reads and server.settings.trust,
    )


def _description(server: ToolServer, remote: RemoteTool) -> str:
    title = remote.title or (remote.annotations.title if remote.annotations is not None else None)
    text = (remote.description or title or "").strip()
    return (text or f"The tool {remote.name} of {server.name}.")[:LONGEST_DESCRIPTION]


def _handler(server: ToolServer, tool: str, storage: Storage, *, again: bool) -> Handler:
    async def call(args: Json, context: CallContext) -> ToolOutput:
        try:
            result = await _result(server, tool, args, context.said)
        except ConnectionLost:
            if not again:
                raise
            result = await _result(server, tool, args, context.said)  # it only reads
        return await tool_output(result, storage)

    return call


async def _result(server: ToolServer, tool: str, args: Json, said: Mapping[str, Said]) -> CallToolResult:
    """One call; again, beside no other, when it could not be told from others that were asked about."""
    alone = False
    while True:
        work = partial(_work, call=Call(server.name, tool, args, said), alone=alone)
        result = await server.request(work)
        if result is not None:
            return result
        alone = True


async def _work(connection: Connection, *, call: Call, alone: bool) -> CallToolResult | None:
    return await run_call(connection.client.session, connection.ledger, call, alone=alone)
