"""The gateway: connections, sessions, heartbeats, events and their replay, and trouble on the line."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from tests.platforms.discord import intents, limits
from tests.platforms.discord.entities import Channel, Guild, iso
from tests.platforms.discord.limits import Json
from tests.platforms.discord.world import World


@dataclass(eq=False)
class Session:
    """What survives a broken connection. `events`: all payloads since READY, for the replay."""

    id: str
    intents: int
    shard: tuple[int, int]
    events: list[Json] = field(default_factory=list)
    connection: Connection | None = None
    detached_at: float = 0.0
    ready: bool = False

    @property
    def seq(self) -> int:
        return len(self.events)

    def add(self, event: str, data: Json) -> None:
        """An event for this session, sent now or when it is resumed."""
        payload = {"op": 0, "t": event, "s": self.seq + 1, "d": data}
        self.events.append(json.loads(json.dumps(payload)))
        if self.connection is not None:
            self.connection.send(self.events[-1])


class Connection:
    """One web socket."""

    def __init__(self, ws: web.WebSocketResponse, transport: asyncio.Transport | None) -> None:
        self.ws = ws
        self.session: Session | None = None
        self.received: list[float] = []  # when frames came, for the limit of 120 a minute
        self.heartbeats = 0
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
            await self.running.wait()
            with contextlib.suppress(ConnectionError):
                await self.ws.send_str(frame)
            self._out.task_done()

    async def close(self, code: int) -> None:
        """Say goodbye with this code, after everything that is on its way."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                await self.flushed()
        with contextlib.suppress(ConnectionError):
            await self.ws.close(code=code)

    def cut(self) -> None:
        """Break the line without a word."""
        self.running.set()
        if self._transport is not None:
            self._transport.abort()

    async def end(self) -> None:
        self._writer.cancel()
        await asyncio.gather(self._writer, return_exceptions=True)


