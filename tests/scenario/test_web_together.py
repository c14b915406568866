"""The web page in a real browser: several calls on one card, previews, and what only deciders see."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, expect

from channels.base import Actor
from channels.web.adapter import WebChannel
from tests.web_backend import MemoryBackend
from tests.web_page import backend_fixture, channel_fixture, open_card, say  # noqa: F401
from tests.web_together import DIFF

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
BOB = Actor("web", "", "bob")


async def both(channel: WebChannel, page: Page) -> Locator:
    """The frame around two calls that wait."""
    await page.goto(channel.url)
    await say(page, "both")
    frame = page.get_by_test_id("shared-card")
    await expect(frame.get_by_test_id("card")).to_have_count(2)
    return frame


async def test_calls_of_one_step_stand_in_one_frame_each_with_its_own_buttons(
    channel: WebChannel, page: Page
) -> None:
    frame = await both(channel, page)
    await expect(frame).to_have_count(1)
    await expect(frame.get_by_test_id("shared-title")).to_have_text("2 calls, 2 of them waiting")
    await expect(frame.get_by_test_id("arguments")).to_contain_text(["A-1", "A-2"])
    await expect(frame.get_by_test_id("approve")).to_have_count(2)
    await expect(frame.get_by_test_id("deny")).to_have_count(2)
    await expect(frame.get_by_test_id("approve-all")).to_have_text("Approve all (2)")
    await expect(frame.get_by_test_id("deny-all")).to_have_text("Deny all (2)")


async def test_one_call_is_decided_and_the_other_still_waits_in_its_place(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    frame = await both(channel, page)
    await frame.get_by_test_id("approve").first.click()
    await expect(frame.get_by_test_id("shared-title")).to_have_text("2 calls, 1 of them waiting")
    cards = frame.get_by_test_id("card")
    await expect(cards.first.get_by_test_id("card-status")).to_contain_text("Approved by web:local")
    await expect(cards.first.get_by_test_id("approve")).to_have_count(0)
    await expect(frame.get_by_test_id("approve-all")).to_have_count(0)
    await expect(frame.get_by_test_id("approve")).to_have_count(1)
    assert [args["order_id"] for _, args in backend.ran] == ["A-1"]
    await page.reload()
    await expect(frame.get_by_test_id("shared-title")).to_have_text("2 calls, 1 of them waiting")


async def test_approve_all_runs_each_once_and_puts_the_calls_back(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    frame = await both(channel, page)
    await frame.get_by_test_id("approve-all").dblclick()
    await expect(frame).to_have_count(0)
    cards = page.get_by_test_id("card")
    await expect(cards).to_have_count(2)
    await expect(cards.get_by_test_id("card-status")).to_contain_text(["Approved by web:local"] * 2)
    await expect(page.get_by_test_id("message-assistant").last.locator("table")).to_contain_text("paid")
    assert [args["order_id"] for _, args in backend.ran] == ["A-1", "A-2"]
    calls = page.locator(".message .call")
    await expect(calls).to_have_count(2)
    await expect(calls.get_by_test_id("card")).to_have_count(2)


async def test_deny_all_refuses_every_call(channel: WebChannel, backend: MemoryBackend, page: Page) -> None:
    frame = await both(channel, page)
    await frame.get_by_test_id("deny-all").click()
    await expect(frame).to_have_count(0)
    await expect(page.get_by_test_id("card-status")).to_contain_text(["Denied by web:local"] * 2)
    assert backend.ran == []


async def test_a_late_click_for_all_says_what_became_of_the_rest(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    frame = await both(channel, page)
    for pending_id in backend.cards:
        backend.decide_unseen(pending_id, BOB)
    await frame.get_by_test_id("deny-all").click()
    await expect(page.get_by_test_id("card-status")).to_contain_text(["Approved by web:bob"] * 2)
    await expect(frame).to_have_count(0)


async def test_a_request_for_all_that_fails_is_said_and_can_be_repeated(
    channel: WebChannel, page: Page
) -> None:
    frame = await both(channel, page)
    await page.route("**/pending-cards/**", lambda route: route.abort())
    await frame.get_by_test_id("approve-all").click()
    await expect(frame.get_by_test_id("shared-outcome")).to_contain_text("cannot be reached")
    await page.unroute("**/pending-cards/**")
    await frame.get_by_test_id("approve-all").click()
    await expect(frame).to_have_count(0)


async def test_a_diff_is_coloured_line_by_line_and_stays_text(channel: WebChannel, page: Page) -> None:
    await page.goto(channel.url)
    await say(page, "diff")
    preview = (await open_card(page)).get_by_test_id("preview")
    await expect(preview.locator(".del")).to_have_text("-20 EUR <b>old</b>")
    await expect(preview.locator(".add")).to_have_text("+30 EUR")
    await expect(preview.locator(".meta")).to_have_count(3)
    assert (await preview.inner_text()).strip() == DIFF
    await expect(preview.locator("b")).to_have_count(0)


async def test_a_picture_is_shown(channel: WebChannel, page: Page) -> None:
    await page.goto(channel.url)
    await say(page, "picture")
    picture = (await open_card(page)).get_by_test_id("preview-image")
    await expect(picture).to_have_attribute("src", re.compile("^/page/previews/p"))
    await expect(picture).to_have_js_property("naturalWidth", 1)


async def test_who_may_not_decide_sees_the_tool_and_who_may_but_no_argument(
    channel: WebChannel, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "closed")
    frame = page.get_by_test_id("shared-card")
    await expect(frame.get_by_test_id("hidden")).to_have_count(2)
    await expect(frame.get_by_test_id("card-tool")).to_have_text(["issue_refund"] * 2)
    await expect(frame.get_by_test_id("facts")).to_contain_text(["web:boss"] * 2)
    for control in ("approve", "deny", "edit", "arguments"):
        await expect(frame.get_by_test_id("card").get_by_test_id(control)).to_have_count(0)
    await expect(frame.get_by_test_id("approve-all")).to_have_count(0)
    assert "without arguments" not in await frame.inner_text()
