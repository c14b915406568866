"""Forms fit Discord's modals, keep what they show, and give back what was typed under its own name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Form, FormField
from channels.discord import modals
from channels.discord.limits import INPUT, MODAL_FIELDS
from channels.discord.refs import read_control, read_modal
from tests.golden.discord.generate import EDIT, HERE
from tests.unit.discord.rules import accepted, accepted_modal, controls

Json = dict[str, Any]

TEXTS = st.text(st.characters(codec="utf-8"), max_size=120)
WILD = TEXTS | st.sampled_from(["x" * 5000, "😀" * 1500, "\n" * 20, "\ud83d", "a\r\nb", "true", "1", "\0"])
KINDS = st.sampled_from(
    ["text", "long_text", "integer", "number", "boolean", "select", "json", "date", "multi"]
)
OPTIONS = st.lists(TEXTS | st.just("o" * 101), max_size=6).map(tuple) | st.integers(1, 30).map(
    lambda count: tuple(f"option {n}" for n in range(count))
)


def _field(index: int, name: str, **changes: Any) -> FormField:
    return FormField(name=f"{name}{index}", **changes)


FIELDS = st.lists(
    st.fixed_dictionaries(
        {
            "label": WILD,
            "kind": KINDS,
            "value": WILD,
            "required": st.booleans(),
            "options": OPTIONS,
            "hint": WILD,
        }
    ),
    max_size=14,
)
NAMES = TEXTS | st.sampled_from(["n" * 200, "a:b", "", "\ud83d", "x\ny"])


def submitted(modal: Json, typed: dict[str, str] | None = None) -> list[Json]:
    """What comes back when the person changes nothing but these inputs, by custom id."""
    found: list[Json] = []
    for number, component in enumerate(modal["components"], 1):
        if component["type"] == 10:
            found.append({"type": 10, "id": number})
            continue
        inner = component["component"]
        value = (typed or {}).get(inner["custom_id"], _as_it_is(inner))
        answer: Json = {"type": inner["type"], "id": number, "custom_id": inner["custom_id"]}
        if inner["type"] in (3, 22):
            answer["values"] = [] if value is None else value if isinstance(value, list) else [value]
        else:
            answer["value"] = value
        found.append({"type": 18, "id": number, "component": answer})
    return found


def _as_it_is(inner: Json) -> str | list[str] | None:
    if inner["type"] == 4:
        return str(inner.get("value", ""))
    if inner["custom_id"].startswith("m"):
        return [str(o["value"]) for o in inner["options"] if o.get("default")]
    return next((str(o["value"]) for o in inner["options"] if o.get("default")), None)


@given(st.text(max_size=80), NAMES, FIELDS)
def test_every_page_is_a_modal_that_discord_takes_and_gives_every_value_back(
    title: str, name: str, found: list[dict[str, Any]]
) -> None:
    form = Form(
        data="v1:p:e", title=title, fields=tuple(_field(n, name, **given_) for n, given_ in enumerate(found))
    )
    back: dict[str, str | tuple[str, ...]] = {}
    for page in range(modals.pages(form)):
        modal = modals.form(form, page)
        accepted_modal(modal)
        opened = read_modal(modal["custom_id"])
        assert opened is not None
        assert (opened.data, opened.page) == (form.data, page)
        back |= modals.values(submitted(modal), form)
    values = {field.name: field.value for field in form.fields}
    for name_, value in back.items():
        if isinstance(value, tuple):
            assert set(value) == set(lines(values[name_]))
            continue
        as_truth = value in ("true", "false") and values[name_].strip().casefold() == value
        assert value == values[name_] or as_truth
    missing = set(values) - set(back)
    kept = {field.name for field in form.fields if field.name in missing}
    unset = {f.name for f in form.fields if not f.value.strip() and f.kind in ("boolean", "select")}
    assert bool(kept - unset) == bool(modals.left_out(form))


def lines(value: str) -> list[str]:
    return [line.strip() for line in value.splitlines() if line.strip()]


@given(NAMES, st.integers(0, 20))
def test_a_name_travels_in_the_custom_id_or_is_found_in_the_form(name: str, index: int) -> None:
    fields = (*(FormField(name=f"f{n}", label="x") for n in range(index)), FormField(name=name, label="x"))
    form = Form(data="v1:p:e", title="Edit", fields=fields)
    modal = modals.form(form, index // MODAL_FIELDS)
    own = modal["components"][-1]["component"]["custom_id"]
    sent = submitted(modal, {own: "typed"})
    assert modals.values(sent, form)[name] == "typed"
    if modals.needs_form(sent):
        assert name not in modals.values(sent)
        assert len(own) < 10
    else:
        assert modals.values(sent)[name] == "typed"
        assert own == f"i:{index}:{name}"


def test_eleven_fields_are_three_pages_that_say_which_they_are() -> None:
    fields = tuple(FormField(name=f"f{n}", label=f"f{n}") for n in range(11))
    form = Form(data="v1:p:e", title="Edit the very long name of some tool of somebody", fields=fields)
    assert modals.pages(form) == 3
    drawn = [modals.form(form, page) for page in range(3)]
    assert [len(modal["components"]) for modal in drawn] == [5, 5, 1]
    assert [modal["title"][-5:] for modal in drawn] == ["(1/3)", "(2/3)", "(3/3)"]
    with pytest.raises(ValueError, match="has 3 pages"):
        modals.form(form, 3)
    with pytest.raises(ValueError, match="has 3 pages"):
        modals.form(form, -1)


def test_what_was_typed_is_shown_again_when_the_form_is_opened_again() -> None:
    modal = modals.form(EDIT, 0, {"order_id": "B-2", "currency": "USD", "express": "true"})
    inputs = [label["component"] for label in modal["components"]]
    assert inputs[0]["value"] == "B-2"
    assert inputs[1]["value"] == "20"
    assert [o["value"] for o in inputs[2]["options"] if o.get("default")] == ["USD"]
    assert [o["value"] for o in inputs[3]["options"] if o.get("default")] == ["true"]


def test_the_first_page_opened_from_the_card_has_the_press_as_its_custom_id() -> None:
    assert modals.form(EDIT)["custom_id"] == EDIT.data
    later = read_modal(modals.form(EDIT, 1, card="1234567890")["custom_id"])
    assert later is not None
    assert (later.data, later.page, later.card) == (EDIT.data, 1, "1234567890")


def test_values_that_a_modal_would_harm_are_left_out_and_said_to_be_kept() -> None:
    fields = (
        FormField(name="long", label="long", value="x" * (INPUT + 1)),
        FormField(name="odd", label="odd", value="a\rb"),
        *(FormField(name=f"f{n}", label=f"f{n}") for n in range(5)),
    )
    form = Form(data="v1:p:e", title="Edit", fields=fields)
    assert modals.pages(form) == 2
    for page in (0, 1):
        modal = modals.form(form, page)
        accepted_modal(modal)
        assert "keep their values: long, odd" in modal["components"][-1]["content"]
        assert not {"long", "odd"} & set(modals.values(submitted(modal)))


def test_a_form_with_nothing_to_fill_in_has_no_page_and_says_why() -> None:
    form = Form(data="v1:p:e", title="Edit", fields=(FormField(name="long", label="long", value="x" * 9999),))
    assert modals.pages(form) == 0
    assert "keeps its value: long" in modals.keeps_all(form)
    assert modals.keeps_all(Form(data="v1:p:e", title="Edit", fields=())) == "There is nothing to fill in."


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"kind": "text"}, 4),
        ({"kind": "boolean", "value": "true"}, 3),
        ({"kind": "boolean", "value": "maybe"}, 4),
        ({"kind": "select", "options": ("a", "b"), "required": True}, 21),
        ({"kind": "select", "options": ("a", "b")}, 3),
        ({"kind": "select", "options": tuple("abcdef"), "required": True}, 3),
        ({"kind": "select", "options": tuple(str(n) for n in range(26))}, 4),
        ({"kind": "select", "options": ("a", "b"), "value": "c"}, 4),
        ({"kind": "select", "options": ("a", "o" * 101)}, 4),
        ({"kind": "multi", "options": ("a", "b")}, 22),
        ({"kind": "multi", "options": ("a", "b"), "value": "b\na", "required": True}, 22),
        ({"kind": "multi", "options": tuple("abcdefghijk"), "value": "b"}, 3),
    ],
)
def test_each_kind_of_field_has_the_input_that_can_hold_it(changes: dict[str, Any], kind: int) -> None:
    field = FormField(name="f", label="f", **changes)
    modal = modals.form(Form(data="v1:p:e", title="Edit", fields=(field,)))
    accepted_modal(modal)
    [label] = modal["components"]
    assert label["component"]["type"] == kind
    if kind == 4 and changes["kind"] != "text":
        assert label["description"].startswith("One of: ")


@pytest.mark.parametrize("options", [("a", "b"), tuple("abcdefghijk")])
def test_what_was_chosen_before_is_ticked(options: tuple[str, ...]) -> None:
    field = FormField(name="tags", label="tags", kind="multi", options=options, value="b\na")
    form = Form(data="v1:p:e", title="Edit", fields=(field,))
    for modal in (modals.form(form), modals.form(form, 0, {"tags": ("a", "b")})):
        ticked = [o["value"] for o in modal["components"][0]["component"]["options"] if o.get("default")]
        assert ticked == ["a", "b"]
        assert modals.values(submitted(modal)) == {"tags": ("a", "b")}
    [label] = modals.form(form, 0, {"tags": ()})["components"]
    assert not any(o.get("default") for o in label["component"]["options"])


@pytest.mark.parametrize(
    ("options", "value"), [(tuple(map(str, range(26))), ""), (("a",), "c"), (("a", "o" * 101), "a")]
)
def test_a_choice_that_no_control_can_hold_is_typed_a_line_each(options: tuple[str, ...], value: str) -> None:
    field = FormField(name="tags", label="tags", kind="multi", options=options, value=value)
    modal = modals.form(Form(data="v1:p:e", title="Edit", fields=(field,)))
    accepted_modal(modal)
    [label] = modal["components"]
    assert (label["component"]["type"], label["component"]["style"]) == (4, 2)
    assert label["description"].startswith("One on each line, of: ")
    own = label["component"]["custom_id"]
    assert modals.values(submitted(modal, {own: " a \n\nb\n"})) == {"tags": ("a", "b")}
    assert modals.values(submitted(modal, {own: ""})) == {"tags": ()}


def test_a_date_says_how_it_is_written() -> None:
    field = FormField(name="day", label="day", kind="date", value="2027-01-01", hint="The day of delivery.")
    [label] = modals.form(Form(data="v1:p:e", title="Edit", fields=(field,)))["components"]
    assert label["description"] == "The day of delivery. A date, like 2027-01-31."
    assert label["component"]["placeholder"] == "YYYY-MM-DD"


def test_a_label_that_is_too_long_is_read_below_it() -> None:
    field = FormField(name="answer", label="Which of the two warehouses in the north shall be asked first?")
    [label] = modals.form(Form(data="v1:q:t", title="Your answer", fields=(field,)))["components"]
    assert label["label"].endswith("…")
    assert label["description"] == field.label


@pytest.mark.parametrize("junk", [[], [None], ["x"], [{}], [{"type": 18}], [{"component": {"custom_id": 5}}]])
def test_a_submission_that_is_none_of_ours_has_no_values(junk: list[Any]) -> None:
    assert modals.values(junk) == {}
    assert not modals.needs_form(junk)


@pytest.mark.parametrize(
    ("component", "values"),
    [
        ({"type": 4, "custom_id": "i:0:a", "value": "x"}, {"a": "x"}),
        ({"type": 4, "custom_id": "i:0:a", "value": None}, {"a": ""}),
        ({"type": 3, "custom_id": "i:0:a", "values": ["x"]}, {"a": "x"}),
        ({"type": 3, "custom_id": "i:0:a", "values": []}, {}),
        ({"type": 21, "custom_id": "i:0:a", "value": "x"}, {"a": "x"}),
        ({"type": 21, "custom_id": "i:0:a", "value": None}, {}),
        ({"type": 19, "custom_id": "i:0:a", "values": ["1"]}, {}),
        ({"type": 4, "custom_id": "other", "value": "x"}, {}),
        ({"type": 22, "custom_id": "m:0:a", "values": ["x", "y"]}, {"a": ("x", "y")}),
        ({"type": 22, "custom_id": "m:0:a", "values": []}, {"a": ()}),
        ({"type": 3, "custom_id": "m:0:a", "values": ["x", 7]}, {"a": ("x",)}),
        ({"type": 22, "custom_id": "m:0:a"}, {}),
        ({"type": 4, "custom_id": "i:7", "value": "x"}, {}),
    ],
)
def test_an_input_is_read_by_its_kind(component: Json, values: dict[str, str | tuple[str, ...]]) -> None:
    assert modals.values([{"type": 18, "component": component}]) == values
    assert modals.values([{"type": 1, "components": [component]}]) == values


def test_after_a_page_a_button_goes_on_with_the_next() -> None:
    drawn = modals.more(EDIT, 1, "1234567890")
    accepted(drawn)
    [button] = controls(drawn)
    assert button["label"] == "Continue (2/2)"
    opens = read_control(button["custom_id"])
    assert (opens.kind, opens.data, opens.page, opens.card) == ("form", EDIT.data, 1, "1234567890")


@given(st.dictionaries(TEXTS, WILD, max_size=9))
def test_what_is_wrong_is_said_with_a_button_that_opens_the_form_again(faults: dict[str, str]) -> None:
    drawn = modals.wrong(EDIT, faults, "1234567890")
    accepted(drawn)
    [button] = controls(drawn)
    assert read_control(button["custom_id"]).data == EDIT.data


def test_the_form_is_opened_again_where_there_is_something_to_mend() -> None:
    for faults, page in (({"note": "x"}, 1), ({"note": "x", "amount": "y"}, 0), ({"": "z"}, 0)):
        [button] = controls(modals.wrong(EDIT, faults, "1234567890"))
        assert read_control(button["custom_id"]).page == page


@pytest.mark.parametrize("name", ["modal_1", "modal_2", "modal_more", "modal_wrong"])
def test_a_form_looks_as_it_was_agreed(name: str) -> None:
    card = "1234567890123456789"
    drawn = {
        "modal_1": modals.form(EDIT, 0),
        "modal_2": modals.form(EDIT, 1),
        "modal_more": modals.more(EDIT, 1, card),
        "modal_wrong": modals.wrong(EDIT, {"amount": "is not a valid integer"}, card),
    }[name]
    assert drawn == json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
