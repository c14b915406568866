"""A strict Chat Completions API on a loopback socket, for the real SDK, in the flavour of one vendor.

    async with OpenAIServer("kimi", models=("kimi-k2.6",)) as server:
        server.script += [Fail(status=429), Say(text="hello")]
        model = ChatModel(provider="kimi", model=server.model, api_key=server.key, base_url=server.url)

It refuses what the vendor refuses (rules.py), answers with its script (replies.py) or, when that is
used up, with "ok", and keeps every body it was sent.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Any

from tests.platforms.endpoint import Endpoint, answer, begin_stream, chunk
from tests.platforms.openai.replies import Fail, Json, Say, Step, chunks, whole
from tests.platforms.openai.rules import FLAVOURS, refusal, tokens_of


class OpenAIServer(Endpoint):
    """One endpoint with some models behind it. `accepted` and `refused` hold the bodies it got."""

    def __init__(
        self,
        flavour: str = "openai",
        *,
        models: tuple[str, ...] = ("gpt-test",),
        context_tokens: int = 200_000,
    ) -> None:
        super().__init__()
        self.flavour, self.models, self.context_tokens = flavour, models, context_tokens
        self.model = models[0]
        self.key = "sk-test-0123456789"
        self.script: deque[Step] = deque()
        self.accepted: list[Json] = []
        self.refused: list[tuple[Json, str]] = []
        self.headers: dict[str, str] = {}  # of the last request

    @property
    def url(self) -> str:
        """What an adapter is given as `base_url`."""
        return self.base_url + FLAVOURS[self.flavour].path.removesuffix("/chat/completions")

    async def handle(
        self,
        line: str,
        headers: dict[str, str],
        raw: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        self.headers = headers
        body, failure = self._checked(line, headers, raw)
        if failure is not None:
            await self._fail(failure, writer)
            return True
        step = self.script.popleft() if self.script else Say(text="ok")
        if isinstance(step, Fail):
            await self._fail(step, writer)
            return True
        if step.hold is not None and not await self.held(step.hold, reader):
            return False
        number, tokens = len(self.accepted), tokens_of(body)
        if not body.get("stream"):
            await answer(writer, 200, whole(step, body["model"], number, tokens), {})
            return True
        return await self._stream(step, body, number, tokens, writer)

    async def _fail(self, failure: Fail, writer: asyncio.StreamWriter) -> None:
        await answer(writer, failure.status, failure.in_words_of(self.flavour), failure.headers)

    def _checked(self, line: str, headers: dict[str, str], raw: bytes) -> tuple[Json, Fail | None]:
        if line.split(" ")[:2] != ["POST", FLAVOURS[self.flavour].path]:
            return {}, Fail(status=404, say=f"Invalid URL ({line})")
        if headers.get("authorization") != f"Bearer {self.key}":
            return {}, Fail(status=401, say="Incorrect API key provided")
        try:
            body: Any = json.loads(raw)
        except ValueError as error:
            return {}, Fail(status=400, say=f"We could not parse the JSON body of your request: {error}")
        if (why := refusal(body, self.flavour, self.context_tokens)) is not None:
            self.refused.append((body, why))
            return body, Fail(
                status=400, say=why, code="1261" if why == "Prompt exceeds max length" else None
            )
        if body["model"] not in self.models:
            return body, Fail(status=404, say=f"The model `{body['model']}` does not exist")
        self.accepted.append(body)
        return body, None

    async def _stream(
        self, step: Say, body: Json, number: int, tokens: int, writer: asyncio.StreamWriter
    ) -> bool:
        begin_stream(writer)
        said_usage = body.get("stream_options", {}).get("include_usage", False)
        for index, event in enumerate(chunks(step, body["model"], number, tokens, self.flavour)):
            if step.cut and index == step.after:
                return await self._cut(step, writer)
            if event["choices"] or said_usage:
                chunk(writer, f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode())
                await writer.drain()
        if step.done:
            chunk(writer, b"data: [DONE]\n\n")
        chunk(writer, b"")
        await writer.drain()
        return True

    async def _cut(self, step: Say, writer: asyncio.StreamWriter) -> bool:
        if step.cut == "drop":
            await writer.drain()
            writer.transport.abort()
            return False
        if step.cut == "garbage":
            chunk(writer, b'data: {"choices": \n\n')
        elif step.cut != "end":
            error = {"message": "in the middle", "type": step.cut, "code": step.cut}
            chunk(writer, f"data: {json.dumps({'error': error})}\n\n".encode())
        chunk(writer, b"")
        await writer.drain()
        return True
