"""SIGTERM: what runs is brought to an end or left resumable, people are told, the exit is clean. C077."""

from __future__ import annotations

import asyncio
import signal
import time

import pytest

from gateway.notices import DRAINED
from tests.platforms.telegram import TelegramServer
from tests.scenario.processes.chat import APPROVE, MAYBE_REPEATED, TREAT_AS_DONE, PrivateChat
from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.gateway import GatewayProcess, until
from tests.scenario.processes.house import RULES, House

pytestmark = pytest.mark.crash

THINK = {"match": "^think", "replies": [{"text": "Thought.", "delay": 1.0}]}
PONDER = {"match": "^ponder", "replies": [{"text": "Pondered.", "delay": 4.0}]}
PARK_LIMIT = 5.0  # seconds beside the drain time


async def drained(gateway: GatewayProcess, drain: float) -> float:
    """SIGTERM and a clean exit in time; the seconds that it took."""
    began = time.monotonic()
    assert await gateway.terminate(drain + PARK_LIMIT) == 0
    return time.monotonic() - began


@pytest.fixture
async def house(furnish: Furnish, server: TelegramServer) -> House:
    return furnish(api_base=server.api_base, rules=[*RULES, THINK, PONDER], drain="2s")


async def began(house: House) -> None:
    await until(lambda: house.ledger("wait began"), "the tool begins")


async def model_is_asked(house: House) -> None:
    await until(lambda: house.rows("SELECT id FROM sessions WHERE status = 'running'"), "the turn runs")


async def test_c077_a_model_call_that_ends_in_time_is_delivered_before_the_exit(
    house: House, chat: PrivateChat
) -> None:
    gateway = await house.start()
    chat.say("think A1")
    await model_is_asked(house)
    await drained(gateway, 2)
    assert chat.texts() == ["Thought."]
    assert house.at_rest()


async def test_c077_a_model_call_that_takes_longer_is_left_and_goes_on_after_the_start(
    house: House, chat: PrivateChat
) -> None:
    gateway = await house.start()
    chat.say("ponder A1")
    await model_is_asked(house)
    await drained(gateway, 2)
    assert chat.texts() == [DRAINED]
    await house.start()
    await chat.words("Pondered.")
    await house.rest()
    assert chat.texts() == [DRAINED, "Pondered."]
    assert house.value("SELECT count(*) FROM turns") == 1
    house.assert_valid()


async def test_c077_a_tool_that_ends_in_time_is_delivered_before_the_exit(
    house: House, chat: PrivateChat
) -> None:
    gateway = await house.start()
    chat.say("wait A1")
    await began(house)
    gateway.signal(signal.SIGTERM)
    await gateway.logged("stopping")
    (house.folder / "let_go").touch()
    assert await gateway.ended(2 + PARK_LIMIT) == 0
    assert chat.texts() == ["Waited A1."]


async def test_c077_a_long_tool_is_left_with_one_word_to_the_chat_and_asked_about_after_the_start(
    house: House, chat: PrivateChat
) -> None:
    gateway = await house.start()
    chat.say("wait A1")
    await began(house)
    gateway.signal(signal.SIGTERM)
    await gateway.logged("stopping")
    chat.say("hello")  # stays with Telegram, is answered after the start
    assert await gateway.ended(2 + PARK_LIMIT) == 0
    assert chat.texts() == [DRAINED]
    await house.start()
    chat.click(await chat.card(TREAT_AS_DONE), TREAT_AS_DONE)
    await chat.words("Waited A1.")
    await chat.words("Hello yourself.")
    await house.rest()
    assert len(chat.said(DRAINED)) == 1
    assert len(house.ledger("wait began")) == 1
    house.assert_valid()


async def test_c077_an_answer_on_its_way_is_sent_once_before_the_exit(
    house: House, chat: PrivateChat, server: TelegramServer
) -> None:
    gateway = await house.start()
    async with server.held("sendMessage") as held:
        chat.say("hello")
        await server.wait_for(lambda: held.waiting == 1)
        gateway.signal(signal.SIGTERM)
        await gateway.logged("stopping")
    assert await gateway.ended(2 + PARK_LIMIT) == 0
    assert chat.texts() == ["Hello yourself."]
    await house.start()
    await house.rest()
    assert chat.texts() == ["Hello yourself."]


async def test_c077_an_answer_that_the_platform_delays_is_sent_once_after_the_start(
    house: House, chat: PrivateChat, server: TelegramServer
) -> None:
    gateway = await house.start()
    server.fail_next("sendMessage", 429, "Too Many Requests: retry after 3", {"retry_after": 3})
    chat.say("hello")
    await server.wait_calls("sendMessage", 1)
    await drained(gateway, 2)
    assert chat.texts() == []
    await house.start()
    await chat.words("Hello yourself.")
    await house.rest()
    assert chat.texts() == ["Hello yourself."]


async def test_c077_an_answer_whose_sending_never_ends_does_not_hold_the_exit(
    house: House, chat: PrivateChat, server: TelegramServer
) -> None:
    gateway = await house.start()
    async with server.held("sendMessage") as held:
        chat.say("hello")
        await server.wait_for(lambda: held.waiting == 1)
        await drained(gateway, 2)
        assert chat.texts() == []
    await house.start()
    await until(lambda: len(chat.said("Hello yourself.")) == 2, "what was held, and its possible repeat")
    await house.rest()
    assert [MAYBE_REPEATED in text for text in sorted(chat.texts(), key=len)] == [False, True]


async def test_c077_a_second_sigterm_ends_it_at_once_and_the_turn_goes_on_after_the_start(
    furnish: Furnish, server: TelegramServer
) -> None:
    house = furnish(api_base=server.api_base, drain="60s")
    chat = PrivateChat(server, house)
    gateway = await house.start()
    chat.say("wait A1")
    await began(house)
    gateway.signal(signal.SIGTERM)
    await gateway.logged("stopping")
    gateway.signal(signal.SIGTERM)
    assert await gateway.ended(PARK_LIMIT) == 1
    await house.start()
    chat.click(await chat.card(TREAT_AS_DONE), TREAT_AS_DONE)
    await chat.words("Waited A1.")
    house.assert_valid()


async def test_c077_a_pending_approval_does_not_hold_the_drain_and_survives_it(
    furnish: Furnish, server: TelegramServer
) -> None:
    house = furnish(api_base=server.api_base, drain="60s")
    chat = PrivateChat(server, house)
    gateway = await house.start()
    chat.say("pay A1")
    card = await chat.card()
    await house.rest()
    async with asyncio.timeout(10):
        assert await gateway.terminate() == 0
    assert len(house.open_pendings()) == 1
    await house.start()
    chat.click(card, APPROVE)
    await chat.words("Paid A1.")
    assert DRAINED not in chat.texts()
