"""The terminal's and the web page's forms."""

from __future__ import annotations

import pytest

from channels.render.html import safe_html
from channels.render.payloads import payloads
from channels.render.plain import plain_text


def test_plain_text_has_the_words_and_no_markup() -> None:
    source = "# T\n\n**b** `c` [l](https://x.example)\n\n- a\n  1. b\n\n> q\n> r\n\n```py\n x\n```"
    assert plain_text(source) == "T\n\nb c l (https://x.example)\n\n• a\n  1. b\n\n> q\n> r\n\n x"


def test_plain_text_lets_no_control_character_reach_a_terminal() -> None:
    assert plain_text("a\x1b[31m\n\n```\n\x1b]0;x\x07\n```") == "a\\u{1B}[31m\n\n\\u{1B}]0;x\\u{7}"


def test_a_wide_table_is_shown_row_by_row() -> None:
    wide = "word " * 30
    assert plain_text(f"|a|b|\n|-|-|\n|1|{wide}|\n|2|x|") == f"a: 1\nb: {wide.strip()}\n\na: 2\nb: x"


def test_a_row_with_too_many_cells_loses_none() -> None:
    assert plain_text("|a|b|\n|-|-|\n|1|2|**3**|4|") == "a | b\n--|----------\n1 | 2 | 3 | 4"


def test_text_right_below_a_table_is_text() -> None:
    assert plain_text("|a|b|\n|-|-|\n|1|2|\nmore **text**\nhere") == "a | b\n--|--\n1 | 2\nmore text\nhere"


def test_a_table_with_links_keeps_them_as_links() -> None:
    assert plain_text("|a|\n|-|\n|[x](https://x.example)|") == "a: x (https://x.example)"


def test_html_escapes_everything_and_opens_links_safely() -> None:
    assert safe_html('<script>alert("1")</script> & [a"b](https://x.example/?a=1&b="c)') == (
        "<p>&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; "
        '<a href="https://x.example/?a=1&amp;b=%22c" target="_blank" rel="noopener noreferrer">'
        "a&quot;b</a></p>"
    )


@pytest.mark.parametrize(
    "source",
    [
        "[x](javascript:alert(1))",
        "[x](data:text/html,1)",
        "[x](vbscript:1)",
        "[x](relative)",
        "![x](javascript:1)",
    ],
)
def test_html_links_nothing_but_http_https_and_mailto(source: str) -> None:
    assert "<a" not in safe_html(source)


def test_html_never_loads_an_image() -> None:
    html = safe_html("![alt](https://x.example/track.png)")
    assert "<img" not in html
    assert html.startswith('<p><a href="https://x.example/track.png"')


def test_html_draws_every_block() -> None:
    source = "# T\n\na\nb\n\n1. x\n2. [x] y\n\n> q\n\n|a|b|\n|-|-:|\n|1|2|\n\n---\n\n```py\n<\n```"
    html = safe_html(source)
    for part in (
        "<h1>T</h1>",
        "<p>a<br>\nb</p>",
        "<ol>\n<li>x</li>\n<li>☑ y</li>\n</ol>",
        "<blockquote><p>q</p></blockquote>",
        '<tr><td>1</td><td class="right">2</td></tr>',
        "<hr>",
        '<pre><code class="language-py">&lt;</code></pre>',
    ):
        assert part in html


def test_payloads_have_the_shape_of_each_platform() -> None:
    assert payloads("telegram", "**a**") == [
        {"text": "a", "entities": [{"type": "bold", "offset": 0, "length": 1}]}
    ]
    assert payloads("discord", "**a**") == [{"content": "**a**"}]
    assert payloads("plain", "**a**") == [{"text": "a"}]
    assert payloads("slack", "**a**")[0]["text"] == "*a*"
    assert payloads("plain", " ") == []
