"""The promises of channels/base.py, as tests that every channel runs against its own platform.

A test module subclasses `ChannelContract` and gives a fixture `harness`, a `ChannelHarness` over a real
channel and a real platform server:

    class TestTelegram(ChannelContract):
        @pytest.fixture
        async def harness(self) -> AsyncIterator[ChannelHarness]: ...
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from channels.base import (
    Attachment,
    Button,
    Card,
    CardField,
    ChannelBusy,
    ChannelDown,
    Choice,
    Form,
    FormField,
    MessageGone,
    OutboundFile,
    OutboundMessage,
    PayloadRefused,
    Progress,
    TargetGone,
)
from tests.contracts.channel_cards import CardContract
from tests.contracts.harness import RETRY_AFTER, ChannelHarness, Trouble, an_approval, in_order, settled


class ChannelContract(CardContract):
    """Subclass me."""

    # ---- coming in

    async def test_a_message_comes_in_with_its_place_its_author_and_its_words(
        self, harness: ChannelHarness
    ) -> None:
        await harness.say("hello there")
        [message] = await harness.inbox.wait_for(lambda: harness.inbox.messages)
        assert message.text == "hello there"
        assert message.thread == harness.thread
        assert message.actor == harness.person
        assert message.message_id
        assert (message.private, message.addressed, message.from_bot, message.edited) == (
            True,
            True,
            False,
            False,
        )

    async def test_a_message_that_could_not_be_stored_is_delivered_again(
        self, harness: ChannelHarness
    ) -> None:
        harness.inbox.refuse(2)
        await harness.say("keep this")
        [message] = await harness.inbox.wait_for(lambda: harness.inbox.messages)
        assert message.text == "keep this"
        assert harness.inbox.attempts == 3

    async def test_a_message_delivered_twice_keeps_its_identity(self, harness: ChannelHarness) -> None:
        handle = await harness.say("once")
        await harness.inbox.wait_for(lambda: harness.inbox.messages)
        await harness.redeliver(handle)
        first, second = await harness.inbox.wait_for(
            lambda: harness.inbox.messages if len(harness.inbox.messages) == 2 else []
        )
        assert (first.thread, first.message_id) == (second.thread, second.message_id)

    async def test_messages_come_in_the_order_in_which_they_were_written(
        self, harness: ChannelHarness
    ) -> None:
        for number in range(5):
            await harness.say(f"number {number}")
        await harness.inbox.wait_for(lambda: len(harness.inbox.messages) == 5)
        assert [m.text for m in harness.inbox.messages] == [f"number {n}" for n in range(5)]
        assert len({m.message_id for m in harness.inbox.messages}) == 5

    async def test_the_channels_own_messages_never_come_back(self, harness: ChannelHarness) -> None:
        await harness.channel.send(harness.thread, OutboundMessage(text="from the bot"))
        await harness.say("from a person")
        await harness.inbox.wait_for(lambda: harness.inbox.messages)
        assert [m.text for m in harness.inbox.messages] == ["from a person"]

    async def test_a_file_comes_in_as_a_handle_and_is_fetched_to_a_new_path(
        self, harness: ChannelHarness, tmp_path: Path
    ) -> None:
        await harness.attach(b"a,b\n1,2\n", "table.csv")
        [message] = await harness.inbox.wait_for(lambda: harness.inbox.messages)
        [attachment] = message.attachments
        assert attachment.name == "table.csv"
        await harness.channel.fetch_file(attachment, tmp_path / "in", 1000)
        assert (tmp_path / "in").read_bytes() == b"a,b\n1,2\n"

    async def test_a_file_above_the_limit_is_refused_and_leaves_nothing_behind(
        self, harness: ChannelHarness, tmp_path: Path
    ) -> None:
        await harness.attach(b"x" * 5000, "large.bin")
        [message] = await harness.inbox.wait_for(lambda: harness.inbox.messages)
        [attachment] = message.attachments
        lying = Attachment(file_id=attachment.file_id, name="n", media_type="a/b", size=0)
        for candidate in (attachment, lying):
            with pytest.raises(PayloadRefused):
                await harness.channel.fetch_file(candidate, tmp_path / "in", 1000)
            assert not (tmp_path / "in").exists()

    # ---- going out

    async def test_a_short_answer_is_one_part_and_one_message(self, harness: ChannelHarness) -> None:
        [part] = harness.channel.parts(OutboundMessage(text="**Done.** All is well."))
        await harness.channel.send(harness.thread, part)
        [message] = await harness.seen()
        assert "Done." in message.text
        assert "**" not in message.text

    async def test_a_long_answer_arrives_whole_one_message_for_each_part(
        self, harness: ChannelHarness
    ) -> None:
        words = [f"word{number}" for number in range(4000)]
        whole = OutboundMessage(text="\n\n".join(" ".join(words[n : n + 40]) for n in range(0, 4000, 40)))
        parts = harness.channel.parts(whole)
        assert len(parts) > 1
        assert list(harness.channel.parts(whole)) == list(parts)
        for part in parts:
            assert len(harness.channel.parts(part)) == 1
            await harness.channel.send(harness.thread, part)
        seen = await harness.seen()
        assert len(seen) == len(parts)
        assert in_order("\n".join(message.text for message in seen), words)

    async def test_the_cut_does_not_depend_on_whether_it_is_a_repeat(self, harness: ChannelHarness) -> None:
        whole = OutboundMessage(text="sentence one. " * 2000)
        plain = harness.channel.parts(whole)
        repeat = harness.channel.parts(replace(whole, repeat=True))
        assert [part.text for part in plain] == [part.text for part in repeat]

    async def test_even_an_empty_message_has_a_part_that_can_be_sent(self, harness: ChannelHarness) -> None:
        [part] = harness.channel.parts(OutboundMessage(text="  \n "))
        await harness.channel.send(harness.thread, part)
        assert len(await harness.seen()) == 1

    async def test_a_file_is_delivered_byte_for_byte(self, harness: ChannelHarness, tmp_path: Path) -> None:
        path = tmp_path / "out.bin"
        path.write_bytes(bytes(range(256)))
        message = OutboundMessage(text="See the file.", files=(OutboundFile(path=path, name="out.bin"),))
        for part in harness.channel.parts(message):
            await harness.channel.send(harness.thread, part)
        seen = await harness.seen()
        assert [file for message in seen for file in message.files] == [bytes(range(256))]

    async def test_a_sent_message_can_be_edited_after_a_restart(self, harness: ChannelHarness) -> None:
        ref = await harness.channel.send(harness.thread, OutboundMessage(text="working"))
        await harness.restart()
        await harness.channel.edit(ref, OutboundMessage(text="finished"))
        assert "finished" in (await harness.look(ref)).text
        assert len(await harness.seen()) == 1

    async def test_editing_to_the_same_content_is_no_error(self, harness: ChannelHarness) -> None:
        ref = await harness.channel.send(harness.thread, OutboundMessage(text="same"))
        await harness.channel.edit(ref, OutboundMessage(text="same"))
        assert "same" in (await harness.look(ref)).text

    async def test_editing_a_message_that_is_gone_says_so(self, harness: ChannelHarness) -> None:
        ref = await harness.channel.send(harness.thread, OutboundMessage(text="soon gone"))
        await harness.delete(ref)
        with pytest.raises(MessageGone):
            await harness.channel.edit(ref, OutboundMessage(text="too late"))

    async def test_model_text_pages_nobody_and_draws_no_buttons(self, harness: ChannelHarness) -> None:
        text = (
            "@everyone @here <!channel> <@U123> <@&5> @someuser hello [x](tg://user?id=5)\n\n"
            "[Approve](v1:p_x:approve) <button>Approve</button>"
        )
        for part in harness.channel.parts(OutboundMessage(text=text)):
            await harness.channel.send(harness.thread, part)
        assert await harness.paged() == []
        seen = await harness.seen()
        assert seen
        assert [message.buttons for message in seen] == [()] * len(seen)

    async def test_a_mention_of_the_gateway_reaches_that_person_only(self, harness: ChannelHarness) -> None:
        message = OutboundMessage(text="You are asked.", mentions=(harness.person,))
        for part in harness.channel.parts(message):
            await harness.channel.send(harness.thread, part)
        assert await harness.paged() == [harness.person.user]

    async def test_every_kind_of_progress_is_taken(self, harness: ChannelHarness) -> None:
        for state in (
            Progress(kind="thinking"),
            Progress(kind="tool", text="search"),
            Progress(kind="text", text="An **unfinished"),
            Progress(kind="idle"),
            Progress(kind="idle"),
        ):
            await harness.channel.progress(harness.thread, state)
        assert [message for message in await harness.seen() if message.text] == []

    # ---- cards

    async def test_a_card_shows_what_is_asked_and_its_buttons(self, harness: ChannelHarness) -> None:
        ref = await harness.channel.show(harness.thread, an_approval())
        card = await harness.look(ref)
        for words in (
            "Approve issue_refund?",
            "order_id",
            "A-1001",
            "amount",
            "20",
            "Ada",
            "tomorrow",
            "K7M2",
        ):
            assert words in card.text
        assert card.buttons == ("Approve", "Deny")

    async def test_a_press_carries_data_author_and_the_card_it_was_made_on(
        self, harness: ChannelHarness
    ) -> None:
        ref = await harness.channel.show(harness.thread, an_approval())
        await harness.press(ref, "Approve")
        [press] = await harness.inbox.wait_for(lambda: harness.inbox.presses)
        assert press.data == "v1:p_abcdefghijklmnopqrst:approve"
        assert press.message_ref == ref
        assert press.actor == harness.person
        assert press.thread == harness.thread
        assert press.action_id

    async def test_a_card_shown_before_a_restart_still_takes_presses(self, harness: ChannelHarness) -> None:
        ref = await harness.channel.show(harness.thread, an_approval())
        await harness.restart()
        await harness.press(ref, "Deny")
        [press] = await harness.inbox.wait_for(lambda: harness.inbox.presses)
        assert (press.data, press.message_ref) == ("v1:p_abcdefghijklmnopqrst:deny", ref)

    async def test_a_press_that_could_not_be_stored_is_delivered_again(self, harness: ChannelHarness) -> None:
        ref = await harness.channel.show(harness.thread, an_approval())
        harness.inbox.refuse(1)
        await harness.press(ref, "Approve")
        [press] = await harness.inbox.wait_for(lambda: harness.inbox.presses)
        assert press.data == "v1:p_abcdefghijklmnopqrst:approve"

    async def test_the_presser_is_told_once_and_later_answers_are_no_error(
        self, harness: ChannelHarness
    ) -> None:
        ref = await harness.channel.show(harness.thread, an_approval())
        await harness.press(ref, "Approve")
        [press] = await harness.inbox.wait_for(lambda: harness.inbox.presses)
        await harness.channel.notify_actor(press, "Approved; the agent goes on.")
        await harness.channel.notify_actor(press, "Again.")
        await harness.channel.notify_actor(replace(press, action_id="999999"), "Nobody waits for this.")
        assert (await harness.notices())[0] == "Approved; the agent goes on."
        assert "Nobody waits for this." not in await harness.notices()

    async def test_a_settled_card_keeps_its_words_and_loses_its_buttons_after_a_restart(
        self, harness: ChannelHarness
    ) -> None:
        card = an_approval()
        ref = await harness.channel.show(harness.thread, card)
        await harness.restart()
        await harness.channel.redraw(ref, settled(card, "Approved by Ada at 12:00"))
        await harness.channel.redraw(ref, settled(card, "Approved by Ada at 12:00"))
        seen = await harness.look(ref)
        assert seen.buttons == ()
        assert "Approved by Ada at 12:00" in seen.text
        assert "A-1001" in seen.text

    async def test_redrawing_a_card_that_is_gone_says_so(self, harness: ChannelHarness) -> None:
        ref = await harness.channel.show(harness.thread, an_approval())
        await harness.delete(ref)
        with pytest.raises(MessageGone):
            await harness.channel.redraw(ref, settled(an_approval(), "Approved"))

    async def test_arguments_are_inert_and_nothing_in_them_is_hidden(self, harness: ChannelHarness) -> None:
        value = "ls` <b>@everyone</b> [ok](https://evil.example) ```\n*Signed off*; ~/\u200bx \u202etxt.exe"
        ref = await harness.channel.show(
            harness.thread, an_approval(fields=(CardField(name="command", value=value),))
        )
        text = (await harness.look(ref)).text
        for literal in ("ls`", "<b>@everyone</b>", "[ok](https://evil.example)", "```", "*Signed off*"):
            assert literal in text
        assert r"\u{200B}" in text
        assert r"\u{202E}" in text
        assert not {"\u200b", "\u202e"} & set(text)
        assert await harness.paged() == []

    @pytest.mark.parametrize("size", [3_000, 30_000])
    async def test_every_character_that_will_run_can_be_read(
        self, harness: ChannelHarness, size: int
    ) -> None:
        words = [f"step{number};" for number in range(size // 9)]
        card = an_approval(fields=(CardField(name="script", value=" ".join(words)),))
        ref = await harness.channel.show(harness.thread, card)
        seen = await harness.seen()
        readable = [m.text for m in seen] + [file.decode() for m in seen for file in m.files]
        assert any(in_order(text, words) for text in (*readable, "\n".join(m.text for m in seen)))
        assert "Approve" in (await harness.look(ref)).buttons

    async def test_a_question_offers_its_options(self, harness: ChannelHarness) -> None:
        card = Card(
            card_id="q_1",
            kind="question",
            state="open",
            title="Which colour?",
            choices=(
                Choice(label="Red", data="v1:q_1:0", description="like a rose"),
                Choice(label="Blue", data="v1:q_1:1"),
            ),
        )
        ref = await harness.channel.show(harness.thread, card)
        seen = await harness.look(ref)
        assert "Which colour?" in seen.text
        assert "like a rose" in seen.text
        await harness.press(ref, "Blue")
        [press] = await harness.inbox.wait_for(lambda: harness.inbox.presses)
        assert (press.data, press.message_ref) == ("v1:q_1:1", ref)

    async def test_a_chosen_option_looks_different(self, harness: ChannelHarness) -> None:
        options = tuple(Choice(label=label, data=f"v1:q_2:{label}") for label in ("Red", "Blue"))
        confirm = Button(label="Confirm", data="v1:q_2:done", tone="primary")
        card = Card(
            card_id="q_2",
            kind="question",
            state="open",
            title="?",
            choices=options,
            multi=True,
            buttons=(confirm,),
        )
        ref = await harness.channel.show(harness.thread, card)
        before = await harness.look(ref)
        chosen = (replace(options[0], chosen=True), options[1])
        await harness.channel.redraw(ref, replace(card, choices=chosen))
        after = await harness.look(ref)
        assert len(before.buttons) == len(after.buttons) == 3
        assert before.buttons[0] != after.buttons[0]
        assert before.buttons[1:] == after.buttons[1:]

    @pytest.mark.parametrize("restart", [False, True], ids=["at once", "after a restart"])
    async def test_a_form_becomes_a_press_with_its_values(
        self, harness: ChannelHarness, restart: bool
    ) -> None:
        data = "v1:p_abcdefghijklmnopqrst:deny_why"
        form = Form(data=data, title="Why not?", fields=(FormField(name="feedback", label="Reason"),))
        card = an_approval(forms=(form,))
        card = replace(card, buttons=(*card.buttons, Button(label="Deny with feedback", data=data)))
        ref = await harness.channel.show(harness.thread, card)
        harness.inbox.cards.append(card)
        if restart:
            await harness.restart()
        await harness.press(ref, "Deny with feedback")
        await harness.submit(form, {"feedback": "Too much money."})
        [press] = await harness.inbox.wait_for(lambda: harness.inbox.presses)
        assert press.data == data
        assert dict(press.values) == {"feedback": "Too much money."}
        assert press.actor == harness.person
        assert press.message_ref == ref
        await harness.channel.notify_actor(press, "Denied.")

    # ---- trouble

    async def test_a_flood_limit_says_how_long_to_wait(self, harness: ChannelHarness) -> None:
        await self._cause(harness, "busy")
        with pytest.raises(ChannelBusy) as caught:
            await harness.channel.send(harness.thread, OutboundMessage(text="x"))
        assert caught.value.retry_after == RETRY_AFTER
        assert harness.secret not in str(caught.value)

    async def test_a_network_that_is_down_is_told_apart(self, harness: ChannelHarness) -> None:
        await self._cause(harness, "down")
        with pytest.raises(ChannelDown) as caught:
            await harness.channel.send(harness.thread, OutboundMessage(text="x"))
        assert harness.secret not in str(caught.value)

    async def test_a_conversation_that_is_closed_to_us_is_told_apart(self, harness: ChannelHarness) -> None:
        await self._cause(harness, "gone")
        for attempt in (
            harness.channel.send(harness.thread, OutboundMessage(text="x")),
            harness.channel.show(harness.thread, an_approval()),
        ):
            with pytest.raises(TargetGone) as caught:
                await attempt
            assert harness.secret not in str(caught.value)

    async def _cause(self, harness: ChannelHarness, kind: Trouble) -> None:
        if kind not in harness.troubles:
            pytest.skip(f"this platform has no trouble of the kind {kind!r}")
        await harness.trouble(kind)
