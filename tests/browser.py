"""A real Chromium for tests. Import `browser_fixture` and `page_fixture` into the test file.

Without Chromium the tests are skipped with one line; under CI=true they fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_MS = 10_000

expect.set_options(timeout=PATIENCE_MS)


def chromium() -> str:
    """The path of the browser. Skips or fails the test when there is none."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        told = "Chromium is not installed (apt install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)
    return found


@pytest.fixture(name="browser")
async def browser_fixture() -> AsyncIterator[Browser]:
    """A fresh browser, closed with the test."""
    path = chromium()
    async with async_playwright() as play:
        browser = await play.chromium.launch(executable_path=path, args=list(ARGS))
        yield browser
        await browser.close()


@pytest.fixture(name="page")
async def page_fixture(browser: Browser) -> AsyncIterator[Page]:
    """One page. The test fails when a script of the page throws, or its policy blocks something."""
    context = await new_context(browser)
    page = await context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "console",
        lambda said: faults.append(said.text) if "Content Security Policy" in said.text else None,
    )
    yield page
    assert faults == []


async def new_context(browser: Browser, *, width: int = 1180, height: int = 820) -> BrowserContext:
    """Another person's browser: nothing shared with the others."""
    context = await browser.new_context(viewport={"width": width, "height": height})
    context.set_default_timeout(PATIENCE_MS)
    return context
