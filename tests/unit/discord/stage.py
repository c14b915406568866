"""Signs of life on a platform that notes its calls, with a clock that the test moves."""

from __future__ import annotations

import asyncio
from typing import Any

from channels.base import Actor, ChannelError, MessageGone, MessageRef, Progress, ThreadKey
from channels.discord.progress import SignCalls, Signs
from tests.clock import FakeClock

ADA = Actor("discord", "", "500")
THREAD = ThreadKey("discord", "100", "200", "300")
OTHER = ThreadKey("discord", "100", "200", "301")
DIRECT = ThreadKey("discord", "@me", "400", "")
THINKING, IDLE = Progress(kind="thinking", actor=ADA), Progress(kind="idle")
Json = dict[str, Any]


def tool(name: str) -> Progress:
    return Progress(kind="tool", text=name, actor=ADA)


def text(words: str) -> Progress:
    return Progress(kind="text", text=words, actor=ADA)


class Platform:
    """Notes the calls. `errors[call]` are raised one by one before `refused[call]`, which stays."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.messages: dict[MessageRef, Json] = {}
        self.errors: dict[str, list[ChannelError]] = {}
        self.refused: dict[str, ChannelError] = {}
        self.hold = asyncio.Event()
        self.hold.set()
        self.held = asyncio.Event()

    async def _note(self, call: str, *said: str) -> None:
        self.calls.append((call, *said))
        if not self.hold.is_set():
            self.held.set()
            await self.hold.wait()
        if self.errors.get(call):
            raise self.errors[call].pop(0)
        if call in self.refused:
            raise self.refused[call]

    async def post(self, target: ThreadKey, message: Json) -> MessageRef:
        await self._note("post", message["content"])
        ref = MessageRef(f"{target.thread or target.conversation}:{len(self.calls)}")
        self.messages[ref] = message
        return ref

    async def edit(self, ref: MessageRef, message: Json) -> None:
        await self._note("edit", message["content"])
        if ref not in self.messages:
            raise MessageGone("10008")
        self.messages[ref] = message

    async def delete(self, ref: MessageRef) -> None:
        await self._note("delete")
        if self.messages.pop(ref, None) is None:
            raise MessageGone("10008")

    async def typing(self, target: ThreadKey) -> None:
        await self._note("typing", target.thread)

    async def react(self, target: ThreadKey, message_id: str) -> None:
        await self._note("react", message_id)

    def made(self, call: str) -> list[str]:
        """The words of each such call."""
        return [said[1] if said[1:] else "" for said in self.calls if said[0] == call]

    @property
    def shown(self) -> list[str]:
        """What people see now."""
        return [message["content"] for message in self.messages.values()]

    def as_calls(self) -> SignCalls:
        return SignCalls(
            post=self.post, edit=self.edit, delete=self.delete, typing=self.typing, react=self.react
        )


class Stage:
    """Signs on a platform, and time."""

    def __init__(self) -> None:
        self.clock, self.platform = FakeClock(), Platform()
        self.signs = Signs(self.platform.as_calls(), sleep=self.clock.sleep, monotonic=self.clock.monotonic)

    async def passes(self, seconds: float) -> None:
        """Let time pass in small steps, and everybody do what is due."""
        await self.rest()
        while seconds > 0:
            step = min(0.5, seconds)
            self.clock.advance(step)
            seconds -= step
            await self.rest()

    @staticmethod
    async def rest() -> None:
        for _ in range(15):
            await asyncio.sleep(0)

    async def hear(self, *news: Progress, target: ThreadKey = THREAD) -> None:
        for state in news:
            await self.signs.show(target, state)
        await self.rest()

    async def shows(self, *news: Progress, target: ThreadKey = THREAD) -> None:
        """Hear them, and let the moment pass in which a turn shows no message."""
        await self.hear(*news, target=target)
        await self.passes(2)
