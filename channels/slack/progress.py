"""Signs of life: what a thread shows while a turn works.

Assistant threads have a status that says what is done now. Elsewhere one progress message says it, posted
once there is something to say and edited at a bearable pace. The growing answer is a native stream in both;
where Slack has none for us, and when one is dead, which they are after five minutes, it is edited into the
message instead.

One small task per turn does the calls. A turn's end (`idle`) comes a moment before its answer, so what
is shown stays for a few seconds for `settle` to hand it over, and is then taken away. All of it is best
effort: what Slack asks to delay is dropped, and the next news is drawn instead.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from channels.base import ChannelBusy, ChannelDown, ChannelError, MessageGone, MessageRef, Progress, ThreadKey
from channels.slack import drafts
from channels.slack.sign import EDIT_SECONDS, Sign, SignCalls

__all__ = ["Live", "SignCalls", "Signs"]

log = logging.getLogger("channels.slack")

QUIET = 1.5  # seconds of mere work that show no message: the answer may be about to begin
GRACE = 5.0  # seconds after a turn's end in which its answer can still take over what is shown
LONGEST = 900.0  # seconds without any news after which a sign of life would be a lie
PATIENCE = 5.0  # seconds that an answer waits for a call that is on its way
RETRIES = (5.0, 30.0, 60.0, 300.0)  # seconds between the tries to delete a message
_LONGEST_PAUSE = 60.0
_REMEMBERED = 1000  # conversations that refused a stream
_MESSAGE_ID = re.compile(r"\d+\.\d+")  # commands and forms have none that could be reacted to


class Live(NamedTuple):
    """The message that a turn has shown, its stream ended. `age`: seconds since it was posted."""

    ref: MessageRef
    age: float


@dataclass(slots=True, kw_only=True)
class _Life:
    """A turn's sign and the task that draws it. `over`: the turn has ended; `forgotten`: nobody will
    ask for what is shown."""

    sign: Sign
    heard: float
    task: asyncio.Task[None] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    forgotten: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self, *, forgotten: bool = False) -> None:
        """The turn is over."""
        self.over.set()
        self.news.set()
        if forgotten:
            self.forgotten.set()


class Signs:
    """All signs of life of one bot.

    assistant: whether a thread has a status. streams: whether to stream at all. before: what is to be done
    in a thread before anything is shown there. sleep, monotonic: time; a
    sleep that does not wait makes the tasks here spin.
    """

    def __init__(
        self,
        calls: SignCalls,
        *,
        assistant: Callable[[ThreadKey], bool] = lambda target: target.conversation.startswith("D"),
        streams: bool = True,
        before: Callable[[ThreadKey], Awaitable[None]] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.dropped = 0  # signs that could not be shown
        self._calls, self._assistant, self._streams = calls, assistant, streams
        self._before, self._sleep, self._monotonic = before, sleep, monotonic
        self._lives: dict[ThreadKey, _Life] = {}  # of turns at work
        self._ended: dict[ThreadKey, _Life] = {}  # of turns whose answer is due
        self._tasks: dict[asyncio.Task[None], _Life] = {}
        self._streamless: set[str] = set()  # conversations that refused a stream

    async def show(self, target: ThreadKey, state: Progress) -> None:
        """Take the news in; they are shown soon. Raises ChannelBusy and ChannelDown for a message that
        could not be marked as noted."""
        if state.kind == "noted":
            await self._noted(target, state.text)
        elif state.kind == "idle":
            if (life := self._lives.pop(target, None)) is not None:
                self._ended[target] = life
                life.end()
        elif target.thread:  # at the root of a conversation nobody has asked for anything
            self._hear(target, state)

    async def settle(self, target: ThreadKey) -> Live | None:
        """End the signs of a turn whose answer goes out now; the message that it shall replace, if any."""
        life = self._ended.pop(target, None) or self._lives.pop(target, None)
        if life is None:
            return None
        sign = life.sign
        try:
            async with asyncio.timeout(PATIENCE), sign.calling:
                sign.taken = True
        except TimeoutError:  # what comes of that call is taken away
            life.end(forgotten=True)
            return None
        if life.task is not None:
            life.task.cancel()
        if sign.ref is None:  # Slack takes a status away as soon as a message comes
            return None
        await sign.hand_over()
        return Live(sign.ref, sign.age)

    async def remove(self, ref: MessageRef) -> None:
        """Delete a progress message that nothing replaces."""
        try:
            await self._calls.delete(ref)
        except MessageGone:
            return
        except ChannelError as error:
            self._lost(error)

    async def close(self) -> None:
        """Take all signs away, for at most PATIENCE seconds."""
        for life in self._tasks.values():
            life.end(forgotten=True)
        if tasks := set(self._tasks):
            _, late = await asyncio.wait(tasks, timeout=PATIENCE)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    # ---- news

    async def _noted(self, target: ThreadKey, message_id: str) -> None:
        if not _MESSAGE_ID.fullmatch(message_id):
            return
        try:
            await self._calls.react(target, message_id)
        except (ChannelBusy, ChannelDown):
            raise
        except ChannelError as refusal:
            log.debug("slack: no reaction in %s: %s", target.conversation, refusal)

    def _hear(self, target: ThreadKey, state: Progress) -> None:
        life = self._lives.get(target)
        if life is None:
            life = self._lives[target] = self._born(target)
        sign, life.heard = life.sign, self._monotonic()
        sign.actor = state.actor or sign.actor
        if state.kind == "text":
            sign.grow(state.text)
        else:
            sign.note = drafts.using(state.text) if state.kind == "tool" else drafts.WORKING
        life.news.set()

    def _born(self, target: ThreadKey) -> _Life:
        sign = Sign(
            target,
            self._calls,
            self._monotonic,
            has_status=self._assistant(target),
            may_stream=self._streams and target.conversation not in self._streamless,
        )
        life = _Life(sign=sign, heard=self._monotonic())
        life.task = asyncio.create_task(self._run(life), name="slack sign")
        self._tasks[life.task] = life
        life.task.add_done_callback(self._gone)
        return life

    def _gone(self, task: asyncio.Task[None]) -> None:
        life = self._tasks.pop(task)
        for lives in (self._lives, self._ended):
            if lives.get(life.sign.target) is life:
                del lives[life.sign.target]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("slack: a sign of life broke", exc_info=error)

    # ---- one turn's life

    async def _run(self, life: _Life) -> None:
        """Draw what is new until the turn is over, then wait for its answer and clear up."""
        if not life.sign.has_status:
            await self._quiet(life)
        if self._before is not None and not life.over.is_set():
            await self._before(life.sign.target)
        while not life.over.is_set() and (left := self._left(life)) > 0:
            life.news.clear()
            await self._wait(life.over, await self._draw(life))
            await self._wait(life.news, min(left, life.sign.next_look))
        if life.over.is_set() and life.sign.shown:
            await self._wait(life.forgotten, GRACE)
        async with life.sign.calling:
            if not life.sign.taken:
                life.sign.taken = True
                await self._clear(life)

    async def _quiet(self, life: _Life) -> None:
        """Mere work is worth a message only if it lasts."""
        until = self._monotonic() + QUIET
        while life.sign.note == drafts.WORKING and not life.over.is_set():
            life.news.clear()
            if (left := until - self._monotonic()) <= 0:
                return
            await self._wait(life.news, left)

    async def _draw(self, life: _Life) -> float:
        """Show what is new; the seconds to wait before the next time."""
        sign = life.sign
        async with sign.calling:
            if sign.taken:
                return 0.0
            try:
                return await sign.draw()
            except ChannelError as error:
                self._lost(error)
                if isinstance(error, ChannelBusy | ChannelDown):
                    life.news.set()  # still to be shown
                wait = error.retry_after if isinstance(error, ChannelBusy) else 0.0
                return min(max(EDIT_SECONDS, wait), _LONGEST_PAUSE)
            finally:
                if sign.stream_refused and len(self._streamless) < _REMEMBERED:
                    self._streamless.add(sign.target.conversation)

    async def _clear(self, life: _Life) -> None:
        """Take everything away. A message that says "Working…" for ever is worth a few tries."""
        for pause in RETRIES:
            if await life.sign.clear() or life.forgotten.is_set():
                return
            await self._wait(life.forgotten, pause)

    def _lost(self, error: ChannelError) -> None:
        self.dropped += 1
        log.info("slack: a sign of life was lost: %s", error)

    def _left(self, life: _Life) -> float:
        return LONGEST - (self._monotonic() - life.heard)

    async def _wait(self, event: asyncio.Event, seconds: float) -> None:
        """Wait for the event, so long at most."""
        if event.is_set():
            return
        came, passed = asyncio.ensure_future(event.wait()), asyncio.ensure_future(self._sleep(seconds))
        try:
            await asyncio.wait({came, passed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            came.cancel()
            passed.cancel()
