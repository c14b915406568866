"""Reading long pages in a process of its own: a page can be written so that reading it takes minutes.

Short ones are read here, which is quicker. The process has a time and a memory limit, and nothing of our
environment; what it says is the page's text, or nothing.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

from gateway.errors import ToolError
from gateway.tools.webtext import is_page, readable

SHORT: Final = 50_000  # bytes of a page that is read here
SECONDS: Final = 9.0  # for one page
MEMORY: Final = 2 * 1024**3  # bytes
LONGEST: Final = 4_000_000  # characters of a page's text; the loop shortens what enters the conversation
TANGLED: Final = "the page is written so that it cannot be read in reasonable time"
_ROOT: Final = str(Path(__file__).parents[2])


async def read_page(body: bytes, content_type: str, seconds: float = SECONDS) -> str | None:
    """See webtext.readable. Raises ToolError for a page that takes too long."""
    if len(body) <= SHORT or not is_page(content_type):
        return await asyncio.to_thread(readable, body, content_type)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from gateway.tools.apart import main; main()",
        content_type,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.pathsep.join((_ROOT, *_given()))},
    )
    try:
        async with asyncio.timeout(seconds):
            text, _ = await process.communicate(body)
    except TimeoutError as error:
        raise ToolError(TANGLED) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
            getattr(process, "_transport").close()  # noqa: B009 - asyncio offers no other way
    if process.returncode != 0:
        raise ToolError(TANGLED)
    return text.decode(errors="replace")


def _given() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def main() -> None:
    """Read the page on standard input."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (int(SECONDS) + 1, int(SECONDS) + 1))
    text = readable(sys.stdin.buffer.read(), sys.argv[1]) or ""
    sys.stdout.buffer.write(text[:LONGEST].encode(errors="replace"))
