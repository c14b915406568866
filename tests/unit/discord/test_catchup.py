"""What came while nobody listened: which conversations, from where on, how much, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from channels.base import ChannelBusy, ChannelDown, ChannelError, TargetGone, ThreadKey
from channels.discord.catchup import CatchUp
from channels.discord.limits import CATCH_UP_CONVERSATIONS
from channels.discord.refs import thread_key
from tests.clock import FakeClock

G, GENERAL, FORUM, POST, DM = "10", "20", "21", "22", "30"
MINUTE = 60_000 << 22
NOW = 2_000_000 << 22  # an id
Json = Mapping[str, Any]


def created(*channels: tuple[str, int], threads: Sequence[tuple[str, str, int]] = ()) -> Json:
    """GUILD_CREATE with these channels and their newest messages."""
    return {
        "id": G,
        "channels": [{"id": own, "type": 0, "last_message_id": str(last)} for own, last in channels],
        "threads": [
            {"id": own, "type": 11, "parent_id": parent, "last_message_id": str(last)}
            for own, parent, last in threads
        ],
    }


class Stage:
    """A platform with messages by channel, and a gateway that has seen some."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.seen: list[tuple[ThreadKey, str]] = []
        self.messages: dict[str, list[int]] = {}
        self.fetched: list[tuple[str, int]] = []
        self.handed: list[tuple[str, int]] = []
        self.troubles: list[ChannelError] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.hold = asyncio.Event()
        self.hold.set()
        self.catchup = CatchUp(
            seen=self.ask,
            fetch=self.fetch,
            hand_over=self.hand_over,
            soon=self.soon,
            sleep=self.clock.sleep,
        )

    async def ask(self) -> Sequence[tuple[ThreadKey, str]]:
        return self.seen

    async def fetch(self, place: str, after: str) -> Sequence[Json]:
        self.fetched.append((place, int(after)))
        await self.hold.wait()
        if self.troubles:
            raise self.troubles.pop(0)
        return [{"id": str(own)} for own in sorted(self.messages[place], reverse=True) if own > int(after)]

    async def hand_over(self, guild: str, message: Json) -> None:
        self.handed.append((guild, int(message["id"])))

    def soon(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(work))

    async def rest(self) -> None:
        """Until all is done; time passes as it is needed."""
        async with asyncio.timeout(5):
            while not all(task.done() for task in self.tasks):
                self.clock.advance(1.0)
                await asyncio.sleep(0)
        await asyncio.gather(*self.tasks)


async def test_a_fresh_installation_asks_for_nothing() -> None:
    stage = Stage()
    stage.catchup.session()
    stage.catchup.guild(created((GENERAL, NOW)))
    await stage.rest()
    assert stage.fetched == []


async def test_what_is_newer_than_the_newest_seen_comes_oldest_first() -> None:
    stage = Stage()
    stage.seen = [(thread_key(G, GENERAL), str(NOW))]
    stage.messages = {GENERAL: [NOW - 5, NOW, NOW + 1, NOW + 2]}
    stage.catchup.session()
    stage.catchup.guild(created((GENERAL, NOW + 2)))
    await stage.rest()
    assert stage.fetched == [(GENERAL, NOW)]
    assert stage.handed == [(G, NOW + 1), (G, NOW + 2)]


async def test_a_conversation_that_was_never_seen_counts_from_shortly_before_the_newest() -> None:
    stage = Stage()
    stage.seen = [(thread_key(G, "99"), str(NOW))]
    stage.messages = {GENERAL: [NOW - MINUTE - 1, NOW - 1, NOW + 1]}
    stage.catchup.guild(created((GENERAL, NOW + 1), ("23", NOW - MINUTE - 1)))
    await stage.rest()
    assert stage.fetched == [(GENERAL, NOW - MINUTE)]
    assert stage.handed == [(G, NOW - 1), (G, NOW + 1)]


async def test_threads_and_posts_are_conversations_of_their_channel() -> None:
    stage = Stage()
    stage.seen = [(thread_key(G, FORUM), str(NOW))]
    stage.messages = {POST: [NOW + 2], GENERAL: [NOW + 1]}
    stage.catchup.guild(created((GENERAL, NOW + 1), threads=[(POST, FORUM, NOW + 2)]))
    await stage.rest()
    assert sorted(stage.handed) == [(G, NOW + 1), (G, NOW + 2)]


