"""Floods, networks that go away, restarts, conflicts: everything arrives, in order, once."""

from __future__ import annotations

import itertools
import logging

import pytest

from tests.clock import FakeClock
from tests.platforms.telegram import Json, TelegramServer
from tests.platforms.telegram.checks import utf16_slice
from tests.platforms.telegram.driving import TOKEN
from tests.scenario.telegram.house import ADA, BOB, GROUP, House, labels, running

MODES = pytest.mark.parametrize("mode", ["polling", "webhook"])
SLOW = "Too Many Requests: retry after 5"


def taken_at(server: TelegramServer, method: str, chat: int) -> list[tuple[int, float]]:
    """(status, time) of the calls of a method about a chat."""
    calls = [call for call in server.calls(method) if call.values.get("chat_id") == str(chat)]
    return [(call.status, call.at) for call in calls]


async def test_a_flooded_answer_waits_as_long_as_the_server_says_and_is_not_dropped(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server, clock=FakeClock()) as scene:
        server.flood(ADA, 17, times=1)
        scene.say("hello")
        await scene.sees("You said: hello")
        (first, refused_at), (second, sent_at) = taken_at(server, "sendMessage", ADA)
    assert (first, second) == (429, 200)
    assert sent_at - refused_at >= 17


async def test_nothing_goes_to_a_chat_while_its_flood_lasts_and_other_chats_do_not_wait(
    house: House, server: TelegramServer
) -> None:
    """One refusal is enough: until its time is up we do not ask again, for whatever kind of message."""
    clock = FakeClock()
    async with running(house, server, clock=clock) as scene:
        scene.say("pay both")
        card = await scene.card("Approve all (2)")
        await scene.rest()
        began = clock.monotonic()
        server.flood(ADA, 30)
        for number in range(3):
            scene.say(f"/approve {number}")  # three notices
        click = await scene.press(card, "1 Approve")  # a redraw
        assert click.text.startswith("Approved by Ada")
        scene.say("hello", BOB)
        await scene.sees("You said: hello", BOB)
        assert clock.monotonic() - began < 10
        await scene.sees("There is no request '2'.")
        now = labels(await scene.shows(card, "Approved by Ada"))
        assert "2 Approve" in now and "1 Approve" not in now
        await scene.press(card, "2 Approve")
        await scene.sees("Result: paid 10 for A-1; paid 10 for A-2")
        refused = [call for call in server.journal if call.status == 429]
        assert 1 <= len(refused) <= 2  # the notice, and the redraw if it was on its way already
    assert [t for t in scene.texts() if "no request" in t] == [
        f"There is no request '{n}'." for n in range(3)
    ]


@MODES
async def test_floods_of_every_kind_delay_and_lose_nothing(
    house: House, server: TelegramServer, mode: str
) -> None:
    async with running(house, server, mode=mode, clock=FakeClock()) as scene:
        for method in ("sendMessage", "editMessageText", "answerCallbackQuery"):
            server.fail_next(method, 429, SLOW, {"retry_after": 5}, times=2)
        scene.say("pay A-1 30")
        card = await scene.card()
        click = server.click(card, "Approve", ADA)
        await scene.sees("Result: paid 30 for A-1")
        assert labels(await scene.shows(card, "Approved by Ada")) == []
        await scene.until(lambda: click.answered, "an answer to the click")
        await scene.rest()
    assert click.text.startswith("Approved by Ada")
    assert len(scene.texts()) == 2
    assert len(house.paid) == 1


async def test_the_word_after_a_submitted_form_waits_too(house: House, server: TelegramServer) -> None:
    async with running(house, server, clock=FakeClock()) as scene:
        scene.say("pay A-1 30")
        card = await scene.card()
        await scene.press(card, "Edit")
        prompt = await scene.until(lambda: max(server.chats[ADA].force_replies, default=0), "a prompt")
        server.flood(ADA, 5, times=1)
        server.say(ADA, ADA, "amount: no number", reply_to=prompt)
        await scene.sees("amount: ")


