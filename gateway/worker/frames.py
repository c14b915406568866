"""Frames on a pipe: four bytes of length, big-endian, then so many bytes. Pure, and the two readers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Final

HEAD: Final = 4
LARGEST: Final = 64 * 1024 * 1024  # bytes of one frame; a longer one is a mistake or an attack


class BrokenFrame(Exception):
    """What arrived is no frame, or ended in the middle of one. There is no way to go on after it."""


def packed(body: bytes) -> bytes:
    """One frame. Raises BrokenFrame for a body that nobody would accept."""
    if len(body) > LARGEST:
        raise BrokenFrame(f"a frame of {len(body)} bytes; the most is {LARGEST}")
    return len(body).to_bytes(HEAD, "big") + body


def _length(head: bytes) -> int:
    length = int.from_bytes(head, "big")
    if length > LARGEST:
        raise BrokenFrame(f"a frame of {length} bytes is announced; the most is {LARGEST}")
    return length


class Unpacker:
    """Bytes in pieces of any size go in, bodies come out."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The bodies that are whole now. Raises BrokenFrame."""
        self._held += piece
        while len(self._held) >= HEAD:
            end = HEAD + _length(bytes(self._held[:HEAD]))
            if len(self._held) < end:
                return
            body = bytes(self._held[HEAD:end])
            del self._held[:end]
            yield body

    @property
    def midway(self) -> bool:
        """Whether the end of the pipe would cut a frame."""
        return bool(self._held)


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """The next body, None at the end of the pipe. Raises BrokenFrame."""
    try:
        head = await reader.readexactly(HEAD)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise BrokenFrame("the pipe ended in the middle of a frame") from error
        return None
    try:
        return await reader.readexactly(_length(head))
    except asyncio.IncompleteReadError as error:
        raise BrokenFrame("the pipe ended in the middle of a frame") from error


def write_all(descriptor: int, data: bytes) -> None:
    """Blocking. Raises OSError when nobody reads any more."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
