"""Answers as people press, type and submit them: one rule for all of them."""

from __future__ import annotations

import json
import math
from datetime import date
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.answer_values import AnswerKind, read_value
from gateway.questions import (
    RUN_AGAIN,
    TREAT_AS_DONE,
    Option,
    Question,
    TypedAnswer,
    answer_problems,
    answer_text,
    answer_words,
    check_answer,
    given_problems,
    merged_answers,
    missing_parts,
    normal_answer,
    pack_answers,
    read_field,
    read_typed_answer,
    unpack_answers,
)
from gateway.tools.system import ASK_USER, read_question

ENVS = (Option(label="staging"), Option(label="prod"), Option(label="Testing", value="t-1"))


def asked(kind: AnswerKind = "text", **more: Any) -> Question:
    return Question(text="?", kind=kind, **more)


def some(**more: Any) -> Question:
    return asked(options=ENVS, multi=True, **{"allow_text": False, **more})


SEVERAL = Question(
    text="The release",
    allow_text=False,
    parts=(
        asked(name="env", options=ENVS, allow_text=False),
        asked("integer", name="count"),
        asked("date", name="day"),
        asked("boolean", name="quiet"),
        some(name="tell", min=0, max=2),
        asked(name="why"),
    ),
)
WHOLE = ("env=prod", "count=3", "day=2026-03-31", "quiet=true", "tell=", "why=a=b")


# ---- values of a kind


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("number", "12.50", "12.50"),
        ("number", " +007 ", "7"),
        ("number", "-.5", "-0.5"),
        ("number", "1e3", "1e3"),
        ("number", "-0", "0"),
        ("number", "12345678901234567890.12345678901234567890", "12345678901234567890.12345678901234567890"),
        ("integer", "-12", "-12"),
        ("integer", "000", "0"),
        ("date", "2026-03-31", "2026-03-31"),
        ("date", "2026/3/1", "2026-03-01"),
        ("date", "31.03.2026", "2026-03-31"),
        ("date", "4.4.2026", "2026-04-04"),
        ("date", "2024-02-29", "2024-02-29"),
        ("boolean", "Yes", "true"),
        ("boolean", "n", "false"),
        ("boolean", "TRUE", "true"),
        ("text", "  so ", "so"),
    ],
)
def test_c051_a_value_is_read_in_the_spellings_that_can_mean_one_thing_only(
    kind: AnswerKind, text: str, value: str
) -> None:
    assert read_value(kind, text) == value
    assert read_value(kind, value) == value


@pytest.mark.parametrize(
    ("kind", "text", "mend"),
    [
        ("number", "12,50", "12.50"),
        ("number", "1 000", "12.50"),
        ("number", "nan", "12.50"),
        ("number", "inf", "12.50"),
        ("number", "1e999", "12.50"),
        ("number", ".", "12.50"),
        ("number", "", "12.50"),
        ("number", "٣", "12.50"),
        ("integer", "1.0", "12"),
        ("integer", "1e3", "12"),
        ("integer", "-", "12"),
        ("date", "03.04.2026", "2026-04-03 or 2026-03-04"),
        ("date", "04/03/2026", "2026-03-31"),
        ("date", "2026-02-30", "no such day"),
        ("date", "31.02.2026", "no such day"),
        ("date", "2026-03/31", "2026-03-31"),
        ("date", "31.03.26", "2026-03-31"),
        ("date", "tomorrow", "2026-03-31"),
        ("date", "0000-01-01", "no such day"),
        ("boolean", "ja", "yes or no"),
        ("boolean", "maybe", "yes or no"),
    ],
)
def test_c051_what_can_mean_two_things_or_none_is_refused_with_its_mend(
    kind: AnswerKind, text: str, mend: str
) -> None:
    with pytest.raises(ValueError, match=mend.replace(".", r"\.")):
        read_value(kind, text)
    assert mend in (check_answer(asked(kind), (text or "?",)) or "")


@given(st.integers())
def test_a_whole_number_is_exactly_that(number: int) -> None:
    assert json.loads(read_value("integer", str(number))) == number
    assert json.loads(read_value("number", f"{number:+d}")) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_exactly_that(number: float) -> None:
    assert math.isclose(json.loads(read_value("number", repr(number))), number, rel_tol=0)


@given(st.dates(min_value=date(1000, 1, 1)))
def test_a_date_is_exactly_that(day: date) -> None:
    for spelled in (day.isoformat(), f"{day:%Y/%m/%d}", f"{day.year}-{day.month}-{day.day}"):
        assert read_value("date", spelled) == day.isoformat()
    dotted = f"{day.day}.{day.month}.{day.year}"
    if day.day > 12 or day.day == day.month:
        assert read_value("date", dotted) == day.isoformat()
    else:
        with pytest.raises(ValueError, match="two ways"):
            read_value("date", dotted)


