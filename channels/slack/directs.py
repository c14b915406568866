"""Our direct conversations with people, and the places that name a person in place of one."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from channels.base import ThreadKey
from channels.slack import refs
from channels.slack.calls import Calls

_KEPT: Final = 1000  # people remembered


class Directs:
    """Slack opens such a conversation once and keeps it."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._known: OrderedDict[str, str] = OrderedDict()

    async def of(self, user: str) -> str:
        """The id of the conversation with this person. Raises ChannelError."""
        found = self._known.get(user)
        if found is None:
            found = self._known[user] = await self._calls.direct(user)
        self._known.move_to_end(user)
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return found

    async def place(self, target: ThreadKey) -> ThreadKey:
        """Where that really is: `slack:T1:U5` is our conversation with U5. Raises ChannelError."""
        if not refs.is_person(target.conversation):
            return target
        return target._replace(conversation=await self.of(target.conversation))
