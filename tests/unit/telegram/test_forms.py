"""Prompts carry what a reply needs, and only ours do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Form, FormField
from channels.telegram import forms

SEAL = forms.Seal("777:secret")
NAMES = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=4).map(tuple)


def a_form(data: str, *names: str) -> Form:
    return Form(data=data, title="t", fields=tuple(FormField(name=name, label=name) for name in names))


@given(st.text(max_size=40), st.integers(1, 10**9), NAMES, st.integers(-(10**13), 10**13))
def test_a_sealed_line_reads_back_as_it_was_written(
    data: str, card: int, names: tuple[str, ...], chat: int
) -> None:
    prompt = forms.Prompt(data=data, card=card, names=names)
    line = SEAL.write(prompt, chat)
    assert "\n" not in line
    assert SEAL.read(f"Any words\n\n{line}\n", chat) == prompt


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace("deny", "approve"),
        lambda line: line.replace("ref 5|", "ref 6|"),
        lambda line: line.replace("why", "how"),
        lambda line: line[:-1] + ("A" if line[-1] != "A" else "B"),
        lambda line: line.removeprefix("ref "),
        lambda line: line + "|x",
        lambda line: "",
    ],
)
def test_a_line_that_was_changed_is_not_ours(change: Callable[[str], str]) -> None:
    line = SEAL.write(forms.Prompt(data="v1:p:deny", card=5, names=("why",)), 7)
    assert SEAL.read(line, 7) is not None
    assert SEAL.read(change(line), 7) is None


def test_a_line_counts_in_its_own_chat_and_for_its_own_bot_only() -> None:
    line = SEAL.write(forms.Prompt(data="v1:p:deny", card=5, names=("why",)), 7)
    assert SEAL.read(line, 8) is None
    assert forms.Seal("777:other").read(line, 7) is None


def test_a_button_names_the_fields_of_its_form_while_they_fit() -> None:
    assert forms.opening(a_form("v1:p:deny", "why"), 64) == "v1:p:deny?why"
    assert forms.opening(a_form("v1:p:edit", "a" * 40, "b" * 40), 64) == "v1:p:edit?*"
    assert forms.opening(a_form("v" * 64, "why"), 64) == "v" * 64


@given(st.text(alphabet="abc:_", min_size=1, max_size=30), NAMES)
def test_a_button_that_opens_a_form_reads_back(data: str, names: tuple[str, ...]) -> None:
    packed = forms.opening(a_form(data, *names), 64)
    assert len(packed.encode()) <= 64
    base, found = forms.opened(packed)
    assert base == data
    assert found in (names, forms.ANY)


def test_a_plain_button_opens_nothing() -> None:
    assert forms.opened("v1:p:approve") == ("v1:p:approve", ())


@pytest.mark.parametrize(
    ("names", "reply", "values"),
    [
        (("why",), "too: much\nmoney", {"why": "too: much\nmoney"}),
        (("a", "b"), "a: 1\nb: 2", {"a": "1", "b": "2"}),
        (("a", "b"), "b = 2", {"b": "2"}),
        (("a", "b"), "a: first\nx: still first\nb: 2", {"a": "first\nx: still first", "b": "2"}),
        (("a", "b"), "no field here", {}),
        (forms.ANY, "amount: 15\norder.id: A-1", {"amount": "15", "order.id": "A-1"}),
        (("a", "b"), "a:\nlong\ntext", {"a": "long\ntext"}),
    ],
)
def test_a_reply_fills_the_fields(names: tuple[str, ...], reply: str, values: dict[str, str]) -> None:
    assert forms.filled(names, reply) == values
