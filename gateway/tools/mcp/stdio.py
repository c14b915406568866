"""A server that is started here: a child process, its own group, one JSON message per line.

The SDK has a transport of this kind too. This one bounds what a server can make us hold in memory, takes
what is no message for a remark instead of an error, hands the server nothing of our environment but what a
program needs, and ends within two seconds, with everything that the server itself has started.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from gateway.log import excerpt
from gateway.tools.mcp.settings import LONGEST_MESSAGE, ServerSettings
from gateway.tools.mcp.tidy import TidiedStream

# What a program needs of our environment. Secrets are not among it: `env` of the configuration names them.
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL", "TERM")
INHERITED_ON_WINDOWS = (
    "SYSTEMROOT",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "USERPROFILE",
    "TEMP",
    "PATHEXT",
)
CHUNK = 64 * 1024
GOES_BY_ITSELF, GOES_WHEN_TOLD = 0.8, 0.8  # seconds after its input was closed, and after SIGTERM
LOOK = 0.01  # seconds between two looks whether it has gone
REMARKS, LONGEST_REMARK = 500, 400  # lines of a server's standard error that are logged; characters of each
LONGEST_LINE = 16 * 1024  # bytes of a line that are looked at

# Runs in the child before the server does: should we be killed, the kernel kills it. The rest of its group
# sees its input closed. A function between fork and exec would do the same, and may hang where threads run.
_LAUNCH = """\
import os, signal, sys
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
except (ImportError, OSError, AttributeError):
    pass
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
try:
    os.execv(sys.argv[2], sys.argv[3:])
except OSError as error:
    sys.exit(f"cannot be started: {error.strerror}")
