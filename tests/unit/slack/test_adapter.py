"""What the channel makes of Slack's own surfaces: home, modals, shortcut, commands, assistant, progress."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from channels.base import (
    Actor,
    Button,
    Card,
    ChannelDown,
    Choice,
    Form,
    FormField,
    OutboundMessage,
    ThreadKey,
)
from channels.slack.refs import unpack_ref
from tests.contracts.harness import Inbox, an_approval
from tests.platforms.slack import SlackServer
from tests.platforms.slack.hasty import Transport, running

ADA = Actor("slack", "T1", "U1")
ROOT = ThreadKey("slack", "T1", "C1", "")
OVER = pytest.mark.parametrize("over", ["socket", "http"])
WHY = "v1:p_abcdefghijklmnopqrst:deny_why"


def a_form(**changes: Any) -> Form:
    fields = (
        FormField(name="amount", label="Amount", kind="integer", value="20"),
        FormField(name="note", label="Note"),
    )
    return replace(Form(data=WHY, title="Edit", fields=fields), **changes)


def a_card(form: Form | None = None) -> Card:
    form = form or a_form()
    card = an_approval(forms=(form,))
    return replace(card, buttons=(*card.buttons, Button(label="Edit", data=form.data)))


def in_thread(server: SlackServer, text: str = "hello", channel: str = "C1") -> ThreadKey:
    return ThreadKey("slack", "T1", channel, server.say("U1", channel, text).ts)


# ---- who says it, and where


async def test_a_mention_is_one_identity_whichever_of_its_two_events_comes_first(
    server: SlackServer, inbox: Inbox
) -> None:
    async with running(server, inbox):
        said = await server.say("U1", "C1", "<@UBOT> hello").taken()
    assert {(m.thread, m.message_id, m.addressed, m.text) for m in inbox.messages} == {
        (ROOT._replace(thread=said.ts), said.ts, True, "hello")
    }
    assert len(inbox.messages) == 2


async def test_authors_come_with_their_name_and_standing(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox):
        for user, channel in (("U1", "C1"), ("UG", "C1"), ("UX", "CX")):
            server.channels[channel].members.add(user)
            await server.say(user, channel, "<@UBOT> hello").taken()
    known = {(m.actor.workspace, m.actor.user): (m.author, m.guest) for m in inbox.messages}
    assert {key: guest for key, (_, guest) in known.items()} == {
        ("T1", "U1"): False,
        ("T1", "UG"): True,
        ("T2", "UX"): True,
    }
    assert all(author for author, _ in known.values())


async def test_when_slack_cannot_tell_who_somebody_is_they_count_as_a_guest(
    server: SlackServer, inbox: Inbox
) -> None:
    server.fail_next("users.info", 503, times=99)
    async with running(server, inbox):
        await server.say("U1", "D1", "hello").taken()
    [message] = inbox.messages
    assert (message.guest, message.author) == (True, "")


async def test_a_look_up_that_hangs_does_not_make_the_acknowledgement_late(
    server: SlackServer, inbox: Inbox
) -> None:
    async with running(server, inbox), server.held("users.info"):
        said = [server.say("U1", "D1", f"number {n}") for n in range(3)]
        for message in said:
            await message.taken()
        assert [len(d.attempts) for m in said for d in m.deliveries] == [1, 1, 1]
    assert [m.text for m in inbox.messages] == ["number 0", "number 1", "number 2"]


async def test_another_programs_message_comes_without_a_look_up(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox):
        await server.bot_says("C1", "<@UBOT> deployed").taken()
    assert all(m.from_bot for m in inbox.messages)
    assert server.called("users.info") == []


async def test_roles_are_groups_and_standing_and_change_at_once(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox) as channel:
        assert await channel.roles(ADA, ROOT) >= {"S1", "owner"}
        assert await channel.roles(ADA._replace(user="U3"), ROOT) == frozenset()
        asked = len(server.called("usergroups.list"))
        assert await channel.roles(ADA, ROOT) >= {"S1"}
        assert len(server.called("usergroups.list")) == asked
        server.fail_next("users.info", 503)
        with pytest.raises(ChannelDown):
            await channel.roles(ADA._replace(user="U2"), ROOT)


async def test_what_was_said_before_is_told_oldest_first_and_bounded(
    server: SlackServer, inbox: Inbox
) -> None:
    root = server.say("U1", "C1", "the question")
    for number in range(30):
        server.say("U2", "C1", f"number {number}", thread_ts=root.ts)
    thread = ROOT._replace(thread=root.ts)
    async with running(server, inbox) as channel:
        await channel.send(thread, OutboundMessage(text="from the bot"))
        last = server.say("U1", "C1", "<@UBOT> and now?", thread_ts=root.ts)
        server.say("U2", "C1", "later", thread_ts=root.ts)
        everything = await channel.earlier(thread, last.ts, 100)
        newest = await channel.earlier(thread, last.ts, 3)
        assert await channel.earlier(ROOT, last.ts, 3) == ()
        assert await channel.earlier(thread, last.ts, 0) == ()
    assert [m.text for m in everything] == ["the question", *[f"number {n}" for n in range(30)]]
    assert [m.text for m in newest] == ["number 27", "number 28", "number 29"]
    assert {m.actor.user for m in newest} == {"U2"}
    assert all(m.author for m in newest)


@OVER
async def test_what_bolt_finds_in_the_environment_changes_nothing(
    server: SlackServer, inbox: Inbox, over: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLIENT_ID", "CLIENT_SECRET", "BOT_TOKEN", "SIGNING_SECRET", "APP_TOKEN", "SCOPES"):
        monkeypatch.setenv(f"SLACK_{name}", "xoxb-of-something-else")
    async with running(server, inbox, over):
        await server.say("U1", "D1", "hello").taken()
        await server.slash("U1", "C1", "status").taken()
    assert [m.text for m in inbox.messages] == ["hello", "/status"]
    assert server.ephemerals("U1") == []


# ---- modals


@OVER
async def test_faults_are_shown_at_their_fields_and_a_mended_form_counts_once(
    server: SlackServer, inbox: Inbox, over: Transport
) -> None:
    card = a_card()
    inbox.cards = [card]
    async with running(server, inbox, over) as channel:
        ref = await channel.show(in_thread(server), card)
        await server.press("U1", *unpack_ref(ref), "Edit").taken()
        view = await server.wait_view("U1")
        inbox.wrong = {"amount": "must be at most 100"}
        wrong = await server.submit_view("U1", {"Amount": "500", "Note": "please"})
        assert (wrong.outcome, list(wrong.errors.values())) == ("errors", ["must be at most 100"])
        assert inbox.presses == []
        inbox.wrong = {}
        assert (await server.submit_view("U1", {"Amount": "50"})).outcome == "closed"
    [press] = inbox.presses
    assert dict(press.values) == {"amount": "50", "note": "please"}
    assert (press.data, press.message_ref) == (WHY, ref)
    assert press.action_id == f"view|{view['id']}"


async def test_a_fault_of_the_whole_form_is_shown_where_people_look(
    server: SlackServer, inbox: Inbox
) -> None:
    inbox.cards, inbox.wrong = [a_card()], {"": "somebody was faster"}
    async with running(server, inbox) as channel:
        ref = await channel.show(in_thread(server), a_card())
        await server.press("U1", *unpack_ref(ref), "Edit").taken()
        await server.wait_view("U1")
        assert list((await server.submit_view("U1")).errors.values()) == ["somebody was faster"]


async def test_a_form_without_fields_says_what_is_wrong_all_the_same(
    server: SlackServer, inbox: Inbox
) -> None:
    form = a_form(fields=())
    inbox.cards, inbox.wrong = [a_card(form)], {"": "somebody was faster"}
    async with running(server, inbox) as channel:
        ref = await channel.show(in_thread(server), a_card(form))
        await server.press("U1", *unpack_ref(ref), "Edit").taken()
        await server.wait_view("U1")
        assert (await server.submit_view("U1")).outcome == "updated"
        assert "somebody was faster" in str(server.view("U1"))


async def test_a_form_that_cannot_be_opened_is_explained_in_private(
    server: SlackServer, inbox: Inbox
) -> None:
    async with running(server, inbox) as channel:
        ref = await channel.show(in_thread(server), a_card())
        await server.press("U1", *unpack_ref(ref), "Edit").taken()  # no such card is stored
        [told] = await server.wait_ephemerals("U1", 1)
        assert told["text"] == "There is no such form."
        inbox.cards = [a_card()]
        server.fail_next("views.open", "expired_trigger_id")
        await server.press("U1", *unpack_ref(ref), "Edit").taken()
        assert "Try again" in (await server.wait_ephemerals("U1", 2))[1]["text"]
    assert inbox.presses == []


# ---- questions


async def test_several_options_come_with_the_button_that_confirms_them(
    server: SlackServer, inbox: Inbox
) -> None:
    card = Card(
        card_id="q_1",
        kind="question",
        state="open",
        title="Which?",
        multi=True,
        choices=tuple(Choice(label=name, data=f"v1:q_1:{name}") for name in ("Red", "Blue", "Green")),
        buttons=(Button(label="Confirm", data="v1:q_1:done", tone="primary"),),
    )
    async with running(server, inbox) as channel:
        ref = await channel.show(in_thread(server), card)
        await server.choose("U1", *unpack_ref(ref), ["Red", "Green"]).taken()
        assert inbox.presses == []
        await server.press("U1", *unpack_ref(ref), "Confirm").taken()
    [press] = inbox.presses
    assert press.data == "v1:q_1:done"
    assert press.values == {"chosen": ("v1:q_1:Red", "v1:q_1:Green")}


# ---- the home


async def test_the_home_lists_what_waits_and_its_buttons_work(server: SlackServer, inbox: Inbox) -> None:
    inbox.cards = [an_approval()]
    async with running(server, inbox) as channel:
        server.open_home("U1")
        await server.wait_home("U1")
        assert "Approve issue_refund?" in str(server.home("U1"))
        await server.press_home("U1", "Approve").taken()
        [press] = inbox.presses
        assert (press.listed, press.message_ref, press.actor) == (True, None, ADA)
        assert press.thread == ThreadKey("slack", "T1", "home:U1", "")
        inbox.cards = []
        await channel.notify_actor(press, "Approved by you.")
        shown = str(server.home("U1"))
    assert "Approved by you." in shown
    assert "issue_refund" not in shown
    assert server.ephemerals("U1") == []


async def test_a_form_opens_from_the_home_as_well(server: SlackServer, inbox: Inbox) -> None:
    inbox.cards = [a_card()]
    async with running(server, inbox):
        server.open_home("U1")
        await server.wait_home("U1")
        await server.press_home("U1", "Edit").taken()
        await server.wait_view("U1")
        assert (await server.submit_view("U1", {"Amount": "30"})).outcome == "closed"
    [press] = inbox.presses
    assert (press.listed, press.message_ref) == (True, None)
    assert press.values["amount"] == "30"


# ---- the shortcut and the assistant


@OVER
async def test_the_shortcut_asks_about_a_message_in_its_thread(
    server: SlackServer, inbox: Inbox, over: Transport
) -> None:
    said = server.say("U2", "C1", "the build is red")
    async with running(server, inbox, over):
        await server.shortcut("U1", "C1", said.ts).taken()
        view = await server.wait_view("U1")
        label = next(block["label"]["text"] for block in view["blocks"] if block["type"] == "input")
        assert (await server.submit_view("U1", {label: "why?"})).outcome == "closed"
        message = inbox.messages[-1]
    assert (message.text, message.quote) == ("why?", "the build is red")
    assert message.thread == ROOT._replace(thread=said.ts)
    assert (message.actor, message.addressed, message.guest) == (ADA, True, False)


async def test_a_shortcut_that_could_not_be_opened_is_explained_in_private(
    server: SlackServer, inbox: Inbox
) -> None:
    said = server.say("U2", "C1", "the build is red")
    async with running(server, inbox):
        server.fail_next("views.open", "internal_error")
        await server.shortcut("U1", "C1", said.ts).taken()
        [told] = await server.wait_ephemerals("U1", 1)
    assert "Try again" in told["text"]
    assert inbox.messages == []


async def test_an_assistant_thread_gets_prompts_and_is_named_after_its_first_message(
    server: SlackServer, inbox: Inbox
) -> None:
    async with running(server, inbox):
        opened = server.open_assistant("U1")
        await server.wait_calls("assistant.threads.setSuggestedPrompts", 1)
        await server.say("U1", opened.channel, "How is the\nweather?", thread_ts=opened.ts).taken()
        await server.wait_calls("assistant.threads.setTitle", 1)
        await server.say("U1", opened.channel, "And tomorrow?", thread_ts=opened.ts).taken()
    thread = server.assistant(opened.channel, opened.ts)
    assert thread.title == "How is the weather?"
    assert thread.prompts
    assert len(server.called("assistant.threads.setTitle")) == 1
    assert [m.private for m in inbox.messages] == [True, True]


# ---- the unknown


async def test_what_is_unknown_is_counted_and_told_once(
    server: SlackServer, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    server.app.events.add("event_of_tomorrow")
    async with running(server, inbox) as channel:
        with caplog.at_level(logging.WARNING, "channels.slack"):
            for _ in range(3):
                for delivery in server.emit({"type": "event_of_tomorrow"}):
                    await delivery.taken()
        [(shape, count)] = channel.unknown.items()
    assert count == 3
    assert "event_of_tomorrow" in shape
    assert len(caplog.records) == 1


async def test_an_app_that_is_taken_out_of_the_workspace_stops_receiving(
    server: SlackServer, inbox: Inbox
) -> None:
    states: list[str] = []
    async with running(server, inbox, on_state=states.append) as channel:
        server.emit({"type": "app_uninstalled"})
        await server.wait_for(lambda: not server.connections)
        assert channel.refused is not None
    assert states == ["up", "refused"]


async def test_a_deletion_and_an_edit_are_handed_over(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox):
        said = await server.say("U1", "D1", "helo").taken()
        await server.edit("U1", "D1", said.ts, "hello").taken()
        await server.delete("U1", "D1", said.ts).taken()
    assert [(m.text, m.edited, m.message_id) for m in inbox.messages] == [
        ("helo", False, said.ts),
        ("hello", True, said.ts),
    ]
    assert [(c.kind, c.message_id) for c in inbox.changes] == [("deleted", said.ts)]
