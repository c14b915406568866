"""Channel words and gateway words: cards, presses and forms there and back again."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Actor as ChannelActor
from channels.base import Card, InboundMessage, InboundPress, MessageRef, pack_press
from channels.base import ThreadKey as ChannelKey
from gateway.approvals import Answer, Approve, Deny, Pending, Resolution
from gateway.bridge import (
    actor_in,
    card,
    key_in,
    key_out,
    said,
)
from gateway.bridge_presses import pressed_card, read_form, read_press
from gateway.bridge_questions import Bad, Draft, Toggle
from gateway.messages import Actor, Json, ThreadKey, call_hash, canonical_json
from gateway.questions import Option, Question
from gateway.store.rows import PendingRecord
from gateway.tools.base import MASK

PLACE = ChannelKey("talk", "w", "room", "")
WHO = ChannelActor("talk", "w", "ann")


def pending(args: Json | None = None, **changes: Any) -> Pending:
    given: dict[str, Any] = {
        "pending_id": "p_abcdefghijklmnopqrst",
        "kind": "approval",
        "call_id": "c",
        "tool": "pay",
        "args": args if args is not None else {"order": "A"},
        "args_hash": call_hash("pay", args or {}),
        "code": "abcde",
        "reason": "money",
        "rule": "rule 1: pay",
    }
    return Pending(**{**given, **changes})


def record(asked: Pending, **changes: Any) -> PendingRecord:
    given: dict[str, Any] = {
        "pending": asked,
        "session_id": "s",
        "turn_id": "s.1",
        "agent": "helper",
        "key": ThreadKey(*PLACE),
        "requester": Actor(*WHO),
        "state": "open",
        "current": True,
        "attempt": 0,
        "requested_at": 0.0,
    }
    return PendingRecord(**{**given, **changes})


def question(*labels: str, **changes: Any) -> Pending:
    options = tuple(
        Option(label=label, value=f"value of {label}" if label == "b" else "") for label in labels
    )
    asked = Question(text="Which?", options=options, **changes)
    return pending(kind="question", tool="ask_user", question=asked)


def press(data: str, **values: Any) -> InboundPress:
    return InboundPress(
        thread=PLACE,
        action_id="1",
        actor=WHO,
        data=data,
        message_ref=MessageRef("7"),
        sent_at=0.0,
        values=values,
    )


def buttons(drawn: Card) -> dict[str, str]:
    return {b.label: b.data for b in drawn.buttons}


# ---- presses


def test_every_button_of_an_approval_means_what_it_says() -> None:
    asked = record(pending())
    drawn = card(asked)
    meanings: dict[str, Resolution] = {
        "Approve": Approve(),
        "Approve for this session": Approve(scope="session"),
        "Deny": Deny(),
    }
    for label, meaning in meanings.items():
        assert read_press(press(buttons(drawn)[label]), asked) == meaning
    forms = {form.title.split()[0]: form for form in drawn.forms}
    assert read_press(press(forms["Deny"].data, feedback=" no \n"), asked) == Deny(feedback="no")
    assert {form.data for form in drawn.forms} <= set(buttons(drawn).values())
    assert all(pressed_card(press(data)) == asked.id for data in buttons(drawn).values())


def test_every_choice_of_a_question_means_its_value() -> None:
    asked = record(question("a", "b"))
    drawn = card(asked)
    meanings = [read_press(press(choice.data), asked) for choice in drawn.choices]
    assert meanings == [Answer(values=("a",)), Answer(values=("value of b",))]
    assert read_press(press(buttons(drawn)["Other…"], answer=" c "), asked) == Answer(values=("c",))


def test_several_answers_are_switched_and_confirmed() -> None:
    asked = record(question("a", "b", multi=True), votes=("value of b",))
    drawn = card(asked)
    assert [c.chosen for c in drawn.choices] == [False, True]
    assert read_press(press(drawn.choices[1].data), asked) == Toggle(value="value of b")
    assert read_press(press(buttons(drawn)["Confirm"]), asked) == Answer(values=("value of b",))


@pytest.mark.parametrize("choice", ["", "x", "2", "-1", "99999999999999999999", "²", "c", "a", "s", "e"])
def test_a_choice_that_a_question_does_not_have_is_none(choice: str) -> None:
    asked = record(question("a", "b"))
    assert isinstance(read_press(press(f"v1:{asked.id}:{choice}"), asked), Bad)


@pytest.mark.parametrize("choice", ["", "x", "0", "c", "t"])
def test_a_choice_that_an_approval_does_not_have_is_none(choice: str) -> None:
    asked = record(pending())
    assert isinstance(read_press(press(f"v1:{asked.id}:{choice}"), asked), Bad)


def test_free_text_is_refused_where_the_question_takes_none() -> None:
    asked = record(question("a", allow_text=False))
    drawn = card(asked)
    assert drawn.forms == () and drawn.buttons == ()
    assert isinstance(read_press(press(pack_press(asked.id, "t"), answer="x"), asked), Bad)


@given(st.text(max_size=80))
def test_any_data_is_read_without_an_error(data: str) -> None:
    parts = (Question(text="?", name="a"),)
    for asked in (
        record(pending()),
        record(question("a", "b", multi=True)),
        record(question("a", about="unknown", allow_text=False)),
        record(question(allow_text=False, parts=parts)),
    ):
        meaning = read_press(press(data), asked)
        assert isinstance(meaning, Approve | Deny | Answer | Toggle | Draft | Bad)
        if pressed_card(press(data)) is None:
            assert isinstance(meaning, Bad)


# ---- forms


LEAF = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=30),
)
VALUE = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
NAME = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=10)
KIND = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def schema_of(args: Json) -> Json:
    kinds = {name: KIND.get(type(value)) for name, value in args.items()}
    return {"properties": {name: {"type": kind} if kind else {} for name, kind in kinds.items()}}


@given(st.dictionaries(NAME, VALUE, min_size=1, max_size=4), st.sampled_from(["\n", "\r\n"]))
def test_a_form_that_comes_back_unchanged_changes_nothing(args: Json, line_end: str) -> None:
    asked = pending(args, schema=schema_of(args))
    form = next(f for f in card(record(asked)).forms if f.title.startswith("Edit"))
    values = {f.name: f.value.replace("\n", line_end) for f in form.fields}
    assert read_form(values, asked) == args


@given(st.integers(-(2**80), 2**80))
def test_a_typed_integer_is_exactly_that(number: int) -> None:
    for kind in ("integer", "number"):
        asked = pending({"n": 0.5}, schema={"properties": {"n": {"type": kind}}})
        assert read_form({"n": f" {number} "}, asked) == {"n": number}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_typed_number_is_exactly_that(number: float) -> None:
    asked = pending({"n": "?"}, schema={"properties": {"n": {"type": "number"}}})
    found = read_form({"n": repr(number)}, asked)
    assert not isinstance(found, Bad) and math.isclose(found["n"], number, rel_tol=0)


@given(VALUE)
def test_typed_json_is_exactly_that(value: Any) -> None:
    asked = pending({"v": {"before": 1}}, schema={"properties": {"v": {"type": "object"}}})
    assert read_form({"v": canonical_json(value)}, asked) == {"v": value}


@pytest.mark.parametrize(
    "kind, text",
    [
        ("integer", "1.5"),
        ("integer", "one"),
        ("number", "nan"),
        ("number", "inf"),
        ("number", ""),
        ("boolean", "maybe"),
        ("object", "{"),
        ("array", "a, b"),
    ],
)
def test_a_field_that_cannot_be_read_is_named(kind: str, text: str) -> None:
    asked = pending({"field": None}, schema={"properties": {"field": {"type": kind}}})
    found = read_form({"field": text}, asked)
    assert isinstance(found, Bad) and found.field == "field" and found.text.startswith("field: ")


@pytest.mark.parametrize("text, value", [("true", True), ("No", False), ("1", True), (" yes ", True)])
def test_a_boolean_has_many_spellings(text: str, value: bool) -> None:
    asked = pending({"field": None}, schema={"properties": {"field": {"type": "boolean"}}})
    assert read_form({"field": text}, asked) == {"field": value}


def test_choices_of_a_schema_keep_their_type() -> None:
    asked = pending({"n": 1}, schema={"properties": {"n": {"enum": [1, 2, "three"]}}})
    form = next(f for f in card(record(asked)).forms if f.title.startswith("Edit"))
    assert (form.fields[0].kind, form.fields[0].options) == ("select", ("1", "2", "three"))
    assert read_form({"n": "2"}, asked) == {"n": 2}
    assert read_form({"n": "three"}, asked) == {"n": "three"}


def test_an_argument_that_does_not_exist_is_refused_and_one_left_out_kept() -> None:
    asked = pending({"a": "1", "b": "2"}, schema=schema_of({"a": "", "b": ""}))
    assert isinstance(read_form({"c": "3"}, asked), Bad)
    assert read_form({"a": "9"}, asked) == {"a": "9", "b": "2"}


def test_secrets_are_masked_on_the_card_and_kept_by_its_form() -> None:
    args = {"order": "A", "key": "sk-1", "body": {"user": "x", "pin": "12"}, "rows": [{"pin": "34"}]}
    asked = pending(args, secret=("key", "body.pin", "rows.0.pin"), schema=schema_of(args))
    drawn = card(record(asked))
    assert not [text for text in ("sk-1", '"12"', "34") if text in repr(drawn)]
    form = next(f for f in drawn.forms if f.title.startswith("Edit"))
    values = {f.name: f.value for f in form.fields}
    assert values["key"] == "" and MASK in values["body"]
    assert read_form(values, asked) == args
    assert read_form({**values, "key": "new"}, asked) == {**args, "key": "new"}


# ---- cards


def test_a_closed_card_has_no_controls_and_says_what_happened() -> None:
    done = record(
        pending(), state="approved", decision=Approve(), decided_by="Ann", decided_at=0.0, current=False
    )
    drawn = card(done)
    assert (drawn.buttons, drawn.choices, drawn.forms) == ((), (), ())
    assert (drawn.state, drawn.status) == ("decided", "Approved by Ann, 1970-01-01 00:00 UTC")


def test_a_call_without_arguments_or_with_an_empty_one_says_so() -> None:
    assert "no arguments" in card(record(pending({}))).summary
    assert "an argument is empty" in card(record(pending({"order": " "}))).summary
    assert "Edit" not in buttons(card(record(pending({}))))


def test_options_with_one_label_can_be_told_apart() -> None:
    asked = pending(
        kind="question",
        question=Question(text="?", options=(Option(label="x", value="1"), Option(label="x", value="2"))),
    )
    assert [c.label for c in card(record(asked)).choices] == ["x (1)", "x (2)"]


@given(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8), st.text(max_size=8))
def test_keys_and_actors_come_through_unchanged(a: str, b: str, c: str, d: str) -> None:
    key = ThreadKey(a, b, c, d)
    assert key_in(key_out(key)) == key
    assert actor_in(ChannelActor(a, b, c)) == Actor(a, b, c)


def test_what_was_said_keeps_who_and_where() -> None:
    message = InboundMessage(
        thread=PLACE,
        message_id="5",
        actor=WHO,
        text="so?",
        sent_at=3.0,
        author="Ann",
        private=True,
        quote="a\nb",
    )
    heard = said(message)
    assert (heard.key, heard.message_id, heard.actor) == (ThreadKey(*PLACE), "5", Actor(*WHO))
    assert (heard.text, heard.at, heard.private, heard.edited) == ("> a\n> b\n\nso?", 3.0, True, False)
