"""The channel contract, kept by Telegram."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from channels.base import Actor, Channel, Form, MessageRef, ThreadKey
from channels.telegram.wire import unpack_ref
from tests.contracts.channel import ChannelContract
from tests.contracts.harness import RETRY_AFTER, ChannelHarness, Inbox, Seen, Trouble
from tests.platforms.telegram import Json, TelegramServer
from tests.platforms.telegram.driving import TOKEN, quick

ADA = 4242


class TelegramHarness:
    """One bot, one person, one private chat."""

    troubles: frozenset[Trouble] = frozenset({"busy", "down", "gone"})
    secret = TOKEN.partition(":")[2]

    def __init__(self, server: TelegramServer) -> None:
        self.server = server
        self.inbox = Inbox()
        self.channel: Channel = quick(server)
        bot = TOKEN.partition(":")[0]
        self.thread = ThreadKey("telegram", bot, str(ADA), "")
        self.person = Actor("telegram", bot, str(ADA))
        self.personal, self.role = self.thread, ""

    async def restart(self) -> None:
        await self.channel.stop()
        self.channel = quick(self.server)
        await self.channel.start(self.inbox)

    async def say(self, text: str) -> Json:
        return self.server.say(ADA, ADA, text)

    async def redeliver(self, handle: Any) -> None:
        self.server.redeliver(handle)

    async def attach(self, content: bytes, name: str) -> None:
        self.server.send_file(ADA, ADA, content, name, "text/csv")

    async def press(self, ref: MessageRef, label: str) -> None:
        self.server.click(self._message(ref), label, ADA)

    async def press_call(self, ref: MessageRef, number: int, label: str) -> None:
        await self.press(ref, f"{number} {label}")

    async def submit(self, form: Form, values: Mapping[str, str | tuple[str, ...]]) -> None:
        chat = self.server.chats[ADA]
        prompt = await self.server.wait_for(lambda: max(chat.force_replies, default=0))
        said = {name: v if isinstance(v, str) else ", ".join(v) for name, v in values.items()}
        lines = "\n".join(f"{name}: {value}" for name, value in said.items())
        self.server.say(ADA, ADA, next(iter(said.values())) if len(said) == 1 else lines, reply_to=prompt)

    async def seen(self) -> list[Seen]:
        return [self._seen(message) for message in self.server.from_bot(ADA)]

    async def look(self, ref: MessageRef) -> Seen:
        return self._seen(self._message(ref))

    async def notices(self) -> list[str]:
        return [click.text for click in self.server.clicks.values() if click.answered]

    async def paged(self) -> list[str]:
        return self.server.paged(ADA)

    async def delete(self, ref: MessageRef) -> None:
        del self.server.chats[ADA].messages[unpack_ref(ref)[1]]

    async def trouble(self, kind: Trouble) -> None:
        if kind == "busy":
            self.server.flood(ADA, int(RETRY_AFTER), times=1)
        elif kind == "down":
            await self.server.down()
        else:
            self.server.block(ADA)

    def _message(self, ref: MessageRef) -> Json:
        chat, message_id = unpack_ref(ref)
        return self.server.chats[chat].messages[message_id]

    def _seen(self, message: Json) -> Seen:
        rows = message.get("reply_markup", {}).get("inline_keyboard", [])
        document = message.get("document")
        return Seen(
            text=message.get("text") or message.get("caption", ""),
            buttons=tuple(button["text"] for row in rows for button in row),
            files=(self.server.files[document["file_id"]]["content"],) if document else (),
        )


class TestTelegram(ChannelContract):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[ChannelHarness]:
        async with TelegramServer() as server:
            server.bot(TOKEN)
            server.user(ADA, "Ada")
            harness = TelegramHarness(server)
            await harness.channel.start(harness.inbox)
            yield harness
            await harness.channel.stop()
            server.check()
