"""A real process, killed in the middle of a long answer; and one that is configured for a webhook."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gateway.commands import COMMANDS
from tests.demo_process import free_port
from tests.platforms.telegram import Json, TelegramServer
from tests.platforms.telegram.driving import TOKEN
from tests.platforms.telegram.pushing import pushed
from tests.scenario.processes.house import ADA
from tests.scenario.processes.house import House as Installation
from tests.scenario.telegram.house import section

pytestmark = pytest.mark.crash
PARTS = 10
LONG = "\n\n".join(section(number) for number in range(1, PARTS + 1))
RULES = (
    {"match": "^long", "replies": [{"text": LONG}]},
    {"match": "^hello", "replies": [{"text": "Hello yourself."}]},
)
Install = Callable[..., Installation]


@pytest.fixture
async def install(tmp_path: Path) -> AsyncIterator[Install]:
    made: list[Installation] = []

    def build(server: TelegramServer, more: str = "") -> Installation:
        house = Installation(folder=tmp_path, api_base=server.api_base, rules=RULES, more=more)
        house.furnish()
        made.append(house)
        return house

    yield build
    for house in made:
        await house.clear()


def texts(server: TelegramServer) -> list[str]:
    return [message["text"] for message in server.from_bot(ADA)]


@pytest.mark.parametrize("held", [False, True], ids=["between two parts", "while a part is on its way"])
async def test_killed_in_the_middle_of_a_long_answer_one_part_at_most_comes_twice(
    server: TelegramServer, install: Install, held: bool
) -> None:
    house = install(server)
    first = await house.start()
    server.say(ADA, ADA, "long")
    await server.wait_messages(ADA, 3)
    if held:
        async with server.held("sendMessage") as calls:
            await server.wait_for(lambda: calls.waiting)
            await first.kill()
    else:
        await first.kill()
    await house.start()
    await server.wait_for(lambda: any(f"last of {PARTS}" in text for text in texts(server)), 60)
    await house.rest()
    bare = [text.partition("\n\n(this may be a repeat")[0] for text in texts(server)]
    again = [index for index, text in enumerate(bare) if text in bare[:index]]
    # The part that was on its way is sent once more and says so, whether or not the first copy arrived.
    marked = [index for index, text in enumerate(texts(server)) if text != bare[index]]
    assert len(marked) <= 1
    assert set(again) <= set(marked)
    whole = "\n".join(text for index, text in enumerate(bare) if index not in again)
    places = [whole.index(f"word{n}x{i} ") for n in range(1, PARTS + 1) for i in range(289)]
    assert places == sorted(places)


async def test_a_gateway_that_is_configured_for_a_webhook_is_posted_to(
    server: TelegramServer, install: Install
) -> None:
    port = free_port()
    table = (
        '[channels.telegram.webhook]\nurl = "https://bot.example/hook"\n'
        f'secret = "env:HOOK"\nlisten = "127.0.0.1:{port}"\n'
    )
    house = install(server, table)
    gateway = await house.start(env={"HOOK": "s3cret"})
    assert server.bots[TOKEN].webhook == {"url": "https://bot.example/hook", "secret_token": "s3cret"}
    menu = [entry["command"] for entry in _menu(server)]
    assert menu == list(COMMANDS)
    async with pushed(server, f"http://127.0.0.1:{port}/hook") as pusher:
        server.say(ADA, ADA, "hello")
        await server.wait_messages(ADA, 1)
        assert await gateway.terminate() == 0
    assert pusher.statuses == [200]
    assert texts(server) == ["Hello yourself."]
    assert server.calls("getUpdates") == []
    assert re.search("s3cret", gateway.text) is None


def _menu(server: TelegramServer) -> list[Json]:
    [commands] = server.bots[TOKEN].commands.values()
    return commands
