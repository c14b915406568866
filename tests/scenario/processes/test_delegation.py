"""The whole way down: a thread, an orchestrator, a subagent in a process of its own, a tool server. The
gateway is killed while a person is asked; afterwards everything has happened once and nothing is left."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.platforms.slack import SlackServer
from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.gateway import GatewayProcess, until
from tests.scenario.processes.house import House, rule
from tests.scenario.processes.slack_side import cards, slack_table, words

pytestmark = [pytest.mark.crash, pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")]

SERVER = Path(__file__).parents[2] / "platforms" / "mcp" / "server.py"
RULES = (
    rule(
        "delegate",
        {"calls": [{"tool": "ops", "args": {"task": "refund {order}"}}]},
        {"text": "Ops says: {answer}"},
    ),
    rule(
        "refund",
        {"calls": [{"tool": "mcp__desk__add", "args": {"a": 1, "b": 2}}]},
        {"calls": [{"tool": "mcp__desk__write", "args": {"text": "refund {order}"}}]},
        {"text": "Refunded {order}."},
    ),
)


def tables(house: Path, slack: SlackServer) -> str:
    return f"""
{slack_table(slack)}
[agents.ops]
tool_description = "Carries out what changes something."
isolation = "process"
mcp = ["desk"]
default_decision = "allow"
[[agents.ops.rules]]
tool = "mcp__desk__write"
decision = "ask"
approvers = ["slack:T1:U2"]
notify = ["slack:T1:C2"]
[mcp.desk]
command = ["{sys.executable}", "{SERVER}", "{house / "desk"}"]
"""


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server
        server.check()


@pytest.fixture
async def house(furnish: Furnish, slack: SlackServer, tmp_path: Path) -> House:
    (tmp_path / "desk").mkdir()
    return furnish(
        rules=RULES,
        agent='mcp = []\nsubagents = [{ agent = "ops", tools = ["mcp__desk__*"] }]',
        more=tables(tmp_path, slack),
    )


def ran(house: House) -> list[str]:
    """What the tool server has done."""
    path = house.folder / "desk" / "ran"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if not line.startswith("started")]


def below(process: int) -> set[int]:
    """Every process that descends from this one."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, grown = {process}, True
    while grown:
        more = {child for child, parent in parents.items() if parent in found} - found
        found, grown = found | more, bool(more)
    return found - {process}


def alive(processes: set[int]) -> set[int]:
    left = set()
    for process in processes:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            left.add(process)
    return left


async def asked(slack: SlackServer) -> str:
    """The card among the approvers, once it is there."""
    [ts] = await slack.wait_for(lambda: cards(slack, "C2"), 60)
    return ts


async def killed(gateway: GatewayProcess) -> None:
    """Kill it, and see that everything it had started ends with it."""
    started = below(gateway.process.pid)
    assert started  # the tool server, at least
    await gateway.kill()
    await until(lambda: not alive(started), "what it had started has ended")


async def test_approved_after_the_gateway_was_killed_it_runs_once_and_nothing_is_left(
    slack: SlackServer, house: House
) -> None:
    first = await house.start()
    await slack.wait_connections(2)
    slack.say("U1", "C1", "<@UBOT> delegate A1")
    await asked(slack)
    await house.rest()
    assert ran(house) == ["add 1 2"]
    await killed(first)
    second = await house.start()
    await slack.wait_connections(2)
    slack.press("U2", "C2", await asked(slack), "Approve")
    await slack.wait_for(lambda: "Ops says: Refunded A1." in words(slack, "C1"), 60)
    await house.rest()
    assert ran(house) == ["add 1 2", "write refund A1"]
    assert cards(slack, "C1") == cards(slack, "C2") == []
    assert words(slack, "C1").count("Refunded A1.") == 1
    house.assert_valid()
    started = below(second.process.pid)
    assert await second.terminate() == 0
    assert alive(started) == set()
    assert "Traceback" not in second.text


async def test_denied_after_the_gateway_was_killed_it_never_runs(slack: SlackServer, house: House) -> None:
    first = await house.start()
    await slack.wait_connections(2)
    slack.say("U1", "C1", "<@UBOT> delegate A1")
    await asked(slack)
    await house.rest()
    await killed(first)
    await house.start()
    await slack.wait_connections(2)
    slack.press("U2", "C2", await asked(slack), "Deny")
    await until(lambda: not house.open_pendings() and house.at_rest(), "it is over")
    assert ran(house) == ["add 1 2"]
    assert house.rows("SELECT DISTINCT status FROM sessions") == [("idle",)]
    outcomes = house.rows("SELECT outcome FROM turns WHERE state = 'done'")
    assert set(outcomes) == {("denied",)}
    house.assert_valid()


async def test_tools_outside_of_what_the_caller_left_do_not_exist(
    furnish: Furnish, slack: SlackServer, tmp_path: Path
) -> None:
    (tmp_path / "desk").mkdir()
    house = furnish(
        rules=RULES,
        agent='mcp = []\nsubagents = [{ agent = "ops", tools = ["mcp__desk__add"] }]',
        more=tables(tmp_path, slack),
    )
    await house.start()
    await slack.wait_connections(2)
    slack.say("U1", "C1", "<@UBOT> delegate A1")
    await slack.wait_for(lambda: "Ops says: " in words(slack, "C1"), 60)
    await house.rest()
    assert ran(house) == ["add 1 2"]
    assert house.open_pendings() == []
