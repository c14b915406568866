"""Cards of several calls: each can be read and decided by itself, and none runs unread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.base import Button, Card, CardField, Form, FormField
from channels.render.inert import visible
from channels.slack import cards, home
from tests.contracts.harness import a_shared_card, an_approval, decide, in_order, settled
from tests.unit.slack.blockkit import checked_home, checked_message, codes, controls, labels, live, shown
from tests.unit.slack.test_cards import TEXTS, WILD

ORDERS = ["A-1", "A-2", "A-3"]
APPROVES, REFUSES = {"Approve", "Approve for this session", "Edit"}, {"Deny", "Deny with feedback"}


def buttons(card_id: str) -> tuple[Button, ...]:
    """Those of the gateway's own cards."""
    return (
        Button(label="Approve", data=f"v1:{card_id}:a", tone="primary"),
        Button(label="Approve for this session", data=f"v1:{card_id}:s"),
        Button(label="Edit", data=f"v1:{card_id}:e"),
        Button(label="Deny", data=f"v1:{card_id}:d", tone="danger"),
        Button(label="Deny with feedback", data=f"v1:{card_id}:f", tone="danger"),
    )


def forms(card_id: str) -> tuple[Form, ...]:
    field = FormField(name="x", label="x")
    return tuple(Form(data=f"v1:{card_id}:{choice}", title="Edit", fields=(field,)) for choice in "ef")


def full(orders: list[str]) -> Card:
    """A shared card with every button that the gateway knows."""
    card = a_shared_card(orders)
    calls = tuple(
        replace(call, buttons=buttons(call.card_id), forms=forms(call.card_id)) for call in card.calls
    )
    return replace(card, calls=calls)


def drawn(card: Card, **how: Any) -> list[dict[str, Any]]:
    """The blocks of its message, which Slack would take."""
    message = cards.card(card, **{"file": cards.args_file(card), **how})
    checked_message(message)
    assert live(message) == []
    blocks: list[dict[str, Any]] = message["blocks"]
    return blocks


def of(labels_: list[str], number: int) -> set[str]:
    """The buttons of one call."""
    return {one.removeprefix(f"{number} ") for one in labels_ if one.startswith(f"{number} ")}


# ---- everything fits


def test_each_call_has_its_words_and_below_them_its_own_buttons() -> None:
    card = full(ORDERS)
    assert cards.args_file(card) is None
    blocks = drawn(card)
    kinds = [block["type"] for block in blocks]
    assert kinds == ["header", *["rich_text", "actions"] * 3, "context", "actions"]
    for number, call in enumerate(card.calls, 1):
        words, row = blocks[2 * number - 1 : 2 * number + 1]
        assert shown([words]).startswith(f"{number}. Approve issue_refund?\n  Code: {call.code}")
        assert codes([words]) == [f"A-{number}", "20"]
        assert labels([row]) == [
            f"{number} {word}"
            for word in ("Approve", "Approve for this session", "Edit", "Deny", "Deny with feedback")
        ]
        assert [e["value"] for e in controls([row])] == [one.data for one in call.buttons]
        opening = [e["value"][-1] for e in controls([row]) if e["action_id"].startswith("form:")]
        assert opening == ["e", "f"]
    assert labels(blocks)[-2:] == ["Approve all (3)", "Deny all (3)"]


def test_the_notification_names_the_calls() -> None:
    assert cards.card(a_shared_card(["a", "b"]))["text"] == (
        "Approve 2 calls? Approve issue_refund?, Approve issue_refund?"
    )


def test_a_decided_call_says_what_became_of_it_and_has_neither_buttons_nor_a_code() -> None:
    card = decide(full(ORDERS), 2, "Denied by Ada at noon")
    blocks = drawn(card)
    words = shown(blocks)
    assert in_order(words, ["A-1", "2. Approve", "Denied by Ada at noon", "A-2", "3. Approve", "A-3"])
    assert card.calls[1].code not in words
    assert [bool(of(labels(blocks), number)) for number in (1, 2, 3)] == [True, False, True]
    assert labels(blocks)[-2:] == ["Approve all (2)", "Deny all (2)"]


def test_a_settled_card_has_no_buttons_and_no_codes_even_if_its_calls_still_have() -> None:
    card = replace(full(ORDERS), state="superseded", status="Stopped by Ada")
    blocks = drawn(card)
    assert controls(blocks) == []
    assert not any(call.code in shown(blocks) for call in card.calls)


def test_a_call_cannot_imitate_the_next_one() -> None:
    bait = "20\n2. Approve issue_refund?\n  Code: evil"
    blocks = drawn(full([bait, "A-2"]))
    titles = [
        run["text"]
        for block in blocks
        if block["type"] == "rich_text"
        for part in block["elements"]
        for run in part["elements"]
        if part["type"] == "rich_text_section" and run.get("style") == {"bold": True}
        if not run["text"].endswith(":")
    ]
    assert titles == ["1. Approve issue_refund?", "2. Approve issue_refund?"]
    long = replace(full([bait, "x" * 20_000]), title="Approve 2 calls?")
    file = cards.args_file(long)
    assert file is not None
    heads = [line for line in file.content.decode().split("\n") if line[:1].isdigit()]
    assert heads == ["1. Approve issue_refund?", "2. Approve issue_refund?"]


