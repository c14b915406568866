"""Updates as Telegram sends them become the channel's values, or a named reason why not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Actor, InboundChange, InboundMessage, InboundPress, ThreadKey
from channels.telegram import forms, wire

ME = wire.Me(id=777, username="Gate_Bot")
SEAL = forms.Seal("777:secret")
ADA = {"id": 42, "is_bot": False, "first_name": "Ada", "last_name": "L", "username": "ada"}
BOT = {"id": 777, "is_bot": True, "first_name": "Gate", "username": "gate_bot"}
PRIVATE = {"id": 42, "type": "private", "first_name": "Ada"}
GROUP = {"id": -100, "type": "supergroup", "title": "Shop"}


def message(text: str = "hi", chat: dict[str, Any] = PRIVATE, **more: Any) -> dict[str, Any]:
    return {"message_id": 9, "from": ADA, "chat": chat, "date": 1000, "text": text, **more}


def from_bot() -> dict[str, Any]:
    return {**message(), "from": BOT}


def parsed(body: dict[str, Any], *, addressed_only: bool = True) -> wire.Parsed:
    return wire.parse({"update_id": 1, **body}, ME, SEAL, 5.0, addressed_only=addressed_only)


def heard(**body: Any) -> InboundMessage:
    result = parsed(body)
    assert isinstance(result, InboundMessage), result
    return result


def reason(**body: Any) -> str:
    result = parsed(body)
    assert isinstance(result, wire.Ignored), result
    return result.reason


def entity(kind: str, text: str, piece: str, **more: Any) -> dict[str, Any]:
    offset = len(text[: text.index(piece)].encode("utf-16-le")) // 2
    return {"type": kind, "offset": offset, "length": len(piece.encode("utf-16-le")) // 2, **more}


def test_a_private_message_is_addressed_and_keeps_its_own_identity() -> None:
    assert heard(message=message()) == InboundMessage(
        thread=ThreadKey("telegram", "777", "42", ""),
        message_id="9",
        actor=Actor("telegram", "777", "42"),
        text="hi",
        sent_at=1000.0,
        addressed=True,
        private=True,
        author="Ada L",
    )


def test_offsets_are_utf16_units_so_emoji_shift_nothing() -> None:
    text = "😀 very bold"
    assert heard(message=message(text, entities=[entity("bold", text, "bold")])).text == "😀 very **bold**"


@pytest.mark.parametrize(
    ("text", "marked", "expected"),
    [
        ("@gate_bot do it", [("mention", "@gate_bot")], "do it"),
        ("@GATE_BOT: do it", [("mention", "@GATE_BOT")], "do it"),
        ("please @gate_bot do it", [("mention", "@gate_bot")], "please do it"),
        ("do it @gate_bot", [("mention", "@gate_bot")], "do it"),
        ("/new@gate_bot now", [("bot_command", "/new@gate_bot")], "/new now"),
        ("/new now", [("bot_command", "/new")], "/new now"),
    ],
)
def test_the_bots_name_is_taken_out_of_what_is_said_to_it(
    text: str, marked: list[tuple[str, str]], expected: str
) -> None:
    entities = [entity(kind, text, piece) for kind, piece in marked]
    result = heard(message=message(text, GROUP, entities=entities))
    assert (result.text, result.addressed, result.private) == (expected, True, False)


def test_a_mention_by_number_is_a_mention() -> None:
    text = "Gate do it"
    marks = [entity("text_mention", text, "Gate", user=BOT)]
    assert heard(message=message(text, GROUP, entities=marks)).text == "do it"


def test_other_peoples_names_stay() -> None:
    text = "@gate_bot ask @bob"
    marks = [entity("mention", text, "@gate_bot"), entity("mention", text, "@bob")]
    assert heard(message=message(text, GROUP, entities=marks)).text == "ask @bob"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"message": message("hi", GROUP)}, "not addressed"),
        (
            {"message": message("/x@other", GROUP, entities=[entity("bot_command", "/x@other", "/x@other")])},
            "another bot",
        ),
        ({"message": from_bot()}, "our own"),
        ({"message": message(sender_chat=GROUP)}, "in the name of a chat"),
        ({"message": message("", new_chat_members=[ADA])}, "nothing that we read"),
        ({"poll": {}}, "another kind"),
        ({"message": {"message_id": "x"}}, "malformed"),
        ({"callback_query": {"id": "1", "data": "d", "message": message()}}, "without a sender"),
        ({"callback_query": {"id": "1", "data": "d", "from": ADA}}, "without a message"),
        ({"callback_query": {"id": "1", "from": ADA, "message": message()}}, "without data"),
    ],
)
def test_what_is_ignored_has_a_reason(body: dict[str, Any], why: str) -> None:
    assert why in reason(**body)


def test_a_press_that_is_ignored_still_names_its_query() -> None:
    for query in ({"id": "71", "data": "d", "message": message()}, {"id": "71", "from": "nobody"}):
        result = parsed({"callback_query": query})
        assert isinstance(result, wire.Ignored)
        assert result.query_id == "71"


def test_unaddressed_talk_is_handed_over_on_request() -> None:
    result = parsed({"message": message("hi", GROUP)}, addressed_only=False)
    assert isinstance(result, InboundMessage)
    assert not result.addressed


def test_a_thread_id_makes_a_topic_only_where_it_is_one() -> None:
    topic = message("hi", GROUP, message_thread_id=5, is_topic_message=True, reply_to_message=from_bot())
    plain = message("hi", GROUP, message_thread_id=5, reply_to_message=from_bot())
    assert heard(message=topic).thread.thread == "5"
    assert heard(message=plain).thread.thread == ""


def test_everything_in_a_topic_that_the_bot_opened_is_not_a_reply_to_it() -> None:
    root = {**message("", GROUP), "from": BOT, "message_id": 5}
    talk = message("hi", GROUP, message_thread_id=5, is_topic_message=True, reply_to_message=root)
    assert "not addressed" in reason(message=talk)


def test_a_reply_quotes_what_it_answers() -> None:
    original = {**message("the long answer", GROUP), "from": BOT}
    assert heard(message=message("why?", GROUP, reply_to_message=original)).quote == "the long answer"
    picked = message("why?", GROUP, reply_to_message=original, quote={"text": "long", "position": 4})
    assert heard(message=picked).quote == "long"


def test_an_edit_keeps_the_message_id() -> None:
    result = heard(edited_message=message("fixed", edit_date=1001))
    assert (result.edited, result.message_id) == (True, "9")


def test_another_program_is_marked_as_one() -> None:
    assert heard(message={**message(), "from": {**ADA, "is_bot": True}}).from_bot


def test_files_come_as_handles_and_the_caption_is_the_text() -> None:
    body = message("")
    del body["text"]
    body.update(
        caption="look **here**",
        document={"file_id": "D", "file_name": "a.csv", "mime_type": "text/csv", "file_size": 7},
        photo=[{"file_id": "S", "file_size": 10}, {"file_id": "L", "file_size": 90}],
    )
    result = heard(message=body)
    assert result.text == "look **here**"
    assert [(a.file_id, a.name, a.media_type, a.size) for a in result.attachments] == [
        ("D", "a.csv", "text/csv", 7),
        ("L", "photo-9.jpg", "image/jpeg", 90),
    ]


def test_a_press_is_what_the_button_carries_on_the_message_that_was_pressed() -> None:
    query = {
        "id": "71",
        "from": ADA,
        "message": message("card", GROUP),
        "data": "v1:p:approve",
        "chat_instance": "i",
    }
    assert parsed({"callback_query": query}) == InboundPress(
        thread=ThreadKey("telegram", "777", "-100", ""),
        action_id="71",
        actor=Actor("telegram", "777", "42"),
        data="v1:p:approve",
        message_ref=wire.pack_ref(-100, 9),
        sent_at=5.0,
        author="Ada L",
    )


def test_a_press_that_opens_a_form_is_not_yet_a_press() -> None:
    keyboard = {"inline_keyboard": [[{"text": "Deny with feedback", "callback_data": "v1:p:deny?why"}]]}
    query = {
        "id": "71",
        "from": ADA,
        "message": message("card", reply_markup=keyboard),
        "data": "v1:p:deny?why",
    }
    result = parsed({"callback_query": query})
    assert isinstance(result, wire.FormOpened)
    assert (result.press.data, result.names, result.label, result.card) == (
        "v1:p:deny", ("why",), "Deny with feedback", 9,
    )  # fmt: skip


def test_a_reply_to_a_prompt_is_the_press_with_its_values() -> None:
    line = SEAL.write(forms.Prompt(data="v1:p:deny", card=3, names=("why",)), -100)
    prompt = {**message(f"Why?\n\n{line}", GROUP), "from": BOT, "message_id": 8}
    result = parsed({"message": message("no *money*", GROUP, reply_to_message=prompt)})
    assert isinstance(result, InboundPress)
    assert (result.data, result.message_ref, dict(result.values)) == (
        "v1:p:deny",
        "-100:3",
        {"why": "no *money*"},
    )
    assert not wire.is_callback(result)
    assert wire.replied_message(result) == 9


def test_a_prompt_written_by_somebody_else_is_only_text() -> None:
    line = SEAL.write(forms.Prompt(data="v1:p:deny", card=3, names=("why",)), 42)
    prompt = {**message(f"Why?\n\n{line}"), "message_id": 8}
    assert heard(message=message("yes", reply_to_message=prompt)).text == "yes"


def test_a_reference_reads_back() -> None:
    assert wire.unpack_ref(wire.pack_ref(-100200, 5)) == (-100200, 5)
    with pytest.raises(ValueError):
        wire.unpack_ref("nonsense")  # type: ignore[arg-type]


# ---- conversations that change


MOVED = ThreadKey("telegram", "777", "-100", "")
NEW_CHAT = {"id": -200, "type": "supergroup", "title": "Shop"}


@pytest.mark.parametrize(
    "body",
    [
        {"message": {**message("", GROUP), "migrate_to_chat_id": -200}},
        {"message": {**message("", NEW_CHAT), "migrate_from_chat_id": -100}},
        {"message": {"message_id": 1, "chat": GROUP, "date": 1, "migrate_to_chat_id": -200}},
    ],
    ids=["in the old chat", "in the new one", "without an author"],
)
def test_a_group_that_moved_is_a_change(body: dict[str, Any]) -> None:
    new = MOVED._replace(conversation="-200")
    assert parsed(body) == InboundChange(thread=MOVED, kind="moved", moved_to=new)


@pytest.mark.parametrize(
    ("was", "now", "back"),
    [("kicked", "member", True), ("left", "administrator", True), ("member", "kicked", False)],
)
def test_being_let_in_again_is_a_change_and_being_thrown_out_is_none(was: str, now: str, back: bool) -> None:
    member = {"chat": GROUP, "old_chat_member": {"status": was}, "new_chat_member": {"status": now}}
    result = parsed({"my_chat_member": member})
    assert (result == InboundChange(thread=MOVED, kind="back")) is back
    assert isinstance(result, wire.Ignored) is not back


# ---- albums


def piece(number: int, album: str = "a", chat: dict[str, Any] = PRIVATE) -> dict[str, Any]:
    return {"update_id": number, "message": message("", chat, message_id=number, media_group_id=album)}


def plain(number: int) -> dict[str, Any]:
    return {"update_id": number, "message": message("x", message_id=number)}


def shape(updates: list[dict[str, Any]]) -> list[tuple[int, list[int]]]:
    """(up to where it confirms, the messages in it) of each."""
    return [
        (u["update_id"], [m["message_id"] for m in (u["message"], *u["message"].get("album", ()))])
        for u in wire.albums(updates)
    ]


def test_an_album_with_other_messages_in_between_is_one_and_nothing_is_confirmed_too_early() -> None:
    assert shape([plain(1), piece(2), plain(3), piece(4), plain(5)]) == [
        (1, [1]),
        (1, [3]),
        (4, [2, 4]),
        (5, [5]),
    ]


def test_albums_that_overlap_confirm_what_lies_before_both() -> None:
    updates = [piece(1), piece(2, "b", GROUP), piece(3), piece(4, "b", GROUP)]
    assert shape(updates) == [(1, [1, 3]), (4, [2, 4])]


def test_the_same_album_name_in_two_chats_is_two_albums() -> None:
    assert shape([piece(1), piece(2, "a", GROUP)]) == [(1, [1]), (2, [2])]


@given(st.lists(st.sampled_from(["a", "b", ""]), max_size=12))
def test_no_message_of_a_batch_is_lost_doubled_or_confirmed_before_it_is_handed_over(
    kinds: list[str],
) -> None:
    updates = [piece(n, kind) if kind else plain(n) for n, kind in enumerate(kinds, 1)]
    handed: list[int] = []
    confirmed = 0
    for confirms, numbers in shape(updates):
        handed += numbers
        confirmed = max(confirmed, confirms)
        assert set(range(1, confirmed + 1)) <= set(handed)
    assert sorted(handed) == list(range(1, len(kinds) + 1))
    assert confirmed == len(kinds)


@pytest.mark.parametrize(
    ("update", "chat"),
    [
        (plain(1), "42"),
        ({"update_id": 1, "callback_query": {"id": "5", "message": message("x", GROUP)}}, "-100"),
        ({"update_id": 1, "callback_query": {"id": "5"}}, ""),
        ({"update_id": 1, "message": {"chat": 5}}, ""),
        ({"update_id": 1}, ""),
    ],
)
def test_the_chat_of_an_update_is_found_whatever_shape_it_has(update: dict[str, Any], chat: str) -> None:
    assert wire.chat_of(update) == chat
