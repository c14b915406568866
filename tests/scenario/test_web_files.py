"""A file that an agent sends, in a real browser: a line in the conversation, and a link that saves it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.built_in_scene import from_file
from tests.web_page import say

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_sent_file_is_saved_under_its_name_and_never_opened(page: Page, tmp_path: Path) -> None:
    async with from_file(tmp_path) as (_gateway, url):
        await page.goto(url)
        await say(page, "write")
        await expect(page.get_by_test_id("message-assistant").last).to_have_text("sent")
        await expect(page.get_by_test_id("notice")).to_have_text("Here it is Save a b.html")
        await page.reload()
        async with page.expect_download() as starting:
            await page.get_by_test_id("file").click()
        download = await starting.value
        assert download.suggested_filename == "a b.html"
        saved = await asyncio.to_thread((await download.path()).read_text)
        assert saved == "<script>alert(1)</script>"
        await expect(page.get_by_test_id("message-assistant").last).to_have_text(
            "sent"
        )  # still the same page
