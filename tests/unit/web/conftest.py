"""A web channel on a free port of this machine, and a client that talks to it over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from channels.web.adapter import WebChannel
from tests.sse import PATIENCE
from tests.web_backend import MemoryBackend


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
