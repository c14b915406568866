"""`threadgate demo` as its own process, in a folder of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START = 30  # seconds until the process must say its address; a busy machine is slow
ENTRY = "from gateway.cli import main; main()"


def free_port() -> int:
    """A port that nobody uses now. Below those that systems give away by themselves, so that none of the
    many sockets of other tests takes it before it is listened on."""
    while True:
        port = secrets.choice(range(20_000, 32_000))
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@dataclass
class Demo:
    """One demo: its folder and port stay, its process comes and goes."""

    folder: Path
    port: int
    process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ledger(self) -> list[dict[str, Any]]:
        """The refunds that were really paid, oldest first."""
        path = self.folder / "threadgate-demo" / "refunds.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    async def start(self) -> None:
        """Returns once the page can be asked for. Raises AssertionError when it does not come up."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("THREADGATE_")}
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", ENTRY, "demo", "--no-open", "--port", str(self.port)),
            cwd=self.folder,
            env=environment | {"PYTHONUNBUFFERED": "1"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert self.process.stdout is not None
        said = ""
        async with asyncio.timeout(START):
            while self.url not in said:
                line = await self.process.stdout.readline()
                assert line, f"the demo ended: {said}"
                said += line.decode()

    async def kill(self) -> None:
        """As hard as it gets."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """As a person would; the exit code."""
        return await self._end(signal.SIGTERM)

    async def _end(self, how: signal.Signals) -> int:
        process, self.process = self.process, None
        if process is None:
            return 0
        process.send_signal(how)
        async with asyncio.timeout(START):
            await process.communicate()
        return process.returncode or 0
