"""Markdown for Discord: shown as written, cut with its fences closed."""

from __future__ import annotations

import re

import pytest

from channels.render.discord import discord_messages, escape_discord
from channels.render.measure import utf16_len


def content(markdown: str) -> str:
    """The one message that a short text becomes."""
    (message,) = discord_messages(markdown)
    return message


def test_c015_mentions_of_a_model_read_as_they_were_written() -> None:
    text = content("Tell @everyone and <@&111111111111111111> that @here is done")
    assert text == "Tell @everyone and \\<@&111111111111111111> that @here is done"


def test_c021_a_long_code_block_stays_code_in_every_message() -> None:
    rows = "\n".join(f"row_{n} = load({n}, 'x')" for n in range(300))
    source = f"The loader:\n```py\n{rows}\n```\nThat's all."
    messages = discord_messages(source, 2000)
    assert all(0 < utf16_len(message) <= 2000 for message in messages)
    assert all(message.count("```") % 2 == 0 for message in messages)
    assert all(message.startswith("```py\n") for message in messages[1:])
    assert "".join(messages).replace("``````py\n", "") == source


def test_c021_a_line_that_only_looks_like_a_closing_fence_is_content() -> None:
    text = content("```py\na = 1\n```not-a-close\nb = 2\n```")
    assert "a = 1\n```not-a-close\nb = 2" in text
    assert "py" not in text


def test_c023_a_cut_falls_before_an_emoji_family() -> None:
    messages = discord_messages("b" * 1995 + "👨‍👩‍👧‍👦" + "end")
    assert [utf16_len(message) for message in messages] == [1995, 14]


def test_c024_an_endless_line_in_a_fence_is_cut_and_every_part_fenced() -> None:
    messages = discord_messages("```\n" + "x" * 12_000 + "\n```")
    assert all(utf16_len(m) <= 2000 and m.startswith("```\n") and m.endswith("\n```") for m in messages)
    assert sum(m.count("x") for m in messages) == 12_000


@pytest.mark.parametrize(
    ("source", "right"),
    [
        ("\\*a\\* \\`b\\` a\\\\b MAX_RETRY", "\\*a\\* \\`b\\` a\\b MAX_RETRY"),
        ("\\# no heading", "\\# no heading"),
        ("1986\\. A year", "1986\\. A year"),
        ("\\> no quote", "\\> no quote"),
        ("\\||x\\||", "\\|\\|x\\|\\|"),
        ("<#1> <t:1:R> <:a:1> a < b", "\\<#1> \\<t:1:R> \\<:a:1> a < b"),
        ("[x](javascript:y)", "\\[x\\](javascript:y)"),
    ],
)
def test_what_discord_would_read_as_markup_is_escaped(source: str, right: str) -> None:
    assert content(source) == right


@pytest.mark.parametrize(
    "source",
    [
        "# T",
        "- a\n  - b",
        "1. a\n2. b",
        "> q",
        "**b** *i* ~~s~~ ***bi***",
        "```py\nx\n```",
        "`a`",
        "https://x.example/a_b_c",
    ],
)
def test_what_discord_has_itself_stays(source: str) -> None:
    assert content(source) == source


def test_a_masked_link_hides_no_other_address() -> None:
    assert content("[docs](https://a.example/x)") == "[docs](<https://a.example/x>)"
    assert content("[bank.com](https://evil.example)") == "bank.com (https://evil.example)"


def test_a_fence_in_a_fence_keeps_every_byte() -> None:
    assert "```sh\nmake\n```" in content("````\n```sh\nmake\n```\n````")


def test_two_styles_that_touch_stay_apart() -> None:
    assert content("*d***e**") == "*d*\u200b**e**"


def test_a_table_is_monospace() -> None:
    assert content("|a|b|\n|-|-|\n|1|2|") == "```\na | b\n--|--\n1 | 2\n```".replace("--|--", "--|--")


def test_escaping_a_label_leaves_its_words() -> None:
    escaped = escape_discord("# a_b *c* <@1>\n- d")
    assert re.sub(r"\\(.)", r"\1", escaped) == "# a_b *c* <@1>\n- d"
    assert escaped == "\\# a_b \\*c\\* \\<@1>\n\\- d"


def test_a_blank_text_gives_no_message() -> None:
    assert discord_messages("\n \n") == []
