"""One real `threadgate run`, seen from the outside: its log, its end, its exit code."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from gateway import faults

PROGRAM = Path(sys.executable).with_name("threadgate")
LIMIT = 30.0  # seconds that anything may take on a busy machine


async def until(check: Callable[[], Any], what: str, within: float = LIMIT) -> Any:
    """Look until `check` gives something true; that. AssertionError, saying `what`, when it never does.

    The only wait of these tests for what another process does without telling us."""
    try:
        async with asyncio.timeout(within):
            while True:
                value = check()
                found = await value if isinstance(value, Awaitable) else value
                if found:
                    return found
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"it did not happen within {within:g} s: {what}") from None


def environment(**more: str) -> dict[str, str]:
    """This process's environment without what steers the program, and with `more`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("THREADGATE")}
    return {**kept, "PYTHONUNBUFFERED": "1", "COLUMNS": "200", **more}


class GatewayProcess:
    """A running gateway. `log` grows line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.log: list[str] = []
        self._news = asyncio.Condition()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls, folder: Path, *arguments: str, fault: str = "", env: Mapping[str, str] = {}
    ) -> GatewayProcess:
        """Start `threadgate <arguments>` in a folder. `fault`: where it kills itself."""
        steering = {faults.VARIABLE: fault} if fault else {}
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *arguments,
            cwd=folder,
            env=environment(**steering, **env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        return cls(process)

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            async with self._news:
                self.log.append(line.decode().rstrip("\n"))
                self._news.notify_all()
        async with self._news:
            self._news.notify_all()

    async def logged(self, pattern: str, within: float = LIMIT) -> re.Match[str]:
        """Wait for a line of the log that matches."""

        def found() -> re.Match[str] | None:
            return next((m for line in self.log if (m := re.search(pattern, line))), None)

        async with asyncio.timeout(within), self._news:
            await self._news.wait_for(lambda: found() or self._reader.done())
        match = found()
        assert match is not None, f"the process ended without saying {pattern!r}:\n{self.text}"
        return match

    @property
    def text(self) -> str:
        """The whole log so far."""
        return "\n".join(self.log)

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def ended(self, within: float = LIMIT) -> int:
        """Wait for the end; the exit code, below 0 for a signal."""
        async with asyncio.timeout(within):
            code = await self.process.wait()
            await self._reader
        return code

    async def died(self) -> None:
        """Wait until the process has killed itself at its fault point."""
        try:
            code = await self.ended()
        except TimeoutError:
            raise AssertionError(f"the fault point was not reached:\n{self.text}") from None
        assert code == -signal.SIGKILL, f"it ended by itself with {code}:\n{self.text}"

    def signal(self, number: signal.Signals) -> None:
        """Send one signal."""
        self.process.send_signal(number)

    async def kill(self) -> None:
        """End it at once, as a power cut would. Nothing when it has ended."""
        if self.alive:
            self.process.kill()
        await self.ended()

    async def terminate(self, within: float = LIMIT) -> int:
        """SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        return await self.ended(within)
