"""Receiving by webhook: Telegram posts each update to us, and posts it again until we say 2xx.

We listen on plain HTTP behind whatever ends TLS; only requests with the secret token count. An update is
acknowledged after it was handed over.

Telegram posts over several connections, so that the pieces of an album can wait for one another here: they
are handed over as one message and acknowledged together. What arrives out of order is put in order by its
number; one that does not come is waited for a moment only.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import re
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from channels.telegram import wire
from channels.telegram.limits import ALBUM_SECONDS, GAP_SECONDS

log = logging.getLogger("channels.telegram")

LARGEST = 1_000_000  # bytes of one update
_KEPT: Final = 200  # numbers of updates remembered that went into an album
HEADER = "X-Telegram-Bot-Api-Secret-Token"
PORTS = (443, 80, 88, 8443)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """`url`: the public https address that Telegram posts to. `secret`: 1 to 256 of A-Z a-z 0-9 _ -.
    `host`, `port`: where we listen for it; port 0 takes a free one. Raises ValueError for what
    Telegram would refuse.
    """

    url: str
    secret: str
    host: str = "127.0.0.1"
    port: int = 8081

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme != "https" or not parts.hostname or (parts.port or 443) not in PORTS:
            raise ValueError("the webhook's url must be https, on port 443, 80, 88 or 8443")
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", self.secret):
            raise ValueError("the webhook's secret must be 1 to 256 of A-Z a-z 0-9 _ -")


class _Server(uvicorn.Server):
    """Runs inside our loop: the process's signals are the gateway's business."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Album:
    """The pieces so far of an album that still grows, and the status for all of them."""

    def __init__(self) -> None:
        self.pieces: list[dict[str, Any]] = []
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.timer: asyncio.TimerHandle | None = None


class WebhookListener:
    """The listening side. `handle` returns once an update is stored."""

    def __init__(
        self, settings: WebhookSettings, handle: Callable[[dict[str, Any]], Awaitable[None]]
    ) -> None:
        self.port = settings.port
        self._settings, self._handle = settings, handle
        self._path = urlsplit(settings.url).path or "/"
        self._one_at_a_time = asyncio.Lock()
        self._albums: dict[tuple[str, str], _Album] = {}
        self._taken: deque[int] = deque(maxlen=_KEPT)
        self._closing: set[asyncio.Task[None]] = set()
        self._newest: int | None = None  # the highest number that has come
        self._waiting: list[int] = []
        self._came = asyncio.Condition()
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen. Raises OSError when the port is taken."""
        family = socket.AF_INET6 if ":" in self._settings.host else socket.AF_INET
        # The protocol is named, else asyncio leaves Nagle on and an answer can wait 40 ms for an ACK.
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((self._settings.host, self._settings.port))
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
        self._task = asyncio.create_task(self._server.serve([sock]), name="telegram webhook")

    async def stop(self) -> None:
        """Stop listening; requests in flight end first."""
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await asyncio.wait({self._task}, timeout=10)

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._respond(Request(scope, receive))
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        if request.method != "POST" or request.url.path != self._path:
            return Response(status_code=404)
        given = request.headers.get(HEADER, "")
        if not hmac.compare_digest(given.encode(), self._settings.secret.encode()):
            return Response(status_code=403)
        body = await _read(request)
        if body is None:
            return Response(status_code=413)
        try:
            update = json.loads(body)
        except ValueError:
            return Response(status_code=400)
        if not isinstance(update, dict) or not isinstance(update.get("update_id"), int):
            return Response(status_code=400)
        await self._in_order(update["update_id"])
        return Response(status_code=await self._take(update))

    async def _in_order(self, number: int) -> None:
        """Let what was sent before this one come first; it may travel by another connection."""
        self._waiting.append(number)
        try:
            async with self._came:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GAP_SECONDS):
                        await self._came.wait_for(lambda: self._follows(number))
                await self._came.wait_for(lambda: self._follows(number) or number == min(self._waiting))
        finally:
            self._waiting.remove(number)
        self._newest = max(number, self._newest or 0)
        async with self._came:
            self._came.notify_all()

    def _follows(self, number: int) -> bool:
        """Whether nothing can be missing before this one. Of the very first nobody knows."""
        return self._newest is not None and number <= self._newest + 1

    async def _take(self, update: dict[str, Any]) -> int:
        """Hand over, a piece of an album with its siblings; the status to answer with."""
        key = wire.album_of(update)
        if key is not None:
            return await self._piece(key, update)
        chat = wire.chat_of(update)
        while growing := [album.status for (_, at), album in self._albums.items() if at == chat]:
            await asyncio.wait(growing)  # what was said after the pictures comes after them
        async with self._one_at_a_time:
            return await self._hand_over(update)

    async def _piece(self, key: tuple[str, str], update: dict[str, Any]) -> int:
        if update["update_id"] in self._taken:  # our answer to it was lost
            return 200
        album = self._albums.setdefault(key, _Album())
        if update["update_id"] not in [piece["update_id"] for piece in album.pieces]:
            album.pieces.append(update)
        if album.timer is not None:
            album.timer.cancel()
        album.timer = asyncio.get_running_loop().call_later(ALBUM_SECONDS, self._complete, key, album)
        return await asyncio.shield(album.status)

    def _complete(self, key: tuple[str, str], album: _Album) -> None:
        task = asyncio.get_running_loop().create_task(self._hand_over_album(key, album))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _hand_over_album(self, key: tuple[str, str], album: _Album) -> None:
        async with self._one_at_a_time:
            pieces = sorted(album.pieces, key=lambda piece: int(piece["update_id"]))
            del self._albums[key]  # a piece that comes now is late, and a message of its own
            (whole,) = wire.albums(pieces)
            status = await self._hand_over(whole)
            if status == 200:
                self._taken.extend(piece["update_id"] for piece in pieces)
            album.status.set_result(status)

    async def _hand_over(self, update: dict[str, Any]) -> int:
        try:
            await self._handle(update)
        except Exception as error:  # by the contract any error means: not stored
            log.error(
                "telegram: an update could not be stored (%s: %s); it comes again",
                type(error).__name__,
                error,
            )
            return 503
        return 200


async def _read(request: Request) -> bytes | None:
    """The body; None when it is larger than any update."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST:
            return None
    return bytes(body)
