"""What comes in over the wire, and when Telegram is told that it has arrived."""

from __future__ import annotations

import logging

import pytest

from channels.base import ChannelDown, OutboundMessage
from channels.telegram.adapter import TelegramChannel
from channels.telegram.errors import TokenRefused
from tests.contracts.harness import Inbox, an_approval
from tests.platforms.telegram import Json, TelegramServer
from tests.platforms.telegram.driving import TOKEN, Naps, quick
from tests.scenario.telegram.conftest import ADA, BOB, BOT, FORUM, GROUP, Room


async def test_the_command_menu_is_set_at_the_start(room: Room) -> None:
    [commands] = await room.server.wait_for(lambda: list(room.server.bots[TOKEN].commands.values()))
    assert [entry["command"] for entry in commands] == ["new", "stop", "status", "pending", "help"]


async def test_c027_an_update_is_confirmed_only_after_it_was_stored(room: Room) -> None:
    room.inbox.refuse(3)
    update = room.server.say(ADA, ADA, "do it")
    await room.inbox.wait_for(lambda: room.inbox.attempts == 3)
    assert update in room.server.bots[TOKEN].updates
    await room.inbox.wait_for(lambda: room.inbox.messages)
    await room.server.wait_for(lambda: update not in room.server.bots[TOKEN].updates)
    assert room.inbox.attempts == 4


async def test_c027_the_same_update_and_the_same_message_keep_one_identity(room: Room) -> None:
    update = room.server.say(ADA, ADA, "do it")
    await room.inbox.wait_for(lambda: room.inbox.messages)
    room.server.redeliver(update)
    await room.inbox.wait_for(lambda: len(room.inbox.messages) == 2)
    await room.channel.stop()
    room.server.send_again(update)
    await room.new_channel()
    await room.inbox.wait_for(lambda: len(room.inbox.messages) == 3)
    assert len({(m.thread, m.message_id) for m in room.inbox.messages}) == 1


async def test_what_was_stored_does_not_come_again_after_a_clean_stop(room: Room) -> None:
    room.server.say(ADA, ADA, "one")
    await room.inbox.wait_for(lambda: room.inbox.messages)
    await room.channel.stop()
    assert room.server.bots[TOKEN].updates == []


async def test_c038_a_press_comes_through_while_the_turn_of_a_message_is_suspended(room: Room) -> None:
    """Handlers only hand over, so nothing that goes on later can hold up a tap, a command or another chat."""
    room.server.say(ADA, ADA, "refund 20")
    await room.inbox.wait_for(lambda: room.inbox.messages)
    ref = await room.channel.show(room.thread(ADA), an_approval())
    [card] = room.server.from_bot(ADA)
    room.server.click(card, "Approve", ADA)
    room.server.say(ADA, ADA, "are you there?")
    room.server.say(BOB, BOB, "/stop")
    [press] = await room.inbox.wait_for(lambda: room.inbox.presses, within=2)
    await room.inbox.wait_for(lambda: len(room.inbox.messages) == 3, within=2)
    assert press.message_ref == ref
    assert [m.text for m in room.inbox.messages] == ["refund 20", "are you there?", "/stop"]


async def test_c081_a_the_channel_is_back_after_the_network_was_down(room: Room) -> None:
    await room.server.down()
    await room.state("down")
    assert all(nap <= 60 for nap in room.naps.taken)
    await room.server.up()
    room.server.say(ADA, ADA, "hello again")
    [message] = await room.inbox.wait_for(lambda: room.inbox.messages)
    assert message.text == "hello again"
    assert room.channel.state == "up"


async def test_c081_a_connections_that_break_lose_no_message(room: Room) -> None:
    for number in range(5):
        room.server.cut_next("getUpdates")
        room.server.say(ADA, ADA, f"number {number}")
    await room.inbox.wait_for(lambda: len(room.inbox.messages) >= 5)
    assert [m.text for m in room.inbox.messages] == [f"number {n}" for n in range(5)]


async def test_the_channel_starts_while_telegram_is_away_and_comes_up_later(server: TelegramServer) -> None:
    await server.down()
    channel, inbox = quick(server), Inbox()
    await channel.start(inbox)
    await server.up()
    server.say(ADA, ADA, "hi")
    [message] = await inbox.wait_for(lambda: inbox.messages)
    assert message.text == "hi"
    await channel.stop()


async def test_c081_d_two_processes_with_one_token_say_so_once_and_back_off(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="channels.telegram")
    conflict = (
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    )
    room.server.fail_next("getUpdates", 409, conflict, times=9)
    room.server.say(ADA, ADA, "wakes the poll")
    await room.inbox.wait_for(lambda: room.inbox.messages)
    await room.server.wait_for(lambda: not room.server.scripts)
    await room.state("up")
    assert room.naps.taken == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    lines = [r.getMessage() for r in caplog.records if "only one may" in r.getMessage()]
    assert len(lines) == 1


