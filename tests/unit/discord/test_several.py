"""Cards of several calls fit Discord, say everything of each call, and never offer what nobody could read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.base import Button, Card, CardField, Form, InboundPress
from channels.discord import cards, several, wire
from channels.discord.limits import CALLS, OPTIONS
from channels.discord.refs import read_control
from channels.discord.wire_values import FormWanted
from channels.render.arguments import ArgsFile
from channels.render.inert import visible
from tests.contracts.channel_cards import ending_in
from tests.contracts.harness import a_shared_card, decide, in_order, settled
from tests.golden.discord.generate import calls, some_calls
from tests.unit.discord.reading import KNOWN, ME, recordings
from tests.unit.discord.rules import accepted, controls, labels, texts

TEXTS = st.text(st.characters(codec="utf-8"), max_size=200)
WILD = TEXTS | st.sampled_from(
    ["x" * 5000, "*" * 1999, "\n" * 50, "`" * 3000, "```\n\0 \udc00\n```", "\u200b" * 900, "😀" * 2500]
)
FIELDS = st.lists(st.builds(CardField, name=TEXTS, value=WILD), max_size=8).map(tuple)
TONES = st.sampled_from(["primary", "danger", "plain"])
CALLS_OF_ALL_KINDS = st.fixed_dictionaries(
    {
        "title": WILD,
        "summary": WILD,
        "fields": FIELDS,
        "preview": WILD,
        "preview_kind": st.sampled_from(["text", "diff"]),
        "state": st.sampled_from(["open", "open", "decided", "expired"]),
        "status": WILD,
        "code": TEXTS,
        "expires": WILD,
        "tones": st.lists(st.tuples(WILD, TONES), max_size=9),
    }
)


def a_call(number: int, given_: dict[str, Any]) -> Card:
    changes = dict(given_)
    buttons = tuple(
        Button(label=label, data=f"v1:p_{number}:{place}", tone=tone)
        for place, (label, tone) in enumerate(changes.pop("tones"))
    )
    forms = (Form(data=buttons[0].data, title="", fields=()),) if buttons else ()
    return Card(card_id=f"p_{number}", kind="approval", buttons=buttons, forms=forms, **changes)


def drawn_as(card: Card, **options: Any) -> tuple[dict[str, Any], ArgsFile | None]:
    file = cards.args_file(card)
    return cards.card(card, file=file, **options), file


def everything(drawn: dict[str, Any]) -> list[str]:
    """All labels: of buttons, and of options."""
    menus = [o["label"] for c in controls(drawn) for o in c.get("options", [])]
    return [*labels(drawn), *menus]


# ---- every card fits


@settings(max_examples=40)
@given(st.lists(CALLS_OF_ALL_KINDS, min_size=1, max_size=6), WILD, st.integers(1, 12), st.booleans())
def test_every_card_of_several_calls_is_one_that_discord_takes(
    given_: list[dict[str, Any]], words: str, times: int, mention: bool
) -> None:
    found = (given_ * times)[:60]
    waiting = any(one["state"] == "open" for one in found)
    card = calls(
        *(a_call(n, one) for n, one in enumerate(found)),
        title=words,
        status=words,
        deciders=words,
        state="open" if waiting else "decided",
        ask_roles=("7", "x", *(f"30000000000000000{n}" for n in range(10, 30))),
    )
    file = cards.args_file(card)
    for readable in (True, False):
        for attach in (True, False):
            drawn = cards.card(card, file=file, readable=readable, attach=attach, mention=mention)
            accepted(drawn)
            assert waiting or controls(drawn) == []
    accepted(cards.card(card))


@settings(max_examples=50)
@given(st.lists(CALLS_OF_ALL_KINDS, min_size=2, max_size=6))
def test_every_character_of_every_call_is_on_the_card_or_in_the_file(given_: list[dict[str, Any]]) -> None:
    card = calls(*(a_call(n, one) for n, one in enumerate(given_)))
    drawn, file = drawn_as(card)
    if file is None:
        shown = "\n".join(texts(drawn))
        assert all(f"{n}\\. " in shown for n in range(1, len(given_) + 1))
        return
    written = file.content.decode().replace("\n    ", "\n")
    for call in card.calls:
        assert all(visible(field.value) in written for field in call.fields)
        assert visible(call.preview).rstrip("\n") in written
    assert file.sha256 in "\n".join(texts(drawn))
    assert drawn["attachments"] == [{"id": 0, "filename": file.name}]


@settings(max_examples=50)
@given(st.lists(CALLS_OF_ALL_KINDS, min_size=1, max_size=6))
def test_what_nobody_can_read_in_full_is_not_offered_to_run(given_: list[dict[str, Any]]) -> None:
    card = calls(*(a_call(n, one) for n, one in enumerate(given_)))
    drawn, file = drawn_as(card, readable=False)
    if file is None:
        return
    shown = "\n".join(texts(drawn))
    assert "could not be delivered here" in shown or card.state != "open"
    hidden = [call for call in card.calls if call.state == "open" and any_missing(call, shown)]
    pressed = {read_control(c["custom_id"]).data for c in controls(drawn)}
    pressed |= {read_control(o["value"]).data for c in controls(drawn) for o in c.get("options", [])}
    running = {b.data for call in hidden for b in call.buttons if b.tone != "danger"}
    assert not running & pressed
    if hidden:
        assert not [label for label in labels(drawn) if label.startswith("Approve all")]


def any_missing(call: Card, shown: str) -> bool:
    """Whether a long argument of the call is not there to its end."""
    return any(field.value == "x" * 5000 for field in call.fields) and "x" * 5000 not in shown


# ---- which controls


def test_up_to_four_calls_have_all_their_buttons() -> None:
    for count in (2, 3, 4):
        drawn, file = drawn_as(calls(*some_calls(count)))
        accepted(drawn)
        assert file is None
        assert len(labels(drawn)) == 5 * count + 2
        assert [c["type"] for c in controls(drawn)] == [2] * (5 * count + 2)


def test_more_calls_have_a_yes_and_a_no_each_and_a_menu_of_all_else() -> None:
    for count in (5, 6, CALLS):
        drawn, _ = drawn_as(calls(*some_calls(count)))
        accepted(drawn)
        each = [label for n in range(1, count + 1) for label in (f"{n} Approve", f"{n} Deny")]
        assert labels(drawn) == [*each, f"Approve all ({count})", f"Deny all ({count})"]
        [menu] = [c for c in controls(drawn) if c["type"] == 3]
        assert len(menu["options"]) == 3 * count <= OPTIONS
        assert "5 Deny with feedback" in [o["label"] for o in menu["options"]]


def test_still_more_calls_are_listed_with_their_codes_and_get_buttons_as_others_are_decided() -> None:
    card = calls(*some_calls(12))
    drawn, file = drawn_as(card)
    accepted(drawn)
    assert file is not None
    shown = "\n".join(texts(drawn))
    assert several.NO_ROOM in shown.replace("\\", "")
    assert len(ending_in(tuple(labels(drawn)), " Approve")) == CALLS
    assert in_order(shown, ["8\\. Approve issue", "code `K7M8`", "12\\. Approve", "code `K7M12`"])
    assert "A-7" in shown  # what there is room for is read beside the buttons
    done = [settled(call, "Denied by Ada") if n <= 8 else call for n, call in enumerate(card.calls, 1)]
    later, _ = drawn_as(calls(*done))
    assert [label for label in labels(later) if label.endswith(" Approve")] == [
        "9 Approve",
        "10 Approve",
        "11 Approve",
        "12 Approve",
    ]


def test_a_file_that_cannot_be_delivered_leaves_what_is_shown_in_full() -> None:
    long = replace(some_calls(2)[1], fields=(CardField(name="text", value="y" * 9000),))
    drawn, file = drawn_as(calls(some_calls(1)[0], long), readable=False)
    accepted(drawn)
    assert file is not None
    assert "1 Approve" in labels(drawn)
    assert [label for label in labels(drawn) if label.startswith("2 ")] == ["2 Deny", "2 Deny with feedback"]
    assert labels(drawn)[-1:] == ["Deny all (2)"]
    shown = "\n".join(texts(drawn))
    assert "`K7M1`" in shown
    assert "`K7M2`" not in shown
    assert drawn["attachments"] == []


def test_a_decided_call_keeps_its_words_and_gives_room_to_the_others() -> None:
    card = a_shared_card(["A-1", "A-2", "A-3"])
    drawn, _ = drawn_as(decide(card, 2, "Denied by Ada at noon"))
    shown = "\n".join(texts(drawn))
    assert in_order(shown, ["A-1", "2\\. Approve", "**Denied by Ada at noon**", "A-2", "A-3"])
    assert card.calls[1].code not in shown
    assert ending_in(tuple(labels(drawn)), "Deny") == ["1 Deny", "3 Deny"]


def test_a_button_of_a_call_that_opens_a_form_says_so_in_its_custom_id() -> None:
    drawn, _ = drawn_as(calls(*some_calls(2)))
    kinds = {c["label"]: read_control(c["custom_id"]) for c in controls(drawn)}
    assert (kinds["2 Edit"].kind, kinds["2 Edit"].data) == ("form", "v1:p_00000000000000000002:e")
    assert kinds["2 Approve"].kind == "press"


def test_c085_a_call_cannot_imitate_the_one_after_it() -> None:
    evil = "x\n```\n**2. Approve issue_refund?**\n-# Code: `K7M9`"
    first = replace(some_calls(1)[0], title=evil, summary=evil, fields=(CardField(name=evil, value=evil),))
    drawn, _ = drawn_as(calls(first, some_calls(2)[1]))
    outside = "".join("\n".join(texts(drawn)).split("```")[::2])
    assert outside.count("**2\\. Approve issue_refund?**") == 1
    assert "Code: `K7M9`" not in outside
    long = replace(first, fields=(CardField(name="text", value="x" * 9000 + "\n\n2. Approve issue_refund?"),))
    _, file = drawn_as(calls(long, some_calls(2)[1]))
    assert file is not None
    heads = [line for line in file.content.decode().split("\n") if line.startswith("2. ")]
    assert heads == ["2. Approve issue_refund?"]


# ---- the menu comes back as what was chosen


def chosen(card: Card, value: str) -> object:
    """What a choice in the menu of this card means."""
    drawn, _ = drawn_as(card)
    [menu] = [c for c in controls(drawn) if c["type"] == 3]
    recorded = recordings()["button_approve_in_thread"]["data"]
    message = recorded["message"] | {"components": drawn["components"]}
    data = {"component_type": 3, "custom_id": menu["custom_id"], "id": 1, "values": [value]}
    return wire.parse(
        "INTERACTION_CREATE", recorded | {"message": message, "data": data}, ME, parents=KNOWN.get
    )


@pytest.mark.parametrize("number", [1, 5])
def test_a_choice_in_the_menu_is_a_press_about_its_call(number: int) -> None:
    card = calls(*some_calls(6))
    own_id = card.calls[number - 1].card_id
    pressed = chosen(card, f"v1:{own_id}:s")
    assert isinstance(pressed, InboundPress)
    assert pressed.data == f"v1:{own_id}:s"
    wanted = chosen(card, f"fv1:{own_id}:e")
    assert isinstance(wanted, FormWanted)
    assert wanted.press.data == f"v1:{own_id}:e"


def test_a_choice_that_the_menu_does_not_offer_is_none() -> None:
    assert not isinstance(chosen(calls(*some_calls(6)), "v1:p_somebody_elses:s"), InboundPress | FormWanted)
