"""What is packed for Slack comes back whole, and foreign strings are told apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Attachment, MessageRef, ThreadKey
from channels.render.measure import utf16_len
from channels.slack import refs

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
KEYS = st.builds(
    refs.thread_key,
    st.just("T1"),
    st.sampled_from(["C1", "D2", "home:U1"]),
    ts=st.just("1.2"),
    thread_ts=st.sampled_from(["", "3.4"]),
)
FILES = st.builds(
    Attachment, file_id=TEXT, name=TEXT, media_type=TEXT, size=st.integers(min_value=0, max_value=2**40)
)


@pytest.mark.parametrize(
    ("ts", "thread_ts", "thread"),
    [("1.5", "", "1.5"), ("1.5", "1.0", "1.0"), ("1.5", "1.5", "1.5"), ("", "", "")],
)
def test_a_thread_is_its_first_message_and_the_root_is_none(ts: str, thread_ts: str, thread: str) -> None:
    assert refs.thread_key("T1", "C1", ts=ts, thread_ts=thread_ts) == ThreadKey("slack", "T1", "C1", thread)


def test_a_home_is_a_place_that_says_whose_it_is() -> None:
    assert refs.home_key("T1", "U1") == ThreadKey("slack", "T1", "home:U1", "")
    assert refs.home_user(refs.home_key("T1", "U1")) == "U1"
    assert refs.home_user(refs.thread_key("T1", "C1", ts="1.2")) == ""


def test_a_message_reference_comes_back() -> None:
    ref = refs.pack_ref("C1", "1764536400.000100")
    assert ref == "C1:1764536400.000100"
    assert refs.unpack_ref(ref) == ("C1", "1764536400.000100")


@pytest.mark.parametrize("foreign", ["", "C1", ":1.2", "C1:", "C1:x", "42:9", "C1:1.2 ", "C1:1.2:"])
def test_a_foreign_reference_is_refused(foreign: str) -> None:
    with pytest.raises(ValueError, match="not a reference"):
        refs.unpack_ref(MessageRef(foreign))


@pytest.mark.parametrize(
    ("own_id", "kind"),
    [
        ("1764536400.000100", "message"),
        (refs.press_id("1.2", "U1"), "press"),
        (refs.press_id("1.2", "U1", 3), "press"),
        (refs.view_press_id("V1"), "view"),
        (refs.ask_id("V1"), "ask"),
        (refs.command_id("1.2.abc"), "command"),
        (refs.stop_id("1.2"), "stop"),
        ("reply:1:2", None),
        ("", None),
        ("view|", None),
        ("x|U1", None),
    ],
)
def test_the_kind_of_an_id_is_seen_in_it(own_id: str, kind: str | None) -> None:
    assert refs.kind_of(own_id) == kind


def test_two_uses_in_one_payload_and_two_people_have_ids_of_their_own() -> None:
    ids = {refs.press_id("1.2", "U1"), refs.press_id("1.2", "U1", 1), refs.press_id("1.2", "U2")}
    assert len(ids) == 3


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=64), st.sampled_from(["", "C1:1.2"]), KEYS)
def test_a_forms_place_comes_back_whole(data: str, ref: str, thread: ThreadKey) -> None:
    place = refs.FormPlace(data=data, ref=MessageRef(ref) if ref else None, thread=thread)
    packed = place.pack()
    assert refs.unpack_form(packed) == place
    assert utf16_len(packed) <= refs.METADATA_LIMIT
    assert refs.unpack_ask(packed) is None


def test_a_forms_place_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        refs.FormPlace(data="x" * 3000, ref=None, thread=refs.home_key("T1", "U1")).pack()


@given(st.integers(0, 9000), TEXT, KEYS, st.lists(FILES, max_size=4).map(tuple))
def test_what_is_asked_about_always_fits_and_loses_only_its_end(
    length: int, text: str, thread: ThreadKey, files: tuple[Attachment, ...]
) -> None:
    words = ((text or "wörd\n😀") * length)[:9000]
    place = refs.AskPlace(thread=thread, message_id="1.2", quoted=words, attachments=files)
    packed = place.pack()
    assert utf16_len(packed) <= refs.METADATA_LIMIT
    back = refs.unpack_ask(packed)
    assert back is not None
    assert (back.thread, back.message_id) == (thread, "1.2")
    assert files[: len(back.attachments)] == back.attachments
    assert back.quoted == words or words.startswith(back.quoted.removesuffix("…"))
    assert refs.unpack_form(packed) is None


def test_what_fits_is_not_cut() -> None:
    file = Attachment(file_id="F1", name="a.txt", media_type="text/plain", size=3)
    place = refs.AskPlace(
        thread=refs.thread_key("T1", "C1", ts="1.2"), message_id="1.2", quoted="x" * 2500, attachments=(file,)
    )
    assert refs.unpack_ask(place.pack()) == place


@given(st.text(max_size=60) | st.sampled_from(["null", "[]", '["f1"]', '["a1",1,2,3,4]', "{}", "\ud800"]))
def test_foreign_metadata_is_no_place(metadata: str) -> None:
    assert refs.unpack_form(metadata) is None
    assert refs.unpack_ask(metadata) is None
