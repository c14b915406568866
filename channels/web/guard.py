"""Who may come in: tokens, cookies, Host and Origin, body size, and the headers of every answer.

Without a token the channel serves loopback only, and then a page of another site must not reach
it through the person's browser: a foreign Host (DNS rebinding), a foreign Origin, a form's content
type and a proxy in front are all refused. With tokens, nothing but the login form is open.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from channels.base import Actor
from channels.web.backend import BackendError
from channels.web.limits import BODY_BYTES, LOGIN_SECONDS
from channels.web.wire import ApiError, error_body

log = logging.getLogger(__name__)

SECURITY_HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_OPEN = ("/", "/favicon.ico", "/page/login", "/healthz", "/readyz")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_DRAIN_BYTES = 16 * BODY_BYTES  # read and thrown away, so that the sender gets to see the 413


class Credentials:
    """The tokens by name, and the cookies made from them. No token ever leaves this object."""

    def __init__(
        self, tokens: Mapping[str, str], *, cookie: str, now: Callable[[], float] = time.time
    ) -> None:
        self._digests = {name: _digest(secret) for name, secret in tokens.items()}
        self._now = now
        self.cookie = cookie

    @property
    def required(self) -> bool:
        """Whether anything is asked of a caller."""
        return bool(self._digests)

    def who(self, token: str) -> str | None:
        """The name of a token, or None. Takes the same time whatever is wrong with it."""
        given, found = _digest(token), None
        for name, digest in self._digests.items():
            if hmac.compare_digest(given, digest):
                found = name
        return found

    def grant(self, name: str) -> str:
        """A cookie for the page. It survives restarts and dies with the token that it came from."""
        issued = str(int(self._now()))
        return f"{name}.{issued}.{self._mac(name, issued)}"

    def bearer(self, cookie: str) -> str | None:
        """The token name that a cookie stands for, or None."""
        parts = cookie.rsplit(".", 2)
        if len(parts) != 3 or not cookie.isascii():
            return None
        name, issued, mac = parts
        if name not in self._digests or not issued.isdigit():
            return None
        fresh = self._now() - int(issued) <= LOGIN_SECONDS
        return name if hmac.compare_digest(mac, self._mac(name, issued)) and fresh else None

    def _mac(self, name: str, issued: str) -> str:
        told = f"threadgate web login\n{name}\n{issued}".encode()
        return hmac.new(self._digests[name], told, hashlib.sha256).hexdigest()


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


class Guard:
    """ASGI middleware, outermost: checks a request, names its actor, dresses the answer.

    The actor is `scope["actor"]`. Errors that reach this far are answered as JSON and logged,
    never shown.
    """

    def __init__(self, app: ASGIApp, credentials: Credentials, *, hosts: Sequence[str] = ()) -> None:
        self._app, self._credentials = app, credentials
        self._hosts = _LOOPBACK | {host.strip("[]").lower() for host in hosts if host}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        started = False

        async def dressed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": _dress(message["headers"])}
            await send(message)

        try:
            headers = Headers(scope=scope)
            self._check_place(headers)
            _check_origin(scope["method"], headers)
            _check_type(scope["method"], headers)
            scope["actor"] = self._actor(scope["path"], headers)
            await _check_length(headers, receive)
            await self._app(scope, _bounded(receive), dressed)
        except (ApiError, BackendError) as error:
            await _answer(dressed, error.status, error_body(error))
        except Exception:
            mark = secrets.token_hex(4)
            log.exception("a request failed [%s]: %s %r", mark, scope["method"], scope["path"])
            if not started:
                told = f"this failed on our side; the log has the cause under {mark}"
                await _answer(dressed, 500, error_body(ApiError(500, "internal", told)))

    def _check_place(self, headers: Headers) -> None:
        """Without a token, only the machine itself may call, by a name that is its own."""
        if self._credentials.required:
            return
        if _host(headers.get("host", "")) not in self._hosts:
            raise ApiError(
                403,
                "wrong_host",
                "this address is not served under that host name",
                mend="use http://127.0.0.1",
            )
        if any(name in headers for name in ("forwarded", "x-forwarded-for", "x-real-ip")):
            raise ApiError(
                403,
                "proxy_without_token",
                "a proxy is in front and no token is set",
                mend="set channels.web.token",
            )

    def _actor(self, path: str, headers: Headers) -> Actor:
        if not self._credentials.required:
            return Actor("web", "", "local")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token:
            name = self._credentials.who(token.strip())
        else:
            name = self._credentials.bearer(_cookie(headers, self._credentials.cookie))
        if name is None and path not in _OPEN and not path.startswith("/static/"):
            mend = "send `Authorization: Bearer <token>`, or log in on the page"
            raise ApiError(401, "unauthorized", "a valid token is needed here", mend=mend)
        return Actor("web", "", name or "")


def _dress(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    present = {name.lower() for name, _ in headers}
    extra = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
    if b"cache-control" not in present:
        extra.append((b"cache-control", b"no-store"))
    return [*headers, *extra]


def _host(value: str) -> str:
    """The host of a Host header, without port and brackets. "" for anything odd."""
    try:
        return (urlsplit(f"//{value}").hostname or "").lower()
    except ValueError:
        return ""


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _cookie(headers: Headers, name: str) -> str:
    try:
        jar = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return jar[name].value if name in jar else ""


def _check_origin(method: str, headers: Headers) -> None:
    """A browser says from where a request comes; another site's is refused."""
    origin = headers.get("origin")
    foreign = origin is not None and _netloc(origin) != headers.get("host", "").lower()
    if method not in _SAFE_METHODS:
        foreign = foreign or headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")
    if foreign:
        mend = "call from the page itself; behind a proxy, pass the Host header on"
        raise ApiError(403, "cross_site", "requests from other sites are refused", mend=mend)


def _check_type(method: str, headers: Headers) -> None:
    """Bodies are JSON: no form of another site can send that without asking first."""
    if method in _SAFE_METHODS:
        return
    given = headers.get("content-type", "").partition(";")[0].strip().lower()
    empty = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
    if given != "application/json" and not (empty and not given):
        mend = "send `Content-Type: application/json`"
        raise ApiError(415, "not_json", "the body must be JSON", mend=mend)


async def _check_length(headers: Headers, receive: Receive) -> None:
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()) or int(length) <= BODY_BYTES:
        return  # a length that is no number is refused by the server itself
    taken, more = 0, True
    while more and taken < min(int(length), _DRAIN_BYTES):
        message = await receive()
        taken += len(message.get("body", b""))
        more = message["type"] == "http.request" and message.get("more_body", False)
    raise _too_large()


def _bounded(receive: Receive) -> Receive:
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > BODY_BYTES:
            raise _too_large()
        return message

    return bounded


def _too_large() -> ApiError:
    return ApiError(413, "too_large", f"a body may have {BODY_BYTES:,} bytes", mend="send less at once")


async def _answer(send: Send, status: int, body: object) -> None:
    data = msgspec.json.encode(body)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 413:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})
