"""Signs of life without a network: typing, one message, trouble, and what is left behind."""

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
    PayloadRefused,
    Progress,
    TargetGone,
)
from channels.discord import drafts
from channels.discord.limits import PROGRESS_SECONDS, SUPPRESS_EMBEDS, TYPING_SECONDS
from channels.discord.progress import GRACE, LONGEST, QUIET
from channels.render.measure import utf16_len
from tests.unit.discord.stage import DIRECT, IDLE, OTHER, THINKING, THREAD, Stage, text, tool


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    yield stage
    await stage.signs.close()
    assert not stage.signs._tasks


# ---- typing


async def test_typing_is_shown_at_once_and_again_before_discord_takes_it_away(stage: Stage) -> None:
    await stage.hear(THINKING)
    assert stage.platform.calls == [("typing", THREAD.thread)]
    await stage.passes(TYPING_SECONDS - 0.5)
    assert len(stage.platform.calls) == 1
    await stage.passes(TYPING_SECONDS * 2 + 0.5)
    assert stage.platform.calls == [("typing", THREAD.thread)] * 4


async def test_mere_work_shows_no_message_however_long_it_lasts(stage: Stage) -> None:
    await stage.hear(THINKING)
    await stage.passes(120)
    assert stage.platform.shown == []


async def test_typing_ends_with_the_turn(stage: Stage) -> None:
    await stage.shows(tool("search"), IDLE)
    before = len(stage.platform.made("typing"))
    await stage.passes(60)
    assert len(stage.platform.made("typing")) == before


async def test_typing_is_shown_again_below_the_message_which_took_it_away(stage: Stage) -> None:
    await stage.shows(tool("search"))
    assert [call[0] for call in stage.platform.calls] == ["typing", "post", "typing"]


async def test_where_typing_is_refused_it_is_not_tried_again_and_the_message_is_shown(stage: Stage) -> None:
    stage.platform.refused["typing"] = TargetGone("50013")
    await stage.shows(tool("search"))
    await stage.passes(60)
    assert len(stage.platform.made("typing")) == 1
    assert stage.platform.shown == ["-# Using search…"]


async def test_typing_that_failed_for_a_moment_is_tried_again(stage: Stage) -> None:
    stage.platform.errors["typing"] = [ChannelDown("away")]
    await stage.hear(THINKING)
    await stage.passes(TYPING_SECONDS)
    assert len(stage.platform.made("typing")) == 2


# ---- one progress message


async def test_a_turn_that_ends_soon_shows_no_message(stage: Stage) -> None:
    await stage.hear(THINKING, tool("search"), text("words"))
    await stage.passes(QUIET - 0.5)
    await stage.hear(IDLE)
    await stage.passes(GRACE + 1)
    assert (stage.platform.made("post"), await stage.signs.settle(THREAD)) == ([], None)


async def test_a_tool_is_shown_when_the_turn_lasts_and_at_once_when_it_has_lasted(stage: Stage) -> None:
    await stage.hear(tool("search"))
    await stage.passes(QUIET - 0.5)
    assert stage.platform.shown == []
    await stage.passes(0.5)
    assert stage.platform.shown == ["-# Using search…"]
    await stage.hear(THINKING, target=OTHER)
    await stage.passes(QUIET)
    await stage.hear(tool("look"), target=OTHER)
    assert stage.platform.shown == ["-# Using search…", "-# Using look…"]


async def test_one_message_is_edited_as_the_work_goes_on(stage: Stage) -> None:
    await stage.shows(tool("search_orders"))
    for news, seen in (
        (THINKING, "-# Working…"),
        (text("The order"), "The order"),
        (THINKING, "The order\n-# Working…"),
        (tool("pay"), "The order\n-# Using pay…"),
        (text("All done"), "All done"),
    ):
        await stage.hear(news)
        await stage.passes(PROGRESS_SECONDS)
        assert stage.platform.shown == [seen]
    assert stage.platform.made("post") == ["-# Using search_orders…"]


async def test_many_news_make_one_edit_in_two_and_a_half_seconds_and_the_newest_is_shown(
    stage: Stage,
) -> None:
    await stage.shows(tool("t0"))
    for number in range(1, 21):
        await stage.hear(tool(f"t{number}"))
        await stage.passes(0.5)
    await stage.passes(PROGRESS_SECONDS)
    assert len(stage.platform.made("edit")) <= 5
    assert stage.platform.shown == ["-# Using t20…"]


