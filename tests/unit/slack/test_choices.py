"""Questions: which control offers the options, and that every one can be read and chosen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Button, Card, Choice, Form, FormField
from channels.render.inert import visible
from channels.slack import cards
from tests.unit.slack.blockkit import checked_message, controls, labels, live, shown, walk

OTHER = Form(data="v1:q_1:t", title="Your answer", fields=(FormField(name="answer", label="Which?"),))


def a_question(*options: str | Choice, **changes: Any) -> Card:
    choices = tuple(
        option if isinstance(option, Choice) else Choice(label=option, data=f"v1:q_1:{number}")
        for number, option in enumerate(options)
    )
    buttons = [Button(label="Other…", data=OTHER.data)]
    if changes.get("multi"):
        buttons.insert(0, Button(label="Confirm", data="v1:q_1:c", tone="primary"))
    values: dict[str, Any] = {
        "card_id": "q_1", "kind": "question", "state": "open", "title": "Question",
        "summary": "Which one?", "choices": choices, "buttons": tuple(buttons), "forms": (OTHER,),
    }  # fmt: skip
    return Card(**(values | changes))


def offered(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every option of every select and checkbox group, in order."""
    return [
        option
        for element in controls(blocks)
        for entry in walk(element)
        for option in entry.get("options", [])
    ]


def drawn(card: Card) -> list[dict[str, Any]]:
    message = cards.card(card, file=cards.args_file(card))
    checked_message(message)
    assert live(message) == []
    blocks: list[dict[str, Any]] = message["blocks"]
    return blocks


def test_few_short_options_are_buttons_before_the_others() -> None:
    blocks = drawn(a_question("Red", "Green", "Blue"))
    assert labels(blocks) == ["Red", "Green", "Blue", "Other…"]
    assert [e["action_id"] for e in controls(blocks)] == [
        "press:1:v1:q_1:0", "press:2:v1:q_1:1", "press:3:v1:q_1:2", "form:4:v1:q_1:t",
    ]  # fmt: skip
    assert "1. Red" not in shown(blocks)


def test_descriptions_of_options_that_are_buttons_are_listed() -> None:
    blocks = drawn(a_question(Choice(label="Red", data="v1:q_1:0", description="like a rose"), "Blue"))
    assert "1. Red – like a rose\n2. Blue" in shown(blocks)


def test_more_options_are_a_menu_with_their_labels_and_descriptions() -> None:
    options = [Choice(label=f"Region {n}", data=f"v1:q_1:{n}", description=f"site {n}") for n in range(6)]
    blocks = drawn(a_question(*options))
    [menu, other] = controls(blocks)
    assert (menu["type"], menu["action_id"], other["text"]["text"]) == (
        "static_select", "press:1:select", "Other…",
    )  # fmt: skip
    assert [(o["text"]["text"], o["description"]["text"], o["value"]) for o in menu["options"]] == [
        (f"Region {n}", f"site {n}", f"v1:q_1:{n}") for n in range(6)
    ]


def test_c054_options_that_begin_alike_are_all_read_in_full_and_numbered() -> None:
    texts = [f"{'The same beginning of every label, '.ljust(80, '-')}then {n:9}" for n in range(1, 27)]
    blocks = drawn(a_question(*texts))
    listed = "\n".join(f"{n}. {text}" for n, text in enumerate(texts, 1))
    assert listed in shown(blocks)
    options = offered(blocks)
    assert [o["text"]["text"].partition(".")[0] for o in options] == [str(n) for n in range(1, 27)]
    assert [o["value"] for o in options] == [f"v1:q_1:{n}" for n in range(26)]


def test_c054_equal_labels_are_told_apart_by_their_numbers() -> None:
    options = offered(drawn(a_question("Yes", "Yes", "No")))
    assert [o["text"]["text"] for o in options] == ["1. Yes", "2. Yes", "3. No"]


@pytest.mark.parametrize("multi", [False, True])
def test_c054_more_options_than_one_select_holds_are_numbers_in_groups(multi: bool) -> None:
    texts = [f"{'option'.ljust(80, '-')} {n}" for n in range(1, 121)]
    blocks = drawn(a_question(*texts, multi=multi))
    menu = controls(blocks)[-1 if multi else 0]
    assert [(g["label"]["text"], len(g["options"])) for g in menu["option_groups"]] == [
        ("1 to 100", 100),
        ("101 to 120", 20),
    ]
    options = offered(blocks)
    assert [o["text"]["text"] for o in options] == [str(n) for n in range(1, 121)]


