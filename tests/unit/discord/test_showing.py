"""Cards in servers and in private, and what becomes of a server: through the real library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from channels.base import Actor, Card, InboundMessage, OutboundMessage, Progress
from channels.discord.refs import thread_key, unpack_ref
from channels.discord.remnants import MARK
from channels.discord.world import World
from tests.contracts.harness import Inbox, an_approval, settled
from tests.platforms.discord.hasty import running
from tests.platforms.discord.ids import ADA, APPROVALS, BOT, FORUM, G1, G2, GENERAL, OPS
from tests.platforms.discord.server import DiscordServer

ME = f"<@{BOT}>"
MEMBER = "GET /guilds/*/members/*"


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as server:
        yield server
        server.check()


def asking() -> Card:
    return an_approval(asks=(Actor("discord", "", ADA),), ask_roles=(OPS,))


async def test_people_and_roles_that_are_asked_are_notified_in_a_server_once(server: DiscordServer) -> None:
    async with running(server, Inbox()) as channel:
        ref = await channel.show(thread_key(G1, APPROVALS), asking())
        await channel.redraw(ref, replace(asking(), status="Bob agrees; one more must."))
        await channel.redraw(ref, settled(asking(), "Approved by Ada"))
    assert server.paged(APPROVALS) == [ADA, f"&{OPS}"]


async def test_in_private_there_are_no_roles_to_notify(server: DiscordServer) -> None:
    async with running(server, Inbox()) as channel:
        await channel.show(thread_key("", server.dm(ADA).id), asking())
    [message] = server.from_bot(ADA)
    assert server.paged() == [ADA]
    assert OPS not in server.shown(server.dm(ADA).id, message["id"])


async def test_a_card_whose_reference_was_lost_is_not_posted_twice(server: DiscordServer) -> None:
    target, card = thread_key(G1, APPROVALS), replace(asking(), once="0123456789abcdef01234567")
    async with running(server, Inbox()) as channel:
        lost = await channel.show(target, card)
        other = await channel.show(target, replace(card, once="f" * 24))
    async with running(server, Inbox()) as channel:  # another process goes on
        news = replace(card, repeat=True, status="Bob agrees; one more must.")
        assert await channel.show(target, news) == lost != other
    told = server.shown(*unpack_ref(lost))
    assert "one more must" in told and "a repeat" not in told
    assert server.paged(APPROVALS) == [ADA, f"&{OPS}"] * 2


async def test_a_card_that_was_never_posted_is_posted_as_a_possible_repeat(server: DiscordServer) -> None:
    card = replace(asking(), once="0123456789abcdef01234567", repeat=True)
    async with running(server, Inbox()) as channel:
        ref = await channel.show(thread_key(G1, APPROVALS), card)
    assert "(a repeat: the card may already be above)" in server.shown(*unpack_ref(ref))


# ---- a server that lets the bot in again


async def test_a_server_that_lets_the_bot_in_again_takes_messages_again(server: DiscordServer) -> None:
    inbox = Inbox()
    async with running(server, inbox):
        assert inbox.changes == []  # what is there when a session begins is not new
        server.kick(BOT, G1)
        server.invite(G1)
        await inbox.wait_for(lambda: len(inbox.changes) >= 3)
        back = {change.thread for change in inbox.changes}
        assert {thread_key(G1, place) for place in (GENERAL, APPROVALS, FORUM)} <= back
        assert {change.kind for change in inbox.changes} == {"back"}


async def test_a_server_that_was_out_of_reach_for_a_while_is_not_back(server: DiscordServer) -> None:
    inbox = Inbox()
    async with running(server, inbox):
        server.outage(G1)
        server.outage(G1, over=True)
        server.say(ADA, GENERAL, f"{ME} hello")
        await inbox.wait_for(lambda: inbox.messages)
        assert inbox.changes == []


def told(*guilds: str, **more: Any) -> dict[str, Any]:
    """READY of a session in these servers."""
    return {"user": {"id": BOT}, "guilds": [{"id": guild, "unavailable": True} for guild in guilds], **more}


def test_a_server_that_threw_the_bot_out_is_new_in_a_later_session_also_when_nobody_listened() -> None:
    world = World()
    world.learn("READY", told(G1, G2))
    assert not world.is_new(G1)
    world.learn("GUILD_DELETE", {"id": G1})
    world.learn("READY", told(G1))  # in G1 again, and out of G2, of which nothing was heard
    assert world.is_new(G1)
    assert world.is_new(G2)
    world.learn("GUILD_CREATE", {"id": G1})
    world.learn("READY", told(G1))
    assert not world.is_new(G1)


def test_a_session_of_one_shard_says_nothing_about_the_servers_of_another() -> None:
    world = World()
    world.learn("READY", told(G1, shard=[0, 2]))
    world.learn("READY", told(G2, shard=[1, 2]))
    world.learn("READY", told(G1, shard=[0, 2]))
    assert not world.is_new(G2)
    world.learn("READY", told(shard=[1, 2]))
    assert world.is_new(G2)
    assert not world.is_new(G1)


@pytest.mark.parametrize("shard", [None, "x", [1], [0, 0], ["a", "b"], {}])
def test_shards_of_no_known_shape_are_like_none(shard: object) -> None:
    world = World()
    world.learn("READY", told(G1))
    world.learn("READY", told(shard=shard))
    assert world.is_new(G1)


# ---- who wrote what was missed


async def missed(server: DiscordServer, inbox: Inbox) -> InboundMessage:
    """What Ada wrote while nobody listened."""
    async with running(server, inbox):
        server.say(ADA, GENERAL, f"{ME} first")
        await inbox.wait_for(lambda: inbox.messages)
    server.say(ADA, GENERAL, f"{ME} second")
    async with running(server, inbox):
        await inbox.wait_for(lambda: len(inbox.messages) > 1)
    return inbox.messages[1]


async def test_whether_its_author_is_a_guest_is_looked_up_for_a_message_that_was_missed(
    server: DiscordServer,
) -> None:
    message = await missed(server, Inbox())
    assert (message.text, message.mentioned) == ("second", True)
    assert (message.guest, message.guest_unsure) == (False, False)
    assert len(server.called(MEMBER)) == 1


async def test_who_is_no_member_any_more_counts_as_a_guest(server: DiscordServer) -> None:
    server.fail_next(MEMBER, 404, code=10007)
    message = await missed(server, Inbox())
    assert (message.guest, message.guest_unsure) == (True, False)


async def test_while_discord_does_not_tell_it_is_said_to_be_unsure(server: DiscordServer) -> None:
    server.fail_next(MEMBER, 503)
    message = await missed(server, Inbox())
    assert (message.guest, message.guest_unsure) == (True, True)


# ---- signs of life that a dead process has left behind


async def test_a_sign_of_life_that_a_process_left_behind_is_taken_away_by_the_next(
    server: DiscordServer,
) -> None:
    target = thread_key(G1, APPROVALS)
    async with running(server, Inbox()) as channel:
        await channel.progress(target, Progress(kind="tool", text="search"))
        await server.wait_for(lambda: len(server.from_bot(APPROVALS)) == 1)
        [left] = server.from_bot(APPROVALS)
        async with running(server, Inbox()) as other:  # the first one shows what it did when it died
            own = await other.send(target, OutboundMessage(text=f"Using a mark{MARK} in words"))
            await server.wait_for(lambda: left["id"] not in [m["id"] for m in server.from_bot(APPROVALS)])
            await other.send(target, OutboundMessage(text="More."))
    left_there = server.from_bot(APPROVALS)
    assert len(left_there) == 2 and unpack_ref(own)[1] in [message["id"] for message in left_there]