@given(st.sampled_from(get_args(AnswerKind)), st.text(max_size=30))
def test_a_value_that_was_read_reads_as_itself(kind: AnswerKind, text: str) -> None:
    try:
        value = read_value(kind, text)
    except ValueError as error:
        assert str(error)
        return
    assert read_value(kind, value) == value
    if kind in ("number", "integer", "boolean"):
        assert json.dumps(json.loads(value)) is not None


# ---- several options


@pytest.mark.parametrize(
    ("question", "values", "fault"),
    [
        (some(min=2), ("prod",), "at least 2"),
        (some(min=2), ("prod", "prod"), "at least 2"),
        (some(max=1), ("prod", "staging"), "at most 1"),
        (some(min=1, max=2), ("prod", "t-1"), None),
        (some(), ("prod", "staging", "t-1"), None),
        (some(), (), "is empty"),
        (some(min=0), (), None),
        (some(min=2, allow_text=True), ("whatever you think",), None),
        (some(max=1, allow_text=True), ("prod", "and this"), "at most 1"),
        (some(), ("moon",), "not one of the options"),
        (asked("integer", options=ENVS), ("prod",), None),
        (asked("integer", options=ENVS), ("many",), "whole number"),
        (asked(), ("a", "b"), "only one value"),
    ],
)
def test_an_answer_holds_as_many_values_as_the_question_wants(
    question: Question, values: tuple[str, ...], fault: str | None
) -> None:
    wrong = check_answer(question, values)
    assert (wrong is None) if fault is None else (wrong is not None and fault in wrong)


@pytest.mark.parametrize(
    ("question", "text", "values", "fault"),
    [
        (some(min=2), "1", None, "at least 2"),
        (some(min=2), "1, testing", ("staging", "t-1"), ""),
        (some(max=1), "1\n2", None, "at most 1"),
        (some(min=0), "None", (), ""),
        (some(), "none", None, ""),
        (asked("integer"), " 12 ", ("12",), ""),
        (asked("integer"), "12.5", None, "whole number"),
        (asked("integer"), "what is meant by that?", None, ""),
        (asked("integer"), f"{'why ' * 12}2 of them?", None, ""),
        (asked("date"), "03.04.2026", None, "two ways"),
        (asked("number", options=ENVS), "prod", ("prod",), ""),
        (asked("number", options=ENVS), "7.5", ("7.5",), ""),
        (asked("boolean"), "no", ("false",), ""),
        (asked("boolean"), "perhaps 1", None, ""),
        (asked("integer", options=ENVS, allow_text=False), "7", None, ""),
    ],
)
def test_c051_a_typed_value_is_an_answer_a_fault_with_its_mend_or_no_answer_at_all(
    question: Question, text: str, values: tuple[str, ...] | None, fault: str
) -> None:
    typed = read_typed_answer(question, text)
    assert typed.values == values
    assert (fault in typed.fault) if fault else (typed.fault == "")


def test_a_label_that_is_a_number_means_itself() -> None:
    question = asked(options=tuple(Option(label=label) for label in ("3", "2", "1")), allow_text=False)
    assert read_typed_answer(question, "1").values == ("1",)
    assert read_typed_answer(question, "3").values == ("3",)


def test_labels_that_look_the_same_are_told_apart_wherever_they_come_from() -> None:
    question = asked(options=(Option(label="East", value="e1"), Option(label="East", value="e2")))
    assert question.labels == ("East (e1)", "East (e2)")
    assert normal_answer(question, ("East (e2)",)) == ("e2",)
    assert read_typed_answer(question, "east (E1)").values == ("e1",)
    strict = asked(options=question.options, allow_text=False)
    assert "not one of" in (check_answer(strict, ("East",)) or "")


# ---- a call that was cut off


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ((TREAT_AS_DONE,), None),
        ((TREAT_AS_DONE, "it is booked"), None),
        ((TREAT_AS_DONE, "  "), None),
        ((TREAT_AS_DONE, "a", "b"), "in one text"),
        ((RUN_AGAIN, "it is booked"), "takes a result"),
        (("something",), "not one of the options"),
        ((), "is empty"),
    ],
)
def test_only_what_is_treated_as_done_takes_a_result(values: tuple[str, ...], fault: str | None) -> None:
    question = asked(options=(Option(label=RUN_AGAIN), Option(label=TREAT_AS_DONE)), about="unknown")
    wrong = check_answer(question, values)
    assert (wrong is None) if fault is None else (wrong is not None and fault in wrong)


