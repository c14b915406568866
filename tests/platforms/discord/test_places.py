"""Threads, forums and commands, as Discord keeps them."""

from __future__ import annotations

from typing import Any

import discord
import pytest

from tests.platforms.discord import ids
from tests.platforms.discord.bots import Bot, Raw
from tests.platforms.discord.limits import Json
from tests.platforms.discord.server import DiscordServer

# ---- threads


async def test_a_thread_on_a_message_has_its_id_and_there_is_only_one(
    bot: Bot, server: DiscordServer
) -> None:
    said = server.say(ids.ADA, ids.GENERAL, "start here")
    message = await bot.place(ids.GENERAL).fetch_message(int(said["id"]))
    thread = await message.create_thread(name="Work")
    assert str(thread.id) == said["id"] == server.thread_of(ids.GENERAL, said["id"])
    assert thread.owner_id == int(ids.BOT)
    with pytest.raises(discord.HTTPException) as caught:
        await message.create_thread(name="Again")
    assert caught.value.code == 160004
    [starter] = server.messages(said["id"])
    assert (starter["type"], starter["referenced_message"]["content"]) == (21, "start here")
    assert [t["name"] for t in bot.told("THREAD_CREATE")] == ["Work"]


async def test_a_thread_without_a_message_is_announced_in_its_channel(
    bot: Bot, server: DiscordServer
) -> None:
    thread = server.thread(ids.ADA, ids.GENERAL, "Plans")
    [notice] = server.messages(ids.GENERAL)
    assert (notice["type"], notice["message_reference"]["channel_id"]) == (18, thread)
    made = await bot.place(ids.GENERAL).create_thread(name="Mine", type=discord.ChannelType.public_thread)
    assert server.channels[str(made.id)].owner == ids.BOT
    assert server.from_bot(ids.GENERAL) == []


async def test_archived_and_locked_threads_are_told_apart(raw: Raw) -> None:
    server = raw.server
    thread = server.thread(ids.ADA, ids.GENERAL, "t")
    path = f"/channels/{thread}/messages"
    _, message = await raw("POST", path, {"content": "x"})
    server.archive(thread)
    edit = f"{path}/{message['id']}"
    assert await raw.refused("PATCH", edit, {"content": "y"}) == (400, 50083)
    assert (await raw("POST", path, {"content": "opens it"}))[0] == 200
    assert not server.channels[thread].archived
    server.take_from_bot("MANAGE_THREADS")
    server.archive(thread, locked=True)
    assert await raw.refused("POST", path, {"content": "z"}) == (400, 160005)
    opened = {"archived": False}
    assert await raw.refused("PATCH", f"/channels/{thread}", opened) == (403, 50013)
    server.reopen(thread)
    assert (await raw("PATCH", edit, {"content": "y"}))[0] == 200


async def test_forum_posts_begin_with_a_message_of_the_same_id(bot: Bot, server: DiscordServer) -> None:
    theirs = server.post(ids.ADA, ids.FORUM, "How?", "Tell me")
    assert server.messages(theirs)[0]["id"] == theirs
    forum = bot.get_channel(int(ids.FORUM))
    assert isinstance(forum, discord.ForumChannel)
    made = await forum.create_thread(name="Mine", content="Body")
    assert made.message.id == made.thread.id
    assert server.threads(ids.FORUM) == [theirs, str(made.thread.id)]


async def test_active_threads_are_listed_and_a_deleted_channel_takes_its_threads(raw: Raw) -> None:
    thread = raw.server.thread(ids.ADA, ids.GENERAL, "t")
    closed = raw.server.thread(ids.ADA, ids.GENERAL, "c")
    raw.server.archive(closed)
    _, listed = await raw("GET", f"/guilds/{ids.G1}/threads/active")
    assert [t["id"] for t in listed["threads"]] == [thread]
    raw.server.delete_channel(ids.GENERAL)
    assert await raw.refused("GET", f"/channels/{thread}") == (404, 10003)


# ---- commands


def a_command(**more: Any) -> Json:
    return {"name": "ask", "description": "Ask"} | more


@pytest.mark.parametrize(
    ("commands", "where", "code"),
    [
        ([a_command(name="Ask")], "0.name", "APPLICATION_COMMAND_INVALID_NAME"),
        ([a_command(name="a b")], "0.name", "APPLICATION_COMMAND_INVALID_NAME"),
        ([a_command(description="d" * 101)], "0.description", "BASE_TYPE_BAD_LENGTH"),
        ([a_command(), a_command()], "1", "APPLICATION_COMMANDS_DUPLICATE_NAME"),
        (
            [a_command(options=[a_command(type=3, name=f"o{n}") for n in range(26)])],
            "0.options",
            "BASE_TYPE_BAD_LENGTH",
        ),
        (
            [a_command(options=[a_command(type=3), a_command(type=3, name="b", required=True)])],
            "0.options.1",
            "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID",
        ),
        (
            [a_command(options=[a_command(type=3, choices=[{"name": "c" * 101, "value": "c"}])])],
            "0.options.0.choices.0.name",
            "BASE_TYPE_BAD_LENGTH",
        ),
        (
            [
                a_command(
                    options=[
                        a_command(
                            type=3,
                            name=f"o{n}",
                            choices=[{"name": f"{c}" + "n" * 90, "value": "v" * 90} for c in range(25)],
                        )
                        for n in range(2)
                    ]
                )
            ],
            "0",
            "APPLICATION_COMMAND_TOO_LARGE",
        ),
    ],
)
async def test_a_command_that_breaks_a_rule_is_refused(
    raw: Raw, commands: list[Json], where: str, code: str
) -> None:
    assert (await raw.wrong("PUT", f"/applications/{ids.APP}/commands", commands)).get(where) == code
    assert raw.server.commands == []


async def test_commands_are_overwritten_and_keep_their_ids(raw: Raw) -> None:
    path = f"/applications/{ids.APP}/commands"
    _, [first] = await raw("PUT", path, [a_command()])
    _, second = await raw(
        "PUT", path, [a_command(description="Other"), a_command(name="Look", type=3, description="")]
    )
    assert second[0]["id"] == first["id"]
    assert await raw("GET", path) == (200, second)
    guild = f"/applications/{ids.APP}/guilds/{ids.G1}/commands"
    await raw("PUT", guild, [a_command()])
    assert (await raw("GET", guild))[1][0]["guild_id"] == ids.G1
    raw.server.check()
