"""Signs of life in chat threads while a turn runs. Best effort: a lost one is counted, not repeated."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from channels.base import Channel, ChannelError, Progress
from gateway.bridge import key_out
from gateway.events import AssistantDelta, AssistantText, Event, SessionStarted, ToolStarted, TurnDone
from gateway.messages import ThreadKey
from gateway.store.rows import Claim

_log = logging.getLogger(__name__)


class ProgressSigns:
    """One state per thread; the newest wins while a call to the platform is under way."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels
        self._text: dict[ThreadKey, str] = {}
        self._next: dict[ThreadKey, Progress] = {}
        self._busy: dict[ThreadKey, asyncio.Task[None]] = {}
        self.dropped = 0

    def event(self, claim: Claim, event: Event) -> None:
        """Turn one event of a turn into what its thread shows."""
        key = claim.key
        if key.channel not in self._channels or key.channel == "web":
            return
        state = self._state(key, event)
        if state is None:
            return
        self._next[key] = state
        if key not in self._busy:
            task = asyncio.get_running_loop().create_task(self._show(key))
            self._busy[key] = task
            task.add_done_callback(lambda _: self._busy.pop(key, None))

    def _state(self, key: ThreadKey, event: Event) -> Progress | None:
        match event:
            case SessionStarted():
                return Progress(kind="thinking")
            case AssistantDelta(text=text):
                self._text[key] = self._text.get(key, "") + text
                return Progress(kind="text", text=self._text[key])
            case AssistantText():
                self._text.pop(key, None)
                return None
            case ToolStarted(tool=tool):
                return Progress(kind="tool", text=tool)
            case TurnDone():
                self._text.pop(key, None)
                return Progress(kind="idle")
            case _:
                return None

    async def _show(self, key: ThreadKey) -> None:
        while key in self._next:
            state = self._next.pop(key)
            try:
                await self._channels[key.channel].progress(key_out(key), state)
            except ChannelError as error:
                self.dropped += 1
                _log.debug("a sign of life was dropped: %s", type(error).__name__)
