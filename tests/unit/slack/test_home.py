"""The App Home lists what waits, with controls that work, and approves nothing unread."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from channels.base import Button, Card, CardField, Choice
from channels.slack import home
from tests.contracts.harness import an_approval
from tests.unit.slack.blockkit import checked_home, codes, controls, labels, live, shown
from tests.unit.slack.test_cards import FIELDS, TEXTS, WILD
from tests.unit.slack.test_choices import a_question

LONG = an_approval(fields=(CardField(name="script", value="step; " * 500),))


def test_nothing_waiting_is_said_with_how_to_begin() -> None:
    view = home.view([])
    checked_home(view)
    assert "Nothing waits for your decision" in shown(view["blocks"])
    assert "mention me in a channel" in shown(view["blocks"])


def test_a_card_is_listed_with_its_arguments_its_code_and_the_same_controls() -> None:
    view = home.view([an_approval()])
    checked_home(view)
    words = shown(view["blocks"])
    for told in ("Approve issue_refund?", "order_id:", "Expires: tomorrow at noon", "Code: K7M2"):
        assert told in words
    assert codes(view["blocks"]) == ["A-1001", "20"]
    assert [(e["action_id"], e["value"]) for e in controls(view["blocks"])] == [
        ("press:2:v1:p_abcdefghijklmnopqrst:approve", "v1:p_abcdefghijklmnopqrst:approve"),
        ("press:3:v1:p_abcdefghijklmnopqrst:deny", "v1:p_abcdefghijklmnopqrst:deny"),
    ]


def test_a_card_whose_arguments_are_cut_cannot_be_approved_in_the_list() -> None:
    view = home.view([LONG])
    checked_home(view)
    assert labels(view["blocks"]) == ["Deny"]
    assert "Open the thread for the rest." in shown(view["blocks"])
    assert "Code: K7M2" in shown(view["blocks"])


def test_a_preview_is_read_in_the_list_too_or_the_card_is_not_approved_there() -> None:
    view = home.view([an_approval(preview="-1\n+2", preview_kind="diff")])
    assert codes(view["blocks"]) == ["A-1001", "20", "-1\n+2"]
    assert labels(view["blocks"]) == ["Approve", "Deny"]
    assert labels(home.view([an_approval(preview="x" * 2_000)])["blocks"]) == ["Deny"]


def test_a_question_whose_options_are_cut_is_answered_in_its_thread() -> None:
    view = home.view([a_question(*(f"{'x' * 90} {n}" for n in range(30)))])
    checked_home(view)
    assert controls(view["blocks"]) == []
    assert "Open the thread for the rest." in shown(view["blocks"])


def test_questions_are_answered_in_the_list() -> None:
    view = home.view([a_question("Yes", "No"), a_question("a", "b", multi=True)])
    checked_home(view)
    assert labels(view["blocks"]) == ["Yes", "No", "Other…", "Confirm", "Other…"]
    assert [e["type"] for e in controls(view["blocks"])].count("checkboxes") == 1


def test_what_came_of_the_last_press_stands_on_top() -> None:
    view = home.view([an_approval()], "Denied by <@U1>.")
    checked_home(view)
    assert shown(view["blocks"]).startswith("Denied by <@U1>.\n")
    assert live(view) == []


def test_the_list_is_bounded_and_says_how_many_are_missing() -> None:
    view = home.view([an_approval()] * 33)
    checked_home(view)
    assert len(labels(view["blocks"])) == 40
    assert "13 more: /threadgate pending lists them all." in shown(view["blocks"])


@given(TEXTS, WILD, FIELDS, WILD, st.integers(1, 30), st.booleans())
def test_every_home_is_one_that_slack_takes(
    title: str, summary: str, fields: tuple[CardField, ...], note: str, times: int, multi: bool
) -> None:
    buttons = tuple(Button(label=f"{title}{n}", data=f"v1:p:{n}") for n in range(5))
    card = an_approval(title=title, summary=summary, fields=fields, deciders=note, expires=note, status=note)
    options = tuple(Choice(label=f"{summary[:90]}{n}", data=f"v1:q:{n}") for n in range(times))
    question = replace(a_question(multi=multi), choices=options, summary=summary, title=title)
    view = home.view([card, replace(card, buttons=buttons), question] * times, note)
    checked_home(view)
    assert live(view) == []


def test_each_call_of_a_card_has_its_own_buttons_in_the_list_twenty_calls_too() -> None:
    labels_ = ("Approve", "For this session", "Always", "Edit", "Deny", "Deny with feedback")
    more = ("Pass on…", "Take back")

    def call(place: int, script: str) -> Card:
        buttons = [
            Button(
                label=label, data=f"v1:p_{place}:{n}", tone="danger" if label.startswith("Deny") else "plain"
            )
            for n, label in enumerate(labels_)
        ]
        buttons += [Button(label=label, data=f"v1:p_{place}:{label[0]}", harmless=True) for label in more]
        fields = (CardField(name="script", value=script),)
        return an_approval(card_id=f"p_{place}", fields=fields, buttons=tuple(buttons), code=f"C{place}")

    calls = (*(call(n, f"step {n}") for n in range(19)), call(19, "step; " * 500))
    post = Button(label="Post again", data="v1:p_0:p", harmless=True)
    card = an_approval(
        calls=calls, fields=(), buttons=(Button(label="Approve all (20)", data="v1:p_0:Y"), post)
    )
    view = home.view([card])
    checked_home(view)
    shown_ = labels(view["blocks"])
    assert [one for one in shown_ if one.startswith("7 ")] == [f"7 {label}" for label in (*labels_, *more)]
    cut_ = [f"20 {label}" for label in ("Deny", "Deny with feedback", *more)]
    assert [one for one in shown_ if one.startswith("20 ")] == cut_
    assert shown_[-1] == "Post again" and "Approve all (20)" not in shown_