async def test_direct_messages_are_asked_for_where_there_were_some() -> None:
    stage = Stage()
    stage.seen = [(thread_key("", DM), str(NOW))]
    stage.messages = {DM: [NOW, NOW + 1]}
    stage.catchup.session()
    await stage.rest()
    assert stage.fetched == [(DM, NOW)]
    assert stage.handed == [("", NOW + 1)]


async def test_live_messages_wait_for_what_came_before_them_in_their_conversation_only() -> None:
    stage = Stage()
    stage.seen = [(thread_key(G, GENERAL), str(NOW))]
    stage.messages = {GENERAL: [NOW + 1]}
    stage.hold.clear()
    stage.catchup.guild(created((GENERAL, NOW + 1)))
    waiting = asyncio.create_task(stage.catchup.ready(G, GENERAL))
    await asyncio.wait_for(stage.catchup.ready(G, FORUM), 5)
    assert not waiting.done()
    stage.hold.set()
    await asyncio.wait_for(waiting, 5)
    assert stage.handed == [(G, NOW + 1)]


async def test_a_new_session_counts_from_what_was_heard_last() -> None:
    stage = Stage()
    stage.seen = [(thread_key(G, GENERAL), str(NOW))]
    stage.catchup.heard(G, GENERAL, str(NOW + 5))
    stage.messages = {GENERAL: [NOW + 5, NOW + 6]}
    stage.catchup.guild(created((GENERAL, NOW + 6)))
    await stage.rest()
    assert stage.fetched == [(GENERAL, NOW + 5)]
    stage.catchup.heard(G, GENERAL, str(NOW + 6))
    stage.catchup.guild(created((GENERAL, NOW + 6)))
    await stage.rest()
    assert len(stage.fetched) == 1


async def test_no_more_conversations_than_allowed_and_the_newest_first() -> None:
    stage = Stage()
    stage.seen = [(thread_key(G, "99"), str(NOW))]
    many = [(str(1000 + n), NOW + n) for n in range(1, CATCH_UP_CONVERSATIONS + 11)]
    stage.messages = {own: [last] for own, last in many}
    stage.catchup.session()
    stage.catchup.guild(created(*many))
    await stage.rest()
    assert {place for place, _ in stage.fetched} == {own for own, _ in many[10:]}


async def test_trouble_is_waited_out_and_then_given_up() -> None:
    stage = Stage()
    stage.seen = [(thread_key(G, GENERAL), str(NOW))]
    stage.messages = {GENERAL: [NOW + 1]}
    stage.troubles = [ChannelBusy("discord", 5.0), ChannelDown("no network")]
    stage.catchup.guild(created((GENERAL, NOW + 1)))
    await stage.rest()
    assert stage.handed == [(G, NOW + 1)]
    stage.troubles = [ChannelDown("no network")] * 3
    stage.catchup.guild(created((GENERAL, NOW + 1)))
    await stage.rest()
    assert len(stage.handed) == 1
    await asyncio.wait_for(stage.catchup.ready(G, GENERAL), 5)


async def test_what_may_not_be_read_holds_nothing_up() -> None:
    stage = Stage()
    stage.seen = [(thread_key(G, GENERAL), str(NOW))]
    stage.messages = {GENERAL: [NOW + 1], "23": [NOW + 2]}
    stage.troubles = [TargetGone("no history")]
    stage.catchup.guild(created((GENERAL, NOW + 1), ("23", NOW + 2)))
    await stage.rest()
    assert len(stage.fetched) == 2
    assert len(stage.handed) == 1


async def test_shapes_that_nobody_expects_are_no_guild() -> None:
    stage = Stage()
    strange: list[object] = [None, 3, [], {"id": G, "channels": 7}, {"channels": [{}]}]
    for data in [*strange, {"id": G, "unavailable": True}]:
        stage.catchup.guild(data)
    await stage.rest()
    assert stage.fetched == []
