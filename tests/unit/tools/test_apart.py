"""Long pages are read in a process of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.errors import ToolError
from gateway.tools.apart import SHORT, read_page
from gateway.tools.webtext import readable

HTML = "text/html; charset=utf-8"


def opened() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def readers() -> list[str]:
    """The command lines of our processes that read a page."""
    pids = [pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()]
    lines = [Path(f"/proc/{pid}/cmdline").read_text() for pid in pids]
    return [line for line in lines if "gateway.tools.apart" in line]


async def test_a_page_that_would_take_minutes_is_given_up_and_leaves_no_process() -> None:
    before = opened()
    with pytest.raises(ToolError, match="cannot be read in reasonable time"):
        await read_page(b"<" * 2_000_000, HTML, seconds=0.5)
    await asyncio.sleep(0)
    assert (readers(), opened()) == ([], before)


async def test_a_long_page_reads_as_a_short_one_does() -> None:
    page = "<title>Käse</title><p>Ein Satz mit <a href='/x'>Link</a> und ü.</p>" * 2_000
    body = page.encode()
    assert len(body) > SHORT
    assert await read_page(body, HTML) == readable(body, HTML)


async def test_what_is_no_page_is_read_here_however_long_it_is() -> None:
    assert await read_page(b"[1]" * SHORT, "application/json") == "[1]" * SHORT
    assert await read_page(b"\x89PNG" * SHORT, "image/png") is None
