"""A server over streamable HTTP: headers, restarts, refusals."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from gateway.log import redact, register_secret
from gateway.tools.base import ToolOutput
from gateway.tools.mcp.settings import ServerDown
from tests.platforms.mcp.play import by_name, call, headers, ran, serving, until
from tests.platforms.mcp.web import port_of, reached, web_process

TOKEN = "tool-token-0123456789"
ERAS = [pytest.param((), id="newer"), pytest.param(("legacy",), id="older")]


@pytest.mark.parametrize("words", ERAS)
async def test_token_and_headers_reach_the_server_and_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, words: tuple[str, ...]
) -> None:
    register_secret(TOKEN)
    folder = tmp_path / "a"
    with caplog.at_level(logging.DEBUG):
        async with web_process(folder, *words, TOKEN=TOKEN):
            house = reached(folder, token=TOKEN, headers={"X-Team": "ops"})
            async with serving(house, folder=tmp_path) as servers:
                assert (await call(servers, "mcp__house__add", {"a": 1, "b": 2})).text == "3"
    assert headers(folder) == {f"Bearer {TOKEN} ops"}
    assert TOKEN not in redact(caplog.text)
    assert TOKEN not in "".join(r.getMessage() for r in caplog.records if r.name.startswith("gateway"))
    assert TOKEN not in repr(house)


async def test_a_server_that_refuses_us_is_down_with_that_reason(tmp_path: Path) -> None:
    async with web_process(tmp_path / "a", TOKEN=TOKEN):
        house = reached(tmp_path / "a", token="another-0123456789")
        why = "it refuses us (HTTP 401); look at token and headers of mcp.house"
        async with serving(house, folder=tmp_path) as servers:
            assert servers.down() == {"house": why}


@pytest.mark.parametrize("words", ERAS)
async def test_c070_a_server_that_was_restarted_is_called_as_if_nothing_had_been(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    folder = tmp_path / "a"
    async with web_process(folder, *words):
        house, port = reached(folder), str(port_of(folder))
        servers = serving(house, folder=tmp_path)
        running = await servers.__aenter__()
        assert (await call(running, "mcp__house__write", {"text": "1"})).text == "written: 1"
    try:
        async with web_process(folder, *words, PORT=port):
            assert (await call(running, "mcp__house__write", {"text": "2"})).text == "written: 2"
    finally:
        await servers.__aexit__(None, None, None)


@pytest.mark.parametrize("words", ERAS)
async def test_c070_killed_during_a_call_it_is_an_error_that_names_the_server(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    folder = tmp_path / "a"
    async with web_process(folder, *words):
        house = reached(folder)
        async with serving(house, folder=tmp_path) as servers:
            with pytest.raises(Exception, match="'house'"):
                await call(servers, "mcp__house__die")
            server = servers.server("house")
            assert server is not None
            with pytest.raises(ServerDown, match="'house' is not available"):
                for _ in range(2):  # the connection may break only when it is used
                    await call(servers, "mcp__house__write", {"text": "x"})
            assert "mcp__house__write" in by_name(servers)


async def test_a_server_that_is_not_there_yet_is_reached_when_it_comes(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    async with web_process(folder):
        house, port = reached(folder), str(port_of(folder))
    async with serving(house, folder=tmp_path) as servers:
        assert "house" in servers.down()
        async with web_process(folder, PORT=port):
            await until(lambda: not servers.down())
            assert (await call(servers, "mcp__house__add", {"a": 1, "b": 2})).text == "3"


@pytest.mark.parametrize("words", ERAS)
async def test_fifty_calls_at_once_over_http(tmp_path: Path, words: tuple[str, ...]) -> None:
    async with web_process(tmp_path / "a", *words):
        house = reached(tmp_path / "a")
        async with serving(house, folder=tmp_path) as servers:
            outputs: list[ToolOutput] = await asyncio.gather(
                *(call(servers, "mcp__house__together", {"size": 50}) for _ in range(50))
            )
            assert {output.text for output in outputs} == {"50 together"}


@pytest.mark.parametrize("words", ERAS)
async def test_c071_shutdown_during_a_call_over_http(tmp_path: Path, words: tuple[str, ...]) -> None:
    async with web_process(tmp_path / "a", *words):
        house = reached(tmp_path / "a")
        async with serving(house, folder=tmp_path) as servers:
            hanging = asyncio.ensure_future(call(servers, "mcp__house__hang"))
            await until(lambda: "hang" in ran(tmp_path / "a"))
            await asyncio.wait_for(servers.stop(), 5)
            with pytest.raises(Exception, match="'house'"):
                await hanging
