"""Signs of life without a network: what is called, when, and what is left behind; the test moves time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from channels.base import (
    Actor,
    ChannelBusy,
    ChannelDown,
    ChannelError,
    MessageGone,
    MessageRef,
    PayloadRefused,
    Progress,
    TargetGone,
    ThreadKey,
)
from channels.render.slack import SlackText
from channels.slack.errors import ScopeMissing, StreamOver
from channels.slack.progress import GRACE, LONGEST, QUIET, SignCalls, Signs
from channels.slack.sign import APPEND_SECONDS, EDIT_SECONDS, REFRESH
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
    assert [len(shown) for shown in stage.platform.shown] == [12_000]
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
