"""One command of `threadgate`, run to its end."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.scenario.processes.gateway import LIMIT, PROGRAM, environment


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a command left: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output as JSON, one value a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    def done(self) -> str:
        """Assert that it ended well; what it said."""
        assert self.code == 0, self
        return self.out.strip()

    def failed(self, code: int, *words: str) -> None:
        """Assert that it ended with this code and said why in one clear line."""
        assert self.code == code, self
        assert self.out == ""
        (line,) = self.err.splitlines()
        assert line.startswith("threadgate: ")
        assert "Traceback" not in self.err
        for word in words:
            assert word in line


async def threadgate(folder: Path, *arguments: str, stdin: str = "", **env: str) -> Ran:
    """Run one command in a folder."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *arguments,
        cwd=folder,
        env=environment(**env),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(LIMIT):
            out, err = await process.communicate(stdin.encode())
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    assert process.returncode is not None
    return Ran(code=process.returncode, out=out.decode(), err=err.decode())
