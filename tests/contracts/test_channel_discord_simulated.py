"""The core of the Discord channel on simcord, a simulator by others that runs discord.py in process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import simcord

from channels.base import Actor, Button, Form, FormField, MessageRef, OutboundMessage, ThreadKey
from channels.discord.adapter import DiscordChannel
from channels.discord.refs import pack_ref, unpack_ref
from tests.contracts.harness import Inbox, an_approval, settled
from tests.golden.discord.generate import calls, some_calls

TOKEN = "OTAwMDAwMDAwMDAwMDAwMDAx.Gtests.a-bot-token-that-nobody-knows"
WHY = "v1:p_abcdefghijklmnopqrst:deny_why"


@dataclass
class Stage:
    """A bot in a simulated guild with one channel and one person."""

    env: simcord.Env
    channel: DiscordChannel
    inbox: Inbox
    general: simcord.ChannelHandle
    ada: simcord.MemberActor

    @property
    def place(self) -> ThreadKey:
        return ThreadKey("discord", str(self.env.guild.id), str(self.general.id), "")

    async def settle(self) -> None:
        await self.env.settle()

    def message(self, ref: MessageRef) -> Any:
        [found] = [one for one in self.general.history() if str(one.id) == unpack_ref(ref)[1]]
        return found

    async def restart(self) -> None:
        """A process dies and another one, which remembers nothing, takes its place."""
        await self.channel.stop()
        self.channel = DiscordChannel(TOKEN)
        await self.env.restart_bot(await self.channel.attach(self.inbox))


@asynccontextmanager
async def staged(**options: Any) -> AsyncIterator[Stage]:
    channel, inbox = DiscordChannel(TOKEN, **options), Inbox()
    async with simcord.run(await channel.attach(inbox)) as env:
        guild = env.create_guild()
        general = guild.create_text_channel("general")
        ada = guild.add_member(env.create_user("ada"))
        stage = Stage(env, channel, inbox, general, ada)
        await stage.settle()
        try:
            yield stage
        finally:
            await stage.channel.stop()


async def test_it_learns_who_it_is_and_registers_its_commands_once() -> None:
    async with staged() as stage:
        assert stage.channel.me is not None
        assert {"ask", "status", "approve", "help"} <= set(stage.ada.available_commands(stage.general))
        put = [r for r in stage.env.http_requests if r.method == "PUT" and "commands" in r.path]
        await stage.restart()
        assert [r for r in stage.env.http_requests if r.method == "PUT" and "commands" in r.path] == put


async def test_a_command_is_deferred_in_private_and_its_answer_fills_that_in() -> None:
    async with staged() as stage:
        given = await stage.ada.slash(stage.general, "status")
        assert (given.deferred, given.ephemeral) == (True, True)
        [message] = stage.inbox.messages
        assert (message.text, message.hidden, message.thread) == ("/status", True, stage.place)
        answer = OutboundMessage(text="All is quiet.", only=message.actor, reply_to=message.message_id)
        await stage.channel.send(message.thread, answer)
        assert given.response is not None
        assert given.response.content == "All is quiet."
        await stage.channel.send(message.thread, replace(answer, text="And still is."))
        assert [one.content for one in given.followups] == ["And still is."]


async def test_what_somebody_asks_by_command_is_shown_and_its_thread_begins_there() -> None:
    async with staged() as stage:
        given = await stage.ada.slash(stage.general, "ask", prompt="Tidy up, please")
        [message] = stage.inbox.messages
        assert given.response is not None
        assert "Tidy up, please" in given.response.content
        assert message.thread == stage.place._replace(thread=str(given.response.id))
        await stage.channel.send(message.thread, OutboundMessage(text="Done."))
        [thread] = stage.general.threads
        assert (str(thread.id), thread.name) == (message.thread.thread, "Tidy up, please")
        assert [one.content for one in thread.history()][-1] == "Done."


async def test_a_card_of_a_dead_process_takes_clicks_and_is_redrawn() -> None:
    async with staged() as stage:
        ref = await stage.channel.show(stage.place, an_approval())
        assert stage.message(ref).flags.components_v2
        await stage.restart()
        clicked = await stage.ada.click(stage.message(ref), label="Approve")
        assert clicked.acknowledged
        [press] = stage.inbox.presses
        assert (press.data, press.message_ref) == ("v1:p_abcdefghijklmnopqrst:approve", ref)
        assert press.actor == Actor("discord", "", str(stage.ada.id))
        await stage.channel.notify_actor(press, "Approved.")
        assert [(one.content, one.ephemeral) for one in clicked.followups] == [("Approved.", True)]
        await stage.channel.redraw(ref, settled(an_approval(), "Approved by Ada"))
        assert [c for c in stage.message(ref).components[0].children if c.type.name == "action_row"] == []


async def test_a_form_is_a_modal_and_becomes_a_press_with_what_was_typed() -> None:
    form = Form(data=WHY, title="Why not?", fields=(FormField(name="feedback", label="Reason"),))
    card = an_approval(forms=(form,))
    card = replace(card, buttons=(*card.buttons, Button(label="Deny with feedback", data=WHY)))
    async with staged() as stage:
        stage.inbox.cards.append(card)
        ref = await stage.channel.show(stage.place, card)
        opened = await stage.ada.click(stage.message(ref), label="Deny with feedback")
        assert opened.modal is not None
        sent = await stage.ada.submit_modal(opened, {"i:0:feedback": "Too much."})
        assert sent.acknowledged
        [press] = stage.inbox.presses
        assert (press.data, dict(press.values)) == (WHY, {"feedback": "Too much."})
        assert press.message_ref == ref


async def test_a_message_can_be_edited_after_a_restart() -> None:
    async with staged() as stage:
        ref = await stage.channel.send(stage.place, OutboundMessage(text="working"))
        await stage.restart()
        await stage.channel.edit(ref, OutboundMessage(text="finished"))
        assert stage.message(ref).content == "finished"
        assert ref == pack_ref(str(stage.general.id), str(stage.message(ref).id))


async def test_a_mention_in_a_channel_begins_a_thread() -> None:
    async with staged() as stage:
        assert stage.channel.me is not None
        said = await stage.ada.send(stage.general, f"<@{stage.channel.me.user}> hello there")
        [message] = stage.inbox.messages
        assert (message.text, message.addressed) == ("hello there", True)
        assert message.thread == stage.place._replace(thread=str(said.id))
        await stage.channel.send(message.thread, OutboundMessage(text="Hello, Ada."))
        [thread] = stage.general.threads
        assert (thread.id, thread.name) == (said.id, "hello there")


async def test_every_call_of_a_card_has_buttons_of_its_own_and_a_menu_has_the_others() -> None:
    card = calls(*some_calls(6))
    async with staged() as stage:
        ref = await stage.channel.show(stage.place, card)
        await stage.restart()
        clicked = await stage.ada.click(stage.message(ref), label="5 Deny")
        assert clicked.acknowledged
        chosen = await stage.ada.select(stage.message(ref), ["v1:p_00000000000000000003:s"])
        assert chosen.acknowledged
        assert [press.data for press in stage.inbox.presses] == [
            "v1:p_00000000000000000005:d",
            "v1:p_00000000000000000003:s",
        ]
        assert {press.message_ref for press in stage.inbox.presses} == {ref}
