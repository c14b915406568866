"""One worker process as the gateway sees it: started, spoken to, ended with everything it has started."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections import deque
from collections.abc import Sequence

import msgspec

from gateway.log import excerpt
from gateway.worker.frames import BrokenFrame, packed, read_frame
from gateway.worker.wire import FromGateway, FromWorker, encoded, from_worker

MODULE = "gateway.app.worker"
# What a process needs to find its way about; everything else stays here, above all secrets.
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")
TERM_SECONDS = 1.0  # between SIGTERM and SIGKILL
LAST_WORDS = 5  # lines that are logged when it ends unexpectedly
PIECE = 64 * 1024  # bytes that are read at once
STDERR_LINES = 200  # of one worker that are logged; the rest is only counted
_log = logging.getLogger(__name__)


class Worker:
    """A process in a group of its own. `last_words`: what it said last on standard error."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
        stderr: asyncio.StreamReader,
    ) -> None:
        self._process, self._stdin, self._stdout = process, stdin, stdout
        self.pid = process.pid
        self.last_words: deque[str] = deque(maxlen=LAST_WORDS)  # on standard error, redacted
        self._listening = asyncio.get_running_loop().create_task(self._listen(stderr))

    @classmethod
    async def start(cls, environment: Sequence[str] = ()) -> Worker:
        """Start one that waits for its first job. `environment`: names that it gets besides the usual
        ones."""
        names = (*ENVIRONMENT, *environment)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            MODULE,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={name: os.environ[name] for name in names if name in os.environ},
            start_new_session=True,
        )
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise RuntimeError("the process was started without pipes")
        return cls(process, process.stdin, process.stdout, process.stderr)

    @property
    def alive(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.returncode is None

    async def send(self, frame: FromGateway) -> None:
        """Nobody may read it any more: the next `receive` tells. Raises BrokenFrame for one too large."""
        self._stdin.write(packed(encoded(frame)))
        with contextlib.suppress(ConnectionError):
            await self._stdin.drain()

    async def receive(self) -> FromWorker | None:
        """The next frame, None when it has ended. Raises BrokenFrame for anything else."""
        body = await read_frame(self._stdout)
        try:
            return None if body is None else from_worker(body)
        except msgspec.DecodeError as error:
            raise BrokenFrame(f"the worker sent something else: {error}") from error

    def kill(self) -> None:
        """End it and all that it has started, at once."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def end(self) -> int:
        """End it and all that it has started; how it ended."""
        if self.alive:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TERM_SECONDS):
                    await self._process.wait()
        self.kill()  # also those in its group that outlived it
        code = await self._process.wait()
        self._stdin.close()
        await asyncio.wait({self._listening}, timeout=TERM_SECONDS)  # its last words
        self._listening.cancel()
        await asyncio.wait({self._listening})
        # The transport closes the pipes when it hears of the end; wait for that, not for the collector.
        getattr(self._process, "_transport").close()  # noqa: B009 - asyncio offers no other way
        return code

    async def _listen(self, stderr: asyncio.StreamReader) -> None:
        """What its tools print goes to the log, for those who look for it."""
        lines, rest = 0, b""
        while piece := await stderr.read(PIECE):
            *whole, rest = (rest + piece).split(b"\n")
            if len(rest) > PIECE:  # no line: told in parts
                whole, rest = [*whole, rest], b""
            for line in whole:
                lines += 1
                self._note(line, log=lines <= STDERR_LINES)
        if rest:
            self._note(rest, log=lines < STDERR_LINES)

    def _note(self, line: bytes, *, log: bool) -> None:
        text = line.decode(errors="replace").rstrip()
        self.last_words.append(excerpt(text, 500))
        if log:
            _log.debug("worker %d: %s", self.pid, excerpt(text, 2000))


def ending(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
