"""Remember what was computed for a value for as long as the value itself is alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class IdentityMemo(Generic[Key, Value]):
    """One computed value per living object, by identity.

    Messages hold dicts, so they have no hash and cannot be keys of a WeakKeyDictionary; they are
    frozen, so identity is enough. An entry leaves with its object.
    """

    __slots__ = ("_compute", "_entries")

    def __init__(self, compute: Callable[[Key], Value]) -> None:
        self._compute = compute
        self._entries: dict[int, tuple[weakref.ref[Key], Value]] = {}

    def __call__(self, key: Key) -> Value:
        """The value of `key`, computed at the first call."""
        entry = self._entries.get(id(key))
        if entry is not None and entry[0]() is key:
            return entry[1]
        value = self._compute(key)
        entries, number = self._entries, id(key)

        def forget(gone: weakref.ref[Key]) -> None:
            held = entries.get(number)
            if held is not None and held[0] is gone:
                del entries[number]

        entries[number] = (weakref.ref(key, forget), value)
        return value

    def __contains__(self, key: Key) -> bool:
        entry = self._entries.get(id(key))
        return entry is not None and entry[0]() is key

    def __len__(self) -> int:
        return len(self._entries)
