"""The gateway with the real client: sessions, replays, closings, intents, shards."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import discord
import pytest

from tests.platforms.discord import ids
from tests.platforms.discord.bots import Bot, Raw, running
from tests.platforms.discord.client import usual_intents
from tests.platforms.discord.server import DiscordServer


class ShardedBot(discord.AutoShardedClient):
    """Does not wait for five seconds between its shards."""

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        pass


async def test_a_bot_that_connects_knows_its_guilds_and_hears_people(bot: Bot, server: DiscordServer) -> None:
    assert {str(guild.id) for guild in bot.guilds} == {ids.G1, ids.G2}
    assert bot.application_id == int(ids.APP)
    assert bot.user is not None
    assert bot.user.id == int(ids.BOT)
    server.say(ids.ADA, ids.GENERAL, f"<@{ids.BOT}> <@&{ids.BOT_ROLE}>", files=[("a.txt", b"x")])
    server.say(ids.BOB, ids.BOB, "direct")
    await bot.heard(2)
    public, direct = bot.seen
    assert bot.user in public.mentions
    assert [str(role.id) for role in public.role_mentions] == [ids.BOT_ROLE]
    assert (public.attachments[0].filename, public.guild is not None) == ("a.txt", True)
    assert (direct.guild, direct.author.id) == (None, int(ids.BOB))


async def test_what_happened_while_the_line_was_broken_is_replayed_on_resume(
    bot: Bot, server: DiscordServer
) -> None:
    server.say(ids.ADA, ids.GENERAL, "before")
    await bot.heard(1)
    server.gateway_open = False
    server.drop()
    await server.wait_for(lambda: not server.connections)
    server.say(ids.ADA, ids.GENERAL, "meanwhile")
    server.gateway_open = True
    await server.wait_ready()
    assert await bot.heard(2) == ["before", "meanwhile"]
    assert [outcome for _, _, outcome in server.resumes] == ["resumed"]
    assert len(server.identifies) == 1


async def test_op_7_makes_the_client_come_back_and_resume(bot: Bot, server: DiscordServer) -> None:
    await server.reconnect()
    await server.wait_for(lambda: server.resumes)
    await server.wait_ready()
    server.say(ids.ADA, ids.GENERAL, "again")
    assert await bot.heard(1) == ["again"]


async def test_op_9_ends_the_session_or_has_it_resumed(bot: Bot, server: DiscordServer) -> None:
    await server.invalidate(resumable=True)
    await server.wait_for(lambda: len(server.resumes) == 1)
    await server.wait_ready()
    await server.invalidate()
    await server.wait_for(lambda: len(server.identifies) == 2)
    await server.wait_ready()
    assert len(server.resumes) == 1


async def test_a_forgotten_session_is_refused_and_begun_anew_without_a_replay(
    bot: Bot, server: DiscordServer
) -> None:
    server.gateway_open = False
    server.forget_sessions()
    await server.wait_for(lambda: not server.connections)
    server.say(ids.ADA, ids.GENERAL, "lost")
    server.gateway_open = True
    await server.wait_ready()
    server.say(ids.ADA, ids.GENERAL, "heard")
    assert await bot.heard(1) == ["heard"]
    assert [outcome for _, _, outcome in server.resumes] == ["invalid"]
    assert len(server.identifies) == 2


async def test_a_session_is_forgotten_after_a_while(bot: Bot, server: DiscordServer) -> None:
    server.gateway_open = False
    server.drop()
    await server.wait_for(lambda: not server.connections)
    server.advance(301)
    server.gateway_open = True
    await server.wait_for(lambda: len(server.identifies) == 2)
    assert server.resumes[0][2] == "invalid"


@pytest.mark.parametrize(("code", "resumes"), [(4000, True), (4009, False), (4007, False), (1001, True)])
async def test_the_client_comes_back_after_these_closings(
    bot: Bot, server: DiscordServer, code: int, resumes: bool
) -> None:
    await server.close(code)
    await server.wait_for(lambda: server.resumes)
    assert (server.resumes[0][2] == "resumed") is resumes
    await server.wait_ready()


async def test_a_zombie_is_noticed_by_missing_heartbeat_acknowledgements(server: DiscordServer) -> None:
    server.heartbeat_interval = 100
    async with running(server, Bot(heartbeat_timeout=0.5)):
        server.freeze()
        await server.wait_for(lambda: server.resumes)
        assert server.resumes[0][2] == "resumed"


async def test_a_client_that_sends_no_heartbeats_is_closed(server: DiscordServer, raw: Raw) -> None:
    server.heartbeat_interval = 10
    async with raw.session.ws_connect(f"{server.gateway_url}?v=10&encoding=json") as ws:
        assert (await ws.receive_json())["op"] == 10
        message = await ws.receive(timeout=10)
        assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 4009)


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (["no json"], 4002),
        ([{"op": 99}], 4003),
        ([{"op": 3, "d": {}}], 4003),
        ([{"op": 2, "d": {"token": "wrong", "intents": 1}}], 4004),
        ([{"op": 2, "d": {"token": None, "intents": 1 << 22}}], 4013),
        ([{"op": 2, "d": {"token": None, "intents": 1 << 8}}], 4014),
        ([{"op": 2, "d": {"token": None, "intents": 1, "shard": [2, 2]}}], 4010),
        ([{"op": 2, "d": {"token": None, "intents": 1}}] * 2, 4005),
        ([{"op": 1, "d": None}] * 121, 4008),
        ([{"op": 1, "d": "x" * 5000}], 4002),
    ],
)
async def test_a_client_that_breaks_a_rule_is_closed_with_its_code(
    server: DiscordServer, raw: Raw, frames: list[Any], code: int
) -> None:
    async with raw.session.ws_connect(f"{server.gateway_url}?v=10&encoding=json") as ws:
        for frame in frames:
            if isinstance(frame, dict) and isinstance(frame.get("d"), dict):
                token = frame["d"].get("token") or server.token
                frame = frame | {"d": frame["d"] | {"token": token}}
            await ws.send_str(frame if isinstance(frame, str) else json.dumps(frame))
        async with asyncio.timeout(10):
            while (message := await ws.receive()).type is aiohttp.WSMsgType.TEXT:
                pass
        assert message.data == code


async def test_an_intent_that_was_not_granted_ends_the_client(server: DiscordServer) -> None:
    server.message_content = False
    async with Bot() as bot:
        with pytest.raises(discord.PrivilegedIntentsRequired):
            await bot.start(server.token)


async def test_without_the_content_intent_only_what_is_meant_for_the_bot_has_words(
    server: DiscordServer, raw: Raw
) -> None:
    server.message_content = False
    intents = usual_intents()
    intents.message_content = False
    async with running(server, Bot(intents)) as bot:
        server.say(ids.ADA, ids.GENERAL, "secret", files=[("a.txt", b"x")])
        server.say(ids.ADA, ids.GENERAL, f"<@{ids.BOT}> open")
        server.say(ids.ADA, ids.ADA, "direct")
        assert await bot.heard(3) == ["", f"<@{ids.BOT}> open", "direct"]
        assert bot.seen[0].attachments == []
    _, listed = await raw("GET", f"/channels/{ids.GENERAL}/messages")
    assert [message["content"] for message in listed] == [f"<@{ids.BOT}> open", ""]


async def test_the_bot_hears_nothing_from_where_it_sees_nothing(bot: Bot, server: DiscordServer) -> None:
    server.deny_bot(ids.GENERAL, "VIEW_CHANNEL")
    server.say(ids.ADA, ids.GENERAL, "hidden")
    secret = server.thread(ids.ADA, ids.APPROVALS, "private", private=True)
    server.say(ids.ADA, ids.APPROVALS, "seen")
    assert await bot.heard(1) == ["seen"]
    server.take_from_bot("MANAGE_THREADS")
    server.say(ids.ADA, secret, "not for the bot")
    server.join(ids.BOT, secret)
    server.say(ids.ADA, secret, "for the bot")
    assert await bot.heard(2) == ["seen", "for the bot"]


async def test_edits_deletions_and_threads_are_told(bot: Bot, server: DiscordServer) -> None:
    first, second, third = (server.say(ids.ADA, ids.GENERAL, words) for words in "abc")
    server.edit(ids.GENERAL, first["id"], "A")
    server.touch(ids.GENERAL, second["id"])
    server.delete(ids.GENERAL, first["id"])
    server.delete(ids.GENERAL, second["id"], third["id"])
    thread = server.thread(ids.ADA, ids.GENERAL, "t")
    server.archive(thread, locked=True)
    server.reopen(thread)
    server.delete_channel(thread)
    server.bot_says(ids.GENERAL, "I am a bot")
    server.webhook_says(ids.GENERAL, "built")
    await bot.heard(6)
    edited, touched = bot.told("MESSAGE_UPDATE")
    assert edited["edited_timestamp"]
    assert touched["edited_timestamp"] is None
    assert [event["id"] for event in bot.told("MESSAGE_DELETE")] == [first["id"]]
    assert [event["ids"] for event in bot.told("MESSAGE_DELETE_BULK")] == [[second["id"], third["id"]]]
    states = [event["thread_metadata"]["locked"] for event in bot.told("THREAD_UPDATE")]
    assert states == [True, False]
    assert [event["id"] for event in bot.told("THREAD_DELETE")] == [thread]
    assert [message.author.bot for message in bot.seen[4:]] == [True, True]
    assert bot.seen[5].webhook_id == int(ids.WEBHOOK)


async def test_reactions_and_typing_are_told_both_ways(bot: Bot, server: DiscordServer) -> None:
    said = server.say(ids.ADA, ids.GENERAL, "look")
    place = bot.place(ids.GENERAL)
    message = await place.fetch_message(int(said["id"]))
    await message.add_reaction("👀")
    assert [(r["emoji"]["name"], r["me"]) for r in said["reactions"]] == [("👀", True)]
    server.react(ids.ADA, ids.GENERAL, said["id"], "👀")
    assert said["reactions"][0]["count"] == 2
    await message.remove_reaction("👀", message.guild.me if message.guild else message.author)
    assert [(r["count"], r["me"]) for r in said["reactions"]] == [(1, False)]
    await place.typing()
    assert server.is_typing(ids.GENERAL)
    server.say(ids.ADA, ids.GENERAL, "done")
    await bot.heard(2)
    assert [event["user_id"] for event in bot.told("MESSAGE_REACTION_ADD")] == []  # no such intent


async def test_guilds_come_and_go(bot: Bot, server: DiscordServer) -> None:
    server.outage(ids.G2)
    server.outage(ids.G2, over=True)
    server.kick(ids.BOT, ids.G2)
    server.say(ids.ADA, ids.ELSEWHERE, "unheard")
    server.invite(ids.G2)
    server.say(ids.ADA, ids.ELSEWHERE, "heard")
    assert await bot.heard(1) == ["heard"]
    assert [event.get("unavailable") for event in bot.told("GUILD_DELETE")] == [True, None]


async def test_shards_hear_their_own_guilds_and_the_first_one_the_direct_messages(
    server: DiscordServer,
) -> None:
    bots = [Bot(shard_id=shard, shard_count=2) for shard in (0, 1)]
    async with running(server, bots[0]), running(server, bots[1], sessions=2):
        assert [[str(g.id) for g in bot.guilds] for bot in bots] == [[ids.G1], [ids.G2]]
        server.say(ids.ADA, ids.ELSEWHERE, "two")
        server.say(ids.ADA, ids.GENERAL, "one")
        server.say(ids.ADA, ids.ADA, "direct")
        assert await bots[0].heard(2) == ["one", "direct"]
        assert await bots[1].heard(1) == ["two"]
    assert [identify["shard"] for identify in server.identifies] == [[0, 2], [1, 2]]


async def test_an_automatically_sharded_client_asks_how_many_shards_there_are(server: DiscordServer) -> None:
    server.shards = 2
    bot = ShardedBot(intents=usual_intents(), guild_ready_timeout=0.05)
    async with running(server, bot, sessions=2):
        assert {str(guild.id): guild.shard_id for guild in bot.guilds} == {ids.G1: 0, ids.G2: 1}
        server.drop(server.live()[1])
        await server.wait_for(lambda: server.resumes)
        await server.wait_ready(2)
    assert server.called("GET /gateway/bot")


async def test_identifying_too_often_ends_in_op_9_when_that_is_enforced(
    server: DiscordServer, raw: Raw
) -> None:
    server.enforce_identify = True
    identify = {"op": 2, "d": {"token": server.token, "intents": 1}}
    operations = []
    for wait in (0, 0, 5):
        server.advance(wait)
        async with raw.session.ws_connect(f"{server.gateway_url}?v=10&encoding=json") as ws:
            await ws.send_json(identify)
            operations += [(await ws.receive_json())["op"] for _ in range(2)]
    assert operations == [10, 0, 10, 9, 10, 0]


async def test_a_bot_in_too_many_guilds_has_to_shard(server: DiscordServer) -> None:
    server.sharding_required = True
    async with Bot() as bot:
        with pytest.raises(discord.ConnectionClosed) as caught:
            await bot.start(server.token)
    assert caught.value.code == 4011


async def test_members_are_told_when_they_are_asked_for(server: DiscordServer) -> None:
    intents = usual_intents()
    intents.members = True
    async with running(server, Bot(intents)) as bot:
        guild = bot.get_guild(int(ids.G1))
        assert guild is not None
        found = await guild.query_members(user_ids=[int(ids.BOB), int(ids.XENA)])
        assert [(member.name, [str(role.id) for role in member.roles[1:]]) for member in found] == [
            ("bob", [ids.OPS])
        ]
        server.grant(ids.BOB, ids.ADMINS)
        assert server.may(ids.BOB, server.channels[ids.PRIVATE]) == (1 << 53) - 1
