"""Unknown people: a code in private, confirmed by somebody who may."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gateway.pairing import CODE_SECONDS
from tests.clock import FakeClock
from tests.platforms.telegram import TelegramServer
from tests.platforms.telegram.driving import TOKEN
from tests.scenario.processes.shell import threadgate
from tests.scenario.telegram.house import ADA, BOB, EVE, GROUP, House, Scene, running

CONFIG = """
[gateway]
database = "sqlite:///gateway.db"
[models.main]
provider = "scripted"
script = "script.json"
[agents.assistant]
[channels.telegram]
token = "env:BOT"
"""


def furnish(folder: Path) -> None:
    """What the command line needs: a configuration over the same database."""
    (folder / "script.json").write_text('{"replies": ["ok"]}')
    (folder / "config.toml").write_text(CONFIG)


async def code_of(scene: Scene, count: int = 1) -> str:
    notice = await scene.sees("I do not know you. Your id here is 4444.", EVE, count)
    match = re.search(r"/pair (\w+)", notice["text"])
    assert match is not None
    return match[1]


async def test_a_code_is_confirmed_in_another_chat_and_the_person_may_talk(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server, pairing=True, approvers=[f"telegram:{ADA}"]) as scene:
        scene.say("hello", EVE)
        code = await code_of(scene)
        scene.say("hello?", EVE)
        scene.say(f"/pair {code}", BOB)
        await scene.sees("Only those who run me may let people in.", BOB)
        scene.say("/pair zzzzz")
        await scene.sees("There is no code 'zzzzz' that still waits.")
        scene.say(f"/pair {code.upper()}")
        await scene.sees("Eve (telegram:777:4444) may talk to me now.")
        await scene.sees("You may talk to me now.", EVE)
        scene.say("at last", EVE)
        await scene.sees("You said: at last", EVE)
        await scene.rest()
        assert len(scene.messages("I do not know you.", EVE)) == 1
        assert [m.text for m in house.said()] == ["at last"]
        scene.say(f"/pair {code}")
        await scene.sees(f"There is no code {code!r} that still waits.")
        kinds = [line.kind for line in await scene.gateway.store.audit_lines()]
        assert kinds.count("admitted") == 1


async def test_a_code_and_an_admission_survive_restarts(house: House, server: TelegramServer) -> None:
    options: dict[str, Any] = {"pairing": True, "approvers": [f"telegram:{ADA}"]}
    async with running(house, server, **options) as scene:
        scene.say("hello", EVE)
        code = await code_of(scene)
        await scene.rest()
    async with running(house, server, **options) as scene:
        scene.say("hello", EVE)
        assert await code_of(scene, count=2) == code
        scene.say(f"/pair {code}")
        await scene.sees("You may talk to me now.", EVE)
        await scene.rest()
    async with running(house, server, **options) as scene:
        scene.say("hello", EVE)
        await scene.sees("You said: hello", EVE)


async def test_a_code_runs_out_and_whoever_asks_again_gets_another(
    house: House, server: TelegramServer
) -> None:
    clock = FakeClock()
    async with running(house, server, pairing=True, approvers=[f"telegram:{ADA}"], clock=clock) as scene:
        scene.say("hello", EVE)
        code = await code_of(scene)
        await scene.rest()
        clock.advance(CODE_SECONDS + 1)
        scene.say(f"/pair {code}")
        await scene.sees(f"There is no code {code!r} that still waits.")
        scene.say("hello", EVE)
        assert await code_of(scene, count=2) != code


async def test_the_command_line_lets_people_in_while_the_gateway_runs(
    house: House, server: TelegramServer
) -> None:
    furnish(house.folder)
    async with running(house, server, pairing=True) as scene:
        scene.say("hello", EVE)
        code = await code_of(scene)
        refused = await threadgate(house.folder, "pair", "zzzzz", BOT=TOKEN)
        assert (refused.code, refused.out) == (1, "")
        assert refused.err == "There is no code 'zzzzz' that still waits.\n"
        confirmed = await threadgate(house.folder, "pair", code, BOT=TOKEN)
        assert (confirmed.code, confirmed.out) == (0, "Eve (telegram:777:4444) may talk to me now.\n")
        await scene.sees("You may talk to me now.", EVE)
        scene.say("at last", EVE)
        await scene.sees("You said: at last", EVE)


async def test_without_pairing_the_id_is_told_and_no_code(house: House, server: TelegramServer) -> None:
    async with running(house, server) as scene:
        scene.say("hello", EVE)
        notice = await scene.sees("I do not know you.", EVE)
        assert (
            notice["text"] == "I do not know you. Your id here is 4444. Ask the person who runs me to add it."
        )


async def test_c086_names_never_match_and_a_stranger_can_press_nothing(
    house: House, server: TelegramServer
) -> None:
    """Somebody who takes Ada's name and handle, and one whose name is her number, stay strangers."""
    server.user(222, "Ada", username="ada")
    server.user(333, str(ADA))
    for user in (222, 333):
        server.chats[GROUP].members[user] = "member"
    async with running(house, server, pairing=True) as scene:
        for user in (222, 333):
            scene.say("let me in", user)
            await scene.sees(f"I do not know you. Your id here is {user}.", user)
            scene.call("let me in", user)
        scene.call("pay A-1 30")
        card = await scene.card(chat=GROUP)
        for user in (222, 333, EVE):
            assert (await scene.press(card, "Approve", user)).text.startswith("You may not decide this.")
        await scene.rest()
        assert house.paid == []
        assert len(house.requests) == 1


async def test_an_empty_list_lets_nobody_in(house: House, server: TelegramServer) -> None:
    async with running(house, server, users=()) as scene:
        scene.say("hello")
        await scene.sees("I do not know you.")
        await scene.rest()
        assert house.requests == []
