"""Markdown for Telegram: entities, the HTML that the cases state, and the cuts."""

from __future__ import annotations

import re

import pytest

from channels.render.measure import display_width, utf16_len
from channels.render.telegram import (
    Entity,
    TelegramText,
    telegram_html,
    telegram_html_messages,
    telegram_messages,
    telegram_text,
)

ALLOWED_TAGS = {"b", "i", "u", "s", "code", "pre", "a", "blockquote", "tg-spoiler"}


def tags_balance(html: str) -> bool:
    """Every closing tag closes the tag opened last, and none stays open."""
    stack: list[str] = []
    for closing, name in re.findall(r"<(/?)([a-z0-9-]+)[^<>]*>", html):
        if not closing:
            stack.append(name)
        elif not stack or stack.pop() != name:
            return False
    return not stack


def test_c001_full_stops_hyphens_and_brackets_are_ordinary_text() -> None:
    assert telegram_html("Done! See v1.2.3 (build-7) - **ok**.") == "Done! See v1.2.3 (build-7) - <b>ok</b>."


def test_c001_the_entity_form_carries_the_words_unescaped() -> None:
    message = telegram_text("Done! See v1.2.3 (build-7) - **ok**.")
    assert message == TelegramText("Done! See v1.2.3 (build-7) - ok.", (Entity("bold", 29, 2),))


def test_c002_underscores_inside_words_are_no_italics() -> None:
    html = telegram_html("run MAX_RETRY_COUNT via cfg_loader_v2, not _really_")
    assert html == "run MAX_RETRY_COUNT via cfg_loader_v2, not <i>really</i>"


def test_c003_headings_and_lists_become_what_telegram_has() -> None:
    assert telegram_html("# Title\n\n- a\n- b\n\nHi—yes.") == "<b>Title</b>\n\n• a\n• b\n\nHi—yes."
    assert telegram_html("Hi—yes.") == "Hi—yes."


def test_c003_only_telegrams_own_tags_and_escapes_appear() -> None:
    html = telegram_html(
        '# T\n\n1. a <p>\n\n> q "x" & y\n\n---\n\n![i](http://a/b.png) <br> ~~s~~\n\n'
        "|a|\n|-|\n|1|\n\n<tg-spoiler>"
    )
    assert set(re.findall(r"</?([a-z0-9-]+)", html)) <= ALLOWED_TAGS
    assert set(re.findall(r"&[^;]*;", html)) <= {"&lt;", "&gt;", "&amp;", "&quot;"}


def test_c005_a_fence_inside_a_longer_fence_is_its_content() -> None:
    html = telegram_html("````md\n## Setup\n\n```sh\nmake test\n```\n````")
    assert html == '<pre><code class="language-md">## Setup\n\n```sh\nmake test\n```</code></pre>'


def test_c005_fences_of_equal_length_lose_no_line() -> None:
    html = telegram_html("```md\n## Setup\n\n```sh\nmake test\n```\n```")
    assert tags_balance(html)
    assert html.index("## Setup") < html.index("make test")


def test_c007_a_table_is_monospace_with_its_bars_in_one_column() -> None:
    html = telegram_html("| Name | Qty |\n|---|---:|\n| café <x> | 5 |\n| 表表 | 10 |\n| 👨‍👩‍👧‍👦 | 7 |")
    assert html.startswith("<pre>")
    assert html.endswith("</pre>")
    assert "café &lt;x&gt;" in html
    lines = html[5:-6].replace("&lt;", "<").replace("&gt;", ">").split("\n")
    assert len(lines) == 5
    assert {display_width(line[: line.index("|")]) for line in lines} == {9}


def test_c007_overlapping_bold_and_italics_nest() -> None:
    html = telegram_html("***both*** and **a *b* c**")
    assert html == "<b><i>both</i></b> and <b>a <i>b</i> c</b>"
    assert tags_balance(html)


def test_c011_bold_glued_to_a_letter_is_bold() -> None:
    assert telegram_html("**Result:**passed") == "<b>Result:</b>passed"
    assert telegram_html("重要：**注意。**之后") == "重要：<b>注意。</b>之后"
    assert telegram_html("`**a:**b`") == "<code>**a:**b</code>"


def test_c023_length_is_counted_in_utf16_units() -> None:
    source = "\U0001f680" * 4500
    messages = telegram_messages(source, 4000)
    assert all(utf16_len(message.text) <= 4000 for message in messages)
    assert "".join(message.text for message in messages) == source


def test_c023_a_cut_falls_before_an_emoji_family_never_inside() -> None:
    family = "👨‍👩‍👧‍👦"
    assert utf16_len(family) == 11
    messages = telegram_messages("b" * 1995 + family + "end", 2000)
    assert [utf16_len(message.text) for message in messages] == [1995, 14]


@pytest.mark.parametrize(
    "source", ["```\n" + "x" * 12_000 + "\n```", "y" * 12_000, "https://a.example/" + "z" * 12_000]
)
def test_c024_one_endless_line_is_cut_hard(source: str) -> None:
    messages = telegram_messages(source, 4000)
    assert all(0 < utf16_len(message.text) <= 4000 for message in messages)
    assert "".join(message.text for message in messages) == source.strip("`\n")
    assert len(messages) <= 5


