"""What one turn shows in its thread: "typing", and one message that is edited as the work goes on.

That the bot is typing says all there is to say about mere work. The message is posted once there is more, a
tool or a piece of the answer, and the turn has lasted a moment; an answer that comes at once needs none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from channels.base import ChannelBusy, ChannelDown, ChannelError, MessageGone, MessageRef, ThreadKey
from channels.discord import drafts
from channels.discord.limits import PROGRESS_SECONDS, TYPING_SECONDS

log = logging.getLogger("channels.discord")

Json = dict[str, Any]

QUIET: Final = 1.5  # seconds of a turn in which its answer may come without any message before it
_TRANSIENT = (ChannelBusy, ChannelDown)
_NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class SignCalls:
    """The calls, each of which raises ChannelError.

    post, edit: with what Discord takes as a message (`content`, `flags`, `allowed_mentions`).
    `react(target, message id)` marks a message as seen.
    """

    post: Callable[[ThreadKey, Json], Awaitable[MessageRef]]
    edit: Callable[[MessageRef, Json], Awaitable[None]]
    delete: Callable[[MessageRef], Awaitable[None]]
    typing: Callable[[ThreadKey], Awaitable[None]]
    react: Callable[[ThreadKey, str], Awaitable[None]]


class Sign:
    """What one turn shows. Draw under `calling`, and not any more once it is `taken`."""

    def __init__(self, target: ThreadKey, calls: SignCalls, monotonic: Callable[[], float]) -> None:
        self.target, self.calling = target, asyncio.Lock()
        self.taken = False  # what is shown belongs to somebody else
        self.ref: MessageRef | None = None
        self.note, self.text = "", ""
        self._calls, self._monotonic = calls, monotonic
        self._born, self._posted = monotonic(), 0.0
        self._types_at = self._born  # when "typing" is due again
        self._drawn: Json | None = None
        self._left: list[MessageRef] = []  # messages that something else has taken the place of

    # ---- what is known

    @property
    def age(self) -> float:
        """Seconds since the message was posted."""
        return self._monotonic() - self._posted

    @property
    def next_look(self) -> float:
        """Seconds after which it must be drawn again although nothing is new."""
        now = self._monotonic()
        quiet = self._born + QUIET - now
        first = quiet if self.ref is None and (self.note or self.text) and quiet > 0 else _NEVER
        return max(min(self._types_at - now, first), 0.0)

    def use(self, tool: str) -> None:
        """A tool is at work; "": the model is. The latter is worth words only below something else."""
        self.note = drafts.using(tool) if tool else drafts.WORKING if self.note or self.text else ""

    def grow(self, text: str) -> None:
        """The answer so far."""
        self.text, self.note = text, ""

    # ---- drawing

    async def draw(self) -> float:
        """Show what is new; the seconds to leave it at that. Raises ChannelError."""
        try:
            return PROGRESS_SECONDS if await self._show_message() else 0.0
        finally:  # the message first: it takes "typing" away
            await self._type()

    async def clear(self) -> bool:
        """Take the message away; whether it is gone or will never be."""
        if self.ref is not None:
            self._left.append(self.ref)
            self.ref = None
        await self.sweep()
        return not self._left

    async def sweep(self) -> None:
        """Delete what is left behind; what cannot be deleted now is tried again."""
        left, self._left = self._left, []
        for ref in left:
            try:
                await self._calls.delete(ref)
            except _TRANSIENT as error:
                self._left.append(ref)
                log.debug("discord: a progress message was not deleted: %s", error)
            except ChannelError as refusal:
                log.debug("discord: a progress message cannot be deleted: %s", refusal)

    async def _type(self) -> None:
        now = self._monotonic()
        if now < self._types_at:
            return
        self._types_at = now + TYPING_SECONDS
        try:
            await self._calls.typing(self.target)
        except _TRANSIENT as error:
            log.debug("discord: no typing in %s: %s", self.target.conversation, error)
        except ChannelError as refusal:
            self._types_at = _NEVER
            log.debug("discord: no typing in %s: %s", self.target.conversation, refusal)

    async def _show_message(self) -> bool:
        """Bring the message up to date; whether that took a call."""
        await self.sweep()
        drawn = drafts.sign(self.note, self.text)
        waits = self.ref is None and self._monotonic() < self._born + QUIET
        if drawn is None or drawn == self._drawn or waits:
            return False
        before, self._drawn = self._drawn, drawn  # what is refused for good is not tried again
        try:
            await self._put(drawn)
        except _TRANSIENT:
            self._drawn = before
            raise
        return True

    async def _put(self, drawn: Json) -> None:
        if self.ref is not None:
            try:
                await self._calls.edit(self.ref, drawn)
            except MessageGone:  # or not to be edited any more
                self._left.append(self.ref)
                self.ref = None
        if self.ref is None:
            self.ref = await self._calls.post(self.target, drawn)
            self._posted = self._monotonic()
            if self._types_at != _NEVER:
                self._types_at = self._posted
            await self.sweep()
