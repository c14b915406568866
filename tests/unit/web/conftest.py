"""A web channel on a free port of this machine, and a client that talks to it over a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import NamedTuple

import httpx
import pytest

from channels.web.adapter import WebChannel
from tests.web_backend import MemoryBackend

PATIENCE = 10  # seconds


class Frame(NamedTuple):
    """One server-sent event as it came."""

    id: str | None
    type: str
    data: dict[str, object]


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


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture
async def channel(backend: MemoryBackend) -> AsyncIterator[WebChannel]:
    channel = WebChannel(backend, port=0)
    await channel.start()
    yield channel
    await channel.stop()


@pytest.fixture
async def client(channel: WebChannel) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=channel.url, timeout=PATIENCE, trust_env=False) as client:
        yield client


@pytest.fixture
async def guarded(backend: MemoryBackend) -> AsyncIterator[tuple[WebChannel, httpx.AsyncClient]]:
    """The same with two tokens set."""
    channel = WebChannel(backend, port=0, tokens={"alice": "secret-of-alice", "boss": "secret-of-boss"})
    await channel.start()
    async with httpx.AsyncClient(base_url=channel.url, timeout=PATIENCE, trust_env=False) as client:
        yield channel, client
    await channel.stop()
