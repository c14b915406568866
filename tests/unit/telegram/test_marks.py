"""A person's formatted text becomes Markdown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.render.telegram import telegram_text
from channels.telegram.marks import Mark, positions, to_markdown


@pytest.mark.parametrize(
    ("text", "marks", "expected"),
    [
        ("plain a*b_c", [], "plain a*b_c"),
        ("be bold now", [Mark("bold", 3, 7)], "be **bold** now"),
        ("be bold now", [Mark("bold", 2, 8)], "be **bold** now"),
        ("x y", [Mark("italic", 0, 1), Mark("strikethrough", 2, 3)], "_x_ ~~y~~"),
        ("a b c", [Mark("bold", 0, 5), Mark("italic", 2, 3)], "**a _b_ c**"),
        ("run ls -l", [Mark("code", 4, 9)], "run `ls -l`"),
        ("a`b", [Mark("code", 0, 3)], "``a`b``"),
        ("`x", [Mark("code", 0, 2)], "`` `x ``"),
        ("print(1)", [Mark("pre", 0, 8, language="python")], "```python\nprint(1)\n```"),
        ("see\nx\nend", [Mark("pre", 4, 5)], "see\n```\nx\n```\nend"),
        ("a x b", [Mark("pre", 2, 3)], "a \n```\nx\n```\n b"),
        ("```", [Mark("pre", 0, 3)], "````\n```\n````"),
        ("my site", [Mark("text_link", 3, 7, url="https://x.example")], "my [site](https://x.example)"),
        ("a\nb", [Mark("blockquote", 0, 3)], "> a\n> b\n"),
        ("hi @me there", [Mark("drop", 3, 7)], "hi there"),
        ("secret", [Mark("spoiler", 0, 6)], "secret"),
        ("abcd", [Mark("bold", 0, 3), Mark("italic", 2, 4)], "**abc**d"),
        ("  ", [Mark("bold", 0, 2)], "  "),
        ("abc", [Mark("bold", 1, 2)], "a**b**c"),
        ("abc", [Mark("italic", 1, 2)], "a*b*c"),
        ("11", [Mark("bold", 0, 1)], "11"),
        ("a\n\nb", [Mark("bold", 0, 4)], "**a**\n\n**b**"),
        ("אבג דה", [Mark("bold", 0, 3), Mark("italic", 4, 6)], "**אבג** _דה_"),
        ("👍 ok", [Mark("custom_emoji", 0, 1), Mark("bold", 2, 4)], "👍 **ok**"),
        ("Ada did", [Mark("text_mention", 0, 3)], "Ada did"),
        (
            "[x] y",
            [Mark("text_link", 0, 3, url="https://x.example/a b)")],
            "[\\[x\\]](<https://x.example/a%20b)>) y",
        ),
        ("a\nb", [Mark("code", 0, 3)], "```\na\nb\n```"),
        ("hey!you", [Mark("text_link", 4, 7, url="https://x.example")], "hey\\![you](https://x.example)"),
        ("ab", [Mark("code", 0, 1), Mark("code", 1, 2)], "`a` `b`"),
        (" a ", [Mark("code", 0, 3)], "`  a  `"),
        ("x quote y", [Mark("blockquote", 2, 7)], "x \n> quote\n\n y"),
        ("q", [Mark("bold", 0, 1), Mark("blockquote", 0, 1)], "> **q**\n"),
        ("q\nr", [Mark("expandable_blockquote", 0, 3), Mark("bold", 2, 3)], "> q\n> **r**\n"),
        (
            "a b c d",
            [Mark("bold", 0, 7), Mark("italic", 2, 5), Mark("strikethrough", 4, 5)],
            "**a _b ~~c~~_ d**",
        ),
    ],
)
def test_each_kind_of_mark_is_written_as_markdown(text: str, marks: list[Mark], expected: str) -> None:
    assert to_markdown(text, marks) == expected


@given(st.text(max_size=60))
def test_text_without_marks_is_untouched(text: str) -> None:
    assert to_markdown(text, []) == text


@given(st.text(max_size=40), st.data())
def test_no_mark_loses_a_word(text: str, data: st.DataObject) -> None:
    spans = data.draw(
        st.lists(
            st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).filter(lambda p: p[0] < p[1]),
            max_size=6,
        )
    )
    kinds = st.sampled_from(["bold", "italic", "code", "spoiler", "text_link", "strikethrough"])
    marks = [Mark(data.draw(kinds), start, end, url="u") for start, end in spans]
    rest = iter(to_markdown(text, marks))
    assert all(char in rest for char in text if not char.isspace())


@given(st.text(max_size=40))
def test_positions_turn_utf16_offsets_into_places(text: str) -> None:
    table = positions(text)
    assert len(table) == len(text.encode("utf-16-le", "surrogatepass")) // 2 + 1
    for index, char in enumerate(text):
        offset = len(text[:index].encode("utf-16-le", "surrogatepass")) // 2
        assert text[table[offset]] == char


LINK = "https://e.example/x_(y)"
STYLES = (
    "bold",
    "italic",
    "strikethrough",
    "underline",
    "spoiler",
    "text_mention",
    "custom_emoji",
    "text_link",
)
OUTER = ("code", "pre", "blockquote", "expandable_blockquote")
PLAIN = st.text(alphabet="abZ é重注。、.,!? \n👍🏽👨‍👩‍👧שלוםا1", min_size=1, max_size=30)


def nested_marks(draw: st.DrawFn, start: int, end: int, around: tuple[str, ...]) -> list[Mark]:
    """Marks as Telegram has them: side by side or one inside the other, code and pre alone."""
    marks: list[Mark] = []
    for _ in range(draw(st.integers(0, 2)) if len(around) < 3 else 0):
        if start >= end:
            break
        left = draw(st.integers(start, end - 1))
        right = draw(st.integers(left + 1, end))
        kinds = [kind for kind in (STYLES if around else STYLES + OUTER) if kind not in around]
        kind = draw(st.sampled_from(kinds))
        marks.append(Mark(kind, left, right, LINK, "py" if kind == "pre" else ""))
        if kind not in ("code", "pre"):
            marks += nested_marks(draw, left, right, (*around, kind))
        start = right
    return marks


@st.composite
def formatted(draw: st.DrawFn) -> tuple[str, list[Mark]]:
    text = draw(PLAIN)
    return text, nested_marks(draw, 0, len(text), ())


@given(formatted())
def test_the_markdown_reads_as_the_formatted_text_did(message: tuple[str, list[Mark]]) -> None:
    text, marks = message
    shown = telegram_text(to_markdown(text, marks)).text
    assert re.sub(r"\s", "", shown.replace(f"({LINK})", "")) == re.sub(r"\s", "", text)
