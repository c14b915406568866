"""How answers, cards and private words reach people, and what becomes of the signs of life before them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from channels.base import (
    Actor,
    CardField,
    ChannelBusy,
    InboundPress,
    MessageRef,
    OutboundMessage,
    Progress,
    ThreadKey,
)
from channels.slack.adapter import SlackChannel
from channels.slack.refs import unpack_ref
from tests.contracts.harness import Inbox, an_approval
from tests.platforms.slack import SlackServer
from tests.platforms.slack.hasty import Transport, hasty_sleep, quick, running

ADA = Actor("slack", "T1", "U1")
ROOT = ThreadKey("slack", "T1", "C1", "")
OVER = pytest.mark.parametrize("over", ["socket", "http"])


def in_thread(server: SlackServer, text: str = "hello", channel: str = "C1") -> ThreadKey:
    return ThreadKey("slack", "T1", channel, server.say("U1", channel, text).ts)


# ---- what only one person sees


async def a_press(server: SlackServer, inbox: Inbox, channel: SlackChannel, user: str = "U1") -> InboundPress:
    thread = in_thread(server)
    ref = await channel.show(thread, an_approval())
    await server.press(user, *unpack_ref(ref), "Approve").taken()
    return inbox.presses[-1]


@OVER
async def test_who_pressed_is_told_in_the_thread_and_later_by_another_process_too(
    server: SlackServer, inbox: Inbox, over: Transport
) -> None:
    async with running(server, inbox, over) as channel:
        press = await a_press(server, inbox, channel)
        await channel.notify_actor(press, "Approved. <!channel> *ok*")
        await channel.notify_actor(press, "")
    async with running(server, inbox, over) as channel:
        await channel.notify_actor(press, "Still approved.")
    first, second = server.ephemerals("U1")
    assert first["text"] == "Approved. &lt;!channel&gt; *ok*"
    assert second["text"] == "Still approved."
    assert first["thread_ts"] == second["thread_ts"] == press.thread.thread
    assert [c.method for c in server.calls if c.method in ("response_url", "chat.postEphemeral")] == [
        "response_url",
        "chat.postEphemeral",
    ]
    assert server.paged() == []


async def test_a_press_at_the_root_is_answered_where_it_can_be_seen(
    server: SlackServer, inbox: Inbox
) -> None:
    async with running(server, inbox) as channel:
        ref = await channel.show(ROOT, an_approval())
        await server.press("U1", *unpack_ref(ref), "Approve").taken()
        [press] = inbox.presses
        assert press.thread == ROOT._replace(thread=unpack_ref(ref)[1])
        await channel.notify_actor(press, "Approved.")
    assert not server.ephemerals("U1")[0].get("thread_ts")


async def test_a_word_to_one_person_that_slack_delays_comes_later(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox) as channel:
        press = await a_press(server, inbox, channel)
        server.fail_next("response_url", 429, retry_after=2)
        await channel.notify_actor(press, "Approved.")
        [told] = await server.wait_ephemerals("U1", 1)
    assert told["text"] == "Approved."


@OVER
async def test_a_command_is_answered_to_its_author_alone(
    server: SlackServer, inbox: Inbox, over: Transport
) -> None:
    async with running(server, inbox, over) as channel:
        await server.slash("U1", "C3", "status now").taken()  # a channel that the bot is not in
        [message] = inbox.messages
        assert (message.text, message.hidden, message.thread.thread) == ("/status now", True, "")
        answer = OutboundMessage(text="**All** quiet.", only=message.actor, reply_to=message.message_id)
        for part in channel.parts(answer):
            await channel.send(message.thread, part)
    [told] = server.ephemerals("U1")
    assert told["text"] == "*All* quiet."
    assert server.from_bot("C3") == []


async def test_every_part_of_a_long_private_answer_arrives(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox) as channel:
        await server.slash("U1", "C3", "pending").taken()
        [message] = inbox.messages
        answer = OutboundMessage(text="word " * 2000, only=message.actor, reply_to=message.message_id)
        parts = channel.parts(answer)
        for part in parts:
            await channel.send(message.thread, part)
    assert len(parts) > 1
    assert len(server.ephemerals("U1")) == len(parts)


# ---- progress and answers


async def shown(server: SlackServer, channel: SlackChannel, thread: ThreadKey) -> MessageRef:
    """The progress message of a thread."""
    await channel.progress(thread, Progress(kind="tool", text="search", actor=ADA))
    await server.wait_messages(thread.conversation, 1)
    return MessageRef(f"{thread.conversation}:{server.from_bot(thread.conversation)[0]['ts']}")


async def test_an_answer_takes_the_place_of_the_progress_message(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox) as channel:
        thread = in_thread(server)
        sign = await shown(server, channel, thread)
        await channel.progress(thread, Progress(kind="idle"))
        ref = await channel.send(thread, OutboundMessage(text="Found **it**."))
        assert ref == sign
    [message] = server.from_bot("C1")
    assert message["text"] == "Found *it*."


async def test_a_stream_becomes_exactly_the_final_answer(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox) as channel:
        thread = in_thread(server)
        await channel.progress(thread, Progress(kind="text", text="Found **i", actor=ADA))
        await server.wait_calls("chat.startStream", 1)
        await server.wait_messages("C1", 1)
        await channel.progress(thread, Progress(kind="idle"))
        await channel.send(thread, OutboundMessage(text="Found **it**."))
    [message] = server.from_bot("C1")
    assert message["text"] == "Found *it*."
    assert len(server.called("chat.stopStream")) == 1


async def test_an_answer_that_took_long_is_a_new_message_that_notifies(
    server: SlackServer, inbox: Inbox
) -> None:
    now = 0.0
    async with running(server, inbox, monotonic=lambda: now) as channel:
        thread = in_thread(server)
        sign = await shown(server, channel, thread)
        await channel.progress(thread, Progress(kind="tool", text="read", actor=ADA))
        await server.wait_calls("chat.update", 1)  # so the channel knows of its message by now
        now = 61.0
        ref = await channel.send(thread, OutboundMessage(text="At last."))
        assert ref != sign
        await server.wait_for(lambda: len(server.from_bot("C1")) == 1)
    assert [m["text"] for m in server.from_bot("C1")] == ["At last."]


async def test_an_answer_that_calls_somebody_is_a_new_message(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox) as channel:
        thread = in_thread(server)
        sign = await shown(server, channel, thread)
        ref = await channel.send(thread, OutboundMessage(text="Your turn.", mentions=(ADA,)))
        assert ref != sign
        await server.wait_for(lambda: len(server.from_bot("C1")) == 1)
    assert server.paged("C1") == ["U1"]


async def test_an_answer_that_slack_delays_takes_the_same_place_later(
    server: SlackServer, inbox: Inbox
) -> None:
    async with running(server, inbox) as channel:
        thread = in_thread(server)
        sign = await shown(server, channel, thread)
        server.fail_next("chat.update", 429, retry_after=1)
        with pytest.raises(ChannelBusy) as caught:
            await channel.send(thread, OutboundMessage(text="Found it."))
        await hasty_sleep(caught.value.retry_after)
        assert await channel.send(thread, OutboundMessage(text="Found it.")) == sign
    assert [m["text"] for m in server.from_bot("C1")] == ["Found it."]


async def test_a_card_comes_after_the_progress_message_is_gone(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox) as channel:
        thread = in_thread(server)
        sign = await shown(server, channel, thread)
        ref = await channel.show(thread, an_approval())
        await server.wait_for(lambda: len(server.from_bot("C1")) == 1)
    assert [m["ts"] for m in server.from_bot("C1")] == [unpack_ref(ref)[1]]
    assert ref != sign


async def test_arguments_that_cannot_be_attached_leave_no_way_to_approve(
    server: SlackServer, inbox: Inbox
) -> None:
    card = an_approval(fields=(CardField(name="script", value="step; " * 10_000),))
    async with running(server, inbox) as channel:
        server.fail_next("files.getUploadURLExternal", "missing_scope", needed="files:write")
        ref = await channel.show(in_thread(server), card)
        assert server.labels(*unpack_ref(ref)) == ["Deny"]
        again = await channel.show(in_thread(server), card)
        assert server.labels(*unpack_ref(again)) == ["Approve", "Deny"]
        files = len(server.files)
        await channel.redraw(again, replace(card, expires="soon"))
        assert len(server.files) == files


async def test_stopping_takes_signs_of_life_away(server: SlackServer, inbox: Inbox) -> None:
    channel = quick(server)
    await channel.start(inbox)
    thread = in_thread(server)
    await shown(server, channel, thread)
    await channel.stop()
    assert server.from_bot("C1") == []
