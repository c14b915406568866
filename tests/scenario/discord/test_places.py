"""Where cards go, who may decide, who may talk, and what becomes of places."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.clock import FakeClock
from tests.platforms.discord.ids import PRIVATE, READONLY
from tests.platforms.discord.server import DiscordServer
from tests.scenario.discord.house import (
    ADA,
    APPROVALS,
    BOB,
    BOT,
    CLEO,
    DAN,
    FORUM,
    G1,
    GENERAL,
    ME,
    OPS,
    House,
    Scene,
    running,
)

NOTIFY = {"approvers": (f"discord:{BOB}",), "notify": (f"discord:{G1}:{APPROVALS}",)}


@pytest.fixture
async def scene(house: House, server: DiscordServer) -> AsyncIterator[Scene]:
    async with running(house, server) as scene:
        yield scene


# ---- approvals elsewhere


async def test_a_request_is_approved_in_the_approvers_channel_and_both_cards_are_redrawn(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server, agent=house.agent(rule=NOTIFY)) as scene:
        asked = scene.call("pay A-1 30")
        theirs, mine = await scene.card(place=APPROVALS), await scene.card(place=asked)
        assert server.threads(APPROVALS) == []
        assert (await scene.press(mine, "Approve", ADA)).startswith("You may not decide this.")
        await scene.press(theirs, "Approve", BOB)
        await scene.sees("Result: paid 30 for A-1", asked)
        for card in (mine, theirs):
            await scene.shows(card, f"Approved by Bob (discord:{BOB})")
            assert card.labels == []
        await scene.rest()
    assert house.paid == [{"order": "A-1", "amount": 30}]


async def test_two_gateways_that_are_connected_at_once_answer_and_decide_once(
    house: House, server: DiscordServer
) -> None:
    """Every event comes to both of them; the interaction of one card too."""
    agent = house.agent(rule=NOTIFY)
    async with running(house, server, agent=agent) as one, running(house, server, agent=agent) as two:
        asked = [one.call(f"pay A-{number} 30") for number in range(3)]
        await one.until(lambda: len(one.cards(place=APPROVALS)) == 3, "three requests")
        for card in one.cards(place=APPROVALS):
            await server.press(BOB, card.place, card.id, "Approve").taken()
        for number, said in enumerate(asked):
            await one.sees(f"Result: paid 30 for A-{number}", said)
            assert len(one.texts(said)) == 2
        await one.rest()
        await two.rest()
        assert [card.labels for card in one.posts(APPROVALS)] == [[], [], []]
    assert server.troubles == []
    assert sorted(payment["order"] for payment in house.paid) == ["A-0", "A-1", "A-2"]


async def test_two_people_who_click_at_once_get_one_decision_and_two_answers(
    house: House, server: DiscordServer
) -> None:
    agent = house.agent(rule={"approvers": (f"discord:{ADA}", f"discord:{BOB}")})
    async with running(house, server, agent=agent) as scene:
        asked = scene.call("pay A-1 30")
        card = await scene.card(place=asked)
        clicks = [server.press(ADA, asked, card.id, "Approve"), server.press(BOB, asked, card.id, "Deny")]
        await asyncio.gather(*(click.taken() for click in clicks))
        told = [await scene.told(user) for user in (ADA, BOB)]
        await scene.rest()
        assert sum(words.startswith("Already decided.") for words in told) == 1
        (winner,) = [words for words in told if not words.startswith("Already decided.")]
        assert winner.startswith(("Approved by Ada", "Denied by Bob"))
        assert len(house.paid) == winner.startswith("Approved")
        assert card.labels == []


async def test_an_approvers_channel_that_the_bot_cannot_write_to_leaves_the_thread_to_decide(
    house: House, server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    rule = {"approvers": (f"discord:{ADA}",), "notify": (f"discord:{G1}:{READONLY}",)}
    async with running(house, server, agent=house.agent(rule=rule)) as scene:
        asked = scene.call("pay A-1 30")
        card = await scene.card(place=asked)
        await scene.press(card, "Approve")
        await scene.sees("Result: paid 30 for A-1", asked)
        await scene.rest()
    assert "given up" in caplog.text


async def test_holders_of_a_role_decide_where_the_rule_names_it(house: House, server: DiscordServer) -> None:
    agent = house.agent(rule={"approvers": (f"discord:role:{OPS}",)})
    async with running(house, server, agent=agent, users=(DAN,)) as scene:
        asked = scene.call("pay A-1 30", DAN)
        card = await scene.card(place=asked)
        assert (await scene.press(card, "Approve", DAN)).startswith("You may not decide this.")
        assert (await scene.press(card, "Approve", CLEO)).startswith("You may not decide this.")
        await scene.press(card, "Approve", BOB)
        await scene.sees("Result: paid 30 for A-1", asked)


async def test_who_got_the_role_a_moment_ago_decides_and_who_lost_it_does_not(
    house: House, server: DiscordServer
) -> None:
    agent = house.agent(rule={"approvers": (f"discord:role:{OPS}",)})
    async with running(house, server, agent=agent, users=(DAN,), clock=FakeClock(server.now())) as scene:
        asked = scene.call("pay A-1 30", DAN)
        card = await scene.card(place=asked)
        assert (await scene.press(card, "Approve", DAN)).startswith("You may not decide this.")
        server.grant(DAN, OPS)
        server.revoke(BOB, OPS)
        await scene.passes(61)
        assert (await scene.press(card, "Approve", BOB)).startswith("You may not decide this.")
        await scene.press(card, "Approve", DAN)
        await scene.sees("Result: paid 30 for A-1", asked)


async def test_administrators_decide_where_the_rule_says_admins(house: House, server: DiscordServer) -> None:
    agent = house.agent(rule={"approvers": ("discord:admins",)})
    async with running(house, server, agent=agent, users=(DAN, BOB)) as scene:
        asked = scene.call("pay A-1 30", DAN)
        card = await scene.card(place=asked)
        assert (await scene.press(card, "Approve", BOB)).startswith("You may not decide this.")
        await scene.press(card, "Approve", CLEO)
        await scene.sees("Result: paid 30 for A-1", asked)


async def test_a_click_after_the_time_ran_out_runs_nothing(house: House, server: DiscordServer) -> None:
    clock = FakeClock(server.now())
    async with running(house, server, agent=house.agent(rule={"expires": 600.0}), clock=clock) as scene:
        asked = scene.call("pay A-1 30")
        card = await scene.card(place=asked)
        await scene.rest()
        clock.advance(601)
        server.advance(601)
        await server.press(ADA, asked, card.id, "Approve").taken()
        assert (await scene.told()).startswith("Expired")
        await scene.shows(card, "Expired")
        assert card.labels == []
    assert house.paid == []


# ---- who may talk


async def test_c086_only_ids_that_are_listed_are_heard_whatever_their_names_say(
    house: House, server: DiscordServer
) -> None:
    for id, name, shown in (("222", "ada", "Ada"), ("333", ADA, "admin")):
        server.user(id, name, display=shown)
        server.guilds[G1].members[id] = type(server.guilds[G1].members[ADA])(server.users[id])
    async with running(house, server) as scene:
        await scene.until(lambda: server.commands, "commands")
        for stranger in ("222", "333", CLEO):
            scene.call("let me in", stranger)
            told = await scene.command("status", stranger)
            assert told.startswith("You are not on the list")
        asked = scene.call("pay A-1 30")
        card = await scene.card(place=asked)
        assert (await scene.press(card, "Approve", "222")).startswith("You may not decide this.")
        opened = await server.press("333", asked, card.id, "Edit").taken()
        if opened.modal is not None:
            await server.submit(opened, {"amount": "1"}).taken()
        await scene.rest()
        assert len(house.requests) == 1
        assert server.threads(GENERAL) == [asked]
    assert house.paid == []


async def test_c086_an_empty_list_means_nobody(house: House, server: DiscordServer) -> None:
    async with running(house, server, users=()) as scene:
        said = scene.call("hello")
        scene.say("hello", ADA, ADA)
        await scene.sees("-# I do not know you. Your id here is", ADA)
        await scene.rest()
        assert server.thread_of(GENERAL, said) == ""
    assert house.requests == []


async def test_holders_of_a_role_may_talk_where_the_list_names_it(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server, users=(f"role:{OPS}",)) as scene:
        scene.call("let me in", DAN)
        said = scene.call("hello", BOB)
        await scene.sees("You said: hello", said)
        await scene.rest()
    assert len(house.requests) == 1


async def test_a_stranger_gets_a_code_in_private_that_an_operator_confirms(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server, pairing=True, users=(ADA,), operators=(f"discord:{ADA}",)) as scene:
        scene.say("hello", BOB, BOB)
        told = await scene.until(lambda: scene.texts(BOB), "a code")
        code = told[0].split("/pair ")[1].split()[0].strip("`.")
        scene.say(f"/pair {code}", ADA, ADA)
        await scene.until(lambda: scene.texts(ADA), "an answer")
        scene.say("may I?", BOB, BOB)
        await scene.sees("You said: may I?", BOB)


async def test_c036_two_bots_never_talk_to_each_other_without_end(scene: Scene) -> None:
    """Another bot's reply pings ours without a word of mention, and a thread of ours hears every message."""
    asked = scene.call("hello")
    answer = await scene.sees("You said: hello", asked)
    scene.server.bot_says(asked, "a reply to you", reply_to=answer.id)
    scene.server.bot_says(GENERAL, f"{ME} hello from a program")
    scene.server.bot_says(asked, "and a word in your thread")
    scene.server.webhook_says(GENERAL, f"{ME} the build is red")
    scene.server.redeliver(scene.server.look(asked, answer.id))  # our own words
    scene.say("the end", place=asked)
    await scene.sees("You said: the end", asked)
    await scene.rest()
    assert scene.texts(asked) == ["You said: hello", "You said: the end"]
    assert scene.texts(GENERAL) == []
    assert len(scene.house.requests) == 2