@MODES
async def test_a_network_that_is_away_for_five_minutes_loses_nothing(
    house: House, server: TelegramServer, mode: str
) -> None:
    """What was being sent goes out within a minute after it is back, and so does what people wrote."""
    clock = FakeClock()
    async with running(house, server, mode=mode, clock=clock) as scene:
        scene.say("work")
        await house.at_work.wait()
        await scene.until(lambda: not server.bots[TOKEN].updates, "taken in")
        await server.down()
        house.let_go.set()
        away_since = clock.monotonic()
        await scene.until(lambda: clock.monotonic() - away_since > 300, "five minutes")
        await server.up()
        back = clock.monotonic()
        scene.say("are you back?")
        await scene.sees("Result: worked")
        await scene.sees("You said: are you back?")
        assert clock.monotonic() - back < 60
        await scene.rest()
    assert scene.texts() == ["Result: worked", "You said: are you back?"]


async def test_an_answer_whose_receipt_was_lost_comes_again_at_most_once_and_says_so(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server, clock=FakeClock()) as scene:
        server.cut_next("sendMessage", "after")
        scene.say("hello")
        await scene.sees("You said: hello", count=2)
        await scene.rest()
    first, second = scene.texts()
    assert first == "You said: hello"
    assert second.startswith("You said: hello\n\n(this may be a repeat")


async def test_an_answer_that_surely_did_not_arrive_is_not_marked(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server, clock=FakeClock()) as scene:
        server.fail_next("sendMessage", 502, "Bad Gateway", times=3)
        scene.say("hello")
        await scene.sees("You said: hello")
        await scene.rest()
    assert scene.texts() == ["You said: hello"]


# ---- restarts and deliveries that come again


@MODES
async def test_c027_updates_that_come_again_during_the_turn_and_after_restarts_are_one_turn(
    house: House, server: TelegramServer, mode: str
) -> None:
    async with running(house, server, mode=mode) as scene:
        update = scene.say("work")
        await house.at_work.wait()
        server.send_again(update)
        server.redeliver(update)
        await scene.until(lambda: not server.bots[TOKEN].updates, "taken in")
    server.send_again(update)
    house.let_go.set()
    async with running(house, server, mode=mode) as scene:
        server.redeliver(update)
        await scene.until(lambda: scene.cards("run again"), "a question about the call in doubt")
        await scene.press(scene.cards("run again")[0], "run again")
        answer = await scene.sees("Result: [this call had begun before")
        assert answer["text"].endswith("\nworked")
        await scene.rest()
        assert [m.text for m in house.said()] == ["work"]
    assert len(scene.messages("Result: ")) == 1


@MODES
async def test_c039_the_first_click_after_a_restart_counts_and_the_others_are_told(
    house: House, server: TelegramServer, mode: str
) -> None:
    agent = house.agent(rule={"approvers": ("requester", f"telegram:{BOB}")})
    async with running(house, server, mode=mode, agent=agent) as scene:
        scene.call("pay A-1 30")
        card = await scene.card(chat=GROUP)
        await scene.rest()
    async with running(house, server, mode=mode, agent=agent) as scene:
        first = server.click(card, "Approve", ADA)
        second = server.click(card, "Approve", ADA)
        await scene.until(lambda: first.answered and second.answered, "answers")
        third = await scene.press(card, "Deny", BOB)
        await scene.sees("Result: paid 30 for A-1", GROUP)
        await scene.rest()
    texts = sorted([first.text, second.text])
    assert [text.partition(" (")[0] for text in texts] == [
        "Already decided. Approved by Ada",
        "Approved by Ada",
    ]
    assert third.text.startswith("Already decided. Approved by Ada")
    assert len(house.paid) == 1


async def test_c031_answers_that_were_sent_are_not_sent_again_after_a_restart(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server) as scene:
        for number in range(3):
            scene.say(f"number {number}")
            await scene.sees(f"You said: number {number}")
        await scene.rest()
        scene.say("the last one")
        async with server.held("sendMessage") as held:
            await scene.until(lambda: held.waiting, "the request is on its way")
            await scene.gateway.stop()
    async with running(house, server) as scene:
        await scene.rest()
    texts = scene.texts()
    assert texts[:3] == [f"You said: number {n}" for n in range(3)]
    assert [t for t in texts[3:] if "the last one" in t and "may be a repeat" not in t] == [
        "You said: the last one"
    ]
    assert len(texts) <= 5


