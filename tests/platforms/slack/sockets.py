"""Socket Mode: connections, envelopes to exactly one of them, acknowledgements, and trouble on the line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from dataclasses import dataclass

import aiohttp
from aiohttp import web

from tests.platforms.slack import limits
from tests.platforms.slack.delivery import Attempt, Deliveries, Delivery
from tests.platforms.slack.limits import Json
from tests.platforms.slack.state import Refused
from tests.platforms.slack.world import Timer

REASONS = frozenset(["warning", "refresh_requested", "too_many_websockets", "link_disabled"])
GRACE = 10.0  # seconds from `refresh_requested` until the platform closes the connection


@dataclass(eq=False)
class Envelope:
    """One envelope under way on a connection."""

    delivery: Delivery
    attempt: Attempt
    timer: Timer
    takes_payload: bool


class Connection:
    """One web socket."""

    def __init__(self, id: str, ws: web.WebSocketResponse, transport: asyncio.Transport | None) -> None:
        self.id, self.ws = id, ws
        self.envelopes: dict[str, Envelope] = {}
        self.late: set[str] = set()  # envelopes whose time is over
        self.acked: set[str] = set()
        self.pings = 0
        self.leaving = False  # told to go: nothing is sent here any more
        self.running = asyncio.Event()
        self.running.set()
        self._transport = transport
        self._out: asyncio.Queue[str] = asyncio.Queue()
        self._writer = asyncio.get_running_loop().create_task(self._write())

    def send(self, frame: Json) -> None:
        self._out.put_nowait(json.dumps(frame))

    async def flushed(self) -> None:
        await self._out.join()

    async def _write(self) -> None:
        while True:
            frame = await self._out.get()
            with contextlib.suppress(ConnectionError):
                await self.ws.send_str(frame)
            self._out.task_done()

    def cut(self) -> None:
        """Break the line without a word."""
        if self._transport is not None:
            self._transport.abort()

    async def end(self) -> None:
        self._writer.cancel()
        await asyncio.gather(self._writer, return_exceptions=True)


class Sockets(Deliveries):
    """The web sockets of the app."""

    def __init__(self) -> None:
        super().__init__()
        self.connections: list[Connection] = []
        self.connected = 0  # how many there ever were
        self.link_enabled = True
        self._tickets: dict[str, float] = {}
        self._turn = 0

    async def wait_connections(self, count: int = 1, within: float = 30.0) -> list[Connection]:
        """Wait until there are exactly that many usable connections."""
        await self.wait_for(lambda: len(self._usable()) == count, within)
        return self._usable()

    def _usable(self) -> list[Connection]:
        return [connection for connection in self.connections if not connection.leaving]

    # ---- envelopes

    def send(self, delivery: Delivery, attempt: Attempt) -> None:
        usable = self._usable()
        if not usable:
            self.at(self.now(), lambda: self.attempt_failed(delivery, attempt, "no_connection"))
            return
        tried = {earlier.via for earlier in delivery.attempts if earlier.failed}
        usable = [connection for connection in usable if connection.id not in tried] or usable
        connection = usable[self._turn % len(usable)]
        self._turn += 1
        attempt.via, attempt.envelope_id = connection.id, str(uuid.uuid4())
        takes = delivery.kind == "slash_commands" or delivery.payload.get("type") == "view_submission"
        frame: Json = {
            "envelope_id": attempt.envelope_id,
            "type": delivery.kind,
            "payload": delivery.payload,
            "accepts_response_payload": takes,
        }
        if delivery.kind == "events_api":
            frame |= {"retry_attempt": attempt.retry, "retry_reason": attempt.reason}
        timer = self.at(self.now() + self.ack_within, lambda: self._too_late(connection, attempt))
        connection.envelopes[attempt.envelope_id] = Envelope(delivery, attempt, timer, takes)
        connection.send(frame)

    def _too_late(self, connection: Connection, attempt: Attempt) -> None:
        envelope = connection.envelopes.pop(attempt.envelope_id)
        connection.late.add(attempt.envelope_id)
        self.attempt_failed(envelope.delivery, attempt, "timeout")

    def _received(self, connection: Connection, text: str) -> None:
        try:
            frame = json.loads(text)
        except ValueError:
            self.failures.append(f"a frame that is no JSON: {text[:80]!r}")
            return
        id = frame.get("envelope_id") if isinstance(frame, dict) else None
        if id in connection.late:
            return
        if not isinstance(id, str) or id not in connection.envelopes:
            again = "twice" if id in connection.acked else "of an unknown envelope"
            self.failures.append(f"an acknowledgement {again}: {text[:120]}")
            return
        connection.acked.add(id)
        envelope = connection.envelopes.pop(id)
        envelope.timer.cancel()
        payload = frame.get("payload") or {}
        if payload and not envelope.takes_payload:
            kind = envelope.delivery.payload_type
            self.failures.append(f"a payload in the acknowledgement of {kind}: {payload}")
        self.acknowledged(envelope.delivery, payload)

    # ---- connections

    def open_ticket(self) -> str:
        """The address of one connection to come. Raises Refused."""
        if not self.link_enabled:
            raise Refused("socket_mode_disabled")
        ticket = str(uuid.uuid4())
        self._tickets[ticket] = self.now() + limits.TICKET_LIFE
        base = self.base.replace("http://", "ws://")
        return f"{base}/link/?ticket={ticket}&app_id={self.app.id}"

    async def link(self, request: web.Request) -> web.StreamResponse:
        """The web socket's handler."""
        expires = self._tickets.pop(request.query.get("ticket", ""), 0.0)
        if expires < self.now():
            return web.Response(status=401, text="invalid ticket")
        ws = web.WebSocketResponse(autoping=False, timeout=1.0)
        await ws.prepare(request)
        self.connected += 1
        connection = Connection(f"ws{self.connected}", ws, request.transport)
        if len(self.connections) >= limits.CONNECTIONS:
            connection.send(self._disconnect_frame("too_many_websockets"))
            await connection.flushed()
            await ws.close()
            await connection.end()
            return ws
        connection.send(self._hello(len(self.connections) + 1))
        self.connections.append(connection)
        self.changed()
        try:
            await self._read(connection)
        finally:
            await self._gone(connection)
        return ws

    async def _read(self, connection: Connection) -> None:
        while True:
            message = await connection.ws.receive()
            await connection.running.wait()
            match message.type:
                case aiohttp.WSMsgType.TEXT:
                    self._received(connection, message.data)
                    self.changed()
                case aiohttp.WSMsgType.PING:
                    connection.pings += 1
                    with contextlib.suppress(ConnectionError):
                        await connection.ws.pong(message.data)
                case aiohttp.WSMsgType.PONG:
                    pass
                case _:
                    return

    async def _gone(self, connection: Connection) -> None:
        self.connections.remove(connection)
        await connection.end()
        for envelope in list(connection.envelopes.values()):
            envelope.timer.cancel()
            self.attempt_failed(envelope.delivery, envelope.attempt, "connection_closed")
        self.changed()

    def _hello(self, count: int) -> Json:
        debug = {"host": "applink-1", "build_number": 10, "approximate_connection_time": 18_060}
        return {
            "type": "hello",
            "num_connections": count,
            "debug_info": debug,
            "connection_info": {"app_id": self.app.id},
        }

    @staticmethod
    def _disconnect_frame(reason: str) -> Json:
        return {"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}}

    # ---- trouble on the line

    def _meant(self, connection: Connection | None) -> list[Connection]:
        return [connection] if connection is not None else list(self.connections)

    async def disconnect(self, reason: str, connection: Connection | None = None) -> None:
        """Tell one connection, or all, to go. `warning` closes nothing; `refresh_requested` closes after
        ten seconds of the server's clock, the others at once. `link_disabled` lets none open any more."""
        assert reason in REASONS, f"no such reason: {reason}"
        if reason == "link_disabled":
            self.link_enabled = False
        for one in self._meant(connection):
            one.leaving = reason != "warning"
            one.send(self._disconnect_frame(reason))
            await one.flushed()
            if reason == "refresh_requested":
                self.at(self.now() + GRACE, one.cut)
            elif reason != "warning":
                await one.ws.close()

    def freeze(self, connection: Connection | None = None) -> None:
        """Half-open: nothing is read, no ping answered, while envelopes still go there."""
        for one in self._meant(connection):
            one.running.clear()

    def thaw(self) -> None:
        """Read on, on every connection."""
        for one in self.connections:
            one.running.set()

    def drop(self, connection: Connection | None = None) -> None:
        """Break one connection, or all, without a word."""
        for one in self._meant(connection):
            one.running.set()
            one.cut()
