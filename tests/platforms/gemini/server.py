"""A strict Gemini API on a loopback socket, for the real SDK.

    async with GeminiServer() as server:
        server.script += [Fail(status=503), Say(parts=(text("hello"),))]
        model = GeminiModel(model=server.model, api_key=server.key, base_url=server.base_url)

It refuses what the API refuses (rules.py), answers with its script (replies.py) or, when that is
used up, with "ok", and keeps every body it was sent.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from typing import Any

from tests.platforms.endpoint import Endpoint, answer, begin_stream, chunk
from tests.platforms.gemini.replies import STATUSES, Fail, Say, Step, chunks, sse, text, whole
from tests.platforms.gemini.rules import Json, refusal, tokens_of

PATH = re.compile(r"/v1beta/models/([^/:]+):(streamGenerateContent\?alt=sse|generateContent)")


class GeminiServer(Endpoint):
    """One endpoint with some models behind it. `accepted` and `refused` hold the bodies it got."""

    def __init__(
        self, *, models: tuple[str, ...] = ("gemini-3-test",), context_tokens: int = 1_048_576
    ) -> None:
        super().__init__()
        self.models, self.context_tokens = models, context_tokens
        self.model = models[0]
        self.key = "AIzaTest0123456789"
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
        model, streams, body, failure = self._checked(line, headers, raw)
        if failure is not None:
            await answer(writer, failure.status, failure.body(), failure.headers)
            return True
        step = self.script.popleft() if self.script else Say(parts=(text("ok"),))
        if isinstance(step, Fail):
            await answer(writer, step.status, step.body(), step.headers)
            return True
        if step.hold is not None and not await self.held(step.hold, reader):
            return False
        if not streams:
            await answer(writer, 200, whole(step, model, tokens_of(body)), {})
            return True
        return await self._stream(step, model, tokens_of(body), writer)

    def _checked(self, line: str, headers: dict[str, str], raw: bytes) -> tuple[str, bool, Json, Fail | None]:
        method, target, _ = line.split(" ")
        found = PATH.fullmatch(target)
        if method != "POST" or found is None:
            return "", False, {}, Fail(status=404, say="Not found", named="")
        model, streams = found[1], "alt=sse" in found[2]
        if headers.get("x-goog-api-key") != self.key:
            bad_key = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
            say = "API key not valid. Please pass a valid API key."
            return model, streams, {}, Fail(status=400, say=say, details=bad_key)
        try:
            body: Any = json.loads(raw)
        except ValueError as error:
            return model, streams, {}, Fail(status=400, say=f"Invalid JSON payload received. {error}")
        if model not in self.models:
            say = f"models/{model} is not found for API version v1beta"
            return model, streams, body, Fail(status=404, say=say)
        if (why := refusal(body, model, self.context_tokens)) is not None:
            self.refused.append((body, why))
            return model, streams, body, Fail(status=400, say=why)
        self.accepted.append(body)
        return model, streams, body, None

    async def _stream(self, step: Say, model: str, tokens: int, writer: asyncio.StreamWriter) -> bool:
        begin_stream(writer)
        for index, value in enumerate(chunks(step, model, tokens)):
            if step.cut and index == step.after:
                if step.cut == "drop":
                    await writer.drain()
                    writer.transport.abort()
                    return False
                if step.cut != "end":
                    chunk(writer, _broken(step.cut))
                break
            chunk(writer, sse(value))
            await writer.drain()
        chunk(writer, b"")
        await writer.drain()
        return True


def _broken(how: str) -> bytes:
    match how:
        case "garbage":
            return b'data: {"candidates": \r\n\r\n'
        case "list":
            return sse(["what is this"])
        case "bare":
            return sse({"error": {"message": "no code"}})
        case _:
            error = {"code": int(how), "message": "in the middle", "status": STATUSES[int(how)]}
            return sse({"error": error})
