"""What holds for every text: nothing lost, nothing too long, nothing torn, nothing forged."""

from __future__ import annotations

import html as html_module
import re
import sys
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from channels.render.discord import discord_messages
from channels.render.html import safe_html
from channels.render.inert import visible
from channels.render.measure import graphemes, is_blank, utf16_len
from channels.render.plain import plain_text
from channels.render.slack import slack_messages
from channels.render.stream import presentable
from channels.render.telegram import (
    TelegramText,
    telegram_html,
    telegram_html_messages,
    telegram_messages,
    telegram_text,
)

WORDS = st.sampled_from(
    [
        "alpha",
        "x1",
        "Ünï",
        "重要",
        "注意。",
        "end.",
        "R&D",
        "a<b",
        "👨‍👩‍👧‍👦",
        "🇩🇪",
        "e\u0301tude",
        "snake_case",
        "🚀" * 3,
    ]
)
PHRASE = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)
INLINE = st.one_of(
    PHRASE,
    PHRASE.map("**{}**".format),
    PHRASE.map("*{}*".format),
    PHRASE.map("~~{}~~".format),
    st.sampled_from(["`code`", "`a < b`", "`` a`b ``", "**a `b` c**", "***both***"]),
    PHRASE.map("[{}](https://example.com/p?a=1&b=2)".format),
)
LINE = st.lists(INLINE, min_size=1, max_size=4).map(" ".join)
CODE = st.sampled_from(["x = 1", "    indented", "", "a < b && c", "**not bold**", "y" * 90, "重要 = '注意'"])
FENCE = st.tuples(st.sampled_from(["", "py", "c++"]), st.lists(CODE, min_size=1, max_size=30)).map(
    lambda parts: f"```{parts[0]}\n" + "\n".join(parts[1]) + "\n```"
)
BLOCK = st.one_of(
    LINE,
    st.lists(LINE, min_size=1, max_size=4).map("\n".join),
    LINE.map("## {}".format),
    st.lists(LINE, min_size=1, max_size=6).map(lambda lines: "\n".join(f"- {line}" for line in lines)),
    st.lists(LINE, min_size=1, max_size=6).map(
        lambda lines: "\n".join(f"{n}. {x}" for n, x in enumerate(lines))
    ),
    st.lists(LINE, min_size=1, max_size=5).map(lambda lines: "\n".join(f"> {line}" for line in lines)),
    FENCE,
    st.just("---"),
)
ANSWERS = st.lists(BLOCK, min_size=1, max_size=8).map("\n\n".join)
NOISE = st.text(
    alphabet=st.one_of(
        st.sampled_from("ab \n*_~`[]()|#>-!1.\\<&@:/"),
        st.sampled_from("重\u0301\u200d👩🇩\u202e\u200b\ufe0f\x1b\ud83d\t"),
        st.characters(),
    ),
    max_size=300,
)
LIMITS = st.integers(min_value=20, max_value=400)


def squeezed(text: str) -> str:
    """Without white space, which cuts may drop."""
    return re.sub(r"\s", "", text)


def entities_are_sound(message: TelegramText) -> bool:
    """In range, nested, code holding nothing, no offset inside a surrogate pair."""
    units = message.text.encode("utf-16-le")
    stack: list[tuple[int, str]] = []
    for entity in message.entities:
        end = entity.offset + entity.length
        if entity.length <= 0 or end * 2 > len(units):
            return False
        units[entity.offset * 2 : end * 2].decode("utf-16-le")
        while stack and stack[-1][0] <= entity.offset:
            stack.pop()
        if stack and (end > stack[-1][0] or stack[-1][1] in ("code", "pre")):
            return False
        if entity.type in ("code", "pre") and any(kind != "blockquote" for _, kind in stack):
            return False
        stack.append((end, entity.type))
    return True


def balanced(markup: str, allowed: str) -> bool:
    """Only these tags, each closed in its turn."""
    stack: list[str] = []
    for closing, name in re.findall(r"<(/?)([a-z0-9]+)(?: [a-z]+=\"[^\"<>]*\")*>", markup):
        if name not in allowed.split():
            return False
        if name in ("br", "hr"):
            continue
        if not closing:
            stack.append(name)
        elif not stack or stack.pop() != name:
            return False
    return not stack and "<" not in re.sub(r"</?[a-z0-9]+(?: [a-z]+=\"[^\"<>]*\")*>", "", markup)


@given(st.one_of(ANSWERS, NOISE), LIMITS)
def test_telegram_messages_join_to_the_text_and_keep_every_limit(source: str, limit: int) -> None:
    messages = telegram_messages(source, limit)
    whole = telegram_text(source).text
    assert squeezed("".join(message.text for message in messages)) in (squeezed(whole), "")
    assert len(messages) <= len(whole) + 1
    for message in messages:
        assert 0 < utf16_len(message.text) <= limit
        assert not is_blank(message.text)
        assert len(message.entities) <= 100
        assert entities_are_sound(message)
    assert bool(messages) != is_blank(whole)


@given(ANSWERS, LIMITS)
def test_no_grapheme_is_torn(source: str, limit: int) -> None:
    whole = set(graphemes(telegram_text(source).text))
    for message in telegram_messages(source, limit):
        assert set(graphemes(message.text)) <= whole


