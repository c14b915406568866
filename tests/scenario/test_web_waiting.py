"""The web page in a real browser: requests are taken back and passed on, grants revoked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import Page, expect

from channels.web.adapter import WebChannel
from channels.web.backend import Scope
from tests.web_backend import MemoryBackend
from tests.web_page import backend_fixture, channel_fixture, only, open_card, say  # noqa: F401
from tests.web_waiting import granted, planned

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_request_is_taken_back_on_its_card(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "refund 25")
    card = await open_card(page)
    await card.get_by_test_id("cancel").click()
    await expect(page.get_by_test_id("card-status")).to_contain_text("Cancelled by local. It did not run")
    await expect(page.get_by_test_id("waiting-item")).to_have_count(0)
    assert backend.ran == []


async def test_a_request_is_passed_on_and_the_card_says_to_whom(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "refund 25")
    card = await open_card(page)
    await card.get_by_test_id("give").click()
    field = card.get_by_test_id("give-to")
    await expect(field).to_be_focused()
    await expect(card.get_by_test_id("card-buttons")).to_be_hidden()
    await field.fill("bob")
    await field.press("Enter")
    await expect(card.get_by_test_id("outcome")).to_contain_text("a name is no id")
    await field.fill("slack:T1:U2")
    await card.get_by_test_id("give-submit").click()
    await expect(card.get_by_test_id("facts")).to_contain_text("slack:T1:U2")
    await expect(card.get_by_test_id("card-buttons")).to_be_visible()
    assert backend.cards[only(backend)].approvers == ("slack:T1:U2",)


async def test_escape_leaves_the_form_and_changes_nothing(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "ask open")
    card = await open_card(page)
    await card.get_by_test_id("give").click()
    await page.keyboard.press("Escape")
    await expect(card.get_by_test_id("give-form")).to_have_count(0)
    assert backend.cards[only(backend)].approvers == ()


async def test_a_card_of_a_chat_can_be_posted_there_again(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "refund 25")
    card = await open_card(page)
    await expect(card.get_by_test_id("show")).to_have_count(0)
    pending_id = only(backend)
    backend.cards[pending_id] = replace(backend.cards[pending_id], home="slack")
    await page.reload()
    await (await open_card(page)).get_by_test_id("show").click()
    await expect(card.get_by_test_id("outcome")).to_contain_text("Here it is again")
    assert backend.shown == [pending_id]


async def test_the_card_says_what_a_grant_would_cover(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "refund 25")
    await open_card(page)
    pending_id = only(backend)
    scopes: tuple[Scope, ...] = ("once", "session", "always")
    covers = "exactly these arguments <b>and</b> nothing else"
    backend.cards[pending_id] = replace(backend.cards[pending_id], covers=covers, scopes=scopes)
    await page.reload()
    card = await open_card(page)
    await expect(card.get_by_test_id("covers")).to_have_text(covers)
    await card.get_by_test_id("approve-always").click()
    await expect(page.get_by_test_id("card-status")).to_contain_text("Approved")
    assert backend.granted == ["always"]


async def test_grants_are_listed_and_revoked(channel: WebChannel, backend: MemoryBackend, page: Page) -> None:
    backend.lines = {"g1": granted("g1"), "g2": granted("g2", by="web:boss")}
    await page.goto(channel.url)
    await page.get_by_test_id("open-grants").click()
    await expect(page.get_by_test_id("grant")).to_have_count(2)
    await expect(page.get_by_test_id("title")).to_have_text("Grants")
    await expect(page.get_by_test_id("message-input")).to_be_hidden()
    first = page.locator("[data-grant-id=g1]")
    await expect(first).to_contain_text('{"order_id":"A-1001","api_key":"••••••"}')
    await expect(first).to_contain_text("every session of assistant")
    await first.get_by_test_id("revoke").click()
    await expect(page.get_by_test_id("grant")).to_have_count(1)
    await expect(page.get_by_test_id("grants-told")).to_have_text("Revoked: issue_refund.")
    await page.locator("[data-grant-id=g2]").get_by_test_id("revoke").click()
    await expect(page.get_by_test_id("grants-told")).to_have_text("only web:boss may revoke this")
    assert list(backend.lines) == ["g2"]


async def test_no_grants_are_said_in_words(channel: WebChannel, page: Page) -> None:
    await page.goto(f"{channel.url}/#/grants")
    await expect(page.get_by_test_id("no-grants")).to_have_text("Nothing is granted.")


async def test_schedules_are_listed_and_cancelled(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    backend.planned = {"c1": planned("c1"), "c2": planned("c2", by="web:boss")}
    await page.goto(channel.url)
    await page.get_by_test_id("open-schedules").click()
    await expect(page.get_by_test_id("schedule")).to_have_count(2)
    await expect(page.get_by_test_id("title")).to_have_text("Schedules")
    first = page.locator("[data-schedule-id=c1]")
    await expect(first).to_contain_text("Say what waits.")
    await expect(first).to_contain_text("every 4h")
    await first.get_by_test_id("cancel-schedule").click()
    await expect(page.get_by_test_id("schedule")).to_have_count(1)
    await expect(page.get_by_test_id("schedules-told")).to_have_text("Cancelled: abcde.")
    await page.locator("[data-schedule-id=c2]").get_by_test_id("cancel-schedule").click()
    await expect(page.get_by_test_id("schedules-told")).to_have_text("only web:boss may cancel this")
    assert list(backend.planned) == ["c2"]


async def test_no_schedules_are_said_in_words(channel: WebChannel, page: Page) -> None:
    await page.goto(f"{channel.url}/#/schedules")
    await expect(page.get_by_test_id("no-schedules")).to_have_text("Nothing is scheduled.")
