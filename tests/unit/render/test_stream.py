"""An unfinished answer never looks broken."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.render.discord import discord_messages
from channels.render.html import safe_html
from channels.render.plain import plain_text
from channels.render.stream import presentable
from channels.render.telegram import telegram_messages, telegram_text
from tests.unit.render.test_properties import BLOCK

ANSWER = """# Title

Some **bold *and* more** with `code` and [the docs](https://x.example/a) ~~gone~~.

- [ ] one **two**
- three

```py
def f():
    return "**"
```

| a | b |
|---|---|
| 1 | 2 |
| 3 | 4 |

> quote **x**

1. ***both*** end
"""


@pytest.mark.parametrize(
    ("partial", "shown"),
    [
        ("Hi **bo", "Hi **bo**"),
        ("Hi **", "Hi"),
        ("Hi **bold*", "Hi **bold**"),
        ("a `co", "a `co`"),
        ("see [the do", "see"),
        ("see [the docs](https://x.ex", "see"),
        ("see [the docs](https://x.example)", "see [the docs](https://x.example)"),
        ("x\n\n```p", "x"),
        ("```py\na\n``", "```py\na\n```"),
        ("```py\na = 1", "```py\na = 1\n```"),
        ("- a\n  ```\n  b", "- a\n  ```\n  b\n  ```"),
        ("x\n\n| a | b |\n|--", "x"),
        ("| a |\n|---|\n| 1 |\n| 2", "| a |\n|---|\n| 1 |"),
        ("Title\n--", "Title"),
        ("a\n\n- ", "a"),
        ("a\n\n---\n\n", "a\n\n---"),
        ("## `", ""),
        ("```py\n", ""),
        ("## A **b", "## A **b**"),
        ("- **a\n- b", "- **a\n- b"),
        ("[a<b](https://x.example)", "[a<b](https://x.example)"),
        ("see <https://x.ex", "see"),
        ("a &am", "a"),
        ("2 * 3 and snake_case", "2 * 3 and snake_case"),
        ("a\\*", "a\\*"),
    ],
)
def test_what_is_open_is_closed_or_held_back(partial: str, shown: str) -> None:
    assert presentable(partial) == shown


def test_a_finished_answer_is_shown_whole() -> None:
    assert presentable(ANSWER) == ANSWER.rstrip()


def test_no_moment_of_an_answer_shows_raw_marks() -> None:
    for length in range(len(ANSWER) + 1):
        shown = "".join(message.text for message in telegram_messages(presentable(ANSWER[:length])))
        prose = shown.replace('return "**"', "").replace('return "**', "").replace('return "*', "")
        assert "*" not in prose, ANSWER[:length]
        assert "`" not in prose, ANSWER[:length]
        assert "](" not in prose, ANSWER[:length]
        assert "~" not in prose, ANSWER[:length]
        assert "| a" not in prose, ANSWER[:length]


@given(st.text(alphabet="ab \n*_~`[]()|-#>!1.\\<&", max_size=60))
def test_any_text_can_be_shown_at_any_moment(text: str) -> None:
    shown = presentable(text)
    assert len(shown) <= len(text) + 40
    assert isinstance(safe_html(shown), str)


def squeezed(text: str) -> str:
    """Without white space, which a later line may still change."""
    return re.sub(r"\s", "", text)


def words_of(markdown: str) -> str:
    return squeezed(telegram_text(markdown).text)


@given(st.lists(BLOCK, min_size=1, max_size=5), st.floats(0, 1))
def test_at_every_moment_the_reader_sees_the_beginning_of_the_final_text(
    blocks: list[str], share: float
) -> None:
    answer = "\n\n".join(("Well.", *blocks))  # a text of mere markup would be shown as written
    shown = presentable(answer[: int(share * len(answer))])
    assert words_of(answer).startswith(words_of(shown))  # no raw mark, no half link, nothing taken back
    for content in discord_messages(shown, 400):
        assert content.count("```") % 2 == 0
    assert "](" not in plain_text(shown)


@given(st.lists(BLOCK, min_size=1, max_size=4), BLOCK, st.floats(0, 1))
def test_what_an_empty_line_has_ended_stays_on_the_screen(
    blocks: list[str], growing: str, share: float
) -> None:
    done = "\n\n".join(("Well.", *blocks)) + "\n\n"
    shown = presentable(done + growing[: int(share * len(growing))])
    assert words_of(shown).startswith(words_of(done))


@given(st.lists(BLOCK, min_size=1, max_size=5).map("\n\n".join))
def test_at_the_end_everything_is_shown(answer: str) -> None:
    assert presentable(f"{answer}\n\n") == answer.rstrip()
    assert telegram_text(presentable(f"{answer}\n\n")) == telegram_text(answer.rstrip())


@given(
    st.lists(
        st.lists(st.sampled_from(["a", "**b**", "重要", "x|y", ""]), min_size=2, max_size=2), max_size=4
    ),
    st.floats(0, 1),
)
def test_a_table_grows_by_whole_rows(rows: list[list[str]], share: float) -> None:
    lines = ["| h | k |", "|---|---|", *(f"| {a.replace('|', '')} | {b.replace('|', '')} |" for a, b in rows)]
    answer = "\n".join(lines) + "\n"
    seen = answer[: int(share * len(answer))]
    whole = [line for line in lines[: seen.count("\n")]]
    assert presentable(seen) == ("\n".join(whole) if len(whole) > 2 else "")


@given(st.lists(BLOCK, min_size=1, max_size=8).map("\n\n".join), st.integers(80, 400))
def test_a_preview_of_the_end_is_short_and_starts_where_something_starts(answer: str, last: int) -> None:
    answer = f"{answer}\n\nWell."  # an end of mere markup would be shown as written
    whole = presentable(f"{answer}\n\n")
    ending = presentable(f"{answer}\n\n", last)
    longest = max(len(block) for block in answer.split("\n\n"))
    assert len(ending) <= 2 * max(last, longest) + 20  # a code block that was cut gets its first line back
    numbers = re.compile(r"\d+\.")  # of a list that begins elsewhere
    assert numbers.sub("", words_of(whole)).endswith(numbers.sub("", words_of(ending)))
    for content in discord_messages(ending, 400):
        assert content.count("```") % 2 == 0


def test_a_preview_of_the_end_of_a_long_code_block_is_code() -> None:
    answer = "Look:\n\n```py\n" + "\n".join(f"line_{n} = {n}" for n in range(500))
    ending = presentable(answer, 60)
    assert re.fullmatch(r"```py\n(?:line_\d+ = \d+\n){4,8}```", ending)
    assert ending.endswith("\nline_499 = 499\n```")
    assert presentable("short", 60) == "short"
    assert presentable("one\n\n" + "- item\n" * 50, 30) in ["\n".join(["- item"] * n) for n in range(4, 9)]


def test_a_preview_of_the_end_keeps_its_beginning_for_a_while() -> None:
    answer = "".join(f"Paragraph {n} of a long answer.\n\n" for n in range(400))
    beginnings = [presentable(answer[:length], 1000)[:20] for length in range(5000, 10_000, 10)]
    assert len(set(beginnings)) <= 7
    assert presentable("one\n\n" + "x" * 500, 60) == "x" * 500
