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
from typing import Any

from tests.platforms.anthropic.replies import Fail, Say, Step, events, sse, text, whole
from tests.platforms.anthropic.rules import Json, refusal, tokens_of
from tests.platforms.endpoint import Endpoint, answer, begin_stream, chunk

VERSION = "2026-10-21"


class AnthropicServer(Endpoint):
    """One endpoint with some models behind it. `accepted` and `refused` hold the bodies it got."""

    def __init__(self, *, models: tuple[str, ...] = ("claude-test",), context_tokens: int = 200_000) -> None:
        super().__init__()
        self.models, self.context_tokens = models, context_tokens
        self.model = models[0]
        self.key = "sk-ant-test-0123456789"
        self.takes_bearer = True  # False: like endpoints that look into x-api-key only
        self.script: deque[Step] = deque()
        self.accepted: list[Json] = []
        self.refused: list[tuple[Json, str]] = []

    async def handle(
        self,
        line: str,
        headers: dict[str, str],
        raw: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        body, failure = self._checked(line, headers, raw)
        if failure is not None:
            await answer(writer, failure.status, failure.body(), failure.headers)
            return True
        step = self.script.popleft() if self.script else Say(blocks=(text("ok"),))
        if isinstance(step, Fail):
            await answer(writer, step.status, step.body(), step.headers)
            return True
        if step.hold is not None and not await self.held(step.hold, reader):
            return False
        number, tokens = len(self.accepted), tokens_of(body)
        if not body.get("stream"):
            await answer(writer, 200, whole(step, body["model"], number, tokens), {})
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

    async def _stream(
        self, step: Say, model: str, number: int, tokens: int, writer: asyncio.StreamWriter
    ) -> bool:
        begin_stream(writer)
        for index, event in enumerate(events(step, model, number, tokens)):
            if step.cut and index == step.after:
                if step.cut == "drop":
                    await writer.drain()
                    writer.transport.abort()
                    return False
                if step.cut == "garbage":
                    chunk(writer, b'event: message_delta\ndata: {"type": \n\n')
                elif step.cut != "end":
                    error = {"type": "error", "error": {"type": step.cut, "message": "in the middle"}}
                    chunk(writer, sse(error))
                break
            chunk(writer, sse(event))
            await writer.drain()
        chunk(writer, b"")
        await writer.drain()
        return True
