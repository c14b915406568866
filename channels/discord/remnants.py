"""What a process that died has left behind: a message that says "Using search…" for ever.

Every sign of life ends in characters that nobody sees; the answer that takes its place does not. The process
that goes on with a thread or channel looks through the newest messages there once, and takes away what is
marked and is not its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from channels.base import ChannelBusy, ChannelDown, ChannelError, MessageRef, ThreadKey
from channels.discord import refs
from channels.discord.calls import Calls
from channels.discord.sign import SignCalls
from channels.discord.threads import Threads
from channels.discord.wire_json import Node

log = logging.getLogger("channels.discord")

MARK: Final = "\u2063\u2060\u2063"  # how the text of a sign of life ends
LOOK_SECONDS: Final = 10.0  # for one place
_KEPT: Final = 5000  # places that need no look any more, and signs of our own


class Remnants:
    """`look` once in every place that goes on here. me: our own id, "" while it is not known."""

    def __init__(self, calls: Calls, threads: Threads, me: Callable[[], str]) -> None:
        self._calls, self._threads, self._me = calls, threads, me
        self._own: OrderedDict[MessageRef, None] = OrderedDict()
        self._looked: OrderedDict[str, asyncio.Task[None] | None] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def own(self, ref: MessageRef) -> MessageRef:
        """A sign of ours."""
        self._own[ref] = None
        while len(self._own) > _KEPT:
            self._own.popitem(last=False)
        return ref

    async def look(self, target: ThreadKey) -> None:
        """Take away what others have left there. Never raises; what failed for a moment is tried again with
        the next call."""
        place = refs.place_of(target)
        if not refs.is_id(place) or self._threads.begins(target):
            return
        if place not in self._looked:
            started = asyncio.create_task(self._sweep(place), name="discord remnants")
            self._tasks.add(started)
            started.add_done_callback(self._tasks.discard)
            self._looked[place] = started
            while len(self._looked) > _KEPT:
                self._looked.popitem(last=False)
        task = self._looked[place]
        if task is not None:
            await asyncio.wait({task})

    async def close(self) -> None:
        """End what is still being looked at."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _sweep(self, place: str) -> None:
        again = False
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                for raw in await self._calls.history(place):
                    await self._take_away(place, Node(raw))
        except (ChannelBusy, ChannelDown, TimeoutError) as error:
            again = True
            log.info("discord: a place was not looked through: %s", error or "it took too long")
        except ChannelError as refusal:
            log.debug("discord: a place cannot be looked through: %s", refusal)
        finally:
            if again:
                self._looked.pop(place, None)
            elif place in self._looked:
                self._looked[place] = None

    async def _take_away(self, place: str, message: Node) -> None:
        written_by_us = message.at("author").id("id") == self._me() != ""
        if not written_by_us or not message.text("content").endswith(MARK):
            return
        ref = refs.pack_ref(place, message.id("id"))
        if ref in self._own:
            return
        try:
            await self._calls.remove(ref)
        except (ChannelBusy, ChannelDown):
            raise
        except ChannelError as refusal:
            log.debug("discord: a sign of life that was left behind: %s", refusal)
        else:
            log.info("discord: a sign of life that a process left behind was taken away")


def marked(calls: Calls, threads: Threads, remnants: Remnants) -> SignCalls:
    """The calls that signs of life are drawn with, each of which leaves its mark."""

    async def post(target: ThreadKey, payload: dict[str, Any]) -> MessageRef:
        await remnants.look(target)
        return remnants.own(await threads.post(target, _with_mark(payload), sign=True))

    async def edit(ref: MessageRef, payload: dict[str, Any]) -> None:
        await calls.change(ref, _with_mark(payload), sign=True)

    return SignCalls(post=post, edit=edit, delete=calls.remove, typing=threads.typing, react=threads.react)


def _with_mark(payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "content": f"{payload['content']}{MARK}"}
