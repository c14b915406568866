"""The connection through the real library: what it asks for, what it survives, what it catches up with."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from channels.base import ChannelDown
from channels.discord.adapter import DiscordChannel
from channels.discord.errors import Refused, TokenRefused
from tests.contracts.harness import Inbox
from tests.platforms.discord.hasty import quick, running
from tests.platforms.discord.ids import ADA, APP, BOT, ELSEWHERE, FORUM, G1, G2, GENERAL, XENA
from tests.platforms.discord.intents import CONTENT
from tests.platforms.discord.server import DiscordServer

ME = f"<@{BOT}>"


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as server:
        yield server
        server.check()


async def heard(inbox: Inbox, count: int) -> list[str]:
    await inbox.wait_for(lambda: len(inbox.messages) >= count)
    return [message.text for message in inbox.messages]


@pytest.mark.parametrize("token", ["", "Bot abc", "0123456789abcdef0123456789abcdef", "a.b.c"])
def test_what_cannot_be_a_token_is_refused_at_once_and_never_shown(token: str) -> None:
    with pytest.raises(TokenRefused) as caught:
        DiscordChannel(token)
    assert not token or token not in str(caught.value)


async def test_nothing_privileged_is_asked_for_but_message_content(server: DiscordServer) -> None:
    async with running(server, Inbox()) as channel:
        assert channel.state == "up"
    [identified] = server.identifies
    assert identified["intents"] == 1 | 1 << 9 | 1 << 12 | 1 << 15


@pytest.mark.parametrize("shards", [None, 1])
async def test_without_message_content_it_goes_on_and_says_what_to_switch_on(
    server: DiscordServer, caplog: pytest.LogCaptureFixture, shards: int | None
) -> None:
    server.message_content = False
    inbox = Inbox()
    async with running(server, inbox, shards=shards) as channel:
        assert channel.state == "up"
        server.say(ADA, GENERAL, "nothing of mine")
        server.say(ADA, GENERAL, f"{ME} hello")
        assert await heard(inbox, 1) == ["hello"]
    assert [one["intents"] & CONTENT for one in server.identifies] == [CONTENT, 0]
    assert caplog.text.count("Message Content Intent") == 1


async def test_a_wrong_token_ends_the_start(server: DiscordServer) -> None:
    channel = quick(server, token=f"{server.token}x")
    with pytest.raises(TokenRefused):
        await channel.start(Inbox())
    assert channel.state == "refused"


async def test_a_token_that_is_reset_meanwhile_ends_this_channel(server: DiscordServer) -> None:
    over = asyncio.Event()
    async with running(
        server, Inbox(), on_state=lambda state: over.set() if state == "refused" else None
    ) as channel:
        good, server.token = server.token, "another"
        await server.close(4004)
        async with asyncio.timeout(10):
            await over.wait()
        assert isinstance(channel.refused, Refused)
        server.token = good
    assert channel.state == "refused"


async def test_a_platform_that_is_down_is_tried_again_in_the_background(server: DiscordServer) -> None:
    await server.down()
    async with running(server, Inbox()) as channel:
        assert channel.state == "down"
        await server.up()
        await server.wait_ready()


async def test_commands_are_registered_where_they_differ_only(server: DiscordServer) -> None:
    async with running(server, Inbox()):
        assert len(server.called(f"PUT /applications/{APP}/commands")) == 1
    async with running(server, Inbox()):
        assert len(server.called(f"PUT /applications/{APP}/commands")) == 1
    async with running(server, Inbox(), agents=("clerk", "cook")):
        assert len(server.called(f"PUT /applications/{APP}/commands")) == 2


async def test_in_development_commands_are_registered_in_one_guild(server: DiscordServer) -> None:
    async with running(server, Inbox(), guilds=(G1,)):
        assert server.guilds[G1].commands
        assert not server.commands


@pytest.mark.parametrize("shards", [2, "auto"])
async def test_with_shards_all_guilds_are_heard(server: DiscordServer, shards: int | str) -> None:
    server.shards = 2
    inbox = Inbox()
    async with running(server, inbox, shards=shards) as channel:
        assert channel.state == "up"
        assert len(server.live()) == 2
        server.say(ADA, GENERAL, f"{ME} one")
        server.say(XENA, ELSEWHERE, f"{ME} two")
        assert sorted(await heard(inbox, 2)) == ["one", "two"]
        assert {message.thread.workspace for message in inbox.messages} == {G1, G2}


async def test_a_dispatch_over_which_the_library_stumbles_ends_nothing(server: DiscordServer) -> None:
    inbox = Inbox()
    async with running(server, inbox) as channel:
        for event in (
            "MESSAGE_CREATE",
            "INTERACTION_CREATE",
            "GUILD_CREATE",
            "CHANNEL_UPDATE",
            "NEWS_FROM_MARS",
        ):
            server.emit(event, {"id": "1"})
        server.say(ADA, ADA, "still there?")
        assert await heard(inbox, 1) == ["still there?"]
        assert channel.unknown
        assert len(server.identifies) == 1


async def test_a_resumed_connection_misses_nothing_and_asks_for_nothing(server: DiscordServer) -> None:
    inbox = Inbox()
    async with running(server, inbox):
        server.say(ADA, ADA, "before")
        await heard(inbox, 1)
        server.drop()
        server.say(ADA, ADA, "meanwhile")
        assert await heard(inbox, 2) == ["before", "meanwhile"]
        assert server.called("GET /channels/*/messages") == []
        assert [how for _, _, how in server.resumes] == ["resumed"]


async def test_what_came_while_nobody_ran_is_caught_up_with_in_order(server: DiscordServer) -> None:
    inbox = Inbox()
    async with running(server, inbox):
        server.say(ADA, GENERAL, f"{ME} first")
        server.say(ADA, ADA, "private first")
        await heard(inbox, 2)
    server.say(ADA, GENERAL, f"{ME} second")
    server.say(ADA, GENERAL, "of no concern")
    server.say(ADA, GENERAL, f"{ME} third")
    server.say(ADA, ADA, "private second")
    post = server.post(ADA, FORUM, "Title", f"{ME} a post")
    async with running(server, inbox):
        server.say(ADA, GENERAL, f"{ME} live")
        await inbox.wait_for(lambda: "live" in [m.text for m in inbox.messages])
        await inbox.wait_for(lambda: {"private second", "a post"} <= {m.text for m in inbox.messages})
    in_general = [m.text for m in inbox.messages if m.thread.conversation == GENERAL]
    assert list(dict.fromkeys(in_general)) == ["first", "second", "third", "live"]
    [posted] = [m for m in inbox.messages if m.text == "a post"]
    assert (posted.thread.conversation, posted.thread.thread) == (FORUM, post)


async def test_a_session_that_could_not_be_resumed_is_caught_up_with(server: DiscordServer) -> None:
    inbox = Inbox()
    async with running(server, inbox):
        server.say(ADA, GENERAL, f"{ME} first")
        await heard(inbox, 1)
        server.gateway_open = False
        server.forget_sessions()
        server.say(ADA, GENERAL, f"{ME} second")
        server.gateway_open = True
        assert await heard(inbox, 2) == ["first", "second"]


async def test_after_a_fresh_installation_nothing_old_is_read(server: DiscordServer) -> None:
    server.say(ADA, GENERAL, f"{ME} long ago")
    inbox = Inbox()
    async with running(server, inbox):
        server.say(ADA, GENERAL, f"{ME} now")
        assert await heard(inbox, 1) == ["now"]
    assert server.called("GET /channels/*/messages") == []


async def test_stopping_says_goodbye(server: DiscordServer) -> None:
    async with running(server, Inbox()) as channel:
        await server.wait_ready()
    assert server.live() == []
    assert channel.state == "stopped"
    with contextlib.suppress(ChannelDown):
        await channel.stop()
