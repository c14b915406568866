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
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from channels.posted import PostListener
from channels.telegram import wire
from channels.telegram.limits import ALBUM_SECONDS, GAP_SECONDS

log = logging.getLogger("channels.telegram")

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
        self._settings, self._handle = settings, handle
        self._one_at_a_time = asyncio.Lock()
        self._albums: dict[tuple[str, str], _Album] = {}
        self._taken: deque[int] = deque(maxlen=_KEPT)
        self._closing: set[asyncio.Task[None]] = set()
        self._newest: int | None = None  # the highest number that has come
        self._waiting: list[int] = []
        self._came = asyncio.Condition()
        path = urlsplit(settings.url).path or "/"
        self._listening = PostListener(
            settings.host, settings.port, path, self._respond, admits=self._refusal
        )

    @property
    def port(self) -> int:
        """Where we listen."""
        return self._listening.port

    async def start(self) -> None:
        """Listen. Raises OSError when the port is taken."""
        await self._listening.start()

    async def stop(self) -> None:
        """Stop listening; requests in flight end first."""
        await self._listening.stop()

    def _refusal(self, request: Request) -> int | None:
        given = request.headers.get(HEADER, "")
        known = hmac.compare_digest(given.encode(), self._settings.secret.encode())
        return None if known else 403

    async def _respond(self, request: Request, body: bytes) -> Response:
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
