"""Files below one folder, and never outside it: names come from models.

Every step of a path is opened by itself, relative to the folder before it, and no step may be a link.
So neither `..` nor an absolute path nor a link leads out, also not one that appears in between.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import ToolError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # NONBLOCK: a pipe must not hang us
LONGEST_PATH = 400
DEEPEST = 12
_PARTIAL = ".partial-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file below a folder; `size` in bytes."""

    path: str
    size: int


def steps(path: str) -> tuple[str, ...]:
    """The steps of a relative path. Raises ToolError for one that could lead out."""
    # Signs that are not printable make a name look like another one: "\u202etxt.exe" shows as "exe.txt".
    if not path.isprintable() or len(path) > LONGEST_PATH:
        raise ToolError(f"{path[:60]!r} is no path: at most {LONGEST_PATH} printable characters")
    if path.startswith(("/", "~")) or "\\" in path:
        raise ToolError(f"{path!r} is outside the folder; give a path inside it, like notes/plan.md")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ToolError(f"{path!r} leads out of the folder; give a path inside it, like notes/plan.md")
    if not parts or len(parts) > DEEPEST:
        raise ToolError(f"{path!r} names no file here")
    return parts


@contextmanager
def _folder(root: Path, parts: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
    """The descriptor of a folder below `root`. Raises OSError."""
    if make:
        root.mkdir(parents=True, exist_ok=True)
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, mode=0o700, dir_fd=at)
            below = os.open(part, _FOLDER, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def size_of(root: Path, path: str) -> int:
    """The bytes of a file. Raises ToolError when there is none."""
    with _opened(root, path) as handle:
        return os.fstat(handle).st_size


def read_bytes(root: Path, path: str, most: int) -> bytes:
    """The content of a file of at most `most` bytes. Raises ToolError."""
    with _opened(root, path) as handle:
        size = os.fstat(handle).st_size
        if size > most:
            raise ToolError(f"{path!r} has {size:,} bytes; at most {most:,} can be read")
        with os.fdopen(os.dup(handle), "rb") as stream:
            data = stream.read(most + 1)
    if len(data) > most:  # it grew meanwhile
        raise ToolError(f"{path!r} has more than {most:,} bytes; it cannot be read")
    return data


@contextmanager
def _opened(root: Path, path: str) -> Iterator[int]:
    *above, name = steps(path)
    try:
        with _folder(root, tuple(above)) as at:
            handle = os.open(name, _FILE, dir_fd=at)
    except OSError as error:
        raise ToolError(_why(path, error)) from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ToolError(f"{path!r} is no file")
        yield handle
    finally:
        os.close(handle)


def _why(path: str, error: OSError) -> str:
    match error.errno:
        case errno.ELOOP | errno.ENOTDIR:
            return f"{path!r} leads through a link or a file; there is no such file here"
        case errno.ENOENT:
            return f"there is no file {path!r} here"
        case errno.EISDIR:
            return f"{path!r} is a folder"
        case _:
            return f"{path!r} cannot be opened: {os.strerror(error.errno or 0)}"


def write_bytes(root: Path, path: str, data: bytes) -> None:
    """Write a file whole or not at all; folders on the way are made. Raises ToolError."""
    *above, name = steps(path)
    partial = f"{_PARTIAL}{secrets.token_hex(8)}"
    try:
        with _folder(root, tuple(above), make=True) as at:
            _refuse_other_than_file(at, name, path)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(partial, flags, 0o600, dir_fd=at)
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(data)
                    stream.flush()
                    os.fsync(stream.fileno())
                os.rename(partial, name, src_dir_fd=at, dst_dir_fd=at)
            except BaseException:
                os.unlink(partial, dir_fd=at)
                raise
    except OSError as error:
        raise ToolError(_why(path, error)) from error


def _refuse_other_than_file(at: int, name: str, path: str) -> None:
    try:
        there = os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(there.st_mode):
        raise ToolError(f"{path!r} is no file; it cannot be written")


def entries(root: Path, most: int) -> list[Entry]:
    """The files below a folder by path, sorted, at most `most`; links and unfinished ones left out.
    Empty where there is no folder."""
    found: list[Entry] = []
    if not root.is_dir():
        return found
    for at, folders, names, handle in os.fwalk(root, follow_symlinks=False):
        folders.sort()
        for name in sorted(names):
            try:
                there = os.stat(name, dir_fd=handle, follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISREG(there.st_mode) and not name.startswith(_PARTIAL):
                path = Path(at, name).relative_to(root).as_posix()
                found.append(Entry(path=path, size=there.st_size))
        if len(found) > most:
            break
    return sorted(found, key=lambda entry: entry.path)[:most]
