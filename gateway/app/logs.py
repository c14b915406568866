"""The logs of the sessions that somebody looks at: append-only, so what was read once stays true."""

from __future__ import annotations

from collections import OrderedDict

from gateway.messages import Message
from gateway.store.base import Store

KEPT = 32  # sessions


class Logs:
    """Reads only what is new of a log. Lists that are handed out are not to be changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, list[Message]] = OrderedDict()

    async def read(self, session_id: str) -> list[Message]:
        """The whole log as it is now. Raises StoreError."""
        start = len(self._known.get(session_id, ()))
        new = await self._store.log(session_id, start)
        known = self._known.setdefault(session_id, [])
        known.extend(new[len(known) - start :])  # somebody else may have read the same meanwhile
        self._known.move_to_end(session_id)
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
        return known
