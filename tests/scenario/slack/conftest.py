"""A Slack workspace with people, a guest and an outsider; and a folder for a gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.platforms.slack import SlackServer
from tests.scenario.slack.house import House


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server
        server.check()


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)
