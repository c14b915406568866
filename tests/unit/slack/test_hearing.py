"""What comes in while the store is slow, and what is remembered of it: never more than a little."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from channels.base import (
    Actor,
    Button,
    Card,
    Form,
    FormField,
    InboundMessage,
    InboundPress,
    MessageRef,
    ThreadKey,
)
from channels.slack import hearing, homes, remnants, whispers
from channels.slack.calls import Calls
from channels.slack.homes import Homes
from channels.slack.pacing import Pacing
from channels.slack.refs import unpack_ref
from channels.slack.remnants import Remnants
from channels.slack.whispers import Whispers
from tests.contracts.harness import Inbox, an_approval, settled
from tests.platforms.slack import SlackServer
from tests.platforms.slack.hasty import Transport, hasty_clock, hasty_sleep, running

OVER = pytest.mark.parametrize("over", ["socket", "http"])
DATA = "v1:p_abcdefghijklmnopqrst:f"
FORM = Form(data=DATA, title="Why?", fields=(FormField(name="feedback", label="Reason"),))


class SlowInbox(Inbox):
    """Tells about forms and faults only when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.forms, self.fault = asyncio.Event(), asyncio.Event()

    async def form(self, press: InboundPress) -> Form | str:
        await self.forms.wait()
        return FORM

    async def faults(self, press: InboundPress) -> Mapping[str, str]:
        await self.fault.wait()
        return self.wrong


class BrokenInbox(Inbox):
    async def form(self, press: InboundPress) -> Form | str:
        raise OSError("no database")


def a_card() -> Card:
    card = an_approval(forms=(FORM,))
    return replace(card, buttons=(*card.buttons, Button(label="Deny with feedback", data=DATA)))


# ---- forms


@OVER
@pytest.mark.parametrize("broken", [False, True], ids=["slow", "broken"])
async def test_a_press_that_opens_a_form_is_acknowledged_at_once_and_explained_if_it_opens_none(
    server: SlackServer, over: Transport, broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "FORM_SECONDS", 0.1)
    inbox = BrokenInbox() if broken else SlowInbox()
    async with running(server, inbox, over) as channel:
        ref = await channel.show(ThreadKey("slack", "T1", "C1", ""), a_card())
        pressed = server.press("U1", *unpack_ref(ref), "Deny with feedback")
        await pressed.taken()
        assert len(pressed.attempts) == 1
        [told] = await server.wait_ephemerals("U1")
        assert told["text"] == hearing.NOT_OPENED
        assert server.view("U1") is None


@OVER
async def test_a_form_whose_faults_are_not_known_in_time_is_taken_and_answered_like_any_press(
    server: SlackServer, over: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "FORM_SECONDS", 0.1)
    inbox = SlowInbox()
    inbox.forms.set()
    async with running(server, inbox, over) as channel:
        ref = await channel.show(ThreadKey("slack", "T1", "C1", ""), a_card())
        await server.press("U1", *unpack_ref(ref), "Deny with feedback").taken()
        await server.wait_view("U1")
        sent = await server.submit_view("U1", {"Reason": "too much"})
        assert sent.outcome == "closed"
        [press] = inbox.presses
        assert dict(press.values) == {"feedback": "too much"}


# ---- memory


async def test_shapes_that_nobody_knows_are_counted_one_by_one_up_to_a_bound(
    server: SlackServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "MOST_SHAPES", 5)
    async with running(server, inbox) as channel:
        for number in range(20):
            server.app.events.add(f"unheard_of_{number}")
            for delivery in server.emit({"type": f"unheard_of_{number}"}):
                await delivery.taken()
        assert len(channel.unknown) == 6
        assert channel.unknown[hearing.OTHERS] == 15


def calls(server: SlackServer) -> Calls:
    made = Calls(server.app.bot_token, None, server.api_base, Pacing(hasty_sleep, hasty_clock, 0))
    made.open()
    return made


async def test_homes_signs_threads_and_addresses_are_remembered_up_to_a_bound(
    server: SlackServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (homes, remnants):
        monkeypatch.setattr(module, "KEPT" if module is homes else "_KEPT", 5)
    monkeypatch.setattr(whispers, "KEPT", 5)
    ours = calls(server)
    drawn, left, private = Homes(ours, hasty_clock), Remnants(ours), Whispers(ours, hasty_clock)
    drawn.inbound = inbox
    for number in range(20):
        server.user(f"U{200 + number}", f"user{number}")
        await drawn.opened(Actor("slack", "T1", f"U{200 + number}"))
        place = ThreadKey("slack", "T1", "C1", f"{number}.1")
        left.fresh(place)
        left.own(MessageRef(f"C1:{number}.1"))
        private.remember(f"press{number}", place, "U1", server.new_response_url("U1", "C1"))
    await ours.close()
    assert len(drawn._homes) == len(left._looked) == len(left._own) == len(private._known) == 5


# ---- the home


async def test_only_homes_that_list_a_card_are_drawn_anew_when_it_is_settled(
    server: SlackServer, inbox: Inbox
) -> None:
    async with running(server, inbox) as channel:
        server.open_home("U2")
        await server.wait_home("U2")
        ref = await channel.show(ThreadKey("slack", "T1", "C1", ""), an_approval())
        await server.wait_calls("views.publish", 2)  # Bob may be looking
        inbox.cards.append(an_approval())
        server.open_home("U1")
        await server.wait_calls("views.publish", 3)
        inbox.cards.clear()
        await channel.redraw(ref, settled(an_approval(), "Approved"))
        await server.wait_calls("views.publish", 4)
    assert [c.arguments["user_id"] for c in server.called("views.publish")] == ["U2", "U2", "U1", "U1"]
    assert "Approve" not in str(server.home("U1"))


def earlier_first(messages: Sequence[InboundMessage]) -> list[str]:
    return [message.text for message in messages]


async def test_what_comes_by_two_connections_is_handed_over_in_the_order_in_which_it_was_written(
    server: SlackServer, inbox: Inbox
) -> None:
    async with running(server, inbox):
        await server.wait_connections(2)
        first = server.say("U1", "D1", "root")
        said = [server.say("U1", "D1", f"number {n:02}", thread_ts=first.ts) for n in range(60)]
        for message in said:
            await message.taken()
    assert earlier_first(inbox.messages) == ["root", *(f"number {n:02}" for n in range(60))]
