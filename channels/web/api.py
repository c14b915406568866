"""The routes: each handler decodes, asks the backend, and shapes the answer.

Beside the API of the design there are the page's own: `/`, `/static/*`, `/page/*` and, on
`GET /sessions/{id}`, `?html=1&from=N`.
"""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

import msgspec
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from channels.base import Actor
from channels.render.html import safe_html
from channels.web.backend import BackendError, ClickResult, WebBackend, WireEvent
from channels.web.guard import Credentials
from channels.web.hub import Change, Hub, join
from channels.web.limits import AUDIT_ROWS, DRESSED_CHARS, LOGIN_SECONDS, PING_SECONDS, SEND_SECONDS
from channels.web.render import page_session
from channels.web.wire import (
    CLICK_STATUS,
    AnswerBody,
    ApiError,
    CardBody,
    EmptyBody,
    GiveBody,
    LoginBody,
    MessageBody,
    RenderBody,
    ResolveBody,
    check_answer,
    check_message,
    check_resolve,
    click_body,
    decode,
    error_body,
    pending_body,
    plain,
    posted_body,
    session_body,
)

STATIC = Path(__file__).parent / "static"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
_RETRY_MS = 1_000


def make_app(
    backend: WebBackend, hub: Hub, credentials: Credentials, examples: Sequence[str] = ()
) -> ASGIApp:
    """The application without its guard. `scope["actor"]` must be set by the time it is called."""
    api = _Api(backend, hub, credentials, examples)
    get, post = ["GET"], ["POST"]
    routes = [
        Route("/agents/{agent}/messages", api.post_message, methods=post),
        Route("/agents/{agent}/messages/stream", api.stream_message, methods=post),
        Route("/sessions", api.sessions, methods=get),
        Route("/sessions/{session_id}", api.session, methods=get),
        Route("/sessions/{session_id}/events", api.events, methods=get),
        Route("/sessions/{session_id}/files/{number:int}", api.sent_file, methods=get),
        Route("/sessions/{session_id}/stop", api.stop, methods=post),
        Route("/pending", api.pending, methods=get),
        Route("/pending/{pending_id}/cancel", api.cancel, methods=post),
        Route("/pending/{pending_id}/give", api.give, methods=post),
        Route("/pending/{pending_id}/show", api.show, methods=post),
        Route("/grants", api.grants, methods=get),
        Route("/grants/{grant_id}", api.revoke, methods=["DELETE"]),
        Route("/schedules", api.schedules, methods=get),
        Route("/schedules/{schedule_id}", api.cancel_schedule, methods=["DELETE"]),
        Route("/pending-approvals/{pending_id}/resolve", api.resolve, methods=post),
        Route("/pending-cards/{card}/resolve", api.resolve_card, methods=post),
        Route("/pending-questions/{pending_id}/answer", api.answer, methods=post),
        Route("/audit", api.audit, methods=get),
        Route("/healthz", api.healthz, methods=get),
        Route("/readyz", api.readyz, methods=get),
        Route("/metrics", api.metrics, methods=get),
        Route("/", api.static, methods=get),
        Route("/favicon.ico", api.static, methods=get),
        Route("/static/{name}", api.static, methods=get),
        Route("/page/me", api.me, methods=get),
        Route("/page/changes", api.changes, methods=get),
        Route("/page/render", api.render, methods=post),
        Route("/page/previews/{pending_id}", api.preview_image, methods=get),
        Route("/page/login", api.login, methods=post),
        Route("/page/logout", api.logout, methods=post),
    ]
    handlers: dict[Any, Any] = {ApiError: _refused, BackendError: _refused, HTTPException: _no_route}
    routed = ExceptionMiddleware(Router(routes), handlers)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        # Not a Starlette application: its own answer to a fault would come before the guard's.
        # The router reports unknown addresses as errors only to what calls itself one.
        scope["app"] = app
        await routed(scope, receive, send)

    return app


