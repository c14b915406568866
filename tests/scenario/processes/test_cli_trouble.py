"""Bad input at the command line: one clear line and the right exit code, never a traceback."""

from __future__ import annotations

import sqlite3

import pytest

from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.house import House
from tests.scenario.processes.shell import threadgate

pytestmark = pytest.mark.crash

COMMANDS = [("run",), ("ask", "clerk", "hello"), ("pending",)]


@pytest.fixture
async def house(furnish: Furnish) -> House:
    return furnish(web=True)


@pytest.mark.parametrize("command", COMMANDS[:2])
async def test_a_config_that_is_not_there_is_named(command: tuple[str, ...], house: House) -> None:
    ran = await threadgate(house.folder, *command, "--config", "missing.toml")
    ran.failed(2, "missing.toml")


@pytest.mark.parametrize("command", COMMANDS[:2])
async def test_a_config_that_is_not_toml_is_named_with_the_line(
    command: tuple[str, ...], house: House
) -> None:
    (house.folder / "config.toml").write_text("[gateway]\nnonsense\n")
    (await threadgate(house.folder, *command, "--config", "config.toml")).failed(2, "config.toml:2")


async def test_a_config_that_is_not_text_is_named(house: House) -> None:
    (house.folder / "config.toml").write_bytes(b"\xff\xfe\x00")
    (await threadgate(house.folder, "run")).failed(2, "config.toml", "UTF-8")


async def test_an_unknown_key_is_named(house: House) -> None:
    config = house.folder / "config.toml"
    config.write_text(config.read_text().replace("drain =", "drian ="))
    (await threadgate(house.folder, "run")).failed(2, "gateway.drian", "drain")


async def test_a_script_that_cannot_be_read_is_named(house: House) -> None:
    (house.folder / "script.json").write_text("[")
    for command in COMMANDS[:2]:
        (await threadgate(house.folder, *command)).failed(2, "script.json", "not JSON")


async def test_a_script_that_is_not_there_is_named_before_anything_runs(house: House) -> None:
    (house.folder / "script.json").unlink()
    ran = await threadgate(house.folder, "run")
    ran.failed(2, "script.json")


async def test_a_tool_module_that_is_not_there_is_named(house: House) -> None:
    (house.folder / "ledger_tools.py").unlink()
    (await threadgate(house.folder, "run")).failed(2, "ledger_tools")


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_file_that_is_no_database_is_named_and_left_alone(
    command: tuple[str, ...], house: House
) -> None:
    path = house.folder / "gate.db"
    path.write_bytes(b"this is a shopping list, " * 100)
    before = path.read_bytes()
    (await threadgate(house.folder, *command)).failed(1, "gate.db", "not a database of Threadgate")
    assert path.read_bytes() == before


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_newer_database_is_refused_and_left_alone(command: tuple[str, ...], house: House) -> None:
    assert (await threadgate(house.folder, "sessions")).code == 0
    path = house.folder / "gate.db"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 9999")
    database.close()
    (await threadgate(house.folder, *command)).failed(1, "9999", "newer")


async def test_a_port_that_is_taken_is_said(house: House) -> None:
    gateway = await house.start()
    port = (await gateway.logged(r"listening at \S+:(\d+)"))[1]
    config = house.folder / "config.toml"
    config.write_text(config.read_text().replace("port = 0", f"port = {port}"))
    ran = await threadgate(house.folder, "run")
    assert ran.code == 2
    assert port in ran.err
    assert "Traceback" not in ran.err


async def test_demo_on_a_taken_port_says_so(house: House) -> None:
    gateway = await house.start()
    port = (await gateway.logged(r"listening at \S+:(\d+)"))[1]
    ran = await threadgate(house.folder, "demo", "--no-open", "--port", port)
    assert ran.code == 2
    assert port in ran.err
    assert "Traceback" not in ran.err


async def test_a_fault_point_that_does_not_exist_is_refused(house: House) -> None:
    ran = await threadgate(house.folder, "sessions", THREADGATE_FAULT="nowhere.before")
    ran.failed(2, "THREADGATE_FAULT", "nowhere.before")