async def test_c052_a_question_is_answered_hours_later_on_another_life_of_the_gateway(
    house: House, server: TelegramServer
) -> None:
    clock = FakeClock()
    async with running(house, server, clock=clock) as scene:
        scene.say("ask")
        card = await scene.card("prod")
        await scene.rest()
    clock.advance(hours=3)
    async with running(house, server, clock=clock) as scene:
        await scene.press(card, "prod")
        await scene.sees("Result: prod")
        assert labels(await scene.shows(card, "Answered by Ada")) == []


# ---- long answers


async def test_an_answer_of_thirty_messages_keeps_its_order_and_its_formatting(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server, clock=FakeClock(), between=1.0) as scene:
        server.enforce_rates = True
        scene.say("long 45")
        parts = await scene.until(
            lambda: server.from_bot(ADA) if _has(server, "last of 45") else [], "the whole answer"
        )
    assert len(parts) >= 30
    assert all(call.status == 200 for call in server.calls("sendMessage"))
    _assert_whole(parts, 45)


async def test_a_flood_in_the_middle_of_a_long_answer_repeats_and_loses_no_part(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server, clock=FakeClock()) as scene:
        scene.say("long 12")
        await scene.until(lambda: _has(server, "last of 3"), "some parts")
        server.flood(ADA, 40, times=1)
        parts = await scene.until(
            lambda: server.from_bot(ADA) if _has(server, "last of 12") else [], "the whole answer"
        )
    _assert_whole(parts, 12)


async def test_a_restart_in_the_middle_of_a_long_answer_repeats_one_part_at_most(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server) as scene:
        scene.say("long 12")
        await scene.until(lambda: _has(server, "last of 4"), "some parts")
        async with server.held("sendMessage") as held:
            await scene.until(lambda: held.waiting, "the next part is on its way")
            await scene.gateway.stop()
    before = len(server.from_bot(ADA))
    async with running(house, server) as scene:
        await scene.until(lambda: _has(server, "last of 12"), "the whole answer")
        await scene.rest()
    parts = server.from_bot(ADA)
    marked = [part["text"].partition("\n\n(this may be a repeat")[0] for part in parts]
    assert before < len(parts)
    assert sum("may be a repeat" in part["text"] for part in parts) <= 1
    repeated = [index for index, text in enumerate(marked) if text in marked[:index]]
    assert len(repeated) <= 1
    _assert_whole([part for index, part in enumerate(parts) if index not in repeated], 12)


def _has(server: TelegramServer, words: str) -> bool:
    return any(words in m.get("text", "") for m in server.from_bot(ADA))


def _assert_whole(parts: list[Json], sections: int) -> None:
    """Every word once and in order, headings bold, code as code."""
    text = "\n".join(part["text"] for part in parts)
    places = [text.index(f"word{n}x{i} ") for n in range(1, sections + 1) for i in range(289)]
    assert places == sorted(places)
    assert text.count("Bold 7 ") == 1
    marked = [
        (entity["type"], utf16_slice(part["text"], entity["offset"], entity["length"]))
        for part in parts
        for entity in part.get("entities", [])
    ]
    assert [m for m in marked if m[0] == "code"] == [("code", f"code{n}") for n in range(1, sections + 1)]
    assert [m for m in marked if m == ("bold", f"Bold {sections}")] != []


# ---- conflicts


async def test_c081_a_second_gateway_with_the_same_token_is_told_in_one_line_and_both_back_off(
    house: House, server: TelegramServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="channels.telegram")
    clock = FakeClock()
    async with running(house, server, clock=clock) as scene:
        conflict = "Conflict: terminated by other getUpdates request"
        server.fail_next("getUpdates", 409, conflict, times=6)
        scene.say("hello")
        await scene.sees("You said: hello")
    polls = [call.at for call in server.calls("getUpdates") if call.status == 409]
    pauses = [round(later - earlier) for earlier, later in itertools.pairwise(polls)]
    assert pauses == sorted(pauses)
    assert pauses[-1] >= 16
    lines = [r.getMessage() for r in caplog.records if "only one may" in r.getMessage()]
    assert len(lines) == 1
