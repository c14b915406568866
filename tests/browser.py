"""A real Chromium for tests: one per test process, a fresh profile (context) per test.

The browser lives in the session's event loop, so its tests run there too: mark them with
`pytest.mark.asyncio(loop_scope="session")`. Without Chromium they are skipped with one line; under
CI=true they fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, async_playwright, expect

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


@asynccontextmanager
async def launched() -> AsyncIterator[Browser]:
    """A browser without any profile of its own."""
    path = chromium()
    async with async_playwright() as play:
        browser = await play.chromium.launch(executable_path=path, args=list(ARGS))
        yield browser
        await browser.close()


@asynccontextmanager
async def watched_page(browser: Browser) -> AsyncIterator[Page]:
    """One page in a context of its own. Fails at the end when a script of the page threw, or its
    policy blocked something."""
    context = await new_context(browser)
    page = await context.new_page()
    faults = watch(page)
    yield page
    await close_all(browser)
    assert faults == []


def watch(page: Page, *, strict: bool = False) -> list[str]:
    """Collects what goes wrong in a page; `strict`: refused and failed requests too."""
    faults: list[str] = []

    def heard(said: ConsoleMessage) -> None:
        blocked = "Content Security Policy" in said.text
        if blocked or (said.type == "error" and (strict or "Failed to load resource" not in said.text)):
            faults.append(said.text)

    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", heard)
    return faults


async def close_all(browser: Browser) -> None:
    """Forget every context, and with it every page, cookie and connection of the test."""
    for context in list(browser.contexts):
        await context.close()


async def new_context(browser: Browser, *, width: int = 1180, height: int = 820) -> BrowserContext:
    """Another person's browser: nothing shared with the others."""
    context = await browser.new_context(viewport={"width": width, "height": height})
    context.set_default_timeout(PATIENCE_MS)
    return context
