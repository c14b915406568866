"""The core of the Discord channel on discord-digital-twin: real sockets, and a server by others.

Needs Node.js and the npm package discord-digital-twin 0.1.1, with spiceflow 1.19.0 (`"overrides"`), in a
folder that DISCORD_TWIN names; skipped without it. The twin validates nothing and gives threads ids of their
own, so what is proven here is the way to and fro, in a channel that is answered in place.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from channels.base import Actor, Button, Form, FormField, MessageRef, OutboundMessage, ThreadKey
from channels.discord.adapter import DiscordChannel
from channels.discord.refs import pack_ref, unpack_ref
from tests.contracts.harness import Inbox, a_shared_card, an_approval, settled

FOLDER = os.environ.get("DISCORD_TWIN", "")
DRIVER = Path(__file__).parents[1] / "platforms" / "discord_twin" / "driver.mjs"
TOKEN = "OTAwMDAwMDAwMDAwMDAwMDAx.Gtests.a-bot-token-that-nobody-knows"
WITHIN = 30.0  # seconds

pytestmark = pytest.mark.skipif(
    not (FOLDER and shutil.which("node") and (Path(FOLDER) / "node_modules/discord-digital-twin").is_dir()),
    reason="discord-digital-twin is not installed where DISCORD_TWIN says",
)


class Twin:
    """The twin as a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, told: dict[str, Any]) -> None:
        self._process, self._one_by_one = process, asyncio.Lock()
        self.base = f"http://127.0.0.1:{told['port']}/api/v10"
        self.place = ThreadKey("discord", told["guild"], told["channel"], "")
        self.ada, self.bot = Actor("discord", "", told["user"]), told["bot"]

    async def do(self, verb: str, **given: Any) -> Any:
        """Something that a person does, or sees. AssertionError when the twin cannot."""
        async with self._one_by_one, asyncio.timeout(WITHIN):
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(msgspec.json.encode({"verb": verb, **given}) + b"\n")
            await self._process.stdin.drain()
            answer = msgspec.json.decode(await self._process.stdout.readline())
        assert "error" not in answer, answer
        return answer["value"]

    async def taken(self, interaction: Any) -> dict[str, Any]:
        """An interaction once it was answered for the first time."""
        found: dict[str, Any] = await self.do("taken", id=interaction["id"])
        return found

    async def message(self, ref: MessageRef) -> dict[str, Any]:
        [found] = [m for m in await self.do("messages") if m["id"] == unpack_ref(ref)[1]]
        assert isinstance(found, dict)
        return found


@dataclass
class Stage:
    twin: Twin
    channel: DiscordChannel
    inbox: Inbox

    async def restart(self) -> None:
        await self.channel.stop()
        self.channel = await a_channel(self.twin, self.inbox)


async def a_channel(twin: Twin, inbox: Inbox) -> DiscordChannel:
    channel = DiscordChannel(TOKEN, api_base=twin.base, threads=False)
    await channel.start(inbox)
    assert channel.state == "up"
    return channel


@asynccontextmanager
async def running_twin() -> AsyncIterator[Twin]:
    process = await asyncio.create_subprocess_exec(
        "node",
        str(DRIVER),
        FOLDER,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "TWIN_TOKEN": TOKEN},
        limit=1 << 24,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(WITHIN):
            told = await process.stdout.readline()
        yield Twin(process, msgspec.json.decode(told))
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with running_twin() as twin:
        inbox = Inbox()
        stage = Stage(twin, await a_channel(twin, inbox), inbox)
        try:
            yield stage
        finally:
            await stage.channel.stop()


def labels(message: dict[str, Any]) -> list[str]:
    """The labels of all buttons, in order."""
    found: list[str] = []
    for component in message.get("components", []):
        found += [component["label"]] if component["type"] == 2 else labels(component)
    return found


async def test_a_mention_comes_in_and_its_answer_goes_out(stage: Stage) -> None:
    said = await stage.twin.do("say", text=f"<@{stage.twin.bot}> hello there")
    [message] = await stage.inbox.wait_for(lambda: stage.inbox.messages)
    assert (message.text, message.thread, message.actor) == ("hello there", stage.twin.place, stage.twin.ada)
    assert (message.message_id, message.addressed, message.mentioned) == (said["id"], True, True)
    ref = await stage.channel.send(message.thread, OutboundMessage(text="Hello, Ada."))
    assert (await stage.twin.message(ref))["content"] == "Hello, Ada."
    await stage.restart()
    await stage.channel.edit(ref, OutboundMessage(text="Hello again."))
    assert (await stage.twin.message(ref))["content"] == "Hello again."


