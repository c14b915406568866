"""Questions on the page: several in one form, values of a kind, what a cut-off call came to."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from channels.web.adapter import WebChannel
from tests.web_page import backend_fixture, channel_fixture, open_card, say  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_several_questions_are_answered_in_one_form_and_can_be_changed_until_confirm(
    channel: WebChannel, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "ask several")
    card = await open_card(page)
    parts = {name: card.locator(f"[data-testid=part][data-name={name}]") for name in ("env", "count", "day")}
    quiet, tell = (card.locator(f"[data-testid=part][data-name={name}]") for name in ("quiet", "tell"))
    await expect(parts["env"].get_by_label("Staging")).to_be_checked()  # answered elsewhere
    await parts["env"].get_by_text("Production").click()
    await expect(parts["env"].get_by_label("Staging")).not_to_be_checked()

    await card.get_by_test_id("confirm").click()
    await expect(parts["count"].get_by_test_id("field-problem")).to_have_text("an answer is needed")
    await parts["count"].get_by_test_id("part-input").fill("a few")
    await parts["day"].get_by_test_id("part-input").fill("2026-03-31")
    await quiet.get_by_test_id("part-input").select_option("Yes")
    await card.get_by_test_id("confirm").click()
    await expect(parts["count"].get_by_test_id("field-problem")).to_have_text("a whole number is needed")
    await expect(card).to_have_attribute("data-state", "open")

    await parts["count"].get_by_test_id("part-input").fill("3")
    await tell.get_by_text("Neither").click()
    await tell.get_by_test_id("part-input").fill("the night shift")
    await card.get_by_test_id("confirm").click()
    await expect(page.get_by_test_id("card-status")).to_contain_text(
        "env: prod; count: 3; day: 2026-03-31; quiet: true; tell: none, the night shift"
    )


async def test_one_answer_can_be_changed_until_confirm_where_that_is_asked_for(
    channel: WebChannel, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "ask sure")
    card = await open_card(page)
    staging, production = card.get_by_label("Staging"), card.get_by_label("Production")
    await expect(staging).to_be_checked()  # chosen elsewhere
    await production.check()
    await expect(staging).not_to_be_checked()
    await card.get_by_test_id("answer-text").fill("the eu cluster")
    await expect(production).not_to_be_checked()
    await expect(card).to_have_attribute("data-state", "open")
    await production.check()
    await expect(card.get_by_test_id("answer-text")).to_have_value("")
    await card.get_by_test_id("confirm").click()
    await expect(page.get_by_test_id("card-status")).to_contain_text("Answered by web:local: prod")


async def test_what_a_cut_off_call_came_to_can_be_told(channel: WebChannel, page: Page) -> None:
    await page.goto(channel.url)
    await say(page, "unknown")
    card = await open_card(page)
    await card.get_by_test_id("done-result").fill("refund R-1 is booked")
    await card.get_by_test_id("done-submit").click()
    await expect(page.get_by_test_id("card-status")).to_contain_text("treat as done, refund R-1 is booked")
