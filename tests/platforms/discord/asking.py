"""One call of the API, and the table of routes. The handlers are in the `routes_` modules."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.platforms.discord.limits import Json
from tests.platforms.discord.shapes import Report

if TYPE_CHECKING:
    from tests.platforms.discord.people import People

Answer = Json | list[Json] | None  # None: 204


@dataclass(frozen=True)
class Upload:
    """One file of a multipart request."""

    name: str
    media_type: str
    content: bytes


@dataclass
class Ask:
    """One call. `body` is the JSON, or the `payload_json` of a multipart request."""

    server: People
    params: dict[str, str]
    query: dict[str, str]
    body: Any = None
    files: dict[int, Upload] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)  # fields that are not served here

    def note(self, report: Report) -> Report:
        """Remember the fields that a check did not know."""
        self.unknown += report.unknown
        return report


Handler = Callable[[Ask], Answer]


@dataclass(frozen=True)
class Endpoint:
    """One route. `open`: needs no bot token, since its path has a token of its own."""

    method: str
    template: str
    pattern: re.Pattern[str]
    handler: Handler
    query: frozenset[str]
    open: bool

    @property
    def name(self) -> str:
        return f"{self.method} {self.template}"


ROUTES: list[Endpoint] = []


def route(method: str, template: str, *, query: str = "", open: bool = False) -> Callable[[Handler], Handler]:
    """Register a handler. `query`: the parameters that it knows."""
    pattern = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template)))

    def register(handler: Handler) -> Handler:
        ROUTES.append(Endpoint(method, template, pattern, handler, frozenset(query.split()), open))
        return handler

    return register


def find(method: str, path: str) -> tuple[Endpoint, dict[str, str]] | None:
    """The route for a path below the base, and its parameters."""
    for endpoint in ROUTES:
        match = endpoint.pattern.fullmatch(path)
        if match and endpoint.method == method:
            return endpoint, match.groupdict()
    return None
