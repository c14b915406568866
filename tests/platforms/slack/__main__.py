"""The server as its own process: `python -m tests.platforms.slack --port N`.

What people do comes in over HTTP: `POST /_control/<verb>` with a JSON object of the verb's arguments,
answered by `{"result": ...}`. Verbs are the driver's methods (`say`, `press`, `advance`, ...);
`GET /_control/state` shows everything. One line `ready <port>` on stdout says that it listens.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import dataclasses
import inspect
import json
import signal
import sys
from typing import Any

from aiohttp import web

from tests.platforms.slack.clicks import Submitted
from tests.platforms.slack.delivery import Delivery
from tests.platforms.slack.limits import Json
from tests.platforms.slack.people import Said
from tests.platforms.slack.server import Held, SlackServer
from tests.platforms.slack.sockets import Connection
from tests.platforms.slack.state import Assistant, Call, Channel, File, Page, User

VERBS = {
    "say", "edit", "touch", "delete", "bot_says", "emit", "redeliver", "resend", "press", "choose",
    "view", "submit_view", "close_view", "press_view", "open_home", "press_home", "home", "slash",
    "shortcut", "open_assistant", "assistant", "status", "user", "channel", "group", "invite_bot",
    "kick_bot", "archive", "messages", "message", "from_bot", "thread", "labels", "shown",
    "ephemerals", "called", "paged", "deliver_to", "disconnect", "freeze", "thaw", "drop", "cut",
    "advance", "retry_now", "verify_url", "post_signed", "fail_next", "hold", "release", "install",
    "file", "settled", "check", "wait_messages", "wait_calls", "wait_ephemerals", "wait_view",
    "wait_home", "wait_connections", "wait_acked",
}  # fmt: skip
SETTINGS = frozenset(["ack_within", "enforce_rates", "link_enabled", "trigger_life"])


class Remote:
    """The control surface over one server."""

    def __init__(self) -> None:
        self.server: SlackServer | None = None

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        assert self.server is not None
        verb = request.match_info["verb"]
        if verb == "state":
            return web.json_response(_state(self.server))
        arguments: Json = json.loads(await request.read() or b"{}")
        try:
            result = self._do(self.server, verb, arguments)
            if inspect.isawaitable(result):
                result = await result
        except LookupError as error:
            return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=404)
        except TimeoutError:
            return web.json_response({"error": "it did not happen in time"}, status=504)
        except (TypeError, AssertionError) as error:
            return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=400)
        return web.json_response({"result": plain(result)})

    def _do(self, server: SlackServer, verb: str, arguments: Json) -> Any:
        if verb == "set":
            for name, value in arguments.items():
                if name not in SETTINGS:
                    raise KeyError(f"no setting {name!r}")
                setattr(server, name, value)
            return None
        if verb not in VERBS:
            raise KeyError(f"no verb {verb!r}; there are: set, {', '.join(sorted(VERBS))}")
        if verb == "wait_acked":
            return self._delivery(arguments["id"]).taken(arguments.get("within", 10.0))
        if verb in {"redeliver", "resend"}:
            arguments["what" if verb == "redeliver" else "delivery"] = self._delivery(arguments.pop("id"))
        if verb == "file":
            arguments["content"] = base64.b64decode(arguments["content"])
        if verb == "say":
            arguments["files"] = [server.files[id] for id in arguments.get("files", ())]
        if isinstance(arguments.get("connection"), str):
            arguments["connection"] = self._connection(arguments["connection"])
        return getattr(server, verb)(**arguments)

    def _delivery(self, id: str) -> Delivery:
        assert self.server is not None
        return next(entry for entry in self.server.deliveries if entry.id == id)

    def _connection(self, id: str) -> Connection:
        assert self.server is not None
        return next(entry for entry in self.server.connections if entry.id == id)


def plain(value: Any) -> Any:
    """A result as JSON shows it."""
    match value:
        case Delivery():
            fields = ("id", "kind", "payload", "user", "acked", "failed", "answer")
            return {name: getattr(value, name) for name in fields} | {
                "attempts": [dataclasses.asdict(attempt) for attempt in value.attempts]
            }
        case Said():
            told = [delivery.id for delivery in value.deliveries]
            return {"channel": value.channel, "ts": value.ts, "message": value.message, "deliveries": told}
        case Submitted():
            return {"outcome": value.outcome, "errors": dict(value.errors)}
        case Connection():
            return {"id": value.id, "pings": value.pings, "leaving": value.leaving}
        case Held():
            return {"waiting": value.waiting}
        case File():
            size = len(value.content or b"")
            return {"id": value.id, "name": value.name, "size": size, "shares": value.shares}
        case Channel() | User() | Assistant() | Call() | Page():
            return plain(dataclasses.asdict(value))
        case dict():
            return {str(key): plain(entry) for key, entry in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(entry) for entry in value]
    return value


def _state(server: SlackServer) -> Json:
    return {
        "channels": {id: plain(server.messages(id)) for id in server.channels},
        "ephemerals": plain(server.ephemeral),
        "views": plain(server.views),
        "homes": plain(server.homes),
        "files": plain(server.files),
        "calls": plain(server.calls),
        "deliveries": plain(server.deliveries),
        "connections": plain(server.connections),
        "pages": plain(server.pages),
        "troubles": plain(server.troubles),
        "failures": server.failures,
    }


async def _serve(port: int) -> None:
    remote = Remote()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with SlackServer(port, control=remote) as server:
        remote.server = server
        sys.stdout.write(f"ready {server.port}\n")
        sys.stdout.flush()
        await stop.wait()


def main() -> None:
    """Parse the command line and serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m tests.platforms.slack")
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