# ---- what becomes of places


async def test_an_archived_thread_is_reopened_for_an_answer(scene: Scene) -> None:
    asked = scene.call("work")
    await scene.at_work(asked)
    scene.server.archive(asked)
    scene.house.let_go.set()
    await scene.sees("Result: worked", asked)
    assert not scene.server.channels[asked].archived


async def test_a_card_in_an_archived_thread_can_still_be_decided(scene: Scene) -> None:
    asked = scene.call("pay A-1 30")
    card = await scene.card(place=asked)
    await scene.rest()
    scene.server.archive(asked)
    await scene.press(card, "Approve")
    await scene.sees("Result: paid 30 for A-1", asked)
    await scene.shows(card, "Approved by Ada")


async def test_a_locked_thread_is_given_up_with_the_reason_and_used_again_when_it_is_unlocked(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.server.take_from_bot("MANAGE_THREADS")
    asked = scene.call("work")
    await scene.at_work(asked)
    scene.server.archive(asked, locked=True)
    scene.house.let_go.set()
    scene.say("hello", ADA, ADA)
    await scene.sees("You said: hello", ADA)
    await scene.rest()
    assert "Result: worked" not in scene.texts(asked)
    assert "locked" in caplog.text
    scene.server.reopen(asked)
    scene.say("and now?", place=asked)
    await scene.sees("You said: and now?", asked)


async def test_a_locked_thread_is_opened_where_the_bot_may_do_that(scene: Scene) -> None:
    asked = scene.call("work")
    await scene.at_work(asked)
    scene.server.archive(asked, locked=True)
    scene.house.let_go.set()
    await scene.sees("Result: worked", asked)


@pytest.mark.parametrize("what", ["thread", "channel", "guild"])
async def test_a_place_that_is_gone_gives_the_answer_up_and_others_go_on(
    scene: Scene, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked = scene.call("work")
    await scene.at_work(asked)
    if what == "guild":
        scene.server.kick(BOT, G1)
    else:
        scene.server.delete_channel(asked if what == "thread" else GENERAL)
    scene.house.let_go.set()
    scene.say("hello", ADA, ADA)
    await scene.sees("You said: hello", ADA)
    await scene.rest()
    assert len([r for r in caplog.records if "given up" in r.getMessage()]) == 1


async def test_a_card_whose_message_was_deleted_is_decided_by_its_code(scene: Scene) -> None:
    asked = scene.call("pay A-1 30")
    card = await scene.card(place=asked)
    code = card.text.rsplit("Code: ", 1)[1].split()[0].strip("`")
    scene.server.delete(asked, card.id)
    told = await scene.command("approve", place=asked, code=code)
    assert told.startswith("Approved by Ada")
    await scene.sees("Result: paid 30 for A-1", asked)
    await scene.rest()
    assert len(scene.house.paid) == 1


async def test_a_private_channel_and_a_forum_are_places_like_others(scene: Scene) -> None:
    hidden = scene.call("hello", BOB, PRIVATE)
    await scene.sees("You said: hello", hidden)
    post = scene.server.post(BOB, FORUM, "Build", f"{ME} hello")
    await scene.sees("You said: hello", post)


async def test_where_no_thread_can_be_opened_the_answer_comes_in_place_or_is_explained(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.server.deny_bot(GENERAL, "CREATE_PUBLIC_THREADS")
    asked = scene.call("hello")
    scene.say("hello", ADA, ADA)
    await scene.sees("You said: hello", ADA)
    await scene.rest()
    assert scene.server.thread_of(GENERAL, asked) == ""
    assert "given up" in caplog.text or scene.texts(GENERAL) == ["You said: hello"]


async def test_a_closed_direct_conversation_is_used_again_when_it_opens(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.say("work", ADA, ADA)
    await scene.house.at_work.wait()
    scene.server.block(ADA)
    scene.house.let_go.set()
    said = scene.call("hello", BOB)
    await scene.sees("You said: hello", said)
    await scene.rest()
    assert "Result: worked" not in scene.texts(ADA)
    scene.server.unblock(ADA)
    scene.say("and now?", ADA, ADA)
    await scene.sees("You said: and now?", ADA)
