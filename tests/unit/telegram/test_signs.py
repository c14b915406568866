"""Signs of life without a network: what is called, and when it ends."""

from __future__ import annotations

import asyncio

import pytest

from channels.base import ChannelBusy, ChannelDown, PayloadRefused, Progress, ThreadKey
from channels.telegram.presses import Presses
from channels.telegram.progress import Signs

ADA = ThreadKey("telegram", "777", "42", "")


class Platform:
    """Notes the calls; `down` makes them fail, `hold` keeps drafts from ending."""

    def __init__(self) -> None:
        self.typed: list[ThreadKey] = []
        self.drafts: list[str] = []
        self.answers: list[tuple[str, str]] = []
        self.reacted: list[str] = []
        self.down = self.no_reactions = False
        self.drafted = asyncio.Event()
        self.hold = asyncio.Event()
        self.hold.set()

    async def typing(self, target: ThreadKey) -> None:
        if self.down:
            raise ChannelDown("away")
        self.typed.append(target)

    async def react(self, target: ThreadKey, message_id: str) -> None:
        if self.no_reactions:
            raise PayloadRefused("REACTION_INVALID")
        self.reacted.append(message_id)

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
    signs = Signs(typing=platform.typing, react=platform.react, draft=platform.draft, drafts=True)
    for _ in range(5):
        await signs.show(ADA, Progress(kind="tool", text="search"))
    await signs.close()
    assert platform.typed == [ADA]


async def test_a_turn_after_the_end_of_another_begins_a_new_sign() -> None:
    platform = Platform()
    signs = Signs(typing=platform.typing, react=platform.react, draft=platform.draft, drafts=True)
    for kind in ("thinking", "idle", "thinking", "idle"):
        await signs.show(ADA, Progress(kind=kind))
    await signs.close()
    assert platform.typed == [ADA, ADA]


async def test_of_many_drafts_the_newest_is_shown() -> None:
    platform = Platform()
    platform.hold.clear()
    signs = Signs(typing=platform.typing, react=platform.react, draft=platform.draft, drafts=True)
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
    signs = Signs(typing=platform.typing, react=platform.react, draft=platform.draft, drafts=True)
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


async def test_a_message_waits_for_the_draft_that_is_on_its_way() -> None:
    platform = Platform()
    platform.hold.clear()
    signs = Signs(typing=platform.typing, react=platform.react, draft=platform.draft, drafts=True)
    await signs.show(ADA, Progress(kind="text", text="half"))
    await platform.drafted.wait()
    await signs.show(ADA, Progress(kind="text", text="half of it"))
    await signs.show(ADA, Progress(kind="idle"))
    settled = asyncio.create_task(signs.settle(ADA))
    await asyncio.sleep(0)
    assert not settled.done()
    platform.hold.set()
    async with asyncio.timeout(5):
        await settled
    await signs.close()
    assert platform.drafts == ["half"]


async def test_a_noted_message_gets_eyes_or_where_they_are_refused_typing() -> None:
    platform = Platform()
    signs = Signs(typing=platform.typing, react=platform.react, draft=platform.draft, drafts=True)
    await signs.show(ADA, Progress(kind="noted", text="7"))
    platform.no_reactions = True
    await signs.show(ADA, Progress(kind="noted", text="8"))
    await signs.close()
    assert (platform.reacted, platform.typed) == (["7"], [ADA])


@pytest.mark.parametrize(("wait", "answers"), [(3.0, [("7", "Approved.")]), (60.0, [])])
async def test_an_answer_to_a_press_waits_as_long_as_telegram_asks_while_that_makes_sense(
    wait: float, answers: list
) -> None:
    platform, slept = Platform(), []
    floods = [ChannelBusy("telegram", wait)]

    async def answer(query_id: str, text: str) -> None:
        if floods:
            raise floods.pop()
        await platform.answer(query_id, text)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    presses = Presses(answer, sleep=sleep)
    await presses.settle("7", "Approved.")
    await presses.close()
    assert platform.answers == answers
    assert slept == ([wait] if answers else [])
