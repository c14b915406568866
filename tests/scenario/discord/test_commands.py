"""Slash commands, their suggestions, the menu of a message, and commands in plain words."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from channels.discord.commands import ASK_ABOUT
from tests.platforms.discord.server import DiscordServer
from tests.scenario.discord.house import ADA, BOB, FORUM, G1, GENERAL, ME, House, Post, Scene, running


@pytest.fixture
async def scene(house: House, server: DiscordServer) -> AsyncIterator[Scene]:
    async with running(house, server) as scene:
        await scene.until(lambda: server.commands, "commands")
        yield scene


def code_of(card: Post) -> str:
    """The code on a card."""
    return card.text.rsplit("Code: ", 1)[1].split()[0].strip("`")


# ---- /ask


async def test_ask_in_a_channel_opens_a_thread_on_a_message_that_says_who_asked_what(scene: Scene) -> None:
    asked = await scene.server.slash(ADA, GENERAL, "ask", prompt="what is up?").taken()
    assert asked.response == 5
    thread = await scene.until(lambda: scene.server.threads(GENERAL), "a thread")
    await scene.sees("You said: what is up?", thread[0])
    assert asked.original is not None and thread == [asked.original["id"]]
    words = scene.server.shown(GENERAL, thread[0])
    assert f"<@{ADA}>" in words and "what is up?" in words
    assert scene.server.paged() == []
    scene.say("and now?", place=thread[0])
    await scene.sees("You said: and now?", thread[0])
    await scene.rest()
    assert len(await scene.gateway.store.sessions()) == 1


@pytest.mark.parametrize("where", ["thread", "forum", "direct"])
async def test_ask_stays_where_a_conversation_is_already(scene: Scene, where: str) -> None:
    if where == "direct":
        place = scene.server.dm(ADA).id
    elif where == "forum":
        place = scene.server.post(ADA, FORUM, "Build", f"{ME} hello")
        await scene.sees("You said: hello", place)
    else:
        place = scene.call("hello")
        await scene.sees("You said: hello", place)
    await scene.server.slash(ADA, place, "ask", prompt="what is up?").taken()
    await scene.sees("You said: what is up?", place)
    await scene.rest()
    assert [m for m in scene.server.messages(place) if m["flags"] & 128] == []  # nothing "thinks" for ever
    assert len(await scene.gateway.store.sessions()) == 1


async def test_ask_takes_a_file_along(scene: Scene) -> None:
    await scene.server.slash(
        ADA, scene.server.dm(ADA).id, "ask", prompt="read this", attachment=("note.txt", b"content")
    ).taken()
    await scene.sees("You said: read this", ADA)
    assert [path.read_bytes() for path in (scene.house.data / "files").iterdir()] == [b"content"]


async def test_ask_reaches_the_agent_that_is_named(house: House, server: DiscordServer) -> None:
    other = house.agent()
    other = type(other)(name="ops", tools=other.tools, gate=other.gate)
    async with running(house, server, more=[other]) as scene:
        await scene.until(lambda: server.commands, "commands")
        offered = await server.autocomplete(ADA, GENERAL, "ask", "agent", "o", prompt="x").taken()
        assert [choice["value"] for choice in offered.choices or []] == ["ops"]
        place = server.dm(ADA).id
        await server.slash(ADA, place, "ask", prompt="hello", agent="ops").taken()
        await scene.sees("You said: hello", ADA)
        await scene.rest()
        (session,) = await scene.gateway.store.sessions()
        assert session.agent == "ops"


async def test_the_menu_of_a_message_asks_the_agent_about_it(scene: Scene) -> None:
    said = scene.say("disk is at 97 %", BOB)
    asked = await scene.server.message_command(ADA, GENERAL, said, ASK_ABOUT).taken()
    assert asked.acknowledged
    thread = (await scene.until(lambda: scene.server.threads(GENERAL), "a thread"))[0]
    answer = await scene.sees("You said: ", thread)
    assert "disk is at 97 %" in answer.text


# ---- the others


async def test_a_slash_command_is_answered_for_its_author_alone(scene: Scene) -> None:
    assert (await scene.command("status")).startswith("Nothing has been said here yet.")
    assert "Nothing waits" in await scene.command("pending")
    assert "new" in await scene.command("help")
    assert scene.texts(GENERAL) == []
    assert scene.server.threads(GENERAL) == []


async def test_a_request_is_decided_by_its_code_which_is_suggested_to_those_who_may(scene: Scene) -> None:
    asked = scene.call("pay A-1 30")
    card = await scene.card(place=asked)
    code = code_of(card)
    offered = await scene.server.autocomplete(ADA, GENERAL, "approve", "code", code[:1].upper()).taken()
    assert [choice["value"] for choice in offered.choices or []] == [code]
    nothing = await scene.server.autocomplete(BOB, GENERAL, "approve", "code", "").taken()
    assert nothing.choices == []
    assert (await scene.command("approve", code=code.upper())).startswith("Approved by Ada")
    await scene.sees("Result: paid 30 for A-1", asked)
    await scene.shows(card, "Approved by Ada")


async def test_a_request_is_refused_by_its_code_with_words(scene: Scene) -> None:
    asked = scene.call("pay A-1 30")
    card = await scene.card(place=asked)
    told = await scene.command("deny", place=asked, code=code_of(card), why="ask the customer first")
    assert told.startswith("Denied by Ada")
    await scene.shows(card, "Denied by Ada")
    await scene.sees("You said: ask the customer first", asked)
    assert scene.house.paid == []


async def test_stop_and_new_work_in_a_thread(scene: Scene) -> None:
    asked = scene.call("work")
    await scene.at_work(asked)
    assert "Stop" in await scene.command("stop", place=asked)
    await scene.rest()
    scene.say("pay A-1 30", place=asked)
    card = await scene.card(place=asked)
    assert (await scene.command("new", place=asked)).startswith("A fresh conversation begins here.")
    await scene.shows(card, "Closed by /new")
    assert card.labels == []
    assert scene.house.paid == []


@pytest.mark.parametrize("sign", ["/", "!"])
async def test_commands_are_plain_words_in_threads(scene: Scene, sign: str) -> None:
    asked = scene.call("work")
    await scene.at_work(asked)
    scene.call(f"{sign}stop", place=asked)
    await scene.until(lambda: [t for t in scene.texts(asked) if "Stopped" in t], "the end")
    scene.call(f"{sign}status", place=asked)
    await scene.until(lambda: [t for t in scene.texts(asked) if "Agent assistant" in t], "the status")
    scene.say("hello", place=asked)
    await scene.sees("You said: hello", asked)


async def test_a_stranger_is_told_in_private_that_a_command_is_not_for_them(scene: Scene) -> None:
    told = await scene.command("status", "300000000000000004")
    assert told.startswith("You are not on the list")


# ---- syncing


async def test_commands_are_registered_once_and_again_only_when_they_change(
    house: House, server: DiscordServer
) -> None:
    for _ in range(2):
        async with running(house, server) as scene:
            await scene.until(lambda: server.called("GET /applications/*/commands"), "a look")
            await scene.command("help") if server.commands else None
            await scene.rest()
    assert len(server.called("PUT /applications/{app}/commands")) == 1
    other = house.agent()
    other = type(other)(name="ops", tools=other.tools, gate=other.gate)
    async with running(house, server, more=[other]) as scene:
        await scene.until(lambda: len(server.called("PUT /applications/{app}/commands")) == 2, "a change")


async def test_in_development_commands_are_registered_in_named_guilds_alone(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server, guilds=(G1,)) as scene:
        await scene.until(lambda: server.guilds[G1].commands, "commands of the guild")
        assert await scene.command("help")
        assert server.commands == []
