"""Anthropic's Messages API through the vendor's SDK, always streaming.

Importing this module imports the SDK, which takes over a second: only a configuration with
`provider = "anthropic"` does so.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx2

from gateway.errors import (
    AuthTrouble,
    ConfigError,
    ModelAuthError,
    ModelError,
    ModelOverloaded,
    ModelRateLimited,
    ModelRejected,
)
from gateway.messages import Json
from gateway.providers.anthropic_reply import Accumulator
from gateway.providers.anthropic_rules import validate
from gateway.providers.anthropic_wire import Builder
from gateway.providers.base import ModelRequest, ModelResponse, OnDelta
from gateway.providers.conversation import AtHand
from gateway.providers.names import original_names
from gateway.providers.reasons import model_error
from gateway.providers.waits import retry_after as asked_to_wait

PROVIDER = "anthropic"
DEFAULT_MAX_OUTPUT_TOKENS = 16_000
CONNECT_TIMEOUT = 10.0
MAX_FILE = 5_000_000  # bytes of one picture or PDF; the vendor's limit for pictures

_Kind = type[ModelError]
# By class; the nearest base class that is named here decides. A test checks that each of the SDK's is.
ERRORS: dict[type[Exception], _Kind] = {
    anthropic.AuthenticationError: ModelAuthError,
    anthropic.PermissionDeniedError: ModelAuthError,
    anthropic.PaymentRequiredError: ModelAuthError,
    anthropic.NotFoundError: ModelAuthError,  # a model that this key may not use "is not found"
    anthropic.CredentialsError: ModelAuthError,
    anthropic.RateLimitError: ModelRateLimited,
    anthropic.RequestTimeoutError: ModelOverloaded,
    anthropic.ConflictError: ModelOverloaded,
    anthropic.ClientClosedRequestError: ModelOverloaded,
    anthropic.HTTPNotImplementedError: ModelRejected,
    anthropic.InternalServerError: ModelOverloaded,
    anthropic.BadRequestError: ModelRejected,
    anthropic.PreconditionFailedError: ModelRejected,
    anthropic.ContentTooLargeError: ModelRejected,
    anthropic.UnprocessableEntityError: ModelRejected,
    anthropic.RequestHeaderFieldsTooLargeError: ModelRejected,
    anthropic.APIStatusError: ModelRejected,  # any other 4xx
    anthropic.APIConnectionError: ModelOverloaded,
    anthropic.APIResponseValidationError: ModelOverloaded,
    anthropic.RetryableError: ModelOverloaded,
    anthropic.WorkloadIdentityError: ModelAuthError,
    anthropic.APIError: ModelRejected,
    anthropic.AnthropicError: ModelRejected,
    httpx2.HTTPError: ModelOverloaded,  # the SDK passes on what breaks in the middle of a stream
    httpx2.StreamError: ModelOverloaded,
    httpx2.InvalidURL: ModelRejected,
    json.JSONDecodeError: ModelOverloaded,  # likewise an event that is not JSON
    UnicodeDecodeError: ModelOverloaded,
}
# An error event inside a stream comes with status 200, so its type has to say what it is. One that is
# not named here broke the answer off, like overload does.
_BY_TYPE: dict[str, _Kind] = {
    "overloaded_error": ModelOverloaded,
    "api_error": ModelOverloaded,
    "timeout_error": ModelOverloaded,
    "rate_limit_error": ModelRateLimited,
    "authentication_error": ModelAuthError,
    "permission_error": ModelAuthError,
    "billing_error": ModelAuthError,
    "not_found_error": ModelAuthError,
    "invalid_request_error": ModelRejected,
}
# What exactly a ModelAuthError is about, where the type says it.
_ABOUT: dict[str, AuthTrouble] = {
    "authentication_error": "key",
    "permission_error": "key",
    "billing_error": "account",
    "not_found_error": "model",
}
# Answered with 429, but no wait that a turn can afford mends them.
_SPENT = frozenset({"contract_spend_limit_reached", "enforced_spend_limit_reached"})
# The API has no code for these two; the words are all there is, and only in refused requests.
_TOO_LONG = re.compile(
    r"prompt is too long|exceeds? (?:the )?(?:model's )?(?:maximum )?context|maximum context length", re.I
)
_THINKING = re.compile(r"\bthinking\b", re.I)


class AnthropicModel:
    """One model behind the Messages API. Its id is `anthropic:<model>`.

    base_url: another endpoint that speaks the same API. max_output_tokens: where the request names
    none. timeout: seconds of silence after which the answer counts as broken off. data_dir: the
    folder that the paths of pictures and files are below. thinking: the API's `thinking` object,
    sent as it is; None leaves the choice to the model. extra: further fields of every request, sent as
    they are. Raises ConfigError without a key.
    """

    def __init__(
        self,
        *,
        model: str,
        api_key: str,
        base_url: str | None = None,
        max_output_tokens: int | None = None,
        timeout: float = 120.0,
        data_dir: Path = Path(),
        thinking: Json | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        if not api_key:
            raise ConfigError("api_key", "is empty", "env:ANTHROPIC_API_KEY, say")
        self._model, self._key = model, api_key
        self._max_tokens = max_output_tokens or DEFAULT_MAX_OUTPUT_TOKENS
        self._thinking, self._extra = thinking, dict(extra or {})
        self._files = AtHand(data_dir, MAX_FILE)
        self._builder = Builder(model_id=self.id, model=model, load=self._files.load)
        self._client = anthropic.AsyncAnthropic(
            api_key=api_key,
            base_url=base_url,
            # The SDK sends the key as a bearer token. Other endpoints of this API may still look for it
            # where it used to be.
            default_headers={"X-Api-Key": api_key} if base_url else None,
            max_retries=0,
            timeout=anthropic.Timeout(timeout, connect=min(timeout, CONNECT_TIMEOUT)),
        )

    @property
    def id(self) -> str:
        return f"{PROVIDER}:{self._model}"

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        """One request, one reply. Raises WireError (a ModelRejected) before sending what the API
        would refuse, and else what `gateway.providers.base` promises."""
        body = await self._body(request)
        reply = Accumulator(
            provider=PROVIDER,
            model_id=self.id,
            max_tokens=body["max_tokens"],
            names=original_names(tool.name for tool in request.tools),
        )
        async with self._events(body) as events:
            async for event in events:
                piece = _fed(reply, event)
                if piece and on_delta is not None:
                    on_delta(piece)
        return reply.response()

    async def close(self) -> None:
        """Let the connections go."""
        await self._client.close()

    async def _body(self, request: ModelRequest) -> Json:
        limit = request.max_output_tokens or self._max_tokens
        body = await self._files.body(self._builder, request, limit)
        if self._thinking is not None:
            body["thinking"] = self._thinking
        validate(body)
        return body

    @asynccontextmanager
    async def _events(self, body: dict[str, Any]) -> AsyncIterator[AsyncIterator[Any]]:
        """The open stream; whatever breaks it leaves as one of our errors."""
        try:
            stream = await self._client.messages.create(**body, stream=True, extra_body=self._extra)
            try:
                async with aclosing(_raw_events(stream.response)) as events:
                    yield events
            finally:
                await stream.close()
        except tuple(ERRORS) as error:
            raise translated(error, secret=self._key) from error


async def _raw_events(response: httpx2.Response) -> AsyncGenerator[Any]:
    """The events as they were sent. The SDK's typed ones put a block's fields into another order, but
    signed blocks must go back exactly as they came."""
    async for sse in anthropic.AsyncStream.raw_events(response):
        if sse.event == "error":
            raise _stream_error(sse.json())
        if sse.data:
            yield sse.json()


def _stream_error(body: Any) -> ModelError:
    error = body.get("error") if isinstance(body, dict) else None
    named = error.get("type") if isinstance(error, dict) else None
    kind = _BY_TYPE.get(named, ModelOverloaded) if isinstance(named, str) else ModelOverloaded
    return kind(f"{named or 'an error'} inside the stream", provider=PROVIDER)


def _fed(reply: Accumulator, event: Any) -> str:
    try:
        return reply.feed(event)
    except (AttributeError, KeyError, TypeError) as error:
        raise ModelOverloaded("the answer holds an event of an unknown shape", provider=PROVIDER) from error


def translated(error: Exception, *, secret: str = "") -> ModelError:
    """Our error for one of the SDK's. Its text holds names and the API's own words, never `secret`."""
    kind = next(ours for theirs in type(error).__mro__ if (ours := ERRORS.get(theirs)) is not None)
    words, retry_after, status = type(error).__name__, None, None
    if isinstance(error, anthropic.APIStatusError):
        status = error.status_code
        if error.error_code in _SPENT:
            kind = ModelAuthError
        retry_after = asked_to_wait(error.response.headers)
        words = _words(error, secret)
    if kind is ModelRejected:
        too_long = isinstance(error, anthropic.ContentTooLargeError) or bool(_TOO_LONG.search(words))
        return ModelRejected(
            words,
            provider=PROVIDER,
            context_too_long=too_long,
            about_thinking=not too_long and bool(_THINKING.search(words)),
        )
    about = _ABOUT.get(error.type or "") if isinstance(error, anthropic.APIStatusError) else None
    return model_error(
        kind, words, error, provider=PROVIDER, retry_after=retry_after, status=status, about=about
    )


def _words(error: anthropic.APIStatusError, secret: str) -> str:
    said = f"{error.status_code} {error.type or type(error).__name__}"
    if error.api_message and isinstance(error.api_message, str):
        said += f": {error.api_message[:300]}"
    return said.replace(secret, "***") if secret else said
