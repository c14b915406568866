"""A server's form as a question, and the answer as the server wants it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.questions import Question, answer_problems, normal_answer
from gateway.tools.base import Said
from gateway.tools.mcp.asking import (
    LEFT_OUT,
    AskedKey,
    Form,
    Unanswerable,
    content_fault,
    read_keys,
    to_content,
    to_question,
)


def form(required: Any = None, **fields: Any) -> Form:
    wanted = list(fields) if required is None else required
    schema = {"type": "object", "properties": fields, "required": wanted}
    return Form(server="shop", message="Which one?", schema=schema)


def labels(question: Question) -> list[str]:
    return [option.label for option in question.options]


COLOURS = ["red", "blue"]
TITLED = [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]


@pytest.mark.parametrize(
    ("field", "kind", "options", "answer", "content"),
    [
        ({"type": "string"}, "text", [], "some text", "some text"),
        ({"type": "string", "format": "date"}, "date", [], "31.3.2026", "2026-03-31"),
        ({"type": "integer"}, "integer", [], "+12", 12),
        ({"type": "number"}, "number", [], "12.50", 12.5),
        ({"type": "number"}, "number", [], "3", 3),
        ({"type": "boolean"}, "boolean", [], "yes", True),
        ({"type": "boolean", "default": False}, "text", ["Yes", "No"], "No", False),
        ({"type": "string", "enum": COLOURS}, "text", COLOURS, "blue", "blue"),
        (
            {"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]},
            "text",
            ["Red", "Blue"],
            "Blue",
            "b",
        ),
        ({"type": "string", "oneOf": TITLED}, "text", ["Red", "Blue"], "Red", "r"),
        ({"type": "string", "default": "me"}, "text", ["me"], "you", "you"),
        ({"type": "integer", "default": 5}, "integer", ["5"], "5", 5),
    ],
)
def test_one_field_is_one_question_and_its_answer_a_typed_value(
    field: dict[str, Any], kind: str, options: list[str], answer: str, content: Any
) -> None:
    asked = form(it=field)
    question = to_question(asked)
    assert (question.kind, labels(question), question.parts) == (kind, options, ())
    assert question.text.startswith("shop asks: Which one?\n")
    values = normal_answer(question, (answer,))
    assert answer_problems(question, values) == ()
    given_content = to_content(asked.schema, values)
    assert given_content == {"it": content}
    assert type(given_content["it"]) is type(content)
    assert content_fault(asked.schema, given_content) == ""


@pytest.mark.parametrize(
    "items", [{"type": "string", "enum": ["a", "b", "c"]}, {"anyOf": [{"const": x} for x in "abc"]}]
)
def test_a_list_of_choices_is_a_question_with_several_answers(items: dict[str, Any]) -> None:
    asked = form(it={"type": "array", "items": items, "minItems": 1, "maxItems": 2})
    question = to_question(asked)
    assert (question.multi, question.least, question.most) == (True, 1, 2)
    assert to_content(asked.schema, ("a", "c")) == {"it": ["a", "c"]}


def test_a_form_without_fields_is_a_yes_or_no() -> None:
    asked = form()
    assert labels(to_question(asked)) == ["Yes", "No"]
    assert to_content(asked.schema, ("accept",)) == {}
    assert to_content(asked.schema, ("decline",)) is None


def test_what_need_not_be_answered_can_be_left_out() -> None:
    asked = form(["a"], a={"type": "string"}, b={"type": "integer"}, c={"type": "boolean"})
    question = to_question(asked)
    assert [labels(part) for part in question.parts] == [[], [LEFT_OUT], ["Yes", "No", LEFT_OUT]]
    assert to_content(asked.schema, ("a=x", f"b={LEFT_OUT}", f"c={LEFT_OUT}")) == {"a": "x"}


def test_fields_whose_names_nobody_can_type_get_others() -> None:
    asked = form(**{"größe": {"type": "integer"}, "a=b": {"type": "string"}, "ok": {"type": "string"}})
    question = to_question(asked)
    assert [part.name for part in question.parts] == ["field1", "field2", "ok"]
    values = ("field1=3", "field2=x=y", "ok=fine")
    assert to_content(asked.schema, values) == {"größe": 3, "a=b": "x=y", "ok": "fine"}


@pytest.mark.parametrize(
    "field",
    [
        {"type": "object", "properties": {}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "string", "enum": []},
        {"type": "string", "enum": [str(n) for n in range(501)]},
        {},
    ],
)
def test_a_field_that_nobody_could_fill_in_is_refused(field: dict[str, Any]) -> None:
    with pytest.raises(Unanswerable):
        to_question(form(it=field))


def test_too_many_fields_are_refused() -> None:
    with pytest.raises(Unanswerable, match="21 fields"):
        to_question(form(**{f"f{n}": {"type": "string"} for n in range(21)}))


def test_what_a_form_demands_beyond_the_type_is_told_without_the_value() -> None:
    asked = form(it={"type": "string", "minLength": 5, "pattern": "^a"})
    fault = content_fault(asked.schema, {"it": "b-secret"[:3]})
    assert "it: " in fault
    assert "b-s" not in fault


@given(
    st.builds(
        AskedKey,
        digest=st.text(),
        nth=st.integers(0, 9),
        attempt=st.integers(0, 9),
        request=st.text(),
        state=st.none() | st.text(),
        schema=st.none() | st.dictionaries(st.text(), st.text()),
    )
)
def test_a_key_says_all_that_it_was_made_of(key: AskedKey) -> None:
    said = Said(values=("x",))
    assert read_keys({"another tool's": said, key.text(): said}) == [(key, said)]


def test_the_same_question_has_the_same_digest_whatever_the_order_of_its_schema() -> None:
    one = Form(server="a", message="m", schema={"type": "object", "properties": {}})
    two = Form(server="a", message="m", schema={"properties": {}, "type": "object"})
    other = Form(server="a", message="n", schema={"properties": {}, "type": "object"})
    assert one.digest == two.digest != other.digest
