"""Real gateways with real tool servers: how they start, how they end, what is left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.platforms.mcp.play import SERVER, exists, ran, started
from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.gateway import environment, until
from tests.scenario.processes.house import House
from tests.scenario.processes.page import Caller
from tests.scenario.processes.shell import threadgate

pytestmark = pytest.mark.crash

RULES = [
    {
        "match": f"^{tool}",
        "replies": [{"calls": [{"tool": f"mcp__one__{tool}", "args": args}]}, {"text": "Done."}],
    }
    for tool, args in (("hang", {}), ("write", {"text": "x"}), ("add", {"a": 1, "b": 2}))
]


def tables(folder: Path, *names: str, more: str = "") -> str:
    """`[mcp.NAME]` for the test's own server, each with a folder of its own."""
    text = ""
    for name in names:
        (folder / name).mkdir(exist_ok=True)
        command = json.dumps([sys.executable, str(SERVER), str(folder / name)])
        text += f"[mcp.{name}]\ncommand = {command}\n{more}"
    return text


SILENT = f"[mcp.silent]\ncommand = {json.dumps([sys.executable, '-c', 'import time; time.sleep(600)'])}\n"


def no_process_left(folder: Path, *names: str) -> bool:
    return not any(exists(pid) for name in names for pid in started(folder / name))


def house_with(furnish: Furnish, folder: Path, more: str, **options: object) -> House:
    return furnish(rules=RULES, web=True, more=more, drain="0.5s", **options)


async def test_c071_sigterm_with_calls_under_way_ends_well_and_leaves_no_process(
    furnish: Furnish, tmp_path: Path
) -> None:
    house = house_with(furnish, tmp_path, tables(tmp_path, "one", "two") + SILENT + 'timeout = "2s"\n')
    gateway = await house.start()
    await gateway.logged("tool server silent is down: it did not answer within 2 s")
    page = Caller(house)
    await page.use(gateway)
    for number in range(2):
        await page.say("hang", f"m{number}")
    await until(lambda: ran(tmp_path / "one").count("hang") == 2, "two calls are under way")
    began = time.monotonic()
    assert await gateway.terminate() == 0
    assert time.monotonic() - began < 5
    assert "Traceback" not in gateway.text
    assert "cancel scope" not in gateway.text
    assert no_process_left(tmp_path, "one", "two")
    await page.close()


async def test_c071_sigterm_while_a_server_connects_does_not_wait_for_it(
    furnish: Furnish, tmp_path: Path
) -> None:
    house = house_with(furnish, tmp_path, tables(tmp_path, "one") + SILENT)
    gateway = await house.start(ready=False)
    await gateway.logged("tool server one is up: ")
    began = time.monotonic()
    assert await gateway.terminate() == 0
    assert time.monotonic() - began < 5
    assert "Traceback" not in gateway.text
    assert no_process_left(tmp_path, "one")


async def test_c071_a_gateway_that_is_killed_leaves_no_server(furnish: Furnish, tmp_path: Path) -> None:
    house = house_with(furnish, tmp_path, tables(tmp_path, "one", "two"))
    gateway = await house.start()
    page = Caller(house)
    await page.use(gateway)
    await page.say("hang", "m1")
    await until(lambda: "hang" in ran(tmp_path / "one"), "a call is under way")
    await page.close()
    await gateway.kill()
    await until(lambda: no_process_left(tmp_path, "one", "two"), "the servers have ended")


async def test_c070_a_server_that_is_killed_is_there_again_for_the_next_turn(
    furnish: Furnish, tmp_path: Path
) -> None:
    house = house_with(furnish, tmp_path, tables(tmp_path, "one", more="trust = true\n"))
    gateway = await house.start()
    page = Caller(house)
    await page.use(gateway)
    for number in range(2):
        told = await page.say("add", f"m{number}")
        assert told is not None
        await page.ended(told["session_id"])
        os.kill(started(tmp_path / "one")[-1], signal.SIGKILL)
    assert ran(tmp_path / "one") == ["add 1 2", "add 1 2"]
    await page.close()
    assert await gateway.terminate() == 0


@pytest.mark.parametrize(
    ("tool", "runs", "open_requests"), [("write", ["write x"], 1), ("add", ["add 1 2", "add 1 2"], 0)]
)
async def test_c074_a_call_that_a_killed_gateway_left_runs_again_only_if_its_server_says_that_it_reads(
    furnish: Furnish, tmp_path: Path, tool: str, runs: list[str], open_requests: int
) -> None:
    house = house_with(furnish, tmp_path, tables(tmp_path, "one", more="trust = true\n"))
    first = await house.start(fault="done.before")
    page = Caller(house)
    await page.use(first)
    await page.say(tool, "m1")
    await first.died()
    await page.close()
    again = await house.start_and_rest()
    assert ran(tmp_path / "one") == runs
    assert len(house.open_pendings()) == open_requests
    if not open_requests:
        house.assert_valid()
    assert await again.terminate() == 0


