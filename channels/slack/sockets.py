"""Socket Mode: several connections, so that there is one while another is renewed.

The library's client carries the frames; its way of reconnecting is replaced. That one closes the old socket
only when it has the new one's address, tries for ever with the same pause, cannot tell a refused token from a
broken network, and notices a connection that was cut only at the next ping.

Each of our places has at most one socket at a time. One that Slack wants renewed lets what is in hand end
and is closed before its successor is opened, one place after the other; one from which nothing is heard
any more is given up. What was not acknowledged comes again by another.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

import aiohttp
from slack_bolt.adapter.socket_mode.async_internals import send_async_response
from slack_bolt.response import BoltResponse
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient

from channels.base import ChannelBusy, ChannelDown, ChannelError
from channels.slack.errors import Refused, SocketModeOff, network_error
from channels.slack.receiving import State
from channels.slack.redact import LIBRARY, redacted

log = logging.getLogger("channels.slack")

PING_SECONDS: Final = 5.0  # between two pings of ours
SILENCE: Final = 3  # pings without any answer after which a connection counts as dead
HELLO_SECONDS: Final = 15.0  # for a new connection to say hello
DRAIN_SECONDS: Final = 3.0  # for what is in hand when a connection is renewed
CALM: Final = 10.0  # seconds after which a connection counts as one that held
LONGEST: Final = 60.0  # seconds between two tries when connections do not hold
LONGEST_DOWN: Final = 30.0  # while the network is away: back well within a minute

Ending = Literal["renew", "lost", "silent", "off", "stopped"]


class Socket(SocketModeClient):
    """One WebSocket from its opening to its end. `over` is how it ended."""

    def __init__(
        self,
        address: str,
        web_client: AsyncWebClient,
        take: Callable[[SocketModeRequest], Awaitable[BoltResponse]],
        *,
        ping_seconds: float,
    ) -> None:
        super().__init__(
            app_token="",
            logger=LIBRARY,
            web_client=web_client,
            auto_reconnect_enabled=False,
            ping_interval=ping_seconds,
        )
        self.wss_uri = address
        self.hello = asyncio.Event()
        self.over: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.heard_at = time.monotonic()
        self._take = take
        self._in_hand: set[asyncio.Task[None]] = set()

    async def connect(self) -> None:
        """Open it. Raises aiohttp.ClientError, OSError."""
        if self.wss_uri is None:
            raise RuntimeError("a socket is opened once")
        address, self.wss_uri = self.wss_uri, None
        self.current_session = await self.aiohttp_client_session.ws_connect(
            address, autoping=False, proxy=self.proxy, ssl=self.web_client.ssl or True
        )
        self.heard_at = time.monotonic()
        self.message_receiver = asyncio.ensure_future(self.receive_messages())
        self.current_session_monitor = asyncio.ensure_future(self.monitor_current_session())

    async def connect_to_new_endpoint(self, force: bool = False) -> None:
        """Called by the library when Slack says `disconnect`: whoever owns this opens another."""
        self.end("renew")

    async def receive_messages(self) -> None:
        """Read until it is closed. Every frame is a sign of life."""
        session = self.current_session
        if session is None:
            return
        try:
            async for message in session:
                self.heard_at = time.monotonic()
                if message.type == aiohttp.WSMsgType.TEXT:
                    await self.enqueue_message(message.data)
                elif message.type == aiohttp.WSMsgType.PING:
                    await session.pong(message.data)
        except (aiohttp.ClientError, ConnectionError) as error:
            log.info("slack: a connection broke (%s)", type(error).__name__)
        finally:
            self.end("lost")

    async def monitor_current_session(self) -> None:
        """Ping, and see whether anything is heard."""
        session = self.current_session
        while session is not None and not self.over.done():
            with contextlib.suppress(aiohttp.ClientError, ConnectionError, TimeoutError):
                async with asyncio.timeout(self.ping_interval):
                    await session.ping(b"threadgate")
            await asyncio.sleep(self.ping_interval)
            if time.monotonic() - self.heard_at > SILENCE * self.ping_interval:
                self.end("silent")

    async def run_message_listeners(self, message: dict[str, Any], raw_message: str) -> None:
        """Take one frame. In place of the library's, which knows no reasons and swallows what fails."""
        kind = message.get("type")
        if kind == "hello":
            self.hello.set()
        elif kind == "disconnect":
            self.end("off" if message.get("reason") == "link_disabled" else "renew")
        elif (request := SocketModeRequest.from_dict(message)) is not None:
            task = asyncio.current_task()
            if task is not None:
                self._in_hand.add(task)
                task.add_done_callback(self._in_hand.discard)
            await self._answer(request)
        else:
            log.debug("slack: a frame of the kind %r was ignored", kind)

    def end(self, how: Ending) -> None:
        """It is over; the first reason counts."""
        if not self.over.done():
            self.over.set_result(how)

    async def finish(self) -> None:
        """Close it for good, what is in hand first."""
        if self._in_hand and not (self.current_session is None or self.current_session.closed):
            await asyncio.wait(set(self._in_hand), timeout=DRAIN_SECONDS)
        self.end("stopped")
        self.closed = True
        ours = [self.message_processor, self.message_receiver, self.current_session_monitor]
        tasks = [*(task for task in ours if task is not None), *self._in_hand]
        for task in tasks:
            task.cancel()
        with contextlib.suppress(TimeoutError):  # to a silent peer no farewell arrives
            async with asyncio.timeout(1.0):
                if self.current_session is not None:
                    await self.current_session.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.aiohttp_client_session.close()

    async def _answer(self, request: SocketModeRequest) -> None:
        response = await self._take(request)
        try:
            await send_async_response(self, request, response, time.time())
        except (aiohttp.ClientError, ConnectionError) as error:
            log.info("slack: an acknowledgement was not sent (%s); it comes again", type(error).__name__)