def test_a_stray_message_never_settles_a_cut_off_call_but_a_plain_word_does() -> None:
    question = asked(options=(Option(label=RUN_AGAIN), Option(label=TREAT_AS_DONE)), about="unknown")
    assert read_typed_answer(question, "what?") == TypedAnswer(values=None)
    assert read_typed_answer(question, "Run again").values == (RUN_AGAIN,)
    assert read_typed_answer(question, "treat as done: R-1: ok").values == (TREAT_AS_DONE, "R-1: ok")
    assert normal_answer(question, (TREAT_AS_DONE, "  ")) == (TREAT_AS_DONE,)


# ---- several questions


def test_several_questions_are_answered_by_name_and_read_as_typed_values() -> None:
    assert answer_problems(SEVERAL, WHOLE) == () and missing_parts(SEVERAL, WHOLE) == ()
    assert json.loads(answer_text(SEVERAL, WHOLE)) == {
        "env": "prod",
        "count": 3,
        "day": "2026-03-31",
        "quiet": True,
        "tell": [],
        "why": "a=b",
    }
    assert answer_words(SEVERAL, WHOLE) == (
        "env: prod; count: 3; day: 2026-03-31; quiet: true; tell: none of them; why: a=b"
    )


def test_each_wrong_missing_or_foreign_answer_is_named() -> None:
    given = ("env=moon", "count=many", "tell=prod", "tell=staging", "tell=t-1", "what=1")
    problems = dict(answer_problems(SEVERAL, given))
    assert list(problems) == ["env", "count", "tell", "what", "day", "quiet", "why"]
    assert "not one of" in problems["env"] and "at most 2" in problems["tell"]
    assert "there are: env, count" in problems["what"] and problems["day"] == "is not answered"
    assert [name for name, _ in given_problems(SEVERAL, ("env=prod", "day=x"))] == ["day"]
    assert "name: answer" in (check_answer(SEVERAL, ("prod",)) or "")


def test_newer_answers_replace_older_ones_and_can_be_taken_back() -> None:
    first = merged_answers(SEVERAL, (), ("count=3", "env=prod"))
    assert first == ("env=prod", "count=3")
    assert merged_answers(SEVERAL, first, ("tell=", "env=staging"), ("count",)) == ("env=staging", "tell=")


@pytest.mark.parametrize(
    ("name", "raw", "values"),
    [
        ("env", "prod", ("prod",)),
        ("env", "Testing", ("t-1",)),
        ("env", "2", ("prod",)),
        ("env", "", None),
        ("count", " 07 ", ("7",)),
        ("count", "x", ("x",)),
        ("quiet", "true", ("true",)),
        ("tell", (), ()),
        ("tell", "", ()),
        ("tell", ("prod", "Testing"), ("prod", "t-1")),
        ("tell", "1, 3", ("staging", "t-1")),
        ("why", "2", ("2",)),
    ],
)
def test_a_field_of_a_form_is_read_whether_it_was_a_menu_or_a_text(
    name: str, raw: str | tuple[str, ...], values: tuple[str, ...] | None
) -> None:
    part = next(part for part in SEVERAL.parts if part.name == name)
    assert read_field(part, raw) == values


TYPED = "env: 2\nCount = 3\nday: 2026/3/31\nquiet: no\ntell: none\nwhy: one\ntwo: three"


def test_c051_several_questions_are_answered_in_lines_or_told_what_is_wrong_or_not_meant() -> None:
    typed = read_typed_answer(SEVERAL, TYPED)
    assert typed.fault == ""
    assert typed.values == (
        "env=prod",
        "count=3",
        "day=2026-03-31",
        "quiet=false",
        "tell=",
        "why=one\ntwo: three",
    )
    partly = read_typed_answer(SEVERAL, "env: prod\ncount: many")
    assert partly.values is None and "count: a whole number" in partly.fault and "day:" in partly.fault
    assert read_typed_answer(SEVERAL, "by the way, env: which one?") == TypedAnswer(values=None)
    assert read_typed_answer(SEVERAL, "") == TypedAnswer(values=None)


NAMES = st.sampled_from(["a", "b-1", "c_2"])
TEXTS = st.text(min_size=1, max_size=8)


@given(st.dictionaries(NAMES, st.lists(TEXTS, max_size=3).map(tuple)))
def test_answers_by_name_survive_their_stored_form(answers: dict[str, tuple[str, ...]]) -> None:
    assert unpack_answers(pack_answers(answers)) == answers


