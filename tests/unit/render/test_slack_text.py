"""Markdown for Slack: mrkdwn that nobody can be paged with, and blocks within the limits."""

from __future__ import annotations

import re

import pytest

from channels.render.slack import escape_mrkdwn, slack_messages


def mrkdwn(markdown: str) -> str:
    """The one message that a short text becomes."""
    (message,) = slack_messages(markdown)
    return message.text


def sections(markdown: str) -> list[str]:
    """The section texts of all messages."""
    return [
        block["text"]["text"]
        for message in slack_messages(markdown)
        for block in message.blocks
        if block["type"] == "section"
    ]


def test_c008_broadcasts_and_mentions_of_a_model_are_inert_text() -> None:
    source = "<!channel> deploy done, cc <@U0AAAAAAA> and <!subteam^S0AAA>, also @here"
    right = "&lt;!channel&gt; deploy done, cc &lt;@U0AAAAAAA&gt; and &lt;!subteam^S0AAA&gt;, also @here"
    assert mrkdwn(source) == right
    assert sections(source) == [right]


def test_c008_slack_is_told_to_look_for_nothing_in_a_section() -> None:
    assert [block["text"]["verbatim"] for block in slack_messages("hi @here #general")[0].blocks] == [True]


def test_c009_three_characters_are_escaped_once_inside_code_too() -> None:
    source = "Use `n<m` when:\n```\nwhile x < 9 && y > 2: go()\n```\nR&D"
    right = "Use `n&lt;m` when:\n```\nwhile x &lt; 9 &amp;&amp; y &gt; 2: go()\n```\nR&amp;D"
    assert mrkdwn(source) == right
    assert sections(source) == [right]


def test_c009_quotes_are_left_alone() -> None:
    assert mrkdwn('"it\'s" \\&amp; x') == '"it\'s" &amp;amp; x'
    assert escape_mrkdwn("&lt;") == "&amp;lt;"


def test_c011_bold_glued_to_a_letter_gets_a_zero_width_space() -> None:
    assert mrkdwn("**Result:**passed") == "*Result:*\u200bpassed"
    assert mrkdwn("重要：**注意。**之后") == "重要：\u200b*注意。*\u200b之后"
    assert mrkdwn("`**a:**b`\n```\n**a:**b\n```") == "`**a:**b`\n```\n**a:**b\n```"


def test_c014_sections_hold_at_most_three_thousand_characters() -> None:
    paragraphs = [(f"{n:02d} " + "word & more " * 9)[:100].strip() for n in range(74)]
    source = "\n\n".join(paragraphs)
    messages = slack_messages(source)
    texts = sections(source)
    assert all(1 <= len(text) <= 3000 for text in texts)
    assert all(len(message.blocks) <= 50 and len(message.text) <= 4000 for message in messages)
    assert all(re.fullmatch(r"(?:[^&<>]|&(?:amp|lt|gt);)*", text) for text in texts)
    assert "\n\n".join(texts).replace("&amp;", "&") == source
    assert "\n\n".join(message.text for message in messages).replace("&amp;", "&") == source


def test_c014_a_link_is_never_cut() -> None:
    source = " ".join(f"[label {n}](https://example.com/{n}?a=1&b=2)" for n in range(300))
    for text in sections(source):
        assert re.fullmatch(r"(?:<https://example\.com/\d+\?a=1&amp;b=2\|label \d+>\s?)+", text)


def test_emphasis_uses_slacks_marks() -> None:
    assert mrkdwn("**b** *i* ~~s~~ ***bi***") == "*b* _i_ ~s~ *_bi_*"


def test_emphasis_over_two_lines_is_marked_line_by_line() -> None:
    assert mrkdwn("**one\ntwo**") == "*one*\n*two*"


def test_a_code_block_leaves_the_quote_and_keeps_its_text() -> None:
    assert mrkdwn("> a\n> ```\n>   x\n> ```\n> b") == "> a\n```\n  x\n```\n> b"


def test_what_mrkdwn_would_misread_is_a_rich_text_block() -> None:
    (message,) = slack_messages("\\*not bold\\* and `` a`b ``")
    assert message.blocks == (
        {
            "type": "rich_text",
            "elements": [
                {
                    "type": "rich_text_section",
                    "elements": [
                        {"type": "text", "text": "*not bold* and "},
                        {"type": "text", "text": "a`b", "style": {"code": True}},
                    ],
                }
            ],
        },
    )


def test_a_fence_shown_in_a_fence_keeps_every_byte() -> None:
    (message,) = slack_messages("````\n```sh\nmake\n```\n````")
    (block,) = message.blocks
    assert block["elements"][0]["elements"] == [{"type": "text", "text": "```sh\nmake\n```"}]
    assert message.text.count("```") == 2


@pytest.mark.parametrize(
    ("source", "right"),
    [
        ("[docs](https://a.example/?x=1&y=2)", "<https://a.example/?x=1&amp;y=2|docs>"),
        ("https://a.example/x_y_z", "<https://a.example/x_y_z>"),
        ("[a|b](https://a.example/p|q)", "<https://a.example/p%7Cq|a|b>"),
        ("[x](slack://open)", "x (slack://open)"),
        ("**[b](https://a.example)**", "*<https://a.example|b>*"),
    ],
)
def test_links_are_drawn_only_for_safe_addresses(source: str, right: str) -> None:
    assert mrkdwn(source) == right


def test_a_blank_text_gives_no_message() -> None:
    assert slack_messages(" \n ") == []
