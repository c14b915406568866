"""A gateway that is killed while a schedule is due, and what its successor makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway import faults
from tests.platforms.telegram import TelegramServer
from tests.scenario.processes.chat import PrivateChat
from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.gateway import until
from tests.scenario.processes.house import ADA, RULES, TOKEN, House, step
from tests.scenario.processes.shell import threadgate

pytestmark = pytest.mark.crash

POINTS = [point for point in faults.POINTS if point.partition(".")[0] in ("timer", "lease", "final")]


def scheduling(after: str) -> list[dict[str, Any]]:
    """Answers `later ORDER` with a wake-up, and the wake-up with a note."""
    plan = {"calls": [{"tool": "schedule", "args": {"after": after, "instruction": "note {order}"}}]}
    return [
        {
            "match": r"^\[Scheduled wake-up [^\n]*\nnote (?P<order>\w+)",
            "replies": [step("note"), {"text": "Woken for {order}."}],
        },
        {"match": r"^later (?P<order>\w+)", "replies": [plan, {"text": "Planned {order}."}]},
        *RULES,
    ]


def fired(house: House) -> int:
    return int(house.value("SELECT count(*) FROM audit WHERE kind = 'fired'"))


def planned(house: House) -> int:
    return int(house.value("SELECT count(*) FROM timers WHERE kind = 'schedule'"))


@pytest.mark.parametrize("point", POINTS)
async def test_killed_while_a_schedule_is_due_it_is_carried_out_once(
    point: str, furnish: Furnish, server: TelegramServer
) -> None:
    house = furnish(api_base=server.api_base, rules=scheduling("1s"))
    chat = PrivateChat(server, house)
    # The first claim and the first end belong to the message that makes the schedule.
    first = await house.start(fault=point if point.startswith("timer") else f"{point}:2")
    chat.say("later A1")
    await first.died()
    await house.start()
    await chat.words("Woken for A1.")
    await house.rest()
    assert [line["order"] for line in house.ledger("note")] == ["A1"]
    assert (fired(house), len(chat.said("Woken for A1."))) == (1, 1)
    assert house.value("SELECT count(*) FROM timers WHERE done = 0") == 0
    house.assert_valid()


async def test_killed_before_it_is_due_it_is_carried_out_once_by_whoever_comes(
    furnish: Furnish, server: TelegramServer
) -> None:
    house = furnish(api_base=server.api_base, rules=scheduling("2s"))
    chat = PrivateChat(server, house)
    first = await house.start()
    chat.say("later A1")
    await until(lambda: planned(house), "the schedule is stored")
    await first.kill()
    await house.start()
    await chat.words("Woken for A1.")
    await house.rest()
    assert (len(house.ledger("note")), fired(house)) == (1, 1)


async def test_what_the_configuration_wants_comes_once_and_ends_with_it(
    furnish: Furnish, server: TelegramServer
) -> None:
    table = f'\n[[schedules]]\nname = "watch"\nagent = "clerk"\nthread = "telegram:{ADA}"\n'
    table += 'instruction = "note B7"\nevery = "1h"\n'
    house = furnish(api_base=server.api_base, rules=scheduling("1s"), more=table)
    chat = PrivateChat(server, house)
    first = await house.start()
    chat.say("hello")  # a bot may not write to somebody first
    await chat.words("Hello yourself.")
    due = house.value("SELECT due_at FROM timers WHERE name = 'watch'")
    await first.kill()
    again = await house.start()
    assert house.value("SELECT due_at FROM timers WHERE name = 'watch'") == due
    await again.kill()
    house.make_due("watch")
    await house.start()
    await chat.words("Woken for B7.")
    await house.rest()
    assert (len(house.ledger("note")), fired(house)) == (1, 1)
    body = json.loads(house.value("SELECT body FROM timers WHERE name = 'watch'"))
    assert body["instruction"] == "note B7"
    house.more = ""
    house.furnish()
    await house.processes[-1].kill()
    await house.start()
    assert house.value("SELECT count(*) FROM timers WHERE name = 'watch' AND done = 0") == 0


async def test_the_command_line_lists_and_cancels(furnish: Furnish, server: TelegramServer) -> None:
    house = furnish(api_base=server.api_base, rules=scheduling("2h"))
    chat = PrivateChat(server, house)
    await house.start()
    chat.say("later A1")
    await chat.words("Planned A1.")
    (line,) = (await threadgate(house.folder, "schedules", "--json", BOT=TOKEN)).lines
    assert (line["instruction"], line["often"], line["by"]) == ("note A1", "once", f"telegram:777:{ADA}")
    shown = (await threadgate(house.folder, "schedules", BOT=TOKEN)).done()
    assert line["code"] in shown and "note A1" in shown
    ended = await threadgate(house.folder, "schedules", "--cancel", line["code"], BOT=TOKEN)
    assert ended.done().startswith("Cancelled: ")
    again = await threadgate(house.folder, "schedules", "--cancel", line["code"], BOT=TOKEN)
    assert (again.code, again.out) == (1, "") and "There is no schedule" in again.err
    assert (await threadgate(house.folder, "schedules", BOT=TOKEN)).done() == "Nothing is scheduled."
