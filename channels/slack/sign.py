"""The sign of life of one turn: a status, a progress message or a stream, and the calls that draw it.

When to draw is progress.py's business. Nothing here raises for what cannot be shown in one way while there
is another: a thread without a status gets a message, a stream that is refused or dead gives way to edits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from channels.base import Actor, ChannelBusy, ChannelDown, ChannelError, MessageGone, MessageRef, ThreadKey
from channels.render.slack import SlackText
from channels.slack import drafts
from channels.slack.limits import STATUS_SECONDS, STREAM_SECONDS, STREAM_TEXT

log = logging.getLogger("channels.slack")

EDIT_SECONDS = 3.0  # between two edits of one progress message
APPEND_SECONDS = 1.0  # between two pieces of one stream
REFRESH = STATUS_SECONDS - 20.0
_TRANSIENT = (ChannelBusy, ChannelDown)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignCalls:
    """The calls, each of which raises ChannelError.

    `status(target, words)`, with "" to clear it. `start(target, markdown, actor)` begins a stream for that
    person. `react(target, message id)` marks a message as seen.
    """

    post: Callable[[ThreadKey, SlackText], Awaitable[MessageRef]]
    edit: Callable[[MessageRef, SlackText], Awaitable[None]]
    delete: Callable[[MessageRef], Awaitable[None]]
    status: Callable[[ThreadKey, str], Awaitable[None]]
    start: Callable[[ThreadKey, str, Actor | None], Awaitable[MessageRef]]
    append: Callable[[MessageRef, str], Awaitable[None]]
    stop: Callable[[MessageRef], Awaitable[None]]
    react: Callable[[ThreadKey, str], Awaitable[None]]


class Sign:
    """What one turn shows. Draw under `calling`, and not any more once it is `taken`.

    has_status: the thread is an assistant's. may_stream: Slack has refused no stream here yet.
    """

    def __init__(
        self,
        target: ThreadKey,
        calls: SignCalls,
        monotonic: Callable[[], float],
        *,
        has_status: bool,
        may_stream: bool,
    ) -> None:
        self.target, self.calling = target, asyncio.Lock()
        self.taken = False  # what is shown belongs to somebody else
        self.stream_refused = False
        self.ref: MessageRef | None = None
        self.note, self.text = drafts.WORKING, ""
        self.actor: Actor | None = None
        self._calls, self._monotonic = calls, monotonic
        self._has_status, self._may_stream = has_status, may_stream
        self._mode: Literal["none", "message", "stream"] = "none"
        self._posted = self._status_at = 0.0
        self._status = self._told = ""  # the status; what the stream says is done now
        self._sent = self._held = 0  # characters of `text` in the stream; characters in it
        self._drawn: SlackText | None = None
        self._left: list[MessageRef] = []  # messages that something else has taken the place of

    # ---- what is known

    @property
    def has_status(self) -> bool:
        """Whether the thread has a status."""
        return self._has_status

    @property
    def shown(self) -> bool:
        """Whether there is anything to take away."""
        return self.ref is not None or bool(self._status)

    @property
    def age(self) -> float:
        """Seconds since the message was posted."""
        return self._monotonic() - self._posted

    @property
    def next_look(self) -> float:
        """Seconds after which it must be drawn again although nothing is new."""
        looks = [REFRESH - (self._monotonic() - self._status_at)] if self._status else []
        if self._mode == "stream":
            looks.append(STREAM_SECONDS - self.age)
        return max(min(looks, default=float("inf")), 0.0)

    def grow(self, text: str) -> None:
        """The answer so far; another step's, if it does not go on from the last."""
        if not text.startswith(self.text):
            self._sent = 0
        self.text, self.note = text, ""

    # ---- drawing

    async def draw(self) -> float:
        """Show what is new; the seconds to leave it at that. Raises ChannelError."""
        if self._mode == "stream" and self.age >= STREAM_SECONDS:
            await self._end_stream()
        await self._sweep()
        streaming = await self._stream()
        if self._has_status:
            await self._show_status()
        if not streaming and (not self._has_status or self._mode == "message"):
            await self._show_message()
        return APPEND_SECONDS if streaming else EDIT_SECONDS

    async def hand_over(self) -> None:
        """Leave an ordinary message behind that can be edited, and no status."""
        await self._clear_status()
        await self._end_stream()
        await self._sweep()

    async def clear(self) -> bool:
        """Take everything away; whether all of it is gone or will never be."""
        await self._clear_status()
        await self._end_stream()
        if self.ref is not None:
            self._left.append(self.ref)
            self.ref = None
        await self._sweep()
        return not self._left

    async def _sweep(self) -> None:
        """Delete what is left behind; what cannot be deleted now is tried again."""
        left, self._left = self._left, []
        for ref in left:
            try:
                await self._calls.delete(ref)
            except _TRANSIENT as error:
                self._left.append(ref)
                log.debug("slack: a progress message was not deleted: %s", error)
            except ChannelError as refusal:
                log.debug("slack: a progress message cannot be deleted: %s", refusal)

    # ---- the status of an assistant thread

    async def _show_status(self) -> None:
        if not self.note and self._mode == "stream":
            await self._clear_status()
            return
        words = drafts.status(self.note or drafts.WRITING)
        if words == self._status and self._monotonic() - self._status_at < REFRESH:
            return
        try:
            await self._calls.status(self.target, words)
        except _TRANSIENT:
            raise
        except ChannelError as refusal:  # no assistant thread after all
            self._has_status, self._status = False, ""
            log.debug("slack: no status in %s: %s", self.target.conversation, refusal)
        else:
            self._status, self._status_at = words, self._monotonic()

    async def _clear_status(self) -> None:
        if not self._status:
            return
        self._status = ""
        try:
            await self._calls.status(self.target, "")
        except ChannelError as error:  # it vanishes by itself
            log.debug("slack: a status was not cleared: %s", error)

    # ---- the stream

    async def _stream(self) -> bool:
        """Bring the stream up to date; False when there is none (any more)."""
        if self._mode == "stream":
            return await self._append()
        reachable = self.actor is not None or self.target.conversation.startswith("D")
        return self._may_stream and reachable and bool(self.text.strip()) and await self._start()

    async def _start(self) -> bool:
        piece = drafts.streamed(self.text, 0, len(self.text))
        try:
            ref = await self._calls.start(self.target, piece, self.actor)
        except ChannelError as refusal:
            self._may_stream, self.stream_refused = False, not isinstance(refusal, _TRANSIENT)
            log.info("slack: no stream in %s: %s", self.target.conversation, refusal)
            return False
        if self.ref is not None:
            self._left.append(self.ref)
        self.ref = ref
        self._mode, self._posted, self._status = "stream", self._monotonic(), ""  # Slack clears the status
        self._sent, self._held = len(self.text), len(piece)
        await self._sweep()
        return True

    async def _append(self) -> bool:
        end, told = len(self.text), self.note
        piece = drafts.streamed(self.text, self._sent, end, self._held)
        if piece and (self._sent == 0 or self._told):
            piece = f"\n\n{piece}"
        if told and told != self._told and not self._has_status and self._held + len(piece) < STREAM_TEXT:
            piece += f"\n\n_{drafts.streamed(told, 0, len(told))}_"
        if not piece:
            return True
        try:
            await self._calls.append(self.ref or MessageRef(""), piece)
        except _TRANSIENT:
            raise
        except ChannelError as refusal:
            log.info("slack: a stream in %s is dead: %s", self.target.conversation, refusal)
            self._mode, self._may_stream = "message", False
            return False
        self._sent, self._held, self._told = end, self._held + len(piece), told
        return True

    async def _end_stream(self) -> None:
        """Make an ordinary message of it."""
        if self._mode != "stream":
            return
        self._mode, self._may_stream = "message", False
        try:
            await self._calls.stop(self.ref or MessageRef(""))
        except ChannelError as error:  # most likely it has ended by itself
            log.debug("slack: a stream was not ended: %s", error)

    # ---- the progress message

    async def _show_message(self) -> None:
        drawn = drafts.sign("" if self._has_status else self.note, self.text)
        if drawn is None or drawn == self._drawn:
            return
        if self.ref is not None:
            try:
                await self._calls.edit(self.ref, drawn)
            except MessageGone:  # or not to be edited any more
                self._left.append(self.ref)
                self.ref, self._mode = None, "none"
        if self.ref is None:
            self.ref = await self._calls.post(self.target, drawn)
            self._mode, self._posted = "message", self._monotonic()
            await self._sweep()
        self._drawn = drawn
