"""What exactly is wrong where an endpoint gives no answer, so that the words say what to mend. Pure."""

from __future__ import annotations

import errno
import socket
import ssl

from gateway.errors import AuthTrouble, ModelAuthError, ModelError, ModelOverloaded

_BY_STATUS: dict[int, AuthTrouble] = {
    400: "key",
    401: "key",
    402: "account",
    403: "key",
    404: "model",
    429: "account",
}
_NO_WAY = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH})


def model_error(
    kind: type[ModelError],
    words: str,
    error: Exception,
    *,
    provider: str,
    retry_after: float | None = None,
    status: int | None = None,
    about: AuthTrouble | None = None,
) -> ModelError:
    """An error of this kind with all that is known of its cause. `error`: the SDK's; `status`: of the
    answer; `about`: where the endpoint says by itself what it refuses."""
    if kind is ModelAuthError:
        what = about or _BY_STATUS.get(status or 0, "")
        return ModelAuthError(words, provider=provider, retry_after=retry_after, about=what)
    if kind is ModelOverloaded and status is None:
        why = unreachable(error)
        return ModelOverloaded(words, provider=provider, retry_after=retry_after, unreachable=why)
    return kind(words, provider=provider, retry_after=retry_after)


def unreachable(error: BaseException | None) -> str:
    """Why no connection came about; empty where one did, or nobody knows. Errors of SDKs and their client
    libraries say it somewhere below."""
    while error is not None:
        match error:
            case socket.gaierror():
                return "there is no such host, or no network"
            case ConnectionRefusedError():
                return "nobody listens at its address"
            case ssl.SSLCertVerificationError():
                return f"its certificate is not valid: {error.verify_message}"
            case ssl.SSLError():
                return "there is no TLS at its address"
            case OSError(errno=number) if number in _NO_WAY:
                return "there is no way to its network"
            case _:
                error = error.__cause__ or error.__context__
    return ""
