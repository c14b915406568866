"""Answers, notices and errors are ones that Discord takes, and page nobody unasked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Actor, OutboundFile, OutboundMessage
from channels.discord import render
from channels.discord.limits import EPHEMERAL, LIMITS, SUPPRESS_EMBEDS, THREAD_NAME
from channels.render.inert import visible
from channels.render.measure import utf16_len
from tests.golden.discord.generate import HERE, MESSAGES
from tests.platforms.discord.checks import mentioned, paged
from tests.unit.discord.rules import accepted

TEXTS = st.text(st.characters(codec="utf-8"), max_size=300)
WILD = TEXTS | st.sampled_from(
    [
        "x" * 5000,
        "😀" * 3000,
        "*" * 4000,
        "\n" * 50,
        "a b " * 2000,
        "\u200b" * 900,
        "- x\n" * 900,
        "```\ncode\n" * 300,
        "# big\n\ntext",
    ]
)
ADA = Actor("discord", "", "12345678901234567890")
KINDS: list[Literal["answer", "notice", "error"]] = ["answer", "notice", "error"]


@given(WILD, st.sampled_from(KINDS), st.booleans(), st.sampled_from([None, ADA]))
def test_every_part_is_one_that_discord_takes(
    text: str, kind: Literal["answer", "notice", "error"], repeat: bool, mention: Actor | None
) -> None:
    parts = render.parts(
        OutboundMessage(text=text, kind=kind, repeat=repeat, mentions=(mention,) if mention else ())
    )
    assert parts
    for part in parts:
        drawn = render.message(part)
        accepted(drawn)
        assert drawn["content"].strip()
        assert utf16_len(drawn["content"]) <= LIMITS.text
        assert render.parts(part) == (part,)
        assert part.text in drawn["content"] or kind == "notice"


@given(WILD)
def test_the_cut_depends_on_the_text_alone(text: str) -> None:
    plain = render.parts(OutboundMessage(text=text))
    dressed = render.parts(
        OutboundMessage(text=text, kind="error", repeat=True, mentions=(ADA,), reply_to="1")
    )
    assert [part.text for part in plain] == [part.text for part in dressed]


@given(TEXTS)
def test_every_private_notice_is_one_that_discord_takes_and_inert(text: str) -> None:
    drawn = render.private(text)
    accepted(drawn)
    assert drawn["flags"] & EPHEMERAL
    assert drawn["allowed_mentions"] == {"parse": []}


@pytest.mark.parametrize("text", ["*" * 4000, "x" * 4000, "\n- " * 900])
def test_a_long_private_notice_is_cut_and_not_refused(text: str) -> None:
    drawn = render.private(text)
    accepted(drawn)
    assert drawn["content"].endswith("…")


@given(WILD)
def test_who_asked_what_fits_above_a_thread_and_names_it(prompt: str) -> None:
    drawn = render.asked(ADA, prompt)
    accepted(drawn)
    assert drawn["content"].startswith(f"<@{ADA.user}> asked:\n> ")
    assert paged(mentioned(drawn["content"]), drawn["allowed_mentions"]) == []
    name = render.thread_name(prompt)
    assert 1 <= utf16_len(name) <= THREAD_NAME
    assert "\n" not in name


def test_c015_model_text_pages_nobody_and_stays_as_written() -> None:
    text = "Tell @everyone and <@&111111111111111111> and <@222222222222222222> that @here is done"
    for kind in KINDS:
        for part in render.parts(OutboundMessage(text=text, kind=kind)):
            drawn = render.message(part)
            assert drawn["allowed_mentions"] == {"parse": []}
            assert paged(mentioned(drawn["content"]), drawn["allowed_mentions"], replied="1") == []
            assert drawn["content"].replace("\\", "").endswith(text)


def test_c015_the_gateways_own_mention_pages_exactly_this_person() -> None:
    [part] = render.parts(OutboundMessage(text="@everyone, it waits for you", mentions=(ADA,)))
    drawn = render.message(part)
    assert drawn["content"] == f"<@{ADA.user}> @everyone, it waits for you"
    assert drawn["allowed_mentions"] == {"parse": [], "users": [ADA.user]}
    assert paged(mentioned(drawn["content"]), drawn["allowed_mentions"]) == [ADA.user]


def test_everybody_who_is_wanted_is_mentioned_as_far_as_there_is_room() -> None:
    people = tuple(Actor("discord", "", str(10**17 + n)) for n in range(7))
    roles = tuple(str(2 * 10**17 + n) for n in range(7))
    wanted = OutboundMessage(
        text="Still waiting.", kind="notice", mentions=(*people, *people), mention_roles=roles
    )
    [part] = render.parts(wanted)
    drawn = render.message(part)
    accepted(drawn)
    reached = [*(actor.user for actor in people), *roles[:3]]
    assert drawn["allowed_mentions"] == {"parse": [], "users": reached[:7], "roles": reached[7:]}
    assert paged(mentioned(drawn["content"]), drawn["allowed_mentions"]) == [
        *reached[:7],
        *(f"&{r}" for r in reached[7:]),
    ]
    full, *_ = render.parts(replace(wanted, text="word " * 1000, kind="answer", repeat=True))
    drawn = render.message(full)
    accepted(drawn)
    assert drawn["allowed_mentions"]["users"] == [people[0].user]


@pytest.mark.parametrize(
    "actor", [Actor("telegram", "", "42"), Actor("discord", "", "ada"), Actor("discord", "", "1> @everyone")]
)
def test_somebody_of_another_platform_is_not_mentioned(actor: Actor) -> None:
    [part] = render.parts(OutboundMessage(text="hello", mentions=(actor,)))
    assert render.message(part) == {"content": "hello", "flags": 0, "allowed_mentions": {"parse": []}}


def test_only_the_first_part_mentions_and_replies() -> None:
    parts = render.parts(OutboundMessage(text="word " * 1000, mentions=(ADA,), reply_to="77"))
    assert len(parts) > 1
    assert [part.mentions for part in parts] == [(ADA,)] + [()] * (len(parts) - 1)
    assert [part.reply_to for part in parts] == ["77"] + [""] * (len(parts) - 1)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("see https://example.org", SUPPRESS_EMBEDS),
        ("see [it](http://example.org)", SUPPRESS_EMBEDS),
        ("come to discord.gg/abc", SUPPRESS_EMBEDS),
        ("see example.org", 0),
    ],
)
def test_links_show_no_previews(text: str, flags: int) -> None:
    [part] = render.parts(OutboundMessage(text=text))
    assert render.message(part)["flags"] == flags


def test_notices_are_small_errors_are_marked_and_repeats_say_so() -> None:
    def shown(text: str, kind: Literal["answer", "notice", "error"], *, repeat: bool = False) -> str:
        [part] = render.parts(OutboundMessage(text=text, kind=kind, repeat=repeat))
        return str(render.message(part)["content"])

    assert shown("Stopped.\n\nBye.", "notice") == "-# Stopped.\n\n-# Bye."
    assert shown("- one\n- two", "notice") == "- one\n- two"
    assert shown("Broken.", "error") == "⚠️ Broken."
    assert shown("# Broken", "error") == "⚠️\n# Broken"
    assert shown("Yes.", "answer", repeat=True) == (
        "Yes.\n-# (this may be a repeat: the connection broke while it was sent)"
    )


def test_files_come_after_the_words_one_in_a_message() -> None:
    files = tuple(OutboundFile(path=Path(f"/nowhere/{n}"), name=f"{n}.png") for n in (1, 2))
    words, first, second = render.parts(OutboundMessage(text="two", files=files, mentions=(ADA,)))
    assert words.files == ()
    for part, name in ((first, "1.png"), (second, "2.png")):
        drawn = render.message(part)
        accepted(drawn)
        assert drawn["content"] == ""
        assert drawn["attachments"] == [{"id": 0, "filename": name}]
        assert drawn["allowed_mentions"] == {"parse": []}


def test_nothing_to_say_says_so() -> None:
    [part] = render.parts(OutboundMessage(text=" \n"))
    assert part.text == "(no text)"


@given(st.text(max_size=50))
def test_a_thread_is_named_in_visible_characters(text: str) -> None:
    name = render.thread_name(text)
    assert visible(name) == name or "[" in name


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_a_message_looks_as_it_was_agreed(name: str) -> None:
    drawn = render.message(render.parts(MESSAGES[name])[0])
    accepted(drawn)
    assert drawn == json.loads((HERE / f"message_{name}.json").read_text(encoding="utf-8"))
