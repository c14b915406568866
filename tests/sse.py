"""Server-sent events as a client reads them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import httpx

PATIENCE = 15  # seconds


class Frame(NamedTuple):
    """One server-sent event as it came."""

    id: str | None
    type: str
    data: dict[str, Any]


async def frames(response: httpx.Response) -> AsyncIterator[Frame]:
    """The events of a stream, as the SSE standard reads them."""
    fields: dict[str, str] = {}
    async with asyncio.timeout(PATIENCE):
        async for line in response.aiter_lines():
            if line.startswith(":"):
                continue
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
                continue
            if "data" in fields:
                yield Frame(fields.get("id"), fields.get("event", "message"), json.loads(fields["data"]))
            fields = {}


async def upto(events: AsyncIterator[Frame], type_: str) -> list[Frame]:
    """The next frames up to and with the first of this type."""
    got = []
    async for frame in events:
        got.append(frame)
        if frame.type == type_:
            return got
    raise AssertionError(f"the stream ended without {type_}: {[frame.type for frame in got]}")
