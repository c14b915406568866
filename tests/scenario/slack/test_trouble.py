"""Floods, outages, restarts, and answers that grow: everything arrives, in order, once."""

from __future__ import annotations

from tests.clock import FakeClock
from tests.platforms.slack import SlackServer
from tests.scenario.slack.house import (
    ADA,
    BOB,
    GENERAL,
    HERS,
    TRANSPORTS,
    House,
    Post,
    running,
)

# ---- signs of life


async def test_a_tool_at_work_is_shown_and_its_message_becomes_the_answer(
    house: House, server: SlackServer
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("work")
        sign = await scene.sees("Using work…", thread=asked.ts)
        house.let_go.set()
        answer = await scene.sees("Result: worked", thread=asked.ts)
        await scene.rest()
        assert answer.ts == sign.ts
        assert scene.texts() == ["Result: worked"]


async def test_a_message_that_has_to_wait_is_marked_as_seen(house: House, server: SlackServer) -> None:
    async with running(house, server) as scene:
        asked = scene.call("work")
        await house.at_work.wait()
        waiting = scene.say("hello", thread=asked.ts)
        await scene.until(
            lambda: [c.arguments["timestamp"] for c in server.called("reactions.add")] == [waiting.ts],
            "eyes on the message that waits",
        )
        house.let_go.set()
        await scene.sees("You said: hello")


async def test_a_growing_answer_is_streamed_and_then_replaced_by_the_exact_one(
    house: House, server: SlackServer
) -> None:
    house.answers["slow **words**"] = "You said: slow **words** <!channel> `a<b`"
    async with running(house, server) as scene:
        scene.call("slow **words**")
        grown = await scene.sees("You said: ")
        (start,) = server.called("chat.startStream")
        assert (start.arguments["recipient_user_id"], start.arguments["recipient_team_id"]) == (ADA, "T1")
        house.let_go.set()
        exact = "You said: slow *words* &lt;!channel&gt; `a&lt;b`"
        await scene.until(lambda: grown.message["text"] == exact, "the exact answer")
        await scene.rest()
        assert [post.ts for post in scene.posts()] == [grown.ts]
        assert server.paged(GENERAL) == []


async def test_a_stream_that_died_after_five_minutes_does_not_keep_the_answer_from_arriving_whole(
    house: House, server: SlackServer
) -> None:
    clock = FakeClock()
    async with running(house, server, clock=clock) as scene:
        asked = scene.call("slow words of a long time ago")
        grown = await scene.sees("You said: ")
        server.streams.clear()  # as if Slack had ended it early
        await scene.passes(310)
        house.let_go.set()
        answer = await scene.sees("You said: slow words of a long time ago", thread=asked.ts)
        await scene.until(lambda: len(scene.posts()) == 1, "one message")
        assert answer.ts != grown.ts  # posted anew, so that people are notified
        await scene.rest()
        assert scene.texts() == ["You said: slow words of a long time ago"]


async def test_where_slack_has_no_streams_the_answer_grows_by_edits(
    house: House, server: SlackServer
) -> None:
    server.fail_next("chat.startStream", "unknown_method", times=50)
    async with running(house, server) as scene:
        scene.call("slow words")
        grown = await scene.sees("You said: ")
        house.let_go.set()
        await scene.until(lambda: grown.text == "You said: slow words", "the answer")
        await scene.rest()
        assert scene.texts() == ["You said: slow words"]


async def test_an_assistant_thread_says_what_is_done_and_stops_saying_it(
    house: House, server: SlackServer
) -> None:
    async with running(house, server) as scene:
        opened = server.open_assistant(ADA)
        scene.say("work", channel=opened.channel, thread=opened.ts)
        await scene.until(
            lambda: server.status(opened.channel, opened.ts) == "is using work…", "the tool in the status"
        )
        house.let_go.set()
        await scene.sees("Result: worked", opened.channel)
        await scene.rest()
        assert server.status(opened.channel, opened.ts) == ""
        assert len(scene.texts(opened.channel)) == 1


async def test_a_turn_that_stops_for_a_card_leaves_no_sign_behind(house: House, server: SlackServer) -> None:
    async with running(house, server) as scene:
        scene.call("make then work")
        await scene.sees("Using work…")
        house.let_go.set()
        await scene.sees("Result: made; worked")
        scene.call("pay A-1 30")
        await scene.card()
        await scene.rest()
        assert [text for text in scene.texts() if text.startswith(("Using", "Working"))] == []


# ---- rates


async def test_a_flooded_answer_waits_as_long_as_slack_says_and_is_not_dropped(
    house: House, server: SlackServer
) -> None:
    async with running(house, server, clock=FakeClock()) as scene:
        server.fail_next("chat.postMessage", 429, times=1, retry_after=17)
        scene.call("hello")
        await scene.sees("You said: hello")
        (first, second) = server.called("chat.postMessage")
        assert (first.status, second.status) == (429, 200)
        assert second.at - first.at >= 17


@TRANSPORTS
async def test_floods_of_every_kind_delay_and_lose_nothing(
    house: House, server: SlackServer, transport: str
) -> None:
    async with running(house, server, transport=transport, clock=FakeClock()) as scene:
        for method in ("chat.postMessage", "chat.update", "chat.postEphemeral", "users.info"):
            server.fail_next(method, 429, times=2, retry_after=5)
        scene.call("pay A-1 30")
        card = await scene.card()
        server.press(ADA, card.channel, card.ts, "Approve")
        await scene.sees("Result: paid 30 for A-1")
        await scene.shows(card, "Approved by")
        assert card.labels == []
        await scene.until(lambda: scene.whispers(ADA), "an answer to the click")
        await scene.rest()
    assert len(house.paid) == 1


async def test_a_long_answer_keeps_slacks_pace_its_order_and_its_formatting(
    house: House, server: SlackServer
) -> None:
    async with running(house, server, clock=FakeClock(), between=1.0) as scene:
        server.enforce_rates = True
        asked = scene.call("long 12")
        await scene.until(lambda: any("last of 12" in text for text in scene.texts()), "the whole answer")
        await scene.rest()
        posts = scene.posts()
        assert {post.thread for post in posts} == {asked.ts}
        assert [c.status for c in server.called("chat.postMessage") if c.status == 429] == []
        _assert_whole(posts, 12)


async def test_a_flood_in_the_middle_of_a_long_answer_repeats_and_loses_no_part(
    house: House, server: SlackServer
) -> None:
    async with running(house, server, clock=FakeClock()) as scene:
        scene.call("long 12")
        await scene.until(lambda: any("last of 3" in text for text in scene.texts()), "some parts")
        server.fail_next("chat.postMessage", 429, times=1, retry_after=40)
        await scene.until(lambda: any("last of 12" in text for text in scene.texts()), "the whole answer")
        await scene.rest()
        _assert_whole(scene.posts(), 12)


def _assert_whole(posts: list[Post], sections: int) -> None:
    """Every word once and in order."""
    text = "\n".join(post.text for post in posts)
    places = [text.index(f"word{n}x{i}") for n in range(1, sections + 1) for i in range(0, 289, 17)]
    assert places == sorted(places)
    assert text.count("Bold 7") == 1


# ---- outages and restarts


@TRANSPORTS
async def test_an_outage_of_half_an_hour_loses_nothing(
    house: House, server: SlackServer, transport: str
) -> None:
    clock = FakeClock()
    async with running(house, server, transport=transport, clock=clock) as scene:
        asked = scene.call("work")
        await house.at_work.wait()
        scene.call("pay A-1 30", BOB)
        card = await scene.card()
        await server.settled()
        await server.down()
        house.let_go.set()
        await scene.passes(1800)
        await server.up()
        if transport == "socket":
            await scene.until(lambda: server.connections, "a connection")
        scene.say("are you back?", channel=HERS)
        await scene.sees("You said: are you back?", HERS)
        await scene.sees("Result: worked", thread=asked.ts)
        await scene.press(card, "Approve", BOB)
        await scene.sees("Result: paid 30 for A-1")
        await scene.rest()
        assert sorted(text[:12] for text in scene.texts() if text.startswith("Result")) == [
            "Result: paid",
            "Result: work",
        ]


async def test_what_was_said_while_nobody_listened_is_answered_afterwards(
    house: House, server: SlackServer
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("hello")
        await scene.sees("You said: hello")
        await scene.rest()
    said = scene.say("anybody there?", thread=asked.ts)
    await server.wait_for(lambda: all(d.attempts[-1].failed for d in said.deliveries))
    async with running(house, server) as scene:
        server.retry_now()
        await scene.sees("You said: anybody there?", thread=asked.ts)
        await scene.rest()
        assert scene.texts() == ["You said: hello", "You said: anybody there?"]


async def test_an_answer_whose_receipt_was_lost_comes_again_at_most_once_and_says_so(
    house: House, server: SlackServer
) -> None:
    async with running(house, server, clock=FakeClock()) as scene:
        server.fail_next("chat.postMessage", "drop", after=True)
        scene.call("hello")
        await scene.sees("You said: hello", count=2)
        await scene.rest()
        first, second = scene.texts()
    assert first == "You said: hello"
    assert "may be a repeat" in second


async def test_an_answer_that_surely_did_not_arrive_is_not_marked(house: House, server: SlackServer) -> None:
    async with running(house, server, clock=FakeClock()) as scene:
        server.fail_next("chat.postMessage", 503, times=3)
        scene.call("hello")
        await scene.sees("You said: hello")
        await scene.rest()
        assert scene.texts() == ["You said: hello"]
