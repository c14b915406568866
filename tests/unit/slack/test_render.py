"""Answers, notices and errors: within Slack's limits, with one live mention at most."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Actor, OutboundFile, OutboundMessage
from channels.slack import render
from channels.slack.limits import LIMITS
from tests.unit.slack.blockkit import checked_message, live, shown, walk

ADA = Actor("slack", "T1", "U0ADA")
Kind = Literal["answer", "notice", "error"]
WILD = st.text(max_size=300) | st.sampled_from(
    [
        "x" * 9000,
        "😀" * 5000,
        "\n" * 50,
        "- `a` `b``c` *d*\n" * 900,
        "> a\n\n```\nb\n```",
        "<!channel> @here",
        "\ud83d",
    ]
)


def sent(text: str, **more: Any) -> dict[str, Any]:
    [part] = render.parts(OutboundMessage(text=text, **more))
    drawn = render.message(part)
    checked_message(drawn)
    return drawn


@given(WILD, st.sampled_from(["answer", "notice", "error"]), st.booleans(), st.sampled_from([None, ADA]))
def test_every_part_is_one_that_slack_takes_and_only_the_gateways_mention_is_live(
    text: str, kind: Kind, repeat: bool, mention: Actor | None
) -> None:
    parts = render.parts(
        OutboundMessage(text=text, kind=kind, repeat=repeat, mentions=(mention,) if mention else ())
    )
    assert parts
    for index, part in enumerate(parts):
        drawn = render.message(part)
        checked_message(drawn)
        assert render.parts(part) == (part,)
        mrkdwn = [drawn["text"], *(e["text"] for e in walk(drawn["blocks"]) if e.get("type") == "mrkdwn")]
        mentions = [text.count("<@") + text.count("<!") for text in mrkdwn]
        assert mentions[0] == (1 if mention and index == 0 else 0)
        assert sum(mentions[1:]) <= mentions[0]
        assert not any(e["type"] in ("user", "usergroup", "broadcast") for e in live(drawn))


@given(WILD)
def test_the_cut_depends_on_the_text_alone(text: str) -> None:
    plain = render.parts(OutboundMessage(text=text))
    dressed = render.parts(OutboundMessage(text=text, kind="error", repeat=True, mentions=(ADA,)))
    assert [part.text for part in plain] == [part.text for part in dressed]


def test_links_are_never_unfolded() -> None:
    drawn = sent("see https://example.com")
    assert (drawn["unfurl_links"], drawn["unfurl_media"]) == (False, False)
    assert render.content(OutboundMessage(text="x")).keys() == {"text", "blocks"}


def test_c008_words_of_a_model_page_nobody() -> None:
    drawn = sent("<!channel> deploy done, cc <@U0AAAAAAA> and <!subteam^S0AAA>, also @here")
    right = "&lt;!channel&gt; deploy done, cc &lt;@U0AAAAAAA&gt; and &lt;!subteam^S0AAA&gt;, also @here"
    assert drawn["text"] == right
    assert drawn["blocks"][0]["text"] == {"type": "mrkdwn", "text": right, "verbatim": True}


def test_a_mention_stands_in_front_of_the_words_and_is_live() -> None:
    drawn = sent("You are asked.", mentions=(ADA,))
    assert drawn["text"] == "<@U0ADA> You are asked."
    assert drawn["blocks"][0]["text"]["text"] == "<@U0ADA> You are asked."


def test_everybody_who_is_wanted_is_mentioned_as_far_as_there_is_room() -> None:
    people = tuple(Actor("slack", "T1", f"U0AAAAAA{n}") for n in range(7))
    groups = tuple(f"S0AAAAAA{n}" for n in range(7))
    drawn = sent("Still waiting.", kind="notice", mentions=(*people, *people), mention_roles=(*groups, "U1"))
    marks = [*(f"<@{actor.user}>" for actor in people), *(f"<!subteam^{group}>" for group in groups[:3])]
    assert drawn["text"] == f"{' '.join(marks)} Still waiting."
    assert drawn["blocks"][0]["text"]["text"] == drawn["text"]
    full, *_ = render.parts(OutboundMessage(text="word " * 4000, mentions=people, repeat=True))
    checked_message(render.message(full))
    assert 1 <= render.message(full)["text"].count("<@") <= len(people)


@pytest.mark.parametrize("text", ["> quoted", "```\ncode\n```", "a `b``c` d"])
def test_a_mention_before_a_quote_code_or_rich_text_has_a_line_of_its_own(text: str) -> None:
    drawn = sent(text, mentions=(ADA,))
    assert drawn["blocks"][0]["text"]["text"] == "<@U0ADA>"
    assert len(drawn["blocks"]) == 2


@pytest.mark.parametrize("actor", [Actor("telegram", "7", "42"), Actor("slack", "T1", "U1> <!here")])
def test_whoever_is_no_user_of_slack_is_not_mentioned(actor: Actor) -> None:
    assert sent("hello", mentions=(actor,))["text"] == "hello"


def test_a_short_notice_is_small_a_long_one_and_an_answer_are_not() -> None:
    assert sent("Noted.", kind="notice")["blocks"][0]["type"] == "context"
    assert sent("word " * 100, kind="notice")["blocks"][0]["type"] == "section"
    assert sent("Noted.")["blocks"][0]["type"] == "section"


def test_an_error_has_its_sign() -> None:
    assert sent("It failed.", kind="error")["text"] == "⚠️ It failed."


def test_a_repeat_says_so_in_words_and_in_blocks() -> None:
    drawn = sent("Done.", repeat=True)
    note = "(this may be a repeat: the connection broke while it was sent)"
    assert drawn["text"] == f"Done.\n\n_{note}_"
    assert shown(drawn["blocks"]).endswith(note)


def test_an_empty_message_still_has_a_part() -> None:
    assert sent(" \n ")["text"] == "(no text)"


def test_files_are_parts_of_their_own_after_the_words(tmp_path: Path) -> None:
    files = tuple(OutboundFile(path=tmp_path / name, name=name) for name in ("a", "b"))
    parts = render.parts(OutboundMessage(text="See.", files=files, only=ADA))
    assert [(part.text, part.files, part.only) for part in parts] == [
        ("See.", (), ADA), ("", files[:1], ADA), ("", files[1:], ADA),
    ]  # fmt: skip


def test_many_small_runs_of_rich_text_become_plain_words_rather_than_too_many_blocks() -> None:
    [part] = render.parts(OutboundMessage(text="`` a`b `` " + "**x** _y_ " * 300))
    assert part.blocks[0]["type"] == "rich_text"
    drawn = render.message(part)
    checked_message(drawn)
    assert drawn["blocks"] == []
    assert drawn["text"].count("*x* _y_") == 300


@given(st.text(), st.sampled_from(["", "&" * 5000]))
def test_a_private_notice_is_inert_and_fits(text: str, more: str) -> None:
    drawn = render.private(text + more)
    checked_message(drawn)
    assert live(drawn) == []


def test_limits_are_those_of_the_platform() -> None:
    assert (LIMITS.text, LIMITS.button_bytes, LIMITS.buttons, LIMITS.button_label) == (3900, 64, 25, 75)
