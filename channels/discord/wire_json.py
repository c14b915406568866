"""JSON of Discord, read with no trust in it. Pure."""

from __future__ import annotations

from channels.discord import refs
from channels.tolerant import TolerantNode, needed


class Node(TolerantNode):
    """A piece of JSON that knows ids and flags."""

    __slots__ = ()

    def id(self, *path: str) -> str:
        """The id there, "" for none."""
        text = self.text(*path)
        return text if refs.is_id(text) else ""

    def need_id(self, *path: str) -> str:
        """The id there. Raises Malformed when there is none."""
        return needed(self.id(*path), path)

    def has_flag(self, bit: int) -> bool:
        """Whether `flags` has this bit."""
        return bool((self.number("flags") or 0) & bit)
