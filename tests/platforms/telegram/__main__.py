"""The server as its own process: `python -m tests.platforms.telegram --port N [--token 1:secret]`.

What people do comes in over HTTP: `POST /_control/<verb>` with a JSON object of the verb's arguments,
answered by JSON. Verbs are the driver's methods (`user`, `say`, `click`, `hold`, `wait_messages`, ...);
`GET /_control/state` shows everything. One line `ready <port>` on stdout says that it listens.
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

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.platforms.telegram.checks import Json
from tests.platforms.telegram.server import Held, TelegramServer
from tests.platforms.telegram.world import Bot, Call, Chat, Click

VERBS = frozenset(
    [
        "bot",
        "user",
        "group",
        "topic",
        "say",
        "edit",
        "click",
        "press",
        "push",
        "redeliver",
        "send_again",
        "flood",
        "fail_next",
        "block",
        "unblock",
        "kick",
        "invite",
        "migrate",
        "messages",
        "from_bot",
        "paged",
        "cut",
        "cut_next",
        "hold",
        "release",
        "post_updates",
        "wait_messages",
        "wait_calls",
    ]
)


class Remote:
    """The control surface over one server."""

    def __init__(self) -> None:
        self.server: TelegramServer | None = None

    async def __call__(self, request: Request) -> Response:
        assert self.server is not None
        verb = request.url.path.removeprefix("/_control/")
        if verb == "state":
            return JSONResponse(_state(self.server))
        if verb not in VERBS:
            return JSONResponse({"error": f"no verb {verb!r}; there are: {', '.join(sorted(VERBS))}"}, 404)
        arguments: Json = json.loads(await request.body() or b"{}")
        if verb == "click":
            arguments["message"] = self._message(arguments.pop("chat"), arguments.pop("message_id"))
        try:
            result = getattr(self.server, verb)(**arguments)
            if inspect.isawaitable(result):
                result = await result
        except TimeoutError:
            return JSONResponse({"error": "it did not happen in time"}, 504)
        except (KeyError, TypeError, AssertionError) as error:
            return JSONResponse({"error": f"{type(error).__name__}: {error}"}, 400)
        return JSONResponse({"result": _plain(result)})

    def _message(self, chat: int, message_id: int) -> Json:
        assert self.server is not None
        return self.server.chats[chat].messages[message_id]


def _plain(value: Any) -> Any:
    match value:
        case Click():
            return {"id": value.id, "answers": value.answers, "update": value.update}
        case Bot():
            return value.user
        case Chat():
            return {
                **value.public(),
                "messages": [value.messages[key] for key in sorted(value.messages)],
                "topics": value.topics,
                "actions": value.actions,
                "drafts": value.drafts,
                "force_replies": value.force_replies,
            }
        case Call():
            return dataclasses.asdict(value)
        case Held():
            return {"waiting": value.waiting}
        case list():
            return [_plain(entry) for entry in value]
    return value


def _state(server: TelegramServer) -> Json:
    return {
        "chats": {str(chat.id): _plain(chat) for chat in server.chats.values()},
        "clicks": {click.id: click.answers for click in server.clicks.values()},
        "journal": [_plain(call) for call in server.journal],
        "failures": server.failures,
        "waiting": {str(bot.id): len(bot.updates) for bot in server.bots.values()},
        "commands": {str(bot.id): bot.commands for bot in server.bots.values()},
    }


async def _serve(port: int, tokens: list[str]) -> None:
    remote = Remote()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with TelegramServer(port, control=remote) as server:
        remote.server = server
        for token in tokens:
            server.bot(token)
        sys.stdout.write(f"ready {server.port}\n")
        sys.stdout.flush()
        await stop.wait()


def main() -> None:
    """Parse the command line and serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m tests.platforms.telegram")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", action="append", default=[])
    options = parser.parse_args()
    asyncio.run(_serve(options.port, options.token or ["1:secret"]))


if __name__ == "__main__":
    main()
