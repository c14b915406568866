"""Words for one person's eyes only, by whatever way still reaches them.

Every press and command brings an address that takes five answers within half an hour and needs no
membership of the channel. It is known to the process that took the press; another one, or a later one, posts
an ephemeral message, and where that is refused a direct one.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from channels.base import MessageRef, PayloadRefused, TargetGone, ThreadKey
from channels.slack import refs
from channels.slack.calls import Calls
from channels.slack.limits import RESPONSE_SECONDS, RESPONSE_USES

log = logging.getLogger("channels.slack")

KEPT: Final = 2000  # addresses remembered
_MARGIN: Final = 60.0  # seconds before its end in which an address is not trusted any more
PRIVATE: Final = "private"  # in place of a timestamp: a message that nobody can change


@dataclass(slots=True)
class _Address:
    url: str
    until: float
    uses: int = RESPONSE_USES


class Whispers:
    """All private words of one workspace."""

    def __init__(self, calls: Calls, monotonic: Callable[[], float]) -> None:
        self._calls, self._monotonic = calls, monotonic
        self._known: OrderedDict[str, _Address] = OrderedDict()

    def remember(self, own_id: str, place: ThreadKey, user: str, url: str) -> None:
        """A press or command with this id, of this person, can be answered here."""
        if not url:
            return
        address = _Address(url, self._monotonic() + RESPONSE_SECONDS - _MARGIN)
        for key in (own_id, _latest(place, user)):
            self._known[key] = address
            self._known.move_to_end(key)
        while len(self._known) > KEPT:
            self._known.popitem(last=False)

    async def tell(
        self, own_id: str, place: ThreadKey, user: str, content: Mapping[str, Any], *, seen_in: str = ""
    ) -> MessageRef:
        """Say it once. `own_id`: what it answers, "" for the person's latest there. `seen_in`: the thread
        to say it in, "" for the conversation itself. Raises ChannelError."""
        address = self._address(own_id or _latest(place, user))
        if address is not None:
            address.uses -= 1
            try:
                await self._calls.respond(
                    address.url, {**content, "thread_ts": seen_in} if seen_in else content
                )
            except PayloadRefused as refusal:
                address.uses = 0
                log.info("slack: a response_url is used up: %s", refusal)
            else:
                return refs.pack_ref(place.conversation, PRIVATE)
        try:
            await self._calls.whisper(place._replace(thread=seen_in), user, content)
        except (TargetGone, PayloadRefused) as refusal:
            log.info("slack: no ephemeral message in %s: %s", place.conversation, refusal)
        else:
            return refs.pack_ref(place.conversation, PRIVATE)
        return await self._directly(place, user, content)

    async def _directly(self, place: ThreadKey, user: str, content: Mapping[str, Any]) -> MessageRef:
        channel = await self._calls.direct(user)
        return await self._calls.post(refs.thread_key(place.workspace, channel), content)

    def _address(self, key: str) -> _Address | None:
        address = self._known.get(key)
        if address is None:
            return None
        if address.uses <= 0 or self._monotonic() >= address.until:
            del self._known[key]
            return None
        return address


def _latest(place: ThreadKey, user: str) -> str:
    return f"{place.conversation} {user}"
