"""Signs of life in chat threads while a turn runs. Best effort: a lost one is counted, not repeated.

A turn that is over within QUIET seconds shows none: its answer comes sooner than a sign would help.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from channels.base import Actor, Channel, ChannelError, Progress
from gateway.bridge import actor_out, key_out
from gateway.events import AssistantDelta, AssistantText, Event, SessionStarted, ToolStarted, TurnDone
from gateway.messages import ThreadKey
from gateway.store.rows import Claim

QUIET = 0.15  # seconds
SHOWN = (AssistantDelta, AssistantText, SessionStarted, ToolStarted, TurnDone)  # the others say nothing here
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Sign:
    """What one thread shows: `state` is next, `task` shows it, `begin` starts the first one. `actor`:
    whom the turn answers."""

    state: Progress | None
    actor: Actor | None = None
    begin: asyncio.TimerHandle | None = None
    text: str = ""
    task: asyncio.Task[None] | None = None


class ProgressSigns:
    """One state per thread; the newest wins while a call to the platform is under way."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels
        self._signs: dict[ThreadKey, _Sign] = {}
        self._noting: set[asyncio.Task[None]] = set()
        self.dropped = 0

    def event(self, claim: Claim, event: Event) -> None:
        """Turn one event of a turn into what its thread shows."""
        key = claim.key
        if claim.parent and not isinstance(event, ToolStarted):
            return  # of what works below people see only what it does
        match event:
            case SessionStarted() if key.channel in self._channels and key.channel != "web":
                begin = asyncio.get_running_loop().call_later(QUIET, self._begin, key)
                self._signs[key] = _Sign(
                    state=Progress(kind="thinking"), actor=actor_out(claim.requester), begin=begin
                )
            case TurnDone() if (sign := self._signs.pop(key, None)) is not None:
                self._end(key, sign)
            case AssistantDelta(text=text) if (sign := self._signs.get(key)) is not None:
                sign.text = sign.text + text if text else ""
                if text:
                    self._show(key, sign, Progress(kind="text", text=sign.text))
            case AssistantText() if (sign := self._signs.get(key)) is not None:
                sign.text = ""
            case ToolStarted(tool=tool) if (sign := self._signs.get(key)) is not None:
                self._show(key, sign, Progress(kind="tool", text=tool))
            case _:
                pass

    def noted(self, key: ThreadKey, message_id: str) -> None:
        """A message was taken in and has to wait."""
        if key.channel in self._channels and key.channel != "web":
            sign = _Sign(state=Progress(kind="noted", text=message_id))
            task = asyncio.get_running_loop().create_task(self._tell(key, sign))
            self._noting.add(task)
            task.add_done_callback(self._noting.discard)

    def _begin(self, key: ThreadKey) -> None:
        sign = self._signs.get(key)
        if sign is not None and sign.task is None:
            sign.task = asyncio.get_running_loop().create_task(self._tell(key, sign))

    def _show(self, key: ThreadKey, sign: _Sign, state: Progress) -> None:
        sign.state = state
        if sign.task is not None and sign.task.done():
            sign.task = asyncio.get_running_loop().create_task(self._tell(key, sign))

    def _end(self, key: ThreadKey, sign: _Sign) -> None:
        if sign.begin is not None:
            sign.begin.cancel()
        if sign.task is not None:  # something was shown: take it away
            sign.task = sign.task if not sign.task.done() else None
            sign.state = Progress(kind="idle")
            if sign.task is None:
                sign.task = asyncio.get_running_loop().create_task(self._tell(key, sign))

    async def _tell(self, key: ThreadKey, sign: _Sign) -> None:
        while (state := sign.state) is not None:
            sign.state = None
            state = replace(state, actor=sign.actor)
            channel = self._channels.get(key.channel)
            if channel is None:
                return
            try:
                await channel.progress(key_out(key), state)
            except ChannelError as error:
                self.dropped += 1
                _log.debug("a sign of life was dropped: %s", type(error).__name__)
