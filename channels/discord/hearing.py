"""What comes in, from a dispatch of the gateway to `Inbound`: read at once, stored in order.

The connection knows no acknowledgement, so what comes over it is tried again until it is stored. In each
conversation one after the other is: what a crash loses is then newer than all that is stored, and caught up
with. Interactions do not wait for that; answering.py takes them.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from channels.base import (
    ChannelBusy,
    ChannelDown,
    ChannelError,
    Inbound,
    InboundChange,
    InboundMessage,
    ThreadKey,
)
from channels.discord import refs, wire
from channels.discord import wire_values as v
from channels.discord.answering import Answering
from channels.discord.calls import Calls
from channels.discord.catchup import CatchUp
from channels.discord.people import People
from channels.discord.redact import redacted
from channels.discord.threads import Threads
from channels.discord.wire_json import Node
from channels.discord.world import World

log = logging.getLogger("channels.discord")

Job = Callable[[], Awaitable[None]]

_FIRST_PAUSE, _LAST_PAUSE = 0.1, 5.0  # seconds between two tries to store
_CLOSING: Final = 5.0  # seconds for what is still going on when the channel stops
_CONTENTS: Final = 2000  # messages whose words are remembered, to tell an edit from a preview
_LONGEST_LINE: Final = 1000  # that wait in one conversation


@dataclass(slots=True)
class _Line:
    """What waits to be stored in one conversation."""

    guild: str
    conversation: str
    jobs: deque[Job] = field(default_factory=deque)


class Hearing:
    """`inbound` is set before anything is heard."""

    def __init__(
        self,
        *,
        world: World,
        calls: Calls,
        threads_calls: Threads,
        people: People,
        mention: v.Mention,
        threads: bool,
        sleep: Callable[[float], Awaitable[None]],
        on_ready: Callable[[], None],
    ) -> None:
        self.inbound: Inbound | None = None
        self.answering: Answering | None = None
        self.stopping = False  # nothing new is taken any more
        self.unknown: Counter[str] = Counter()
        self._world, self._calls, self._people = world, calls, people
        self._threads_calls, self._mention, self._threads = threads_calls, mention, threads
        self._sleep, self._on_ready = sleep, on_ready
        self._contents: OrderedDict[str, str] = OrderedDict()
        self._lines: dict[tuple[str, str], _Line] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.catchup = CatchUp(
            seen=self._seen,
            fetch=lambda place, after: calls.history(place, after=after),
            hand_over=self._missed,
            soon=self.soon,
            sleep=sleep,
        )

    def soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside all else. Its failure is logged."""
        task = asyncio.create_task(work, name="discord afterwards")
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def close(self) -> None:
        """Let what is going on end; what cannot be stored now will be caught up with."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_CLOSING)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        level = logging.INFO if isinstance(error, ChannelError) else logging.ERROR
        log.log(level, "discord: %s: %s", type(error).__name__, redacted(str(error)))

    # ---- dispatches, each read against the state before it

    def take(self, event: str, data: object) -> None:
        """One dispatch. Never raises, never waits."""
        if self.stopping:
            return
        if event == "READY":
            self._world.learn(event, data)
            self._ready(Node(data))
            return
        me = self._world.me
        if me is None:
            return
        parsed = self._parse(event, data, me)
        self._note(event, data)
        self._hand_on(event, data, parsed)
        let_in = event == "GUILD_CREATE" and self._world.is_new(Node(data).id("id"))
        self._world.learn(event, data)
        if event == "GUILD_CREATE":
            self.catchup.guild(data)
        if let_in and (places := wire.conversations(data)):
            self.soon(self._back(places))

    def _parse(self, event: str, data: object, me: v.Me) -> v.Parsed:
        return wire.parse(
            event,
            data,
            me,
            mention=self._mention,
            threads=self._threads,
            parents=self._world.parents,
            before=self._contents.get,
        )

    def _ready(self, node: Node) -> None:
        shard = node.at("shard").value
        if not isinstance(shard, list) or shard[:1] == [0]:
            self.catchup.session()
        self._on_ready()

    def _note(self, event: str, data: object) -> None:
        """What later dispatches are read against."""
        self._people.hear(event, data)
        if event not in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
            return
        node = Node(data)
        own_id = node.id("id")
        if event == "MESSAGE_CREATE":
            self.catchup.heard(node.id("guild_id"), node.id("channel_id"), own_id)
        if isinstance(node.at("content").value, str):
            self._contents[own_id] = node.text("content")
            self._contents.move_to_end(own_id)
            while len(self._contents) > _CONTENTS:
                self._contents.popitem(last=False)

    def _hand_on(self, event: str, data: object, parsed: v.Parsed) -> None:
        match parsed:
            case InboundMessage() | InboundChange():
                self._in_line(parsed.thread, lambda: self._store(parsed))
            case v.Deleted(changes=changes):
                for change in changes:
                    self._in_line(change.thread, lambda change=change: self._store(change))  # type: ignore[misc]
            case v.PlaceWanted(channel=channel):
                self._look_up(event, copy.deepcopy(data), channel)
            case v.PeopleChanged(guild=guild, user=user):
                self._people.forget(guild, user)
            case v.Ignored():
                self._ignored(parsed)
                if event == "INTERACTION_CREATE":
                    self._answer(parsed, data)
            case _:
                self._answer(parsed, copy.deepcopy(data))

    def _answer(self, parsed: v.Parsed, data: object) -> None:
        if self.answering is not None:
            self.soon(self.answering.take(parsed, data))

    def _ignored(self, ignored: v.Ignored) -> None:
        if ignored.unknown:
            shape = f"{ignored.kind}: {ignored.reason}"
            self.unknown[shape] += 1
            if self.unknown[shape] == 1:
                log.warning("discord: something unknown came in and was ignored (%s)", shape)
        else:
            log.debug("discord: %s ignored: %s", ignored.kind, ignored.reason)

    # ---- places that nothing is known of

    def _look_up(self, event: str, data: object, channel: str) -> None:
        if event == "INTERACTION_CREATE":
            self.soon(self._found(event, data, channel))
        else:
            guild = Node(data).id("guild_id")
            key = refs.thread_key(guild, channel)
            self._in_line(key, lambda: self._found(event, data, channel))

    async def _found(self, event: str, data: object, channel: str) -> None:
        """Fetch the channel, and its parent, and read the payload again."""
        try:
            await self._learn(channel)
            info = self._world.parents(channel)
            if info is not None and info.parent and self._world.parents(info.parent) is None:
                await self._learn(info.parent)
        except ChannelError as error:
            log.info("discord: what %s is cannot be told: %s", channel, error)
        if self._world.me is None:
            return
        parsed = self._parse(event, data, self._world.me)
        if isinstance(parsed, v.PlaceWanted):
            parsed = v.Ignored(reason=v.NOT_THERE, kind=event)
        self._hand_on(event, data, parsed)

    async def _learn(self, channel: str) -> None:
        self._world.channel(await self._calls.channel(channel))

    # ---- storing, in order

    def _in_line(self, thread: ThreadKey, job: Job) -> None:
        guild = "" if thread.workspace == refs.DM else thread.workspace
        key = (guild, thread.conversation)
        line = self._lines.get(key)
        if line is not None:
            if len(line.jobs) < _LONGEST_LINE:
                line.jobs.append(job)
            elif len(line.jobs) == _LONGEST_LINE:
                log.error("discord: too much waits to be stored in %s", thread.conversation)
            return
        line = self._lines[key] = _Line(*key, deque([job]))
        self.soon(self._work(line))

    async def _work(self, line: _Line) -> None:
        try:
            while line.jobs:
                await self.catchup.ready(line.guild, line.conversation)
                await line.jobs.popleft()()
        finally:
            del self._lines[(line.guild, line.conversation)]

    async def _store(self, value: InboundMessage | InboundChange) -> None:
        """Hand one over, however often that takes."""
        pause = _FIRST_PAUSE
        while self.inbound is not None:
            try:
                if isinstance(value, InboundMessage):
                    value = await self._sure(value)
                    self._expect(value)
                    await self.inbound.message(value)
                else:
                    await self.inbound.change(value)
            except Exception as error:  # by the contract any error means: not stored
                log.warning("discord: not stored yet (%s); trying again", type(error).__name__)
            else:
                return
            await self._sleep(pause)
            pause = min(_LAST_PAUSE, 2 * pause)

    async def _sure(self, message: InboundMessage) -> InboundMessage:
        """With what its author is, where that was not told with the message and can be now."""
        if not message.guest_unsure:
            return message
        try:
            guest = await self._people.guest(message.actor.user, message.thread.workspace)
        except (ChannelBusy, ChannelDown) as error:
            log.info("discord: whether somebody is a guest is not known yet: %s", error)
            return message
        except ChannelError as error:
            log.warning("discord: whether somebody is a guest is not told: %s", error)
            guest = True
        return replace(message, guest=guest, guest_unsure=False)

    async def _back(self, places: Sequence[ThreadKey]) -> None:
        """A guild has let us in: all that we were to tell there can be told again."""
        for place in places:
            await self._store(InboundChange(thread=place, kind="back"))

    def _expect(self, message: InboundMessage) -> None:
        if message.thread.thread == message.message_id:
            self._threads_calls.expect(message.message_id, message.text)

    # ---- catching up

    async def _seen(self) -> Any:
        return () if self.inbound is None else await self.inbound.seen(refs.CHANNEL)

    async def _missed(self, guild: str, message: Mapping[str, Any]) -> None:
        """A message that was fetched, as if it had just come in."""
        if self._world.me is None:
            return
        data = {**message, "guild_id": guild} if guild else message
        parsed = self._parse("MESSAGE_CREATE", data, self._world.me)
        if isinstance(parsed, InboundMessage):
            await self._store(parsed)
