"""A scripted HTTP endpoint on a loopback socket: what every vendor's test server is built on."""

from __future__ import annotations

import asyncio
import json
from types import TracebackType
from typing import Any, Self

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


class Endpoint:
    """Accepts connections and hands each request to `handle`. `arrived`: set by every request. `left`:
    set when a client goes away before its answer is complete."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.left = asyncio.Event()
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._server: asyncio.Server | None = None

    @property
    def base_url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def handle(
        self,
        line: str,
        headers: dict[str, str],
        raw: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        """Answer one request; False: the connection is over."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        tasks = list(self._open)
        for writer in self._open.values():
            writer.transport.abort()  # the handler reads an end and returns
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            while (request := await _read(reader)) is not None:
                self.arrived.set()
                if not await self.handle(*request, reader, writer):
                    break
        except ConnectionError:
            self.left.set()
        finally:
            del self._open[task]
            writer.close()

    async def held(self, until: asyncio.Event, reader: asyncio.StreamReader) -> bool:
        """Wait; False when the client goes away first."""
        gone = asyncio.ensure_future(reader.read(1))
        waits = asyncio.ensure_future(until.wait())
        try:
            await asyncio.wait({gone, waits}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                self.left.set()
                return False
            return True
        finally:
            for future in (gone, waits):
                future.cancel()
            await asyncio.gather(gone, waits, return_exceptions=True)


def begin_stream(writer: asyncio.StreamWriter) -> None:
    """The head of a stream of events, in chunks."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")


def chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    """One chunk of a stream; an empty one ends it."""
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


async def answer(writer: asyncio.StreamWriter, status: int, body: Any, headers: dict[str, str]) -> None:
    """A whole JSON answer."""
    raw = json.dumps(body).encode()
    lines = [
        f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}",
        "content-type: application/json",
        f"content-length: {len(raw)}",
        "request-id: req_test",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + raw)
    await writer.drain()


async def _read(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes] | None:
    """(request line, headers, body), or None when the client is done."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    return head[0], headers, await reader.readexactly(int(headers.get("content-length", "0")))
