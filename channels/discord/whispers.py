"""Words for one person's eyes only, while there is a way to say them.

Every press and command brings a token that lives for fifteen minutes. It is known to the process that took
the press. Later, or in another process, what a press came to is on its card; what is meant for somebody alone
goes to their direct messages.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from channels.base import ChannelBusy, ChannelDown, ChannelError, MessageRef, ThreadKey
from channels.discord import refs
from channels.discord.calls import Calls, Json, Upload
from channels.discord.errors import AnswerGone
from channels.discord.limits import EPHEMERAL, TOKEN_SECONDS
from channels.discord.wire_values import Handle

log = logging.getLogger("channels.discord")

KEPT: Final = 2000  # tokens remembered
_MARGIN: Final = 30.0  # seconds before its end in which a token is not trusted any more
_PATIENCE: Final = 5.0  # seconds to wait for the first answer, after which others may follow


@dataclass(slots=True)
class _Way:
    """A token. `thinks`: a deferred answer is still to be filled in."""

    handle: Handle
    place: str
    until: float
    thinks: bool = False
    answered: asyncio.Event = field(default_factory=asyncio.Event)


class Whispers:
    """All private words of one bot."""

    def __init__(self, calls: Calls, monotonic: Callable[[], float]) -> None:
        self._calls, self._monotonic = calls, monotonic
        self._known: OrderedDict[str, _Way] = OrderedDict()

    def remember(self, handle: Handle, place: ThreadKey, user: str, here: str = "") -> None:
        """Something that this person has just done can be answered so, once it had its first answer."""
        way = _Way(handle, here or refs.place_of(place), self._monotonic() + TOKEN_SECONDS - _MARGIN)
        for key in (handle.id, _latest(place, user)):
            self._known[key] = way
            self._known.move_to_end(key)
        while len(self._known) > KEPT:
            self._known.popitem(last=False)

    def answered(self, interaction: str, *, thinks: bool = False) -> None:
        """It had its first answer. `thinks`: a deferred one, for this person's eyes only."""
        way = self._known.get(interaction)
        if way is not None:
            way.thinks = thinks
            way.answered.set()

    def unanswered(self, interaction: str) -> None:
        """Its first answer failed, so nothing can follow it: nobody waits for it any longer."""
        way = self._known.get(interaction)
        if way is not None:
            way.until = 0.0
            way.answered.set()

    def lost(self, interaction: str) -> None:
        """Its first answer was not taken, so none can follow."""
        way = self._known.get(interaction)
        if way is not None:
            way.until = 0.0
            way.answered.set()

    async def follow(self, interaction: str, payload: Json) -> bool:
        """Say it by this interaction's token; False when that is no longer possible. Raises ChannelError."""
        return await self._say(self._way(interaction), payload, ()) is not None

    async def tell(
        self,
        interaction: str,
        place: ThreadKey,
        user: str,
        payload: Json,
        *,
        uploads: Sequence[Upload] = (),
    ) -> MessageRef:
        """Say it once. `interaction`: what it answers, "" for the person's latest there. By a direct
        message where nothing else is possible. Raises ChannelError."""
        way = self._way(interaction) or self._way(_latest(place, user))
        message = await self._say(way, payload, uploads)
        if way is not None and message is not None:
            return refs.pack_ref(way.place, message)
        channel = await self._calls.direct(user)
        return await self._calls.post(channel, payload, uploads=uploads)

    def _way(self, key: str) -> _Way | None:
        way = self._known.get(key)
        if way is not None and self._monotonic() >= way.until:
            del self._known[key]
            return None
        return way

    async def _say(self, way: _Way | None, payload: Json, uploads: Sequence[Upload]) -> str | None:
        """The message's id, None when it cannot be said so."""
        if way is None:
            return None
        try:
            async with asyncio.timeout(_PATIENCE):
                await way.answered.wait()
        except TimeoutError:
            return None
        if way.until <= 0:
            return None
        private: dict[str, Any] = {**payload, "flags": (payload.get("flags") or 0) | EPHEMERAL}
        thought, way.thinks = way.thinks, False
        speak = self._calls.fill_in if thought else self._calls.follow_up
        try:
            return await speak(way.handle, private, uploads=uploads)
        except (ChannelBusy, ChannelDown):
            way.thinks = thought
            raise
        except AnswerGone as refusal:
            way.until = 0.0
            log.info("discord: an interaction can no longer be answered: %s", refusal)
        except ChannelError as refusal:
            log.info("discord: words for one person were refused: %s", refusal)
        return None


def _latest(place: ThreadKey, user: str) -> str:
    return f"{place.conversation} {place.thread} {user}"
