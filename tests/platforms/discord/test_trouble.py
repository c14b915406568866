"""Rates, failures, and a network that comes and goes."""

from __future__ import annotations

import asyncio

import aiohttp
import discord
import pytest

from tests.platforms.discord import ids, limits
from tests.platforms.discord.asking import find
from tests.platforms.discord.bots import Bot, Raw
from tests.platforms.discord.errors import Refused
from tests.platforms.discord.rates import Rates
from tests.platforms.discord.server import DiscordServer

MESSAGES = f"/channels/{ids.GENERAL}/messages"


async def test_rates_are_told_in_headers_and_kept_when_enforced(raw: Raw) -> None:
    await raw("POST", MESSAGES, {"content": "x"})
    assert int(raw.headers["X-RateLimit-Remaining"]) > 100
    raw.server.rates.enforced = True
    for left in (4, 3, 2, 1, 0):
        await raw("POST", MESSAGES, {"content": "x"})
        assert raw.headers["X-RateLimit-Remaining"] == str(left)
    status, answer = await raw("POST", MESSAGES, {"content": "x"})
    assert (status, answer["global"]) == (429, False)
    assert 0 < answer["retry_after"] <= 5
    assert raw.headers["Via"]
    assert (await raw("POST", f"/channels/{ids.APPROVALS}/messages", {"content": "x"}))[0] == 200
    raw.server.advance(5)
    assert (await raw("POST", MESSAGES, {"content": "x"}))[0] == 200


def test_the_global_rate_holds_across_routes_but_not_for_interactions() -> None:
    rates = Rates()
    rates.enforced = True
    bot, guild, answer = (
        find(*call)
        for call in (("GET", "/users/@me"), ("GET", "/guilds/1"), ("POST", "/interactions/1/t/callback"))
    )
    assert bot and guild and answer
    for number in range(limits.GLOBAL_RATE):
        rates.take(*(bot if number % 2 else guild), now=100.0)
    with pytest.raises(Refused) as caught:
        rates.take(*bot, now=100.5)
    assert (caught.value.status, caught.value.body["global"]) == (429, True)
    assert caught.value.headers["X-RateLimit-Global"] == "true"
    rates.take(*answer, now=100.5)
    rates.take(*bot, now=101.0)


async def test_discord_py_waits_for_a_429_and_takes_one_without_via_for_a_ban(
    bot: Bot, server: DiscordServer
) -> None:
    server.fail_next("POST /channels/*/messages", 429, retry_after=0.01)
    await bot.place(ids.GENERAL).send("patient")
    assert [call.status for call in server.called("POST /channels/*/messages")] == [429, 200]
    server.fail_next("POST /channels/*/messages", 429, via=False)
    with pytest.raises(discord.HTTPException) as caught:
        await bot.place(ids.GENERAL).send("banned")
    assert caught.value.status == 429


async def test_calls_can_fail_before_and_after_their_effect(bot: Bot, raw: Raw) -> None:
    server, place = raw.server, bot.place(ids.GENERAL)
    server.fail_next("POST /channels/*/messages", 403, code=50013)
    with pytest.raises(discord.Forbidden):
        await place.send("refused")
    for words, after in (("cut before", False), ("cut after", True)):
        server.fail_next("POST /channels/*/messages", "drop", after=after)
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await place.send(words)
    assert [m["content"] for m in server.messages(ids.GENERAL)] == ["cut after"]
    server.fail_next("GET /users/@me", "html")
    async with raw.session.get(
        f"{server.route_base}/users/@me", headers={"Authorization": f"Bot {server.token}"}
    ) as answer:
        assert (answer.status, answer.content_type) == (502, "text/html")


async def test_private_words_in_a_public_message_fail_the_test(raw: Raw) -> None:
    await raw("POST", MESSAGES, {"content": "psst", "flags": limits.EPHEMERAL})
    with pytest.raises(AssertionError, match="one person's eyes"):
        raw.server.check()


async def test_typing_shows_for_ten_seconds_or_until_the_bot_writes(raw: Raw) -> None:
    await raw("POST", f"/channels/{ids.GENERAL}/typing")
    assert raw.server.is_typing(ids.GENERAL)
    raw.server.advance(9)
    await raw("POST", MESSAGES, {"content": "here"})
    assert not raw.server.is_typing(ids.GENERAL)
    await raw("POST", f"/channels/{ids.APPROVALS}/typing")
    raw.server.advance(10)
    assert not raw.server.is_typing(ids.APPROVALS)


async def test_held_calls_wait_until_they_are_let_go(raw: Raw) -> None:
    async with raw.server.held("POST /channels/*/messages") as held:
        call = asyncio.create_task(raw("POST", MESSAGES, {"content": "later"}))
        await held.until(1)
        assert raw.server.messages(ids.GENERAL) == []
    assert (await call)[0] == 200


async def test_the_server_can_be_away_and_come_back_on_the_same_port(raw: Raw) -> None:
    await raw.server.down()
    with pytest.raises(OSError):
        await raw("GET", "/users/@me")
    await raw.server.up()
    assert (await raw("GET", "/users/@me"))[0] == 200
