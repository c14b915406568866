"""An agent that chooses to say nothing, in a real browser: a quiet mark, and never a piece of the word."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.app_scene import House, running
from tests.silence import FIRST, TOKEN, Silent
from tests.web_page import say

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_c067_the_page_shows_a_quiet_mark_and_no_piece_of_the_word(page: Page, tmp_path: Path) -> None:
    house, model = House(tmp_path), Silent()
    async with running(house, agent=house.agent(silence=TOKEN), model=model) as scene:
        await page.goto(scene.url)
        await say(page, "good night")
        await model.begun()
        await expect(page.get_by_test_id("working")).to_be_visible()
        await expect(page.get_by_test_id("live-text")).to_have_count(0)
        model.let_go.set()
        await expect(page.get_by_test_id("silent")).to_have_text("Nothing to say.")
        await expect(page.get_by_test_id("working")).to_have_count(0)
        await page.reload()
        await expect(page.get_by_test_id("silent")).to_have_count(1)
        await expect(page.get_by_test_id("message-assistant")).to_have_count(0)
        assert FIRST not in await page.locator("body").inner_text()