async def test_a_required_server_that_is_down_is_exit_code_6(furnish: Furnish, tmp_path: Path) -> None:
    gone = f"[mcp.gone]\ncommand = {json.dumps([sys.executable, '-c', 'import sys; sys.exit(3)'])}\n"
    house = house_with(furnish, tmp_path, gone + "required = true\n" + tables(tmp_path, "one"))
    for arguments in (("ask", "clerk", "hello"), ("run",)):
        ended = await threadgate(house.folder, *arguments)
        assert ended.code == 6, ended
        line = "threadgate: required tool server 'gone' is down: it ended with exit code 3"
        assert ended.err.splitlines()[-1] == line
        assert "Traceback" not in ended.err
    assert no_process_left(tmp_path, "one")


async def test_a_required_server_that_goes_down_is_told_by_readyz(furnish: Furnish, tmp_path: Path) -> None:
    more = tables(tmp_path, "one", more="required = true\n") + tables(tmp_path, "two")
    house = house_with(furnish, tmp_path, more)
    gateway = await house.start()
    async with await house.client(gateway) as client:
        assert (await client.get("/readyz")).json() == {"ready": True, "store": "ok"}
        (tmp_path / "one" / "ran").rename(tmp_path / "pids")
        (tmp_path / "one").rmdir()  # it cannot start again
        pid = int((tmp_path / "pids").read_text().split()[1])
        os.kill(pid, signal.SIGKILL)
        os.kill(started(tmp_path / "two")[0], signal.SIGKILL)

        async def told() -> bool:
            answer = await client.get("/readyz")
            return answer.status_code == 503 and list(answer.json()["tool_servers_down"]) == ["one"]

        await until(told, "the server is named")


async def test_ask_has_the_tools_of_its_servers_and_leaves_none(furnish: Furnish, tmp_path: Path) -> None:
    house = house_with(furnish, tmp_path, tables(tmp_path, "one", more="trust = true\n"))
    ended = await threadgate(house.folder, "ask", "clerk", "add")
    assert (ended.code, ended.out.strip().splitlines()[-1]) == (0, "Done.")
    assert ran(tmp_path / "one") == ["add 1 2"]
    assert no_process_left(tmp_path, "one")
    written = await threadgate(house.folder, "ask", "clerk", "write")
    assert written.code == 0
    assert ran(tmp_path / "one") == ["add 1 2", "write x"]
    assert no_process_left(tmp_path, "one")


async def test_mcp_list_shows_tools_and_what_is_down(furnish: Furnish, tmp_path: Path) -> None:
    gone = '[mcp.gone]\ncommand = ["no-such-program"]\n'
    house = house_with(furnish, tmp_path, tables(tmp_path, "one", more="required = true\n"))
    shown = (await threadgate(house.folder, "mcp", "list")).done()
    assert "mcp__one__add" in shown
    assert "Add two numbers." in shown
    house.more += gone
    house.furnish()
    listed = await threadgate(house.folder, "mcp", "list")
    assert listed.code == 1
    assert "gone is down: there is no program 'no-such-program'" in listed.out


PROGRAM_WITHOUT_AN_END = """
import asyncio, sys
from pathlib import Path
from gateway.clock import SystemClock
from gateway.tools.mcp import AgentTools, ServerSettings, ToolServers
from gateway.tools.base import CallContext

async def main():
    folder = Path(sys.argv[1])
    made = [ServerSettings(name=name, command=(sys.executable, sys.argv[2], str(folder / name)))
            for name in ("one", "two")]
    servers = ToolServers(made, SystemClock(), folder)
    await servers.start()
    tools = {tool.name: tool for tool in AgentTools(servers, None).tools()}
    context = CallContext(call_id="c", session_id="s", turn_id="t", idempotency_key="k")
    print((await tools["mcp__one__add"].handler({"a": 1, "b": 2}, context)).text)
    hanging = [tools[f"mcp__{name}__hang"].handler({}, context) for name in ("one", "two")]
    calls = [asyncio.ensure_future(call) for call in hanging]
    while not all("hang" in (folder / name / "ran").read_text() for name in ("one", "two")):
        await asyncio.sleep(0.01)

asyncio.run(main())
"""


async def test_c071_a_program_that_just_ends_leaves_no_process_and_no_traceback(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-c", PROGRAM_WITHOUT_AN_END, str(tmp_path), str(SERVER)),
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert (process.returncode, out.decode().strip()) == (0, "3"), err.decode()
    assert err.decode() == ""
    assert no_process_left(tmp_path, "one", "two")