class Sockets:
    """All connections of one app. `address()` asks where to open one and raises ChannelError; `take` answers
    what comes. on_state: told "up" when the first connection stands, "down" when none is left."""

    def __init__(
        self,
        *,
        address: Callable[[], Awaitable[str]],
        take: Callable[[SocketModeRequest], Awaitable[BoltResponse]],
        web_client: AsyncWebClient,
        connections: int,
        ping_seconds: float = PING_SECONDS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        on_state: Callable[[State], None] = lambda state: None,
    ) -> None:
        self._address, self._take, self._web_client = address, take, web_client
        self._connections, self._ping_seconds = connections, ping_seconds
        self._sleep, self._monotonic, self._on_state = sleep, monotonic, on_state
        self._live: set[Socket] = set()
        self._one_renews = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._said = False  # whether trouble was reported and is not over

    async def run(self) -> None:
        """Keep the connections until `stop`. Raises Refused when only the owner can mend it."""
        places = [
            asyncio.create_task(self._place(), name=f"slack socket {number}")
            for number in range(self._connections)
        ]
        try:
            done, _ = await asyncio.wait(places, return_when=asyncio.FIRST_EXCEPTION)
            for place in done:
                place.result()
        finally:
            self.stop()
            for place in places:
                place.cancel()
            await asyncio.gather(*places, return_exceptions=True)
            await asyncio.gather(*map(self._close, list(self._live)))

    def stop(self) -> None:
        """Close every connection, what is in hand first."""
        self._stopping.set()
        for socket in self._live:
            socket.end("stopped")

    async def _place(self) -> None:
        """One socket after the other."""
        failures = 0
        old: Socket | None = None
        while not self._stopping.is_set():
            opened = self._monotonic()
            try:
                ending, old = await self._one(old)
            except Refused:
                raise
            except ChannelBusy as busy:
                await self._pause(busy.retry_after)
                continue
            except ChannelError as error:
                failures += 1
                self._trouble(error)
                await self._pause(_backoff(failures, LONGEST_DOWN))
                continue
            if ending == "off":
                raise SocketModeOff
            if ending == "silent":
                log.warning("slack: nothing was heard on a connection any more; opening another")
            failures = 0 if self._monotonic() - opened >= CALM else failures + 1
            pause = _backoff(failures, LONGEST)
            if old is not None and pause > 0:  # Slack will not leave it open for so long
                await self._close(old)
            await self._pause(pause)

    async def _one(self, old: Socket | None) -> tuple[Ending, Socket | None]:
        """Open a socket and keep it to its end: how it ended, and itself when it is still to be closed, which
        the next one does with `old`. Raises ChannelError."""
        async with self._one_renews:  # Slack wants all of them renewed at about the same time
            if old is not None:
                await self._close(old, renewed=True)
            if self._stopping.is_set():
                return "stopped", None
            socket = await self._open()
        ending: Ending = "lost"
        try:
            ending = await asyncio.shield(socket.over)
        finally:
            if ending != "renew":
                await self._close(socket)
        return ending, socket if ending == "renew" else None

    async def _open(self) -> Socket:
        address = await self._address()
        socket = Socket(address, self._web_client, self._take, ping_seconds=self._ping_seconds)
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                await socket.connect()
                await self._greeted(socket)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            await socket.finish()
            raise network_error(error) from None
        except BaseException:
            await socket.finish()
            raise
        self._live.add(socket)
        if self._stopping.is_set():
            socket.end("stopped")
        self._said = False
        self._on_state("up")
        return socket

    async def _greeted(self, socket: Socket) -> None:
        hello = asyncio.ensure_future(socket.hello.wait())
        try:
            either: list[asyncio.Future[Any]] = [hello, socket.over]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hello.cancel()
        if not socket.hello.is_set():
            if socket.over.result() == "off":
                raise SocketModeOff
            raise ChannelDown("Slack closed a new connection at once")

    async def _close(self, socket: Socket, *, renewed: bool = False) -> None:
        if socket in self._live:
            self._live.discard(socket)
            if not (self._live or renewed or self._stopping.is_set()):
                self._on_state("down")
            await socket.finish()

    async def _pause(self, seconds: float) -> None:
        """Wait, unless we are to stop."""
        if seconds <= 0:
            return
        slept = asyncio.ensure_future(self._sleep(seconds))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({slept, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            slept.cancel()
            stopping.cancel()

    def _trouble(self, error: ChannelError) -> None:
        """One line when it begins, not one for every try."""
        if not self._live and not self._said:
            self._said = True
            self._on_state("down")
            log.warning("slack: %s; trying again until it answers", redacted(str(error)))


def _backoff(failures: int, longest: float) -> float:
    """Seconds: the first try comes at once, then 1, 2, 4, ..."""
    if failures <= 1:
        return 0.0
    return min(longest, 2.0 ** min(failures - 2, 10)) * random.uniform(0.75, 1.0)  # noqa: S311 - jitter
