"""Signs of life without a network: what is called, and when it ends."""

from __future__ import annotations

import asyncio

import pytest

from channels.base import ChannelDown, Progress, ThreadKey
from channels.telegram.presses import Presses
from channels.telegram.progress import Signs

ADA = ThreadKey("telegram", "777", "42", "")


class Platform:
    """Notes the calls; `down` makes them fail, `hold` keeps drafts from ending."""

    def __init__(self) -> None:
        self.typed: list[ThreadKey] = []
        self.drafts: list[str] = []
        self.answers: list[tuple[str, str]] = []
        self.down = False
        self.drafted = asyncio.Event()
        self.hold = asyncio.Event()
        self.hold.set()

    async def typing(self, target: ThreadKey) -> None:
        if self.down:
            raise ChannelDown("away")
        self.typed.append(target)

    async def draft(self, target: ThreadKey, markdown: str) -> None:
        self.drafts.append(markdown)
        self.drafted.set()
        await self.hold.wait()

    async def answer(self, query_id: str, text: str) -> None:
        if self.down:
            raise ChannelDown("away")
        self.answers.append((query_id, text))


async def test_typing_is_sent_once_for_many_news_of_one_turn() -> None:
    platform = Platform()
    signs = Signs(typing=platform.typing, draft=platform.draft, drafts=True)
    for _ in range(5):
        await signs.show(ADA, Progress(kind="tool", text="search"))
    await signs.close()
    assert platform.typed == [ADA]


async def test_a_turn_after_the_end_of_another_begins_a_new_sign() -> None:
    platform = Platform()
    signs = Signs(typing=platform.typing, draft=platform.draft, drafts=True)
    for kind in ("thinking", "idle", "thinking", "idle"):
        await signs.show(ADA, Progress(kind=kind))
    await signs.close()
    assert platform.typed == [ADA, ADA]


async def test_of_many_drafts_the_newest_is_shown() -> None:
    platform = Platform()
    platform.hold.clear()
    signs = Signs(typing=platform.typing, draft=platform.draft, drafts=True)
    await signs.show(ADA, Progress(kind="text", text="1"))
    await platform.drafted.wait()
    for number in range(2, 9):
        await signs.show(ADA, Progress(kind="text", text=str(number)))
    platform.drafted.clear()
    platform.hold.set()
    async with asyncio.timeout(5):
        await platform.drafted.wait()
    await signs.close()
    assert platform.drafts == ["1", "8"]


async def test_a_first_sign_that_fails_leaves_nothing_behind() -> None:
    platform = Platform()
    platform.down = True
    signs = Signs(typing=platform.typing, draft=platform.draft, drafts=True)
    with pytest.raises(ChannelDown):
        await signs.show(ADA, Progress(kind="thinking"))
    platform.down = False
    await signs.show(ADA, Progress(kind="thinking"))
    await signs.close()
    assert platform.typed == [ADA]


async def test_an_answer_that_came_before_the_press_was_expected_is_the_only_one() -> None:
    platform = Platform()
    presses = Presses(platform.answer, patience=0.0)
    await presses.settle("7", "Approved.")
    presses.expect("7")
    presses.expect("8")
    await presses.close()
    assert platform.answers == [("7", "Approved."), ("8", "")]


async def test_a_press_that_cannot_be_answered_raises_nothing() -> None:
    platform = Platform()
    platform.down = True
    presses = Presses(platform.answer)
    await presses.settle("7", "Approved.")
    await presses.close()
    assert platform.answers == []
