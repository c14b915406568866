"""The built-in tools `files`: list, read and write in the session's own folder.

What people have attached is there too, below `attachments/`, to be read and not to be changed.
"""

from __future__ import annotations

import asyncio
import difflib
import mimetypes
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Final

import msgspec

from gateway.errors import ToolError
from gateway.messages import Json
from gateway.tools.base import CallContext, Preview, Tool, tool
from gateway.tools.ports import Attachments
from gateway.tools.rooted import Entry, entries, read_bytes, size_of, steps, write_bytes

SESSIONS: Final = "sessions"  # below the data folder
ATTACHMENTS: Final = "attachments"  # below the session's folder; not really there
MOST_READ: Final = 5_000_000  # bytes of a text that is paged through
PAGE: Final = 20_000  # characters that one call returns
MOST_WRITTEN: Final = 1_000_000  # bytes of one file
MOST_FILES: Final = 500  # of one session
MOST_BYTES: Final = 50_000_000  # of one session, all files together
MOST_DIFFED: Final = 1_500  # lines; comparing takes the longer the more there are
_SESSION: Final = re.compile(r"[A-Za-z0-9_-]{1,80}", re.ASCII)

FilePath = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A file that a model named: `path` is below `root`, `name` is for people."""

    root: Path
    path: str
    name: str
    media_type: str


class Room:
    """The folders of sessions below the data folder."""

    def __init__(self, data_dir: Path, attachments: Attachments) -> None:
        self.data_dir, self._attachments = data_dir, attachments

    def folder(self, session_id: str) -> Path:
        """A session's own folder; it need not be there yet. Raises ToolError."""
        if not _SESSION.fullmatch(session_id):
            raise ToolError("there is no folder outside of a session")
        return self.data_dir / SESSIONS / session_id

    async def find(self, session_id: str, path: str) -> Found:
        """The file that `path` names. Raises ToolError for a path that leads out of the folder."""
        parts, folder = steps(path), self.folder(session_id)
        attached = await self.attached(session_id)
        here = "/".join(parts)
        for name, found in attached.items():
            if here in (name, found.path):
                return found
        if parts[0] == ATTACHMENTS:
            raise ToolError(f"there is no attachment {path!r}; list_files shows what there is")
        media_type = mimetypes.guess_type(parts[-1])[0] or "application/octet-stream"
        return Found(root=folder, path=here, name=parts[-1], media_type=media_type)

    async def attached(self, session_id: str) -> dict[str, Found]:
        """What people have sent, by its path for the model."""
        named: dict[str, Found] = {}
        for one in await self._attachments.of(session_id):
            path = _free(f"{ATTACHMENTS}/{_plain(one)}", named)
            named[path] = Found(
                root=self.data_dir,
                path=one["path"],
                name=one["name"] or PurePosixPath(one["path"]).name,
                media_type=one["media_type"],
            )
        return named


def _plain(one: Json) -> str:
    """A name without folders and signs that a path cannot hold."""
    name = PurePosixPath(one["name"].replace("\\", "/")).name or PurePosixPath(one["path"]).name
    return "".join(c for c in name if c.isprintable()).lstrip(".~ ")[:150] or "file"


def _free(path: str, taken: dict[str, Found]) -> str:
    stem, suffix = str(PurePosixPath(path).with_suffix("")), PurePosixPath(path).suffix
    number, free = 1, path
    while free in taken:
        number += 1
        free = f"{stem}-{number}{suffix}"
    return free


def file_tools(room: Room) -> tuple[Tool, ...]:
    """`list_files`, `read_file` and `write_file`."""

    @tool(safe=True)
    async def list_files(context: CallContext) -> str:
        """List the files of this conversation: those you have written, and what people have attached."""
        folder = room.folder(context.session_id)
        own = await asyncio.to_thread(entries, folder, MOST_FILES)
        lines = [_line(entry) for entry in own]
        for path, found in (await room.attached(context.session_id)).items():
            size = await asyncio.to_thread(_size, found)
            lines.append(f"{path} ({'not here' if size is None else f'{size:,} bytes'}, {found.media_type})")
        return "\n".join(lines) or "There are no files yet."

    @tool(safe=True)
    async def read_file(
        path: FilePath, context: CallContext, offset: Annotated[int, msgspec.Meta(ge=0)] = 0
    ) -> str:
        """Read a text file of this conversation. A long one comes in pieces.

        Args:
            path: the file, as list_files shows it
            offset: the first character that is wanted; 0 is the beginning
        """
        found = await room.find(context.session_id, path)
        data = await asyncio.to_thread(read_bytes, found.root, found.path, MOST_READ)
        text = as_text(data)
        if text is None:
            return f"{path} is no text: {len(data):,} bytes, {found.media_type}"
        piece = text[offset : offset + PAGE]
        if len(piece) == len(text):
            return text
        return f"[characters {offset} to {offset + len(piece)} of {len(text)}]\n{piece}"

    return list_files, read_file, _write_tool(room)


def _write_tool(room: Room) -> Tool:
    def preview(args: Json, session_id: str) -> Preview:
        return difference(room.folder(session_id), args["path"], args["content"])

    @tool(idempotent=True)
    async def write_file(path: FilePath, content: str, context: CallContext) -> str:
        """Write a text file of this conversation, whole: what was in it before is replaced.

        Args:
            path: where to, such as notes/plan.md; folders are made
            content: everything that is to be in the file
        """
        if steps(path)[0] == ATTACHMENTS:
            raise ToolError("what people have attached is not changed; write to another path")
        data = content.encode("utf-8", "replace")
        folder = room.folder(context.session_id)
        await asyncio.to_thread(_write, folder, path, data)
        return f"wrote {len(data):,} bytes to {path}"

    return replace(write_file, preview_in=preview)


def _write(folder: Path, path: str, data: bytes) -> None:
    if len(data) > MOST_WRITTEN:
        raise ToolError(f"that is {len(data):,} bytes; a file has at most {MOST_WRITTEN:,}")
    here = "/".join(steps(path))
    others = [entry for entry in entries(folder, MOST_FILES + 1) if entry.path != here]
    if len(others) >= MOST_FILES:
        raise ToolError(f"there are {len(others)} files already, and no more than {MOST_FILES} are kept")
    if sum(entry.size for entry in others) + len(data) > MOST_BYTES:
        raise ToolError(f"the files of a conversation have at most {MOST_BYTES:,} bytes together")
    write_bytes(folder, path, data)


def difference(folder: Path, path: str, content: str) -> Preview:
    """What writing this would change, as lines with + and -."""
    try:
        before: str | None = as_text(read_bytes(folder, path, MOST_WRITTEN))
        there = True
    except ToolError:
        before, there = "", False
    new = content.splitlines()
    if before is None:
        return Preview(text=f"{path}: replaces a file that is no text with {len(new)} lines")
    old = before.splitlines()
    if max(len(old), len(new)) > MOST_DIFFED:
        return Preview(text=f"{path}: replaces {len(old)} lines with {len(new)}; too long to compare here")
    if there and before == content:
        return Preview(text=f"{path}: changes nothing")
    names = (path if there else "(no such file)", path)
    lines: Sequence[str] = list(difflib.unified_diff(old, new, *names, lineterm=""))
    return Preview(text="\n".join(lines) or f"{path}: an empty file", kind="diff")


def as_text(data: bytes) -> str | None:
    """The text of a file; None for one that is none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _line(entry: Entry) -> str:
    return f"{entry.path} ({entry.size:,} bytes)"


def _size(found: Found) -> int | None:
    try:
        return size_of(found.root, found.path)
    except ToolError:
        return None
