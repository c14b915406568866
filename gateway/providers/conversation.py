"""What every vendor's wire form of a conversation has in common. Pure but for the reading of files."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from gateway.messages import File, Image, Json, Message, ToolResult
from gateway.providers.base import ModelRequest, ToolSpec

Load = Callable[[Image | File], str | None]

# What a model reads where the log has a gap.
INTERRUPTED = "interrupted; may or may not have run"
NO_OUTPUT = "(no output)"
BEGINNING = "(The beginning of this conversation is not shown.)"
GO_ON = "(Please go on.)"

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def nothing_loaded(_: Image | File) -> None:
    """A loader for conversations without pictures and files: each becomes a line of text."""


def visible(messages: Sequence[Message]) -> Sequence[Message]:
    """What the last summary leaves. `gateway.history` puts it first already; in a log that still is
    whole it stands for the first `covers` messages, or where it names none, for all before it."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].kind == "summary":
            if index == 0:
                return messages
            rest = messages[min(messages[index].covers or index, index) :]
            return [messages[index], *(m for m in rest if m.kind not in ("summary", "trim"))]
    return messages


def files_of(message: Message) -> list[Image | File]:
    """The pictures and files of a message, those of its results included."""
    found: list[Image | File] = []
    for block in message.content:
        if isinstance(block, Image | File):
            found.append(block)
        elif isinstance(block, ToolResult):
            found += block.parts
    return found


def named_file(part: Image | File, *, gone: bool) -> str:
    """The line of text that stands for a picture or file that is not shown itself."""
    kind = "picture" if part.media_type.startswith("image/") else "file"
    state = ": it could not be read" if gone else f", saved as {part.path}"
    return f"[{kind} {part.name or part.path}, {part.media_type}{state}]"


def clean(text: str) -> str:
    """Half a surrogate pair is not text: it cannot be sent, so a replacement character goes instead."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def wire_id(id: str) -> str:
    """A call's id in characters that every vendor takes, at most 64."""
    if _ID.fullmatch(id):
        return id
    return "call_" + hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def unused(id: str, used: set[str], most: int = 64) -> str:
    """The id itself, or with a number behind it where it is taken; it is taken from now on."""
    candidate, number = id, 1
    while candidate in used:
        number += 1
        tail = f"_{number}"
        candidate = id[: most - len(tail)] + tail
    used.add(candidate)
    return candidate


def read_file(folder: Path, part: Image | File, most: int) -> str | None:
    """Base64 of a file below the folder; None for one that is gone, outside, or of more than `most` bytes."""
    root = folder.resolve()
    path = (root / part.path).resolve()
    if not path.is_relative_to(root) or not path.is_file() or path.stat().st_size > most:
        return None
    return base64.b64encode(path.read_bytes()).decode()


Limit = TypeVar("Limit", contravariant=True)


class Builds(Protocol[Limit]):
    """A vendor's builder of request bodies."""

    def unread(self, messages: Sequence[Message]) -> list[Image | File]: ...

    def build(
        self, messages: Sequence[Message], *, system: str, tools: Sequence[ToolSpec], max_tokens: Limit
    ) -> Json: ...


class AtHand:
    """Has the pictures and files of a conversation at hand while its body is built. `most`: bytes of one."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most = folder, most
        self._read: dict[str, str | None] = {}

    def load(self, part: Image | File) -> str | None:
        """For the builder. See Load."""
        return self._read.get(part.path)

    async def body(self, builder: Builds[Limit], request: ModelRequest, max_tokens: Limit) -> Json:
        """The body of this request. What was read is let go again: the builder remembers it."""
        read = {
            part.path: await asyncio.to_thread(read_file, self._folder, part, self._most)
            for part in builder.unread(request.messages)
        }
        self._read = read  # no await until the body is built, so another session cannot interfere
        body = builder.build(
            request.messages, system=request.system, tools=request.tools, max_tokens=max_tokens
        )
        self._read = {}
        return body