class Goodbye(Exception):
    """The server closes the connection with this code."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(str(code))


class Gateway(World):
    """The web sockets of our bot."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions: list[Session] = []
        self.connections: list[Connection] = []
        self.identifies: list[Json] = []  # the `d` of every IDENTIFY, the token left out
        self.resumes: list[tuple[str, int, str]] = []  # session, seq, `resumed` or `invalid`
        self.heartbeat_interval = limits.HEARTBEAT_MS
        self.gateway_open = True
        self.sharding_required = False
        self.enforce_identify = False  # one IDENTIFY in five seconds of each concurrency bucket
        self.shards = 1  # what /gateway/bot recommends
        self.max_concurrency = 1
        self._identified: dict[int, float] = {}

    # ---- events

    def dispatch(self, event: str, data: Json, *, guild: str = "", channel: Channel | None = None) -> None:
        where = channel.guild if channel is not None else guild
        if channel is not None and event != "INTERACTION_CREATE" and not self._sees(event, channel):
            return
        if where and not self.guilds[where].bot_in and event != "GUILD_DELETE":
            return
        for session in self.sessions:
            if self._shard_of(where, session.shard[1]) != session.shard[0]:
                continue
            direct = channel is not None and not where
            if intents.wanted(event, session.intents, direct=direct):
                message = event in ("MESSAGE_CREATE", "MESSAGE_UPDATE")
                session.add(event, intents.veiled(data, session.intents, self.bot_id) if message else data)
        self.changed()

    def _sees(self, event: str, channel: Channel) -> bool:
        return event.startswith("CHANNEL_") or bool(self.may(self.bot_id, channel))

    @staticmethod
    def _shard_of(guild: str, shards: int) -> int:
        return (int(guild) >> 22) % shards if guild else 0

    def emit(self, event: str, data: Json) -> None:
        """Any event at all, to every session."""
        for session in self.sessions:
            session.add(event, data)
        self.changed()

    # ---- connections

    async def connect(self, request: web.BaseRequest) -> web.StreamResponse:
        """The handler of /gateway."""
        if not self.gateway_open:
            return web.Response(status=503, text="no healthy upstream")
        ws = web.WebSocketResponse(autoping=True, timeout=1.0, max_msg_size=0)
        await ws.prepare(request)
        connection = Connection(ws, request.transport)
        self.connections.append(connection)
        version = request.query.get("v"), request.query.get("encoding")
        connection.send(
            {"op": 10, "t": None, "s": None, "d": {"heartbeat_interval": self.heartbeat_interval}}
        )
        try:
            if version != ("10", "json"):
                raise Goodbye(4012)
            await self._read(connection)
        except Goodbye as goodbye:
            self._forget_after(connection, goodbye.code)
            await connection.close(goodbye.code)
        finally:
            await self._gone(connection)
        return ws

    async def _read(self, connection: Connection) -> None:
        while True:
            patience = 1.5 * self.heartbeat_interval / 1000 + 1.0
            try:
                async with asyncio.timeout(patience):
                    message = await connection.ws.receive()
                    await connection.running.wait()
            except TimeoutError:
                if not connection.running.is_set():
                    continue
                raise Goodbye(4009) from None
            match message.type:
                case aiohttp.WSMsgType.TEXT:
                    self._received(connection, message.data)
                case aiohttp.WSMsgType.BINARY:
                    raise Goodbye(4002)
                case aiohttp.WSMsgType.CLOSE if message.data in (1000, 1001):
                    self._forget(connection.session)  # a client that says goodbye so does not come back
                    return
                case _:
                    return

    def _received(self, connection: Connection, text: str) -> None:
        now = self.now()
        connection.received = [at for at in connection.received if at > now - limits.SENDS_WINDOW] + [now]
        if len(connection.received) > limits.SENDS:
            raise Goodbye(4008)
        if len(text.encode()) > limits.PAYLOAD:
            raise Goodbye(4002)
        try:
            frame = json.loads(text)
            op, data = frame["op"], frame.get("d")
        except (ValueError, KeyError, TypeError):
            raise Goodbye(4002) from None
        self._operate(connection, op, data)
        self.changed()

    def _operate(self, connection: Connection, op: int, data: Any) -> None:
        match op:
            case 1:
                connection.heartbeats += 1
                connection.send({"op": 11, "t": None, "s": None, "d": None})
            case 2 | 6 if connection.session is not None:
                raise Goodbye(4005)
            case 2:
                self._identify(connection, data)
            case 6:
                self._resume(connection, data)
            case _ if connection.session is None:
                raise Goodbye(4003)
            case 3:
                pass
            case 8:
                self._members(connection.session, data)
            case _:
                self.failures.append(f"a gateway operation {op} that is not served here")
                raise Goodbye(4001)

    async def _gone(self, connection: Connection) -> None:
        self.connections.remove(connection)
        if connection.session is not None and connection.session.connection is connection:
            connection.session.connection = None
            connection.session.detached_at = self.now()
        await connection.end()
        self.changed()

    def _forget_after(self, connection: Connection, code: int) -> None:
        if code in (4007, 4009):
            self._forget(connection.session)

    def _forget(self, session: Session | None) -> None:
        if session is not None and session in self.sessions:
            self.sessions.remove(session)

    # ---- identify and resume

    def _identify(self, connection: Connection, data: Json) -> None:
        if data.get("token") != self.token:
            raise Goodbye(4004)
        self.identifies.append({name: value for name, value in data.items() if name != "token"})
        wanted = data.get("intents")
        if not isinstance(wanted, int) or wanted & ~intents.KNOWN:
            raise Goodbye(4013)
        granted = self.message_content or not wanted & intents.CONTENT
        if (
            not granted
            or (wanted & intents.MEMBERS and not self.members_intent)
            or wanted & intents.PRESENCES
        ):
            raise Goodbye(4014)
        shard, shards = data.get("shard") or (0, 1)
        if not 0 <= shard < shards:
            raise Goodbye(4010)
        if self.sharding_required and "shard" not in data:
            raise Goodbye(4011)
        if self._too_soon(shard):
            connection.send({"op": 9, "t": None, "s": None, "d": False})
            return
        session = Session(self.flake(), wanted, (shard, shards), connection=connection)
        connection.session = session
        self.sessions.append(session)
        self._greet(session, sharded="shard" in data)

    def _too_soon(self, shard: int) -> bool:
        bucket = shard % self.max_concurrency
        last = self._identified.get(bucket, -limits.IDENTIFY_WINDOW)
        self._identified[bucket] = self.now()
        return self.enforce_identify and self.now() - last < limits.IDENTIFY_WINDOW

    def _greet(self, session: Session, *, sharded: bool) -> None:
        mine = [g for g in self.guilds.values() if self._shard_of(g.id, session.shard[1]) == session.shard[0]]
        mine = [guild for guild in mine if guild.bot_in]
        ready: Json = {
            "v": 10,
            "user": self.users[self.bot_id].public() | {"verified": True, "mfa_enabled": True, "email": None},
            "guilds": [{"id": guild.id, "unavailable": True} for guild in mine],
            "session_id": session.id,
            "resume_gateway_url": f"{self.base.replace('http', 'ws', 1)}/gateway",
            "application": {"id": self.app_id, "flags": self.app_flags()},
            "private_channels": [],
            "session_type": "normal",
        }
        session.add("READY", ready | ({"shard": list(session.shard)} if sharded else {}))
        for guild in mine:
            if guild.available and session.intents & intents.GUILDS:
                session.add("GUILD_CREATE", self.guild_state(guild, session.intents))
        session.ready = True

    def app_flags(self) -> int:
        """The application's flags: which privileged intents were granted."""
        return (1 << 19 if self.message_content else 0) | (1 << 15 if self.members_intent else 0)

    def guild_state(self, guild: Guild, wanted: int = 0) -> Json:
        """The data of GUILD_CREATE: of the members only our bot."""
        channels = [c for c in self.channels.values() if c.guild == guild.id]
        threads = [c for c in channels if c.is_thread and not c.archived and self.may(self.bot_id, c)]
        return guild.public() | {
            "joined_at": iso(guild.members[self.bot_id].joined_at),
            "large": False,
            "unavailable": False,
            "member_count": len(guild.members),
            "voice_states": [],
            "members": [guild.members[self.bot_id].public()],
            "channels": [c.public() for c in channels if not c.is_thread],
            "threads": [c.public(me=self.bot_id) for c in threads],
            "presences": [],
            "stage_instances": [],
            "guild_scheduled_events": [],
            "soundboard_sounds": [],
        }

    def _resume(self, connection: Connection, data: Json) -> None:
        if data.get("token") != self.token:
            raise Goodbye(4004)
        id, seq = str(data.get("session_id")), data.get("seq")
        session = next((s for s in self.sessions if s.id == id), None)
        too_old = session is not None and not session.connection and session.detached_at
        if session is None or (too_old and self.now() - session.detached_at > limits.SESSION_LIFE):
            self.resumes.append((id, seq or 0, "invalid"))
            connection.send({"op": 9, "t": None, "s": None, "d": False})
            return
        if not isinstance(seq, int) or not 0 <= seq <= session.seq:
            raise Goodbye(4007)
        old, session.connection = session.connection, connection
        connection.session = session
        if old is not None:
            old.cut()
        self.resumes.append((id, seq, "resumed"))
        for payload in session.events[seq:]:
            connection.send(payload)
        session.add("RESUMED", {"_trace": []})

    def _members(self, session: Session, data: Json) -> None:
        guild = self.guilds.get(str(data.get("guild_id")))
        if guild is None:
            return
        wanted = data.get("user_ids") or []
        ids = {str(one) for one in (wanted if isinstance(wanted, list) else [wanted])}
        query = str(data.get("query") or "")
        if not ids and not query and not session.intents & intents.MEMBERS:
            return
        found = [
            member.public()
            for id, member in guild.members.items()
            if (id in ids if ids else member.user.name.startswith(query))
        ]
        chunk: Json = {"guild_id": guild.id, "members": found, "chunk_index": 0, "chunk_count": 1}
        chunk["not_found"] = [id for id in ids if id not in guild.members]
        if data.get("nonce"):
            chunk["nonce"] = data["nonce"]
        session.add("GUILD_MEMBERS_CHUNK", chunk)

    # ---- what tests see and do

    def live(self) -> list[Session]:
        """The sessions that are connected and ready."""
        return [s for s in self.sessions if s.ready and s.connection and s.connection.running.is_set()]

    async def wait_ready(self, count: int = 1, within: float = 30.0) -> list[Session]:
        """Wait until exactly that many sessions are connected."""
        await self.wait_for(lambda: len(self.live()) == count, within)
        return self.live()

    def _meant(self, session: Session | None) -> list[Connection]:
        found = [session.connection] if session is not None else list(self.connections)
        return [connection for connection in found if connection is not None]

    async def reconnect(self, session: Session | None = None) -> None:
        """Op 7: asked to come back and resume."""
        for connection in self._meant(session):
            connection.send({"op": 7, "t": None, "s": None, "d": None})
            await connection.flushed()

    async def invalidate(self, *, resumable: bool = False, session: Session | None = None) -> None:
        """Op 9. Not resumable: the session is forgotten."""
        for connection in self._meant(session):
            if not resumable:
                self._forget(connection.session)
            connection.send({"op": 9, "t": None, "s": None, "d": resumable})
            await connection.flushed()

    async def close(self, code: int, session: Session | None = None) -> None:
        """Close one connection, or all, with this code. 4007 and 4009 forget the session."""
        for connection in self._meant(session):
            self._forget_after(connection, code)
            await connection.close(code)

    def drop(self, session: Session | None = None) -> None:
        """Break one connection, or all, without a word."""
        for connection in self._meant(session):
            connection.cut()

    def freeze(self, session: Session | None = None) -> None:
        """A zombie: nothing is read, nothing sent, no heartbeat answered, and the line stays open."""
        for connection in self._meant(session):
            connection.running.clear()
        self.changed()

    def thaw(self) -> None:
        """Read and send on, on every connection that is still there."""
        for connection in self.connections:
            connection.running.set()
        self.changed()

    def forget_sessions(self) -> None:
        """No session can be resumed any more; connections are cut."""
        self.sessions.clear()
        self.drop()
