"""The channel contract, kept by Discord: through the real library over real sockets."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from channels.base import Actor, Channel, Form, MessageRef, ThreadKey
from channels.discord.refs import unpack_ref
from tests.contracts.channel import ChannelContract
from tests.contracts.harness import RETRY_AFTER, ChannelHarness, Inbox, Seen, Trouble
from tests.platforms.discord.hasty import quick
from tests.platforms.discord.ids import ADA
from tests.platforms.discord.limits import Json
from tests.platforms.discord.server import DiscordServer


class DiscordHarness:
    """One bot, one person, their direct conversation."""

    troubles: frozenset[Trouble] = frozenset({"busy", "down", "gone"})

    def __init__(self, server: DiscordServer) -> None:
        self.server = server
        self.secret = server.token
        self.inbox = Inbox()
        self.channel: Channel
        self.direct = server.dm(ADA).id
        self.thread = ThreadKey("discord", "@me", self.direct, "")
        self.person = Actor("discord", "", ADA)
        self.personal = ThreadKey("discord", "@me", f"user:{ADA}", "")
        self.role = ""  # there are none in private

    async def start(self) -> None:
        channel = self.channel = quick(self.server)
        await channel.start(self.inbox)
        assert channel.state == "up"

    async def restart(self) -> None:
        await self.channel.stop()
        await self.start()

    async def say(self, text: str) -> Json:
        return self.server.say(ADA, self.direct, text)

    async def redeliver(self, handle: Any) -> None:
        self.server.redeliver(handle)

    async def attach(self, content: bytes, name: str) -> None:
        self.server.say(ADA, self.direct, "", files=[(name, content)])

    async def press(self, ref: MessageRef, label: str) -> None:
        self.server.press(ADA, *unpack_ref(ref), label)

    async def press_call(self, ref: MessageRef, number: int, label: str) -> None:
        self.server.press(ADA, *unpack_ref(ref), f"{number} {label}")

    async def submit(self, form: Form, values: Mapping[str, str | tuple[str, ...]]) -> None:
        await self.server.wait_modal(ADA)
        labels = {field.name: field.label for field in form.fields}
        sent = self.server.submit(ADA, {labels[name]: value for name, value in values.items()})
        assert not (await sent.taken()).failed

    async def seen(self) -> list[Seen]:
        while signs := [task for task in asyncio.all_tasks() if task.get_name() == "discord sign"]:
            await asyncio.wait(signs)
        return [self._seen(message) for message in self.server.from_bot(self.direct)]

    async def look(self, ref: MessageRef) -> Seen:
        channel, message = unpack_ref(ref)
        assert channel == self.direct
        return self._seen(self.server.look(channel, message))

    async def notices(self) -> list[str]:
        return self.server.private_texts(ADA)

    async def paged(self) -> list[str]:
        return self.server.paged(self.direct)

    async def delete(self, ref: MessageRef) -> None:
        self.server.delete(*unpack_ref(ref))

    async def trouble(self, kind: Trouble) -> None:
        if kind == "busy":
            self.server.fail_next("POST /channels/*/messages", 429, retry_after=RETRY_AFTER)
        elif kind == "down":
            await self.server.down()
        else:
            self.server.block(ADA)

    def _seen(self, message: Json) -> Seen:
        own_id = message["id"]
        return Seen(
            text=as_read(self.server.shown(self.direct, own_id)),
            buttons=tuple(controls(self.server.labels(self.direct, own_id), message)),
            files=tuple(content for _, content in self.server.attached(self.direct, own_id)),
        )


def as_read(markdown: str) -> str:
    """The text as people read it: outside of code, marks are drawn and escapes are gone."""
    pieces = re.split(r"(```[\s\S]*?```|`[^`\n]*`)", markdown)
    drawn = [re.sub(r"(?<!\\)\*\*([^*]+?)\*\*", r"\1", piece) for piece in pieces[::2]]
    pieces[::2] = [re.sub(r"\\([^\w\s])", r"\1", piece) for piece in drawn]
    return "".join(pieces)


def controls(labels: list[str], message: Json) -> list[str]:
    """The controls' words, with a tick where an option is chosen, as people see it."""
    chosen = {option["label"] for option in options_of(message["components"]) if option.get("default")}
    return [f"✓ {label}" if label in chosen else label for label in labels]


def options_of(components: list[Json]) -> list[Json]:
    found: list[Json] = []
    for component in components:
        found += component.get("options", [])
        found += options_of(component.get("components", []))
    return found


class TestDiscord(ChannelContract):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[ChannelHarness]:
        async with DiscordServer() as server:
            harness = DiscordHarness(server)
            await harness.start()
            yield harness
            await harness.channel.stop()
            server.check()
