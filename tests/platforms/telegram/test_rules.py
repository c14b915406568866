"""The test server refuses what the Bot API refuses; otherwise the channel's tests would prove nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import httpx
import pytest

from tests.platforms.telegram import TelegramServer
from tests.platforms.telegram.methods import CONFLICT, CONFLICT_WEBHOOK, NOT_MODIFIED, TOO_OLD

TOKEN = "777:secret"
ADA, GROUP = 42, -100
Ask = Callable[..., Coroutine[Any, Any, dict[str, Any]]]


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        server.bot(TOKEN)
        server.user(ADA, "Ada")
        server.group(GROUP, "Shop", [ADA])
        yield server


@pytest.fixture
async def ask(server: TelegramServer) -> AsyncIterator[Ask]:
    async with httpx.AsyncClient() as client:

        async def call(method: str, token: str = TOKEN, **values: Any) -> dict[str, Any]:
            body = {k: v if isinstance(v, str) else json.dumps(v) for k, v in values.items()}
            answer: dict[str, Any] = (
                await client.post(f"{server.api_base}/bot{token}/{method}", data=body)
            ).json()
            return answer

        yield call


def refusal(answer: dict[str, Any]) -> tuple[int, str]:
    assert answer["ok"] is False
    return answer["error_code"], answer["description"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"text": ""}, "message text is empty"),
        ({"text": " \n "}, "message text is empty"),
        ({"text": "x" * 4097}, "message is too long"),
        ({"text": "😀" * 2049}, "message is too long"),
        ({"text": "x", "entities": [{"type": "bold", "offset": 0, "length": 2}]}, "ends after the text"),
        ({"text": "😀x", "entities": [{"type": "bold", "offset": 1, "length": 1}]}, "surrogate pair"),
        ({"text": "x", "entities": [{"type": "shout", "offset": 0, "length": 1}]}, "unsupported type"),
        (
            {
                "text": "abcd",
                "entities": [
                    {"type": "bold", "offset": 0, "length": 3},
                    {"type": "italic", "offset": 2, "length": 2},
                ],
            },
            "overlaps",
        ),
        (
            {"text": "x" * 101, "entities": [{"type": "bold", "offset": n, "length": 1} for n in range(101)]},
            "too many",
        ),
        ({"text": "x", "chat_id": 5}, "chat not found"),
        ({"text": "x", "message_thread_id": 5}, "message thread not found"),
        ({"text": "x", "reply_parameters": {"message_id": 99}}, "message to be replied not found"),
        ({"text": "x", "reply_markup": "{"}, "can't parse"),
    ],
)
async def test_a_message_that_breaks_a_rule_is_refused(ask: Ask, values: dict[str, Any], words: str) -> None:
    code, description = refusal(await ask("sendMessage", **{"chat_id": ADA, **values}))
    assert code == 400
    assert words in description


@pytest.mark.parametrize(
    "rows",
    [
        [[{"text": "a", "callback_data": "x" * 65}]],
        [[{"text": "a", "callback_data": ""}]],
        [[{"text": "", "callback_data": "x"}]],
        [[{"text": "a"}]],
        [[{"text": "a", "callback_data": "x"}]] * 101,
        [[{"text": "a", "callback_data": "x"}] * 9],
        [[{"text": "a", "callback_data": "x", "style": "loud"}]],
    ],
)
async def test_a_keyboard_that_breaks_a_rule_is_refused(ask: Ask, rows: list[Any]) -> None:
    answer = await ask("sendMessage", chat_id=ADA, text="x", reply_markup={"inline_keyboard": rows})
    assert refusal(answer)[0] == 400


async def test_the_limits_themselves_are_allowed(ask: Ask) -> None:
    rows = [[{"text": "a", "callback_data": "x" * 64}] * 5] * 20
    entities = [{"type": "bold", "offset": n, "length": 1} for n in range(100)]
    answer = await ask(
        "sendMessage", chat_id=ADA, text="x" * 4096, entities=entities, reply_markup={"inline_keyboard": rows}
    )
    assert answer["ok"]


async def test_an_edit_must_change_something_and_be_of_an_own_message(
    server: TelegramServer, ask: Ask
) -> None:
    sent = (await ask("sendMessage", chat_id=ADA, text="one"))["result"]["message_id"]
    theirs = server.say(ADA, ADA, "mine")["message"]["message_id"]
    same = await ask("editMessageText", chat_id=ADA, message_id=sent, text="one")
    assert refusal(same) == (400, f"Bad Request: {NOT_MODIFIED}")
    missing = await ask("editMessageText", chat_id=ADA, message_id=99, text="two")
    assert refusal(missing) == (400, "Bad Request: message to edit not found")
    foreign = await ask("editMessageText", chat_id=ADA, message_id=theirs, text="two")
    assert refusal(foreign) == (400, "Bad Request: message can't be edited")
    assert (await ask("editMessageText", chat_id=ADA, message_id=sent, text="two"))["ok"]


async def test_a_press_is_answered_once_in_time_and_in_200_characters(
    server: TelegramServer, ask: Ask
) -> None:
    keyboard = {"inline_keyboard": [[{"text": "Go", "callback_data": "d"}]]}
    card = (await ask("sendMessage", chat_id=ADA, text="x", reply_markup=keyboard))["result"]
    click = server.click(card, "Go", ADA)
    long = await ask("answerCallbackQuery", callback_query_id=click.id, text="x" * 201)
    assert refusal(long)[0] == 400
    assert (await ask("answerCallbackQuery", callback_query_id=click.id, text="x" * 200))["ok"]
    late = server.click(card, "d", ADA)
    late.asked_at -= 16
    for query in (click.id, late.id, "12345"):
        answer = await ask("answerCallbackQuery", callback_query_id=query)
        assert refusal(answer) == (400, f"Bad Request: {TOO_OLD}")


async def test_updates_stay_until_their_offset_is_passed(server: TelegramServer, ask: Ask) -> None:
    ids = [server.say(ADA, ADA, str(n))["update_id"] for n in range(5)]

    async def given(**values: Any) -> list[int]:
        return [update["update_id"] for update in (await ask("getUpdates", **values))["result"]]

    assert await given() == ids
    assert await given(limit=2) == ids[:2]
    assert await given(offset=ids[2]) == ids[2:]
    assert await given() == ids[2:]
    assert await given(offset=-1) == ids[-1:]
    assert await given() == ids[-1:]


async def test_the_newer_poll_ends_the_older_one(server: TelegramServer, ask: Ask) -> None:
    older = asyncio.create_task(ask("getUpdates", timeout=50))
    await server.wait_for(lambda: server.bots[TOKEN].poll)
    newer = asyncio.create_task(ask("getUpdates", timeout=50))
    assert refusal(await older) == (409, CONFLICT)
    update = server.say(ADA, ADA, "hi")
    assert (await newer)["result"] == [update]


async def test_a_poll_beside_a_webhook_is_refused(ask: Ask) -> None:
    assert refusal(await ask("setWebhook", url="http://x.example"))[0] == 400
    assert refusal(await ask("setWebhook", url="https://x.example:1234"))[0] == 400
    assert refusal(await ask("setWebhook", url="https://x.example", secret_token="no spaces"))[0] == 400
    assert (await ask("setWebhook", url="https://x.example:8443/h", secret_token="a-b_C"))["ok"]
    assert (await ask("getWebhookInfo"))["result"]["url"] == "https://x.example:8443/h"
    assert refusal(await ask("getUpdates")) == (409, CONFLICT_WEBHOOK)
    assert (await ask("deleteWebhook"))["ok"]
    assert (await ask("getUpdates"))["result"] == []


async def test_only_the_kinds_that_were_asked_for_are_delivered(server: TelegramServer, ask: Ask) -> None:
    await ask("getUpdates", allowed_updates=["callback_query"])
    server.say(ADA, ADA, "hi")
    assert (await ask("getUpdates"))["result"] == []


async def test_trouble_comes_as_the_platform_words_it(server: TelegramServer, ask: Ask) -> None:
    server.flood(ADA, 7, times=1)
    busy = await ask("sendMessage", chat_id=ADA, text="x")
    assert refusal(busy) == (429, "Too Many Requests: retry after 7")
    assert busy["parameters"] == {"retry_after": 7}
    server.block(ADA)
    blocked = await ask("sendMessage", chat_id=ADA, text="x")
    assert refusal(blocked) == (403, "Forbidden: bot was blocked by the user")
    server.migrate(GROUP, -200)
    moved = await ask("sendMessage", chat_id=GROUP, text="x")
    assert moved["parameters"] == {"migrate_to_chat_id": -200}
    server.kick(-200)
    assert refusal(await ask("sendMessage", chat_id=-200, text="x"))[0] == 403
    server.user(43, "Bob", started=False)
    assert refusal(await ask("sendMessage", chat_id=43, text="x"))[0] == 403


async def test_rates_are_enforced_on_request(server: TelegramServer, ask: Ask) -> None:
    server.enforce_rates = True
    assert (await ask("sendMessage", chat_id=ADA, text="x"))["ok"]
    assert refusal(await ask("sendMessage", chat_id=ADA, text="x"))[0] == 429
    answers = [await ask("sendMessage", chat_id=GROUP, text="x") for _ in range(21)]
    assert [answer["ok"] for answer in answers] == [True] * 20 + [False]


async def test_an_unknown_token_method_or_parameter_is_noticed(server: TelegramServer, ask: Ask) -> None:
    assert refusal(await ask("getMe", token="777:other")) == (401, "Unauthorized")
    assert refusal(await ask("getMe", token="nonsense")) == (404, "Not Found")
    assert refusal(await ask("makeCoffee")) == (404, "Not Found")
    await ask("sendMessage", chat_id=ADA, text="x", parse_mode="HTML")
    with pytest.raises(
        AssertionError, match=r"unknown method makeCoffee\nsendMessage has no parameter parse_mode"
    ):
        server.check()


async def test_a_private_group_shows_a_bot_only_what_is_meant_for_it(
    server: TelegramServer, ask: Ask
) -> None:
    server.bots[TOKEN].privacy = True
    mine = (await ask("sendMessage", chat_id=GROUP, text="hello"))["result"]["message_id"]
    server.say(GROUP, ADA, "not for you")
    for text, reply in (("/help", None), ("@gate_bot hi", None), ("/x@other_bot", None), ("sure", mine)):
        server.say(GROUP, ADA, text, reply_to=reply)
    updates = (await ask("getUpdates"))["result"]
    assert [update["message"]["text"] for update in updates] == ["/help", "@gate_bot hi", "sure"]


async def test_drafts_are_for_private_chats_and_have_a_number(ask: Ask) -> None:
    assert (await ask("sendMessageDraft", chat_id=ADA, draft_id=1, text="x"))["ok"]
    assert refusal(await ask("sendMessageDraft", chat_id=ADA, draft_id=0, text="x"))[0] == 400
    assert refusal(await ask("sendMessageDraft", chat_id=GROUP, draft_id=1, text="x"))[0] == 400


async def test_a_name_outside_code_notifies(server: TelegramServer, ask: Ask) -> None:
    code = [{"type": "code", "offset": 0, "length": 6}]
    await ask("sendMessage", chat_id=ADA, text="@somebody @another", entities=code)
    assert server.paged(ADA) == ["@another"]


async def test_connections_break_on_request(server: TelegramServer, ask: Ask) -> None:
    server.cut_next("sendMessage", "after")
    with pytest.raises(httpx.TransportError):
        await ask("sendMessage", chat_id=ADA, text="kept")
    server.cut_next("sendMessage", "before")
    with pytest.raises(httpx.TransportError):
        await ask("sendMessage", chat_id=ADA, text="lost")
    await server.down()
    with pytest.raises(httpx.TransportError):
        await ask("getMe")
    await server.up()
    assert (await ask("getMe"))["ok"]
    assert [message["text"] for message in server.from_bot(ADA)] == ["kept"]


async def test_calls_wait_until_they_are_let_go(server: TelegramServer, ask: Ask) -> None:
    async with server.held("sendMessage") as held:
        call = asyncio.create_task(ask("sendMessage", chat_id=ADA, text="x"))
        await server.wait_for(lambda: held.waiting)
        assert server.from_bot(ADA) == []
        held.release()
        assert (await call)["ok"]
