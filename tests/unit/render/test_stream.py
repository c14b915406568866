"""An unfinished answer never looks broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.render.html import safe_html
from channels.render.stream import presentable
from channels.render.telegram import telegram_messages

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
