"""Each call through the library's own HTTP against the strict server, and what becomes of refusals."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from channels.base import (
    ChannelBusy,
    ChannelDown,
    MessageGone,
    OutboundMessage,
    PayloadRefused,
    TargetGone,
    ThreadKey,
)
from channels.discord import commands
from channels.discord.calls import Calls, Upload
from channels.discord.errors import TokenRefused
from channels.discord.limits import METHODS
from channels.discord.pacing import Pacing
from channels.discord.refs import pack_ref, thread_key, unpack_ref
from channels.discord.threads import Threads
from channels.discord.transport import make_client
from channels.discord.world import World
from tests.clock import FakeClock
from tests.platforms.discord.hasty import quick
from tests.platforms.discord.ids import ADA, APP, BOT, G1, GENERAL, READONLY
from tests.platforms.discord.limits import Json
from tests.platforms.discord.server import DiscordServer

POST = "POST /channels/*/messages"
HELLO: Json = {"content": "hello", "flags": 0, "allowed_mentions": {"parse": []}}


class Line:
    """Calls that are logged in, without a gateway."""

    def __init__(self, server: DiscordServer, calls: Calls, clock: FakeClock) -> None:
        self.server, self.calls, self.clock = server, calls, clock
        self.world = World()
        self.world.learn("READY", {"user": {"id": BOT}, "application": {"id": APP}})
        self.threads = Threads(calls, self.world)
        self.refused: list[TokenRefused] = []


@asynccontextmanager
async def on_line() -> AsyncIterator[Line]:
    clock = FakeClock()
    async with DiscordServer() as server:
        client = make_client(
            server.route_base, None, lambda *_: None, clock.sleep, content=True, sharded=False
        )
        refused: list[TokenRefused] = []
        calls = Calls(lambda: client.http, Pacing(clock.sleep, clock.monotonic), on_refused=refused.append)
        await client.http.static_login(server.token)
        line = Line(server, calls, clock)
        line.refused = refused
        try:
            yield line
        finally:
            await client.http.close()
        server.check()


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    async with on_line() as line:
        yield line


async def test_every_route_that_is_called_is_in_the_table_with_its_permissions(line: Line) -> None:
    calls, server = line.calls, line.server
    ref = await calls.post(GENERAL, HELLO)
    _, message = unpack_ref(ref)
    await calls.change(ref, HELLO)
    assert (await calls.message(GENERAL, message))["content"] == "hello"
    assert [one["id"] for one in await calls.history(GENERAL)] == [message]
    assert (await calls.channel(GENERAL))["id"] == GENERAL
    thread = (await calls.open_thread(GENERAL, message, "Talk"))["id"]
    await calls.reopen(thread)
    await calls.typing(thread)
    await calls.react(GENERAL, message)
    await calls.direct(ADA)
    assert (await calls.member(G1, ADA))["user"]["id"] == ADA
    await calls.put_commands(APP, commands.definitions())
    assert commands.digest(await calls.commands(APP)) == commands.digest(commands.definitions())
    await calls.remove(ref)
    shapes = {shape(route) for route in METHODS}
    assert {shape(call.route) for call in server.calls} <= shapes


def shape(route: str) -> str:
    """A route without the names of its parts."""
    return "/".join("*" if part.startswith("{") else part for part in route.split("/"))


async def test_each_message_has_a_nonce_of_its_own_that_counts(line: Line) -> None:
    for _ in range(2):
        await line.calls.post(GENERAL, HELLO)
    bodies: list[Json] = [call.body for call in line.server.called(POST) if isinstance(call.body, dict)]
    assert len(bodies) == 2
    assert all(body["enforce_nonce"] is True for body in bodies)
    assert len({body["nonce"] for body in bodies}) == 2


async def test_a_long_wait_is_refused_and_nobody_tries_before_it_is_over(line: Line) -> None:
    line.server.fail_next(POST, 429, retry_after=60.0)
    for _ in range(3):
        with pytest.raises(ChannelBusy) as caught:
            await line.calls.post(GENERAL, HELLO)
        assert caught.value.retry_after == pytest.approx(60.0)
    assert len(line.server.called(POST)) == 1
    line.clock.advance(60)
    await line.calls.post(GENERAL, HELLO)


async def test_a_short_wait_is_the_librarys_affair(line: Line) -> None:
    line.server.fail_next(POST, 429, retry_after=0.05)
    await line.calls.post(GENERAL, HELLO)
    assert [call.status for call in line.server.called(POST)] == [429, 200]


@pytest.mark.parametrize(("what", "unsure"), [("drop", True), (503, False)])
async def test_trouble_says_whether_it_may_have_been_done(line: Line, what: int | str, unsure: bool) -> None:
    line.server.fail_next(POST, what)
    with pytest.raises(ChannelDown) as caught:
        await line.calls.post(GENERAL, HELLO)
    assert caught.value.unsure is unsure


async def test_a_ban_at_the_front_door_is_trouble(line: Line) -> None:
    line.server.fail_next(POST, 429, via=False)
    with pytest.raises(ChannelDown):
        await line.calls.post(GENERAL, HELLO)


async def test_a_dead_network_is_told_apart(line: Line) -> None:
    await line.server.down()
    with pytest.raises(ChannelDown) as caught:
        await line.calls.post(GENERAL, HELLO)
    assert caught.value.unsure is False
    await line.server.up()


async def test_a_token_that_is_no_longer_good_is_told_once_and_in_no_text(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    good, line.server.token = line.server.token, "another"
    with caplog.at_level(logging.DEBUG), pytest.raises(TokenRefused) as caught:
        await line.calls.post(GENERAL, HELLO)
    assert line.refused == [caught.value]
    assert good not in str(caught.value)


async def test_what_cannot_be_posted_to_is_gone(line: Line) -> None:
    for channel in (READONLY, "999"):
        with pytest.raises(TargetGone):
            await line.calls.post(channel, HELLO)
    with pytest.raises(MessageGone):
        await line.calls.change(pack_ref(GENERAL, "999"), HELLO)


async def test_what_discord_does_not_take_is_refused(line: Line) -> None:
    with pytest.raises(PayloadRefused):
        await line.calls.post(GENERAL, HELLO | {"content": "x" * 2001})


async def test_a_file_that_cannot_be_read_is_refused_before_any_call(line: Line, tmp_path: Path) -> None:
    with pytest.raises(PayloadRefused):
        await line.calls.post(GENERAL, HELLO, uploads=[Upload(name="a", content=tmp_path / "none")])
    assert line.server.called(POST) == []


async def test_calls_of_a_channel_that_is_not_connected_are_trouble() -> None:
    channel = quick(DiscordServer())
    with pytest.raises(ChannelDown):
        await channel.send(thread_key(G1, GENERAL), OutboundMessage(text="x"))
    await channel.stop()


# ---- threads


def begun(line: Line, text: str = "hello there") -> ThreadKey:
    """A message in a channel, and the key of the thread that it begins."""
    return thread_key(G1, GENERAL, line.server.say(ADA, GENERAL, text)["id"])


async def test_a_thread_is_opened_once_by_the_first_who_need_it(line: Line) -> None:
    key = begun(line)
    line.threads.expect(key.thread, "hello there")
    await asyncio.gather(
        line.threads.typing(key), line.threads.post(key, HELLO), line.threads.post(key, HELLO)
    )
    assert line.server.threads(GENERAL) == [key.thread]
    assert line.server.channels[key.thread].name == "hello there"
    assert len(line.server.from_bot(key.thread)) == 2
    assert len(line.server.called("POST /channels/*/threads")) == 1


async def test_another_process_opens_a_thread_and_names_it_after_its_message(line: Line) -> None:
    key = begun(line, f"<@{BOT}> tidy **up**, please")
    await line.threads.post(key, HELLO)
    assert line.server.channels[key.thread].name == "tidy **up**, please"


async def test_a_thread_that_somebody_else_has_opened_meanwhile_is_used(line: Line) -> None:
    key = begun(line)
    line.threads.expect(key.thread, "hello there")
    line.server.thread(ADA, GENERAL, "mine", message=key.thread)
    await line.threads.post(key, HELLO)
    assert line.server.channels[key.thread].name == "mine"


@pytest.mark.parametrize("known", [True, False], ids=["known", "not known"])
async def test_a_thread_that_was_deleted_is_not_opened_again(line: Line, known: bool) -> None:
    key = begun(line)
    thread = line.server.thread(ADA, GENERAL, "mine", message=key.thread)
    if known:
        line.world.channel(line.server.channels[thread].public())
    line.server.delete_channel(thread)
    with pytest.raises(TargetGone):
        await line.threads.post(key, HELLO)
    assert line.server.threads(GENERAL) == []


async def test_a_thread_whose_message_is_gone_is_gone(line: Line) -> None:
    key = begun(line)
    line.threads.expect(key.thread, "hello")
    line.server.delete(GENERAL, key.thread)
    with pytest.raises(TargetGone):
        await line.threads.post(key, HELLO)


async def test_an_archived_thread_is_reopened_for_an_edit(line: Line) -> None:
    key = begun(line)
    ref = await line.threads.post(key, HELLO)
    line.server.archive(key.thread)
    await line.threads.change(ref, HELLO | {"content": "changed"})
    assert line.server.shown(*unpack_ref(ref)) == "changed"
    assert not line.server.channels[key.thread].archived


async def test_a_locked_thread_says_what_is_missing(line: Line) -> None:
    key = begun(line)
    ref = await line.threads.post(key, HELLO)
    line.server.take_from_bot("MANAGE_THREADS")
    line.server.archive(key.thread, locked=True)
    for attempt in (line.threads.post(key, HELLO), line.threads.change(ref, HELLO)):
        with pytest.raises(TargetGone) as caught:
            await attempt
        assert "Manage Threads" in caught.value.reason


async def test_in_a_channel_the_message_that_is_answered_is_shown(line: Line) -> None:
    said = line.server.say(ADA, GENERAL, "hello")["id"]
    ref = await line.threads.post(thread_key(G1, GENERAL), HELLO, reply_to=said)
    shown = line.server.look(*unpack_ref(ref))
    assert shown["message_reference"]["message_id"] == said
    assert line.server.paged() == []
