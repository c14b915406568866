"""A gateway over a fresh database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.app_scene import House, Scene, running


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
async def scene(house: House) -> AsyncIterator[Scene]:
    async with running(house) as scene:
        yield scene
