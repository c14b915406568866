"""Every error that Threadgate raises on purpose.

GatewayError
├── ConfigError              the configuration cannot be used; names the key and the mend
├── StoreError
│   ├── StoreUnavailable     the database could not be written within the bounded wait
│   ├── StoreVersionError    corrupt, foreign or newer than this program
│   └── LeaseLost            another runner owns the session now; the holder must stop at once
├── StandingUnknown          who somebody is cannot be told yet; to be asked again
├── ToolError                a tool says "this went wrong"; becomes an error result
├── ModelError               one model call failed
│   ├── ModelRateLimited     429; carries retry_after
│   ├── ModelOverloaded      5xx, 529, overloaded inside a stream, cut stream, no connection
│   ├── ModelRejected        4xx that a retry cannot mend; `context_too_long` tells one apart
│   └── ModelAuthError       key missing or refused
├── IntelligenceUnavailable  the model endpoint, after retries and failover (exit code 4)
└── RequiredToolServerDown   an MCP server marked required (exit code 6)

Texts never carry a secret: they are built from names and numbers, not from requests.
"""

from __future__ import annotations

from typing import Literal

AuthTrouble = Literal["", "key", "model", "account"]


class GatewayError(Exception):
    """Base of all errors of the gateway."""


class ConfigError(GatewayError):
    """The configuration cannot be used. `key` is the dotted path, `mend` what to write instead."""

    def __init__(self, key: str, problem: str, mend: str = "") -> None:
        self.key, self.problem, self.mend = key, problem, mend
        super().__init__(f"{key}: {problem}" + (f" ({mend})" if mend else ""))


class StoreError(GatewayError):
    """Base of the store's errors."""


class StoreUnavailable(StoreError):
    """The database could not be reached or written within the bounded wait. Nothing was stored."""


class StoreVersionError(StoreError):
    """The database is corrupt, not ours, or was written by a newer version. It was not touched."""


class LeaseLost(StoreError):
    """The session belongs to another runner now. Whoever gets this stops without writing."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"session {session_id} is no longer held by this runner")


class StandingUnknown(GatewayError):
    """Whether this person may talk hangs on what the platform has not told yet. Nothing was stored."""


class ToolError(GatewayError):
    """Raised by a tool to report a failure that the model may read and correct."""


class ModelError(GatewayError):
    """One call of a model failed. `retry_after` is in seconds, None when the server did not say."""

    def __init__(self, message: str, *, provider: str = "", retry_after: float | None = None) -> None:
        self.provider, self.retry_after = provider, retry_after
        super().__init__(f"{provider}: {message}" if provider else message)


class ModelRateLimited(ModelError):
    """The endpoint asked for fewer requests."""


class ModelOverloaded(ModelError):
    """The endpoint is overloaded, unreachable, or dropped the answer. Worth another try. `unreachable`:
    why there was no connection, in words; empty where there was one or the reason is not known."""

    def __init__(
        self, message: str, *, provider: str = "", retry_after: float | None = None, unreachable: str = ""
    ) -> None:
        self.unreachable = unreachable
        super().__init__(message, provider=provider, retry_after=retry_after)


class ModelRejected(ModelError):
    """The endpoint refuses this request for good. `context_too_long`: a shorter one may pass."""

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        context_too_long: bool = False,
        about_thinking: bool = False,
    ) -> None:
        self.context_too_long, self.about_thinking = context_too_long, about_thinking
        super().__init__(message, provider=provider)


class ModelAuthError(ModelError):
    """The key is missing, wrong or not allowed to use this model. `about`: what is refused, the key, the
    name of the model (or the address), the account behind the key; empty where that is not known."""

    def __init__(
        self, message: str, *, provider: str = "", retry_after: float | None = None, about: AuthTrouble = ""
    ) -> None:
        self.about: AuthTrouble = about
        super().__init__(message, provider=provider, retry_after=retry_after)


class IntelligenceUnavailable(GatewayError):
    """No configured model answered, after retries and failover."""


class RequiredToolServerDown(GatewayError):
    """A tool server that the agent cannot do without is not reachable."""

    def __init__(self, server: str, detail: str = "") -> None:
        self.server = server
        super().__init__(f"required tool server {server!r} is down" + (f": {detail}" if detail else ""))
