"""What a process that died has left behind in a thread: a message that says "Using search…" for ever. Or what
this one has left there without knowing, because Slack's answer was lost.

Every sign of life is marked, a message by its metadata and a stream, which takes none while it runs, by
characters that nobody sees. The process that goes on with a thread looks through it once and takes away
what is marked and is not its own. A thread that this process has seen begin needs no look.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from channels.base import Actor, ChannelBusy, ChannelDown, ChannelError, MessageRef, ThreadKey
from channels.render.slack import SlackText
from channels.slack import refs
from channels.slack.calls import Calls
from channels.slack.sign import SignCalls

log = logging.getLogger("channels.slack")

EVENT: Final = "threadgate_sign"
MARK: Final[Mapping[str, Any]] = MappingProxyType(
    {"metadata": {"event_type": EVENT, "event_payload": {"kind": "progress"}}}
)
UNMARKED: Final[Mapping[str, Any]] = MappingProxyType({"metadata": {}})  # takes a mark away: no sign any more
UNSEEN: Final = "\u2063\u2060\u2063"  # how a stream begins

LOOK_SECONDS: Final = 10.0  # for one thread
_LOOKED_THROUGH: Final = 1000  # messages of a thread
_MOST: Final = 10  # that are taken away in one thread
_KEPT: Final = 5000  # threads that need no look any more, and signs of our own


class Remnants:
    """`look` once in every thread that goes on here; `fresh`: in this one there can be nothing."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._own: OrderedDict[MessageRef, None] = OrderedDict()
        self._looked: OrderedDict[ThreadKey, asyncio.Task[None] | None] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def fresh(self, thread: ThreadKey) -> None:
        """The thread has begun while we listened."""
        self._note(thread, self._looked.get(thread))

    def doubt(self, thread: ThreadKey) -> None:
        """There may be a sign of ours whose name nobody has told us: the next look is for it."""
        self._looked.pop(thread, None)

    def own(self, ref: MessageRef) -> MessageRef:
        """A sign of ours."""
        self._own[ref] = None
        while len(self._own) > _KEPT:
            self._own.popitem(last=False)
        return ref

    async def look(self, thread: ThreadKey) -> None:
        """Take away what others have left in a thread. Never raises; what failed for a moment is tried
        again with the next call."""
        if not thread.thread:
            return
        if thread not in self._looked:
            started = asyncio.create_task(self._sweep(thread), name="slack remnants")
            self._tasks.add(started)
            started.add_done_callback(self._tasks.discard)
            self._note(thread, started)
        task = self._looked[thread]
        if task is not None:
            await asyncio.wait({task})

    async def close(self) -> None:
        """End what is still being looked at."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _note(self, thread: ThreadKey, task: asyncio.Task[None] | None) -> None:
        self._looked[thread] = task
        self._looked.move_to_end(thread)
        while len(self._looked) > _KEPT:
            self._looked.popitem(last=False)

    async def _sweep(self, thread: ThreadKey) -> None:
        again = False
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                for ref in await self._left(thread):
                    await self._remove(ref)
        except (ChannelBusy, ChannelDown, TimeoutError) as error:
            again = True
            log.info("slack: a thread was not looked through: %s", error or "it took too long")
        except ChannelError as refusal:
            log.debug("slack: a thread cannot be looked through: %s", refusal)
        finally:
            if again:
                self._looked.pop(thread, None)
            elif thread in self._looked:
                self._looked[thread] = None

    async def _left(self, thread: ThreadKey) -> list[MessageRef]:
        found: list[MessageRef] = []
        looked = 0
        async for message in self._calls.replies(thread.conversation, thread.thread, "", metadata=True):
            ts = message.get("ts")
            if isinstance(ts, str) and refs.is_ts(ts) and self._is_sign(message):
                found.append(refs.pack_ref(thread.conversation, ts))
            looked += 1
            if looked >= _LOOKED_THROUGH:
                break
        return [ref for ref in found if ref not in self._own][-_MOST:]

    def _is_sign(self, message: Mapping[str, Any]) -> bool:
        """Only our bot's token can change a message of ours, so that a forged mark comes to nothing."""
        metadata, text = message.get("metadata"), message.get("text")
        marked = isinstance(metadata, Mapping) and metadata.get("event_type") == EVENT
        return marked or (isinstance(text, str) and text.startswith(UNSEEN) and "bot_id" in message)

    async def _remove(self, ref: MessageRef) -> None:
        if ref in self._own:
            return
        # A stream that still runs has to be ended before it can be deleted.
        for step in (self._calls.remove, self._calls.stop_stream, self._calls.remove):
            try:
                await step(ref)
            except (ChannelBusy, ChannelDown):
                raise
            except ChannelError as refusal:
                log.debug("slack: a sign of life that was left behind: %s", refusal)
            else:
                if step == self._calls.remove:
                    log.info("slack: a sign of life that a process left behind was taken away")
                    return


@contextlib.contextmanager
def _doubted(remnants: Remnants, target: ThreadKey) -> Iterator[None]:
    try:
        yield
    except ChannelDown as error:
        if error.unsure:
            remnants.doubt(target)
        raise


def marked(calls: Calls, remnants: Remnants) -> SignCalls:
    """The calls that signs of life are drawn with, each of which leaves its mark."""

    async def post(target: ThreadKey, drawn: SlackText) -> MessageRef:
        content = {"text": drawn.text, "blocks": list(drawn.blocks), **MARK}
        with _doubted(remnants, target):
            return remnants.own(await calls.post(target, content, sign=True))

    async def edit(ref: MessageRef, drawn: SlackText) -> None:
        await calls.change(ref, {"text": drawn.text, "blocks": list(drawn.blocks), **MARK}, sign=True)

    async def start(target: ThreadKey, markdown: str, actor: Actor | None) -> MessageRef:
        with _doubted(remnants, target):
            return remnants.own(await calls.start_stream(target, UNSEEN + markdown, actor))

    async def stop(ref: MessageRef) -> None:
        await calls.stop_stream(ref, MARK)

    return SignCalls(
        post=post,
        edit=edit,
        delete=calls.remove,
        status=calls.status,
        start=start,
        append=calls.append_stream,
        stop=stop,
        react=calls.react,
    )
