"""One tool server: the task that owns its connection, and the state that others read.

The task enters the transport and the session and leaves them again, in this order and nowhere else; the
context managers under them insist on it. Others hand it work and wait for a future. When the connection
ends the task opens a new one, after a pause that grows; work that comes meanwhile does not wait for the
pause, but has one attempt made for it at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, TypeVar

import anyio
import httpx2
import pydantic
from mcp.client import Client, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    Implementation,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.clock import Clock
from gateway.log import excerpt, redact
from gateway.tools.mcp.calls import Ledger
from gateway.tools.mcp.http import HttpTransport, Sent, sent
from gateway.tools.mcp.remembered import Remembered
from gateway.tools.mcp.settings import ConnectionLost, ServerDown, ServerSettings
from gateway.tools.mcp.stdio import StdioTransport

State = Literal["starting", "up", "down", "stopped"]
T = TypeVar("T")
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 60.0)  # seconds between attempts, the last for all further ones
HEALTHY = 30.0  # seconds of a connection after which the pauses begin anew
STOP = 3.0  # seconds that a connection gets to end in its own order
RELIST = 5.0  # seconds that a call waits for a list that has changed meanwhile
SETTLE = 1.0  # seconds before a list that changed while it was read is read again
END_OF_JOBS = 1.0  # seconds that work gets to notice the end of its connection
MOST_TRIES = 3  # connections that are made for one piece of work
MOST_PAGES, MOST_TOOLS = 100, 2_000  # of one list of tools
LONGEST_REASON = 300  # characters
# What goes wrong between us and a server. Anything else is our own mistake, and logged as one.
EXPECTED = (
    MCPError,
    OSError,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    pydantic.ValidationError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    SubscriptionLost,
)
_log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Job:
    """Work for the connection; `done` has its result."""

    work: Callable[[Connection], Awaitable[Any]]
    done: asyncio.Future[Any]
    task: asyncio.Task[None] | None = None
    tries: int = 0


@dataclass(eq=False)
class Connection:
    """What there is while a connection stands. `lost`: it is of no more use."""

    client: Client
    ledger: Ledger
    transport: StdioTransport | HttpTransport
    lost: bool = False
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def alive(self) -> bool:
        """Whether a request may be sent."""
        return not self.lost and (not isinstance(self.transport, StdioTransport) or self.transport.alive)


class ToolServer:
    """`start` and `stop` are for who made it; `request` for everybody. `tools`: what the server has, as it
    describes them, the same tuple while nothing changed, and the last known while it is down."""

    def __init__(self, settings: ServerSettings, clock: Clock, data_dir: Path) -> None:
        self.settings, self._clock = settings, clock
        self._remembered = Remembered(data_dir, settings)
        self.state: State = "starting"
        self.reason = ""  # why it is down
        self.tools: tuple[Tool, ...] = self._remembered.load()
        self.has_resources = False
        self._jobs: deque[_Job] = deque()
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._failures = 0
        self._mode = "auto"
        self._owner: asyncio.Task[None] | None = None
        self._relisting: asyncio.Task[None] | None = None
        self._list_changed = False
        self._fresh = asyncio.Event()  # the list is not just being read anew
        self._fresh.set()
        self._tried = asyncio.Event()

    # ---- for others

    @property
    def name(self) -> str:
        return self.settings.name

    def start(self) -> None:
        """Begin to connect."""
        self._owner = asyncio.get_running_loop().create_task(self._own(), name=f"mcp {self.name}")

    async def tried(self) -> None:
        """Wait for the end of the first attempt, however it went."""
        await self._tried.wait()

    async def stop(self) -> None:
        """End the connection, and a process that was started for it."""
        self._stopping.set()
        self._wake.set()
        if self._owner is None:
            return
        await asyncio.wait({self._owner}, timeout=STOP)
        if not self._owner.done():
            self._owner.cancel()
            await asyncio.wait({self._owner}, timeout=STOP)

    async def request(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Have work done over the connection; one is made first where there is none.

        Raises ServerDown, ConnectionLost, and what the work raises."""
        result = await self._submit(work)
        if not self._fresh.is_set():  # what the call has changed counts from the next step on
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._fresh.wait(), RELIST)
        return result

    async def _submit(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        if self._stopping.is_set() or self._owner is None or self._owner.done():
            raise ServerDown(self.name, "it was stopped")
        job = _Job(work=work, done=asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._wake.set()
        try:
            result: T = await job.done
        finally:
            if job.task is not None:
                job.task.cancel()  # the session tells the server; no harm once it is done
        return result

    # ---- the owner

    async def _own(self) -> None:
        try:
            while not self._stopping.is_set():
                reason, stood = await self._connect_once()
                if self._stopping.is_set():
                    break
                self._failures = 1 if stood is not None and stood >= HEALTHY else self._failures + 1
                self._down(reason, tried=stood is None)
                await self._pause()
        finally:
            self._stopping.set()
            self.state = "stopped"
            self._tried.set()
            if self._relisting is not None:
                self._relisting.cancel()
            for job in self._take():
                _fail(job, ServerDown(self.name, "it was stopped"))

    async def _connect_once(self) -> tuple[str, float | None]:
        """One connection from its beginning to its end: why it ended, and the seconds that it stood; None
        when it never did."""
        transport = self._transport()
        connection: Connection | None = None
        began: float | None = None
        reason = "the connection ended"
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.settings.timeout):
                    connection = await self._open(stack, transport)
                began = self._clock.monotonic()
                self._up()
                await self._serve(connection)
        except TimeoutError as error:
            # An older server may keep silent when it is asked for the newer protocol.
            self._mode = "legacy" if self._mode == "auto" else "auto"
            reason = self._told(error)
        except Exception as error:  # whatever a server does costs its own connection, nothing else
            reason = self._told(error)
        finally:
            if connection is not None:
                await _end(connection.tasks)
        stood = None if began is None else self._clock.monotonic() - began
        return self._why(transport, reason), stood

    def _transport(self) -> StdioTransport | HttpTransport:
        if self.settings.command:
            return StdioTransport(self.settings, self._wake.set)
        return HttpTransport(self.settings)

    async def _open(self, stack: AsyncExitStack, transport: StdioTransport | HttpTransport) -> Connection:
        ledger = Ledger(self.name)
        client = await stack.enter_async_context(
            Client(
                transport if isinstance(transport, StdioTransport) else transport.open(),
                elicitation_callback=ledger.elicited,
                message_handler=self._heard,
                client_info=Implementation(name="threadgate", version=version("threadgate")),
                mode=self._mode,
                cache=None,
            )
        )
        connection = Connection(client=client, ledger=ledger, transport=transport)
        self._list_changed = False
        self._learn(await _all_tools(connection))
        self.has_resources = client.server_capabilities.resources is not None
        return connection

    async def _serve(self, connection: Connection) -> None:
        """Begin the work that comes in, until the connection is of no more use."""
        listening = self._listening(connection)
        try:
            while not self._stopping.is_set() and connection.alive:
                while self._jobs and connection.alive:
                    self._begin(self._jobs.popleft(), connection)
                await self._wake.wait()
                self._wake.clear()
        finally:
            if listening is not None:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)

    def _begin(self, job: _Job, connection: Connection) -> None:
        if job.done.done():
            return
        job.tries += 1
        job.task = asyncio.get_running_loop().create_task(self._run(job, connection))
        connection.tasks.add(job.task)
        job.task.add_done_callback(connection.tasks.discard)

    async def _run(self, job: _Job, connection: Connection) -> None:
        requests = Sent()
        sent.set(requests)
        try:
            result = await job.work(connection)
        except asyncio.CancelledError:
            job.done.cancel()
            raise
        except Exception as error:  # carried to whoever waits for the work
            if requests.forgotten or isinstance(error, ConnectionLost):
                self._lose(connection)
            if requests.forgotten and job.tries < MOST_TRIES and not job.done.done():
                self._jobs.appendleft(job)
            else:
                _fail(job, error)
        else:
            if not job.done.done():
                job.done.set_result(result)

    def _lose(self, connection: Connection) -> None:
        connection.lost = True
        self._wake.set()

    async def _pause(self) -> None:
        """Wait before the next attempt; work that comes ends the wait."""
        delay = PAUSES[min(self._failures, len(PAUSES)) - 1]
        pause = asyncio.ensure_future(self._clock.sleep(delay))
        try:
            while not (pause.done() or self._jobs or self._stopping.is_set()):
                self._wake.clear()
                woken = asyncio.ensure_future(self._wake.wait())
                await asyncio.wait({pause, woken}, return_when=asyncio.FIRST_COMPLETED)
                woken.cancel()
        finally:
            pause.cancel()

    # ---- what is known of it

    def _up(self) -> None:
        self.state, self.reason = "up", ""
        self._tried.set()
        _log.info("tool server %s is up: %d tools", self.name, len(self.tools))

    def _down(self, reason: str, *, tried: bool) -> None:
        """`tried`: an attempt failed. What waited for it is told; what waits for the next is not."""
        if (self.state, self.reason) != ("down", reason):
            _log.warning("tool server %s is down: %s", self.name, reason)
        self.state, self.reason = "down", reason
        self._tried.set()
        for job in self._take():
            job.tries += 1
            if tried or job.tries >= MOST_TRIES:
                _fail(job, ServerDown(self.name, reason))
            else:
                self._jobs.append(job)

    def _take(self) -> list[_Job]:
        jobs, self._jobs = list(self._jobs), deque()
        return jobs

    def _learn(self, tools: list[Tool]) -> None:
        if list(self.tools) != tools:
            self.tools = tuple(tools)
            self._remembered.save(self.tools)

    def _told(self, error: Exception) -> str:
        """Why a connection ended or never stood, for people."""
        leaves = list(_leaves(error))
        for leaf in leaves:
            if not isinstance(leaf, EXPECTED) and not isinstance(leaf, RuntimeError):
                _log.error("tool server %s: an unexpected error", self.name, exc_info=leaf)
        first = leaves[0]
        match first:
            case TimeoutError():
                return f"it did not answer within {self.settings.timeout:g} s"
            case MCPError(code=code) if code == CONNECTION_CLOSED:
                return "the connection was closed"
            case pydantic.ValidationError():
                return "it answered with what does not belong to the protocol"
        said = str(first) or type(first).__name__
        return excerpt(" ".join(said.split()), LONGEST_REASON)

    def _why(self, transport: StdioTransport | HttpTransport, reason: str) -> str:
        if isinstance(transport, HttpTransport):
            return transport.fault or reason
        if not (transport.hung_up or transport.fault):
            return reason
        if transport.last_remark:
            _log.debug("tool server %s said last: %s", self.name, transport.last_remark)
        return transport.how_it_ended

    # ---- lists that change

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._relist()

    def _listening(self, connection: Connection) -> asyncio.Task[None] | None:
        """Newer servers say what has changed only to who asks to be told."""
        tools = connection.client.server_capabilities.tools
        if connection.client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None:
            return None
        return (
            asyncio.get_running_loop().create_task(self._listen(connection)) if tools.list_changed else None
        )

    async def _listen(self, connection: Connection) -> None:
        while True:
            try:
                async with connection.client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._relist()
            except EXPECTED as error:
                _log.debug("tool server %s no longer says what changes: %s", self.name, redact(str(error)))
            await self._clock.sleep(HEALTHY)
            self._relist()  # nobody tells what has changed meanwhile

    def _relist(self) -> None:
        self._list_changed = True
        if self._relisting is None and not self._stopping.is_set():
            self._fresh.clear()
            self._relisting = asyncio.get_running_loop().create_task(self._read_lists())
            self._relisting.add_done_callback(self._relisted)

    async def _read_lists(self) -> None:
        while self._list_changed:
            self._list_changed = False
            async with asyncio.timeout(self.settings.timeout):
                self._learn(await self._submit(_all_tools))
            self._fresh.set()
            _log.info("tool server %s has changed its tools: %d", self.name, len(self.tools))
            if self._list_changed:
                await self._clock.sleep(SETTLE)

    def _relisted(self, task: asyncio.Task[None]) -> None:
        self._relisting = None
        self._fresh.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("the tools of %s could not be listed: %s", self.name, redact(str(error)))


def _fail(job: _Job, error: Exception) -> None:
    if not job.done.done():
        job.done.set_exception(error)


async def _end(tasks: set[asyncio.Task[None]]) -> None:
    """Let work notice that its connection has ended, and end what does not."""
    if tasks:
        await asyncio.wait(set(tasks), timeout=END_OF_JOBS)
    left = list(tasks)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


async def _all_tools(connection: Connection) -> list[Tool]:
    """All pages of the list. Raises MCPError."""
    if connection.client.server_capabilities.tools is None:
        return []
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page: ListToolsResult = await connection.client.session.list_tools(
            params=PaginatedRequestParams(cursor=cursor)
        )
        tools += page.tools
        if page.next_cursor is None or page.next_cursor == cursor or len(tools) >= MOST_TOOLS:
            break
        cursor = page.next_cursor
    return tools[:MOST_TOOLS]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
