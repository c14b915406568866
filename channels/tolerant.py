"""A way to read JSON that trusts nothing in it. Pure. A platform adds how it reads its own ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Self


class Malformed(Exception):
    """A shape that we know lacks what it must have. Never leaves the parser."""


_SURROGATES: Final = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


class TolerantNode:
    """A piece of JSON. Everything that is not there or of another type reads as empty. What is found in
    it is of the same class."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def at(self, *path: str) -> Self:
        value: object = self.value
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return type(self)(value)

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
        return needed(self.text(*path), path)

    def number(self, *path: str) -> int | None:
        """The whole number there."""
        value = self.at(*path).value
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def flag(self, *path: str) -> bool:
        return self.at(*path).value is True

    def nodes(self, *path: str) -> Iterator[Self]:
        value = self.at(*path).value
        yield from map(type(self), value if isinstance(value, list) else ())

    def items(self, *path: str) -> Iterator[tuple[str, Self]]:
        value = self.at(*path).value
        for key, item in value.items() if isinstance(value, Mapping) else ():
            yield str(key), type(self)(item)


def needed(text: str, path: tuple[str, ...]) -> str:
    """The text that was found there. Raises Malformed, which names the path, when it is empty."""
    if not text:
        raise Malformed(".".join(path))
    return text
