"""The server as its own process: `python -m tests.platforms.discord --port N`.

What people do comes in over HTTP: `POST /_control/<verb>` with a JSON object of the verb's arguments,
answered by JSON. Verbs are the driver's methods (`say`, `press`, `hold`, `wait_messages`, ...);
`GET /_control/state` shows everything. One line `ready <port>` on stdout says that it listens. Contents of
files are text here: `files: [["name", "content"]]`.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import inspect
import json
import signal
import sys
from typing import Any

from aiohttp import web

from tests.platforms.discord.gateway import Session
from tests.platforms.discord.interactions import Interaction
from tests.platforms.discord.limits import Json
from tests.platforms.discord.server import DiscordServer, Held

VERBS = frozenset(
    [
        "say",
        "edit",
        "touch",
        "delete",
        "redeliver",
        "bot_says",
        "webhook_says",
        "react",
        "unreact",
        "types",
        "emit",
        "thread",
        "post",
        "archive",
        "reopen",
        "lock",
        "join",
        "delete_channel",
        "create_channel",
        "deny_bot",
        "set_overwrite",
        "take_from_bot",
        "change_role",
        "grant",
        "revoke",
        "kick",
        "invite",
        "outage",
        "block",
        "unblock",
        "press",
        "choose",
        "forge",
        "submit",
        "slash",
        "autocomplete",
        "message_command",
        "advance",
        "reconnect",
        "invalidate",
        "close",
        "drop",
        "freeze",
        "thaw",
        "forget_sessions",
        "fail_next",
        "hold",
        "release",
        "cut",
        "messages",
        "from_bot",
        "shown",
        "labels",
        "threads",
        "thread_of",
        "private_texts",
        "is_typing",
        "paged",
        "previews",
        "wait_messages",
        "wait_calls",
        "wait_ephemerals",
        "wait_thread",
        "wait_modal",
        "wait_ready",
        "taken",
        "interaction",
        "dismiss",
        "set",
    ]
)
SETTINGS = frozenset(
    ["enforced", "gateway_open", "heartbeat_interval", "members_intent", "message_content", "shards"]
)


class Remote:
    """The control surface over one server."""

    def __init__(self) -> None:
        self.server: DiscordServer | None = None

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        server = self.server
        assert server is not None
        verb = request.path.removeprefix("/_control/")
        if verb == "state":
            return web.json_response(_state(server))
        if verb not in VERBS:
            return web.json_response(
                {"error": f"no verb {verb!r}; there are: {' '.join(sorted(VERBS))}"}, status=404
            )
        arguments: Json = json.loads(await request.read() or b"{}")
        try:
            result = self._do(server, verb, arguments)
            if inspect.isawaitable(result):
                result = await result
        except TimeoutError:
            return web.json_response({"error": "it did not happen in time"}, status=504)
        except (KeyError, TypeError, AssertionError) as error:
            return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=400)
        return web.json_response({"result": _plain(result)})

    def _do(self, server: DiscordServer, verb: str, arguments: Json) -> Any:
        if verb in ("taken", "interaction"):
            found = next((i for i in server.interactions if i.id == arguments["id"]), None)
            assert found is not None, "no such interaction"
            return found.taken(arguments.get("within", 10.0)) if verb == "taken" else found
        if verb == "set":
            assert arguments.keys() <= SETTINGS, f"only {sorted(SETTINGS)} can be set"
            for name, value in arguments.items():
                setattr(server.rates if name == "enforced" else server, name, value)
            return sorted(arguments)
        if verb == "delete":
            return server.delete(arguments["channel"], *arguments["messages"])
        if verb == "slash":
            arguments |= arguments.pop("options", {})
        if "files" in arguments:
            arguments["files"] = [(name, content.encode()) for name, content in arguments["files"]]
        return getattr(server, verb)(**arguments)


def _plain(value: Any) -> Any:
    match value:
        case Interaction():
            names = [
                "id",
                "kind",
                "user",
                "channel",
                "response",
                "failed",
                "modal",
                "choices",
                "original",
                "messages",
                "texts",
            ]
            return {name: getattr(value, name) for name in names}
        case Session():
            return {"id": value.id, "intents": value.intents, "shard": value.shard, "seq": value.seq}
        case Held():
            return {"waiting": value.waiting}
        case list() | tuple():
            return [_plain(entry) for entry in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return dataclasses.asdict(value)
    return value


def _state(server: DiscordServer) -> Json:
    return {
        "token": server.token,
        "channels": {
            place.id: {**server.shown_channel(place), "messages": server.messages(place.id)}
            for place in server.channels.values()
        },
        "ephemeral": dict(server.ephemeral),
        "interactions": _plain(server.interactions),
        "calls": _plain(server.calls),
        "commands": server.commands,
        "pages": _plain(server.pages),
        "sessions": _plain(server.live()),
        "identifies": server.identifies,
        "resumes": server.resumes,
        "failures": server.failures,
    }


async def _serve(port: int) -> None:
    remote = Remote()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with DiscordServer(port, control=remote) as server:
        remote.server = server
        sys.stdout.write(f"ready {server.port}\n")
        sys.stdout.flush()
        await stop.wait()


def main() -> None:
    """Parse the command line and serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m tests.platforms.discord")
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
