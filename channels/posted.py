"""Being posted to: plain HTTP behind whatever ends TLS, for platforms that deliver by request."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

LARGEST: Final = 1_000_000  # bytes of one request; no platform posts more


class _Server(uvicorn.Server):
    """Runs inside our loop: the process's signals are the gateway's business."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class PostListener:
    """Listens at one path. `respond(request, body)` answers a POST of at most LARGEST bytes; `port` 0 takes
    a free one. `admits`: a status that refuses a request before its body is read, None to read it."""

    def __init__(
        self,
        host: str,
        port: int,
        path: str,
        respond: Callable[[Request, bytes], Awaitable[Response]],
        *,
        admits: Callable[[Request], int | None] = lambda request: None,
    ) -> None:
        self.port = port
        self._host, self._path, self._respond, self._admits = host, path, respond, admits
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen. Raises OSError when the port is taken."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        # The protocol is named, else asyncio leaves Nagle on and an answer can wait 40 ms for an ACK.
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((self._host, self.port))
        except OSError:
            sock.close()
            raise
        self.port = sock.getsockname()[1]
        config = uvicorn.Config(
            self._app,
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=5,
        )
        self._server = _Server(config)
        self._task = asyncio.create_task(self._server.serve([sock]), name=f"listener at {self._path}")

    async def stop(self) -> None:
        """Stop listening; requests in flight end first."""
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await asyncio.wait({self._task}, timeout=10)

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.method != "POST" or request.url.path != self._path:
            return Response(status_code=404)
        if (refusal := self._admits(request)) is not None:
            return Response(status_code=refusal)
        body = await _read(request)
        return Response(status_code=413) if body is None else await self._respond(request, body)


async def _read(request: Request) -> bytes | None:
    """The body; None when it is larger than LARGEST."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST:
            return None
    return bytes(body)
