"""What is packed for Discord comes back as it was, and nothing foreign is taken for ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import MessageRef, ThreadKey, pack_press
from channels.discord import refs
from channels.discord.refs import Control, FileHandle

ids = st.integers(0, 2**64 - 1).map(str)
words = st.text(st.characters(codec="ascii", exclude_characters=":", exclude_categories=["C"]), min_size=1)
presses = st.builds(lambda card, choice: f"v1:{card[:28]}:{choice[:30]}", words, words).filter(
    lambda data: data.rpartition(":")[2] not in ("pick", "many")
)


def test_a_direct_conversation_has_a_workspace_of_its_own() -> None:
    assert refs.thread_key("", "9") == ThreadKey("discord", "@me", "9", "")
    assert refs.thread_key("1", "2", "3") == ThreadKey("discord", "1", "2", "3")


def test_calls_go_to_the_thread_or_to_the_channel_without_one() -> None:
    channel = refs.thread_key("1", "2")
    assert refs.place_of(channel) == "2"
    assert refs.place_of(refs.in_thread(channel, "3")) == "3"


def test_an_id_tells_when_it_was_made() -> None:
    # 175928847299117063 is the example of Discord's own documentation.
    assert refs.time_of("175928847299117063") == 1462015105.796


@given(ids, ids)
def test_a_message_reference_comes_back_as_it_was(channel: str, message: str) -> None:
    assert refs.unpack_ref(refs.pack_ref(channel, message)) == (channel, message)


@pytest.mark.parametrize(
    "foreign", ["", "12", "12:", ":12", "C1:1.2", "1:2:3", "-1:2", "1:٣", "1:" + "9" * 21]
)
def test_a_foreign_message_reference_is_refused(foreign: str) -> None:
    with pytest.raises(ValueError, match="not a reference of this channel"):
        refs.unpack_ref(MessageRef(foreign))


@given(ids, ids, ids)
def test_a_file_of_a_message_comes_back_as_it_was(channel: str, message: str, attachment: str) -> None:
    handle = FileHandle(channel=channel, message=message, attachment=attachment)
    assert refs.unpack_file(handle.pack()) == handle


def test_a_file_of_a_command_comes_back_with_its_address() -> None:
    handle = FileHandle(url="https://cdn.discordapp.com/ephemeral-attachments/1/2/a|b.pdf?ex=1&hm=2&")
    assert refs.unpack_file(handle.pack()) == handle


@pytest.mark.parametrize("foreign", ["", "F0123", "1:2", "1:2:x", "1:2:3:4", "https://example.org/a"])
def test_a_foreign_file_is_refused(foreign: str) -> None:
    with pytest.raises(ValueError, match="not a file of this channel"):
        refs.unpack_file(foreign)


@given(ids, st.integers(0, 24))
def test_every_press_of_one_interaction_has_its_own_id_and_leads_back_to_it(own: str, index: int) -> None:
    assert refs.interaction_of(refs.press_id(own, index)) == own
    assert len({refs.press_id(own, other) for other in range(25)}) == 25


@given(presses)
def test_a_plain_press_is_read_as_the_data_alone(data: str) -> None:
    assert refs.read_control(data) == Control(kind="press", data=data)


@given(presses, st.integers(0, 999), st.just("") | ids)
def test_a_form_button_and_its_modal_say_which_page_of_which_card(data: str, page: int, card: str) -> None:
    opens = Control(kind="form", data=data, page=page, card=card)
    assert refs.read_control(refs.form_id(data, page, card)) == opens
    assert refs.read_modal(refs.modal_id(data, page, card)) == opens


def test_the_longest_data_fits_a_custom_id_with_page_and_card() -> None:
    longest = pack_press("p" * 40, "c" * 20)
    assert len(longest) == 64
    for pack in (refs.form_id, refs.modal_id):
        assert len(pack(longest, 999, "9" * 20)) <= refs.CUSTOM_ID_LIMIT


def test_data_that_fits_no_custom_id_is_refused_when_it_is_packed() -> None:
    with pytest.raises(ValueError, match="too long"):
        refs.form_id("v1:" + "p" * 97)


@given(words, st.integers(0, 999))
def test_selects_and_pages_belong_to_their_card(card: str, page: int) -> None:
    assert refs.read_control(refs.pick_id(card)) == Control(kind="pick", data=card)
    assert refs.read_control(refs.many_id(card, page)) == Control(kind="many", data=card, page=page)
    assert refs.read_control(refs.page_id(card, page)) == Control(kind="page", data=card, page=page)


@pytest.mark.parametrize(
    "custom_id", ["approve_4711", "f", "fv2:a:b", "v1::pick", "v1:a:page:x", "v1:a:b:pick"]
)
def test_a_control_that_is_none_of_these_is_a_press_that_nobody_will_know(custom_id: str) -> None:
    assert refs.read_control(custom_id) == Control(kind="press", data=custom_id)


@pytest.mark.parametrize("custom_id", ["", "feedback", "m", "v2:a:b", "m1.x:v1:a:b"])
def test_a_foreign_modal_is_none_of_ours(custom_id: str) -> None:
    assert refs.read_modal(custom_id) is None


@given(st.text(max_size=100))
def test_any_custom_id_at_all_is_read(custom_id: str) -> None:
    assert isinstance(refs.read_control(custom_id), Control)
    assert refs.read_modal(custom_id) is None or "v1:" in custom_id
