"""The channel contract, kept by Slack over both of its transports."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from channels.base import Actor, Channel, Form, MessageRef, ThreadKey
from channels.slack.refs import unpack_ref
from tests.contracts.channel import ChannelContract
from tests.contracts.harness import RETRY_AFTER, ChannelHarness, Inbox, Seen, Trouble
from tests.platforms.slack import Json, Said, SlackServer
from tests.platforms.slack.hasty import Transport, begin, quick

ADA, DIRECT = "U1", "D1"


class SlackHarness:
    """One app, one person, one thread of their direct conversation."""

    troubles: frozenset[Trouble] = frozenset({"busy", "down", "gone"})

    def __init__(self, server: SlackServer, over: Transport) -> None:
        self.server, self._over = server, over
        self.secret = server.app.bot_token
        self.inbox = Inbox()
        self.channel: Channel
        server.ack_within = 1.0
        events, server.app.events = server.app.events, set()
        self.root = server.say(ADA, DIRECT, "before the bot was there")
        server.app.events = events
        self.thread = ThreadKey("slack", "T1", DIRECT, self.root.ts)
        self.person = Actor("slack", "T1", ADA)
        self.personal = ThreadKey("slack", "T1", ADA, "")
        self.role = "S1"

    async def start(self) -> None:
        channel = self.channel = quick(self.server, self._over)
        await begin(self.server, channel, self.inbox)

    async def retry(self) -> None:
        """What was not acknowledged is repeated at once, not after Slack's minutes."""
        while True:
            with contextlib.suppress(TimeoutError):
                await self.server.wait_for(self.server.retry_now)

    async def restart(self) -> None:
        await self.channel.stop()
        await self.start()

    async def say(self, text: str) -> Said:
        return self.server.say(ADA, DIRECT, text, thread_ts=self.root.ts)

    async def redeliver(self, handle: Any) -> None:
        self.server.redeliver(handle)

    async def attach(self, content: bytes, name: str) -> None:
        self.server.say(ADA, DIRECT, "", thread_ts=self.root.ts, files=[(name, content)])

    async def press(self, ref: MessageRef, label: str) -> None:
        self.server.press(ADA, *unpack_ref(ref), label)

    async def press_call(self, ref: MessageRef, number: int, label: str) -> None:
        self.server.press(ADA, *unpack_ref(ref), f"{number} {label}")

    async def submit(self, form: Form, values: Mapping[str, str | tuple[str, ...]]) -> None:
        await self.server.wait_view(ADA)
        labels = {field.name: field.label for field in form.fields}
        sent = await self.server.submit_view(ADA, {labels[name]: value for name, value in values.items()})
        assert sent.outcome == "closed"

    async def seen(self) -> list[Seen]:
        while signs := [task for task in asyncio.all_tasks() if task.get_name() == "slack sign"]:
            await asyncio.wait(signs)
        return [self._seen(message) for message in self.server.from_bot(DIRECT)]

    async def look(self, ref: MessageRef) -> Seen:
        return self._seen(self.server.message(*unpack_ref(ref)))

    async def notices(self) -> list[str]:
        return [message["text"] for message in self.server.ephemerals(ADA)]

    async def paged(self) -> list[str]:
        return self.server.paged(DIRECT)

    async def delete(self, ref: MessageRef) -> None:
        channel, ts = unpack_ref(ref)
        del self.server.channels[channel].messages[ts]

    async def trouble(self, kind: Trouble) -> None:
        if kind == "busy":
            self.server.fail_next("chat.postMessage", 429, retry_after=int(RETRY_AFTER))
        elif kind == "down":
            await self.server.down()
        else:
            self.server.kick_bot(DIRECT)

    def _seen(self, message: Json) -> Seen:
        return Seen(
            text=self.server.shown(DIRECT, message["ts"]),
            buttons=tuple(buttons(self.server.labels(DIRECT, message["ts"]), message)),
            files=tuple(self.server.files[file["id"]].content or b"" for file in message.get("files", ())),
        )


def buttons(labels: list[str], message: Json) -> list[str]:
    """The controls' words, with a tick where an option is chosen, as people see it."""
    elements = [e for block in message.get("blocks", ()) for e in block.get("elements", ())]
    chosen = {option["text"]["text"] for e in elements for option in e.get("initial_options", ())}
    return [f"✓ {label}" if label in chosen else label for label in labels]


@contextlib.asynccontextmanager
async def started(over: Transport) -> AsyncIterator[ChannelHarness]:
    async with SlackServer() as server:
        harness = SlackHarness(server, over)
        await harness.start()
        retrying = asyncio.create_task(harness.retry())
        yield harness
        retrying.cancel()
        await asyncio.gather(retrying, return_exceptions=True)
        await harness.channel.stop()
        server.check()


class TestSlackSocket(ChannelContract):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[ChannelHarness]:
        async with started("socket") as harness:
            yield harness


class TestSlackHttp(ChannelContract):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[ChannelHarness]:
        async with started("http") as harness:
            yield harness
