"""A strict Messages API on a loopback socket, for the real SDK.

    async with AnthropicServer() as server:
        server.script += [Fail(status=529), Say(blocks=(text("hello"),))]
        model = AnthropicModel(model=server.model, api_key=server.key, base_url=server.base_url)

It refuses what the API refuses (rules.py), answers with its script (replies.py) or, when that is
used up, with "ok", and keeps every body it was sent.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from types import TracebackType
from typing import Any

from tests.platforms.anthropic.replies import Fail, Say, Step, events, sse, text, whole
from tests.platforms.anthropic.rules import Json, refusal, tokens_of

VERSION = "2026-10-21"
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


class AnthropicServer:
    """One endpoint with some models behind it. `accepted` and `refused` hold the bodies it got."""

    def __init__(self, *, models: tuple[str, ...] = ("claude-test",), context_tokens: int = 200_000) -> None:
        self.models, self.context_tokens = models, context_tokens
        self.model = models[0]
        self.key = "sk-ant-test-0123456789"
        self.takes_bearer = True  # False: like endpoints that look into x-api-key only
        self.script: deque[Step] = deque()
        self.accepted: list[Json] = []
        self.refused: list[tuple[Json, str]] = []
        self.arrived = asyncio.Event()  # set by every request
        self.left = asyncio.Event()  # set when a client goes away before its answer is complete
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._server: asyncio.Server | None = None

    @property
    def base_url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> AnthropicServer:
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
                if not await self._handle(*request, reader, writer):
                    break
        except ConnectionError:
            self.left.set()
        finally:
            del self._open[task]
            writer.close()

    async def _handle(
        self,
        line: str,
        headers: dict[str, str],
        raw: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        """Answer one request; False: the connection is over."""
        self.arrived.set()
        body, failure = self._checked(line, headers, raw)
        if failure is not None:
            await _answer(writer, failure.status, failure.body(), failure.headers)
            return True
        step = self.script.popleft() if self.script else Say(blocks=(text("ok"),))
        if isinstance(step, Fail):
            await _answer(writer, step.status, step.body(), step.headers)
            return True
        if step.hold is not None and not await self._held(step.hold, reader):
            return False
        number, tokens = len(self.accepted), tokens_of(body)
        if not body.get("stream"):
            await _answer(writer, 200, whole(step, body["model"], number, tokens), {})
            return True
        return await self._stream(step, body["model"], number, tokens, writer)

    def _checked(self, line: str, headers: dict[str, str], raw: bytes) -> tuple[Json, Fail | None]:
        if line.split(" ")[:2] != ["POST", "/v1/messages"]:
            return {}, Fail(status=404, say="Not found")
        bearer = headers.get("authorization", "").removeprefix("Bearer ") if self.takes_bearer else ""
        if headers.get("x-api-key", bearer) != self.key:
            return {}, Fail(status=401, say="invalid x-api-key")
        if headers.get("anthropic-version") != VERSION:
            return {}, Fail(status=400, say=f"anthropic-version: {VERSION} is served here")
        if headers.get("content-type") != "application/json":
            return {}, Fail(status=400, say="content-type: must be application/json")
        try:
            body: Any = json.loads(raw)
        except ValueError as error:
            return {}, Fail(status=400, say=f"The request body is not valid JSON: {error}")
        if (why := refusal(body, self.context_tokens)) is not None:
            self.refused.append((body, why))
            return body, Fail(status=400, say=why)
        if body["model"] not in self.models:
            return body, Fail(status=404, say=f"model: {body['model']}")
        self.accepted.append(body)
        return body, None

    async def _held(self, until: asyncio.Event, reader: asyncio.StreamReader) -> bool:
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

    async def _stream(
        self, step: Say, model: str, number: int, tokens: int, writer: asyncio.StreamWriter
    ) -> bool:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for index, event in enumerate(events(step, model, number, tokens)):
            if step.cut and index == step.after:
                if step.cut == "drop":
                    await writer.drain()
                    writer.transport.abort()
                    return False
                if step.cut == "garbage":
                    _chunk(writer, b'event: message_delta\ndata: {"type": \n\n')
                elif step.cut != "end":
                    error = {"type": "error", "error": {"type": step.cut, "message": "in the middle"}}
                    _chunk(writer, sse(error))
                break
            _chunk(writer, sse(event))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


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


async def _answer(writer: asyncio.StreamWriter, status: int, body: Json, headers: dict[str, str]) -> None:
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