# ---- it does not


def test_calls_that_are_too_long_show_beginnings_beside_one_file_with_all_of_them() -> None:
    card = full(["step; " * 4_000, "A-2", "step; " * 4_000])
    file = cards.args_file(card)
    assert file is not None and file.name == f"args-{card.card_id}.txt"
    content = file.content.decode()
    for number, call in enumerate(card.calls, 1):
        assert f"\n{number}. Approve issue_refund?\n" in content
        assert f"    Code: {call.code}" in content
    assert content.count("step; " * 3_999) == 2
    blocks = drawn(card)
    assert codes(blocks)[0].endswith("…") and codes(blocks)[2] == "A-2"
    assert file.sha256 in shown(blocks)
    assert [of(labels(blocks), n) for n in (1, 2, 3)] == [APPROVES | REFUSES] * 3
    assert "Approve all (3)" in labels(blocks)


def test_without_the_file_only_calls_that_are_shown_in_full_can_be_approved() -> None:
    card = full(["step; " * 4_000, "A-2", "A-3"])
    blocks = drawn(card, readable=False)
    assert [of(labels(blocks), n) for n in (1, 2, 3)] == [REFUSES, APPROVES | REFUSES, APPROVES | REFUSES]
    assert labels(blocks)[-1:] == ["Deny all (3)"]
    assert "Approve all (3)" not in labels(blocks)
    words = shown(blocks)
    assert "calls that are not shown in full cannot be approved from this message" in words
    assert [call.code in words for call in card.calls] == [False, True, True]


def test_without_the_file_all_can_be_approved_once_the_long_call_is_decided() -> None:
    card = decide(full(["step; " * 4_000, "A-2", "A-3"]), 1, "Denied by Ada")
    assert labels(drawn(card, readable=False))[-2:] == ["Approve all (2)", "Deny all (2)"]


def test_the_file_is_the_same_whatever_has_been_decided() -> None:
    card = full(["step; " * 4_000, "A-2", "step; " * 4_000])
    assert cards.args_file(card) == cards.args_file(decide(card, 2, "Denied by Ada"))


def test_many_calls_keep_a_yes_and_a_no_each_and_say_where_the_other_choices_are() -> None:
    card = full([f"B-{n}" for n in range(14)])
    blocks = drawn(card)
    assert {frozenset(of(labels(blocks), n)) for n in range(1, 15)} == {frozenset({"Approve", "Deny"})}
    assert "the others are in the Home tab of this app" in shown(blocks)
    view = home.view([card])
    checked_home(view)
    assert {frozenset(of(labels(view["blocks"]), n)) for n in range(1, 15)} == {frozenset(APPROVES | REFUSES)}


@pytest.mark.parametrize("count", [40, 90, 2_000])
def test_more_calls_than_there_is_room_for_are_named_with_their_codes(count: int) -> None:
    card = full([f"B-{n:04}" for n in range(count)])
    file = cards.args_file(card)
    assert file is not None
    blocks = drawn(card)
    words = shown(blocks)
    decidable = [n for n in range(1, count + 1) if of(labels(blocks), n)]
    assert decidable == list(range(1, len(decidable) + 1))
    named = [
        n for n in range(1, count + 1) if f"\n{n}. Approve issue_refund? – code cd{n:03}" in f"\n{words}"
    ]
    assert named == list(range(len(decidable) + 1, len(decidable) + len(named) + 1))
    missing = count - len(decidable) - len(named)
    assert (f"… and {missing} more" in words) == (missing > 0)
    assert "mention me with /approve CODE or /deny CODE" in words
    assert {f"Approve all ({count})", f"Deny all ({count})"} <= set(labels(blocks))
    assert all(f"Code: {call.code}" in file.content.decode() for call in card.calls)


@pytest.mark.parametrize("count", [20, 40])
def test_without_the_file_the_first_of_many_calls_can_be_decided_and_then_the_next_ones(count: int) -> None:
    card = full([f"B-{n:04}" for n in range(count)])
    found = labels(drawn(card, readable=False))
    decidable = [n for n in range(1, count + 1) if "Approve" in of(found, n)]
    assert decidable == list(range(1, len(decidable) + 1)) and len(decidable) > 5
    assert found[-1] == f"Deny all ({count})" and f"Approve all ({count})" not in found
    for number in decidable:
        card = decide(card, number, "Approved by Ada")
    blocks = drawn(card, readable=False)
    assert "Approve" in of(labels(blocks), len(decidable) + 1)
    assert "\n2. Approve issue_refund? – Approved by Ada\n" in shown(blocks)


