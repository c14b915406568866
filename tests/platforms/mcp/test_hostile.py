"""Servers that do what they should not: the gateway keeps its memory, its log and its temper."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.tools.base import ToolOutput
from gateway.tools.mcp import ServerSettings, ToolServers
from gateway.tools.mcp import settings as limits
from tests.clock import FakeClock
from tests.platforms.mcp.play import by_name, call, script, serving, settings

# A server by hand: `reply` sends, `odd` is what this one does when its tool is called.
FRAME = """
import json, sys
def send(text):
    sys.stdout.write(text + "\\n"); sys.stdout.flush()
def reply(id, **rest):
    send(json.dumps({{"jsonrpc": "2.0", "id": id, **rest}}))
{before}
for line in sys.stdin:
    asked = json.loads(line)
    method, id = asked.get("method"), asked.get("id")
    if method == "initialize":
        reply(id, result={{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}},
                           "serverInfo": {{"name": "x", "version": "1"}}}})
    elif method == "tools/list":
        reply(id, result={{"tools": [{{"name": "odd", "inputSchema": {{"type": "object"}}}}]}})
    elif method == "tools/call":
        {odd}
    elif id is not None:
        reply(id, error={{"code": -32601, "message": "no such method"}})
"""
FINE = 'reply(id, result={"content": [{"type": "text", "text": "fine"}]})'


def server(odd: str = FINE, before: str = "", timeout: float = 30.0) -> ServerSettings:
    return script(FRAME.format(odd=odd, before=before), timeout=timeout)


@pytest.mark.parametrize(
    ("odd", "before"),
    [
        pytest.param(FINE, 'print("Welcome!\\n\\n  v1.0 (c)")', id="a banner"),
        pytest.param(f'send("{{not json"); send("[1, 2]"); send("null"); {FINE}', "", id="invalid JSON"),
        pytest.param(f"sys.stdout.buffer.write(bytes(range(128, 256)) + b'\\n'); {FINE}", "", id="no text"),
        pytest.param(f'reply(999, result={{}}); reply("x", result={{}}); {FINE}', "", id="wrong ids"),
        pytest.param(
            f'send(json.dumps({{"jsonrpc": "2.0", "method": "no/such"}})); {FINE}', "", id="unknown"
        ),
        pytest.param(
            f'reply(7, method="sampling/createMessage", params={{}}); reply(8, method="roots/list"); {FINE}',
            "",
            id="asks for what there is not",
        ),
        pytest.param(f'sys.stderr.write("x" * 300_000); sys.stderr.flush(); {FINE}', "", id="much noise"),
    ],
)
async def test_noise_around_an_answer_is_no_harm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, odd: str, before: str
) -> None:
    with caplog.at_level(logging.INFO):
        async with serving(server(odd, before), folder=tmp_path) as servers:
            assert servers.down() == {}
            assert (await call(servers, "mcp__odd__odd")).text == "fine"
    assert not [r for r in caplog.records if r.exc_info or r.levelno >= logging.ERROR]


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ("reply(id, result={})", "what is no result"),
        ("reply(id, result={'content': 'x'})", "what is no result"),
        ("reply(id, error={'code': 1, 'message': 'm' * 100_000})", "reports an error: mmm"),
        ("sys.exit(1)", "went away during the call"),
        ("import os; os.close(1); sys.stdin.read()", "went away during the call"),
    ],
)
async def test_an_answer_that_is_none_is_an_error_of_that_call(tmp_path: Path, odd: str, said: str) -> None:
    async with serving(server(odd), folder=tmp_path) as servers:
        with pytest.raises(Exception, match=said) as raised:
            await call(servers, "mcp__odd__odd")
        assert len(str(raised.value)) < 3_000
        assert "'odd'" in str(raised.value)


async def test_an_enormous_line_ends_the_connection_and_not_our_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.tools.mcp.stdio.LONGEST_MESSAGE", 2**20)
    odd = "[sys.stdout.write('x' * 65536) for _ in range(10_000)]"
    async with serving(server(odd), settings(tmp_path / "a"), folder=tmp_path) as servers:
        with pytest.raises(Exception, match="went away during the call"):
            await call(servers, "mcp__odd__odd")
        assert (await call(servers, "mcp__house__add", {"a": 1, "b": 1})).text == "2"
        assert limits.LONGEST_MESSAGE > 2**20


async def test_a_server_that_never_answers_a_call_is_given_up_by_the_call_alone(tmp_path: Path) -> None:
    async with serving(server("pass"), folder=tmp_path) as servers:
        hanging = asyncio.ensure_future(call(servers, "mcp__odd__odd"))
        await asyncio.wait({hanging}, timeout=0.2)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        assert "mcp__odd__odd" in by_name(servers)
        assert servers.down() == {}


async def test_a_server_that_stops_reading_does_not_hold_up_the_end(tmp_path: Path) -> None:
    deaf = FRAME.replace(
        "    if method ==", "    if method == 'tools/list': deaf = True\n    if method ==", 1
    )
    odd = "pass"
    stops = deaf.format(odd=odd, before="deaf = False") + "    if deaf: import time; time.sleep(600)\n"
    async with serving(script(stops), folder=tmp_path) as servers:
        hanging = asyncio.ensure_future(call(servers, "mcp__odd__odd", {"text": "x" * 2_000_000}))
        await asyncio.wait({hanging}, timeout=0.2)
        hanging.cancel()
        async with asyncio.timeout(5):
            await servers.stop()
        await asyncio.gather(hanging, return_exceptions=True)


async def test_an_older_server_that_ignores_what_it_does_not_know_is_reached(tmp_path: Path) -> None:
    silent = FRAME.replace('reply(id, error={{"code": -32601, "message": "no such method"}})', "pass")
    clock = FakeClock()
    made = script(silent.format(odd=FINE, before=""), timeout=1.0)
    async with serving(made, folder=tmp_path, clock=clock) as servers:
        assert servers.down() == {"odd": "it did not answer within 1 s"}
        assert (await _patiently(servers)).text == "fine"


async def _patiently(servers: ToolServers) -> ToolOutput:
    server = servers.server("odd")
    assert server is not None
    server.settings = replace(server.settings, timeout=30.0)

    async def nothing(connection: object) -> None:
        """To have a connection made."""

    await server.request(nothing)
    return await call(servers, "mcp__odd__odd")


async def test_a_server_whose_list_changes_whenever_it_is_read_is_read_in_peace(tmp_path: Path) -> None:
    restless = FRAME.replace(
        'elif method == "tools/list":',
        'elif method == "tools/list":\n'
        '        send(json.dumps({{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}}))',
    )
    async with serving(script(restless.format(odd=FINE, before="")), folder=tmp_path) as servers:
        async with asyncio.timeout(20):
            assert (await call(servers, "mcp__odd__odd")).text == "fine"


async def test_a_list_without_end_is_cut(tmp_path: Path) -> None:
    endless = FRAME.replace(
        '"inputSchema": {{"type": "object"}}}}]}})',
        '"inputSchema": {{"type": "object"}}}}], "nextCursor": str(id)}})',
    )
    async with serving(script(endless.format(odd=FINE, before="")), folder=tmp_path) as servers:
        assert list(by_name(servers)) == ["mcp__odd__odd"]
        assert (await call(servers, "mcp__odd__odd")).text == "fine"


async def test_secrets_that_a_server_says_are_not_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from gateway.log import register_secret

    register_secret("my-very-secret-word")
    before = "sys.stderr.write('the key is my-very-secret-word\\n'); sys.stderr.flush()"
    with caplog.at_level(logging.DEBUG):
        async with serving(server(before=before), folder=tmp_path) as servers:
            assert (await call(servers, "mcp__odd__odd")).text == "fine"
    said = [r for r in caplog.records if "the key is" in r.getMessage()]
    assert [(r.levelno, r.getMessage().endswith("the key is <redacted>")) for r in said] == [
        (logging.DEBUG, True)
    ]


@pytest.mark.parametrize(
    "phase", ["server/discover", "initialize", "notifications/initialized", "tools/list"]
)
async def test_c070_a_server_that_dies_while_it_connects_is_there_at_the_next_attempt(
    tmp_path: Path, phase: str
) -> None:
    mark = tmp_path / "died"
    dies = FRAME.replace(
        "    if method ==",
        f"    if method == {phase!r} and not os.path.exists({str(mark)!r}):\n"
        f"        open({str(mark)!r}, 'w').close(); os.kill(os.getpid(), 9)\n"
        "    if method ==",
        1,
    )
    made = script(dies.format(odd=FINE, before="import os"))
    async with serving(made, settings(tmp_path / "a"), folder=tmp_path, clock=FakeClock()) as servers:
        assert servers.down() == {"odd": "it was ended by SIGKILL"}
        assert (await call(servers, "mcp__house__add", {"a": 1, "b": 1})).text == "2"
        assert (await _patiently(servers)).text == "fine"
