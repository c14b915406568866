"""What goes out: answers, cards, prompts, notices, signs of life, and what becomes of refusals."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from channels.base import (
    Actor,
    Attachment,
    Button,
    Card,
    CardField,
    ChannelBusy,
    ChannelDown,
    Form,
    FormField,
    MessageGone,
    MessageRef,
    OutboundFile,
    OutboundMessage,
    PayloadRefused,
    Progress,
    TargetGone,
)
from channels.telegram.limits import LIMITS
from tests.contracts.harness import a_shared_card, an_approval, settled
from tests.platforms.telegram.checks import utf16_len, utf16_slice
from tests.scenario.telegram.conftest import ADA, BOB, BOT, FORUM, GROUP, Room

DENY_WHY = "v1:p_abcdefghijklmnopqrst:deny_why"
EDIT = "v1:p_abcdefghijklmnopqrst:edit"
WHY = Form(data=DENY_WHY, title="Why not?", fields=(FormField(name="feedback", label="Reason"),))


def with_form(form: Form, label: str) -> Card:
    card = an_approval(forms=(form,))
    return replace(card, buttons=(*card.buttons, Button(label=label, data=form.data)))


async def show_form(room: Room, chat: int, form: Form, label: str) -> MessageRef:
    """Show a card that has this form, which the gateway knows of."""
    card = with_form(form, label)
    room.inbox.cards.append(card)
    return await room.channel.show(room.thread(chat), card)


async def test_formatting_goes_out_as_entities_and_never_as_markup(room: Room) -> None:
    await room.channel.send(room.thread(ADA), OutboundMessage(text="**bold** and `code` 😀 _it_ <b>x</b>"))
    [message] = room.server.from_bot(ADA)
    covered = {e["type"]: utf16_slice(message["text"], e["offset"], e["length"]) for e in message["entities"]}
    assert covered == {"bold": "bold", "code": "code", "italic": "it"}
    assert "<b>x</b>" in message["text"]
    assert all("parse_mode" not in call.values for call in room.server.journal)


async def test_an_answer_in_a_group_replies_to_the_question_and_in_private_it_does_not(room: Room) -> None:
    for chat in (GROUP, ADA):
        asked = room.server.say(chat, ADA, "@gate_bot hm?")["message"]["message_id"]
        await room.channel.send(room.thread(chat), OutboundMessage(text="so", reply_to=str(asked)))
    assert "reply_to_message" in room.server.from_bot(GROUP)[0]
    assert "reply_to_message" not in room.server.from_bot(ADA)[0]


async def test_a_repeat_says_that_it_may_be_one(room: Room) -> None:
    await room.channel.send(room.thread(ADA), OutboundMessage(text="done", repeat=True))
    [message] = room.server.from_bot(ADA)
    assert message["text"].startswith("done\n\n(this may be a repeat")


async def test_the_longest_part_still_has_room_for_mention_and_repeat_mark(room: Room) -> None:
    whole = OutboundMessage(
        text="x" * 9000, repeat=True, kind="error", mentions=(Actor("telegram", BOT, str(ADA)),)
    )
    for part in room.channel.parts(whole):
        await room.channel.send(room.thread(ADA), part)
    assert max(utf16_len(m["text"]) for m in room.server.from_bot(ADA)) <= 4096
    assert sum(m["text"].count("x") for m in room.server.from_bot(ADA)) == 9000


async def test_a_message_that_was_not_cut_is_refused_rather_than_shortened(room: Room) -> None:
    with pytest.raises(PayloadRefused):
        await room.channel.send(room.thread(ADA), OutboundMessage(text="word " * 3000))
    assert room.server.from_bot(ADA) == []


async def test_a_press_is_answered_without_words_when_nobody_has_any(room: Room) -> None:
    await room.channel.show(room.thread(ADA), an_approval())
    click = room.server.click(room.server.from_bot(ADA)[0], "Approve", ADA)
    await room.server.wait_for(lambda: click.answered)
    assert click.answers == [{"text": "", "show_alert": False}]


async def test_a_press_is_answered_once_and_with_the_first_words(room: Room) -> None:
    await room.channel.show(room.thread(ADA), an_approval())
    click = room.server.click(room.server.from_bot(ADA)[0], "Approve", ADA)
    [press] = await room.inbox.wait_for(lambda: room.inbox.presses)
    await room.channel.notify_actor(press, "Approved.")
    await room.channel.notify_actor(press, "Approved again.")
    await room.channel.stop()
    assert click.answers == [{"text": "Approved.", "show_alert": False}]


async def test_a_long_notice_opens_a_box_and_is_cut_between_two_graphemes(room: Room) -> None:
    await room.channel.show(room.thread(ADA), an_approval())
    click = room.server.click(room.server.from_bot(ADA)[0], "Approve", ADA)
    [press] = await room.inbox.wait_for(lambda: room.inbox.presses)
    await room.channel.notify_actor(press, "👨‍👩‍👧‍👦" * 60)
    [answer] = click.answers
    assert answer["show_alert"]
    assert answer["text"].rstrip("…") == "👨‍👩‍👧‍👦" * answer["text"].count("👨")
    assert answer["text"].endswith("…")


async def test_a_notice_after_telegrams_deadline_is_no_error(room: Room) -> None:
    await room.channel.show(room.thread(ADA), an_approval())
    click = room.server.click(room.server.from_bot(ADA)[0], "Approve", ADA)
    [press] = await room.inbox.wait_for(lambda: room.inbox.presses)
    click.asked_at -= 60
    await room.channel.notify_actor(press, "Approved.")
    assert not click.answered


# ---- cards


async def test_arguments_that_do_not_fit_are_a_file_with_its_size_and_hash_on_the_card(room: Room) -> None:
    script = "\n".join(f"step {number}" for number in range(2000))
    ref = await room.channel.show(
        room.thread(ADA), an_approval(fields=(CardField(name="script", value=script),))
    )
    document, shown = room.server.from_bot(ADA)
    content = room.server.files[document["document"]["file_id"]]["content"]
    assert script in content.decode()
    assert document["document"]["file_name"] == "args-K7M2.txt"
    assert f"{len(content):,} bytes" in shown["text"]
    assert hashlib.sha256(content).hexdigest() in shown["text"]
    assert ref == f"{ADA}:{shown['message_id']}"
    assert _labels(shown) == ["Approve", "Deny"]


@pytest.mark.parametrize("again", [False, True], ids=["shown", "redrawn after a restart"])
async def test_without_the_file_there_is_nothing_to_approve_with(room: Room, again: bool) -> None:
    card = an_approval(fields=(CardField(name="script", value="step; " * 2000),))
    if not again:
        room.server.chats[ADA].no_documents = True
    ref = await room.channel.show(room.thread(ADA), card)
    if again:
        await room.channel.stop()
        room.server.chats[ADA].no_documents = True
        await (await room.new_channel()).redraw(ref, replace(card, status="one of two has approved"))
    seen = room.server.from_bot(ADA)[-1]
    assert _labels(seen) == ["Deny"]
    assert "cannot be approved" in seen["text"]


async def test_the_file_is_sent_once_when_a_card_is_redrawn(room: Room) -> None:
    card = an_approval(fields=(CardField(name="script", value="step; " * 2000),))
    ref = await room.channel.show(room.thread(ADA), card)
    await room.channel.redraw(ref, replace(card, status="one of two has approved"))
    await room.channel.redraw(ref, settled(card, "Approved by Bob"))
    assert len(room.server.calls("sendDocument")) == 1
    assert _labels(room.server.from_bot(ADA)[-1]) == []


async def test_a_flood_limit_on_the_file_is_not_taken_for_a_refusal(room: Room) -> None:
    room.server.flood(ADA, 9, times=1)
    with pytest.raises(ChannelBusy):
        await room.channel.show(
            room.thread(ADA), an_approval(fields=(CardField(name="script", value="step; " * 2000),))
        )
    assert room.server.from_bot(ADA) == []


async def test_a_card_in_a_topic_stays_there_and_its_press_comes_from_there(room: Room) -> None:
    topic = room.server.topic(FORUM)
    await room.channel.show(room.thread(FORUM, topic), an_approval())
    [card] = room.server.from_bot(FORUM)
    assert card["message_thread_id"] == topic
    room.server.click(card, "Approve", BOB)
    [press] = await room.inbox.wait_for(lambda: room.inbox.presses)
    assert press.thread == room.thread(FORUM, topic)


# ---- forms


async def test_a_form_is_asked_for_with_a_reply_and_the_press_itself_is_acknowledged(room: Room) -> None:
    await show_form(room, GROUP, WHY, "Deny with feedback")
    [card] = room.server.from_bot(GROUP)
    click = room.server.click(card, "Deny with feedback", BOB)
    await room.server.wait_for(lambda: click.answered)
    prompt = room.server.from_bot(GROUP)[-1]
    assert "Why not?" in prompt["text"]
    assert "Reason" in prompt["text"]
    assert room.server.paged(GROUP) == [str(BOB)]
    assert room.server.chats[GROUP].force_replies[prompt["message_id"]]["selective"]
    assert room.inbox.presses == []


async def test_pressing_twice_asks_once(room: Room) -> None:
    await show_form(room, ADA, WHY, "Deny with feedback")
    [card] = room.server.from_bot(ADA)
    first = room.server.click(card, "Deny with feedback", ADA)
    await room.server.wait_for(lambda: first.answered)
    second = room.server.click(card, "Deny with feedback", ADA)
    await room.server.wait_for(lambda: second.answered)
    assert second.text == "Reply to the message that I sent."
    assert len(room.server.from_bot(ADA)) == 2


async def test_who_may_not_fill_in_a_form_is_told_why_and_is_not_asked(room: Room) -> None:
    await room.channel.show(room.thread(GROUP), with_form(WHY, "Deny with feedback"))
    [card] = room.server.from_bot(GROUP)
    click = room.server.click(card, "Deny with feedback", BOB)
    await room.server.wait_for(lambda: click.answered)
    assert click.text == "There is no such form."
    assert room.server.from_bot(GROUP) == [card]


async def test_a_form_is_asked_for_by_the_names_on_its_button_while_nobody_can_tell_what_it_holds(
    room: Room,
) -> None:
    await show_form(room, ADA, WHY, "Deny with feedback")
    await room.channel.stop()
    await room.new_channel()
    room.inbox.refuse_questions(1)
    click = room.server.click(room.server.from_bot(ADA)[0], "Deny with feedback", ADA)
    await room.server.wait_for(lambda: click.answered)
    prompt = room.server.from_bot(ADA)[-1]
    assert "Reply to this message with: feedback" in prompt["text"]
    room.server.say(ADA, ADA, "too much", reply_to=prompt["message_id"])
    [press] = await room.inbox.wait_for(lambda: room.inbox.presses)
    assert dict(press.values) == {"feedback": "too much"}


async def test_several_values_are_given_as_lines(room: Room) -> None:
    form = Form(
        data=EDIT,
        title="Edit the arguments",
        fields=(
            FormField(name="order_id", label="Order", value="A-1001"),
            FormField(name="amount", label="Amount"),
        ),
    )
    ref = await show_form(room, ADA, form, "Edit")
    click = room.server.click(room.server.from_bot(ADA)[0], "Edit", ADA)
    await room.server.wait_for(lambda: click.answered)
    prompt = room.server.from_bot(ADA)[-1]
    assert "order_id: A-1001" in prompt["text"]
    room.server.say(ADA, ADA, "amount: 15", reply_to=prompt["message_id"])
    [press] = await room.inbox.wait_for(lambda: room.inbox.presses)
    assert (press.data, press.message_ref, dict(press.values)) == (EDIT, ref, {"amount": "15"})


async def test_a_reply_to_text_that_imitates_a_prompt_is_an_ordinary_message(room: Room) -> None:
    forged = "Reply to this with: Reason\n\nref 1|v1:p_abcdefghijklmnopqrst:approve|feedback|AAAAAAAAAAAAAAAA"
    await room.channel.send(room.thread(ADA), OutboundMessage(text=forged))
    room.server.say(ADA, ADA, "yes", reply_to=room.server.from_bot(ADA)[0]["message_id"])
    [message] = await room.inbox.wait_for(lambda: room.inbox.messages)
    assert message.text == "yes"
    assert room.inbox.presses == []


async def test_the_answer_to_a_submitted_form_is_a_reply_to_it(room: Room) -> None:
    await show_form(room, ADA, WHY, "Deny with feedback")
    click = room.server.click(room.server.from_bot(ADA)[0], "Deny with feedback", ADA)
    await room.server.wait_for(lambda: click.answered)
    prompt = room.server.from_bot(ADA)[-1]["message_id"]
    reply = room.server.say(ADA, ADA, "no money", reply_to=prompt)["message"]["message_id"]
    [press] = await room.inbox.wait_for(lambda: room.inbox.presses)
    await room.channel.notify_actor(press, "Denied.")
    notice = room.server.from_bot(ADA)[-1]
    assert notice["text"] == "Denied."
    assert notice["reply_to_message"]["message_id"] == reply


# ---- several requests, and people who are asked


async def test_a_redrawn_card_has_no_live_mention_and_the_first_one_has_ten_at_most(room: Room) -> None:
    people = tuple(Actor("telegram", BOT, str(5000 + n)) for n in range(14))
    card = an_approval(asks=(Actor("telegram", BOT, str(ADA)), *people))
    ref = await room.channel.show(room.thread(GROUP), card)
    assert room.server.paged(GROUP) == [str(ADA), *(str(5000 + n) for n in range(9))]
    assert "and 5 more are asked" in room.server.from_bot(GROUP)[0]["text"]
    await room.channel.redraw(ref, replace(card, status="Bob agrees"))
    assert room.server.paged(GROUP) == []
    assert "Bob agrees" in room.server.from_bot(GROUP)[0]["text"]


async def test_calls_whose_arguments_cannot_be_delivered_can_only_be_denied(room: Room) -> None:
    room.server.chats[GROUP].no_documents = True
    await room.channel.show(room.thread(GROUP), a_shared_card(["x" * 4000, "A-2", "A-3"]))
    [card] = room.server.from_bot(GROUP)
    labels = [button["text"] for row in card["reply_markup"]["inline_keyboard"] for button in row]
    assert labels == ["1 Deny", "2 Deny", "3 Deny", "Deny all (3)"]
    assert "could not be delivered" in card["text"]


async def test_a_diff_is_drawn_as_one(room: Room) -> None:
    preview = "-price: 20\n+price: 30"
    await room.channel.show(room.thread(ADA), an_approval(preview=preview, preview_kind="diff"))
    [message] = room.server.from_bot(ADA)
    diffs = [e for e in message["entities"] if e.get("language") == "diff"]
    assert [utf16_slice(message["text"], e["offset"], e["length"]) for e in diffs] == [preview]


# ---- signs of life


async def test_typing_is_shown_at_once_and_the_growing_answer_as_a_draft(room: Room) -> None:
    await room.channel.progress(room.thread(ADA), Progress(kind="thinking"))
    assert room.server.chats[ADA].actions == ["typing"]
    await room.channel.progress(room.thread(ADA), Progress(kind="text", text="The answer **is"))
    [draft] = await room.server.wait_for(lambda: room.server.chats[ADA].drafts)
    assert draft["text"].startswith("The answer")
    assert draft["draft_id"] != 0
    await room.channel.progress(room.thread(ADA), Progress(kind="idle"))


async def test_a_group_sees_typing_only(room: Room) -> None:
    await room.channel.progress(room.thread(GROUP), Progress(kind="text", text="The answer"))
    await room.channel.progress(room.thread(GROUP), Progress(kind="idle"))
    assert room.server.chats[GROUP].actions == ["typing"]
    assert room.server.chats[GROUP].drafts == []


async def test_a_chat_that_takes_no_drafts_is_asked_once(room: Room) -> None:
    room.server.fail_next("sendMessageDraft", 400, "Bad Request: method is not available")
    await room.channel.progress(room.thread(ADA), Progress(kind="text", text="The"))
    await room.server.wait_for(lambda: room.server.calls("sendMessageDraft"))
    await room.channel.progress(room.thread(ADA), Progress(kind="text", text="The answer"))
    await room.channel.progress(room.thread(ADA), Progress(kind="idle"))
    assert [call.status for call in room.server.calls("sendMessageDraft")] == [400]


async def test_a_sign_of_life_that_fails_is_the_callers_to_count(room: Room) -> None:
    room.server.block(ADA)
    with pytest.raises(TargetGone):
        await room.channel.progress(room.thread(ADA), Progress(kind="thinking"))


# ---- refusals


async def test_a_group_that_became_a_supergroup_says_where_it_went(room: Room) -> None:
    room.server.migrate(GROUP, -100999)
    with pytest.raises(TargetGone) as caught:
        await room.channel.send(room.thread(GROUP), OutboundMessage(text="x"))
    assert caught.value.moved_to == room.thread(-100999)


@pytest.mark.parametrize("state", ["closed", "deleted"])
async def test_a_topic_that_takes_no_more_messages_is_gone(room: Room, state: str) -> None:
    topic = room.server.topic(FORUM)
    room.server.chats[FORUM].topics[topic] = state
    with pytest.raises(TargetGone):
        await room.channel.send(room.thread(FORUM, topic), OutboundMessage(text="x"))


async def test_a_group_that_threw_the_bot_out_is_gone(room: Room) -> None:
    room.server.kick(GROUP)
    with pytest.raises(TargetGone):
        await room.channel.show(room.thread(GROUP), an_approval())


@pytest.mark.parametrize(
    ("code", "description", "expected"),
    [
        (400, "Bad Request: chat not found", TargetGone),
        (400, "Bad Request: not enough rights to send text messages to the chat", TargetGone),
        (400, "Bad Request: BUTTON_DATA_INVALID", PayloadRefused),
        (400, "Bad Request: MESSAGE_ID_INVALID", MessageGone),
        (403, "Forbidden: user is deactivated", TargetGone),
        (409, "Conflict: something", ChannelDown),
        (413, "Request Entity Too Large", PayloadRefused),
        (500, "Internal Server Error", ChannelDown),
        (502, "Bad Gateway", ChannelDown),
    ],
)
async def test_each_refusal_has_its_error(room: Room, code: int, description: str, expected: type) -> None:
    room.server.fail_next("sendMessage", code, description)
    with pytest.raises(expected):
        await room.channel.send(room.thread(ADA), OutboundMessage(text="x"))


async def test_a_message_of_somebody_else_cannot_be_edited(room: Room) -> None:
    theirs = room.server.say(ADA, ADA, "mine")["message"]["message_id"]
    with pytest.raises(MessageGone):
        await room.channel.edit(MessageRef(f"{ADA}:{theirs}"), OutboundMessage(text="x"))


async def test_a_file_that_is_missing_or_too_large_is_refused_before_the_call(
    room: Room, tmp_path: Path
) -> None:
    large = tmp_path / "large"
    with large.open("wb") as handle:
        handle.truncate(LIMITS.file_out + 1)
    for path in (large, tmp_path / "missing"):
        with pytest.raises(PayloadRefused):
            await room.channel.send(
                room.thread(ADA), OutboundMessage(text="", files=(OutboundFile(path=path, name="f"),))
            )
    assert room.server.calls("sendDocument") == []


async def test_a_download_that_breaks_leaves_no_file_and_no_token(room: Room, tmp_path: Path) -> None:
    file_id = room.server.store_file(b"x" * 100, "n")
    attachment = Attachment(file_id=file_id, name="n", media_type="a/b", size=100)
    room.server.files[file_id]["gone"] = True
    with pytest.raises(ChannelDown) as caught:
        await room.channel.fetch_file(attachment, tmp_path / "in", 1000)
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "in").exists()


async def test_roles_are_those_of_the_group_and_are_kept_for_a_minute(room: Room) -> None:
    bob, ada = (Actor("telegram", BOT, str(user)) for user in (BOB, ADA))
    assert await room.channel.roles(bob, room.thread(GROUP)) == {"administrator"}
    assert await room.channel.roles(ada, room.thread(GROUP)) == frozenset()
    assert await room.channel.roles(bob, room.thread(BOB)) == frozenset()
    assert await room.channel.roles(bob, room.thread(GROUP)) == {"administrator"}
    assert len(room.server.calls("getChatMember")) == 2
    room.server.chats[GROUP].members[BOB] = "member"
    room.naps.now += 61
    assert await room.channel.roles(bob, room.thread(GROUP)) == frozenset()


def _labels(message: dict[str, object]) -> list[str]:
    markup = message.get("reply_markup", {"inline_keyboard": []})
    assert isinstance(markup, dict)
    return [button["text"] for row in markup["inline_keyboard"] for button in row]