async def test_c081_d_a_second_process_really_gets_the_conflict(room: Room) -> None:
    other, inbox = quick(room.server), Inbox()
    await other.start(inbox)
    await room.server.wait_for(lambda: any(call.status == 409 for call in room.server.calls("getUpdates")))
    await other.stop()
    room.server.say(ADA, ADA, "still heard")
    await room.inbox.wait_for(lambda: room.inbox.messages + inbox.messages)


async def test_c081_e_a_bad_token_is_fatal_for_this_channel_and_never_shown(server: TelegramServer) -> None:
    channel = TelegramChannel("778:AAwrongwrongwrongwrong", api_base=server.api_base)
    with pytest.raises(TokenRefused) as caught:
        await channel.start(Inbox())
    assert "AAwrong" not in str(caught.value)
    assert "channels.telegram.token" in str(caught.value)
    await channel.stop()


@pytest.mark.parametrize("token", ["", "nonsense", "abc:def", ":"])
async def test_c081_e_something_that_is_no_token_is_refused_at_once(token: str) -> None:
    with pytest.raises(TokenRefused):
        TelegramChannel(token)


async def test_c081_e_a_token_that_is_revoked_meanwhile_stops_this_channel_only(room: Room) -> None:
    room.server.fail_next("getUpdates", 401, "Unauthorized")
    room.server.say(ADA, ADA, "ends the long poll")
    await room.state("refused")
    assert isinstance(room.channel.refused, TokenRefused)
    assert isinstance(room.channel.refused, ChannelDown)


async def test_c084_e_a_press_without_a_sender_changes_nothing_and_gets_a_neutral_notice(room: Room) -> None:
    await room.channel.show(room.thread(ADA), an_approval())
    [card] = room.server.from_bot(ADA)
    click = room.server.push_query(
        {"id": "5", "message": card, "chat_instance": "i", "data": "v1:p_abcdefghijklmnopqrst:approve"}
    )
    await room.server.wait_for(lambda: click.answered)
    assert click.text == "This button does nothing here."
    room.server.say(ADA, ADA, "next")
    await room.inbox.wait_for(lambda: room.inbox.messages)
    assert room.inbox.presses == []


async def test_c084_a_forged_press_comes_in_with_the_message_that_it_was_made_on(room: Room) -> None:
    """The channel trusts nothing in the data: it says where the press was made, and the gateway compares."""
    await room.channel.show(room.thread(ADA), an_approval())
    await room.channel.show(room.thread(GROUP), an_approval(card_id="p_other"))
    [elsewhere] = room.server.from_bot(GROUP)
    room.server.press(elsewhere, "v1:p_abcdefghijklmnopqrst:approve", BOB)
    [press] = await room.inbox.wait_for(lambda: room.inbox.presses)
    assert press.message_ref == f"{GROUP}:{elsewhere['message_id']}"
    assert press.actor == ("telegram", BOT, str(BOB))


async def test_a_malformed_update_holds_up_nothing(room: Room) -> None:
    room.server.push({"message": {"message_id": "not a number", "chat": 5}})
    room.server.push({"callback_query": {"id": 12, "from": "nobody"}})
    room.server.say(ADA, ADA, "after that")
    [message] = await room.inbox.wait_for(lambda: room.inbox.messages)
    assert message.text == "after that"


async def test_c086_people_are_known_by_their_numbers_only(room: Room) -> None:
    room.server.user(222, "alice", username="alice")
    room.server.user(333, "111")
    room.server.say(222, 222, "let me in")
    room.server.say(333, 333, "me too")
    first, second = await room.inbox.wait_for(
        lambda: room.inbox.messages if len(room.inbox.messages) == 2 else []
    )
    assert first.actor == ("telegram", BOT, "222")
    assert second.actor == ("telegram", BOT, "333")
    assert (first.author, second.author) == ("alice", "111")


@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
async def test_c089_no_log_line_holds_the_token(
    server: TelegramServer, caplog: pytest.LogCaptureFixture, level: int
) -> None:
    caplog.set_level(level)
    for name in ("telegram.Bot", "telegram.ext.ExtBot", "httpx"):
        caplog.set_level(level, logger=name)
    channel, inbox = quick(server), Inbox()
    await channel.start(inbox)
    server.say(ADA, ADA, "hello")
    await inbox.wait_for(lambda: inbox.messages)
    server.fail_next("sendMessage", 404, "Not Found")
    room = Room(server, channel, inbox, Naps(), [])
    with pytest.raises(ChannelDown) as refused:
        await channel.send(room.thread(ADA), channel.parts(_words("x"))[0])
    await server.down()
    with pytest.raises(ChannelDown) as down:
        await channel.send(room.thread(ADA), channel.parts(_words("y"))[0])
    await channel.stop()
    secret = TOKEN.partition(":")[2]
    assert caplog.records
    assert secret not in caplog.text
    assert secret not in str(refused.value) + str(down.value)


