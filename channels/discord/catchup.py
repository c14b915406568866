"""What was written while nobody listened: asked for once after each new session, bounded, oldest first.

A conversation's live messages wait until what came before them has been handed over. Nothing is asked for
after a fresh installation, and never what lies before the newest message that was heard.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from channels.base import ChannelBusy, ChannelDown, ChannelError, ThreadKey
from channels.discord import refs
from channels.discord.limits import CATCH_UP_CONVERSATIONS
from channels.discord.wire_json import Node

log = logging.getLogger("channels.discord")

Seen = Sequence[tuple[ThreadKey, str]]
Json = Mapping[str, Any]

_TRIES: Final = 3
_PAUSE: Final = 2.0  # seconds between two tries
_AT_ONCE: Final = 2  # conversations
_NO_MESSAGES: Final = frozenset({4, 13, 14, 15, 16})  # types of channels: categories, stages, forums
_MINUTE: Final = 60_000 << 22  # of ids, which count milliseconds from their 22nd bit on


class Spot(NamedTuple):
    """A channel or thread with messages. `last`: its newest one, 0 when that is not known."""

    place: str
    conversation: str
    last: int


@dataclass(slots=True)
class _Gate:
    """`planned`: it is known what is to be fetched. `open`: by conversation, set once it was."""

    planned: asyncio.Event = field(default_factory=asyncio.Event)
    open: dict[str, asyncio.Event] = field(default_factory=dict)


class CatchUp:
    """`fetch(place, after)` gives the messages after an id, the newest first, and raises ChannelError.
    `hand_over(guild, message)` returns once it is stored; guild "" for direct messages. `soon` starts a
    task."""

    def __init__(
        self,
        *,
        seen: Callable[[], Awaitable[Seen]],
        fetch: Callable[[str, str], Awaitable[Sequence[Json]]],
        hand_over: Callable[[str, Json], Awaitable[None]],
        soon: Callable[[Any], None],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._ask, self._fetch, self._hand_over = seen, fetch, hand_over
        self._soon, self._sleep = soon, sleep
        self._seen: Seen | None = None
        self._asking = asyncio.Lock()
        self._heard: dict[str, int] = {}  # guild, or direct conversation -> newest message heard
        self._gates: dict[str, _Gate] = {}
        self._few = asyncio.Semaphore(_AT_ONCE)
        self._left = CATCH_UP_CONVERSATIONS

    # ---- told by the gateway

    def heard(self, guild: str, channel: str, message: str) -> None:
        """A message came in live."""
        key = guild or channel
        if refs.is_id(message):
            self._heard[key] = max(self._heard.get(key, 0), int(message))

    async def prepare(self) -> None:
        """Learn what was seen before anything new is. Raises what asking raised."""
        async with self._asking:
            if self._seen is None:
                self._seen = await self._ask()

    def session(self) -> None:
        """A new session has begun; what its guilds hold will be told one by one."""
        self._left = CATCH_UP_CONVERSATIONS
        gate = self._gates[refs.DM] = _Gate()
        heard = dict(self._heard)
        self._soon(self._direct(gate, heard))

    def guild(self, data: object) -> None:
        """GUILD_CREATE: at the beginning of a session, or when a guild can be reached again."""
        node = Node(data)
        own_id = node.id("id")
        if not own_id or node.flag("unavailable"):
            return
        gate = self._gates[own_id] = _Gate()
        self._soon(self._guild(own_id, gate, list(spots(node)), self._heard.get(own_id, 0)))

    async def ready(self, guild: str, conversation: str) -> None:
        """Wait until what came before was handed over there."""
        gate = self._gates.get(guild or refs.DM)
        if gate is None:
            return
        await gate.planned.wait()
        if (opened := gate.open.get(conversation)) is not None:
            await opened.wait()

    # ---- fetching

    async def _known(self) -> dict[ThreadKey, int]:
        while True:
            try:
                await self.prepare()
            except Exception as error:  # by the contract any error means: ask again
                log.warning("discord: what was seen before cannot be told yet (%s)", type(error).__name__)
                await self._sleep(_PAUSE)
            else:
                return {key: int(own) for key, own in self._seen or () if refs.is_id(own)}

    async def _guild(self, guild: str, gate: _Gate, found: Iterable[Spot], heard: int) -> None:
        wanted: list[tuple[Spot, int]] = []
        try:
            seen = await self._known()
            newest = heard or max(seen.values(), default=0) - _MINUTE
            for spot in sorted(found, key=lambda spot: spot.last, reverse=True):
                own = seen.get(refs.thread_key(guild, spot.conversation), 0)
                after = max(newest, own)
                if (seen or heard) and spot.last > after > 0 and self._left > 0:
                    self._left -= 1
                    wanted.append((spot, after))
                    gate.open.setdefault(spot.conversation, asyncio.Event())
        finally:
            gate.planned.set()
        await self._all(guild, gate, wanted)

    async def _direct(self, gate: _Gate, heard: Mapping[str, int]) -> None:
        wanted: list[tuple[Spot, int]] = []
        try:
            seen = {key.conversation: own for key, own in (await self._known()).items() if _is_direct(key)}
            newest = sorted(seen.items(), key=lambda one: one[1], reverse=True)
            for channel, own in newest[: max(self._left, 0)]:
                self._left -= 1
                wanted.append((Spot(channel, channel, 0), max(own, heard.get(channel, 0))))
                gate.open[channel] = asyncio.Event()
        finally:
            gate.planned.set()
        await self._all("", gate, wanted)

    async def _all(self, guild: str, gate: _Gate, wanted: Sequence[tuple[Spot, int]]) -> None:
        try:
            for conversation, opened in gate.open.items():
                of_it = [one for one in wanted if one[0].conversation == conversation]
                try:
                    await self._conversation(guild, of_it)
                finally:
                    opened.set()
        finally:
            for opened in gate.open.values():
                opened.set()

    async def _conversation(self, guild: str, wanted: Sequence[tuple[Spot, int]]) -> None:
        missed: list[Json] = []
        for spot, after in wanted:
            async with self._few:
                missed += await self._missed(spot, after)
        for message in sorted(missed, key=lambda one: int(Node(one).id("id") or 0)):
            await self._hand_over(guild, message)

    async def _missed(self, spot: Spot, after: int) -> Sequence[Json]:
        for attempt in range(1, _TRIES + 1):
            try:
                return await self._fetch(spot.place, str(after))
            except (ChannelBusy, ChannelDown) as error:
                log.info("discord: what came meanwhile in %s cannot be told yet: %s", spot.place, error)
                if attempt < _TRIES:
                    await self._sleep(error.retry_after if isinstance(error, ChannelBusy) else _PAUSE)
            except ChannelError as refusal:
                log.info("discord: what came meanwhile in %s is not told: %s", spot.place, refusal)
                return ()
        log.warning("discord: what came meanwhile in %s could not be fetched", spot.place)
        return ()


def spots(guild: Node) -> Iterable[Spot]:
    """The channels and active threads of GUILD_CREATE that have messages."""
    for channel in guild.nodes("channels"):
        last = channel.id("last_message_id")
        if last and channel.id("id") and channel.number("type") not in _NO_MESSAGES:
            yield Spot(channel.id("id"), channel.id("id"), int(last))
    for thread in guild.nodes("threads"):
        last = thread.id("last_message_id")
        if last and thread.id("id") and thread.id("parent_id"):
            yield Spot(thread.id("id"), thread.id("parent_id"), int(last))


def _is_direct(key: ThreadKey) -> bool:
    return key.workspace == refs.DM
