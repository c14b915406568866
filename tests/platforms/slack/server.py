"""The server's life and its HTTP side: real connections over loopback that can be held, refused and cut."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp import web

from tests.platforms.slack import limits, methods_chat, methods_files, methods_read, methods_views
from tests.platforms.slack.checks import check_blocks
from tests.platforms.slack.clicks import Clicks
from tests.platforms.slack.limits import Json
from tests.platforms.slack.state import Refused
from tests.platforms.slack.web_api import (
    METHODS,
    Args,
    Gatekeeper,
    Trouble,
    answer_of,
    arguments_of,
    journal,
    typed,
)

Control = Callable[[web.Request], Awaitable[web.StreamResponse]]
REGISTERED = (methods_chat, methods_files, methods_read, methods_views)  # whose import fills METHODS
RESPONSE_FIELDS = {"text", "blocks", "attachments", "response_type", "replace_original", "delete_original"}
RESPONSE_FIELDS |= {"thread_ts", "mrkdwn", "unfurl_links", "unfurl_media", "metadata"}


class Held:
    """Calls of one method that wait until they are let go."""

    def __init__(self, server: SlackServer) -> None:
        self.waiting = 0
        self._server = server
        self._free = asyncio.Event()

    async def wait(self) -> None:
        self.waiting += 1
        self._server.changed()
        await self._free.wait()

    def release(self) -> None:
        """Let all of them go, those to come as well."""
        self._free.set()


class SlackServer(Clicks):
    """Slack on a loopback port. `async with SlackServer() as server: ...`"""

    def __init__(self, port: int = 0, control: Control | None = None) -> None:
        super().__init__()
        self.port = port
        self._control = control
        self._gate = Gatekeeper(self)
        self._trouble: list[Trouble] = []
        self._held: dict[str, Held] = {}
        self._runner: web.AppRunner | None = None

    @property
    def api_base(self) -> str:
        """For `AsyncWebClient(base_url=...)`."""
        return f"{self.base}/api/"

    async def __aenter__(self) -> SlackServer:
        self._session = aiohttp.ClientSession()
        await self.up()
        return self

    async def __aexit__(self, *exc: object) -> None:
        for held in self._held.values():
            held.release()
        for timer in list(self.timers):
            timer.cancel()
        self.thaw()
        for delivery in self.deliveries:
            delivery.failed = delivery.failed or ("" if delivery.acked else "the server has stopped")
        await self.down()
        for task in list(self._posting):
            task.cancel()
        await asyncio.gather(*self._posting, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def up(self) -> None:
        """Begin to listen, on the same port as before if there was one."""
        app = web.Application(client_max_size=200_000_000)
        app.router.add_route("*", "/api/{method}", self._call)
        app.router.add_get("/link/", self.link)
        app.router.add_post("/upload/v1/{id}", self._upload)
        app.router.add_get("/files-pri/{id}/{rest:.*}", self._download)
        app.router.add_post("/response/{team}/{id}", self._response_url)
        if self._control is not None:
            app.router.add_route("*", "/_control/{verb}", self._control)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.base = f"http://127.0.0.1:{self.port}"

    async def down(self) -> None:
        """The network is gone: nothing listens, every connection breaks."""
        if self._runner is not None:
            self.cut()
            await self._runner.cleanup()
            self._runner = None

    def cut(self) -> None:
        """Break every open connection, web sockets too; new ones are welcome."""
        if self._runner is not None and self._runner.server is not None:
            for connection in list(self._runner.server.connections):
                if connection.transport is not None:
                    connection.transport.abort()

    def install(self, manifest: Json) -> None:
        """The app has from now on what its manifest says. AssertionError when that cannot be."""
        settings, features = manifest["settings"], manifest["features"]
        scopes = set(manifest["oauth_config"]["scopes"]["bot"])
        events = set(settings.get("event_subscriptions", {}).get("bot_events", []))
        assert len(manifest["display_information"]["name"]) <= 35, "the name is too long"
        needed = {"app_mention": "app_mentions:read", "message.channels": "channels:history"}
        needed |= {"message.groups": "groups:history", "message.im": "im:history"}
        needed |= {"message.mpim": "mpim:history", "assistant_thread_started": "assistant:write"}
        for event in events & needed.keys():
            assert needed[event] in scopes, f"{event} needs the scope {needed[event]}"
        commands = {entry["command"] for entry in features.get("slash_commands", [])}
        assert not commands or "commands" in scopes, "commands need the scope commands"
        self.app.scopes, self.app.events, self.app.commands = scopes, events, commands
        self.app.shortcuts = {entry["callback_id"] for entry in features.get("shortcuts", [])}

    # ---- trouble

    def fail_next(
        self,
        method: str,
        what: str | int,
        times: int = 1,
        *,
        after: bool = False,
        retry_after: int | None = None,
        **more: Any,
    ) -> None:
        """Prepare trouble for the next calls of a method (`*`: any). `what`: an error code of Slack, an
        HTTP status, `drop` (the connection is cut) or `html`. `after`: the work is done all the same."""
        self._trouble.append(Trouble(method, what, times, after, retry_after, more))

    def hold(self, method: str) -> Held:
        """From now on, calls of this method are answered only when released."""
        self._held[method] = Held(self)
        return self._held[method]

    def release(self, method: str) -> None:
        """Let the calls of this method go, and those to come."""
        self._held.pop(method).release()

    @contextlib.asynccontextmanager
    async def held(self, method: str) -> AsyncIterator[Held]:
        """Hold a method within the block."""
        held = self.hold(method)
        try:
            yield held
        finally:
            self.release(method)

    def _next_trouble(self, method: str) -> Trouble | None:
        for trouble in self._trouble:
            if trouble.method in (method, "*"):
                trouble.times -= 1
                if trouble.times <= 0:
                    self._trouble.remove(trouble)
                return trouble
        return None

    # ---- the Web API

    async def _call(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["method"]
        args: Args = {}
        trouble: Trouble | None = None
        try:
            args, token = await arguments_of(request)
            if held := self._held.get(name):
                await held.wait()
            trouble = self._next_trouble(name)
            if trouble is not None and not trouble.after:
                return self._troubled(request, name, args, trouble)
            body = self._work(name, args, token)
            status, headers = 200, {"x-oauth-scopes": ",".join(sorted(self.app.scopes))}
        except Refused as refusal:
            status, body, headers = answer_of(refusal)
        if trouble is not None:
            return self._troubled(request, name, args, trouble)
        journal(self, name, args, status, body)
        return web.json_response(body, status=status, headers=headers)

    def _work(self, name: str, raw: Args, token: str) -> Json:
        if name not in METHODS:
            self.failures.append(f"unknown method {name}")
            raise Refused("unknown_method", req_method=name)
        method = METHODS[name]
        self._gate.admit(method, token, raw)
        args = typed(self, method, raw)
        self._gate.count(name, args)
        return {"ok": True, **method.handler(self, args)}

    def _troubled(self, request: web.Request, name: str, args: Args, trouble: Trouble) -> web.StreamResponse:
        match trouble.what:
            case "drop":
                journal(self, name, args, 0, {})
                if request.transport is not None:
                    request.transport.abort()
                return web.Response()
            case "html":
                journal(self, name, args, 200, {})
                return web.Response(text=methods_files.SIGN_IN, content_type="text/html")
            case 429:
                refusal = Refused("ratelimited", retry_after=trouble.retry_after or 30)
                status, body, headers = answer_of(refusal)
            case int():
                journal(self, name, args, trouble.what, {})
                return web.Response(status=trouble.what, text="upstream trouble")
            case _:
                status, body, headers = answer_of(Refused(trouble.what, **trouble.more))
        journal(self, name, args, status, body)
        return web.json_response(body, status=status, headers=headers)

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        trouble = self._next_trouble("upload")
        if trouble is not None:
            return self._troubled(request, "upload", {}, trouble)
        return await methods_files.upload(self, request)

    async def _download(self, request: web.Request) -> web.StreamResponse:
        if held := self._held.get("download"):
            await held.wait()
        trouble = self._next_trouble("download")
        if trouble is not None:
            return self._troubled(request, "download", {}, trouble)
        return await methods_files.download(self, request)

    # ---- response_url

    async def _response_url(self, request: web.Request) -> web.StreamResponse:
        body: Json = await request.json()
        id = request.match_info["id"]
        trouble = self._next_trouble("response_url")
        if trouble is not None:
            return self._troubled(request, "response_url", body, trouble)
        status, answer = self._respond_by_url(id, body)
        journal(self, "response_url", body, status, answer)
        return web.json_response(answer, status=status)

    def _respond_by_url(self, id: str, body: Json) -> tuple[int, Json]:
        target = self.response_urls.get(id)
        if target is None:
            return 404, {"ok": False, "error": "invalid_url"}
        if self.now() > target.expires:
            return 404, {"ok": False, "error": "expired_url"}
        if target.uses >= limits.RESPONSE_URL_USES:
            return 404, {"ok": False, "error": "used_url"}
        if unknown := body.keys() - RESPONSE_FIELDS:
            self.failures.append(f"response_url takes no {sorted(unknown)}")
        if errors := check_blocks(body.get("blocks", []), "message"):
            return 400, {"ok": False, "error": "invalid_blocks", "errors": errors}
        target.uses += 1
        if body.get("delete_original") or body.get("replace_original"):
            self._change_original(target.channel, target.message_ts, target.user, body)
        elif not body.get("text") and not body.get("blocks"):
            return 400, {"ok": False, "error": "no_text"}
        else:
            self.respond(target.user, target.channel, body)
        return 200, {"ok": True}

    def _change_original(self, channel: str, ts: str, user: str, body: Json) -> None:
        place = self.channels[channel]
        hidden = next((entry for entry in self.ephemeral[user] if entry["ts"] == ts), None)
        if body.get("delete_original"):
            if hidden is not None:
                self.ephemeral[user].remove(hidden)
            else:
                place.messages.pop(ts, None)
        elif (message := hidden or place.messages.get(ts)) is not None:
            message.pop("blocks", None)
            message["text"] = body.get("text", "")
            if body.get("blocks"):
                message["blocks"] = self.with_ids(body["blocks"])
        self.changed()
