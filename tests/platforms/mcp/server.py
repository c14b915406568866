"""A tool server made with the SDK's server side, as a process: `python server.py FOLDER [legacy] [http]`.

FOLDER/ran holds a line for each tool that ran. With FOLDER/closed it does not start. `legacy`: it does not
know the newer protocol. `http`: it listens on a free port of the loopback and writes it to FOLDER/port.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.mcpserver.utilities.types import Audio, Image
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import METHOD_NOT_FOUND, ErrorData, JSONRPCError, ToolAnnotations
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse

FOLDER = Path(sys.argv[1])
if (FOLDER / "closed").exists():
    sys.exit("closed today")
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
READS = ToolAnnotations(read_only_hint=True)
server = MCPServer("house", log_level="ERROR")


class Size(BaseModel):
    """A form of one field."""

    size: int = Field(title="Size", ge=1, le=9)


class Order(BaseModel):
    """A form of several fields."""

    name: str
    count: int = 2
    gift: bool = False


def note(what: str) -> None:
    """Leave a line on disk."""
    with (FOLDER / "ran").open("a") as ran:
        ran.write(f"{what}\n")


@server.tool(annotations=READS)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    note(f"add {a} {b}")
    return a + b


@server.tool()
def write(text: str) -> str:
    """Write something down."""
    note(f"write {text}")
    return f"written: {text}"


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def put(text: str) -> str:
    """Put something in its place."""
    return text


async def _die(what: str) -> str:
    note(what)
    if not (FOLDER / "spare").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


@server.tool()
async def die() -> str:
    """Be killed during the call, unless FOLDER/spare is there."""
    return await _die("die")


@server.tool(annotations=READS)
async def die_reading() -> str:
    """The same, and reads only. Lives the second time."""
    again = (FOLDER / "ran").exists() and "die_reading" in (FOLDER / "ran").read_text()
    note("die_reading")
    if not again:
        os.kill(os.getpid(), signal.SIGKILL)
    return "read after all"


@server.tool()
async def die_after() -> str:
    """Answer, and be killed right after the answer is written."""
    asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGKILL)
    return "last words"


@server.tool()
async def hang() -> str:
    """Never end; say when it is cancelled."""
    note("hang")
    try:
        await asyncio.Event().wait()
    except BaseException:
        note("hang cancelled")
        raise
    return ""


@server.tool()
async def together(size: int) -> str:
    """End when so many calls are under way."""
    together.running += 1  # type: ignore[attr-defined]
    if together.running >= size:  # type: ignore[attr-defined]
        together.all_here.set()  # type: ignore[attr-defined]
    await together.all_here.wait()  # type: ignore[attr-defined]
    return f"{size} together"


together.running = 0  # type: ignore[attr-defined]
together.all_here = asyncio.Event()  # type: ignore[attr-defined]


@server.tool()
def environment() -> dict[str, str]:
    """What the process was given."""
    return dict(os.environ)


@server.tool(structured_output=False)
def picture() -> list[Any]:
    """A text, an image and a sound."""
    return ["look", Image(data=PNG, format="png"), Audio(data=b"RIFFxxxx", format="wav")]


@server.tool()
def fail() -> str:
    """Go wrong."""
    raise ToolError("it went wrong")


@server.tool()
def big(size: int) -> str:
    """A long text."""
    return "x" * size


@server.tool()
async def grow(context: Context) -> str:
    """Add a tool named `grown`."""

    def grown() -> str:
        """New."""
        return "grown up"

    server.add_tool(grown)
    await context.notify_tools_changed()
    if "legacy" in sys.argv:
        await context.session.send_tool_list_changed()
    return "ok"


@server.tool()
async def ask_size(context: Context) -> str:
    """Ask before anything is done, the older way."""
    answer = await context.elicit("How large?", Size)
    note(f"asked {answer.action}")
    return f"size {answer.data.size}" if answer.action == "accept" else answer.action


@server.tool()
async def ask_twice(context: Context) -> str:
    """Ask the same thing twice."""
    first = await context.elicit("How large?", Size)
    if first.action != "accept":
        return first.action
    second = await context.elicit("How large?", Size)
    return f"{first.data.size} and {second.data.size}" if second.action == "accept" else second.action


@server.tool()
async def ask_order(context: Context) -> str:
    """Ask for several values."""
    answer = await context.elicit("What shall it be?", Order)
    return answer.data.model_dump_json() if answer.action == "accept" else answer.action


def _size() -> Elicit[Size]:
    return Elicit("Which size?", Size)


@server.tool()
async def choose(size: Annotated[Size, Resolve(_size)]) -> str:
    """Ask the newer way."""
    note(f"chose {size.size}")
    return f"chosen {size.size}"


@server.resource("note://{name}", mime_type="text/plain")
def a_note(name: str) -> str:
    """A note by its name."""
    return f"the note {name}"


@server.resource("file:///picture.png", name="picture", mime_type="image/png")
def a_picture() -> bytes:
    """A picture."""
    return PNG


class Older:
    """A stream without what only newer clients ask; they are told that there is no such thing."""

    def __init__(self, incoming: Any, outgoing: Any) -> None:
        self._incoming, self._outgoing = incoming, outgoing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._incoming, name)

    def __aiter__(self) -> Older:
        return self

    async def __anext__(self) -> Any:
        while True:
            item = await self._incoming.__anext__()
            message = getattr(item, "message", None)
            if message is None or getattr(message, "method", None) != "server/discover":
                return item
            error = ErrorData(code=METHOD_NOT_FOUND, message="Method not found")
            reply = JSONRPCError(jsonrpc="2.0", id=message.id, error=error)
            await self._outgoing.send(SessionMessage(reply))

    async def __aenter__(self) -> Older:
        await self._incoming.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._incoming.__aexit__(*error)


async def _serve_older() -> None:
    low = server._lowlevel_server
    changes = NotificationOptions(tools_changed=True)
    async with stdio_server() as (incoming, outgoing):
        await low.run(Older(incoming, outgoing), outgoing, low.create_initialization_options(changes))


class Door:
    """Notes what each request carries; `legacy`: refuses those of the newer protocol."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            note(f"header {headers.get('authorization')} {headers.get('x-team')}")
            if os.environ.get("TOKEN") and headers.get("authorization") != f"Bearer {os.environ['TOKEN']}":
                return await PlainTextResponse("no", status_code=401)(scope, receive, send)
            if "legacy" in sys.argv and headers.get("mcp-protocol-version", "").startswith("2026"):
                return await PlainTextResponse("no", status_code=400)(scope, receive, send)
        return await self._app(scope, receive, send)


async def _serve_http() -> None:
    port = int(os.environ.get("PORT", "0"))
    app = Door(server.streamable_http_app())
    runner = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical"))
    task = asyncio.ensure_future(runner.serve())
    while not runner.started:  # noqa: ASYNC110 - the server gives no event
        await asyncio.sleep(0.01)
    (FOLDER / "port.part").write_text(str(runner.servers[0].sockets[0].getsockname()[1]))
    (FOLDER / "port.part").rename(FOLDER / "port")
    await task


if __name__ == "__main__":
    note(f"started {os.getpid()}")
    if "http" in sys.argv:
        asyncio.run(_serve_http())
    elif "legacy" in sys.argv:
        asyncio.run(_serve_older())
    else:
        server.run("stdio")