async def test_the_same_news_again_makes_no_edit(stage: Stage) -> None:
    await stage.shows(tool("search"))
    await stage.shows(tool("search"))
    await stage.passes(PROGRESS_SECONDS)
    assert (len(stage.platform.made("post")), stage.platform.made("edit")) == (1, [])


async def test_an_answer_grows_without_looking_broken(stage: Stage) -> None:
    await stage.shows(text("See [the docs](https://exa"))
    assert stage.platform.shown == ["See"]
    await stage.hear(text("See [the docs](https://example.com) and **bo"))
    await stage.passes(PROGRESS_SECONDS)
    assert stage.platform.shown == ["See [the docs](<https://example.com>) and **bo**"]


async def test_a_turn_that_ends_without_an_answer_leaves_no_message(stage: Stage) -> None:
    await stage.shows(tool("search"))
    await stage.hear(IDLE)
    assert stage.platform.shown == ["-# Using search…"]  # its answer may still come
    await stage.passes(PROGRESS_SECONDS + GRACE + 1)
    assert stage.platform.shown == []


async def test_the_answer_takes_over_the_message_with_its_age(stage: Stage) -> None:
    await stage.hear(tool("search"))
    await stage.passes(20 + QUIET)
    await stage.hear(IDLE)
    live = await stage.signs.settle(THREAD)
    assert live is not None and live.age == 20
    await stage.passes(GRACE * 3)
    assert stage.platform.shown == ["-# Using search…"]  # what becomes of it is the answer's business now
    assert await stage.signs.settle(THREAD) is None


async def test_an_answer_before_the_end_is_told_ends_the_signs_as_well(stage: Stage) -> None:
    await stage.shows(tool("search"))
    assert await stage.signs.settle(THREAD) is not None
    await stage.hear(IDLE)
    await stage.passes(GRACE + TYPING_SECONDS)
    assert [call[0] for call in stage.platform.calls] == ["typing", "post", "typing"]


async def test_the_answer_of_the_last_turn_does_not_take_the_sign_of_the_next(stage: Stage) -> None:
    await stage.shows(tool("first"))
    await stage.hear(IDLE, THINKING, tool("second"))
    await stage.passes(2)
    live = await stage.signs.settle(THREAD)
    assert live is not None and stage.platform.messages[live.ref]["content"] == "-# Using first…"
    assert stage.platform.shown == ["-# Using first…", "-# Using second…"]


async def test_threads_and_direct_messages_have_their_own_messages(stage: Stage) -> None:
    await stage.shows(tool("one"))
    await stage.shows(tool("two"), target=DIRECT)
    assert await stage.signs.settle(DIRECT) is not None
    await stage.hear(tool("three"))
    await stage.passes(PROGRESS_SECONDS)
    assert stage.platform.shown == ["-# Using three…", "-# Using two…"]


async def test_a_message_that_somebody_deleted_is_posted_anew(stage: Stage) -> None:
    await stage.shows(tool("one"))
    stage.platform.messages.clear()
    await stage.hear(tool("two"))
    await stage.passes(PROGRESS_SECONDS)
    assert stage.platform.shown == ["-# Using two…"]


async def test_a_sign_without_news_for_a_quarter_of_an_hour_is_taken_away(stage: Stage) -> None:
    await stage.shows(tool("search"))
    await stage.passes(LONGEST + PROGRESS_SECONDS)
    assert stage.platform.shown == []


# ---- what it may not do


async def test_c015_no_word_of_a_sign_pages_anybody_or_brings_a_preview(stage: Stage) -> None:
    await stage.shows(text("Tell @everyone and <@&111111111111111111> about https://example.com"))
    await stage.hear(tool("<@500> *x*\n# y"))
    await stage.passes(PROGRESS_SECONDS)
    (message,) = stage.platform.messages.values()
    assert message["allowed_mentions"] == {"parse": []}
    assert message["flags"] == SUPPRESS_EMBEDS
    first, note = message["content"].split("\n")
    assert first == "Tell @everyone and \\<@&111111111111111111> about https://example.com"
    assert note == "-# Using \\<@500> \\*x\\* ↵ # y…"


@pytest.mark.parametrize("words", ["**" * 900, "word " * 5000, "\N{GRINNING FACE}" * 3000, "_*`" * 2000])
def test_a_sign_fits_a_message_however_much_there_is(words: str) -> None:
    drawn = drafts.sign(drafts.using("*" * 500), words)
    assert drawn is not None
    assert 0 < utf16_len(drawn["content"]) <= 2000


def test_nothing_is_no_message() -> None:
    assert drafts.sign("", "") is drafts.sign("", "   ") is None
    assert drafts.using(" ") == "Using a tool…"


