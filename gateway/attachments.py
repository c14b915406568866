"""Files that come with messages: stored by reference at once, fetched before the turn that reads them.

A message is accepted within milliseconds, a file may take seconds: so the log holds a path under a
generated name and the platform's handle (`source`), and whoever runs the turn makes the path exist.
What could not be fetched stays a reference without a file; models are told so in words.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from gateway.messages import File, Image, Message

FOLDER = "files"  # below the data folder
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})  # what models can see


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """One file of a message, not yet fetched. `size` in bytes, 0 when the platform does not say."""

    source: str
    name: str
    media_type: str
    size: int


def blocks(attached: Sequence[Attached]) -> tuple[Image | File, ...]:
    """References to these files, under names that nobody can guess or choose."""
    return tuple(_block(one) for one in attached)


def _block(one: Attached) -> Image | File:
    suffix = PurePosixPath(one.name).suffix.lower()
    safe = suffix if suffix.isascii() and suffix[1:].isalnum() and len(suffix) <= 6 else ""
    path = f"{FOLDER}/{secrets.token_hex(16)}{safe}"
    name = one.name[:200]
    if one.media_type in IMAGES:
        return Image(path=path, media_type=one.media_type, name=name, source=one.source)
    return File(path=path, media_type=one.media_type, name=name, size=one.size, source=one.source)


def to_fetch(messages: Sequence[Message]) -> Iterator[Image | File]:
    """The references among these messages that come from a platform."""
    for message in messages:
        for block in message.content:
            if isinstance(block, Image | File) and block.source:
                yield block