async def test_in_a_group_only_what_speaks_to_the_bot_is_heard(room: Room) -> None:
    await room.channel.send(room.thread(GROUP), _words("I am here"))
    [mine] = room.server.from_bot(GROUP)
    room.server.say(GROUP, ADA, "just talking")
    room.server.say(GROUP, ADA, "@gate_bot what now?")
    room.server.say(GROUP, ADA, "/status@other_bot")
    room.server.say(GROUP, ADA, "/status@gate_bot")
    room.server.say(GROUP, ADA, "/status")
    room.server.say(GROUP, BOB, "and you?", reply_to=mine["message_id"])
    await room.inbox.wait_for(lambda: len(room.inbox.messages) == 4)
    assert [m.text for m in room.inbox.messages] == ["what now?", "/status", "/status", "and you?"]
    assert {m.thread for m in room.inbox.messages} == {room.thread(GROUP)}
    assert all(m.addressed and not m.private for m in room.inbox.messages)


async def test_everything_is_heard_when_the_owner_says_so(server: TelegramServer) -> None:
    channel, inbox = quick(server, groups_addressed_only=False), Inbox()
    await channel.start(inbox)
    server.say(GROUP, ADA, "just talking")
    [message] = await inbox.wait_for(lambda: inbox.messages)
    assert (message.text, message.addressed) == ("just talking", False)
    await channel.stop()


async def test_each_topic_is_a_thread_and_the_general_one_has_none(room: Room) -> None:
    topic = room.server.topic(FORUM)
    room.server.say(FORUM, ADA, "@gate_bot in the topic", topic=topic)
    room.server.say(FORUM, ADA, "@gate_bot in general")
    await room.inbox.wait_for(lambda: len(room.inbox.messages) == 2)
    assert [m.thread.thread for m in room.inbox.messages] == [str(topic), ""]
    await room.channel.send(room.thread(FORUM, topic), _words("answer"))
    [answer] = room.server.from_bot(FORUM)
    assert answer["message_thread_id"] == topic


async def test_another_bot_and_an_edit_are_marked(room: Room) -> None:
    room.server.user(999, "Other", is_bot=True, username="other_bot")
    room.server.say(GROUP, 999, "@gate_bot beep")
    update = room.server.say(ADA, ADA, "helo")
    await room.inbox.wait_for(lambda: len(room.inbox.messages) == 2)
    room.server.edit(ADA, update["message"]["message_id"], "hello")
    await room.inbox.wait_for(lambda: len(room.inbox.messages) == 3)
    machine, original, edit = room.inbox.messages
    assert machine.from_bot
    assert (edit.edited, edit.message_id, edit.text) == (True, original.message_id, "hello")


async def test_a_webhook_that_was_left_behind_is_taken_away(server: TelegramServer) -> None:
    server.bots[TOKEN].webhook = {"url": "https://old.example/hook"}
    channel, inbox = quick(server), Inbox()
    await channel.start(inbox)
    server.say(ADA, ADA, "hi")
    await inbox.wait_for(lambda: inbox.messages)
    await channel.stop()


@pytest.mark.parametrize("late", [False, True], ids=["together", "one by one"])
async def test_an_album_is_one_message_with_all_its_pictures(room: Room, late: bool) -> None:
    def picture(number: int) -> None:
        caption: Json = {"caption": "@gate_bot sort these"} if number == 1 else {}
        marks = [{"type": "mention", "offset": 0, "length": 9}] if number == 1 else []
        photo = [{"file_id": f"P{number}", "file_unique_id": "u", "width": 1, "height": 1, "file_size": 5}]
        room.server.say(
            GROUP, ADA, "", [], photo=photo, media_group_id="g1", caption_entities=marks, **caption
        )

    rest = [2, 3]
    picture(1)
    if late:
        room.naps.during = lambda: picture(rest.pop(0)) if rest else None
        await room.inbox.wait_for(lambda: room.inbox.messages)
    else:
        for number in rest:
            picture(number)
    room.server.say(GROUP, ADA, "@gate_bot done?")
    await room.inbox.wait_for(lambda: len(room.inbox.messages) == 2)
    album, after = room.inbox.messages
    assert (album.text, after.text) == ("sort these", "done?")
    assert [a.file_id for a in album.attachments] == ["P1", "P2", "P3"]
    await room.channel.stop()
    assert room.server.bots[TOKEN].updates == []


def _words(text: str) -> OutboundMessage:
    return OutboundMessage(text=text)
