"""The Chat Completions API of OpenAI, DeepSeek, Kimi, GLM and Gemini's compatible endpoint, through
OpenAI's own SDK, always streaming.

Importing this module imports the SDK, which takes half a second: only a configuration with one of
these providers does so. Where the vendors differ is a table: `openai_quirks`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai

from gateway.errors import ConfigError, ModelOverloaded, ModelRejected
from gateway.messages import Json
from gateway.providers.base import ModelRequest, ModelResponse, OnDelta
from gateway.providers.conversation import AtHand
from gateway.providers.openai_errors import ERRORS, Declined, translated
from gateway.providers.openai_quirks import NEVER, QUIRKS, Provider
from gateway.providers.openai_reply import Accumulator
from gateway.providers.openai_rules import validate
from gateway.providers.openai_wire import Builder

CONNECT_TIMEOUT = 10.0
MAX_FILE = 10_000_000  # bytes of one picture or PDF
_PICTURES = frozenset({"image_url", "file"})
_ABOUT_PICTURES = re.compile(r"image|vision|visual|multi-?modal|picture|file|unknown variant", re.I)
# The SDK would take these from variables of the environment, also for other vendors.
_NOT_FOR_OTHERS = ("OpenAI-Organization", "OpenAI-Project")
log = logging.getLogger(__name__)


class ChatModel:
    """One model behind a Chat Completions endpoint. Its id is `<provider>:<model>`.

    provider: whose ways the endpoint has. base_url: another endpoint with the same ways; None: the
    vendor's own. max_output_tokens: where the request names none. timeout: seconds of silence after
    which the answer counts as broken off; None: the vendor's measure. data_dir: the folder that the
    paths of pictures and files are below. extra: further fields of every request, sent as they are.
    Raises ConfigError without a key.
    """

    def __init__(
        self,
        *,
        provider: Provider,
        model: str,
        api_key: str,
        base_url: str | None = None,
        max_output_tokens: int | None = None,
        timeout: float | None = None,
        data_dir: Path = Path(),
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        if not api_key:
            raise ConfigError("api_key", "is empty", f"env:{provider.upper()}_API_KEY, say")
        self._provider, self._model, self._key = provider, model, api_key
        self._quirks, self._extra = QUIRKS[provider], dict(extra or {})
        self._max_tokens = max_output_tokens
        self._files = AtHand(data_dir, MAX_FILE)
        self._builder = self._new_builder()
        silence = timeout or self._quirks.silence
        headers: Any = {} if provider == "openai" else dict.fromkeys(_NOT_FOR_OTHERS, openai.Omit())
        self._client = openai.AsyncOpenAI(
            api_key=api_key,
            base_url=base_url or self._quirks.base_url,
            default_headers=headers,
            max_retries=0,
            timeout=openai.Timeout(silence, connect=min(silence, CONNECT_TIMEOUT)),
        )

    @property
    def id(self) -> str:
        return f"{self._provider}:{self._model}"

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        """One request, one reply; a second request only where the first was refused for its pictures.
        Raises WireError (a ModelRejected) before sending what the API would refuse, and else what
        `gateway.providers.base` promises."""
        body = await self._body(request)
        try:
            return await self._asked(body, request, on_delta)
        except ModelRejected as error:
            if not (_shows_pictures(body) and _ABOUT_PICTURES.search(str(error))):
                raise
            # Behind an address of one's own may be a model that sees nothing. Its sessions must not end
            # with the first picture, so from here on pictures are named, not shown.
            log.warning("model %s takes no pictures or files; they are named instead", self.id)
            self._quirks = dataclasses.replace(self._quirks, images=NEVER, files=NEVER)
            self._builder = self._new_builder()
        return await self._asked(await self._body(request), request, on_delta)

    async def _asked(self, body: Json, request: ModelRequest, on_delta: OnDelta | None) -> ModelResponse:
        reply = Accumulator(
            provider=self._provider,
            model_id=self.id,
            max_tokens=body.get(self._quirks.max_tokens),
            names={self._quirks.name(tool.name): tool.name for tool in request.tools},
        )
        try:
            async with self._chunks(body) as chunks:
                async for chunk in chunks:
                    piece = self._fed(reply, chunk)
                    if piece and on_delta is not None:
                        on_delta(piece)
        except Declined:
            return ModelResponse(content=(), stop="refusal", model=self.id)
        return reply.response()

    async def close(self) -> None:
        """Let the connections go."""
        await self._client.close()

    def _new_builder(self) -> Builder:
        return Builder(
            quirks=self._quirks,
            model_id=self.id,
            model=self._model,
            load=self._files.load,
            placeholders=not _thinks_not(self._extra),
        )

    async def _body(self, request: ModelRequest) -> Json:
        limit = request.max_output_tokens or self._max_tokens
        body = await self._files.body(self._builder, request, limit)
        validate(body, self._quirks)
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        if self._quirks.cache_key and request.session_id:
            # The vendor needs to tell sessions apart, not to know our ids.
            body["prompt_cache_key"] = hashlib.sha256(request.session_id.encode()).hexdigest()[:32]
        return {**body, **self._extra}

    @asynccontextmanager
    async def _chunks(self, body: Json) -> AsyncIterator[AsyncIterator[Any]]:
        """The open stream; whatever breaks it leaves as one of our errors, or as Declined."""
        try:
            # The body goes out as it was built, and chunks come as they were sent: the SDK's own types
            # know neither `reasoning_content` nor `extra_content`.
            stream = await self._client.post(
                "/chat/completions",
                body=body,
                cast_to=object,
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
            try:
                yield stream
            finally:
                await stream.close()
        except tuple(ERRORS) as error:
            raise translated(error, provider=self._provider, secret=self._key) from error

    def _fed(self, reply: Accumulator, chunk: Any) -> str:
        try:
            return reply.feed(chunk)
        except (AttributeError, KeyError, TypeError) as error:
            what = "the answer holds an event of an unknown shape"
            raise ModelOverloaded(what, provider=self._provider) from error


def _shows_pictures(body: Json) -> bool:
    return any(
        part["type"] in _PICTURES
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    )


def _thinks_not(extra: Mapping[str, Any]) -> bool:
    """Whether the configuration switches thinking off, the way DeepSeek, Kimi and GLM know it."""
    thinking = extra.get("thinking")
    return isinstance(thinking, dict) and thinking.get("type") == "disabled"
