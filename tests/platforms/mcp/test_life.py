"""A server's life: it is killed in each phase, comes back, and ends with us."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import RequiredToolServerDown
from gateway.tools.mcp.settings import ConnectionLost, ServerDown
from tests.clock import FakeClock
from tests.platforms.mcp.play import (
    by_name,
    call,
    exists,
    members,
    ran,
    script,
    serving,
    settings,
    started,
    until,
)


def _long(path: Path, length: int) -> bool:
    return len(path.read_text()) == length


def _is_back(server: Any, folder: Path, starts: int) -> bool:
    return server.state == "up" and len(started(folder)) == starts


async def test_tools_of_a_process_are_called(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        assert (await call(servers, "mcp__house__add", {"a": 2, "b": 3})).text == "5"
        (pid,) = started(tmp_path / "a")
        assert exists(pid)
    assert not exists(pid)
    assert ran(tmp_path / "a") == ["add 2 3"]


async def test_c070_killed_between_two_calls_the_next_call_reconnects_and_works(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        assert (await call(servers, "mcp__house__write", {"text": "1"})).text == "written: 1"
        (pid,) = started(tmp_path / "a")
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not exists(pid))
        assert (await call(servers, "mcp__house__write", {"text": "2"})).text == "written: 2"
        assert len(started(tmp_path / "a")) == 2
    assert ran(tmp_path / "a") == ["write 1", "write 2"]


async def test_after_a_restart_the_tools_of_a_server_that_is_away_are_still_known(
    tmp_path: Path,
) -> None:
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        before = by_name(servers)
    (tmp_path / "a" / "closed").touch()
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        after = by_name(servers)
        own = [name for name in before if name.startswith("mcp__")]
        assert [(name, after[name].input_schema, after[name].safe) for name in own] == [
            (name, before[name].input_schema, before[name].safe) for name in own
        ]
        with pytest.raises(ServerDown, match="The call was not sent"):
            await call(servers, "mcp__house__write", {"text": "1"})
    assert ran(tmp_path / "a") == []
    moved = settings(tmp_path / "b")  # another server of the same name
    (tmp_path / "b" / "closed").touch()
    async with serving(moved, folder=tmp_path) as servers:
        assert by_name(servers) == {}


async def test_c070_killed_during_a_call_it_is_an_error_and_does_not_run_again(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        with pytest.raises(ConnectionLost, match="'house' went away"):
            await call(servers, "mcp__house__die")
        assert ran(tmp_path / "a") == ["die"]
        (tmp_path / "a" / "spare").touch()
        assert (await call(servers, "mcp__house__die")).text == "alive"


async def test_c070_killed_during_a_call_that_only_reads_it_runs_again(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        assert (await call(servers, "mcp__house__die_reading")).text == "read after all"
    assert ran(tmp_path / "a") == ["die_reading", "die_reading"]


async def test_c070_killed_after_the_result_was_written_the_result_counts(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        assert (await call(servers, "mcp__house__die_after")).text == "last words"
        (pid,) = started(tmp_path / "a")
        await until(lambda: not exists(pid))
        assert (await call(servers, "mcp__house__add", {"a": 1, "b": 1})).text == "2"


async def test_c070_ten_failed_starts_wait_longer_each_time_and_disturb_nobody(tmp_path: Path) -> None:
    clock, tries = FakeClock(), tmp_path / "tries"
    bad = script(
        f"import sys; f = open({str(tries)!r}, 'a'); f.write('x'); f.close(); sys.exit(3)", name="bad"
    )
    async with serving(bad, settings(tmp_path / "a"), folder=tmp_path, clock=clock) as servers:
        assert servers.down() == {"bad": "it ended with exit code 3"}
        for number, pause in enumerate((1, 2, 4, 8, 16, 30, 60, 60, 60), start=1):
            await until(lambda: clock.sleeping)
            assert len(tries.read_text()) == number
            clock.advance(pause - 0.5)
            assert clock.sleeping
            clock.advance(0.5)
            await until(partial(_long, tries, number + 1))
            assert (await call(servers, "mcp__house__add", {"a": 1, "b": 1})).text == "2"


async def test_c070_the_pauses_begin_anew_after_30_s_of_health(tmp_path: Path) -> None:
    clock = FakeClock()
    async with serving(settings(tmp_path / "a"), folder=tmp_path, clock=clock) as servers:
        server = servers.server("house")
        assert server is not None
        for age, pause in ((0, 1), (0, 2), (29, 4), (30, 1), (3600, 1)):
            clock.advance(age)
            os.kill(started(tmp_path / "a")[-1], signal.SIGKILL)
            count = len(started(tmp_path / "a"))
            await until(lambda: server.state == "down" and clock.sleeping)
            clock.advance(pause - 0.1)
            assert clock.sleeping
            clock.advance(0.1)
            await until(partial(_is_back, server, tmp_path / "a", count + 1))


async def test_a_call_while_the_server_is_down_makes_one_attempt_and_says_why(tmp_path: Path) -> None:
    clock = FakeClock()
    async with serving(settings(tmp_path / "a"), folder=tmp_path, clock=clock) as servers:
        server = servers.server("house")
        assert server is not None
        server.settings = script("import sys; sys.exit(4)", name="house")
        os.kill(started(tmp_path / "a")[0], signal.SIGKILL)
        await until(lambda: server.state == "down")
        assert "mcp__house__write" in by_name(servers)
        with pytest.raises(ServerDown, match="exit code 4"):
            await call(servers, "mcp__house__write", {"text": "x"})
        server.settings = settings(tmp_path / "a")
        assert (await call(servers, "mcp__house__write", {"text": "y"})).text == "written: y"


async def test_a_required_server_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(RequiredToolServerDown, match="'odd' is down: it ended with exit code 1"):
        async with serving(
            script("import sys; sys.exit(1)", required=True), settings(tmp_path / "a"), folder=tmp_path
        ):
            pass
    assert not any(exists(pid) for pid in started(tmp_path / "a"))


async def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    server = script("")
    missing = type(server)(name="gone", command=("no-such-program",))
    async with serving(missing, folder=tmp_path) as servers:
        assert servers.down() == {"gone": "there is no program 'no-such-program' that can be run"}


async def test_c071_a_connect_that_times_out_disturbs_no_other_server(tmp_path: Path) -> None:
    silent = script("import time; time.sleep(600)", name="silent", timeout=1.0)
    async with serving(silent, settings(tmp_path / "a"), folder=tmp_path) as servers:
        assert servers.down() == {"silent": "it did not answer within 1 s"}
        outputs = await asyncio.gather(
            *(call(servers, "mcp__house__add", {"a": n, "b": 1}) for n in range(2))
        )
        assert [output.text for output in outputs] == ["1", "2"]


async def test_fifty_calls_at_once_are_under_way_together(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        outputs = await asyncio.gather(
            *(call(servers, "mcp__house__together", {"size": 50}) for _ in range(50))
        )
        assert {output.text for output in outputs} == {"50 together"}
        assert len(started(tmp_path / "a")) == 1


async def test_c071_shutdown_during_a_call_ends_within_seconds(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a"), settings(tmp_path / "b", "two"), folder=tmp_path) as servers:
        calls = [asyncio.ensure_future(call(servers, f"mcp__{name}__hang")) for name in ("house", "two")]
        await until(lambda: "hang" in ran(tmp_path / "a") and "hang" in ran(tmp_path / "b"))
        began = time.monotonic()
        await servers.stop()
        assert time.monotonic() - began < 5
        for ended in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(ended, ConnectionLost)
    assert not any(exists(pid) for name in ("a", "b") for pid in started(tmp_path / name))


async def test_a_call_that_is_given_up_is_cancelled_at_the_server(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        hanging = asyncio.ensure_future(call(servers, "mcp__house__hang"))
        await until(lambda: "hang" in ran(tmp_path / "a"))
        hanging.cancel()
        await until(lambda: "hang cancelled" in ran(tmp_path / "a"))
        assert (await call(servers, "mcp__house__add", {"a": 1, "b": 1})).text == "2"


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print(1, flush=True); time.sleep(600)"],
    stdout=subprocess.PIPE)
child.stdout.readline()
open(sys.argv[1], "w").write(f"{os.getpid()} {child.pid}")
time.sleep(600)
"""


async def test_a_server_that_does_not_listen_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    server = script(STUBBORN, timeout=60)
    server = type(server)(name="deaf", command=(*server.command, str(tmp_path / "pids")), timeout=60)
    from gateway.clock import SystemClock
    from gateway.tools.mcp import ToolServers

    servers = ToolServers([server], SystemClock(), tmp_path)
    servers.hurry()
    await servers.start()
    await until((tmp_path / "pids").exists)
    await until(lambda: len((tmp_path / "pids").read_text().split()) == 2)
    leader, child = map(int, (tmp_path / "pids").read_text().split())
    assert sorted(members(leader)) == sorted([leader, child])
    began = time.monotonic()
    await servers.stop()
    assert time.monotonic() - began < 5
    assert members(leader) == []
