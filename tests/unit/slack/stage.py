"""Signs of life on a platform that notes its calls, with a clock that the test moves."""

from __future__ import annotations

import asyncio
from typing import Any

from channels.base import (
    Actor,
    ChannelError,
    MessageGone,
    MessageRef,
    Progress,
    ThreadKey,
)
from channels.render.slack import SlackText
from channels.slack.errors import StreamOver
from channels.slack.progress import SignCalls, Signs
from tests.clock import FakeClock

ADA = Actor("slack", "T1", "U1")
THREAD = ThreadKey("slack", "T1", "C1", "100.1")
OTHER = ThreadKey("slack", "T1", "C1", "200.2")
ASSISTANT = ThreadKey("slack", "T1", "D1", "100.1")
THINKING, IDLE = Progress(kind="thinking", actor=ADA), Progress(kind="idle")


def tool(name: str) -> Progress:
    return Progress(kind="tool", text=name, actor=ADA)


def text(words: str) -> Progress:
    return Progress(kind="text", text=words, actor=ADA)


class Platform:
    """Notes the calls. `errors[call]` are raised one by one before `refused[call]`, which stays."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.messages: dict[MessageRef, str] = {}  # what people see now
        self.streaming: set[MessageRef] = set()
        self.statuses: dict[ThreadKey, str] = {}
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

    async def post(self, target: ThreadKey, words: SlackText) -> MessageRef:
        await self._note("post", words.text)
        return self._new(target, words.text)

    async def edit(self, ref: MessageRef, words: SlackText) -> None:
        await self._note("edit", words.text)
        if ref in self.streaming:
            raise StreamOver("streaming_state_conflict")
        if ref not in self.messages:
            raise MessageGone("message_not_found")
        self.messages[ref] = words.text

    async def delete(self, ref: MessageRef) -> None:
        await self._note("delete")
        self.streaming.discard(ref)
        if self.messages.pop(ref, None) is None:
            raise MessageGone("message_not_found")

    async def status(self, target: ThreadKey, words: str) -> None:
        await self._note("status", words)
        self.statuses[target] = words

    async def start(self, target: ThreadKey, markdown: str, actor: Actor | None) -> MessageRef:
        await self._note("start", markdown, actor.user if actor else "")
        ref = self._new(target, markdown)
        self.streaming.add(ref)
        self.statuses.pop(target, None)
        return ref

    async def append(self, ref: MessageRef, markdown: str) -> None:
        await self._note("append", markdown)
        if ref not in self.streaming:
            raise StreamOver("message_not_in_streaming_state")
        self.messages[ref] += markdown

    async def stop(self, ref: MessageRef) -> None:
        await self._note("stop")
        if ref not in self.streaming:
            raise StreamOver("message_not_in_streaming_state")
        self.streaming.remove(ref)

    async def react(self, target: ThreadKey, message_id: str) -> None:
        await self._note("react", message_id)

    def _new(self, target: ThreadKey, words: str) -> MessageRef:
        ref = MessageRef(f"{target.conversation}:{len(self.calls)}.0")
        self.messages[ref] = words
        return ref

    def made(self, call: str) -> list[str]:
        """The words of each such call."""
        return [said[1] if said[1:] else "" for said in self.calls if said[0] == call]

    @property
    def shown(self) -> list[str]:
        return list(self.messages.values())

    def as_calls(self) -> SignCalls:
        return SignCalls(
            post=self.post,
            edit=self.edit,
            delete=self.delete,
            status=self.status,
            start=self.start,
            append=self.append,
            stop=self.stop,
            react=self.react,
        )


class Stage:
    """Signs on a platform, and time."""

    def __init__(self, **options: Any) -> None:
        self.clock, self.platform = FakeClock(), Platform()
        self.signs = Signs(
            self.platform.as_calls(), sleep=self.clock.sleep, monotonic=self.clock.monotonic, **options
        )

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
        for _ in range(12):
            await asyncio.sleep(0)

    async def hear(self, *news: Progress, target: ThreadKey = THREAD) -> None:
        for state in news:
            await self.signs.show(target, state)
        await self.rest()