async def test_an_edit_is_the_same_message_with_other_words(stage: Stage) -> None:
    said = await stage.twin.do("say", text=f"<@{stage.twin.bot}> first")
    await stage.twin.do("edit", message=said["id"], text=f"<@{stage.twin.bot}> second")
    found = await stage.inbox.wait_for(lambda: [m for m in stage.inbox.messages if m.edited])
    assert [(m.message_id, m.text) for m in found] == [(said["id"], "second")]


async def test_a_card_of_a_dead_process_takes_clicks_and_is_redrawn(stage: Stage) -> None:
    ref = await stage.channel.show(stage.twin.place, an_approval())
    assert labels(await stage.twin.message(ref)) == ["Approve", "Deny"]
    await stage.restart()
    pressed = await stage.twin.do(
        "press", message=unpack_ref(ref)[1], data="v1:p_abcdefghijklmnopqrst:approve"
    )
    assert (await stage.twin.taken(pressed))["type"] == 6
    [press] = stage.inbox.presses
    assert (press.data, press.message_ref, press.actor) == (
        "v1:p_abcdefghijklmnopqrst:approve",
        ref,
        stage.twin.ada,
    )
    await stage.channel.notify_actor(press, "Approved.")
    assert "Approved." in [m["content"] for m in await stage.twin.do("messages")]
    await stage.channel.redraw(ref, settled(an_approval(), "Approved by Ada"))
    assert labels(await stage.twin.message(ref)) == []


async def test_a_button_of_one_call_of_several_is_a_press_about_that_call(stage: Stage) -> None:
    card = a_shared_card(["A-1", "A-2", "A-3"])
    ref = await stage.channel.show(stage.twin.place, card)
    assert "2 Deny" in labels(await stage.twin.message(ref))
    data = card.calls[1].buttons[1].data
    await stage.twin.taken(await stage.twin.do("press", message=unpack_ref(ref)[1], data=data))
    assert [press.data for press in stage.inbox.presses] == [data]


async def test_a_form_is_a_modal_and_becomes_a_press_with_what_was_typed(stage: Stage) -> None:
    data = "v1:p_abcdefghijklmnopqrst:deny_why"
    form = Form(data=data, title="Why not?", fields=(FormField(name="feedback", label="Reason"),))
    card = an_approval(forms=(form,))
    card = replace(card, buttons=(*card.buttons, Button(label="Deny with feedback", data=data)))
    stage.inbox.cards.append(card)
    ref = await stage.channel.show(stage.twin.place, card)
    message = unpack_ref(ref)[1]
    opened = await stage.twin.taken(await stage.twin.do("press", message=message, data=f"f{data}"))
    assert opened["type"] == 9
    modal = msgspec.json.decode(opened["data"])
    typed = modal["components"][0]["component"] | {"value": "Too much."}
    filled = [{"type": 18, "component": {key: typed[key] for key in ("type", "custom_id", "value")}}]
    sent = await stage.twin.do("submit", message=message, data=modal["custom_id"], components=filled)
    assert (await stage.twin.taken(sent))["type"] == 6
    [press] = stage.inbox.presses
    assert (press.data, dict(press.values), press.message_ref) == (data, {"feedback": "Too much."}, ref)


async def test_a_command_is_deferred_in_private_and_its_answer_fills_that_in(stage: Stage) -> None:
    given = await stage.twin.taken(await stage.twin.do("slash", name="status"))
    assert given["type"] == 5
    [message] = stage.inbox.messages
    assert (message.text, message.hidden, message.thread) == ("/status", True, stage.twin.place)
    answer = OutboundMessage(text="All is quiet.", only=message.actor, reply_to=message.message_id)
    ref = await stage.channel.send(message.thread, answer)
    assert ref == pack_ref(stage.twin.place.conversation, unpack_ref(ref)[1])
    assert "All is quiet." in [m["content"] for m in await stage.twin.do("messages")]
