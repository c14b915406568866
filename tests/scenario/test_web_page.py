"""The web page in a real browser: talk, watch, decide, answer."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Page, expect

from channels.base import Actor, OutboundMessage
from channels.web.adapter import WebChannel, web_thread
from tests.browser import new_context
from tests.web_backend import MemoryBackend
from tests.web_page import backend_fixture, channel_fixture, heard_by, only, open_card, say  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
BOB = Actor("web", "", "bob")


# ---- talking


async def test_a_message_is_answered_in_formatted_text(channel: WebChannel, page: Page) -> None:
    await page.goto(channel.url)
    await say(page, "hello")
    answer = page.get_by_test_id("message-assistant")
    await expect(answer).to_have_text("You said: hello")
    await expect(answer.locator("strong")).to_have_text("hello")
    await expect(page.get_by_test_id("message-user")).to_have_text("hello")
    await expect(page.get_by_test_id("session-item")).to_have_count(1)
    await expect(page.get_by_test_id("message-input")).to_have_value("")
    await expect(page.get_by_test_id("message-input")).to_be_focused()


async def test_shift_enter_starts_a_new_line_and_enter_sends(channel: WebChannel, page: Page) -> None:
    await page.goto(channel.url)
    field = page.get_by_test_id("message-input")
    await field.fill("one")
    await field.press("Shift+Enter")
    await page.keyboard.type("two")
    await expect(field).to_have_value("one\ntwo")
    await page.keyboard.press("Enter")
    await expect(page.get_by_test_id("message-user")).to_have_text("one\ntwo")


async def test_an_answer_grows_while_it_is_written_and_survives_a_reload(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "slow")
    await expect(page.get_by_test_id("live-text")).to_have_text("You sa")
    await expect(page.get_by_test_id("status")).to_have_text("Working")
    await page.reload()
    await expect(page.get_by_test_id("live-text")).to_have_text("You sa")
    backend.gate.set()
    await expect(page.get_by_test_id("message-assistant")).to_have_text("You said: slow")
    await expect(page.get_by_test_id("live-text")).to_have_count(0)
    await expect(page.get_by_test_id("status")).to_have_text("")


async def test_a_message_behind_a_running_turn_shows_that_it_waits(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "slow")
    await expect(page.get_by_test_id("live-text")).to_be_visible()
    await say(page, "next")
    await expect(page.get_by_test_id("message-queued")).to_contain_text("waits for its turn")
    await page.reload()
    await expect(page.get_by_test_id("message-queued")).to_contain_text("next")
    backend.gate.set()
    await expect(page.get_by_test_id("message-user")).to_have_text(["slow", "next"])
    await expect(page.get_by_test_id("message-queued")).to_have_count(0)


async def test_stop_ends_the_turn_and_closes_its_cards(channel: WebChannel, page: Page) -> None:
    await page.goto(channel.url)
    await say(page, "refund 25")
    await open_card(page)
    await page.get_by_test_id("stop").click()
    card = page.get_by_test_id("card")
    await expect(card).to_have_attribute("data-state", "superseded")
    await expect(card.get_by_test_id("card-status")).to_contain_text("Closed by /stop")
    await expect(page.get_by_test_id("waiting-count")).to_have_text("0")
    await expect(page.get_by_test_id("stop")).to_be_hidden()


async def test_a_notice_of_the_gateway_appears_in_its_conversation(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    await page.goto(channel.url)
    async with page.expect_response("**/events?changes=1*"):
        await say(page, "hello")
    await expect(page.get_by_test_id("message-assistant")).to_be_visible()
    (session_id,) = backend.rows
    await heard_by(channel, page)
    await channel.send(web_thread(session_id), OutboundMessage(text="Restarting soon.", kind="notice"))
    await expect(page.get_by_test_id("notice")).to_have_text("Restarting soon.")


# ---- approvals


async def test_a_card_shows_every_argument_and_its_terms(channel: WebChannel, page: Page) -> None:
    await page.goto(channel.url)
    await say(page, "refund 25")
    card = await open_card(page)
    shown = card.get_by_test_id("arguments")
    for words in ("order_id", "A-1001", "amount", "25.0", "••••••", "damaged", "12345678901234567890"):
        await expect(shown).to_contain_text(words)
    facts = card.get_by_test_id("facts")
    for words in ("whoever asked", "Expires", " days (", "K3", "9f2c" * 16):
        await expect(facts).to_contain_text(words)
    await expect(page.get_by_test_id("tool-state").first).to_have_text("done")


async def test_approve_runs_it_once_and_says_who_and_when(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "refund 25")
    card = await open_card(page)
    await card.get_by_test_id("approve").dblclick()
    card = page.get_by_test_id("card")
    await expect(card).to_have_attribute("data-state", "decided")
    await expect(card.get_by_test_id("card-status")).to_contain_text("Approved by web:local")
    await expect(card.get_by_test_id("outcome")).to_have_attribute("data-outcome", "resumed")
    await expect(page.get_by_test_id("message-assistant").last.locator("table")).to_contain_text("paid")
    assert len(backend.ran) == 1
    await page.reload()
    await expect(card.get_by_test_id("card-status")).to_contain_text("Approved by web:local")
    await expect(card.get_by_test_id("approve")).to_have_count(0)


async def test_a_late_click_says_who_decided_and_when(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "refund 25")
    card = await open_card(page)
    backend.decide_unseen(only(backend), BOB)
    await card.get_by_test_id("deny").click()
    outcome = page.get_by_test_id("outcome")
    await expect(outcome).to_have_attribute("data-outcome", "already")
    await expect(outcome).to_contain_text("Approved by web:bob at ")
    assert backend.ran == []


async def test_a_click_on_an_expired_card_says_so(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "refund 25")
    card = await open_card(page)
    backend.expire(only(backend))
    await card.get_by_test_id("approve").click()
    await expect(page.get_by_test_id("outcome")).to_have_attribute("data-outcome", "expired")
    await expect(page.get_by_test_id("card-status")).to_contain_text("it was not run")
    assert backend.ran == []


async def test_a_click_of_somebody_else_says_who_may(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "guarded")
    card = await open_card(page)
    await card.get_by_test_id("approve").click()
    await expect(card.get_by_test_id("outcome")).to_contain_text("Not allowed: only web:boss may decide")
    await expect(card.get_by_test_id("approve")).to_be_enabled()
    assert backend.cards[only(backend)].state == "open"


async def test_edited_arguments_are_checked_by_the_server_and_run_exactly(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "refund 25")
    card = await open_card(page)
    await card.get_by_test_id("edit").click()
    amount = card.locator("[data-name=amount]")
    await expect(card.locator("[data-name=order_id]")).to_be_focused()
    await expect(card.locator("[data-name=api_key]")).to_be_disabled()
    await amount.fill("a lot")
    await card.get_by_test_id("edit-submit").click()
    await expect(card.get_by_text("a number is needed, like 12.50")).to_be_visible()
    await amount.fill("900")
    await card.get_by_test_id("edit-submit").click()
    await expect(amount).to_have_attribute("aria-invalid", "true")
    await expect(card.get_by_text("900 is greater than the maximum of 500")).to_be_visible()
    await expect(amount).to_be_focused()
    await amount.fill("12.50")
    await card.locator("[data-name=speed]").select_option("express")
    await card.locator("[data-name=notify]").check()
    await amount.press("Enter")
    await expect(page.get_by_test_id("card-status")).to_contain_text("Approved with edits by web:local")
    assert backend.ran == [
        (
            "issue_refund",
            {
                "order_id": "A-1001",
                "amount": 12.5,
                "api_key": "the stored secret",
                "tags": ["late", "damaged"],
                "ledger": 12345678901234567890,
                "speed": "express",
                "notify": True,
            },
        )
    ]


async def test_a_denial_carries_its_feedback(channel: WebChannel, backend: MemoryBackend, page: Page) -> None:
    await page.goto(channel.url)
    await say(page, "refund 25")
    card = await open_card(page)
    await card.get_by_test_id("deny-feedback").click()
    await card.get_by_test_id("feedback").fill("not on Friday")
    await card.get_by_test_id("feedback-submit").click()
    await expect(page.get_by_test_id("card-status")).to_contain_text("Denied by web:local")
    await expect(page.get_by_test_id("turn-end")).to_contain_text("a person said no")
    assert backend.log[-1].detail == "not on Friday"
    assert backend.ran == []


async def test_an_approval_can_hold_for_the_session(
    channel: WebChannel, backend: MemoryBackend, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "refund 25")
    await (await open_card(page)).get_by_test_id("approve-session").click()
    await expect(page.get_by_test_id("card")).to_have_attribute("data-state", "decided")
    assert backend.granted == ["session"]


async def test_another_open_page_follows_a_decision_by_itself(
    channel: WebChannel,
    browser: Browser,
    page: Page,
) -> None:
    await page.goto(channel.url)
    await say(page, "refund 25")
    card = await open_card(page)
    other = await (await new_context(browser)).new_page()
    await other.goto(page.url)
    await open_card(other)
    await card.get_by_test_id("approve").click()
    await expect(other.get_by_test_id("card-status")).to_contain_text("Approved by web:local")
    await expect(other.get_by_test_id("message-assistant").last).to_contain_text("All done")
    await expect(other.get_by_test_id("waiting-count")).to_have_text("0")


# ---- questions


async def test_an_option_answers_a_question(channel: WebChannel, page: Page) -> None:
    await page.goto(channel.url)
    await say(page, "ask")
    card = await open_card(page)
    await expect(card.get_by_test_id("question")).to_have_text("Where should I deploy?")
    await card.get_by_text("Staging").click()
    await expect(page.get_by_test_id("card-status")).to_contain_text("Answered by web:local: staging")


async def test_a_question_about_a_cut_off_call_shows_which_call_it_was(
    channel: WebChannel, page: Page
) -> None:
    await page.goto(channel.url)
    await say(page, "unknown")
    card = await open_card(page)
    await expect(card.get_by_test_id("card-tool")).to_have_text("issue_refund")
    await expect(card.get_by_test_id("arguments")).to_contain_text("A-1001")
    await expect(card.get_by_test_id("answer-text")).to_have_count(0)
    await card.get_by_text("give up").click()
    await expect(page.get_by_test_id("card-status")).to_contain_text("give up")


async def test_several_options_are_chosen_and_confirmed(channel: WebChannel, page: Page) -> None:
    await page.goto(channel.url)
    await say(page, "ask many")
    card = await open_card(page)
    await expect(card.get_by_test_id("confirm")).to_be_disabled()
    await card.get_by_text("Production").click()
    await card.get_by_text("Staging").click()
    await card.get_by_test_id("confirm").click()
    await expect(page.get_by_test_id("card-status")).to_contain_text("prod, staging")


async def test_free_text_answers_a_question(channel: WebChannel, page: Page) -> None:
    await page.goto(channel.url)
    await say(page, "ask open")
    card = await open_card(page)
    await card.get_by_test_id("answer-text").fill("Lamp shop")
    await page.keyboard.press("Enter")
    await expect(page.get_by_test_id("card-status")).to_contain_text("Lamp shop")
