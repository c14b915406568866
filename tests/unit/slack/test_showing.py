"""Cards over the real API: who is notified, where they go, and that a file stands where they stand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from channels.base import Actor, CardField, OutboundMessage, PayloadRefused, Progress, TargetGone, ThreadKey
from channels.slack.refs import unpack_ref
from tests.contracts.harness import Inbox, a_shared_card, an_approval, settled
from tests.platforms.slack import SlackServer
from tests.platforms.slack.hasty import running

ADA = Actor("slack", "T1", "U1")
BOB = Actor("slack", "T1", "U2")
TO_BOB = ThreadKey("slack", "T1", "U2", "")
LONG = an_approval(fields=(CardField(name="script", value="step; " * 5_000),))


def in_thread(server: SlackServer) -> ThreadKey:
    return ThreadKey("slack", "T1", "C1", server.say("U1", "C1", "hello").ts)


async def test_people_and_groups_are_notified_by_the_card_and_by_no_other_of_its_words(
    server: SlackServer, inbox: Inbox
) -> None:
    card = an_approval(asks=(ADA, BOB), ask_roles=("S1",), summary="<@U3> <!subteam^S2> <!channel>")
    async with running(server, inbox) as channel:
        ref = await channel.show(in_thread(server), card)
        assert server.paged() == ["U1", "U2", "S1"]
        await channel.redraw(ref, replace(card, status="Ada agrees; one more must."))
        await channel.redraw(ref, settled(card, "Approved by Ada"))
    assert server.paged() == ["U1", "U2", "S1"]
    assert "Notified:" not in server.shown(*unpack_ref(ref))


async def test_a_card_whose_mentions_slack_refuses_is_shown_without_them(
    server: SlackServer, inbox: Inbox
) -> None:
    async with running(server, inbox) as channel:
        target = in_thread(server)
        server.fail_next("chat.postMessage", "invalid_blocks")
        ref = await channel.show(target, an_approval(asks=(ADA,)))
        assert server.paged() == []
        assert server.labels(*unpack_ref(ref)) == ["Approve", "Deny"]
        server.fail_next("chat.postMessage", "invalid_blocks")
        with pytest.raises(PayloadRefused):
            await channel.show(target, an_approval())


async def test_a_key_that_names_a_person_is_our_conversation_with_them(
    server: SlackServer, inbox: Inbox
) -> None:
    async with running(server, inbox) as channel:
        said = await channel.send(TO_BOB, OutboundMessage(text="A card follows."))
        ref = await channel.show(TO_BOB, LONG)
        assert unpack_ref(said)[0] == unpack_ref(ref)[0] == "D2"
        assert [message["files"][0]["name"] for message in server.from_bot("D2") if "files" in message] == [
            "args-K7M2.txt"
        ]
        await channel.progress(TO_BOB, Progress(kind="thinking"))
        await channel.edit(said, OutboundMessage(text="A card is here."))
        assert await channel.private(BOB) == TO_BOB._replace(conversation="D2")
        assert len(server.called("conversations.open")) == 1
        await server.press("U2", *unpack_ref(ref), "Deny").taken()
        await channel.redraw(ref, settled(LONG, "Denied by Bob"))
    [press] = inbox.presses
    assert (press.message_ref, press.thread.conversation) == (ref, "D2")
    assert server.labels(*unpack_ref(ref)) == []


async def test_a_person_who_is_gone_is_a_target_that_is_gone(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox) as channel:
        with pytest.raises(TargetGone):
            await channel.show(TO_BOB._replace(conversation="U404"), an_approval())


async def test_a_long_card_that_is_redrawn_after_a_restart_has_its_file_in_its_own_thread(
    server: SlackServer, inbox: Inbox
) -> None:
    target = in_thread(server)
    async with running(server, inbox) as channel:
        ref = await channel.show(target, LONG)
    async with running(server, inbox) as channel:
        await channel.redraw(ref, replace(LONG, status="Ada agrees; one more must."))
        assert server.labels(*unpack_ref(ref)) == ["Approve", "Deny"]
    threads = {message["thread_ts"] for message in server.from_bot("C1")}
    assert threads == {target.thread}


async def test_a_call_that_is_decided_brings_no_second_file(server: SlackServer, inbox: Inbox) -> None:
    card = a_shared_card(["step; " * 4_000, "A-2", "A-3"])
    decided = replace(card, calls=(*card.calls[:1], settled(card.calls[1], "Denied by Ada"), card.calls[2]))
    async with running(server, inbox) as channel:
        ref = await channel.show(in_thread(server), card)
        await channel.redraw(ref, decided)
        assert "Denied by Ada" in server.shown(*unpack_ref(ref))
    assert sum("files" in message for message in server.from_bot("C1")) == 1


async def test_a_file_that_slack_refuses_takes_the_yes_of_the_calls_that_need_it(
    server: SlackServer, inbox: Inbox
) -> None:
    card = a_shared_card(["step; " * 4_000, "A-2", "A-3"])
    server.app.scopes -= {"files:write"}
    async with running(server, inbox) as channel:
        ref = await channel.show(in_thread(server), card)
    assert server.labels(*unpack_ref(ref)) == [
        "1 Deny", "2 Approve", "2 Deny", "3 Approve", "3 Deny", "Deny all (3)",
    ]  # fmt: skip


async def test_the_home_takes_presses_about_single_calls_and_about_all(
    server: SlackServer, inbox: Inbox
) -> None:
    card = a_shared_card(["A-1", "A-2"])
    inbox.cards = [card]
    async with running(server, inbox):
        server.open_home("U1")
        await server.wait_home("U1")
        await server.press_home("U1", "2 Deny").taken()
        await server.press_home("U1", "Approve all (2)").taken()
    assert [(press.data, press.listed, press.message_ref) for press in inbox.presses] == [
        (f"v1:{card.calls[1].card_id}:d", True, None),
        (f"v1:{card.card_id}:Y", True, None),
    ]


async def test_a_card_whose_reference_was_lost_is_found_again_and_not_posted_twice(
    server: SlackServer, inbox: Inbox
) -> None:
    card = an_approval(once="0123456789abcdef01234567")
    for target in (in_thread(server), ThreadKey("slack", "T1", "C1", "")):
        async with running(server, inbox) as channel:
            lost = await channel.show(target, card)
            other = await channel.show(target, replace(card, once="f" * 24))
        async with running(server, inbox) as channel:  # another process goes on
            news = replace(card, repeat=True, status="Ada agrees; one more must.")
            assert await channel.show(target, news) == lost != other
            told = server.shown(*unpack_ref(lost))
            assert "one more must" in told and "a repeat" not in told
            assert "one more must" not in server.shown(*unpack_ref(other))


async def test_a_card_that_is_not_found_again_is_posted_as_a_possible_repeat(
    server: SlackServer, inbox: Inbox
) -> None:
    target = in_thread(server)
    card = an_approval(once="0123456789abcdef01234567", repeat=True)
    async with running(server, inbox) as channel:
        ref = await channel.show(target, card)
        assert "(a repeat: the card may already be above)" in server.shown(*unpack_ref(ref))
        server.fail_next("conversations.replies", "not_in_channel")
        assert await channel.show(target, card) != ref
