"""What a thread shows while a reply grows."""

from __future__ import annotations

import asyncio

from channels.base import Progress
from gateway.app.progress import ProgressSigns
from gateway.events import AssistantDelta, SessionStarted, TurnDone
from gateway.messages import Actor, ThreadKey
from gateway.store.rows import Claim, Lease
from tests.unit.gateway.talk import HERE, TalkChannel, World

CLAIM = Claim(
    kind="message",
    lease=Lease(session_id="s", turn_id="s.1", runner="r", epoch=1),
    key=ThreadKey(*HERE),
    agent="assistant",
    tenant="",
    requester=Actor("talk", "w", "ann"),
    message_id="m",
    log_length=1,
)


class Showing(TalkChannel):
    """Remembers what it was to show; `shown` is set each time."""

    def __init__(self) -> None:
        super().__init__(World())
        self.states: list[tuple[str, str]] = []
        self.shown = asyncio.Event()

    async def progress(self, target: object, state: Progress) -> None:
        self.states.append((state.kind, state.text))
        self.shown.set()

    async def next(self) -> tuple[str, str]:
        async with asyncio.timeout(15):
            await self.shown.wait()
        self.shown.clear()
        return self.states[-1]


async def test_a_reply_that_begins_anew_is_shown_without_what_broke_off() -> None:
    channel = Showing()
    signs = ProgressSigns({"talk": channel})
    signs.event(CLAIM, SessionStarted(session_id="s", turn_id="s.1", agent="assistant"))
    assert await channel.next() == ("thinking", "")
    signs.event(CLAIM, AssistantDelta(text="half a"))
    assert await channel.next() == ("text", "half a")
    signs.event(CLAIM, AssistantDelta(text=""))
    signs.event(CLAIM, AssistantDelta(text="the whole"))
    assert await channel.next() == ("text", "the whole")
    done = TurnDone(
        session_id="s",
        turn_id="s.1",
        outcome="completed",
        status="completed",
        text="",
        pending=[],
        exit_code=0,
    )
    signs.event(CLAIM, done)
    assert await channel.next() == ("idle", "")
