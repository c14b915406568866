"""Arguments are read as they are: an object, or the reason why not."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.messages import Message, canonical_json, user
from gateway.providers.arguments import check_arguments, parse_arguments
from gateway.providers.memo import IdentityMemo

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON))
def test_c063_an_object_comes_back_as_it_is(value: dict[str, Any]) -> None:
    assert parse_arguments(json.dumps(value)) == (value, None)


@given(st.dictionaries(st.text(min_size=1), JSON, min_size=1), st.data())
def test_c063_an_object_cut_anywhere_is_never_an_object(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    args, why = parse_arguments(cut)
    assert args == {}
    assert why


@given(st.text())
def test_whatever_is_read_can_be_stored_and_hashed(text: str) -> None:
    args, why = parse_arguments(text)
    assert canonical_json(args).encode()
    assert why is None or args == {}


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_c063_nothing_is_no_arguments(text: str) -> None:
    assert parse_arguments(text) == ({}, None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"path": notes.md"}', "not valid JSON"),
        ("[1]", "an array"),
        ("null", "null"),
        ('"x"', "a string"),
        ("true", "a boolean"),
        ("3", "a number"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "-Infinity"),
        ('{"a": "\\ud83d"}', "surrogate"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_c063_what_is_no_object_says_why(text: str, why: str) -> None:
    args, said = parse_arguments(text)
    assert args == {}
    assert said is not None
    assert why in said


def test_a_whole_surrogate_pair_is_text() -> None:
    assert parse_arguments('{"a": "\\ud83d\\ude00"}') == ({"a": "😀"}, None)


def test_parsed_arguments_get_the_same_verdict() -> None:
    assert check_arguments({"a": 1}) == ({"a": 1}, None)
    assert check_arguments([1])[1] is not None


def test_a_memo_computes_once_per_living_object() -> None:
    computed: list[str] = []

    def compute(message: Message) -> str:
        computed.append(message.text)
        return message.text

    memo = IdentityMemo[Message, str](compute)
    first, second = user("a"), user("a")
    assert [memo(first), memo(first), memo(second)] == ["a", "a", "a"]
    assert computed == ["a", "a"]
    assert (first in memo, user("a") in memo) == (True, False)
    del first
    gc.collect()
    assert len(memo) == 1
