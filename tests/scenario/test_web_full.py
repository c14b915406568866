"""The whole thing: `threadgate demo` as a process, and a person in a real browser before it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from tests.browser import new_context, watch
from tests.demo_process import Demo, free_port
from tests.web_page import open_card, say

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def demo(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Demo]:
    """One process for all tests that leave it alive; each works in a conversation of its own."""
    demo = Demo(tmp_path_factory.mktemp("demo"), free_port())
    await demo.start()
    yield demo
    assert await demo.stop() == 0


@pytest_asyncio.fixture(loop_scope="session")
async def fragile(tmp_path: Path) -> AsyncIterator[Demo]:
    """A demo to be killed."""
    demo = Demo(tmp_path, free_port())
    await demo.start()
    yield demo
    await demo.kill()


def last_answer(page: Page) -> Locator:
    return page.get_by_test_id("message-assistant").last


# ---- the stop that survives


async def test_c039_a_card_survives_a_kill_and_the_click_pays_once(
    fragile: Demo, page: Page, browser: Browser
) -> None:
    await page.goto(fragile.url)
    await say(page, "refund order A-1001")
    card = await open_card(page)
    for words in ("order_id", "A-1001", "amount", "49.9"):
        await expect(card.get_by_test_id("arguments")).to_contain_text(words)
    await expect(card.get_by_test_id("card-tool")).to_have_text("issue_refund")
    await expect(card.get_by_test_id("facts")).to_contain_text("web:local")
    other = await (await new_context(browser)).new_page()
    await other.goto(page.url)
    await open_card(other)

    await fragile.kill()
    await expect(page.get_by_test_id("banner")).to_contain_text("Connection lost")
    await fragile.start()
    await expect(page.get_by_test_id("banner")).to_be_hidden()
    card = await open_card(page)
    # The other tab stays behind: it hears of nothing any more.
    await other.route("**/sessions/**", lambda route: route.abort())
    await other.evaluate("window.stop()")

    await card.get_by_test_id("approve").dblclick()
    await expect(page.get_by_test_id("card-status")).to_contain_text("Approved by web:local")
    await expect(last_answer(page)).to_contain_text("Refunded 49.90 € for order A-1001")
    await expect(page.get_by_test_id("status")).to_have_text("")
    assert [(line["order_id"], line["amount"]) for line in fragile.ledger] == [("A-1001", 49.9)]

    old = await open_card(other)
    await old.get_by_test_id("approve").click()
    outcome = other.get_by_test_id("outcome")
    await expect(outcome).to_have_attribute("data-outcome", "already")
    await expect(outcome).to_contain_text("Approved by web:local")
    pending_id = await old.get_attribute("data-pending-id")
    async with httpx.AsyncClient(base_url=fragile.url, trust_env=False) as client:
        body = {"decision": "deny", "feedback": "too late"}
        late = (await client.post(f"/pending-approvals/{pending_id}/resolve", json=body)).json()
    assert (late["outcome"], late["by"], late["at"] > 0) == ("already", "web:local", True)

    await fragile.kill()
    await fragile.start()
    await page.reload()
    await expect(page.get_by_test_id("card-status")).to_contain_text("Approved by web:local")
    await expect(last_answer(page)).to_contain_text("Refunded 49.90 €")
    assert len(fragile.ledger) == 1


async def test_c052_a_question_survives_a_kill_and_its_answer_goes_on(fragile: Demo, page: Page) -> None:
    await page.goto(fragile.url)
    await say(page, "I want a refund")
    await open_card(page)
    await fragile.kill()
    await fragile.start()
    await expect(page.get_by_test_id("banner")).to_be_hidden()
    await (await open_card(page)).get_by_text("Tea sampler").click()
    await expect(last_answer(page)).to_contain_text("Refunded 12.50 € for order A-1002")
    assert [line["amount"] for line in fragile.ledger] == [12.5]


async def test_a_reload_in_the_middle_of_an_answer_loses_nothing(demo: Demo, page: Page) -> None:
    await page.goto(demo.url)
    await say(page, "show me markdown")
    await expect(page.get_by_test_id("live-text")).to_contain_text("What an answer can hold")
    await page.reload()
    # The answer goes on growing meanwhile: by now it may be the whole one.
    shown = page.get_by_test_id("live-text").or_(page.get_by_test_id("message-assistant")).first
    await expect(shown).to_contain_text("What an answer can hold")
    await expect(shown.locator("strong").first).to_have_text("bold")
    await expect(last_answer(page).locator("table")).to_contain_text("Tea sampler")
    await expect(page.get_by_test_id("live-text")).to_have_count(0)
    await expect(page.get_by_test_id("message-user")).to_have_count(1)
    await expect(page.get_by_test_id("message-assistant")).to_have_count(1)
    await expect(last_answer(page).locator("pre code")).to_contain_text("def total")


# ---- deciding and answering


async def test_arguments_are_edited_and_approved_without_a_foreign_request_or_an_error(
    demo: Demo, page: Page
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    faults = watch(page, strict=True)
    before = len(demo.ledger)
    await page.goto(demo.url)
    await say(page, "refund order A-1001")
    card = await open_card(page)
    await card.get_by_test_id("edit").click()
    amount = card.locator("[data-name=amount]")
    await expect(amount).to_have_value("49.9")
    await amount.fill("30")
    await amount.press("Enter")
    await expect(page.get_by_test_id("card-status")).to_contain_text("Approved with changes by web:local")
    await expect(last_answer(page)).to_contain_text("Refunded 30.00 €")
    assert [line["amount"] for line in demo.ledger[before:]] == [30]
    assert [url for url in asked if not url.startswith(demo.url)] == []
    assert faults == []


async def test_an_argument_that_does_not_fit_is_named_and_nothing_runs(demo: Demo, page: Page) -> None:
    before = len(demo.ledger)
    await page.goto(demo.url)
    await say(page, "refund order A-1001")
    card = await open_card(page)
    await card.get_by_test_id("edit").click()
    amount = card.locator("[data-name=amount]")
    await amount.fill("-5")
    await card.get_by_test_id("edit-submit").click()
    await expect(amount).to_have_attribute("aria-invalid", "true")
    await expect(card.get_by_test_id("outcome")).to_have_attribute("data-outcome", "invalid")
    await card.get_by_test_id("edit-cancel").click()
    await card.get_by_test_id("deny").click()
    await expect(page.get_by_test_id("card-status")).to_contain_text("Denied by web:local")
    await expect(page.get_by_test_id("turn-end")).to_contain_text("a person said no")
    assert len(demo.ledger) == before


async def test_after_a_denial_with_feedback_the_agent_goes_on_with_it(demo: Demo, page: Page) -> None:
    before = len(demo.ledger)
    await page.goto(demo.url)
    await say(page, "refund order A-1001")
    card = await open_card(page)
    await card.get_by_test_id("deny-feedback").click()
    await card.get_by_test_id("feedback").fill("that is too much, give 15")
    await card.get_by_test_id("feedback-submit").click()
    await expect(page.get_by_test_id("card-status")).to_contain_text("give 15")
    await expect(last_answer(page)).to_contain_text("Refunded 15.00 €")
    assert [line["amount"] for line in demo.ledger[before:]] == [15]


async def test_of_two_calls_in_one_step_the_small_one_runs_and_the_other_waits(
    demo: Demo, page: Page
) -> None:
    before = len(demo.ledger)
    await page.goto(demo.url)
    await say(page, "refund both")
    card = await open_card(page)
    await expect(card).to_contain_text("A-1001")
    assert [line["order_id"] for line in demo.ledger[before:]] == ["A-1002"]
    await card.get_by_test_id("approve").click()
    await expect(last_answer(page)).to_contain_text("Refunded 49.90 €")
    assert [line["order_id"] for line in demo.ledger[before:]] == ["A-1002", "A-1001"]


async def test_an_answer_can_be_typed_like_any_message(demo: Demo, page: Page) -> None:
    await page.goto(demo.url)
    await say(page, "refund, please")
    card = await open_card(page)
    await expect(card.get_by_test_id("question")).to_have_text("Which order shall I refund?")
    await say(page, "2")
    await expect(page.get_by_test_id("card-status")).to_contain_text("Answered by web:local")
    await expect(last_answer(page)).to_contain_text("Refunded 12.50 €")
    await expect(page.get_by_test_id("message-queued")).to_have_count(0)
    await expect(page.get_by_test_id("notice")).to_contain_text("Taken as your answer")


async def test_an_answer_of_ones_own_can_be_given_on_the_card(demo: Demo, page: Page) -> None:
    await page.goto(demo.url)
    await say(page, "refund, please")
    card = await open_card(page)
    await card.get_by_test_id("answer-text").fill("the one with number A-1002")
    await card.get_by_test_id("answer-submit").click()
    await expect(last_answer(page)).to_contain_text("Refunded 12.50 € for order A-1002")


# ---- finding one's way


async def test_what_waits_and_all_conversations_are_listed_for_everybody(
    demo: Demo, page: Page, browser: Browser
) -> None:
    other = await (await new_context(browser)).new_page()
    await other.goto(demo.url)
    await expect(other.get_by_test_id("waiting-count")).to_have_text("0")
    await page.goto(demo.url)
    await say(page, "refund order A-1001")
    await open_card(page)
    await expect(other.get_by_test_id("waiting-count")).to_have_text("1")
    await expect(other).to_have_title("(1) Threadgate")
    await expect(other.get_by_test_id("session-item").first).to_contain_text("refund order A-1001")
    await other.get_by_test_id("waiting-item").click()
    card = await open_card(other)
    await expect(card).to_be_focused()
    await card.get_by_test_id("approve").click()
    await expect(page.get_by_test_id("card-status")).to_contain_text("Approved by web:local")
    await expect(page.get_by_test_id("waiting-count")).to_have_text("0")
    await other.get_by_test_id("open-audit").click()
    row = other.get_by_test_id("audit-rows").locator("tr").filter(has_text="approved").first
    await expect(row).to_contain_text("issue_refund")


async def test_an_empty_page_offers_what_can_be_said(demo: Demo, page: Page) -> None:
    await page.goto(demo.url)
    await page.get_by_test_id("example").filter(has_text="order A-1002").click()
    await expect(last_answer(page)).to_contain_text("Tea sampler for Kim")
    await expect(page.get_by_test_id("welcome")).to_be_hidden()
    await page.get_by_test_id("new-conversation").click()
    await expect(page.get_by_test_id("welcome")).to_be_visible()


async def test_a_refund_without_a_mouse(demo: Demo, page: Page) -> None:
    before = len(demo.ledger)
    await page.goto(demo.url)
    await expect(page.get_by_test_id("message-input")).to_be_focused()
    await page.keyboard.type("refund order A-1001")
    await page.keyboard.press("Enter")
    card = await open_card(page)
    for _ in range(20):
        await page.keyboard.press("Shift+Tab")
        if await card.evaluate("element => element === document.activeElement"):
            break
    await page.keyboard.press("e")
    await page.keyboard.press("Tab")
    await expect(card.locator("[data-name=amount]")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(card).to_be_focused()
    await page.keyboard.press("a")
    await expect(page.get_by_test_id("message-input")).to_be_focused()
    await expect(last_answer(page)).to_contain_text("Refunded 49.90 €")
    assert len(demo.ledger) == before + 1


async def test_a_refund_on_a_phone(demo: Demo, browser: Browser) -> None:
    context = await browser.new_context(
        viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True, device_scale_factor=2
    )
    phone = await context.new_page()
    faults = watch(phone, strict=True)
    await phone.goto(demo.url)
    await say(phone, "refund order A-1001")
    card = await open_card(phone)
    for place in ("document.documentElement", "document.getElementById('view')"):
        assert await phone.evaluate(f"{place}.scrollWidth <= innerWidth") is True
    for button in await card.get_by_role("button").all():
        box = await button.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        assert box["x"] + box["width"] <= 390
    await card.get_by_test_id("approve").tap()
    await expect(last_answer(phone)).to_contain_text("Refunded 49.90 €")
    await phone.get_by_test_id("menu").tap()
    await expect(phone.get_by_test_id("session-item").first).to_be_visible()
    assert faults == []
    await context.close()
