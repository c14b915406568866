"""Floods, outages, restarts, long turns, and trouble on the gateway: everything arrives, in order, once."""

from __future__ import annotations

import pytest

from channels.base import ChannelError
from tests.clock import FakeClock
from tests.platforms.discord.ids import ELSEWHERE
from tests.platforms.discord.server import DiscordServer
from tests.scenario.discord.house import ADA, BOB, GENERAL, House, Post, running

SEND = "POST /channels/{channel}/messages"


# ---- signs of life


async def test_typing_shows_at_once_and_a_tool_in_a_message_that_becomes_the_answer(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("work")
        await scene.until(lambda: asked in server.channels and server.is_typing(asked), "typing")
        sign = await scene.sees("-# Using work…", asked)
        house.let_go.set()
        answer = await scene.sees("Result: worked", asked)
        await scene.rest()
        assert answer.id == sign.id
        assert scene.texts(asked) == ["Result: worked"]


async def test_a_message_that_has_to_wait_is_marked_as_seen(house: House, server: DiscordServer) -> None:
    async with running(house, server) as scene:
        asked = scene.call("work")
        await scene.at_work(asked)
        waiting = scene.say("hello", place=asked)
        await scene.until(lambda: server.look(asked, waiting).get("reactions"), "a reaction")
        house.let_go.set()
        await scene.sees("You said: hello", asked)


async def test_a_growing_answer_is_edited_and_then_replaced_by_the_exact_one(
    house: House, server: DiscordServer
) -> None:
    house.answers["slow **words**"] = "You said: slow **words** <@300000000000000002> @everyone"
    async with running(house, server) as scene:
        asked = scene.call("slow **words**")
        grown = await scene.sees("You said: ", asked)
        house.let_go.set()
        exact = "You said: slow **words** \\<@300000000000000002> @everyone"
        await scene.until(lambda: grown.message["content"] == exact, "the exact answer")
        await scene.rest()
        assert [post.id for post in scene.posts(asked)] == [grown.id]
        assert server.paged() == []


async def test_an_answer_that_took_long_is_posted_anew_so_that_people_are_told(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server, clock=FakeClock(server.now())) as scene:
        asked = scene.call("slow words of a minute ago")
        sign = await scene.sees("You said: slow", asked)
        await scene.passes(70)
        house.let_go.set()
        answer = await scene.sees("You said: slow words of a minute ago", asked)
        await scene.until(lambda: len(scene.posts(asked)) == 1, "one message")
        assert answer.id != sign.id


async def test_a_turn_that_stops_for_a_card_leaves_no_sign_behind(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("make then work")
        await scene.sees("-# Using work…", asked)
        house.let_go.set()
        await scene.sees("Result: made; worked", asked)
        scene.say("pay A-1 30", place=asked)
        await scene.card(place=asked)
        await scene.rest()
        assert [text for text in scene.texts(asked) if "Using" in text or "Working" in text] == []


# ---- long answers and rates


async def test_c023_a_long_answer_is_whole_in_order_and_never_over_the_limit(
    house: House, server: DiscordServer
) -> None:
    house.answers["emoji"] = "\n\n".join(f"{n:03} " + "\N{GRINNING FACE}" * 400 for n in range(30))
    async with running(house, server) as scene:
        asked = scene.call("emoji")
        await scene.until(lambda: any("029 " in text for text in scene.texts(asked)), "the end")
        await scene.rest()
        texts = scene.texts(asked)
        assert all(len(text.encode("utf-16-le")) // 2 <= 2000 for text in texts)
        assert "".join(texts).count("\N{GRINNING FACE}") == 30 * 400


async def test_a_long_answer_keeps_discords_pace_its_order_and_its_formatting(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server) as scene:
        server.rates.enforced = True
        asked = scene.call("long 4")
        await scene.until(lambda: any("last of 4" in text for text in scene.texts(asked)), "the whole answer")
        await scene.rest()
        assert [call.status for call in server.called(SEND) if call.status == 429] == []
        _assert_whole(scene.posts(asked), 4)


async def test_a_flooded_answer_waits_as_long_as_discord_says_and_is_not_dropped(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server, clock=FakeClock(server.now())) as scene:
        server.fail_next(SEND, 429, retry_after=40)
        asked = scene.call("hello")
        await scene.sees("You said: hello", asked)
        first, second = server.called(SEND)
        assert (first.status, second.status) == (429, 200)
        assert second.at - first.at >= 39


async def test_a_flood_in_the_middle_of_a_long_answer_repeats_and_loses_no_part(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server, clock=FakeClock(server.now())) as scene:
        asked = scene.call("long 8")
        await scene.until(lambda: any("last of 2" in text for text in scene.texts(asked)), "some parts")
        server.fail_next(SEND, 429, retry_after=40)
        await scene.until(lambda: any("last of 8" in text for text in scene.texts(asked)), "the whole answer")
        await scene.rest()
        _assert_whole(scene.posts(asked), 8)


def _assert_whole(posts: list[Post], sections: int) -> None:
    """Every word once and in order."""
    text = "\n".join(post.text for post in posts)
    places = [text.index(f"word{n}x{i} ") for n in range(1, sections + 1) for i in range(0, 289, 17)]
    assert places == sorted(places)
    assert text.count("Bold 4") == 1


# ---- answers whose fate is not known


async def test_an_answer_whose_receipt_was_lost_comes_again_at_most_once_and_says_so(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server, clock=FakeClock(server.now())) as scene:
        server.fail_next(SEND, "drop", after=True)
        scene.say("hello", ADA, ADA)
        await scene.sees("You said: hello", ADA, count=2)
        await scene.rest()
        first, second = scene.texts(ADA)
    assert first == "You said: hello"
    assert "may be a repeat" in second


async def test_an_answer_that_surely_did_not_arrive_is_not_marked(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server, clock=FakeClock(server.now())) as scene:
        server.fail_next(SEND, 503)
        scene.say("hello", ADA, ADA)
        await scene.sees("You said: hello", ADA)
        await scene.rest()
        assert scene.texts(ADA) == ["You said: hello"]


# ---- the clocks of interactions


async def test_c017_a_turn_of_22_minutes_ends_in_the_right_thread(
    house: House, server: DiscordServer
) -> None:
    agent = house.agent()
    async with running(house, server, agent=agent, clock=FakeClock(server.now())) as scene:
        await scene.until(lambda: server.commands, "commands")
        asked = await server.slash(ADA, GENERAL, "ask", prompt="slow words of a long time ago").taken()
        thread = (await scene.until(lambda: server.threads(GENERAL), "a thread"))[0]
        await scene.at_work(thread)
        await scene.passes(22 * 60)
        house.let_go.set()
        await scene.sees("You said: slow words of a long time ago", thread)
        await scene.rest()
        assert scene.texts(thread) == ["You said: slow words of a long time ago"]
        late = [call for call in server.called("* /webhooks/*") if call.at - asked.at > 900]
        assert late == []
        assert not asked.failed


async def test_a_click_while_nobody_listens_fails_at_discord_and_the_card_is_still_live_afterwards(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("pay A-1 30")
        card = await scene.card(place=asked)
        await scene.rest()
    lost = server.press(ADA, asked, card.id, "Approve")
    server.advance(4)
    await lost.taken()
    assert lost.failed == "The application did not respond"
    async with running(house, server) as scene:
        assert house.paid == []
        (card,) = scene.cards(place=asked)
        await scene.press(card, "Approve")
        await scene.sees("Result: paid 30 for A-1", asked)
        await scene.shows(card, "Approved by Ada")
    assert len(house.paid) == 1


# ---- restarts, and what was missed


async def test_what_was_said_while_nobody_listened_is_answered_afterwards_in_order_and_once(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("hello")
        scene.say("hello", BOB, BOB)
        await scene.sees("You said: hello", asked)
        await scene.sees("You said: hello", BOB)
        await scene.rest()
    scene.say("word 1", place=asked)
    scene.say("word 2", place=asked)
    other = scene.call("word 3")
    scene.say("not for you")
    scene.say("word 4", BOB, BOB)
    for _ in range(2):
        async with running(house, server) as scene:
            await scene.sees("You said: word 2", asked)
            await scene.sees("You said: word 3", other)
            await scene.sees("You said: word 4", BOB)
            await scene.rest()
            assert scene.texts(asked) == ["You said: hello", "You said: word 1", "You said: word 2"]
            assert scene.texts(other) == ["You said: word 3"]
            assert scene.texts(BOB) == ["You said: hello", "You said: word 4"]
    assert scene.texts(GENERAL) == []


async def test_a_fresh_installation_answers_nothing_from_before(house: House, server: DiscordServer) -> None:
    old = server.say(ADA, GENERAL, "<@900000000000000002> from long ago")["id"]
    async with running(house, server) as scene:
        said = scene.call("hello")
        await scene.sees("You said: hello", said)
        await scene.rest()
        assert server.thread_of(GENERAL, old) == ""
    assert len(house.requests) == 1


async def test_a_restart_in_the_middle_of_everything_sends_nothing_twice(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("pay A-1 30")
        await scene.card(place=asked)
        await scene.rest()
        before = scene.texts(asked)
    async with running(house, server) as scene:
        end = scene.call("the end")
        await scene.sees("You said: the end", end)
        await scene.rest()
        assert scene.texts(asked) == before


# ---- the gateway connection


@pytest.mark.parametrize("how", ["drop", "close", "reconnect", "resumable"])
async def test_a_lost_connection_is_resumed_and_what_came_meanwhile_is_heard_once(
    house: House, server: DiscordServer, how: str
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("hello")
        await scene.sees("You said: hello", asked)
        match how:
            case "drop":
                server.drop()
            case "close":
                await server.close(4000)
            case "reconnect":
                await server.reconnect()
            case "resumable":
                await server.invalidate(resumable=True)
        scene.say("are you there?", place=asked)
        await scene.until(lambda: server.resumes, "a resume")
        await scene.sees("You said: are you there?", asked)
        scene.say("the end", place=asked)
        await scene.sees("You said: the end", asked)
        await scene.rest()
        assert [outcome for _, _, outcome in server.resumes] == ["resumed"]
        assert len(scene.texts(asked)) == 3
        assert len(server.identifies) == 1


@pytest.mark.parametrize("how", ["forgotten", "invalid"])
async def test_after_a_session_is_lost_what_was_missed_is_caught_up(
    house: House, server: DiscordServer, how: str
) -> None:
    async with running(house, server, clock=FakeClock(server.now())) as scene:
        asked = scene.call("hello")
        await scene.sees("You said: hello", asked)
        await scene.rest()
        if how == "invalid":
            await server.invalidate()
        else:
            server.gateway_open = False
            server.forget_sessions()
            await scene.until(lambda: not server.live(), "no connection")
        scene.say("are you there?", place=asked)
        server.gateway_open = True
        await scene.sees("You said: are you there?", asked)
        await scene.rest()
        assert scene.texts(asked) == ["You said: hello", "You said: are you there?"]
        assert len(server.identifies) == 2


async def test_a_zombie_connection_is_noticed_and_replaced(house: House, server: DiscordServer) -> None:
    server.heartbeat_interval = 300
    async with running(house, server) as scene:
        asked = scene.call("hello")
        await scene.sees("You said: hello", asked)
        [socket] = scene.sockets()
        assert socket._keep_alive is not None
        socket._keep_alive.heartbeat_timeout = 1.0  # of the library's own minute
        server.freeze()
        scene.say("are you there?", place=asked)
        await scene.sees("You said: are you there?", asked)
        await scene.rest()
        assert scene.texts(asked) == ["You said: hello", "You said: are you there?"]
        server.thaw()


async def test_an_outage_of_everything_loses_nothing(house: House, server: DiscordServer) -> None:
    async with running(house, server) as scene:
        asked = scene.call("work")
        await scene.at_work(asked)
        paying = scene.call("pay A-1 30", BOB)
        card = await scene.card(place=paying)
        await scene.until(lambda: scene.texts(asked), "a sign of life")
        await server.down()
        house.let_go.set()
        await scene.gateway.deliveries.idle()
        await server.up()
        await scene.until(lambda: server.live(), "a connection")
        await scene.sees("Result: worked", asked)
        await scene.press(card, "Approve", BOB)
        await scene.sees("Result: paid 30 for A-1", paying)
        await scene.rest()
        assert [text for text in scene.texts(asked) if text.startswith("Result")] == ["Result: worked"]


async def test_a_start_while_discord_is_away_waits_for_it(house: House, server: DiscordServer) -> None:
    await server.down()
    async with running(house, server, sessions=0) as scene:
        await server.up()
        await scene.until(lambda: server.live(), "a connection")
        said = scene.call("hello")
        await scene.sees("You said: hello", said)


async def test_without_the_message_content_intent_mentions_and_private_words_are_heard(
    house: House, server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.message_content = False
    async with running(house, server) as scene:
        asked = scene.call("hello")
        await scene.sees("You said: hello", asked)
        scene.say("unheard", place=asked)
        scene.call("and now?", place=asked)
        await scene.sees("You said: and now?", asked)
        scene.say("good day", ADA, ADA)
        await scene.sees("You said: good day", ADA)
        await scene.rest()
        assert scene.texts(asked) == ["You said: hello", "You said: and now?"]
    assert len([r for r in caplog.records if "message content" in r.getMessage().lower()]) == 1


async def test_with_two_shards_every_guild_is_heard_once(house: House, server: DiscordServer) -> None:
    async with running(house, server, shards=2, sessions=2) as scene:
        here, there = scene.call("one"), scene.call("two", ADA, ELSEWHERE)
        scene.say("three", ADA, ADA)
        await scene.sees("You said: one", here)
        await scene.sees("You said: two", there)
        await scene.sees("You said: three", ADA)
        await scene.rest()
        assert sorted(tuple(told["shard"]) for told in server.identifies) == [(0, 2), (1, 2)]
        assert len(scene.texts(here)) == len(scene.texts(there)) == len(scene.texts(ADA)) == 1


async def test_as_many_shards_as_discord_recommends(house: House, server: DiscordServer) -> None:
    server.shards = 2
    async with running(house, server, shards="auto", sessions=2) as scene:
        there = scene.call("two", ADA, ELSEWHERE)
        await scene.sees("You said: two", there)


async def test_a_token_that_is_not_good_is_told_at_once_and_is_in_no_log(
    house: House, server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    good, server.token = server.token, f"{server.token}x"
    with pytest.raises(ChannelError) as caught:
        async with running(house, server, sessions=0, token=good):
            raise AssertionError("it started")
    assert "channels.discord.token" in str(caught.value)
    assert good not in caplog.text + str(caught.value)
    assert good.rpartition(".")[2] not in caplog.text + str(caught.value)
    assert len([r for r in caplog.records if "channel discord does not run" in r.getMessage()]) == 1
