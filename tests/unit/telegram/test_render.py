"""What is drawn fits Telegram, says everything, and offers nothing that was not asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Actor, Button, Card, CardField, Choice, Form, FormField, OutboundMessage
from channels.render.inert import visible
from channels.telegram import cards, forms, render
from channels.telegram.limits import ENTITIES, LIMITS
from tests.contracts.harness import an_approval, settled
from tests.platforms.telegram.checks import checked_markup, checked_text, utf16_len, utf16_slice

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=300)
WILD = TEXTS | st.sampled_from(
    ["x" * 5000, "😀" * 3000, "\n" * 50, "a b " * 2000, "\u200b" * 900, "\ud83d x", "```\n\0 \udc00\n```"]
)
FIELDS = st.lists(st.builds(CardField, name=TEXTS, value=WILD), max_size=60).map(tuple)


def checked(drawn: render.Drawn) -> None:
    """What the platform would check."""
    clipped = render.clipped(drawn)
    kinds = [
        {"type": s.type, "offset": s.offset, "length": s.length, "url": s.url, "user": {"id": s.user}}
        for s in clipped.spans
    ]
    checked_text(clipped.text, kinds)
    rows = [[{"text": key.label, "callback_data": key.data} for key in row] for row in clipped.rows]
    checked_markup({"inline_keyboard": rows})


@given(TEXTS, WILD, FIELDS, WILD, st.sampled_from(["open", "decided"]))
def test_every_card_is_one_that_telegram_takes(
    title: str, summary: str, fields: tuple[CardField, ...], status: str, state: str
) -> None:
    card = an_approval(
        title=title, summary=summary, fields=fields, status=status, deciders=status, state=state
    )
    file = cards.args_file(card)
    for readable in (True, False):
        checked(cards.card(card, file=file, readable=readable))


@given(FIELDS)
def test_every_argument_is_on_the_card_or_in_the_file(fields: tuple[CardField, ...]) -> None:
    card = an_approval(fields=fields)
    file = cards.args_file(card)
    drawn = cards.card(card, file=file)
    for field in fields:
        shown = visible(field.value).rstrip("\n")
        assert shown in (file.content.decode() if file else drawn.text)
    if file is None:
        assert drawn == render.clipped(drawn)
        blocks = [utf16_slice(drawn.text, s.offset, s.length) for s in drawn.spans if s.type == "pre"]
        assert [block.rstrip("↵") for block in blocks] == [
            visible(f.value).rstrip("\n").rstrip("↵") or ("" if f.value else "(empty)") for f in fields
        ]
    else:
        assert file.sha256 in drawn.text
        assert f"{len(file.content):,} bytes" in drawn.text


@given(
    st.lists(
        st.builds(Choice, label=TEXTS.filter(str.strip), data=st.just("v1:q:1"), description=WILD),
        max_size=150,
    )
)
def test_every_question_is_one_that_telegram_takes(choices: list[Choice]) -> None:
    for multi in (False, True):
        card = Card(
            card_id="q", kind="question", state="open", title="?", choices=tuple(choices), multi=multi,
            buttons=(Button(label="Confirm", data="v1:q:done"),),
        )  # fmt: skip
        drawn = cards.card(card)
        checked(drawn)
        assert drawn.rows[-1][-1].label == "Confirm"


def test_c054_options_that_begin_alike_are_all_read_in_full_and_numbered_buttons_choose() -> None:
    labels = [f"{'The same beginning of every label, '.ljust(80, '-')}then {n:9}" for n in range(1, 27)]
    choices = tuple(Choice(label=label, data=f"v1:q:{n}") for n, label in enumerate(labels, 1))
    drawn = cards.card(Card(card_id="q", kind="question", state="open", title="Which?", choices=choices))
    checked(drawn)
    assert [f"{n}. {label}\n" in f"{drawn.text}\n" for n, label in enumerate(labels, 1)] == [True] * 26
    keys = [key for row in drawn.rows for key in row]
    assert [key.data for key in keys] == [choice.data for choice in choices]
    assert [key.label.partition(".")[0] for key in keys] == [str(n) for n in range(1, 27)]


KINDS: list[Literal["answer", "notice", "error"]] = ["answer", "notice", "error"]


@given(WILD, st.sampled_from(KINDS), st.booleans())
def test_every_part_is_one_that_telegram_takes(
    text: str, kind: Literal["answer", "notice", "error"], repeat: bool
) -> None:
    message = OutboundMessage(
        text=text,
        kind=kind,
        repeat=repeat,
        mentions=(Actor("telegram", "777", "42"),),
    )
    parts = render.parts(message)
    assert parts
    for part in parts:
        checked(render.drawn_part(part))
        assert render.parts(part) == (part,)


def test_everybody_who_is_wanted_is_called_by_a_bell_and_a_message_holds_ten() -> None:
    people = tuple(Actor("telegram", "777", str(40 + n)) for n in range(12))
    wanted = OutboundMessage(text="Still waiting.", kind="notice", mentions=(*people, people[0]))
    [part] = render.parts(wanted)
    drawn = render.drawn_part(part)
    checked(drawn)
    assert [span.user for span in drawn.spans if span.type == "text_mention"] == [40 + n for n in range(10)]
    assert drawn.text == f"{'🔔' * 10} Still waiting."


def test_what_is_no_character_is_replaced_without_moving_anything() -> None:
    assert render.sound("a\ud83d\0😀") == "a\ufffd\ufffd😀"
    assert utf16_len(render.sound("a\ud83d\0😀")) == 5


def test_a_field_cannot_imitate_another_field() -> None:
    card = an_approval(
        fields=(CardField(name="note", value="x\n\namount:\n1"), CardField(name="amount", value="900"))
    )
    drawn = cards.card(card)
    bold = [utf16_slice(drawn.text, s.offset, s.length) for s in drawn.spans if s.type == "bold"]
    assert bold[1:] == ["note:", "amount:"]


def test_line_ends_behind_an_argument_are_seen() -> None:
    drawn = cards.card(
        an_approval(fields=(CardField(name="text", value="x\n\n"),), code="", deciders="", expires="")
    )
    assert "x↵↵" in drawn.text


def test_nobody_is_mentioned_by_a_cards_words() -> None:
    card = an_approval(title="@everybody look", summary="ask @bob", deciders="@carol")
    drawn = cards.card(card)
    assert "@everybody" not in drawn.text
    assert "@bob" not in drawn.text
    assert "@carol" not in drawn.text


def test_tones_become_styles_and_short_buttons_stand_side_by_side() -> None:
    [row] = cards.keyboard(an_approval())
    assert [(key.label, key.style) for key in row] == [("Approve", "primary"), ("Deny", "danger")]


def test_a_settled_card_has_its_status_and_no_buttons_and_no_code() -> None:
    drawn = cards.card(settled(an_approval(), "Approved by Ada"))
    assert drawn.rows == ()
    assert "Approved by Ada" in drawn.text
    assert "K7M2" not in drawn.text


def test_a_card_that_cannot_be_read_offers_only_what_refuses() -> None:
    buttons = (
        Button(label="Approve", data="v1:p:approve", tone="primary"),
        Button(label="Approve for this session", data="v1:p:approve_session"),
        Button(label="Edit", data="v1:p:edit"),
        Button(label="Deny", data="v1:p:deny", tone="danger"),
        Button(label="Deny with feedback", data="v1:p:deny_why"),
    )
    rows = cards.keyboard(an_approval(buttons=buttons), readable=False)
    assert [key.label for row in rows for key in row] == ["Deny", "Deny with feedback"]


def test_a_button_of_a_form_carries_the_names_of_its_fields() -> None:
    form = Form(data="v1:p:deny_why", title="Why?", fields=(FormField(name="feedback", label="Reason"),))
    card = an_approval(buttons=(Button(label="Why", data=form.data),), forms=(form,))
    assert cards.keyboard(card)[0][0].data == "v1:p:deny_why?feedback"


@given(FIELDS, TEXTS)
def test_every_prompt_is_one_that_telegram_takes_and_reads_back(
    fields: tuple[CardField, ...], name: str
) -> None:
    form = Form(
        data="v1:p:edit",
        title="Edit",
        fields=tuple(
            FormField(name=f"f{n}", label=f.name, value=f.value, hint="h") for n, f in enumerate(fields[:8])
        ),
    )
    names = tuple(field.name for field in form.fields) or ("x",)
    seal, prompt = forms.Seal("777:s"), forms.Prompt(data=form.data, card=5, names=names)
    line = seal.write(prompt, 42)
    for known in (form, None):
        drawn = render.prompt(
            prompt, line, form=known, label="Edit", asked=Actor("telegram", "777", "42"), name=name
        )
        checked(drawn)
        assert seal.read(drawn.text, 42) == prompt


@pytest.mark.parametrize("limit", [2, 10, 200])
@given(text=TEXTS)
def test_a_cut_keeps_the_limit_and_whole_graphemes(limit: int, text: str) -> None:
    short = render.cut(text, limit)
    assert utf16_len(short) <= limit
    assert short == text or short.endswith("…")


def test_the_repeat_mark_of_a_card_is_drawn() -> None:
    assert "repeat" in cards.card(replace(an_approval(), repeat=True)).text


def test_limits_are_those_of_the_platform() -> None:
    assert (LIMITS.text, LIMITS.unit, LIMITS.button_bytes, LIMITS.buttons, ENTITIES) == (
        4096,
        "utf16",
        64,
        100,
        100,
    )
