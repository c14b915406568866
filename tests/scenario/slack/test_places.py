"""Where cards go, who may decide, and who may talk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.clock import FakeClock
from tests.platforms.slack import SlackServer
from tests.scenario.slack.house import (
    ADA,
    APPROVALS,
    BOB,
    CLEO,
    GENERAL,
    GUEST,
    HERS,
    OUTSIDER,
    SHARED,
    TRANSPORTS,
    House,
    Scene,
    running,
)

NOTIFY = {"approvers": ("slack:T1:U2",), "notify": (f"slack:T1:{APPROVALS}",)}


@pytest.fixture
async def scene(house: House, server: SlackServer) -> AsyncIterator[Scene]:
    async with running(house, server) as scene:
        yield scene


# ---- approvals elsewhere


@TRANSPORTS
async def test_a_request_is_approved_in_the_approvers_channel_and_both_cards_are_redrawn(
    house: House, server: SlackServer, transport: str
) -> None:
    async with running(house, server, transport=transport, agent=house.agent(rule=NOTIFY)) as scene:
        asked = scene.call("pay A-1 30")
        theirs = await scene.card(channel=APPROVALS)
        mine = await scene.card(channel=GENERAL)
        assert (mine.thread, theirs.thread) == (asked.ts, "")
        assert (await scene.press(mine, "Approve", ADA)).startswith("You may not decide this.")
        await scene.press(theirs, "Approve", BOB)
        await scene.sees("Result: paid 30 for A-1", thread=asked.ts)
        for card in (mine, theirs):
            await scene.shows(card, "Approved by bob (slack:T1:U2)")
            assert card.labels == []
        await scene.rest()
    assert house.paid == [{"order": "A-1", "amount": 30}]


@TRANSPORTS
async def test_a_click_on_a_later_life_of_the_gateway_runs_once_and_redraws_both_cards(
    house: House, server: SlackServer, transport: str
) -> None:
    agent = house.agent(rule=NOTIFY)
    async with running(house, server, transport=transport, agent=agent) as scene:
        asked = scene.call("pay A-1 30")
        await scene.card(channel=APPROVALS)
        await scene.rest()
    async with running(house, server, transport=transport, agent=agent) as scene:
        (theirs,), (mine,) = scene.cards(channel=APPROVALS), scene.cards(channel=GENERAL)
        await scene.press(theirs, "Approve", BOB)
        await scene.sees("Result: paid 30 for A-1", thread=asked.ts)
        await scene.shows(mine, "Approved by bob")
        await scene.shows(theirs, "Approved by bob")
        await scene.rest()
    assert len(house.paid) == 1


async def test_two_gateways_that_are_connected_at_once_answer_and_decide_once(
    house: House, server: SlackServer
) -> None:
    """Whichever of them a payload comes to; the card of one is decided through the other."""
    agent = house.agent(rule=NOTIFY)
    async with running(house, server, agent=agent) as one, running(house, server, agent=agent) as two:
        await one.until(lambda: len(server.connections) == 4, "the connections of both")
        asked = [one.call(f"pay A-{number} 30") for number in range(4)]
        await one.until(lambda: len(one.cards(channel=APPROVALS)) == 4, "four requests")
        for card in one.cards(channel=APPROVALS):
            await one.press(card, "Approve", BOB)
        for number, said in enumerate(asked):
            await one.sees(f"Result: paid 30 for A-{number}", thread=said.ts)
        await one.rest()
        await two.rest()
        assert len(one.posts(APPROVALS)) == 4
        assert [card.labels for card in one.posts(APPROVALS)] == [[], [], [], []]
        assert len([text for text in one.texts() if text.startswith("Result:")]) == 4
    assert sorted(payment["order"] for payment in house.paid) == ["A-0", "A-1", "A-2", "A-3"]


async def test_two_people_who_click_at_once_get_one_decision_and_two_answers(
    house: House, server: SlackServer
) -> None:
    agent = house.agent(rule={"approvers": ("slack:T1:U1", "slack:T1:U2")})
    async with running(house, server, agent=agent) as scene:
        scene.call("pay A-1 30")
        card = await scene.card()
        clicks = [server.press(ADA, card.channel, card.ts, "Approve")]
        clicks.append(server.press(BOB, card.channel, card.ts, "Deny"))
        await asyncio.gather(*(click.taken() for click in clicks))
        told = [await scene.told(user) for user in (ADA, BOB)]
        await scene.rest()
        assert sum(words.startswith("Already decided.") for words in told) == 1
        (winner,) = [words for words in told if not words.startswith("Already decided.")]
        assert winner.startswith(("Approved by ada", "Denied by bob"))
        assert len(house.paid) == winner.startswith("Approved")
        assert card.labels == []


async def test_an_approvers_channel_that_the_bot_is_not_in_leaves_the_thread_to_decide(
    house: House, server: SlackServer, caplog: pytest.LogCaptureFixture
) -> None:
    rule = {"approvers": ("slack:T1:U1",), "notify": ("slack:T1:C3",)}
    async with running(house, server, agent=house.agent(rule=rule)) as scene:
        scene.call("pay A-1 30")
        card = await scene.card()
        await scene.press(card, "Approve")
        await scene.sees("Result: paid 30 for A-1")
        await scene.rest()
    assert "given up" in caplog.text


async def test_a_card_is_shown_when_the_bot_is_let_into_the_channel_again(
    house: House, server: SlackServer
) -> None:
    async with running(house, server, agent=house.agent(rule=NOTIFY)) as scene:
        server.kick_bot(APPROVALS)
        scene.call("pay A-1 30")
        await scene.card()
        await scene.rest()
        assert scene.posts(APPROVALS) == []
        server.invite_bot(APPROVALS)
        theirs = await scene.card(channel=APPROVALS)
        await scene.press(theirs, "Approve", BOB)
        await scene.sees("Result: paid 30 for A-1")


async def test_members_of_a_user_group_decide_where_the_rule_names_it(
    house: House, server: SlackServer
) -> None:
    agent = house.agent(rule={"approvers": ("slack:role:S1",)})
    async with running(house, server, agent=agent, users=("U3",)) as scene:
        scene.call("pay A-1 30", CLEO)
        card = await scene.card()
        assert (await scene.press(card, "Approve", CLEO)).startswith("You may not decide this.")
        await scene.press(card, "Approve", BOB)
        await scene.sees("Result: paid 30 for A-1")


async def test_a_click_after_the_time_ran_out_runs_nothing(house: House, server: SlackServer) -> None:
    clock = FakeClock()
    async with running(house, server, agent=house.agent(rule={"expires": 600.0}), clock=clock) as scene:
        scene.call("pay A-1 30")
        card = await scene.card()
        await scene.rest()
        clock.advance(601)
        late = server.press(ADA, card.channel, card.ts, "Approve")
        await late.taken()
        assert (await scene.told()).startswith("Expired")
        await scene.shows(card, "Expired")
        assert card.labels == []
    assert house.paid == []


# ---- the shortcut, and replies that the channel sees too


async def test_the_shortcut_where_the_bot_is_not_says_so_instead_of_taking_a_question_that_it_cannot_answer(
    scene: Scene,
) -> None:
    said = scene.say("disk is at 97 %", BOB, "C3")
    await scene.server.shortcut(ADA, "C3", said.ts).taken()
    view = await scene.server.wait_view(ADA)
    assert "Invite me first" in str(view) and view["submit"] is None
    await scene.rest()
    assert scene.house.requests == []


async def test_the_shortcut_opens_although_slack_is_slow_to_say_where_the_bot_is(scene: Scene) -> None:
    said = scene.say("disk is at 97 %", BOB)
    async with scene.server.held("conversations.replies"):
        await scene.server.shortcut(ADA, GENERAL, said.ts).taken()
        view = await scene.server.wait_view(ADA)
    assert view["submit"]["text"] == "Ask"


async def test_a_reply_that_is_sent_to_the_channel_too_is_one_message_of_its_thread(scene: Scene) -> None:
    asked = scene.call("hello")
    await scene.sees("You said: hello")
    scene.say("for everybody", thread=asked.ts, broadcast=True)
    answer = await scene.sees("You said: for everybody")
    assert answer.thread == asked.ts
    await scene.rest()
    assert len(scene.house.requests) == 2


# ---- who may talk


async def test_c086_only_ids_that_are_listed_are_heard_whatever_their_names_say(
    house: House, server: SlackServer
) -> None:
    server.user("U4", "ada")  # the name of somebody who may
    server.user("U5", "U1")
    server.channels[GENERAL].members |= {"U4", "U5"}
    async with running(house, server) as scene:
        for stranger in ("U4", "U5", CLEO):
            scene.call("let me in", stranger)
        scene.call("hello")
        await scene.sees("You said: hello")
        card_asked = scene.call("pay A-1 30")
        card = await scene.card()
        assert (await scene.press(card, "Approve", "U4")).startswith("You may not decide this.")
        told = await scene.command("status", "U5")
        assert told.startswith("You are not on the list")
        await scene.rest()
        assert len(house.requests) == 2
        assert {post.thread for post in scene.posts()} >= {card_asked.ts}
    assert house.paid == []


async def test_c086_everyone_means_neither_guests_nor_people_of_other_workspaces(
    house: House, server: SlackServer
) -> None:
    async with running(house, server, users=("*",)) as scene:
        scene.call("let me in", GUEST)
        scene.call("me too", OUTSIDER, SHARED)
        scene.call("hello", CLEO)
        await scene.sees("You said: hello")
        await scene.rest()
        assert (scene.texts(), scene.texts(SHARED)) == (["You said: hello"], [])


async def test_c086_guests_and_outsiders_are_heard_when_their_own_ids_are_listed(
    house: House, server: SlackServer
) -> None:
    async with running(house, server, users=("UG", "T2:UX")) as scene:
        scene.call("hello", GUEST)
        await scene.sees("You said: hello")
        scene.call("good day", OUTSIDER, SHARED)
        await scene.sees("You said: good day", SHARED)


async def test_c086_an_empty_list_means_nobody(house: House, server: SlackServer) -> None:
    async with running(house, server, users=()) as scene:
        scene.call("hello")
        scene.say("hello", channel=HERS)
        await scene.sees("I do not know you. Your id here is U1.", HERS)
        await scene.rest()
        assert scene.texts(GENERAL) == []
    assert house.requests == []


async def test_a_stranger_gets_a_code_in_private_that_an_operator_confirms(
    house: House, server: SlackServer
) -> None:
    async with running(house, server, pairing=True, users=("U1",), operators=("slack:T1:U1",)) as scene:
        scene.say("hello", BOB, "D2")
        told = await scene.until(lambda: scene.texts("D2"), "a code")
        code = told[0].split("/pair ")[1].split()[0].strip("`.")
        answer = await scene.command(f"pair {code}")
        assert "bob" in answer or "U2" in answer
        scene.say("may I?", BOB, "D2")
        await scene.sees("You said: may I?", "D2")


async def test_our_own_messages_and_those_of_other_bots_start_no_turn(scene: Scene) -> None:
    asked = scene.call("hello")
    await scene.sees("You said: hello")
    scene.server.bot_says(GENERAL, "<@UBOT> hello from a program")
    scene.server.bot_says(GENERAL, "me too", thread_ts=asked.ts)
    await scene.rest()
    assert scene.texts() == ["You said: hello"]
    assert len(scene.house.requests) == 1


async def test_thrown_out_in_the_middle_of_a_turn_gives_the_answer_up_with_one_line(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.call("work")
    await scene.house.at_work.wait()
    scene.server.kick_bot(GENERAL)
    scene.house.let_go.set()
    scene.say("hello", channel=HERS)
    await scene.sees("You said: hello", HERS)
    await scene.rest()
    assert len([r for r in caplog.records if "given up" in r.getMessage()]) == 1
    scene.server.invite_bot(GENERAL)
    scene.call("and now?")
    await scene.sees("You said: and now?")
