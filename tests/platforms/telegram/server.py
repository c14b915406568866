"""The HTTP side: real requests over loopback, with connections that can be cut and calls that can be held."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import uvicorn
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from tests.platforms.telegram.checks import Json, Params, Refused, Upload
from tests.platforms.telegram.methods import METHODS, check_flood
from tests.platforms.telegram.world import Bot, Call, World

Control = Callable[[Request], Awaitable[Response]]


class _Quiet(H11Protocol):
    """No access log: the addresses hold the token, and this server is not what the logs are tested for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False


class Held:
    """Calls of one method that wait until they are let go."""

    def __init__(self, world: World) -> None:
        self.waiting = 0
        self._world = world
        self._free = asyncio.Event()

    async def wait(self) -> None:
        self.waiting += 1
        self._world.changed()
        await self._free.wait()

    def release(self) -> None:
        """Let all of them go, those to come as well."""
        self._free.set()


class TelegramServer(World):
    """A Bot API on a loopback port. `async with TelegramServer() as server: ...`"""

    def __init__(self, port: int = 0, control: Control | None = None) -> None:
        super().__init__()
        self.port = port
        self._control = control
        self._held: dict[str, Held] = {}
        self._cut_next: list[tuple[str, str]] = []
        self._listener: asyncio.Server | None = None
        self._state = ServerState()

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> TelegramServer:
        await self.up()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.down()
        for held in self._held.values():
            held.release()
        for bot in self.bots.values():
            if bot.poll is not None and not bot.poll.done():
                bot.poll.set_result(None)
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=5)

    async def up(self) -> None:
        """Begin to listen, on the same port as before if there was one."""
        config = uvicorn.Config(
            self._app, interface="asgi3", lifespan="off", ws="none", log_config=None, proxy_headers=False
        )
        config.load()
        protocol = functools.partial(_Quiet, config=config, server_state=self._state, app_state={})
        # named in full: only then is TCP_NODELAY set on what it accepts
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", self.port))
        self.port = sock.getsockname()[1]
        self._listener = await asyncio.get_running_loop().create_server(protocol, sock=sock)

    async def down(self) -> None:
        """The network is gone: nothing listens, every connection breaks."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self.cut()

    def cut(self) -> None:
        """Break every open connection; new ones are welcome."""
        for connection in list(self._state.connections):
            transport = connection.transport
            if isinstance(transport, asyncio.Transport):
                transport.abort()

    def cut_next(self, method: str, when: str = "after") -> None:
        """Break the connection of the next call of this method, `before` or `after` doing the work."""
        self._cut_next.append((method, when))

    def hold(self, method: str) -> Held:
        """From now on, calls of this method are answered only when released."""
        self._held[method] = Held(self)
        return self._held[method]

    def release(self, method: str) -> None:
        """Let the calls of this method go, and those to come."""
        self._held.pop(method).release()

    @contextlib.asynccontextmanager
    async def held(self, method: str) -> AsyncIterator[Held]:
        """Hold a method within the block."""
        held = self.hold(method)
        try:
            yield held
        finally:
            self.release(method)

    async def post_updates(self, to: str, secret: str | None = None) -> list[int]:
        """Post what waits for the first bot to its webhook, as the platform does: in order, each until
        it is taken. `to` stands for the public address. Returns the status of each request; it stops
        at the first that is not 2xx and keeps that update."""
        bot = next(iter(self.bots.values()))
        token = bot.webhook["secret_token"] if secret is None else secret
        statuses = []
        async with httpx.AsyncClient() as client:
            for update in list(bot.updates):
                headers = {"X-Telegram-Bot-Api-Secret-Token": token}
                answer = await client.post(to, json=update, headers=headers)
                statuses.append(answer.status_code)
                if not answer.is_success:
                    break
                bot.updates.remove(update)
        return statuses

    # ---- HTTP

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self._respond(request)
        if response is None:
            self.cut()
        else:
            await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response | None:
        path = request.url.path
        if path.startswith("/_control/") and self._control is not None:
            return await self._control(request)
        if path.startswith("/file/bot"):
            return self._download(path.removeprefix("/file/bot"))
        if not path.startswith("/bot"):
            return _error(Refused(404, "Not Found"))
        token, _, name = path.removeprefix("/bot").partition("/")
        return await self._call(request, token, name)

    async def _call(self, request: Request, token: str, name: str) -> Response | None:
        params = await _params(request)
        try:
            await self._before(name)
            bot, handler = self._route(token, name, params)
            check_flood(self, params)
            result = await handler(self, bot, params)
        except Refused as refusal:
            self._note(name, params, _error_body(refusal), refusal.code)
            return _error(refusal)
        except ConnectionAbortedError:
            self._note(name, params, {}, 0)
            return None
        body = {"ok": True, "result": result}
        self._note(name, params, body, 200)
        if (name, "after") in self._cut_next:
            self._cut_next.remove((name, "after"))
            return None
        return JSONResponse(body)

    async def _before(self, name: str) -> None:
        if (name, "before") in self._cut_next:
            self._cut_next.remove((name, "before"))
            raise ConnectionAbortedError
        if held := self._held.get(name):
            await held.wait()
        for script in self.scripts:
            if script.method in (name, "*"):
                script.times -= 1
                if script.times <= 0:
                    self.scripts.remove(script)
                raise script.error

    def _route(self, token: str, name: str, params: Params) -> tuple[Bot, Callable[..., Awaitable[Any]]]:
        bot = self.bots.get(token)
        if bot is None:
            raise Refused(401, "Unauthorized") if ":" in token else Refused(404, "Not Found")
        if name not in METHODS:
            self.failures.append(f"unknown method {name}")
            raise Refused(404, "Not Found")
        known, handler = METHODS[name]
        unknown = (params.values.keys() | params.files.keys()) - known
        attached = {v.removeprefix("attach://") for v in params.values.values() if v.startswith("attach://")}
        for parameter in sorted(unknown - attached):
            self.failures.append(f"{name} has no parameter {parameter} that is served here")
        return bot, handler

    def _note(self, name: str, params: Params, answer: Json, status: int) -> None:
        self.journal.append(Call(name, params.values, status, answer, self.clock()))
        self.changed()

    def _download(self, rest: str) -> Response:
        token, _, path = rest.partition("/")
        if token in self.bots:
            for file in self.files.values():
                if file["path"] == path and not file.get("gone"):
                    return Response(file["content"], media_type="application/octet-stream")
        return _error(Refused(404, "Not Found"))


async def _params(request: Request) -> Params:
    """Query, form, multipart and JSON bodies, as the platform takes them."""
    values: dict[str, str] = dict(request.query_params)
    files: dict[str, Upload] = {}
    kind = request.headers.get("content-type", "")
    if kind.startswith("application/json"):
        body = json.loads(await request.body() or b"{}")
        values.update({k: v if isinstance(v, str) else json.dumps(v) for k, v in body.items()})
    elif kind:
        async with request.form() as form:
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    media_type = value.content_type or "application/octet-stream"
                    files[name] = Upload(value.filename or "file", media_type, await value.read())
                else:
                    values[name] = value
    return Params(values, files)


def _error_body(refusal: Refused) -> Json:
    body: Json = {"ok": False, "error_code": refusal.code, "description": refusal.description}
    if refusal.parameters:
        body["parameters"] = refusal.parameters
    return body


def _error(refusal: Refused) -> Response:
    return JSONResponse(_error_body(refusal), status_code=refusal.code)
