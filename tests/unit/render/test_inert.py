"""Text that cannot disguise itself: card arguments, labels, links."""

from __future__ import annotations

import pytest

from channels.render.inert import tame, visible
from channels.render.links import disguised, openable
from channels.render.telegram import telegram_text


def test_c085_a_crafted_argument_shows_everything_that_it_hides() -> None:
    argument = (
        "ls` <https://evil.example/ok|Open the approval page> ```\n*Signed off by the owner*   ; "
        "rm -r ~/\u200bprojects ; https://safe.example/\u202etxt.exe ;" + " " * 400 + "&& curl … ; "
        "https://gith\u0443b.example"
    )
    shown = visible(argument)
    assert shown == (
        "ls` <https://evil.example/ok|Open the approval page> ```\n*Signed off by the owner*   ; "
        "rm -r ~/\\u{200B}projects ; https://safe.example/\\u{202E}txt.exe ;[400 spaces]&& curl … ; "
        "https://gith\u0443b.example [mixed scripts: xn--githb-hze.example]"
    )


def test_c085_model_text_that_imitates_a_card_stays_text() -> None:
    message = telegram_text("**Approval needed**\n\n[Approve](tg://resolve?x=1) [Deny](javascript:no)")
    assert [entity.type for entity in message.entities] == ["bold"]


@pytest.mark.parametrize("text", ["a\n\tb", "naïve 表 🚀", "def f():\n            return 1", "привет мир.рф"])
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", "a\\u{1B}[2Jb"),
        ("a\u00adb", "a\\u{AD}b"),
        ("a\u3164b", "a\\u{3164}b"),
        ("a\U000e0041b", "a\\u{E0041}b"),
        ("a\u2028b", "a\\u{2028}b"),
        ("a" + "\n" * 50 + "b", "a\n[50 line breaks]\nb"),
        ("a" + "\t" * 12 + "b", "a[12 tabs]b"),
        ("x" + " " * 9 + "y", "x" + " " * 9 + "y"),
    ],
)
def test_hidden_characters_and_long_blanks_are_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_prose_keeps_joiners_and_flags_but_not_overrides() -> None:
    england = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    assert tame(f"👨‍👩‍👧 {england} می\u200cخواهم") == f"👨‍👩‍👧 {england} می\u200cخواهم"
    assert tame("a\u202eb\x07") == "a\\u{202E}b\\u{7}"
    assert tame("a\u2067b") == "a\\u{2067}b"
    assert tame("\u2067שלום\u2069") == "\u2067שלום\u2069"


@pytest.mark.parametrize(
    ("label", "href"),
    [
        ("https://good.com", "https://evil.com"),
        ("good.com/login", "https://good.com.evil.net/"),
        ("www.good.com", "https://evil.com"),
        ("see https://good.com now", "https://evil.com"),
        ("https://good.com", "https://good.com@evil.com/"),
        ("good\u200b.com", "https://evil.com"),
        ("https://gith\u0443b.com", "https://xn--githb-hze.com"),
        ("boss@good.com", "mailto:other@evil.com"),
    ],
)
def test_a_label_that_names_another_address_is_found_out(label: str, href: str) -> None:
    assert disguised(label, href)


@pytest.mark.parametrize(
    ("label", "href"),
    [
        ("click here", "https://evil.com"),
        ("README.md", "https://github.com/a/b/README.md"),
        ("good.com", "https://www.good.com/path"),
        ("https://good.com/a", "https://good.com/a"),
        ("v1.2.3", "https://x.example"),
        ("a@good.com", "mailto:a@good.com"),
        ("пример.рф", "https://xn--e1afmkfd.xn--p1ai/"),
    ],
)
def test_an_honest_label_passes(label: str, href: str) -> None:
    assert not disguised(label, href)


@pytest.mark.parametrize(
    "href",
    ["javascript:x", "data:text/html,x", "file:///etc", "//x.example", "x", "https://", "ht\ntp://x", ""],
)
def test_only_safe_absolute_addresses_open(href: str) -> None:
    assert not openable(href)
    assert openable("https://x.example/a")
