"""Gemini's own API through the vendor's SDK, always streaming.

Importing this module imports the SDK, which takes half a second: only a configuration with
`provider = "gemini"` does so.

The body of a request is handed to the SDK as `extra_body`, which it sends as it stands. Its typed way
would put every signature into another alphabet and the stand-in for one into base64, where the API does
not know it any more; it would also convert the whole conversation anew on every step.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx2
import pydantic
from google import genai
from google.genai import errors, types

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
from gateway.providers.base import ModelRequest, ModelResponse, OnDelta
from gateway.providers.conversation import AtHand
from gateway.providers.gemini_reply import Accumulator
from gateway.providers.gemini_rules import validate
from gateway.providers.gemini_wire import Builder, gemini_name, is_older
from gateway.providers.reasons import model_error

PROVIDER = "gemini"
BASE_URL = "https://generativelanguage.googleapis.com"
VERSION = "v1beta"  # v1 has neither thinking nor signatures for all models
CONNECT_TIMEOUT = 10.0
MAX_FILE = 10_000_000  # bytes of one picture or file; a whole request may have 20 MB

_Kind = type[ModelError]
# By class; the nearest base class that is named here decides. A test checks that each of the SDK's is.
ERRORS: dict[type[Exception], _Kind] = {
    errors.ServerError: ModelOverloaded,
    errors.ClientError: ModelRejected,
    errors.APIError: ModelOverloaded,  # a status that is none, for example inside a stream
    errors.UnknownApiResponseError: ModelOverloaded,  # an event that is not JSON
    errors.ContinuationInterruptedError: ModelOverloaded,
    pydantic.ValidationError: ModelOverloaded,  # JSON of another shape
    httpx2.HTTPError: ModelOverloaded,
    httpx2.StreamError: ModelOverloaded,
    httpx2.InvalidURL: ModelRejected,
    UnicodeDecodeError: ModelOverloaded,
    # What the SDK trips over when an error inside a stream has no code, or an event is no object.
    TypeError: ModelOverloaded,
    AttributeError: ModelOverloaded,
}
# What the API calls an error, where the status alone does not say enough.
_BY_STATUS: dict[str, _Kind] = {
    "UNAUTHENTICATED": ModelAuthError,
    "PERMISSION_DENIED": ModelAuthError,
    "NOT_FOUND": ModelAuthError,  # a model that does not exist, or not for this key
    "FAILED_PRECONDITION": ModelAuthError,  # not in this country, not without billing
    "RESOURCE_EXHAUSTED": ModelRateLimited,
    "CANCELLED": ModelOverloaded,
    "ABORTED": ModelOverloaded,
    "UNKNOWN": ModelOverloaded,
    "INTERNAL": ModelOverloaded,
    "UNAVAILABLE": ModelOverloaded,
    "DEADLINE_EXCEEDED": ModelOverloaded,
}
_BY_CODE: dict[int, _Kind] = {
    401: ModelAuthError,
    402: ModelAuthError,
    403: ModelAuthError,
    404: ModelAuthError,
    408: ModelOverloaded,
    409: ModelOverloaded,
    429: ModelRateLimited,
    499: ModelOverloaded,
    501: ModelRejected,
}
# What exactly a ModelAuthError is about, where the status says it in words.
_ABOUT: dict[str, AuthTrouble] = {
    "UNAUTHENTICATED": "key",
    "PERMISSION_DENIED": "key",
    "NOT_FOUND": "model",
    "FAILED_PRECONDITION": "account",
}
_KEY_REASONS = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED"})
# The API has no code for these two; the words are all there is, and only in refused requests.
_TOO_LONG = re.compile(
    r"token count.{0,40} exceeds|exceeds the maximum number of tokens|payload size exceeds", re.I
)
_THINKING = re.compile(r"thought[_ ]?signature|\bthinking\b|\bthoughts?\b", re.I)
_log = logging.getLogger("google_genai")


class GeminiModel:
    """One model behind Gemini's own API. Its id is `gemini:<model>`.

    base_url: another endpoint that speaks the same API; a version at its end is used instead of v1beta.
    max_output_tokens: where the request names none; None leaves it to the model (thoughts count as
    output). timeout: seconds of silence after which the answer counts as broken off. data_dir: the
    folder that the paths of pictures and files are below. extra: further fields of the request, as the
    API names them; those of `generationConfig` are added to ours. Raises ConfigError without a key.
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
        extra: Json | None = None,
    ) -> None:
        if not api_key:
            raise ConfigError("api_key", "is empty", "env:GEMINI_API_KEY, say")
        self._model, self._key = model.removeprefix("models/"), api_key
        self._max_tokens, self._extra = max_output_tokens, extra or {}
        self._files = AtHand(data_dir, MAX_FILE)
        self._builder = Builder(model_id=self.id, model=self._model, load=self._files.load)
        _quiet()
        limits = httpx2.Timeout(timeout, connect=min(timeout, CONNECT_TIMEOUT))

        async def limit(request: httpx2.Request) -> None:
            # The SDK either switches time limits off or tells them to the server, which then ends the
            # answer after that time, silent or not.
            request.extensions["timeout"] = limits.as_dict()

        # A client of our own: with aiohttp, which the SDK prefers, it tries again by itself.
        self._http = httpx2.AsyncClient(timeout=limits, event_hooks={"request": [limit]})
        url, version = _address(base_url or BASE_URL)
        self._client = genai.Client(
            enterprise=False,
            api_key=api_key,
            http_options=types.HttpOptions(
                base_url=url, api_version=version, httpx_async_client=self._http, retry_options=None
            ),
        )

    @property
    def id(self) -> str:
        return f"{PROVIDER}:{self._model}"

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        """One request, one reply. Raises WireError (a ModelRejected) before sending what the API
        would refuse, and else what `gateway.providers.base` promises. An answer that the endpoint
        gives in several instalments is one reply."""
        body = await self._body(request)
        names = {gemini_name(tool.name): tool.name for tool in request.tools}
        reply = Accumulator(provider=PROVIDER, model_id=self.id, names=names)
        async with aclosing(self._chunks(body)) as chunks:
            async for chunk in chunks:
                piece = reply.feed(chunk)
                if piece and on_delta is not None:
                    on_delta(piece)
        return reply.response()

    async def close(self) -> None:
        """Let the connections go."""
        self._client.close()
        await self._client.aio.aclose()
        await self._http.aclose()

    async def _body(self, request: ModelRequest) -> Json:
        limit = request.max_output_tokens or self._max_tokens
        body = await self._files.body(self._builder, request, limit)
        validate(body, signed=not is_older(self._model))
        for name, value in self._extra.items():
            ours = body.get(name)
            body[name] = {**value, **ours} if isinstance(ours, dict) and isinstance(value, dict) else value
        return body

    async def _chunks(self, body: Json) -> AsyncGenerator[Any]:
        """The pieces of the answer; whatever breaks it leaves as one of our errors."""
        config: Any = {
            "http_options": {"extra_body": body},
            "automatic_function_calling": {"disable": True},
        }
        try:
            # The SDK insists on contents; these give way to those of the body.
            stream: Any = await self._client.aio.models.generate_content_stream(
                model=self._model, contents="-", config=config
            )
            async with aclosing(stream) as chunks:
                async for chunk in chunks:
                    yield chunk
        except tuple(ERRORS) as error:
            raise translated(error, secret=self._key) from error


