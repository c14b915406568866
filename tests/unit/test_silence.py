"""The word for saying nothing: which replies are meant by it, and what of a growing one may be shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.silence import HeldBack, silent, with_silence

TOKEN = "NO_REPLY"
NEAR = st.lists(st.sampled_from(["N", "NO", "_", "REPLY", " ", "\n", "x", "NO_REPLY", "."]), max_size=8)


def test_c067_only_the_whole_reply_is_silence() -> None:
    assert silent("NO_REPLY", TOKEN) and silent(" \nNO_REPLY\n", TOKEN)
    others = ["", "NO", "no_reply", "NO_REPLY.", "`NO_REPLY`", "NO_REPLY NO_REPLY", "Say NO_REPLY"]
    assert not any(silent(text, TOKEN) for text in others)
    assert not silent("NO_REPLY", None)


def test_the_prompt_is_untouched_without_the_word_and_always_the_same_with_it() -> None:
    assert with_silence("Be kind.", None) == "Be kind."
    told = with_silence("Be kind.", TOKEN)
    assert told == with_silence("Be kind.", TOKEN) and told.startswith("Be kind.\n\n") and TOKEN in told
    assert with_silence("", TOKEN).startswith("You ")


@given(NEAR)
def test_c067_nothing_of_the_word_is_shown_and_everything_of_any_other_reply(pieces: list[str]) -> None:
    held, shown = HeldBack(TOKEN), ""
    for number, piece in enumerate(pieces):
        shown += held.shown(piece)
        assert shown in ("", "".join(pieces[: number + 1]))
    whole = "".join(pieces)
    if silent(whole, TOKEN):
        assert shown == ""
    elif not TOKEN.startswith(whole.lstrip()):
        assert shown == whole


@given(NEAR)
def test_without_a_word_every_piece_passes(pieces: list[str]) -> None:
    held = HeldBack(None)
    assert [held.shown(piece) for piece in pieces] == pieces


def test_a_reply_that_begins_anew_is_held_back_anew() -> None:
    held = HeldBack(TOKEN)
    assert held.shown("Hello") == "Hello"
    held.anew()
    assert (held.shown("NO_"), held.shown("REPLY")) == ("", "")
    held.anew()
    assert (held.shown("N"), held.shown("ot yet")) == ("", "Not yet")