"""
T = TypeVar("T")
_log = logging.getLogger(__name__)


class StdioTransport:
    """The process and its pipes, as the pair of streams that the SDK's session reads and writes.

    `on_end` is called when nothing more will come. Raises OSError when the program cannot be started."""

    def __init__(self, settings: ServerSettings, on_end: Callable[[], None]) -> None:
        self._settings, self._on_end = settings, on_end
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._remarks = 0
        self._closing = False
        self._told = False  # to end, by us
        self.hung_up = False  # one of its pipes ended while we still wanted it
        self.fault = ""  # what it did wrong, when we are the ones who hang up
        self.last_remark = ""

    async def __aenter__(self) -> Any:
        settings, environment = self._settings, dict(_environment(self._settings))
        program = _found(settings, environment)
        self._process = await asyncio.create_subprocess_exec(
            *_launch(program, settings.command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            cwd=settings.cwd,
            start_new_session=True,
        )
        incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._read(self._process, incoming)),
            loop.create_task(self._write(self._process, outgoing)),
            loop.create_task(self._listen(self._process)),
        ]
        return TidiedStream(self._settings.name, read_stream), write_stream

    @property
    def alive(self) -> bool:
        """Whether the process runs. Asked of the kernel: the event loop learns of an end a moment later."""
        process = self._process
        if process is None or process.returncode is not None or self.hung_up:
            return False
        if _is_dying(process.pid):
            return False
        if not hasattr(os, "waitid"):
            return True
        try:
            return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            return False

    @property
    def how_it_ended(self) -> str:
        """Why nothing more comes."""
        code = None if self._process is None else self._process.returncode
        if self.fault or code is None or self._told:
            return self.fault or "it hung up"
        return f"it ended with exit code {code}" if code >= 0 else f"it was ended by {_signal_name(-code)}"

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        process = self._process
        if process is None:
            return
        self._closing = True
        try:
            await self._let_go(process)
        finally:
            _signal_group(process.pid, _KILL)  # also when we are cancelled while we wait
            for task in self._tasks:
                task.cancel()
        await _gone(process, GOES_WHEN_TOLD)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        _close(process)

    async def _let_go(self, process: asyncio.subprocess.Process) -> None:
        """Close its input, then tell it to end, all of its group."""
        _pipe(process.stdin).close()
        self._told = not await _gone(process, GOES_BY_ITSELF)
        if not _signal_group(process.pid, signal.SIGTERM):
            return
        left = GOES_WHEN_TOLD
        while _signal_group(process.pid, 0) and left > 0:
            await asyncio.sleep(LOOK)
            left -= LOOK

    async def _read(self, process: asyncio.subprocess.Process, incoming: Any) -> None:
        line = bytearray()
        try:
            async with incoming:
                while chunk := await _pipe(process.stdout).read(CHUNK):
                    *ended, rest = chunk.split(b"\n")
                    for piece in ended:
                        message = self._message(bytes(line + piece))
                        line.clear()
                        if message is not None:
                            await incoming.send(message)
                    line += rest
                    if len(line) > LONGEST_MESSAGE:
                        self.fault = f"it wrote a line of more than {LONGEST_MESSAGE // 2**20} MB"
                        return
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the session has gone
        finally:
            self.hung_up = self.hung_up or not self._closing
            self._on_end()

    def _message(self, line: bytes) -> SessionMessage | None:
        """The message on a line; None for what is none, like a banner."""
        if not line.strip():
            return None
        if len(line) > LONGEST_MESSAGE:
            self._remark("wrote a message that is too long; it is left out", b"")
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            self._remark("wrote what is no message", line)
            return None

    async def _write(self, process: asyncio.subprocess.Process, outgoing: Any) -> None:
        stdin = _pipe(process.stdin)
        try:
            async with outgoing:
                async for sent in outgoing:
                    text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                    stdin.write(text.encode() + b"\n")
                    await stdin.drain()
        except OSError:
            self.hung_up = self.hung_up or not self._closing
            self._on_end()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        """What it says to the side, into the log."""
        rest = b""
        while chunk := await _pipe(process.stderr).read(CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._remark("says", line)
            rest = rest[:LONGEST_LINE]  # the end of a line that nobody will read
        if rest:
            self._remark("says", rest)

    def _remark(self, what: str, line: bytes) -> None:
        text = excerpt(line[:LONGEST_LINE].decode(errors="replace").strip(), LONGEST_REMARK)
        self.last_remark = text or self.last_remark
        self._remarks += 1
        if self._remarks <= REMARKS:
            _log.debug("tool server %s %s: %s", self._settings.name, what, text)
        elif self._remarks == REMARKS + 1:
            _log.debug("tool server %s says more; it is not logged", self._settings.name)


_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def _environment(settings: ServerSettings) -> Iterator[tuple[str, str]]:
    for name in (*INHERITED, *(INHERITED_ON_WINDOWS if os.name == "nt" else ())):
        value = os.environ.get(name)
        if value is not None and not value.startswith("()"):  # an exported shell function
            yield name, value
    yield from settings.env.items()


def _found(settings: ServerSettings, environment: dict[str, str]) -> str:
    """The program's full path. Raises FileNotFoundError in words for people."""
    name = settings.command[0]
    if os.sep in name and not os.path.isabs(name) and settings.cwd is not None:  # noqa: PTH117 - a text
        name = str(settings.cwd / name)
    program = shutil.which(name, path=environment.get("PATH"))
    if program is None:
        raise FileNotFoundError(f"there is no program {settings.command[0]!r} that can be run")
    return os.path.abspath(program)  # noqa: PTH100 - resolving links would change what it is called as


def _launch(program: str, command: tuple[str, ...]) -> list[str]:
    if not sys.platform.startswith("linux"):
        return [program, *command[1:]]
    return [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), program, *command]


def _is_dying(pid: int) -> bool:
    """Whether the kernel has begun to end it: with many threads that takes a moment. Linux only."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] in (b"Z", b"X")


def _pipe(pipe: T | None) -> T:
    """One of the pipes that the process was started with."""
    if pipe is None:
        raise ValueError("the process has no such pipe")
    return pipe


def _signal_group(group: int, number: int) -> bool:
    """Whether there was anybody to signal. The leader's id stays the group's as long as it has members."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def _gone(process: asyncio.subprocess.Process, limit: float) -> bool:
    """Whether it ends within the limit. Not `wait()`: that waits for whoever else holds its pipes, too."""
    while process.returncode is None and limit > 0:
        await asyncio.sleep(LOOK)
        limit -= LOOK
    return process.returncode is not None


def _close(process: asyncio.subprocess.Process) -> None:
    """Close our ends of the pipes, should somebody outside of the group still hold the others."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        with contextlib.suppress(PermissionError):
            transport.close()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
