"""The page in front of the agent house in memory: fixtures and the few moves that tests share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from channels.web.adapter import WebChannel
from tests.web_backend import MemoryBackend


@pytest.fixture(name="backend")
def backend_fixture() -> MemoryBackend:
    return MemoryBackend()


@pytest_asyncio.fixture(name="channel", loop_scope="session")
async def channel_fixture(backend: MemoryBackend) -> AsyncIterator[WebChannel]:
    channel = WebChannel(backend, port=0)
    await channel.start()
    yield channel
    await channel.stop()


async def heard_by(channel: WebChannel, page: Page) -> None:
    """Until the page's stream is open: what this channel passes on is not kept for later."""
    async with asyncio.timeout(10):
        while not channel.listeners:
            await page.evaluate("1")  # one round trip to the page


async def say(page: Page, text: str) -> None:
    """Type a message and press Enter."""
    await page.get_by_test_id("message-input").fill(text)
    await page.keyboard.press("Enter")


async def open_card(page: Page) -> Locator:
    """The one card that waits, once it is there."""
    card = page.locator("[data-testid=card][data-state=open]")
    await expect(card).to_have_count(1)
    return card


def only(backend: MemoryBackend) -> str:
    """The id of the only pending."""
    (pending_id,) = backend.cards
    return pending_id
