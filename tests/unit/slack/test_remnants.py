"""Signs of life that a dead process has left are taken away by the next one, and nothing else is."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from channels.base import Actor, MessageRef, OutboundMessage, Progress, ThreadKey
from channels.slack import drafts
from channels.slack.calls import Calls
from channels.slack.pacing import Pacing
from channels.slack.refs import unpack_ref
from channels.slack.remnants import EVENT, UNSEEN, Remnants, marked
from channels.slack.sign import SignCalls
from tests.contracts.harness import Inbox, an_approval
from tests.platforms.slack import SlackServer
from tests.platforms.slack.hasty import hasty_clock, hasty_sleep, running

ADA = Actor("slack", "T1", "U1")


@pytest.fixture
def thread(server: SlackServer) -> ThreadKey:
    """A thread that was there before any process of ours."""
    events, server.app.events = server.app.events, set()
    said = server.say("U1", "C1", "an old thread")
    server.app.events = events
    return ThreadKey("slack", "T1", "C1", said.ts)


async def dead_process(server: SlackServer) -> tuple[Calls, SignCalls]:
    """The calls of a process that will never tidy up."""
    calls = Calls(server.app.bot_token, None, server.api_base, Pacing(hasty_sleep, hasty_clock, 0))
    calls.open()
    return calls, marked(calls, Remnants(calls))


async def left_behind(server: SlackServer, thread: ThreadKey, *kinds: str) -> list[MessageRef]:
    """What a process that died has shown: a message, a stream, or an answer that was a sign once."""
    calls, signs = await dead_process(server)
    refs = []
    for kind in kinds:
        if kind == "stream":
            refs.append(await signs.start(thread, "The answer beg", ADA))
            continue
        drawn = drafts.sign(drafts.using("search"))
        assert drawn is not None
        refs.append(await signs.post(thread, drawn))
    await calls.close()
    return refs


def gone(server: SlackServer, refs: list[MessageRef]) -> bool:
    return not any(unpack_ref(ref)[1] in server.channels["C1"].messages for ref in refs)


@pytest.mark.parametrize("kind", ["message", "stream"])
@pytest.mark.parametrize("by", ["answer", "card", "sign"])
async def test_the_next_process_takes_it_away_with_the_first_thing_that_it_shows_there(
    server: SlackServer, inbox: Inbox, thread: ThreadKey, kind: str, by: str
) -> None:
    refs = await left_behind(server, thread, kind)
    async with running(server, inbox) as channel:
        if by == "answer":
            await channel.send(thread, OutboundMessage(text="Here it is."))
        elif by == "card":
            await channel.show(thread, an_approval())
        else:
            await channel.progress(thread, Progress(kind="tool", text="fetch", actor=ADA))
        await server.wait_for(lambda: gone(server, refs))
        if by == "sign":
            await server.wait_for(lambda: "fetch" in str(server.from_bot("C1")))
            await channel.send(thread, OutboundMessage(text="Here it is."))
    [shown] = server.from_bot("C1")
    assert "Using" not in server.shown("C1", shown["ts"])


async def test_what_became_an_answer_is_no_sign_any_more(
    server: SlackServer, inbox: Inbox, thread: ThreadKey
) -> None:
    for state in (Progress(kind="tool", text="x"), Progress(kind="text", text="Growing", actor=ADA)):
        async with running(server, inbox) as channel:
            await channel.progress(thread, state)
            [sign] = await server.wait_for(lambda: server.from_bot("C1")[-1:])
            assert sign.get("metadata", {}).get("event_type") == EVENT or sign["text"].startswith(UNSEEN)
            ref = await channel.send(thread, OutboundMessage(text="The answer."))
            assert unpack_ref(ref)[1] == sign["ts"]
        async with running(server, inbox) as channel:
            await channel.send(thread, OutboundMessage(text="Another one."))
        assert server.message(*unpack_ref(ref))["text"] == "The answer."
        assert not server.message(*unpack_ref(ref)).get("metadata")
        server.channels["C1"].messages = {thread.thread: server.message("C1", thread.thread)}


async def test_each_thread_is_looked_through_once_and_one_that_begins_here_never(
    server: SlackServer, inbox: Inbox, thread: ThreadKey
) -> None:
    async with running(server, inbox) as channel:
        for words in ("one", "two"):
            await channel.send(thread, OutboundMessage(text=words))
        begun = await server.say("U1", "C1", "<@UBOT> hello").taken()
        for place in (begun.ts, ""):
            await channel.send(thread._replace(thread=place), OutboundMessage(text="hello"))
    looks = [c.arguments for c in server.called("conversations.replies")]
    assert [(look["ts"], look["include_all_metadata"]) for look in looks] == [(thread.thread, "1")]


async def test_a_look_that_failed_for_a_moment_is_tried_again_with_the_next_message(
    server: SlackServer, inbox: Inbox, thread: ThreadKey
) -> None:
    refs = await left_behind(server, thread, "message", "stream")
    server.fail_next("conversations.replies", 503)
    async with running(server, inbox) as channel:
        await channel.send(thread, OutboundMessage(text="one"))
        await server.wait_calls("conversations.replies", 1)
    async with running(server, inbox) as channel:
        server.fail_next("conversations.replies", "drop")
        await channel.send(thread, OutboundMessage(text="two"))
        await server.wait_calls("conversations.replies", 2)
        while not gone(server, refs):
            before = len(server.called("conversations.replies"))
            await channel.send(thread, OutboundMessage(text="three"))
            await server.wait_for(
                lambda: gone(server, refs) or len(server.called("conversations.replies")) > before  # noqa: B023
            )


@pytest.mark.parametrize(
    ("method", "state"),
    [
        ("chat.postMessage", Progress(kind="tool", text="x")),
        ("chat.startStream", Progress(kind="text", text="Growing", actor=ADA)),
    ],
)
async def test_a_sign_whose_receipt_was_lost_goes_when_the_answer_comes(
    server: SlackServer, inbox: Inbox, method: str, state: Progress
) -> None:
    async with running(server, inbox) as channel:
        begun = await server.say("U1", "C1", "<@UBOT> hello").taken()
        place = ThreadKey("slack", "T1", "C1", begun.ts)
        server.fail_next(method, "drop", after=True)
        await channel.progress(place, state)
        await server.wait_for(lambda: len(server.from_bot("C1")) == 2)  # one that nobody knows of
        ref = await channel.send(place, OutboundMessage(text="The answer."))
        await server.wait_for(lambda: len(server.from_bot("C1")) == 1)
    assert server.message(*unpack_ref(ref))["text"] == "The answer."


@pytest.mark.parametrize(
    ("method", "code"),
    [("conversations.replies", "thread_not_found"), ("chat.delete", "compliance_exports_prevent_deletion")],
)
async def test_what_cannot_be_taken_away_holds_nothing_up(
    server: SlackServer,
    inbox: Inbox,
    thread: ThreadKey,
    caplog: pytest.LogCaptureFixture,
    method: str,
    code: str,
) -> None:
    await left_behind(server, thread, "message")
    server.fail_next(method, code, times=9)
    async with running(server, inbox) as channel:
        await channel.send(thread, OutboundMessage(text="Here it is."))
    assert [m["text"] for m in server.from_bot("C1")][-1] == "Here it is."
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


async def test_a_mark_that_somebody_else_has_forged_takes_nothing_away(
    server: SlackServer, inbox: Inbox, thread: ThreadKey
) -> None:
    forged: Any = server.bot_says("C1", f"{UNSEEN}not yours", thread_ts=thread.thread)
    forged.message["metadata"] = {"event_type": EVENT, "event_payload": {}}
    async with running(server, inbox) as channel:
        await channel.send(thread, OutboundMessage(text="Here it is."))
        await server.wait_calls("chat.delete", 1)
    assert server.message("C1", forged.ts)["text"] == f"{UNSEEN}not yours"
