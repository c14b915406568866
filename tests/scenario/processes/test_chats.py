"""Public failures of other bots, replayed against a real process over Telegram."""

from __future__ import annotations

import time

import pytest

from gateway.messages import ToolResult
from gateway.verdicts import STOPPED
from tests.platforms.telegram import TelegramServer
from tests.scenario.processes.chat import APPROVE, PrivateChat, subject
from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.gateway import until
from tests.scenario.processes.house import ADA, BOB, RULES, TOKEN, House, rule, step

pytestmark = pytest.mark.crash

THINK = {"match": "^think", "replies": [{"text": "Thought.", "delay": 2.0}]}
DEAF = rule("ignore", step("wait_deaf"), {"text": "Ignored {order}."})


@pytest.fixture
async def house(furnish: Furnish, server: TelegramServer) -> House:
    return furnish(api_base=server.api_base, rules=[*RULES, THINK, DEAF], drain="1s")


def results(house: House) -> list[ToolResult]:
    return [result for message in house.log() for result in message.results]


async def running(house: House) -> None:
    await until(lambda: house.rows("SELECT id FROM sessions WHERE status = 'running'"), "the turn runs")


async def test_c027_an_update_that_comes_again_during_the_turn_and_after_a_kill_is_one_turn(
    house: House, chat: PrivateChat, server: TelegramServer
) -> None:
    first = await house.start()
    update = chat.say("think")
    await running(house)
    server.send_again(update)
    server.redeliver(update)
    await chat.confirmed()
    await first.kill()
    await house.start()
    server.send_again(update)
    server.redeliver(update)
    await chat.confirmed()
    await chat.words("Thought.")
    await house.rest()
    assert chat.texts() == ["Thought."]
    assert [message.role for message in house.log()] == ["user", "assistant"]
    assert house.value("SELECT count(*) FROM turns") == 1


async def test_c038_a_click_is_answered_while_its_turn_waits_and_a_message_was_typed(
    house: House, chat: PrivateChat, server: TelegramServer
) -> None:
    await house.start()
    chat.say("pay A1")
    card = await chat.card()
    chat.say("hello")
    await chat.words("Noted. Your message is kept")
    server.say(BOB, BOB, "hello")
    await server.wait_messages(BOB, 1)  # another chat is not held up
    began = time.monotonic()
    click = chat.click(card, APPROVE)
    await chat.answered(click)
    assert time.monotonic() - began < 2
    await chat.words("Paid A1.")
    await chat.words("Hello yourself.")
    await house.rest()
    assert [line["tool"] for line in house.ledger()] == ["note", "pay"]
    house.assert_valid()


async def test_c075_an_unfinished_turn_and_a_message_right_after_the_restart_do_not_mix(
    house: House, chat: PrivateChat
) -> None:
    first = await house.start(fault="assistant.after")
    chat.say("note A1")
    await first.died()
    chat.say("hello")
    await house.start()
    chat.say("hello again")
    await chat.words("Hello yourself.", 2)
    await house.rest()
    assert [text for text in chat.texts() if not text.startswith("Noted. ")] == [
        "Noted A1.",
        "Hello yourself.",
        "Hello yourself.",
    ]
    roles = [message.role for message in house.log()]
    assert roles == ["user", "assistant"] * 4
    assert house.value("SELECT count(*) FROM turns") == 3
    assert len(house.ledger("note")) == 1
    house.assert_valid()


@pytest.mark.parametrize(("word", "tool"), [("wait", "wait began"), ("ignore", "wait_deaf began")])
async def test_c076_stop_ends_a_long_tool_at_once_and_the_next_message_gets_its_turn(
    word: str, tool: str, house: House, chat: PrivateChat
) -> None:
    gateway = await house.start()
    chat.say(f"{word} A1")
    await until(lambda: house.ledger(tool), "the tool begins")
    began = time.monotonic()
    chat.say("/stop")
    await chat.words("Stopped")
    assert time.monotonic() - began < 2
    chat.say("hello")
    await chat.words("Hello yourself.")
    await house.rest()
    (result,) = results(house)
    assert result.is_error
    assert result.content == STOPPED
    house.assert_valid()
    assert await gateway.terminate(6) == 0  # a thread that listens to nobody holds nothing up


async def test_c076_stop_closes_what_waits_and_takes_the_buttons(house: House, chat: PrivateChat) -> None:
    await house.start()
    chat.say("pay A1")
    card = dict(await chat.card())
    await house.rest()
    chat.say("/stop")
    await chat.words("Stopped. 1 open request(s) were closed.")
    await chat.seen(lambda: [True] if not chat.cards(APPROVE) else [], "the card is redrawn")
    click = chat.server.press(card, f"v1:{subject(card)}:a", ADA)  # a client that still shows the button
    assert "Closed by /stop" in await chat.answered(click)
    chat.say("hello")
    await chat.words("Hello yourself.")
    await house.rest()
    assert house.ledger("pay") == []
    house.assert_valid()


async def test_c089_logs_at_debug_and_the_database_hold_no_token(
    furnish: Furnish, server: TelegramServer
) -> None:
    house = furnish(api_base=server.api_base, rules=RULES, web=True)
    chat = PrivateChat(server, house)
    config = house.folder / "config.toml"
    config.write_text(config.read_text() + 'token = "env:WEB"\n')
    secrets = [TOKEN, TOKEN.partition(":")[2], "web-token-0123456789"]
    gateway = await house.start(level="debug", env={"WEB": secrets[2]})
    async with await house.client(gateway) as client:
        assert (await client.get("/pending")).status_code == 401
        allowed = await client.get("/pending", headers={"Authorization": f"Bearer {secrets[2]}"})
        assert allowed.status_code == 200
    server.fail_next("sendMessage", 404, "Not Found")
    server.cut_next("sendMessage")
    server.cut_next("getUpdates")
    chat.say("hello")
    chat.say("")  # not for anybody: only the debug log speaks of it
    await gateway.logged(r"DEBUG channels\.telegram: .* ignored")
    await server.wait_calls("sendMessage", 2)
    chat.say("pay A1")
    chat.click(await chat.card(), APPROVE)
    await chat.words("Paid A1.")
    await house.rest()
    assert await gateway.terminate() == 0
    stored = b"".join(path.read_bytes() for path in house.folder.glob("gate.db*") if path.is_file())
    for secret in secrets:
        assert secret not in gateway.text
        assert secret.encode() not in stored
        assert not any(secret in text for text in chat.texts())