# ---- trouble


async def test_what_discord_asks_to_delay_is_drawn_later_and_only_as_it_is_then(stage: Stage) -> None:
    stage.platform.errors["post"] = [ChannelBusy("discord", 10.0)]
    await stage.shows(tool("one"))
    await stage.hear(tool("two"))
    await stage.passes(9)
    assert (stage.platform.made("post"), stage.signs.dropped) == (["-# Using one…"], 1)
    await stage.passes(2)
    assert stage.platform.shown == ["-# Using two…"]


@pytest.mark.parametrize("refusal", [TargetGone("50013"), PayloadRefused("50035")])
async def test_what_is_refused_for_good_is_not_tried_again_without_news(
    stage: Stage, refusal: ChannelError
) -> None:
    stage.platform.refused["post"] = refusal
    await stage.shows(tool("one"))
    await stage.passes(60)
    assert len(stage.platform.made("post")) == 1
    await stage.hear(tool("two"))
    assert len(stage.platform.made("post")) == 2


async def test_a_message_that_cannot_be_deleted_now_is_deleted_later(stage: Stage) -> None:
    await stage.shows(tool("one"))
    stage.platform.errors["delete"] = [ChannelDown("away"), ChannelBusy("discord", 5.0)]
    await stage.hear(IDLE)
    await stage.passes(GRACE + 4)
    assert stage.platform.shown == ["-# Using one…"]
    await stage.passes(60)
    assert stage.platform.shown == []


async def test_an_answer_waits_for_the_message_that_is_on_its_way(stage: Stage) -> None:
    await stage.hear(THINKING)
    await stage.passes(QUIET)
    stage.platform.hold.clear()
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


async def test_typing_goes_on_after_a_call_that_took_long(stage: Stage) -> None:
    stage.platform.hold.clear()
    await stage.hear(THINKING)
    await stage.passes(TYPING_SECONDS + 2)
    stage.platform.hold.set()
    await stage.passes(TYPING_SECONDS)
    assert len(stage.platform.made("typing")) == 3


async def test_closing_takes_everything_away(stage: Stage) -> None:
    await stage.shows(tool("one"))
    await stage.shows(tool("two"), target=OTHER)
    await stage.hear(IDLE, target=OTHER)
    await stage.signs.close()
    assert stage.platform.shown == []


async def test_a_message_that_nothing_replaces_is_removed_and_failures_are_counted(stage: Stage) -> None:
    await stage.signs.remove(MessageRef("1:1"))  # gone already
    assert stage.signs.dropped == 0
    stage.platform.refused["delete"] = ChannelDown("away")
    await stage.signs.remove(MessageRef("1:1"))
    assert stage.signs.dropped == 1


async def test_no_turn_fails_when_every_call_fails(stage: Stage) -> None:
    for call in ("post", "edit", "delete", "typing"):
        stage.platform.refused[call] = ChannelDown("away")
    steps: list[Callable[[], Coroutine[Any, Any, None]]] = [
        lambda: stage.hear(THINKING),
        lambda: stage.hear(tool("search")),
        lambda: stage.hear(text("words")),
        lambda: stage.hear(tool("search"), target=DIRECT),
        lambda: stage.hear(IDLE),
        lambda: stage.hear(IDLE, target=DIRECT),
    ]
    for step in steps:
        await step()
        await stage.passes(5)
    assert stage.signs.dropped > 0
    assert await stage.signs.settle(THREAD) is None
    assert await stage.signs.settle(DIRECT) is None


# ---- noted


async def test_a_message_that_waits_is_marked(stage: Stage) -> None:
    await stage.hear(Progress(kind="noted", text="101"))
    assert stage.platform.made("react") == ["101"]


@pytest.mark.parametrize("message_id", ["101.5", "ask|1", ""])
async def test_what_is_no_message_is_not_marked(stage: Stage, message_id: str) -> None:
    await stage.hear(Progress(kind="noted", text=message_id))
    assert stage.platform.calls == []


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (MessageGone("10008"), False),
        (TargetGone("50013"), False),
        (ChannelBusy("discord", 3.0), True),
        (ChannelDown("away"), True),
    ],
)
async def test_only_a_platform_in_trouble_is_told_when_a_message_cannot_be_marked(
    stage: Stage, error: ChannelError, raised: bool
) -> None:
    stage.platform.refused["react"] = error

    async def noted() -> bool:
        try:
            await stage.signs.show(THREAD, Progress(kind="noted", text="101"))
        except ChannelError:
            return True
        return False

    assert await noted() is raised
