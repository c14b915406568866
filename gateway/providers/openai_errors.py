"""The errors of the Chat Completions vendors, as ours.

The class of the SDK's error, made from the status, says most; the vendors' own codes say more: an
account that is spent comes as a rate limit, overload as one too, a refused text as a bad request.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import httpx
import openai

from gateway.errors import (
    AuthTrouble,
    ModelAuthError,
    ModelError,
    ModelOverloaded,
    ModelRateLimited,
    ModelRejected,
)
from gateway.providers.reasons import model_error
from gateway.providers.waits import retry_after

_Kind = type[ModelError]
# By class; the nearest base class that is named here decides. A test checks that each of the SDK's is.
ERRORS: dict[type[Exception], _Kind] = {
    openai.AuthenticationError: ModelAuthError,
    openai.PermissionDeniedError: ModelAuthError,
    openai.NotFoundError: ModelAuthError,  # a model that this key may not use "does not exist"
    openai.RateLimitError: ModelRateLimited,
    openai.ConflictError: ModelOverloaded,
    openai.InternalServerError: ModelOverloaded,
    openai.BadRequestError: ModelRejected,
    openai.UnprocessableEntityError: ModelRejected,
    openai.APIStatusError: ModelRejected,  # any other 4xx, but see below
    openai.APIConnectionError: ModelOverloaded,
    openai.APIResponseValidationError: ModelOverloaded,
    openai.APIError: ModelOverloaded,  # this very class: an error in the middle of a stream
    openai.OpenAIError: ModelRejected,
    httpx.HTTPError: ModelOverloaded,  # the SDK passes on what breaks in the middle of a stream
    httpx.StreamError: ModelOverloaded,
    httpx.InvalidURL: ModelRejected,
    json.JSONDecodeError: ModelOverloaded,  # likewise an event that is not JSON
    UnicodeDecodeError: ModelOverloaded,
}
_BY_STATUS: dict[int, _Kind] = {402: ModelAuthError, 408: ModelOverloaded, 425: ModelOverloaded}

_Meaning = _Kind | Literal["too_long", "declined"]
# `code`, `type` or `status` of an error, whatever the HTTP status beside it.
_BY_CODE: dict[str, _Meaning] = {
    # OpenAI
    "context_length_exceeded": "too_long",
    "string_above_max_length": "too_long",
    "insufficient_quota": ModelAuthError,
    "billing_hard_limit_reached": ModelAuthError,
    "rate_limit_exceeded": ModelRateLimited,
    "server_error": ModelOverloaded,
    "service_unavailable": ModelOverloaded,
    "overloaded_error": ModelOverloaded,
    "content_policy_violation": "declined",
    "invalid_prompt": "declined",
    # Kimi, the first one OpenAI's too
    "content_filter": "declined",
    "exceeded_current_quota_error": ModelAuthError,
    "rate_limit_reached_error": ModelRateLimited,
    "engine_overloaded_error": ModelOverloaded,
    # GLM: docs.z.ai/api-reference/api-code
    **dict.fromkeys(("1000", "1001", "1002", "1003", "1004"), ModelAuthError),
    **dict.fromkeys(("1110", "1111", "1112", "1113", "1120", "1121"), ModelAuthError),
    **dict.fromkeys(("1211", "1220", "1221", "1222"), ModelAuthError),
    "1230": ModelOverloaded,
    "1234": ModelOverloaded,
    "1261": "too_long",
    "1301": "declined",
    "1302": ModelRateLimited,
    "1303": ModelRateLimited,
    "1305": ModelOverloaded,
    # No wait that a turn can afford mends these: limits of a day or of a plan, an expired plan.
    **dict.fromkeys(("1304", "1308", "1309", "1310", "1311", "1313"), ModelAuthError),
    # Gemini
    "RESOURCE_EXHAUSTED": ModelRateLimited,
    "UNAVAILABLE": ModelOverloaded,
    "UNAUTHENTICATED": ModelAuthError,
}
# What exactly a ModelAuthError is about, where a code says more than the status.
_ABOUT: dict[str, AuthTrouble] = {
    "model_not_found": "model",
    **dict.fromkeys(("1211", "1221", "1222"), "model"),
    **dict.fromkeys(("insufficient_quota", "billing_hard_limit_reached"), "account"),
    "exceeded_current_quota_error": "account",
    **dict.fromkeys(("1110", "1111", "1112", "1113", "1120", "1121"), "account"),
    **dict.fromkeys(("1304", "1308", "1309", "1310", "1311", "1313"), "account"),
}
# Where there is no code the words are all there is, and only in refused requests.
_TOO_LONG = re.compile(
    r"context (?:length|window)|exceed(?:s|ed)? (?:the )?(?:model'?s? )?(?:maximum|token limit)"
    r"|input token(?:s| length| count).*(?:too long|exceed)|prompt (?:is|exceeds) .*(?:long|length)",
    re.I,
)
_DECLINED = re.compile(r"content exists risk|considered high risk", re.I)  # DeepSeek, Kimi
_BAD_KEY = re.compile(r"api key not valid", re.I)  # Gemini answers 400
_THINKING = re.compile(r"reasoning_content|thinking|thought.?signature", re.I)


class Declined(Exception):
    """The endpoint will not answer this text: a refusal, though it comes as an error."""


def translated(error: Exception, *, provider: str, secret: str = "") -> ModelError | Declined:
    """Our error for one of the SDK's. Its text holds names and the API's own words, never `secret`."""
    plain = next(ours for theirs in type(error).__mro__ if (ours := ERRORS.get(theirs)) is not None)
    if not isinstance(error, openai.APIError):
        return model_error(plain, type(error).__name__, error, provider=provider)
    facts = _facts(error.body)
    words = str(facts.get("message") or error.message or "")[:300]
    kind = _meaning(error, facts, words, plain)
    wait = status = None
    if isinstance(error, openai.APIStatusError):
        status = error.status_code
        wait = _google_wait(facts) or retry_after(error.response.headers)
        words = f"{error.status_code} {words}"
    words = words.replace(secret, "***") if secret else words
    if kind == "declined":
        return Declined(words)
    if isinstance(kind, str):
        return ModelRejected(words, provider=provider, context_too_long=True)
    if kind is ModelRejected:
        about = _THINKING.search(words) is not None
        return ModelRejected(words, provider=provider, about_thinking=about)
    what = next((_ABOUT[name] for name in _named(facts) if name in _ABOUT), None)
    return model_error(kind, words, error, provider=provider, retry_after=wait, status=status, about=what)


def _meaning(error: openai.APIError, facts: dict[str, Any], words: str, kind: _Kind) -> _Meaning:
    named = _named(facts)
    for name in named:
        if name in _BY_CODE:
            return _BY_CODE[name]
    if isinstance(error, openai.APIStatusError):
        if error.status_code == 413:
            return "too_long"
        kind = _BY_STATUS.get(error.status_code, kind)
    elif type(error) is openai.APIError and any("invalid" in name for name in named):
        kind = ModelRejected
    if kind is not ModelRejected:
        return kind
    if _TOO_LONG.search(words):
        return "too_long"
    if _DECLINED.search(words):
        return "declined"
    return ModelAuthError if _BAD_KEY.search(words) else kind


def _named(facts: dict[str, Any]) -> list[str]:
    return [str(facts[name]) for name in ("code", "status", "type") if facts.get(name) is not None]


def _facts(body: Any) -> dict[str, Any]:
    """The error itself: Gemini wraps it in a list, some endpoints in one more object."""
    if isinstance(body, list):
        body = body[0] if body else None
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    return body if isinstance(body, dict) else {}


def _google_wait(facts: dict[str, Any]) -> float | None:
    details = facts.get("details")
    for detail in details if isinstance(details, list) else []:
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?s", delay):
            return float(delay[:-1])
    return None
