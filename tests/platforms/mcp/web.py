"""The test's own server over HTTP, as a process on the loopback."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.tools.mcp import ServerSettings
from tests.platforms.mcp.play import PATIENCE, SERVER, settings, until


@asynccontextmanager
async def web_process(
    folder: Path, *words: str, **environment: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """The process, listening; FOLDER/port says where."""
    _prepare(folder)
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVER), str(folder), "http", *words, env={**os.environ, **environment}
    )
    try:
        await until((folder / "port").exists)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "port").unlink(missing_ok=True)


def port_of(folder: Path) -> int:
    return int((folder / "port").read_text())


def reached(folder: Path, **changes: Any) -> ServerSettings:
    """The settings of that server."""
    url = f"http://127.0.0.1:{port_of(folder)}/mcp"
    return ServerSettings(**{"name": "house", "url": url, "timeout": PATIENCE, **changes})


@asynccontextmanager
async def web_server(folder: Path, *words: str) -> AsyncIterator[ServerSettings]:
    """The server's settings, over HTTP with the word `http`, else as a child process."""
    if "http" not in words:
        yield settings(folder, "house", *words)
        return
    async with web_process(folder, *words):
        yield reached(folder)
