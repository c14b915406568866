"""Calls about messages in threads that may not exist yet, or are closed.

The key of a thread that a message begins is known before the thread is: it is opened by the first call
that needs it, in whichever process that is. One that was deleted is not opened a second time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from channels.base import MessageGone, MessageRef, PayloadRefused, TargetGone, ThreadKey
from channels.discord import refs, render
from channels.discord.calls import Calls, Json, Upload
from channels.discord.errors import NoSuchChannel, ThreadArchived, ThreadExists
from channels.discord.wire_json import Node
from channels.discord.world import World
from channels.render.inbound import discord_decoded

T = TypeVar("T")

_KEPT: Final = 2000  # threads to come whose names are remembered
_HAS_THREAD: Final = 1 << 5  # flag of a message, which stays when the thread is deleted
_LOCKED: Final = "the thread is archived, and the bot may not reopen it: Manage Threads is missing"
_DELETED: Final = "the thread was deleted"


class Threads:
    """Posting into threads, whatever state they are in."""

    def __init__(self, calls: Calls, world: World) -> None:
        self._calls, self._world = calls, world
        self._names: OrderedDict[str, str] = OrderedDict()  # thread to come -> what it will be called
        self._orders: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def expect(self, thread: str, text: str) -> None:
        """A message that began with these words begins this thread, once it is answered."""
        if thread and not self._world.was_there(thread):
            self._names[thread] = render.thread_name(text)
            while len(self._names) > _KEPT:
                self._names.popitem(last=False)

    def begins(self, target: ThreadKey) -> bool:
        """Whether the thread is still to come: nothing can have been left in it."""
        return target.thread in self._names and not self._world.was_there(target.thread)

    async def post(
        self,
        target: ThreadKey,
        payload: Json,
        *,
        uploads: Sequence[Upload] = (),
        reply_to: str = "",
        sign: bool = False,
        once: str = "",
    ) -> MessageRef:
        """One message. `reply_to` counts in channels; in a thread everybody sees what is answered."""
        place = refs.place_of(target)
        quoted = (
            reply_to if not target.thread and target.workspace != refs.DM and refs.is_id(reply_to) else ""
        )
        return await self._there(
            target,
            lambda: self._calls.post(place, payload, uploads=uploads, reply_to=quoted, sign=sign, once=once),
        )

    async def typing(self, target: ThreadKey) -> None:
        """Show that the bot is typing there."""
        await self._there(target, lambda: self._calls.typing(refs.place_of(target)))

    async def change(
        self, ref: MessageRef, payload: Json, *, uploads: Sequence[Upload] = (), sign: bool = False
    ) -> None:
        """Change a message, in a thread that is reopened for it if need be."""
        place, _ = refs.unpack_ref(ref)
        await self._reopened(place, lambda: self._calls.change(ref, payload, uploads=uploads, sign=sign))

    async def react(self, target: ThreadKey, message: str) -> None:
        """Mark a message; the one that begins a thread is in the channel."""
        place = target.conversation if message == target.thread else refs.place_of(target)
        await self._calls.react(place, message)

    # ---- what may be in the way

    async def _there(self, target: ThreadKey, call: Callable[[], Awaitable[T]]) -> T:
        thread = target.thread
        if thread in self._names and not self._world.was_there(thread):
            await self._open(target)
        try:
            return await self._reopened(refs.place_of(target), call)
        except NoSuchChannel:
            if not thread or self._world.was_there(thread):
                raise
        await self._open(target)
        return await call()

    async def _reopened(self, place: str, call: Callable[[], Awaitable[T]]) -> T:
        try:
            return await call()
        except ThreadArchived:
            pass
        try:
            await self._calls.reopen(place)
        except TargetGone as refusal:
            raise TargetGone(f"{_LOCKED} ({refusal.reason})") from None
        return await call()

    async def _open(self, target: ThreadKey) -> None:
        thread = target.thread
        order = self._orders.setdefault(thread, asyncio.Lock())
        async with order:  # a sign of life and an answer may want it at the same time
            if self._world.was_there(thread):
                return
            try:
                name = self._names.get(thread) or await self._name(target)
                made = await self._calls.open_thread(target.conversation, thread, name)
            except ThreadExists:
                made = None
            except MessageGone:
                raise TargetGone("the message on which the thread was to begin was deleted") from None
            except PayloadRefused as refusal:
                raise TargetGone(f"no thread can be opened there: {refusal}") from None
            self._names.pop(thread, None)
            if made is not None:
                self._world.channel(made, target.workspace)

    async def _name(self, target: ThreadKey) -> str:
        """What a thread is to be called of which this process has not heard. Raises TargetGone when it
        was there already."""
        message = Node(await self._calls.message(target.conversation, target.thread))
        if message.has_flag(_HAS_THREAD):
            raise TargetGone(_DELETED)
        lines = message.text("content").split("\n")
        quoted = [line.removeprefix("> ") for line in lines if line.startswith("> ")]
        called = self._world.me.called if self._world.me else frozenset()
        return render.thread_name(discord_decoded(" ".join(quoted or lines), bot=called).text)
