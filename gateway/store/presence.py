"""Which runners are alive: each holds a lock on a file of its own beside the database.

The kernel lets the lock go when the process dies, however it dies, so a dead runner's leases can
be freed at once instead of when they run out. Where files cannot be locked (not POSIX), nobody is
ever known to be dead and leases run out by time.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform != "win32":
    import fcntl


class Presence:
    """The lock files of all runners of one database."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def announce(self, runner: str) -> None:
        """Say that this runner lives, until `leave` or the end of the process."""
        if sys.platform == "win32":
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._path(runner), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._held[runner] = handle

    def leave(self, runner: str) -> None:
        """The runner is gone, in good order."""
        handle = self._held.pop(runner, None)
        if handle is not None:
            self._path(runner).unlink(missing_ok=True)
            os.close(handle)

    def is_dead(self, runner: str) -> bool:
        """Whether this runner's process is known to be gone."""
        if sys.platform == "win32" or runner in self._held:
            return False
        path = self._path(runner)
        try:
            handle = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            path.unlink(missing_ok=True)
            return True
        finally:
            os.close(handle)

    def _path(self, runner: str) -> Path:
        return self._folder / f"{runner}.lock"
