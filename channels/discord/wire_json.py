"""A way to read JSON that trusts nothing in it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from channels.discord import refs


class Malformed(Exception):
    """A shape that we know lacks what it must have. Never leaves the parser."""


_SURROGATES: Final = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


class Node:
    """A piece of JSON. Everything that is not there or of another type reads as empty."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def at(self, *path: str) -> Node:
        value: object = self.value
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return Node(value)

    def __bool__(self) -> bool:
        return isinstance(self.value, Mapping) and bool(self.value)

    def text(self, *path: str) -> str:
        """The string there, without halves of surrogate pairs, which no store takes."""
        value = self.at(*path).value
        if not isinstance(value, str):
            return ""
        return value if value.isascii() else value.translate(_SURROGATES)

    def need(self, *path: str) -> str:
        """The string there. Raises Malformed when it is missing or empty."""
        text = self.text(*path)
        if not text:
            raise Malformed(".".join(path))
        return text

    def id(self, *path: str) -> str:
        """The id there, "" for none."""
        text = self.text(*path)
        return text if refs.is_id(text) else ""

    def need_id(self, *path: str) -> str:
        """The id there. Raises Malformed when there is none."""
        own_id = self.id(*path)
        if not own_id:
            raise Malformed(".".join(path))
        return own_id

    def number(self, *path: str) -> int | None:
        """The whole number there."""
        value = self.at(*path).value
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def has_flag(self, bit: int) -> bool:
        """Whether `flags` has this bit."""
        return bool((self.number("flags") or 0) & bit)

    def flag(self, *path: str) -> bool:
        return self.at(*path).value is True

    def nodes(self, *path: str) -> Iterator[Node]:
        value = self.at(*path).value
        yield from map(Node, value if isinstance(value, list) else ())

    def items(self, *path: str) -> Iterator[tuple[str, Node]]:
        value = self.at(*path).value
        for key, item in value.items() if isinstance(value, Mapping) else ():
            yield str(key), Node(item)