QUESTIONS = st.builds(
    Question,
    text=st.just("?"),
    options=st.lists(st.sampled_from("abc123"), unique=True, max_size=4).map(
        lambda labels: tuple(Option(label=label) for label in labels)
    ),
    multi=st.booleans(),
    kind=st.sampled_from(get_args(AnswerKind)),
    min=st.integers(0, 2),
    max=st.none() | st.integers(1, 4),
    allow_text=st.booleans(),
)
SUBMITTED = st.lists(
    st.sampled_from(["a", "B", "1", "3", "12.5", "2026-01-13", "yes", " ", "none"]), max_size=3
)


@given(QUESTIONS, SUBMITTED)
def test_an_answer_that_was_accepted_is_accepted_again_as_it_is_stored(
    question: Question, values: list[str]
) -> None:
    normal = normal_answer(question, values)
    assert normal_answer(question, normal) == normal
    if check_answer(question, values) is None:
        assert check_answer(question, normal) is None
        assert answer_text(question, normal)


@given(QUESTIONS, st.sampled_from(["a", "B, 1", "3", "12.5", "13.01.2026", "yes", " ", "none", "so what?"]))
def test_c051_what_is_typed_is_taken_only_if_it_could_have_been_submitted(
    question: Question, text: str
) -> None:
    typed = read_typed_answer(question, text)
    if typed.values is not None:
        assert check_answer(question, typed.values) is None and typed.fault == ""


# ---- what a model may ask


@pytest.mark.parametrize(
    ("args", "mend"),
    [
        ({}, "give question"),
        ({"question": " "}, "say what to ask"),
        ({"question": "?", "allow_text": False}, "give options"),
        ({"question": "?", "options": ["a", " "]}, "say what people choose"),
        ({"question": "?", "options": ["a", "a"]}, "leave one out"),
        ({"question": "?", "options": [str(n) for n in range(1001)]}, "at most 1000"),
        ({"question": "?", "options": ["a"], "min": 1}, "multi = true"),
        ({"question": "?", "multi": True, "max": 1}, "give options"),
        ({"question": "?", "options": ["a", "b"], "multi": True, "min": 3}, "there are 2 options"),
        ({"question": "?", "options": ["a", "b"], "multi": True, "min": 2, "max": 1}, "more than max"),
        ({"question": "?", "options": ["a"], "kind": "boolean"}, "leave options out"),
        ({"questions": []}, "ask 1 to 20"),
        ({"questions": [{"name": f"q{n}", "question": "?"} for n in range(21)]}, "ask 1 to 20"),
        ({"questions": [{"name": "a b", "question": "?"}]}, "letters, digits"),
        ({"questions": [{"name": "a", "question": "?"}, {"name": "A", "question": "?"}]}, "its own name"),
        ({"questions": [{"name": "a", "question": "?", "min": 1}]}, "questions.a: min"),
        ({"questions": [{"name": "a", "question": "?"}], "multi": True}, "each of questions"),
    ],
)
def test_a_question_that_nobody_could_answer_is_refused_with_its_mend(
    args: dict[str, Any], mend: str
) -> None:
    assert ASK_USER.problems(args) == []
    found = read_question(args)
    assert isinstance(found, str) and mend in found


@pytest.mark.parametrize(
    "args",
    [
        {"question": "?", "kind": "colour"},
        {"question": "?", "min": -1},
        {"question": "?", "max": 0},
        {"questions": [{"question": "?"}]},
        {"questions": [{"name": "a"}]},
        {"questions": [{"name": "a", "question": "?", "questions": []}]},
    ],
)
def test_what_the_schema_excludes_is_no_question(args: dict[str, Any]) -> None:
    assert ASK_USER.problems(args) != []


def test_a_yes_or_no_is_two_buttons_and_among_several_a_field() -> None:
    one = read_question({"question": "Sure?", "kind": "boolean"})
    assert isinstance(one, Question)
    assert (one.labels, one.results, one.allow_text) == (("Yes", "No"), ("true", "false"), False)
    for text, value in (("y", "true"), ("No", "false"), ("1", "true"), ("TRUE", "true")):
        assert read_typed_answer(one, text).values == (value,)
    assert read_typed_answer(one, "let me think") == TypedAnswer(values=None)
    several = read_question({"questions": [{"name": "sure", "question": "Sure?", "kind": "boolean"}]})
    assert isinstance(several, Question) and several.parts[0].options == ()
    assert several.text == "1 question: sure"


def test_min_and_max_become_the_question_s_own() -> None:
    found = read_question({"question": "?", "options": ["a", "b"], "multi": True, "min": 0, "max": 9})
    assert isinstance(found, Question)
    assert (found.least, found.most) == (0, 2)