def _address(base_url: str) -> tuple[str, str]:
    """(address, version of the API)."""
    found = re.fullmatch(r"(.*?)/(v\d+\w*)/?", base_url)
    return (found[1], found[2]) if found else (base_url.rstrip("/"), VERSION)


def _quiet() -> None:
    """Its remarks are for people who write programs with it."""
    _log.setLevel(logging.ERROR)
    # A reason to stop, or the like, that this version has not heard of; FINISH says what becomes of it.
    warnings.filterwarnings("ignore", r".* is not a valid \w+", UserWarning, r"google\.genai\.")


def translated(error: Exception, *, secret: str = "") -> ModelError:
    """Our error for one of the SDK's. Its text holds names and the API's own words, never `secret`."""
    kind = next(ours for theirs in type(error).__mro__ if (ours := ERRORS.get(theirs)) is not None)
    if not isinstance(error, errors.APIError):
        return model_error(kind, type(error).__name__, error, provider=PROVIDER)
    status = error.status if isinstance(error.status, str) else ""
    details = _details(error.details)
    kind = _BY_STATUS.get(status) or _BY_CODE.get(error.code) or kind
    if any(detail.get("reason") in _KEY_REASONS for detail in details):
        kind = ModelAuthError
    words = _words(error, status, secret)
    if kind is ModelRejected:
        too_long = error.code == 413 or bool(_TOO_LONG.search(words))
        return ModelRejected(
            words,
            provider=PROVIDER,
            context_too_long=too_long,
            about_thinking=not too_long and bool(_THINKING.search(words)),
        )
    wait = _retry_after(error, details)
    about = _ABOUT.get(status)
    return model_error(
        kind, words, error, provider=PROVIDER, retry_after=wait, status=error.code, about=about
    )


def _details(body: Any) -> list[Json]:
    """The typed details of an error, by Google's common form of errors."""
    inner = body.get("error", body) if isinstance(body, dict) else {}
    details = inner.get("details") if isinstance(inner, dict) else None
    return [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []


def _words(error: errors.APIError, status: str, secret: str) -> str:
    said = f"{error.code} {status or type(error).__name__}"
    if error.message and isinstance(error.message, str):
        said += f": {error.message[:300]}"
    return said.replace(secret, "***") if secret else said


def _retry_after(error: errors.APIError, details: list[Json]) -> float | None:
    """Seconds to wait as the endpoint says it, in the error itself (`"7s"`) or beside it."""
    for detail in details:
        if str(detail.get("@type", "")).endswith("google.rpc.RetryInfo"):
            found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)s", str(detail.get("retryDelay", "")))
            if found:
                return float(found[1])
    headers = getattr(error.response, "headers", {})
    value = str(headers.get("retry-after", "")).strip()
    return float(value) if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", value) else None