@pytest.mark.parametrize("multi", [False, True])
def test_c054_what_does_not_fit_is_a_numbered_list_in_a_file(multi: bool) -> None:
    texts = [f"{'x' * 200} {n}" for n in range(1, 101)]
    card = a_question(*texts, multi=multi)
    file = cards.args_file(card)
    assert file is not None and file.name == "question-q_1.txt"
    lines = file.content.decode().split("\n")
    assert [line for line in lines if line[:1].isdigit()] == [f"{n}. {t}" for n, t in enumerate(texts, 1)]
    blocks = drawn(card)
    assert file.sha256 in shown(blocks)
    assert [o["value"] for o in offered(blocks)] == [f"v1:q_1:{n}" for n in range(100)]


@pytest.mark.parametrize("multi", [False, True])
def test_c054_options_beyond_what_any_control_can_carry_are_answered_by_number(multi: bool) -> None:
    card = a_question(*(f"option {n} {'y' * 90}" for n in range(1, 401)), multi=multi)
    blocks = drawn(card)
    assert offered(blocks) == []
    assert cards.args_file(card) is not None
    assert "write the option's number in this thread" in shown(blocks)
    assert labels(blocks) == (["Confirm", "Other…"] if multi else ["Other…"])


def test_c054_a_list_that_fits_without_a_control_needs_no_file() -> None:
    card = a_question(*(f"option {n}" for n in range(1, 401)))
    assert cards.args_file(card) is None
    assert "\n400. option 400" in shown(drawn(card))


def test_several_of_few_options_are_checkboxes_with_the_chosen_ones_checked() -> None:
    options = [Choice(label=f"L{n}", data=f"v1:q_1:{n}", chosen=n == 2) for n in range(10)]
    blocks = drawn(a_question(*options, multi=True))
    [boxes, confirm, _] = controls(blocks)
    assert (boxes["type"], boxes["action_id"]) == ("checkboxes", "pick:1")
    assert [o["value"] for o in boxes["initial_options"]] == ["v1:q_1:2"]
    assert (confirm["text"]["text"], confirm["style"]) == ("Confirm", "primary")


def test_several_of_many_options_are_a_menu_for_several_with_the_chosen_ones() -> None:
    options = [Choice(label=f"L{n}", data=f"v1:q_1:{n}", chosen=n in (3, 7)) for n in range(40)]
    blocks = drawn(a_question(*options, multi=True))
    [menu] = [e for e in controls(blocks) if e["type"] == "multi_static_select"]
    assert menu["action_id"] == "pick:1"
    assert [o["value"] for o in menu["initial_options"]] == ["v1:q_1:3", "v1:q_1:7"]


def test_a_question_without_options_has_its_answer_button_only() -> None:
    assert labels(drawn(a_question())) == ["Other…"]


def test_an_option_cannot_imitate_the_next_one() -> None:
    blocks = drawn(a_question("a\n2. b", "c" * 80))
    assert "1. a ↵ 2. b\n2. " in shown(blocks)


def test_a_question_that_is_too_long_for_a_message_keeps_its_labels_as_controls() -> None:
    card = a_question("Yes", "No", summary="word " * 5000)
    file = cards.args_file(card)
    assert file is not None and "word " * 4999 in file.content.decode()
    assert labels(drawn(card)) == ["Yes", "No", "Other…"]


@given(
    st.lists(
        st.builds(Choice, label=st.text(max_size=120), data=st.just(""), description=st.text(max_size=90))
    ),
    st.booleans(),
    st.integers(1, 20),
)
def test_every_question_is_one_that_slack_takes_and_every_option_can_be_read_and_chosen(
    choices: list[Choice], multi: bool, times: int
) -> None:
    options = [
        Choice(label=c.label, data=f"v1:q_1:{n}", description=c.description)
        for n, c in enumerate(choices * times)
    ]
    card = a_question(*options, multi=multi)
    file = cards.args_file(card)
    message = cards.card(card, file=file)
    checked_message(message)
    found = offered(message["blocks"])
    chosen = [o["value"] for o in found] + [e["value"] for e in controls(message["blocks"]) if "value" in e]
    assert {o.data for o in options} <= set(chosen) or "write the option's number" in shown(message["blocks"])
    readable = shown(message["blocks"]) + (file.content.decode() if file else "")
    readable += "\n".join([*(o["text"]["text"] for o in found), *labels(message["blocks"])])
    readable += "\n".join(o["description"]["text"] for o in found if "description" in o)
    for option in options:
        assert visible(option.label).replace("\n", " ↵ ").strip() in readable
        assert visible(option.description).replace("\n", " ↵ ").strip() in readable
