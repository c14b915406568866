"""Cards with several requests, previews and mentions fit Telegram, whatever is in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Actor, Button, Card, CardField, Form, FormField
from channels.render.inert import visible
from channels.telegram import cards, forms, render
from channels.telegram.limits import LIMITS, MENTIONS
from tests.contracts.harness import a_shared_card, an_approval, decide
from tests.unit.telegram.test_render import TEXTS, WILD, checked

FIELDS = st.lists(st.builds(CardField, name=TEXTS, value=WILD), max_size=8).map(tuple)
LABELS = ("Approve", "Approve for this session", "Edit", "Deny", "Deny with feedback")
STATES: list[Literal["open", "decided"]] = ["open", "decided"]
ACTORS = st.lists(
    st.builds(Actor, st.just("telegram"), st.just("777"), st.text("0123456789", min_size=1, max_size=18)),
    max_size=14,
).map(tuple)


@st.composite
def calls(draw: st.DrawFn, number: int) -> Card:
    card_id = f"p_{number:020}"
    is_open = draw(st.booleans())
    data = [f"v1:{card_id}:{choice}" for choice in "ased f".replace(" ", "")]
    form = Form(data=data[4], title="Why?", fields=(FormField(name="feedback", label="Reason"),))
    tones = ("primary", "plain", "plain", "danger", "danger")
    buttons = tuple(
        Button(label=label, data=packed, tone=tone)  # type: ignore[arg-type]
        for label, packed, tone in zip(LABELS, data, tones, strict=True)
    )
    return an_approval(
        card_id=card_id,
        title=draw(TEXTS),
        summary=draw(WILD),
        fields=draw(FIELDS),
        preview=draw(st.just("") | WILD),
        preview_kind=draw(st.sampled_from(["text", "diff"])),
        code=f"cd{number:03}",
        state="open" if is_open else "decided",
        status="" if is_open else draw(WILD),
        buttons=buttons if is_open else (),
        forms=(form,) if is_open else (),
    )


@st.composite
def shared(draw: st.DrawFn) -> Card:
    count = draw(st.sampled_from([2, 3, 7, 19, 30, 120]))
    few = [draw(calls(number)) for number in range(1, min(count, 4) + 1)]
    extra = [replace(few[n % len(few)], card_id=f"p_{n + 5:020}") for n in range(count - len(few))]
    outer = a_shared_card(["x"] * count)
    status = draw(WILD)
    state = draw(st.sampled_from(STATES))
    return replace(
        outer, title=draw(TEXTS), status=status, calls=(*few, *extra), state=state, asks=draw(ACTORS)
    )


@given(shared(), st.booleans())
def test_every_card_of_several_calls_is_one_that_telegram_takes(card: Card, readable: bool) -> None:
    file = cards.args_file(card)
    drawn = cards.card(card, file=file, readable=readable)
    checked(drawn)
    keys = [key for row in drawn.rows for key in row]
    assert len(keys) <= LIMITS.buttons
    if card.state != "open":
        assert keys == []
    elif not readable:
        assert all("Deny" in key.label for key in keys)


@given(shared())
def test_everything_that_will_run_is_on_the_card_or_in_the_file(card: Card) -> None:
    file = cards.args_file(card)
    text = file.content.decode() if file else cards.card(card).text
    for call in card.calls:
        for field in call.fields:
            assert visible(field.value).rstrip("\n") in text
        assert visible(call.preview).rstrip("\n") in text


@given(WILD, FIELDS, ACTORS)
def test_every_card_with_a_preview_is_one_that_telegram_takes(
    preview: str, fields: tuple[CardField, ...], asks: tuple[Actor, ...]
) -> None:
    card = an_approval(fields=fields, preview=preview, asks=asks)
    drawn = cards.card(card, file=cards.args_file(card))
    checked(drawn)
    assert sum(span.type == "text_mention" for span in drawn.spans) == min(len(asks), MENTIONS)


def test_buttons_that_do_not_fit_come_when_calls_before_them_are_decided() -> None:
    card = a_shared_card([f"A-{n}" for n in range(1, 61)])
    assert len(cards.with_keys(card)) == 49  # two buttons each, and two for all
    before = cards.card(card, file=cards.args_file(card))
    assert "No room here for the buttons of 11 calls" in before.text
    for number in range(1, 21):
        card = decide(card, number, "Approved")
    assert len(cards.with_keys(card)) == 40
    assert "No room" not in cards.card(card, file=cards.args_file(card)).text


def test_a_call_without_room_for_buttons_is_named_by_its_code_even_when_nothing_can_be_read() -> None:
    card = a_shared_card([f"A-{n}" for n in range(1, 61)])
    text = cards.card(card, file=cards.args_file(card), readable=False).text
    assert "/deny CODE" in text
    assert "/approve CODE" not in text


@pytest.mark.parametrize(
    ("kind", "typed", "value"),
    [
        ("multi", "RED, blue", ("red", "blue")),
        ("multi", "blue\nblue; teal", ("blue", "teal")),
        ("multi", "one, two", ("one, two",)),
        ("multi", "", ()),
        ("select", " Blue ", "blue"),
        ("select", "teal", "teal"),
        ("boolean", "Yes", "true"),
        ("boolean", "maybe", "maybe"),
        ("date", " 2027-02-28 ", "2027-02-28"),
        ("integer", " 3", "3"),
        ("text", " as it is ", " as it is "),
    ],
)
def test_typed_words_take_the_form_of_their_kind(kind: str, typed: str, value: object) -> None:
    field = FormField(name="f", label="f", kind=kind, options=("red", "blue", "one, two"))  # type: ignore[arg-type]
    form = Form(data="v1:p:e", title="Edit", fields=(field,))
    assert forms.typed(form, {"f": typed, "other": "x"}) == {"f": value, "other": "x"}


@given(st.lists(st.builds(FormField, name=TEXTS, label=TEXTS, value=WILD, hint=WILD), max_size=90))
def test_the_last_line_of_the_longest_prompt_is_whole(fields: list[FormField]) -> None:
    form = Form(data="v1:p:edit", title="Edit", fields=tuple(fields))
    names = forms.short([field.name for field in fields] or ["x"])
    seal, prompt = forms.Seal("777:s"), forms.Prompt(data=form.data, card=5, names=names)
    drawn = render.prompt(
        prompt,
        seal.write(prompt, 42),
        form=form,
        label="Edit",
        asked=Actor("telegram", "777", "42"),
        name="Ada",
    )
    checked(drawn)
    assert seal.read(render.clipped(drawn).text, 42) == prompt


def test_a_prompt_says_what_each_value_may_be() -> None:
    fields = (
        FormField(name="day", label="day", kind="date", value="2027-01-01"),
        FormField(name="tags", label="tags", kind="multi", options=("red", "blue")),
        FormField(name="loud", label="Loudly?", kind="boolean"),
        FormField(name="count", label="count", kind="integer", hint="a whole number, like 12"),
        FormField(name="who", label="who", kind="multi", value="Ann\nBob", options=("Ann", "Bob")),
    )
    prompt = forms.Prompt(data="v1:p:e", card=5, names=("day", "tags", "loud", "count", "who"))
    form = Form(data="v1:p:e", title="Edit", fields=fields)
    text = render.prompt(
        prompt, "ref", form=form, label="Edit", asked=Actor("telegram", "7", "42"), name="A"
    ).text
    assert "day: 2027-01-01 (a date like 2027-01-31)" in text
    assert "tags: ... (one or several, with commas between, of red, blue)" in text
    assert "loud: ... (Loudly?; true or false)" in text
    assert "count: ... (a whole number, like 12)" in text
    assert "who: Ann, Bob (" in text
