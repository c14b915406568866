"""`/memory`: what agents have noted, shown to whom it is about, and deleted at a word."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway import notices
from gateway.messages import Actor, ThreadKey
from gateway.store.base import Store
from gateway.tools.notes import plain_key, seen_at
from gateway.tools.ports import NoteOwner


class Memory:
    """Shows and forgets notes. `is_private`: whether a thread has one person in it; `tenant_of`: the tenant
    that a thread belongs to."""

    def __init__(
        self, store: Store, is_private: Callable[[ThreadKey], bool], tenant_of: Callable[[ThreadKey], str]
    ) -> None:
        self._store, self._is_private, self._tenant_of = store, is_private, tenant_of

    async def carry_out(self, words: Sequence[str], actor: Actor, key: ThreadKey, *, alone: bool) -> str:
        """The answer to `/memory WORDS`. `alone`: nobody else reads it. Raises StoreError."""
        match words:
            case ():
                return await self._show(actor, key, alone=alone or self._is_private(key))
            case ("forget", "all"):
                count = await self._store.forget_notes(self._person(actor, key))
                return notices.forgot_text(count, thread=False)
            case ("forget", "thread"):
                count = await self._store.forget_notes(self._thread(key))
                return notices.forgot_text(count, thread=True)
            case ("forget", *rest) if rest:
                return await self._forget(plain_key(" ".join(rest)), actor, key)
            case _:
                return notices.MEMORY_USAGE

    async def _show(self, actor: Actor, key: ThreadKey, *, alone: bool) -> str:
        every = await self._store.notes(self._person(actor, key))
        about = seen_at(every, key, alone=alone)
        here = await self._store.notes(self._thread(key))
        return notices.notes_text(about, here, len(every) - len(about))

    async def _forget(self, key: str, actor: Actor, thread: ThreadKey) -> str:
        """The person's own note, else the thread's."""
        for owner in (self._person(actor, thread), self._thread(thread)):
            if await self._store.forget_notes(owner, key):
                return notices.FORGOT.format(key=key)
        return notices.NO_SUCH_NOTE.format(key=key)

    def _person(self, actor: Actor, key: ThreadKey) -> NoteOwner:
        return NoteOwner.person(actor, self._tenant_of(key))

    def _thread(self, key: ThreadKey) -> NoteOwner:
        return NoteOwner.of_thread(key, self._tenant_of(key))
