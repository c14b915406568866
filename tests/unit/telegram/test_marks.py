"""A person's formatted text becomes Markdown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
