"""Signs of life without a network: one message, trouble, and what is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from channels.base import (
    ChannelBusy,
    ChannelDown,
    ChannelError,
    MessageGone,
    MessageRef,
    Progress,
    TargetGone,
)
from channels.slack.errors import ScopeMissing
from channels.slack.progress import GRACE, LONGEST, QUIET
from channels.slack.sign import EDIT_SECONDS
from tests.unit.slack.stage import ASSISTANT, IDLE, OTHER, THINKING, THREAD, Stage, text, tool


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    yield stage
    await stage.signs.close()
    assert not stage.signs._tasks


# ---- one progress message


async def test_a_turn_that_ends_soon_shows_no_message(stage: Stage) -> None:
    await stage.hear(THINKING)
    await stage.passes(QUIET - 0.5)
    await stage.hear(IDLE)
    await stage.passes(GRACE + 1)
    assert stage.platform.calls == []


async def test_work_that_lasts_is_shown_in_one_message_which_is_edited(stage: Stage) -> None:
    await stage.hear(THINKING)
    await stage.passes(QUIET)
    assert stage.platform.shown == ["Working…"]
    await stage.hear(tool("search_orders"))
    await stage.passes(EDIT_SECONDS)
    assert stage.platform.shown == ["Using search_orders…"]
    assert stage.platform.made("post") == ["Working…"]


async def test_a_tool_is_shown_at_once(stage: Stage) -> None:
    await stage.hear(THINKING, tool("search"))
    assert stage.platform.shown == ["Using search…"]


async def test_many_news_make_one_edit_in_three_seconds_and_the_newest_is_shown(stage: Stage) -> None:
    await stage.hear(tool("t0"))
    for number in range(1, 13):
        await stage.hear(tool(f"t{number}"))
        await stage.passes(0.5)
    await stage.passes(EDIT_SECONDS)
    assert len(stage.platform.made("edit")) <= 3
    assert stage.platform.shown == ["Using t12…"]


async def test_the_same_news_again_makes_no_call(stage: Stage) -> None:
    await stage.hear(tool("search"))
    await stage.passes(EDIT_SECONDS)
    await stage.hear(tool("search"))
    await stage.passes(EDIT_SECONDS)
    assert [call[0] for call in stage.platform.calls] == ["post"]


async def test_a_turn_that_ends_without_an_answer_leaves_no_message(stage: Stage) -> None:
    await stage.hear(tool("search"), IDLE)
    await stage.hear(THINKING)
    await stage.hear(tool("search"))
    await stage.hear(IDLE)
    assert stage.platform.shown == ["Using search…"]  # its answer may still come
    await stage.passes(EDIT_SECONDS + GRACE + 1)
    assert stage.platform.shown == []


async def test_the_answer_takes_over_the_message_with_its_age(stage: Stage) -> None:
    await stage.hear(tool("search"))
    await stage.passes(20)
    await stage.hear(IDLE)
    live = await stage.signs.settle(THREAD)
    assert live is not None and live.age == 20
    assert stage.platform.messages[live.ref] == "Using search…"
    await stage.passes(GRACE * 3)
    assert stage.platform.shown == ["Using search…"]  # what becomes of it is the answer's business now
    assert await stage.signs.settle(THREAD) is None


async def test_an_answer_before_the_end_is_told_ends_the_signs_as_well(stage: Stage) -> None:
    await stage.hear(tool("search"))
    assert await stage.signs.settle(THREAD) is not None
    await stage.hear(IDLE)
    await stage.passes(GRACE + 1)
    assert [call[0] for call in stage.platform.calls] == ["post"]


async def test_the_answer_of_the_last_turn_does_not_take_the_sign_of_the_next(stage: Stage) -> None:
    await stage.hear(tool("first"), IDLE, THINKING, tool("second"))
    await stage.passes(1)
    await stage.hear(IDLE)
    await stage.passes(GRACE + EDIT_SECONDS + 1)
    await stage.hear(tool("first"))
    await stage.hear(IDLE, THINKING, tool("second"))
    live = await stage.signs.settle(THREAD)
    assert live is not None and stage.platform.messages[live.ref] == "Using first…"
    assert stage.platform.shown == ["Using first…", "Using second…"]


async def test_threads_have_their_own_messages(stage: Stage) -> None:
    await stage.hear(tool("one"))
    await stage.hear(tool("two"), target=OTHER)
    assert await stage.signs.settle(OTHER) is not None
    await stage.passes(EDIT_SECONDS)
    await stage.hear(tool("three"))
    assert stage.platform.shown == ["Using three…", "Using two…"]


async def test_nothing_is_shown_at_the_root_of_a_channel(stage: Stage) -> None:
    await stage.hear(THINKING, tool("search"), text("words"), target=THREAD._replace(thread=""))
    await stage.passes(QUIET + 1)
    assert stage.platform.calls == []


async def test_a_message_that_somebody_deleted_is_posted_anew(stage: Stage) -> None:
    await stage.hear(tool("one"))
    stage.platform.messages.clear()
    await stage.hear(tool("two"))
    await stage.passes(EDIT_SECONDS)
    assert stage.platform.shown == ["Using two…"]


async def test_a_sign_without_news_for_a_quarter_of_an_hour_is_taken_away(stage: Stage) -> None:
    await stage.hear(tool("search"))
    await stage.passes(LONGEST + EDIT_SECONDS)
    assert stage.platform.shown == []


async def test_a_tool_name_cannot_mention_anybody(stage: Stage) -> None:
    await stage.hear(tool("<!channel>\n*x*"))
    assert stage.platform.shown == ["Using &lt;!channel&gt; *x*…"]


# ---- trouble


async def test_what_slack_asks_to_delay_is_drawn_later_and_only_as_it_is_then(stage: Stage) -> None:
    stage.platform.errors["post"] = [ChannelBusy("slack", 10.0)]
    await stage.hear(tool("one"))
    await stage.hear(tool("two"))
    await stage.passes(9)
    assert (stage.platform.made("post"), stage.signs.dropped) == (["Using one…"], 1)
    await stage.passes(2)
    assert stage.platform.shown == ["Using two…"]


async def test_a_channel_that_takes_no_messages_is_not_tried_again_without_news(stage: Stage) -> None:
    stage.platform.refused["post"] = TargetGone("not_in_channel")
    await stage.hear(tool("one"))
    await stage.passes(60)
    assert len(stage.platform.made("post")) == 1
    await stage.hear(IDLE)


async def test_a_message_that_cannot_be_deleted_now_is_deleted_later(stage: Stage) -> None:
    await stage.hear(tool("one"))
    stage.platform.errors["delete"] = [ChannelDown("away"), ChannelBusy("slack", 5.0)]
    await stage.hear(IDLE)
    await stage.passes(GRACE + 4)
    assert stage.platform.shown == ["Using one…"]
    await stage.passes(60)
    assert stage.platform.shown == []


async def test_an_answer_waits_for_the_message_that_is_on_its_way(stage: Stage) -> None:
    stage.platform.hold.clear()
    await stage.hear(tool("one"), IDLE)
    await stage.hear(tool("one"))
    async with asyncio.timeout(5):
        await stage.platform.held.wait()
    settled = asyncio.create_task(stage.signs.settle(THREAD))
    await stage.rest()
    assert not settled.done()
    stage.platform.hold.set()
    async with asyncio.timeout(5):
        live = await settled
    assert live is not None and live.ref in stage.platform.messages


async def test_closing_takes_everything_away(stage: Stage) -> None:
    await stage.hear(tool("one"))
    await stage.hear(tool("two"), IDLE, target=OTHER)
    await stage.hear(text("words"), target=ASSISTANT)
    await stage.signs.close()
    assert (stage.platform.shown, stage.platform.streaming) == ([], set())


async def test_a_message_that_nothing_replaces_is_removed_and_failures_are_counted(stage: Stage) -> None:
    await stage.signs.remove(MessageRef("C1:1.0"))  # gone already
    assert stage.signs.dropped == 0
    stage.platform.refused["delete"] = ChannelDown("away")
    await stage.signs.remove(MessageRef("C1:1.0"))
    assert stage.signs.dropped == 1


# ---- noted


async def test_a_message_that_waits_is_marked(stage: Stage) -> None:
    await stage.hear(Progress(kind="noted", text="101.5"))
    assert stage.platform.made("react") == ["101.5"]


@pytest.mark.parametrize("message_id", ["cmd|1.2.abc", "ask|V1", ""])
async def test_what_is_no_message_is_not_marked(stage: Stage, message_id: str) -> None:
    await stage.hear(Progress(kind="noted", text=message_id))
    assert stage.platform.calls == []


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ScopeMissing("reactions.add", "reactions:write"), False),
        (MessageGone("message_not_found"), False),
        (TargetGone("not_in_channel"), False),
        (ChannelBusy("slack", 3.0), True),
        (ChannelDown("away"), True),
    ],
)
async def test_only_a_platform_in_trouble_is_told_when_a_message_cannot_be_marked(
    stage: Stage, error: ChannelError, raised: bool
) -> None:
    stage.platform.refused["react"] = error

    async def noted() -> bool:
        try:
            await stage.signs.show(THREAD, Progress(kind="noted", text="101.5"))
        except ChannelError:
            return True
        return False

    assert await noted() is raised


async def test_no_turn_fails_when_every_call_fails(stage: Stage) -> None:
    for call in ("post", "edit", "delete", "status", "start", "append", "stop"):
        stage.platform.refused[call] = ChannelDown("away")
    steps: list[Callable[[], Coroutine[Any, Any, None]]] = [
        lambda: stage.hear(THINKING),
        lambda: stage.hear(tool("search")),
        lambda: stage.hear(text("words")),
        lambda: stage.hear(tool("search"), target=ASSISTANT),
        lambda: stage.hear(IDLE),
        lambda: stage.hear(IDLE, target=ASSISTANT),
    ]
    for step in steps:
        await step()
        await stage.passes(5)
    assert stage.signs.dropped > 0
    assert await stage.signs.settle(THREAD) is None
    assert await stage.signs.settle(ASSISTANT) is None