@pytest.mark.parametrize(
    "source",
    [
        "**" + "a" * 6000 + "**",
        " ".join(f"[link {n}](https://example.com/{n}?a=1&b=2)" for n in range(250)),
        "\n".join(f"> {chr(97 + n % 26)}" for n in range(1500)),
        "x & y < z " * 900,
    ],
    ids=["bold", "links", "quotes", "escapes"],
)
def test_c025_html_is_closed_at_a_cut_and_opened_again(source: str) -> None:
    messages = telegram_html_messages(source)
    assert len(messages) > 1 or source.startswith(">")
    for html in messages:
        assert tags_balance(html)
        assert re.fullmatch(r"(?:[^<>&]|<[^<>]+>|&(?:lt|gt|amp|quot);)*", html)
        assert utf16_len(html) <= 4096
        assert len(html.encode()) <= 32_768
    joined = re.sub(r"<[^<>]*>", "", "".join(messages))
    assert re.sub(r"\s", "", joined) == re.sub(r"<[^<>]*>|\s", "", telegram_html(source))


def test_c025_a_bold_text_stays_bold_in_every_part() -> None:
    messages = telegram_html_messages("**" + "a" * 6000 + "**")
    assert all(html.startswith("<b>") and html.endswith("</b>") for html in messages)


def test_no_message_has_more_than_a_hundred_entities() -> None:
    messages = telegram_messages(" ".join(f"**w{n}** x" for n in range(250)))
    assert [len(message.entities) <= 100 for message in messages] == [True] * len(messages)
    assert sum(len(message.entities) for message in messages) == 250


@pytest.mark.parametrize("source", ["", " \n\t\n", "\u200b", "\u2060 \ufeff"])
def test_a_blank_text_gives_no_message(source: str) -> None:
    assert telegram_messages(source) == []


@pytest.mark.parametrize("source", ["```\n```", "-", "#", "> ", "[a]: http://x.example"])
def test_mere_markup_is_shown_as_written_rather_than_nothing(source: str) -> None:
    assert [message.text.strip() != "" for message in telegram_messages(source)] == [True]


def test_code_holds_no_other_entity() -> None:
    message = telegram_text("**a `b` c** and [`d`](https://e.example)")
    assert [(e.type, message.text[e.offset : e.offset + e.length]) for e in message.entities] == [
        ("bold", "a "),
        ("code", "b"),
        ("bold", " c"),
        ("text_link", "d"),
    ]


def test_quotes_are_never_nested() -> None:
    message = telegram_text("> a\n>> b")
    assert [entity.type for entity in message.entities] == ["blockquote"]


def test_a_user_name_in_prose_notifies_nobody_and_an_address_stays() -> None:
    message = telegram_text("ask @durov or a@b.example, see https://x.example/@durov and `@durov`")
    assert "@\u2060durov" in message.text
    assert "a@b.example" in message.text
    assert "https://x.example/@durov" in message.text
    assert message.text.endswith("@durov")


def test_links_to_other_schemes_are_shown_not_opened() -> None:
    message = telegram_text("[you](tg://user?id=1) [file](docs/a.md) [mail](mailto:a@b.example)")
    assert message == TelegramText("you (tg://user?id=1) file (docs/a.md) mail (a@b.example)")


def test_a_code_block_that_fits_one_message_moves_there_whole() -> None:
    code = "\n".join(f"line {n}" for n in range(60))
    messages = telegram_messages(f"{'word ' * 60}\n\n```py\n{code}\n```", 700)
    assert messages[-1] == TelegramText(code, (Entity("pre", 0, len(code), None, "py"),))


def test_a_heading_stays_with_what_it_heads() -> None:
    messages = telegram_messages(f"{'a' * 60}\n\n# Head\n\n{'b ' * 30}", 75)
    assert [message.text.split("\n")[0] for message in messages] == ["a" * 60, "Head"]


def test_a_cut_prefers_paragraphs_then_items_then_sentences_then_words() -> None:
    assert [m.text for m in telegram_messages("aaaa bbbb\n\ncccc. dddd", 18)] == ["aaaa bbbb", "cccc. dddd"]
    assert [m.text for m in telegram_messages("- aaaa\n- bbbb bbb", 14)] == ["• aaaa", "• bbbb bbb"]
    assert [m.text for m in telegram_messages("One two. Three four", 15)] == ["One two.", "Three four"]
    assert [m.text for m in telegram_messages("alpha beta gamma", 12)] == ["alpha beta", "gamma"]


def test_a_link_is_never_cut_when_it_fits_a_message() -> None:
    messages = telegram_messages("word " * 10 + "[a label of words](https://x.example) end", 60)
    assert [m.text for m in messages] == [("word " * 10).strip(), "a label of words end"]
    assert messages[1].entities == (Entity("text_link", 0, 16, "https://x.example"),)