@given(st.one_of(ANSWERS, NOISE), st.integers(min_value=200, max_value=600))
def test_telegram_html_is_balanced_and_says_the_same_as_the_entities(source: str, limit: int) -> None:
    whole = telegram_html(source)
    assert balanced(whole, "b i s code pre a blockquote")
    assert html_module.unescape(re.sub(r"<[^<>]*>", "", whole)) == telegram_text(source).text
    for part in telegram_html_messages(source, limit):
        assert balanced(part, "b i s code pre a blockquote")
        assert 0 < utf16_len(part) <= limit


@given(ANSWERS)
def test_every_word_arrives_on_every_platform(source: str) -> None:
    # Markup and link targets aside, what was written is what is read.
    words = re.sub(r"\]\([^)]*\)|```[\w+]*|[-*_~`\[\]>#|.\s\d]", "", source)
    assume(words)  # a text of mere markup is shown as it was written
    for shown in (
        telegram_text(source).text,
        re.sub(r"\(https://[^)]*\)", "", plain_text(source)),
        html_module.unescape(re.sub(r"<[^<>]*>", "", safe_html(source))),
        re.sub(r"\]\(<[^)]*>\)|```[\w+]*", "", "\n".join(discord_messages(source))).replace("\u200b", ""),
        html_module.unescape(
            re.sub(r"<https[^|<>]*\||(?<=\w)>", "", "".join(m.text for m in slack_messages(source)))
        ).replace("\u200b", ""),
    ):
        assert re.sub(r"[-*_~`\[\]>#|•◦—.\\\s\d]", "", shown) == words.replace(">", "")


@given(st.one_of(ANSWERS, NOISE))
def test_slack_gets_nothing_but_its_own_markup_within_its_limits(source: str) -> None:
    for message in slack_messages(source):
        assert 0 < utf16_len(message.text) <= 3900
        assert re.fullmatch(r"(?:[^&<]|&(?:amp|lt|gt);|<(?:https?|mailto):[^<>]+>)*", message.text)
        assert 0 < len(message.blocks) <= 50
        for block in message.blocks:
            if block["type"] == "section":
                assert 1 <= utf16_len(block["text"]["text"]) <= 3000
            else:
                assert block["elements"]
                assert all(element["elements"] for element in block["elements"])


@given(st.one_of(ANSWERS, NOISE), st.integers(min_value=60, max_value=500))
def test_discord_messages_keep_their_limit_and_their_fences(source: str, limit: int) -> None:
    for message in discord_messages(source, limit):
        assert 0 < utf16_len(message) <= limit
        assert not message.isspace()
        assert re.search(r"(?<!\\)<(?:@[!&]?|#)\d", re.sub(r"(?s)(`+).*?\1", "", message)) is None


@given(st.lists(CODE, min_size=1, max_size=12).map("\n".join).filter(lambda code: code.strip() != ""))
def test_code_is_the_same_on_every_platform_to_the_last_byte(code: str) -> None:
    source = f"See:\n\n```py\n{code}\n```\n\nDone."
    message = telegram_text(source)
    (pre,) = message.entities
    units = message.text.encode("utf-16-le")
    assert units[pre.offset * 2 : (pre.offset + pre.length) * 2].decode("utf-16-le") == code
    assert f"```py\n{code}\n```" in discord_messages(source)[0]
    slack_code = slack_messages(source)[0].text.split("```\n")[1].removesuffix("\n")
    assert html_module.unescape(slack_code) == code
    assert f"See:\n\n{code}\n\nDone." == plain_text(source)
    assert f'<code class="language-py">{html_module.escape(code)}</code>' in safe_html(source)


@given(st.one_of(ANSWERS, NOISE))
def test_html_has_only_its_own_tags_balanced(source: str) -> None:
    tags = "p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code table thead tbody tr th td hr br strong em del a"
    page = safe_html(source)
    assert balanced(page, tags)
    assert all(
        href.startswith(("http://", "https://", "mailto:")) for href in re.findall(r'href="([^"]*)"', page)
    )


@given(NOISE)
def test_an_inert_text_holds_nothing_invisible_and_loses_nothing_visible(text: str) -> None:
    shown = visible(text)
    assert all(
        char.isprintable() or char in "\n\t " or not is_blank(char) or char.isspace() for char in shown
    )
    assert [char for char in text if char.isalnum()] == [
        char
        for char in re.sub(r"\\u\{[0-9A-F]+\}|\[\d+ [a-z ]+\]|\[mixed scripts: [^\]]*\]", "", shown)
        if char.isalnum()
    ]


@pytest.mark.parametrize(
    "render", [telegram_messages, slack_messages, discord_messages, safe_html, presentable]
)
def test_time_grows_with_the_length_and_no_faster(render: Callable[[str], object]) -> None:
    answer = (
        "# T\n\nSome **bold** `code` [l](https://x.example), and more.\n\n- a\n- b\n\n```py\nx = 1\n```\n\n"
    )
    render(answer * 20)

    def calls(times: int) -> int:
        """How many functions run, Python's and C's: the same on a quiet machine and on a busy one."""
        made = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal made
            made += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            render(answer * times)
        finally:
            sys.setprofile(None)
        return made

    assert calls(800) < 10 * calls(100)  # eight times the text


@given(st.sampled_from("[(*_`~<>|!#-\\&@:1\n🚀\u0301"), st.sampled_from("[(*_`~<>|!#-\\&a \n"))
def test_repeated_markup_neither_hangs_nor_breaks(first: str, second: str) -> None:
    source = (first + second) * 1500
    assert all(utf16_len(message.text) <= 4096 for message in telegram_messages(source))
    assert all(utf16_len(message) <= 2000 for message in discord_messages(source))
    assert all(utf16_len(message.text) <= 3900 for message in slack_messages(source))
