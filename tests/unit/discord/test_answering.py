"""Interactions through the real library: stored first, answered in time and once, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from channels.base import (
    Button,
    Card,
    Choice,
    Form,
    FormField,
    InboundPress,
    MessageRef,
    OutboundMessage,
    ThreadKey,
)
from channels.discord.adapter import DiscordChannel
from channels.discord.answering import BEGIN_AGAIN, NOT_STORED
from channels.discord.refs import thread_key, unpack_ref
from tests.contracts.harness import Inbox, an_approval
from tests.platforms.discord.hasty import quick
from tests.platforms.discord.ids import ADA, BOB, G1, GENERAL
from tests.platforms.discord.interactions import Interaction
from tests.platforms.discord.server import DiscordServer

CALLBACK = "POST /interactions/*/callback"
EDIT = "v1:p_abcdefghijklmnopqrst:edit"
HERE = thread_key(G1, GENERAL)


class SlowInbox(Inbox):
    """Takes presses only once `open` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()

    async def press(self, press: InboundPress) -> None:
        await self.open.wait()
        await super().press(press)


@dataclass
class Stage:
    server: DiscordServer
    channel: DiscordChannel
    inbox: Inbox

    async def shown(self, card: Card, target: ThreadKey = HERE) -> MessageRef:
        self.inbox.cards = [card]
        return await self.channel.show(target, card)

    async def press(self, ref: MessageRef, label: str, user: str = ADA) -> Interaction:
        return await self.server.press(user, *unpack_ref(ref), label).taken()

    async def restart(self) -> None:
        await self.channel.stop()
        self.channel = quick(self.server)
        await self.channel.start(self.inbox)

    def answers(self) -> int:
        return len(self.server.called(CALLBACK))


@pytest.fixture
async def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
async def stage(inbox: Inbox) -> AsyncIterator[Stage]:
    async with DiscordServer() as server:
        stage = Stage(server, quick(server, agents=("clerk", "cook"), models=("small", "large")), inbox)
        await stage.channel.start(inbox)
        yield stage
        await stage.channel.stop()
        server.check()


def with_form(*fields: FormField) -> Card:
    form = Form(data=EDIT, title="Edit issue_refund", fields=fields)
    card = an_approval(forms=(form,))
    return replace(card, buttons=(*card.buttons, Button(label="Edit", data=EDIT)))


def texts(count: int) -> tuple[FormField, ...]:
    return tuple(FormField(name=f"f{n}", label=f"Field {n}", value=str(n)) for n in range(count))


# ---- presses


async def test_c016_a_press_is_stored_and_then_acknowledged_once(stage: Stage) -> None:
    ref = await stage.shown(an_approval())
    pressed = await stage.press(ref, "Approve")
    assert (pressed.response, pressed.failed) == (6, "")
    assert len(stage.inbox.presses) == 1
    assert stage.answers() == 1


@pytest.mark.parametrize("inbox", [SlowInbox()])
async def test_c016_a_slow_store_is_acknowledged_in_time_and_the_press_counts_later(
    stage: Stage, inbox: SlowInbox
) -> None:
    ref = await stage.shown(an_approval())
    pressed = await stage.press(ref, "Approve")
    assert (pressed.response, inbox.presses) == (6, [])
    inbox.open.set()
    await inbox.wait_for(lambda: inbox.presses)
    assert len(inbox.presses) == 1
    assert stage.server.troubles == []


async def test_a_press_that_cannot_be_stored_is_told_and_counts_for_nothing(stage: Stage) -> None:
    ref = await stage.shown(an_approval())
    stage.inbox.refuse(10_000)
    pressed = await stage.press(ref, "Approve")
    assert await pressed.told() == [NOT_STORED]
    assert stage.inbox.presses == []
    assert stage.answers() == 1
    assert "Approve" in stage.server.labels(*unpack_ref(ref))


