"""A strict Slack, and what the gateway would have stored."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.contracts.harness import Inbox
from tests.platforms.slack import SlackServer


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server
        server.check()


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()