def answer(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(msgspec.json.encode(body), status, headers, media_type="application/json")


async def _refused(_request: Request, error: Exception) -> Response:
    refusal = cast("ApiError | BackendError", error)
    return answer(error_body(refusal), refusal.status)


async def _no_route(request: Request, error: Exception) -> Response:
    status = cast("HTTPException", error).status_code
    if status == 405:
        allowed = (cast("HTTPException", error).headers or {}).get("Allow", "")
        told = f"{request.method} is not possible here"
        body = error_body(ApiError(405, "method_not_allowed", told, mend=f"use {allowed}"))
        return answer(body, 405, {"allow": allowed})
    return answer(error_body(ApiError(status, "not_found", "there is nothing at this address")), status)


class _Api:
    def __init__(
        self, backend: WebBackend, hub: Hub, credentials: Credentials, examples: Sequence[str]
    ) -> None:
        self._backend, self._hub, self._credentials = backend, hub, credentials
        self._examples = list(examples)
        self._files = _load(STATIC)

    # ---- talking

    async def post_message(self, request: Request) -> Response:
        wait = _flag(request, "wait")
        body = check_message(decode(MessageBody, await request.body()))
        posted = await self._post(request, body)
        if not wait:
            return answer(posted_body(posted), 202)
        result = await self._unless_closing(self._backend.wait_turn(posted))
        if result is None:  # stopping: the message is stored, its turn goes on after the restart
            return answer(posted_body(posted), 202)
        extra = {"message_id": posted.message_id, "queued": posted.queued, "duplicate": posted.duplicate}
        return answer({**extra, **result})

    async def stream_message(self, request: Request) -> Response:
        body = check_message(decode(MessageBody, await request.body()))
        posted = await self._post(request, body)
        return self._sse(await self._backend.turn_events(posted, actor=_actor(request)))

    async def _post(self, request: Request, body: MessageBody) -> Any:
        return await self._backend.post_message(
            request.path_params["agent"],
            body.text,
            actor=_actor(request),
            session_id=body.session_id,
            message_id=body.message_id,
        )

    async def _unless_closing(self, work: Awaitable[dict[str, Any]]) -> dict[str, Any] | None:
        result = asyncio.ensure_future(work)
        closing = asyncio.create_task(self._hub.closing.wait())
        try:
            await asyncio.wait((result, closing), return_when=asyncio.FIRST_COMPLETED)
            return result.result() if result.done() else None
        finally:
            result.cancel()
            closing.cancel()

    # ---- looking

    async def sessions(self, _request: Request) -> Response:
        return answer({"sessions": [plain(line) for line in await self._backend.sessions()]})

    async def session(self, request: Request) -> Response:
        for_page, start = _flag(request, "html"), _number(request, "from", 0)
        session_id = request.path_params["session_id"]
        view = await self._backend.session(session_id, start or 0, actor=_actor(request))
        return answer(page_session(view) if for_page else session_body(view))

    async def events(self, request: Request) -> Response:
        after = request.headers.get("last-event-id") or request.query_params.get("after") or None
        session_id = request.path_params["session_id"]
        events = await self._backend.events(session_id, after, actor=_actor(request))
        if _flag(request, "changes"):
            return self._sse(events, _as_events(self._hub.changes()))
        return self._sse(events)

    async def sent_file(self, request: Request) -> Response:
        session_id, number = request.path_params["session_id"], request.path_params["number"]
        file = await self._backend.sent_file(session_id, number, actor=_actor(request))
        if file is None:
            _nothing_here()
        # Always to be saved, whatever it is: nothing that an agent has made is opened as a page of ours.
        return FileResponse(file.path, filename=file.name, media_type="application/octet-stream")

    async def pending(self, request: Request) -> Response:
        cards = await self._backend.pending(_actor(request), _flag(request, "mine"))
        return answer({"pending": [pending_body(card) for card in cards]})

    async def grants(self, _request: Request) -> Response:
        return answer({"grants": [plain(line) for line in await self._backend.grants()]})

    async def schedules(self, request: Request) -> Response:
        lines = await self._backend.schedules(_actor(request))
        return answer({"schedules": [plain(line) for line in lines]})

    async def audit(self, request: Request) -> Response:
        limit = min(max(_number(request, "limit", 100) or 0, 1), AUDIT_ROWS)
        entries = await self._backend.audit(limit, _number(request, "before", None))
        return answer({"audit": [plain(entry) for entry in entries]})

    # ---- deciding

    async def resolve(self, request: Request) -> Response:
        body = check_resolve(decode(ResolveBody, await request.body()))
        result = await self._backend.resolve(
            request.path_params["pending_id"],
            body.decision,
            edited_args=body.edited_args,
            scope=body.scope,
            feedback=body.feedback,
            actor=_actor(request),
        )
        return self._clicked(result)

    async def resolve_card(self, request: Request) -> Response:
        body = decode(CardBody, await request.body())
        result = await self._backend.resolve_card(
            request.path_params["card"], body.decision, actor=_actor(request)
        )
        return self._clicked(result)

    async def answer(self, request: Request) -> Response:
        said = check_answer(decode(AnswerBody, await request.body()))
        result = await self._backend.answer(request.path_params["pending_id"], said, actor=_actor(request))
        return self._clicked(result)

    async def cancel(self, request: Request) -> Response:
        decode(EmptyBody, await request.body())
        pending_id = request.path_params["pending_id"]
        return self._clicked(await self._backend.cancel(pending_id, actor=_actor(request)))

    async def give(self, request: Request) -> Response:
        to = decode(GiveBody, await request.body()).to.strip()
        if not to:
            mend = "write an id with its channel in front, like slack:T1:U2"
            raise ApiError(422, "invalid_body", "to: names nobody", field="to", mend=mend)
        pending_id = request.path_params["pending_id"]
        return self._clicked(await self._backend.give(pending_id, to, actor=_actor(request)))

    async def show(self, request: Request) -> Response:
        decode(EmptyBody, await request.body())
        pending_id = request.path_params["pending_id"]
        return self._clicked(await self._backend.show(pending_id, actor=_actor(request)))

    async def revoke(self, request: Request) -> Response:
        grant_id = request.path_params["grant_id"]
        return self._clicked(await self._backend.revoke(grant_id, actor=_actor(request)))

    async def cancel_schedule(self, request: Request) -> Response:
        schedule_id = request.path_params["schedule_id"]
        return self._clicked(await self._backend.cancel_schedule(schedule_id, actor=_actor(request)))

    def _clicked(self, result: ClickResult) -> Response:
        if result.outcome in ("resumed", "recorded", "expired", "superseded"):
            self._hub.publish(Change(conversation=str(result.details.get("session_id", ""))))
        return answer(click_body(result), CLICK_STATUS[result.outcome])

    async def stop(self, request: Request) -> Response:
        decode(EmptyBody, await request.body())
        stopped = await self._backend.stop(request.path_params["session_id"], actor=_actor(request))
        self._hub.publish(Change(conversation=request.path_params["session_id"]))
        return answer(stopped)

    # ---- the machine

    async def healthz(self, _request: Request) -> Response:
        return answer(self._backend.health())

    async def readyz(self, _request: Request) -> Response:
        ready, checks = await self._backend.ready()
        return answer({"ready": ready, **checks}, 200 if ready else 503)

    async def metrics(self, _request: Request) -> Response:
        text = self._backend.metrics()
        if text is None:
            mend = "add [metrics] to the configuration"
            raise ApiError(404, "metrics_off", "metrics are switched off", mend=mend)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    # ---- the page

    async def static(self, request: Request) -> Response:
        name = request.path_params.get("name", {"/": "index.html"}.get(request.url.path, "icon.svg"))
        if name not in self._files:
            _nothing_here()
        data, media_type, etag = self._files[name]
        headers = {"etag": etag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(data, headers=headers, media_type=media_type)

    async def me(self, request: Request) -> Response:
        return answer(
            {
                "actor": ":".join(part for part in _actor(request) if part),
                "agents": list(self._backend.agents()),
                "default_agent": self._backend.default_agent(),
                "login": self._credentials.required,
                "examples": self._examples,
            }
        )

    async def preview_image(self, request: Request) -> Response:
        found = await self._backend.preview_image(request.path_params["pending_id"], actor=_actor(request))
        if found is None:
            _nothing_here()
        return Response(found[0], media_type=found[1])

    async def render(self, request: Request) -> Response:
        body = decode(RenderBody, await request.body())
        return answer({"html": safe_html(body.text[:DRESSED_CHARS])})

    async def changes(self, _request: Request) -> Response:
        return self._sse(_as_events(self._hub.changes()))

    async def login(self, request: Request) -> Response:
        name = self._credentials.who(decode(LoginBody, await request.body()).token.strip())
        if name is None:
            raise ApiError(401, "wrong_token", "that token is not known here", field="token")
        response = answer({"actor": f"web:{name}"})
        response.set_cookie(
            self._credentials.cookie,
            self._credentials.grant(name),
            max_age=LOGIN_SECONDS,
            httponly=True,
            samesite="strict",
            secure="https" in (request.url.scheme, request.headers.get("x-forwarded-proto")),
        )
        return response

    async def logout(self, _request: Request) -> Response:
        response = answer({"ok": True})
        response.delete_cookie(self._credentials.cookie, httponly=True, samesite="strict")
        return response

    def _sse(self, main: AsyncIterator[WireEvent], *others: AsyncIterator[WireEvent]) -> Response:
        source = _framed(join(self._hub.closing, main, *others))
        return EventSourceResponse(source, ping=PING_SECONDS, sep="\n", send_timeout=SEND_SECONDS)


async def _framed(events: AsyncIterator[WireEvent]) -> AsyncIterator[ServerSentEvent]:
    # The first frame opens the stream at once, so that the reader knows it is connected.
    yield ServerSentEvent(comment="open", retry=_RETRY_MS, sep="\n")
    async for event in events:
        yield ServerSentEvent(data=event.data, event=event.type, id=event.id, sep="\n")


async def _as_events(changes: AsyncIterator[Change]) -> AsyncIterator[WireEvent]:
    async for change in changes:
        yield WireEvent(type="changed", data=msgspec.json.encode(plain(change)).decode())


def _actor(request: Request) -> Actor:
    return cast("Actor", request.scope["actor"])


def _flag(request: Request, name: str) -> bool:
    value = request.query_params.get(name, "0").lower()
    if value not in ("0", "1", "true", "false", ""):
        raise ApiError(422, "invalid_query", f"{name}: {value!r} is not 0 or 1", field=name)
    return value in ("1", "true")


def _number(request: Request, name: str, default: int | None) -> int | None:
    value = request.query_params.get(name)
    if value is None:
        return default
    if not (value.isascii() and value.isdigit() and len(value) <= 15):
        raise ApiError(422, "invalid_query", f"{name}: not a whole number", field=name)
    return int(value)


def _nothing_here() -> NoReturn:
    raise ApiError(404, "not_found", "there is nothing at this address")


def _load(folder: Path) -> dict[str, tuple[bytes, str, str]]:
    """Every file of the page: name -> (bytes, media type, entity tag). A closed list: no path leads out."""
    files = {}
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        files[path.name] = (data, kind, f'"{hashlib.sha256(data).hexdigest()[:20]}"')
    return files
