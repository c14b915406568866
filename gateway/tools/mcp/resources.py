"""The resources of an agent's servers: one tool that lists them, one that reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pydantic
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, InputRequiredResult, PaginatedRequestParams, ReadResourceResult

from gateway.errors import ToolError
from gateway.messages import Json
from gateway.tools.base import CallContext, Tool, ToolOutput
from gateway.tools.mcp.calls import server_error
from gateway.tools.mcp.content import Storage, resource_lines, resource_output
from gateway.tools.mcp.server import Connection, ToolServer

LIST, READ = "resource_list", "resource_read"
MOST_LISTED, MOST_PAGES = 200, 20  # of one server


def resource_tools(servers: Sequence[ToolServer], data_dir: Path) -> tuple[Tool, ...]:
    """For these servers, which have resources. They read only: where all of them are trusted, nobody is
    asked unless a rule says so."""
    by_name = {server.name: server for server in servers}
    storage = Storage(data_dir)
    unasked = all(server.settings.trust for server in servers)
    which: Json = {"type": "string", "enum": sorted(by_name), "description": "the tool server"}

    async def listed(args: Json, context: CallContext) -> str:
        wanted = [by_name[args["server"]]] if "server" in args else list(by_name.values())
        return "\n\n".join([await _list(server) for server in wanted])

    async def read(args: Json, context: CallContext) -> ToolOutput:
        server, uri = by_name[args["server"]], args["uri"]

        async def work(connection: Connection) -> ReadResourceResult:
            return await _read(connection, server.name, uri)

        return await resource_output(await server.request(work), storage)

    names = ", ".join(sorted(by_name))
    timeout = max(server.settings.timeout for server in servers)
    return (
        Tool(
            name=LIST,
            description=f"List the resources (files, records, pages) of the tool servers: {names}.",
            input_schema={"type": "object", "properties": {"server": which}, "additionalProperties": False},
            handler=listed,
            safe=True,
            timeout=timeout,
            unasked=unasked,
        ),
        Tool(
            name=READ,
            description=f"Read a resource of a tool server by its address, as {LIST} gives it.",
            input_schema={
                "type": "object",
                "properties": {"server": which, "uri": {"type": "string", "minLength": 1}},
                "required": ["server", "uri"],
                "additionalProperties": False,
            },
            handler=read,
            safe=True,
            timeout=timeout,
            unasked=unasked,
        ),
    )


async def _list(server: ToolServer) -> str:
    async def work(connection: Connection) -> list[str]:
        try:
            resources, more = await _pages(connection.client.session.list_resources, "resources")
            templates = await _templates(connection)
        except MCPError as error:
            raise server_error(server.name, error) from error
        lines = resource_lines(resources, templates)
        return [*lines, *(["(there are more, which are not listed)"] if more else [])]

    lines = await server.request(work)
    return "\n".join([f"{server.name}:", *(lines or ["(no resources)"])])


async def _templates(connection: Connection) -> list[Any]:
    try:
        templates, _ = await _pages(connection.client.session.list_resource_templates, "resource_templates")
    except MCPError as error:
        if error.code == METHOD_NOT_FOUND:
            return []
        raise
    return templates


async def _pages(ask: Any, field: str) -> tuple[list[Any], bool]:
    """The entries of all pages up to a limit, and whether there are more."""
    entries: list[Any] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await ask(params=PaginatedRequestParams(cursor=cursor))
        entries += getattr(page, field)
        if page.next_cursor is None or page.next_cursor == cursor:
            return entries[:MOST_LISTED], len(entries) > MOST_LISTED
        cursor = page.next_cursor
        if len(entries) >= MOST_LISTED:
            break
    return entries[:MOST_LISTED], True


async def _read(connection: Connection, server: str, uri: str) -> ReadResourceResult:
    try:
        result = await connection.client.session.read_resource(uri, allow_input_required=True)
    except MCPError as error:
        raise server_error(server, error) from error
    except pydantic.ValidationError as error:
        raise ToolError(f"the tool server {server!r} answered with what is no resource") from error
    if isinstance(result, InputRequiredResult):
        raise ToolError(f"the tool server {server!r} wants to ask a person first; only its tools can do that")
    return result
