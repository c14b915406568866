"""The Web API's door: arguments, tokens, scopes, rates and prepared trouble, then the method itself."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.platforms.slack import limits
from tests.platforms.slack.limits import Json
from tests.platforms.slack.payloads import Events
from tests.platforms.slack.state import Call, Channel, Refused

Args = dict[str, Any]
Handler = Callable[[Events, Args], Json]
SPEC = re.compile(r"(\w+)(?::(\w+))?(?:(!)(\w*))?")
FAMILY = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}
ALWAYS = {"team_id"}  # what clients may add to any call


@dataclass(frozen=True)
class Method:
    """One method. `scope`: what the bot token needs; `*:x` depends on the kind of the conversation."""

    name: str
    handler: Handler
    kinds: dict[str, str]
    needed: dict[str, str]  # argument -> error when it is missing
    scope: str
    app_token: bool


METHODS: dict[str, Method] = {}


def method(
    name: str, spec: str = "", *, scope: str = "", app_token: bool = False
) -> Callable[[Handler], Handler]:
    """Register a method. `spec`: its arguments, `name[:str|bool|int|json|list][!error when missing]`."""
    kinds, needed = {}, {}
    for part in spec.split():
        found = SPEC.fullmatch(part)
        assert found is not None, part
        kinds[found[1]] = found[2] or "str"
        if found[3]:
            needed[found[1]] = found[4] or "invalid_arguments"

    def register(handler: Handler) -> Handler:
        METHODS[name] = Method(name, handler, kinds, needed, scope, app_token)
        return handler

    return register


# ---- arguments


async def arguments_of(request: web.Request) -> tuple[Args, str]:
    """All arguments of a call as they came, and its token: query, form, multipart and JSON alike."""
    found: Args = dict(request.query)
    if request.content_type == "application/json":
        body = json.loads(await request.read() or b"{}")
        if not isinstance(body, dict):
            raise Refused("json_not_object")
        found.update(body)
    elif request.method == "POST" and request.can_read_body:
        found.update(await request.post())
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    return found, str(found.pop("token", "") or bearer)


def typed(world: Events, method: Method, raw: Args) -> Args:
    """The arguments as the method takes them. Raises Refused."""
    unknown = sorted(raw.keys() - method.kinds.keys() - ALWAYS)
    if unknown:
        world.failures.append(f"{method.name} has no argument {', '.join(unknown)}")
        raise invalid(f"unknown argument: {unknown[0]}")
    args = {name: _typed(method.kinds.get(name, "str"), name, value) for name, value in raw.items()}
    for name, error in method.needed.items():
        if args.get(name) in (None, ""):
            raise (
                invalid(f"missing required field: {name}") if error == "invalid_arguments" else Refused(error)
            )
    return args


def _typed(kind: str, name: str, value: Any) -> Any:
    try:
        match kind:
            case "bool":
                return value if isinstance(value, bool) else str(value).lower() in {"1", "true"}
            case "int":
                return int(value)
            case "json":
                return json.loads(value) if isinstance(value, str) else value
            case "list":
                return value.split(",") if isinstance(value, str) else list(value)
    except (ValueError, TypeError):
        raise invalid(f"invalid value: {name}") from None
    if not isinstance(value, str):
        raise invalid(f"must be a string: {name}")
    return value


def invalid(words: str, error: str = "invalid_arguments") -> Refused:
    """A refusal that says why."""
    return Refused(error, response_metadata={"messages": [f"[ERROR] {words}"]})


# ---- places


def place(world: Events, args: Args, name: str = "channel", *, write: bool = False) -> Channel:
    """The conversation that a call names. Raises Refused. `write`: our bot must be able to post there."""
    id = str(args[name])
    if write and id in world.users:
        return world.direct(id)
    channel = world.channels.get(id)
    inside = channel is not None and world.app.bot_user in channel.members
    if channel is None or (not inside and channel.kind != "channel"):
        raise Refused("channel_not_found")
    if write and channel.archived:
        raise Refused("is_archived")
    if write and not inside:
        raise Refused("not_in_channel")
    return channel


# ---- trouble


@dataclass
class Trouble:
    """An answer prepared for calls to come."""

    method: str
    what: str | int
    times: int
    after: bool
    retry_after: int | None
    more: Json


class Gatekeeper:
    """Tokens, scopes and rates."""

    def __init__(self, world: Events) -> None:
        self._world = world
        self._seen: dict[tuple[str, str], list[float]] = defaultdict(list)

    def admit(self, method: Method, token: str, args: Args) -> None:
        """Raises Refused for what the token may not do."""
        app = self._world.app
        if not token:
            raise Refused("not_authed")
        if token not in (app.bot_token, app.app_token):
            raise Refused("invalid_auth")
        if method.name in {"auth.test", "api.test"}:
            return
        if (token == app.app_token) != method.app_token:
            raise Refused("not_allowed_token_type")
        needed = self._scopes(method, args)
        if needed and not needed & app.scopes and not method.app_token:
            raise Refused(
                "missing_scope", needed=",".join(sorted(needed)), provided=",".join(sorted(app.scopes))
            )

    def _scopes(self, method: Method, args: Args) -> set[str]:
        """Any of these is enough."""
        family, star, right = method.scope.partition("*")
        if not star:
            return set(filter(None, family.split("|")))
        channel = self._world.channels.get(str(args.get("channel", "")))
        return {f"{FAMILY[channel.kind]}{right}"} if channel is not None else set()

    def count(self, method: str, args: Args) -> None:
        """Raises Refused("ratelimited") with `retry_after` above the method's rate."""
        world, now = self._world, self._world.now()
        if not world.enforce_rates:
            return
        where = str(args.get("channel") or args.get("channel_id") or "")
        if method == "chat.postMessage":
            self._take((method, where), now, limits.BURST, limits.BURST * limits.PER_CHANNEL)
        elif method in limits.MINUTE_RATES:
            self._take((method, where), now, limits.MINUTE_RATES[method], 60.0)
        elif method in limits.METHOD_TIERS:
            tier = limits.TIERS[limits.METHOD_TIERS[method]]
            self._take((method, ""), now, limits.TIERS_EXCEPT.get(method, tier), 60.0)

    def _take(self, key: tuple[str, str], now: float, most: int, window: float) -> None:
        seen = self._seen[key] = [at for at in self._seen[key] if at > now - window]
        if len(seen) >= most:
            raise Refused("ratelimited", retry_after=int(seen[0] + window - now) + 1)
        seen.append(now)


# ---- answers


def answer_of(refusal: Refused) -> tuple[int, Json, dict[str, str]]:
    """Status, body and headers of a refusal."""
    more = dict(refusal.more)
    if refusal.error == "ratelimited":
        retry = str(more.pop("retry_after", 30))
        return 429, {"ok": False, "error": "ratelimited"}, {"Retry-After": retry}
    return 200, {"ok": False, "error": refusal.error, **more}, {}


def journal(world: Events, method: str, args: Args, status: int, answer: Json) -> None:
    """Note a call."""
    shown = {name: value for name, value in args.items() if name != "token"}
    world.calls.append(Call(method, shown, status, answer, world.now()))
    world.changed()