@pytest.mark.parametrize("code", [10062, 40060])
async def test_c016_a_press_counts_also_when_its_acknowledgement_is_refused(stage: Stage, code: int) -> None:
    ref = await stage.shown(an_approval())
    stage.server.fail_next(CALLBACK, 404 if code == 10062 else 400, code=code)
    stage.server.press(ADA, *unpack_ref(ref), "Approve")
    await stage.inbox.wait_for(lambda: stage.inbox.presses)
    await stage.server.wait_calls(CALLBACK, 1)
    async with asyncio.timeout(3):  # for a first answer that never comes nobody waits longer
        await stage.channel.notify_actor(stage.inbox.presses[0], "Approved.")
    assert len(stage.inbox.presses) == 1


async def test_after_fifteen_minutes_nothing_private_can_be_said_and_nothing_fails(stage: Stage) -> None:
    ref = await stage.shown(an_approval())
    await stage.press(ref, "Approve")
    stage.server.advance(16 * 60)
    await stage.channel.notify_actor(stage.inbox.presses[0], "Approved.")
    assert stage.server.private_texts(ADA) == []


async def test_another_process_says_nothing_to_a_press_it_has_not_taken(stage: Stage) -> None:
    ref = await stage.shown(an_approval())
    await stage.press(ref, "Approve")
    await stage.restart()
    await stage.channel.notify_actor(stage.inbox.presses[0], "Approved.")
    assert stage.server.private_texts(ADA) == []


async def test_a_changed_choice_is_a_press_for_each_option_that_changed(stage: Stage) -> None:
    options = tuple(Choice(label=f"Number {n}", data=f"v1:q_1:{n}", chosen=n == 1) for n in range(8))
    card = Card(card_id="q_1", kind="question", state="open", title="Which?", choices=options, multi=True)
    ref = await stage.shown(card)
    chosen = await stage.server.choose(ADA, *unpack_ref(ref), ["Number 0", "Number 3"]).taken()
    assert (chosen.response, chosen.failed) == (6, "")
    assert [press.data for press in stage.inbox.presses] == ["v1:q_1:0", "v1:q_1:1", "v1:q_1:3"]
    assert len({press.action_id for press in stage.inbox.presses}) == 3
    for press in stage.inbox.presses:
        await stage.channel.notify_actor(press, f"Taken: {press.data}")
    assert len(chosen.texts) == 3


async def test_more_options_than_a_menu_holds_are_turned_by_pages_without_deciding(stage: Stage) -> None:
    options = tuple(Choice(label=f"Number {n}", data=f"v1:q_1:{n}") for n in range(40))
    card = Card(card_id="q_1", kind="question", state="open", title="Which?", choices=options)
    ref = await stage.shown(card)
    turned = await stage.press(ref, "Next ›")
    assert turned.response == 7
    assert "Number 39" in stage.server.labels(*unpack_ref(ref))
    assert stage.inbox.presses == []
    await stage.server.choose(ADA, *unpack_ref(ref), ["Number 39"]).taken()
    assert [press.data for press in stage.inbox.presses] == ["v1:q_1:39"]


# ---- forms


async def test_more_than_five_fields_are_asked_for_page_by_page(stage: Stage) -> None:
    ref = await stage.shown(with_form(*texts(12)))
    opened = await stage.press(ref, "Edit")
    first = await stage.server.submit(opened, {"Field 0": "a"}).taken()
    assert (first.response, stage.inbox.presses) == (4, [])
    message = first.messages[-1]
    again = await stage.server.press(ADA, GENERAL, message["id"], "Continue (2/3)").taken()
    second = await stage.server.submit(again, {"Field 7": "b"}).taken()
    assert second.response == 7
    last = await stage.server.press(ADA, GENERAL, message["id"], "Continue (3/3)").taken()
    done = await stage.server.submit(last, {"Field 11": "c"}).taken()
    assert (done.response, done.failed) == (7, "")
    [press] = stage.inbox.presses
    expected = {f"f{n}": str(n) for n in range(12)} | {"f0": "a", "f7": "b", "f11": "c"}
    assert (press.data, dict(press.values), press.message_ref) == (EDIT, expected, ref)


