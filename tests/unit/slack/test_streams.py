"""Growing answers and the status of assistant threads, without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from channels.base import (
    ChannelBusy,
    ChannelDown,
    ChannelError,
    PayloadRefused,
    Progress,
    TargetGone,
)
from channels.slack.errors import ScopeMissing
from channels.slack.limits import STREAM_TEXT
from channels.slack.progress import GRACE
from channels.slack.sign import APPEND_SECONDS, EDIT_SECONDS, REFRESH
from tests.unit.slack.stage import ASSISTANT, IDLE, THINKING, THREAD, Stage, text, tool


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    yield stage
    await stage.signs.close()
    assert not stage.signs._tasks


# ---- streams


async def test_a_growing_answer_is_streamed_in_pieces_of_new_characters_only(stage: Stage) -> None:
    await stage.hear(text("The"))
    for end in range(4, 40):
        await stage.hear(text("The answer to all of it is forty-two, no less."[:end]))
        await stage.passes(0.1)
    await stage.passes(APPEND_SECONDS)
    assert stage.platform.calls[0] == ("start", "The", "U1")
    assert len(stage.platform.made("append")) <= 5
    assert stage.platform.shown == ["The answer to all of it is forty-two, no less."[:39]]


async def test_a_stream_replaces_the_progress_message(stage: Stage) -> None:
    await stage.hear(tool("search"))
    await stage.hear(text("Found"))
    await stage.passes(EDIT_SECONDS)
    assert stage.platform.shown == ["Found"]


async def test_the_stream_is_ended_before_the_answer_takes_over(stage: Stage) -> None:
    await stage.hear(text("Half of"))
    await stage.hear(IDLE)
    live = await stage.signs.settle(THREAD)
    assert live is not None and stage.platform.shown == ["Half of"]
    assert stage.platform.streaming == set()


async def test_tools_and_later_steps_go_on_in_the_same_stream(stage: Stage) -> None:
    await stage.hear(text("Let me look."))
    await stage.hear(tool("search"))
    await stage.passes(APPEND_SECONDS)
    await stage.hear(text("Now I"))
    await stage.passes(APPEND_SECONDS)
    await stage.hear(text("Now I know."))
    await stage.passes(APPEND_SECONDS)
    assert stage.platform.shown == ["Let me look.\n\n_Using search…_\n\nNow I know."]


async def test_a_stream_that_died_is_edited_on(stage: Stage) -> None:
    await stage.hear(text("The first words"))
    stage.platform.streaming.clear()
    await stage.hear(text("The first words and **more"))
    await stage.passes(APPEND_SECONDS)
    assert stage.platform.shown == ["The first words and *more*"]
    await stage.hear(text("The first words and **more** of them"))
    await stage.passes(EDIT_SECONDS)
    assert stage.platform.shown == ["The first words and *more* of them"]
    assert (len(stage.platform.made("post")), len(stage.platform.made("append"))) == (0, 1)


async def test_a_stream_that_can_be_neither_ended_nor_edited_is_deleted_for_a_new_message(
    stage: Stage,
) -> None:
    await stage.hear(text("The first words"))
    stage.platform.refused["stop"] = ChannelDown("away")
    await stage.passes(290)
    await stage.hear(text("The first words, and more"))
    await stage.passes(EDIT_SECONDS)
    assert stage.platform.shown == ["The first words, and more"]
    assert len(stage.platform.made("post")) == 1


async def test_a_stream_is_ended_before_slack_ends_it_although_nothing_is_new(stage: Stage) -> None:
    await stage.hear(text("The first words"))
    await stage.passes(290)
    assert stage.platform.streaming == set()
    await stage.hear(text("The first words, and more"))
    await stage.passes(EDIT_SECONDS)
    assert stage.platform.shown == ["The first words, and more"]
    assert stage.platform.made("append") == []


@pytest.mark.parametrize(
    "refusal",
    [
        PayloadRefused("chat.startStream: unknown_method"),
        PayloadRefused("chat.startStream: missing_recipient_user_id"),
        TargetGone("channel_type_not_supported"),
        ScopeMissing("chat.startStream", "chat:write"),
    ],
)
async def test_where_streams_are_refused_the_answer_grows_by_edits(
    stage: Stage, refusal: ChannelError
) -> None:
    stage.platform.refused["start"] = refusal
    await stage.hear(text("One"))
    await stage.hear(text("One two"))
    await stage.passes(EDIT_SECONDS)
    assert stage.platform.shown == ["One two"]
    await stage.signs.settle(THREAD)
    await stage.hear(text("Another turn"))
    assert len(stage.platform.made("start")) == 1


async def test_a_stream_refused_for_its_rate_is_tried_again_by_the_next_turn(stage: Stage) -> None:
    stage.platform.errors["start"] = [ChannelBusy("slack", 30.0)]
    await stage.hear(text("One"))
    assert stage.platform.made("post") == ["One"]
    await stage.signs.settle(THREAD)
    await stage.hear(text("Another"))
    assert stage.platform.made("start") == ["One", "Another"]


async def test_a_piece_that_slack_asks_to_delay_is_sent_later(stage: Stage) -> None:
    await stage.hear(text("One"))
    stage.platform.errors["append"] = [ChannelBusy("slack", 2.0), ChannelDown("away")]
    await stage.hear(text("One two"))
    await stage.passes(10)
    assert stage.platform.shown == ["One two"]


async def test_in_a_channel_nothing_is_streamed_to_nobody(stage: Stage) -> None:
    await stage.hear(Progress(kind="text", text="words"))
    assert (stage.platform.made("start"), stage.platform.shown) == ([], ["words"])


async def test_streams_can_be_switched_off() -> None:
    stage = Stage(streams=False)
    await stage.hear(text("words"))
    assert (stage.platform.made("start"), stage.platform.shown) == ([], ["words"])
    await stage.signs.close()


async def test_a_stream_that_is_full_gets_no_more() -> None:
    stage = Stage()
    await stage.hear(text("a" * 11_000))
    await stage.hear(text("a" * 30_000))
    await stage.passes(APPEND_SECONDS * 3)
    await stage.hear(text("a" * 50_000))
    await stage.passes(APPEND_SECONDS * 3)
    assert [len(shown) for shown in stage.platform.shown] == [STREAM_TEXT]
    assert stage.platform.shown[0].endswith("a…")
    await stage.signs.close()


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_c008_nothing_in_a_stream_is_live_wherever_its_pieces_are_cut(stage: Stage, size: int) -> None:
    words = (
        "<!channel> done, cc <@U0AAAAAAA>, <#C1>, <!subteam^S0AAA>, @here; a@b.example <https://e.example|x>"
    )
    for end in range(size, len(words) + size, size):
        await stage.hear(text(words[:end]))
        await stage.passes(APPEND_SECONDS)
    (shown,) = stage.platform.shown
    assert shown.replace("\u200b", "") == words
    for live in ("<!", "<@", "<#", "@here", "<http", "://"):
        assert live not in shown
    assert "a@b.example" in shown


# ---- assistant threads


async def test_an_assistant_thread_has_a_status_and_no_message(stage: Stage) -> None:
    await stage.hear(THINKING, target=ASSISTANT)
    assert stage.platform.statuses == {ASSISTANT: "is working…"}
    await stage.hear(tool("search"), target=ASSISTANT)
    await stage.passes(EDIT_SECONDS)
    assert stage.platform.statuses == {ASSISTANT: "is using search…"}
    assert stage.platform.shown == []


async def test_a_status_is_refreshed_before_it_vanishes(stage: Stage) -> None:
    await stage.hear(tool("search"), target=ASSISTANT)
    await stage.passes(REFRESH * 3 + EDIT_SECONDS * 3)
    assert stage.platform.made("status") == ["is using search…"] * 4


async def test_a_status_is_cleared_at_the_end(stage: Stage) -> None:
    await stage.hear(tool("search"), target=ASSISTANT)
    await stage.hear(IDLE, target=ASSISTANT)
    await stage.passes(GRACE + EDIT_SECONDS)
    assert stage.platform.statuses == {ASSISTANT: ""}


async def test_an_answer_in_an_assistant_thread_is_streamed_below_no_status(stage: Stage) -> None:
    await stage.hear(THINKING, target=ASSISTANT)
    await stage.hear(text("Words"), target=ASSISTANT)
    await stage.passes(EDIT_SECONDS)
    assert (stage.platform.shown, stage.platform.statuses) == (["Words"], {})
    await stage.hear(tool("search"), target=ASSISTANT)
    await stage.passes(APPEND_SECONDS)
    assert (stage.platform.shown, stage.platform.statuses) == (["Words"], {ASSISTANT: "is using search…"})
    live = await stage.signs.settle(ASSISTANT)
    assert live is not None and stage.platform.statuses == {ASSISTANT: ""}


async def test_without_streams_an_assistant_thread_shows_the_status_only(stage: Stage) -> None:
    stage.platform.refused["start"] = PayloadRefused("chat.startStream: unknown_method")
    await stage.hear(text("Words"), target=ASSISTANT)
    assert (stage.platform.shown, stage.platform.statuses) == ([], {ASSISTANT: "is writing…"})
    assert await stage.signs.settle(ASSISTANT) is None


async def test_a_thread_that_takes_no_status_gets_a_message(stage: Stage) -> None:
    stage.platform.refused["status"] = PayloadRefused("assistant.threads.setStatus: invalid_thread_ts")
    await stage.hear(tool("search"), target=ASSISTANT)
    assert stage.platform.shown == ["Using search…"]
    await stage.hear(tool("again"), target=ASSISTANT)
    await stage.passes(EDIT_SECONDS)
    assert stage.platform.shown == ["Using again…"]
    assert len(stage.platform.made("status")) == 1
