"""A strict Discord for tests: REST v10 and the gateway over real sockets, with the platform's limits,
clocks and refusals, people to steer, and trouble on demand. Here is the HTTP side of it.

This folder has no `__init__.py` on purpose: pytest would import it as the top-level package `discord`.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import json
import socket
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.platforms.discord import limits
from tests.platforms.discord import routes_channels as _channels
from tests.platforms.discord import routes_guilds as _guilds
from tests.platforms.discord import routes_interactions as _interactions
from tests.platforms.discord.asking import Answer, Ask, Endpoint, Upload, find
from tests.platforms.discord.clockwork import Clockwork
from tests.platforms.discord.entities import Call
from tests.platforms.discord.errors import Refused, too_many
from tests.platforms.discord.people import People
from tests.platforms.discord.rates import Rates

API = "/api/v10"
Control = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
MISTAKES = (AttributeError, IndexError, KeyError, TypeError, ValueError)

__all__ = ["DiscordServer", "Held", "_channels", "_guilds", "_interactions"]  # imported for their routes


class Held:
    """Calls that wait until they are let go."""

    def __init__(self, clock: Clockwork, pattern: str) -> None:
        self.pattern, self.waiting = pattern, 0
        self._clock = clock
        self._free = asyncio.Event()

    async def wait(self) -> None:
        self.waiting += 1
        self._clock.changed()
        await self._free.wait()

    async def until(self, count: int = 1, within: float = 30.0) -> None:
        """Wait until that many calls wait here."""
        await self._clock.wait_for(lambda: self.waiting >= count, within)

    def release(self) -> None:
        """Let all of them go, those to come as well."""
        self._free.set()


@dataclass
class Script:
    """What is to go wrong with the next calls of a route."""

    pattern: str
    what: int | str
    times: int
    after: bool
    refused: Refused | None = None


class Dropped(Exception):
    """The line is to be cut instead of an answer."""


class DiscordServer(People):
    """Discord on a loopback port. `async with DiscordServer() as server: ...`"""

    def __init__(self, port: int = 0, control: Control | None = None) -> None:
        super().__init__()
        self.port = port
        self.rates = Rates()
        self._control = control
        self._held: list[Held] = []
        self._scripts: list[Script] = []
        self._listener: asyncio.Server | None = None
        self._web: web.Server | None = None

    @property
    def route_base(self) -> str:
        """For `discord.http.Route.BASE`."""
        return f"{self.base}{API}"

    @property
    def gateway_url(self) -> str:
        """For `discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY`, as `yarl.URL`."""
        return f"{self.base.replace('http', 'ws', 1)}/gateway"

    async def __aenter__(self) -> DiscordServer:
        await self.up()
        return self

    async def __aexit__(self, *exc: object) -> None:
        for held in self._held:
            held.release()
        for timer in list(self.timers):
            timer.cancel()
        await self.down()

    async def up(self) -> None:
        """Begin to listen, on the same port as before if there was one."""
        self._web = web.Server(self._handle, request_factory=_request, access_log=None)
        # named in full: only then is TCP_NODELAY set on what it accepts
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", self.port))
        self.port = sock.getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}"
        self._listener = await asyncio.get_running_loop().create_server(self._web, sock=sock)

    async def down(self) -> None:
        """The network is gone: nothing listens, every connection breaks."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for connection in self.connections:
            connection.running.set()
        self.cut()
        if self._web is not None:
            web_server, self._web = self._web, None
            await self.wait_for(lambda: not self.connections)
            await web_server.shutdown(2.0)

    def cut(self) -> None:
        """Break every open connection; new ones are welcome."""
        for protocol in list(self._web.connections) if self._web else []:
            transport = protocol.transport
            if isinstance(transport, asyncio.Transport):
                transport.abort()

    # ---- trouble

    def fail_next(
        self,
        pattern: str,
        what: int | str,
        *,
        times: int = 1,
        after: bool = False,
        code: int = 0,
        retry_after: float = 1.0,
        scope: str = "user",
        via: bool = True,
    ) -> None:
        """What becomes of the next calls that match, as `POST /channels/*/messages` (a route or a path).
        `what`: an HTTP status (with a JSON `code`; 429 with `retry_after`, `scope` and, when `via`, the
        header that tells it from a ban), `drop` (the line is cut) or `html` (a proxy's page, 502).
        `after`: the call has had its effect."""
        refused = None
        if what == 429:
            refused = too_many(retry_after, scope=scope, via=via, code=code)
        elif isinstance(what, int):
            refused = Refused(code, what)
            if not code:
                refused.body = {"message": f"{what}: an error", "code": 0}
        self._scripts.append(Script(pattern, what, times, after, refused))

    def hold(self, pattern: str) -> Held:
        """From now on, calls that match are answered only when released."""
        held = Held(self, pattern)
        self._held.append(held)
        return held

    def release(self, pattern: str) -> None:
        """Let the calls that match go, and those to come."""
        for held in [one for one in self._held if one.pattern == pattern]:
            self._held.remove(held)
            held.release()

    @contextlib.asynccontextmanager
    async def held(self, pattern: str) -> AsyncIterator[Held]:
        """Hold calls within the block."""
        held = self.hold(pattern)
        try:
            yield held
        finally:
            self.release(pattern)

    # ---- HTTP

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path.rstrip("/") == "/gateway":
            return await self.connect(request)
        if path.startswith("/_control/") and self._control is not None:
            return await self._control(request)
        if path.startswith("/attachments/"):
            return self._download(request)
        try:
            return await self._api(request)
        except Dropped:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)

    async def _api(self, request: web.BaseRequest) -> web.StreamResponse:
        found = find(request.method, request.raw_path.partition("?")[0].removeprefix(API))
        if not request.path.startswith(API) or found is None:
            self.failures.append(f"unknown route {request.method} {request.path}")
            return _json(404, {"message": "404: Not Found", "code": 0}, {})
        endpoint, params = found
        ask = Ask(self, params, dict(request.query))
        try:
            await self._read_body(request, ask)
            answer = await self._serve(request, endpoint, ask)
            if not isinstance(answer, web.Response):
                answer = await self._script(endpoint, request, after=True) or answer
        except Refused as refusal:
            self._note(request, endpoint, ask, refusal.status, refusal.body)
            headers = self.rates.headers(endpoint, params, self.now()) | refusal.headers
            return _json(refusal.status, refusal.body, headers)
        if isinstance(answer, web.Response):
            return answer
        status = 204 if answer is None else 201 if endpoint.name.endswith("/threads") else 200
        self._note(request, endpoint, ask, status, answer)
        return _json(status, answer, self.rates.headers(endpoint, params, self.now()))

    async def _read_body(self, request: web.BaseRequest, ask: Ask) -> None:
        if (request.content_length or 0) > limits.BODY:
            raise Refused(40005)
        try:
            if request.content_type == "multipart/form-data":
                await _multipart(request, ask)
            elif request.can_read_body:
                ask.body = json.loads(await request.read() or b"null")
        except ValueError:
            raise Refused(50109) from None

    async def _serve(self, request: web.BaseRequest, endpoint: Endpoint, ask: Ask) -> Answer | web.Response:
        if not endpoint.open and request.headers.get("Authorization") != f"Bot {self.token}":
            raise Refused(0)
        unknown = sorted(ask.query.keys() - endpoint.query)
        self.failures += [f"{endpoint.name} has no parameter {name} that is served here" for name in unknown]
        for held in self._held:
            if _matches(held.pattern, endpoint, request):
                await held.wait()
        page = await self._script(endpoint, request, after=False)
        if page is not None:
            return page
        self.rates.take(endpoint, ask.params, self.now())
        try:
            return endpoint.handler(ask)
        except MISTAKES:
            self.failures.append(f"{endpoint.name} with {ask.body!r}: {traceback.format_exc()}")
            raise Refused(0, 500) from None
        finally:
            known = "that is served here"
            self.failures += [f"{endpoint.name} has no field {name} {known}" for name in ask.unknown]

    async def _script(
        self, endpoint: Endpoint, request: web.BaseRequest, *, after: bool
    ) -> web.Response | None:
        for script in self._scripts:
            if script.after != after or not _matches(script.pattern, endpoint, request):
                continue
            script.times -= 1
            if script.times <= 0:
                self._scripts.remove(script)
            if script.refused is not None:
                raise script.refused
            if script.what == "drop":
                raise Dropped
            return web.Response(status=502, text="<html>502 Bad Gateway</html>", content_type="text/html")
        return None

    def _note(
        self, request: web.BaseRequest, endpoint: Endpoint, ask: Ask, status: int, answer: Answer
    ) -> None:
        path = request.path.removeprefix(API)
        files = tuple(upload.name for _, upload in sorted(ask.files.items()))
        call = Call(
            request.method, path, endpoint.name, ask.body, ask.query, files, status, answer, self.now()
        )
        self.calls.append(call)
        self.changed()

    def _download(self, request: web.BaseRequest) -> web.Response:
        stored = self.files.get(request.path.split("/")[3]) if request.path.count("/") == 4 else None
        expires = int(request.query.get("ex", "0"), 16)
        if stored is None or expires < self.now() or "hm" not in request.query:
            return web.Response(status=404, text="This content is no longer available.")
        return web.Response(body=stored.content, content_type=stored.media_type)


def _matches(pattern: str, endpoint: Endpoint, request: web.BaseRequest) -> bool:
    names = (endpoint.name, f"{request.method} {request.path.removeprefix(API)}")
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)


def _json(status: int, body: Any, headers: dict[str, str]) -> web.Response:
    if status == 204:
        return web.Response(status=204, headers=headers)
    return web.Response(
        status=status,
        body=json.dumps(body, default=str).encode(),
        headers={"Content-Type": "application/json"} | headers,  # with a charset discord.py reads it as text
    )


async def _multipart(request: web.BaseRequest, ask: Ask) -> None:
    form = await request.post()
    for name, value in form.items():
        if name == "payload_json":
            assert isinstance(value, str)
            ask.body = json.loads(value)
        elif isinstance(value, web.FileField) and name.startswith("files["):
            upload = Upload(value.filename, value.content_type, value.file.read())
            value.file.close()
            ask.files[int(name[6:-1])] = upload
        else:
            ask.unknown.append(name)


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    size = limits.BODY + 1_000_000
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=size)