async def test_pages_whose_beginning_is_forgotten_have_to_be_begun_again(stage: Stage) -> None:
    ref = await stage.shown(with_form(*texts(6)))
    first = await stage.server.submit(await stage.press(ref, "Edit"), {}).taken()
    await stage.restart()
    again = await stage.server.press(ADA, GENERAL, first.messages[-1]["id"], "Continue (2/2)").taken()
    assert await again.told() == [BEGIN_AGAIN]
    assert stage.inbox.presses == []


async def test_what_is_wrong_is_told_with_a_way_back_to_what_was_typed(stage: Stage) -> None:
    ref = await stage.shown(with_form(*texts(2)))
    stage.inbox.wrong = {"f1": "this is no number"}
    sent = await stage.server.submit(await stage.press(ref, "Edit"), {"Field 1": "many"}).taken()
    assert "this is no number" in sent.texts[0]
    assert stage.inbox.presses == []
    again = await stage.server.press(ADA, GENERAL, sent.messages[-1]["id"], "Open it again").taken()
    stage.inbox.wrong = {}
    done = await stage.server.submit(again, {}).taken()
    assert not done.failed
    [press] = stage.inbox.presses
    assert (dict(press.values), press.message_ref) == ({"f0": "0", "f1": "many"}, ref)


async def test_a_form_that_there_is_not_is_explained(stage: Stage) -> None:
    ref = await stage.shown(with_form(*texts(1)))
    stage.inbox.cards = []
    assert await (await stage.press(ref, "Edit")).told() == ["There is no such form."]


# ---- commands


async def test_a_hidden_answer_that_comes_too_late_is_a_direct_message(stage: Stage) -> None:
    await stage.server.slash(ADA, GENERAL, "status").taken()
    [message] = stage.inbox.messages
    stage.server.advance(16 * 60)
    await stage.restart()
    answer = OutboundMessage(text="All is quiet.", only=message.actor, reply_to=message.message_id)
    await stage.channel.send(message.thread, answer)
    [told] = stage.server.from_bot(stage.server.dm(ADA).id)
    assert told["content"] == "All is quiet."


async def test_suggestions_are_what_may_be_decided_and_chosen(stage: Stage) -> None:
    stage.inbox.cards = [an_approval()]
    server = stage.server
    code = await server.autocomplete(ADA, GENERAL, "approve", "code", "k7").taken()
    agent = await server.autocomplete(ADA, GENERAL, "ask", "agent", "c").taken()
    model = await server.autocomplete(ADA, GENERAL, "model", "model", "la").taken()
    assert [[choice["value"] for choice in made.choices or []] for made in (code, agent, model)] == [
        ["K7M2"],
        ["clerk", "cook"],
        ["large"],
    ]


async def test_an_agent_can_be_asked_for_by_name(stage: Stage) -> None:
    await stage.server.slash(ADA, GENERAL, "ask", prompt="soup", agent="cook").taken()
    await stage.inbox.wait_for(lambda: stage.inbox.messages)
    assert [(m.text, m.agent) for m in stage.inbox.messages] == [("soup", "cook")]


async def test_what_was_asked_but_not_stored_says_so_where_it_was_asked(stage: Stage) -> None:
    stage.inbox.refuse(3)
    asked = await stage.server.slash(ADA, GENERAL, "ask", prompt="soup").taken()
    assert asked.response == 5
    await stage.inbox.wait_for(lambda: stage.inbox.messages)
    [shown] = await stage.server.wait_messages(GENERAL, 1)
    assert "soup" in shown["content"]
    assert stage.inbox.messages[0].thread == HERE._replace(thread=shown["id"])


# ---- what is none of ours


async def test_what_nobody_knows_is_answered_too(stage: Stage) -> None:
    ref = await stage.shown(an_approval())
    forged = await stage.server.forge(BOB, *unpack_ref(ref), "made by somebody else").taken()
    assert not forged.failed
    await stage.inbox.wait_for(lambda: stage.inbox.presses)
    assert stage.inbox.presses[0].data == "made by somebody else"