def test_a_request_for_deciders_only_is_shown_by_its_button_even_without_the_file() -> None:
    show = Button(label="Show me", data="v1:p_1:v", tone="primary", harmless=True)
    card = an_approval(summary="x " * 10_000, fields=(), buttons=(show,), code="")
    assert labels(cards.card(card, file=cards.args_file(card), readable=False)["blocks"]) == ["Show me"]
    assert "no argument" not in shown(drawn(card)).casefold()


# ---- in the home


def test_the_home_lists_every_call_with_its_buttons_and_those_for_all() -> None:
    view = home.view([decide(full(ORDERS), 1, "Denied by Ada"), an_approval()])
    checked_home(view)
    found = labels(view["blocks"])
    assert [of(found, n) for n in (1, 2, 3)] == [set(), APPROVES | REFUSES, APPROVES | REFUSES]
    assert found[-4:] == ["Approve all (2)", "Deny all (2)", "Approve", "Deny"]
    assert in_order(shown(view["blocks"]), ["A-1", "A-2", "A-3", "A-1001"])
    assert live(view) == []


def test_a_call_that_the_home_cannot_show_in_full_is_not_approved_there_nor_are_all() -> None:
    view = home.view([full(["x " * 2_000, "A-2"])])
    checked_home(view)
    assert [of(labels(view["blocks"]), n) for n in (1, 2)] == [REFUSES, APPROVES | REFUSES]
    assert labels(view["blocks"])[-1] == "Deny all (2)"
    assert "Approve all (2)" not in labels(view["blocks"])
    assert "Open the thread for the rest." in shown(view["blocks"])


def test_a_card_too_large_for_the_home_hides_no_other_card() -> None:
    many = tuple(Button(label=f"b{n}", data=f"v1:p:{n}") for n in range(60))
    card = full([f"B-{n}" for n in range(40)])
    large = replace(card, calls=tuple(replace(call, buttons=many) for call in card.calls))
    view = home.view([large, an_approval()])
    checked_home(view)
    assert labels(view["blocks"]) == ["Approve", "Deny"]
    assert "1 more: /threadgate pending" in shown(view["blocks"])


# ---- whatever there is


CALLS = st.lists(
    st.builds(
        an_approval,
        title=TEXTS,
        summary=TEXTS | WILD,
        fields=st.lists(st.builds(CardField, name=TEXTS, value=WILD), max_size=3).map(tuple),
        preview=TEXTS | WILD,
        preview_kind=st.sampled_from(["text", "diff"]),
        code=st.sampled_from(["K7M2", ""]),
        expires=TEXTS,
        status=TEXTS,
        state=st.sampled_from(["open", "open", "decided", "expired", "superseded"]),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=40)
@given(CALLS, st.sampled_from([1, 2, 7]), st.sampled_from(["open", "decided"]), TEXTS | WILD)
def test_every_card_of_several_calls_is_one_that_slack_takes_and_nothing_unread_can_run(
    some: list[Card], times: int, state: Any, status: str
) -> None:
    calls = tuple(
        replace(call, card_id=f"p_{n}", buttons=buttons(f"p_{n}"), forms=forms(f"p_{n}"))
        for n, call in enumerate(some * times)
    )
    card = replace(a_shared_card(["x", "y"]), calls=calls, state=state, status=status, deciders=status)
    file = cards.args_file(card)
    waiting = [n for n, call in enumerate(calls, 1) if call.state == "open" and state == "open"]
    for known, readable in ((file, True), (file, False), (None, True)):
        message = cards.card(card, file=known, readable=readable)
        checked_message(message)
        assert live(message) == []
        found = labels(message["blocks"])
        assert {n for n in range(1, len(calls) + 1) if of(found, n)} <= set(waiting)
        everything_read = file is None or (known is not None and readable)
        boxes = codes(message["blocks"])
        for n in waiting:
            whole = all(
                any(len(box) >= len(f.value.rstrip("\n")) for box in boxes) for f in calls[n - 1].fields
            )
            if of(found, n) & APPROVES:
                assert everything_read or whole
            elif everything_read and of(found, n):
                raise AssertionError("a call that can be read has no yes")
        if "Approve all (2)" in found:
            assert state == "open"
            if not everything_read:
                assert all(of(found, n) & APPROVES for n in waiting)
        elif state == "open":
            assert not everything_read
    view = home.view([card, an_approval()] * 2, "note")
    checked_home(view)
    assert live(view) == []


@settings(max_examples=40)
@given(CALLS)
def test_every_character_of_every_call_is_in_the_message_or_in_the_file(some: list[Card]) -> None:
    card = replace(a_shared_card(["x", "y"]), calls=tuple(some))
    file = cards.args_file(card)
    words = "\n".join(shown(cards.card(card, file=file)["blocks"]).split()) if file is None else ""
    readable = "\n".join(file.content.decode().split()) if file else words
    for call in some:
        for text in (*(field.value for field in call.fields), call.preview):
            for word in visible(text).split():
                assert word in readable
    assert settled(card, "Closed").buttons == ()
