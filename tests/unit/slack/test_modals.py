"""Forms: what a modal holds comes back as it was, and what it cannot hold keeps its value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Form, FormField
from channels.slack import modals
from channels.slack.refs import ASK_CALLBACK, FORM_CALLBACK
from tests.unit.slack.blockkit import checked_modal, codes, live, shown

Json = dict[str, Any]
KINDS = ["text", "long_text", "integer", "number", "boolean", "date", "select", "multi", "json"]
TEXTS = st.text(max_size=60)
VALUES = TEXTS | st.sampled_from(
    [
        "true",
        "false",
        "True",
        "20",
        "-1.5",
        "1e5",
        "9" * 30,
        "x" * 3001,
        "\ud83d",
        "a\nb",
        "\0",
        " ",
        '{"a": 1}',
    ]
)
FIELDS = st.lists(
    st.builds(
        FormField,
        name=st.text(max_size=40) | st.sampled_from(["n" * 300, "é" * 100, "a:b", "\ud83d"]),
        label=TEXTS,
        kind=st.sampled_from(KINDS),
        value=VALUES,
        required=st.booleans(),
        options=(
            st.lists(st.text(max_size=160), max_size=12)
            | st.integers(90, 1100).map(lambda most: [f"option {n}" for n in range(most)])
        ).map(tuple),
        hint=TEXTS,
    ),
    max_size=12,
    unique_by=lambda field: field.name,
)


def field(name: str, kind: Any = "text", value: str = "", **more: Any) -> FormField:
    return FormField(name=name, label=name, kind=kind, value=value, **more)


def opened(*fields: FormField) -> Json:
    view = modals.form(Form(data="v1:p_1:e", title="Edit issue_refund", fields=fields), "meta")
    checked_modal(view)
    return view


def filled(view: Json, **typed: Any) -> Json:
    """`view.state` after a person typed and chose; what is not named is left as it was shown."""
    values: Json = {}
    for block in view["blocks"]:
        if block["type"] != "input":
            continue
        element, name = block["element"], modals.field_name(block["block_id"])
        kept: Json = {"type": element["type"]}
        offered = element.get("options") or [
            o for g in element.get("option_groups", ()) for o in g["options"]
        ]
        if element["type"] == "datepicker":
            kept["selected_date"] = typed.get(name or "", element.get("initial_date"))
        elif element["type"] in ("checkboxes", "multi_static_select"):
            wanted = [o for o in offered if o["value"] in typed.get(name or "", ())]
            kept["selected_options"] = wanted or element.get("initial_options", [])
        elif offered:
            wanted = [o for o in offered if o["value"] == typed.get(name or "")]
            kept["selected_option"] = wanted[0] if wanted else element.get("initial_option")
        else:
            kept["value"] = typed.get(name or "", element.get("initial_value"))
        values[block["block_id"]] = {element["action_id"]: kept}
    return {"values": values}


def inputs(view: Json) -> dict[str, Json]:
    """The inputs by the name of their field."""
    return {
        modals.field_name(block["block_id"]) or "": block
        for block in view["blocks"]
        if block["type"] == "input"
    }


@given(FIELDS, TEXTS)
def test_every_form_is_a_modal_that_slack_takes_and_gives_its_values_back(
    fields: list[FormField], title: str
) -> None:
    view = modals.form(Form(data="v1:p_1:e", title=title, fields=tuple(fields)), "meta")
    checked_modal(view)
    assert live(view) == []
    values = modals.values(filled(view))
    names = inputs(view).keys()
    for one in fields:
        if one.name not in names:
            assert one.name not in values
        elif one.kind == "boolean" and one.value.strip().casefold() in ("true", "false"):
            assert values[one.name] == one.value.strip().casefold()
        elif one.kind == "multi":
            assert sorted(values[one.name]) == sorted(filter(None, map(str.strip, one.value.splitlines())))
        elif inputs(view)[one.name]["element"]["type"] in ("static_select", "radio_buttons"):
            assert values.get(one.name, one.value) == one.value
        else:
            assert values[one.name] == one.value


def test_each_kind_has_its_own_input() -> None:
    view = opened(
        field("text", value="x"),
        field("long_text", "long_text"),
        field("integer", "integer", "20"),
        field("number", "number", "-1.5"),
        field("boolean", "boolean", "true"),
        field("select", "select", "b", options=("a", "b")),
        field("json", "json", '{"a": 1}', hint="limits"),
    )
    elements = {name: block["element"] for name, block in inputs(view).items()}
    assert {name: element["type"] for name, element in elements.items()} == {
        "text": "plain_text_input",
        "long_text": "plain_text_input",
        "integer": "number_input",
        "number": "number_input",
        "boolean": "radio_buttons",
        "select": "static_select",
        "json": "plain_text_input",
    }
    assert [elements[n]["multiline"] for n in ("text", "long_text", "json")] == [False, True, True]
    assert [elements[n]["is_decimal_allowed"] for n in ("integer", "number")] == [False, True]
    assert elements["select"]["initial_option"]["value"] == "b"
    assert inputs(view)["json"]["hint"]["text"] == "limits In JSON."
    assert (view["callback_id"], view["private_metadata"]) == (FORM_CALLBACK, "meta")


def test_what_is_typed_and_chosen_comes_back_as_text() -> None:
    view = opened(
        field("note", value="old"),
        field("amount", "number", "20"),
        field("urgent", "boolean", "false"),
        field("env", "select", "a", options=("a", "b")),
    )
    typed = {"note": "new & <b>", "amount": "19.5", "urgent": "true", "env": "b"}
    assert modals.values(filled(view, **typed)) == typed


def test_an_emptied_text_is_empty_and_a_choice_not_made_is_left_out() -> None:
    view = opened(field("note"), field("env", "select", options=("a", "b")), field("urgent", "boolean"))
    assert modals.values(filled(view)) == {"note": ""}


@pytest.mark.parametrize("value", ["x" * 3001, "😀" * 1501, "a\0b", "\ud83d"])
def test_a_value_that_a_modal_would_harm_is_left_out_and_said_to_keep_its_value(value: str) -> None:
    view = opened(field("script", "long_text", value), field("amount", "integer", "20"))
    assert list(inputs(view)) == ["amount"]
    assert "keeps its value: script" in shown(view["blocks"])
    assert modals.values(filled(view)) == {"amount": "20"}


def test_a_form_of_which_nothing_can_be_edited_cannot_be_submitted() -> None:
    view = opened(field("script", "long_text", "x" * 3001))
    assert "submit" not in view
    assert view["close"]["text"] == "Close"


def test_more_fields_than_a_modal_has_room_for_keep_their_values() -> None:
    view = opened(*(field(f"f{n}", value=str(n)) for n in range(150)))
    assert len(inputs(view)) == 99
    assert "keep their values: f99, f100" in shown(view["blocks"])


@pytest.mark.parametrize("value", ["1e5", "9" * 30, "about 5", "1.5"])
def test_a_number_that_slack_could_not_hold_exactly_is_edited_as_text(value: str) -> None:
    view = opened(field("n", "integer", value))
    assert inputs(view)["n"]["element"]["type"] == "plain_text_input"
    assert modals.values(filled(view)) == {"n": value}


@pytest.mark.parametrize(
    "options", [tuple(f"o{n}" for n in range(1001)), ("x" * 151, "y"), ("", "y"), ("same", "same")]
)
def test_options_that_no_menu_holds_are_typed_and_named(options: tuple[str, ...]) -> None:
    block = inputs(opened(field("env", "select", "y", options=options)))["env"]
    assert block["element"]["type"] == "plain_text_input"
    assert block["hint"]["text"].startswith("One of: ")


def test_more_options_than_one_menu_holds_are_offered_in_groups() -> None:
    options = tuple(f"o{n}" for n in range(250))
    view = opened(
        field("env", "select", "o249", options=options), field("tags", "multi", "o1\no7", options=options)
    )
    for name in ("env", "tags"):
        groups = inputs(view)[name]["element"]["option_groups"]
        assert [group["label"]["text"] for group in groups] == ["1 to 100", "101 to 200", "201 to 250"]
        assert tuple(o["value"] for group in groups for o in group["options"]) == options
    assert modals.values(filled(view)) == {"env": "o249", "tags": ("o1", "o7")}
    assert modals.values(filled(view, env="o150", tags=("o2",))) == {"env": "o150", "tags": ("o2",)}


def test_menus_that_are_too_large_together_are_typed() -> None:
    options = tuple(f"{n} {'x' * 100}" for n in range(600))
    view = opened(*(field(f"f{n}", "select", options[n], options=options) for n in range(4)))
    assert {block["element"]["type"] for block in inputs(view).values()} == {"plain_text_input"}
    assert modals.values(filled(view)) == {f"f{n}": options[n] for n in range(4)}


def test_a_date_is_picked_and_several_options_are_checked() -> None:
    view = opened(
        field("due", "date", "2027-01-31"),
        field("maybe", "date"),
        field("odd", "date", "next week"),
        field("tags", "multi", "a\nc", options=("a", "b", "c")),
    )
    kinds = {name: block["element"]["type"] for name, block in inputs(view).items()}
    assert kinds == {
        "due": "datepicker",
        "maybe": "datepicker",
        "odd": "plain_text_input",
        "tags": "checkboxes",
    }
    assert modals.values(filled(view)) == {
        "due": "2027-01-31",
        "maybe": "",
        "odd": "next week",
        "tags": ("a", "c"),
    }


@pytest.mark.parametrize("value", ['["a", "d"]', "a\nd", "a\na"])
def test_several_values_that_its_options_could_not_keep_are_typed_one_on_each_line(value: str) -> None:
    view = opened(field("tags", "multi", value, options=("a", "b", "c")))
    block = inputs(view)["tags"]
    assert (block["element"]["type"], block["element"]["multiline"]) == ("plain_text_input", True)
    assert block["hint"]["text"] == "One on each line, of: a, b, c"
    assert modals.values(filled(view))["tags"] in (("a", "d"), ("a", "a"))
    assert modals.values(filled(view, tags="b\n\n c "))["tags"] == ("b", "c")


def test_several_values_may_begin_as_a_json_list() -> None:
    view = opened(field("tags", "multi", '["a", "c"]', options=("a", "b", "c")))
    assert modals.values(filled(view)) == {"tags": ("a", "c")}


@pytest.mark.parametrize("value", ["2027-02-30", "2027-13-01", "0000-01-01"])
def test_a_day_that_is_in_no_calendar_is_edited_as_text(value: str) -> None:
    view = opened(field("due", "date", value))
    assert inputs(view)["due"]["element"]["type"] == "plain_text_input"
    assert modals.values(filled(view)) == {"due": value}


def test_options_that_begin_alike_are_numbered_in_a_menu() -> None:
    options = tuple(f"{'x' * 80}{n}" for n in range(3))
    menu = inputs(opened(field("env", "select", options=options)))["env"]["element"]
    assert [o["text"]["text"][:4] for o in menu["options"]] == ["1. x", "2. x", "3. x"]
    assert [o["value"] for o in menu["options"]] == list(options)


def test_a_required_field_must_be_filled_in_and_no_other() -> None:
    view = opened(field("a", required=True), field("b"))
    assert [block["optional"] for block in inputs(view).values()] == [False, True]


def test_errors_go_to_their_fields_and_those_of_no_field_to_the_first() -> None:
    view = opened(field("amount", "integer", "20"), field("due:date"))
    found = modals.field_errors({"due:date": "is in the past", "": "too late", "gone": "unknown"}, view)
    assert found == {"f:0:amount": "too late; unknown", "f:1:due:date": "is in the past"}


def test_errors_of_a_modal_without_inputs_have_no_place() -> None:
    view = opened(field("script", "long_text", "x" * 3001))
    assert modals.field_errors({"script": "bad"}, view) == {}


@given(
    st.recursive(st.none() | st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
)
def test_a_state_of_any_shape_is_read_without_an_error(value: Any) -> None:
    block = {"f:0:a": {"value": value}, "f:1:b": value, "other": {"value": {"type": "plain_text_input"}}}
    assert modals.values({"values": block}).keys() <= {"a", "b"}
    assert modals.values({"values": value if not isinstance(value, dict) else None}) == {}


def test_a_long_title_is_cut_visibly() -> None:
    view = modals.form(Form(data="d", title="Edit a_tool_with_a_long_name", fields=(field("a"),)), "")
    checked_modal(view)
    assert view["title"]["text"] == "Edit a_tool_with_a_long…"


def test_metadata_that_slack_would_refuse_is_an_error_of_ours() -> None:
    with pytest.raises(ValueError, match="3001 characters"):
        modals.form(Form(data="d", title="t", fields=()), "x" * 3001)


def test_a_question_about_a_message_shows_that_message_as_inert_text_and_may_be_left_empty() -> None:
    view = modals.ask_about("meta", "look <!here> \u202e *b*")
    checked_modal(view)
    assert codes(view["blocks"]) == ["look <!here> \\u{202E} *b*"]
    assert (view["callback_id"], view["submit"]["text"]) == (ASK_CALLBACK, "Ask")
    assert modals.values(filled(view, question="why?")) == {modals.QUESTION: "why?"}
    assert modals.values(filled(view)) == {modals.QUESTION: ""}


@given(st.text(), st.sampled_from(["", "x" * 9000]))
def test_any_message_can_be_asked_about_and_any_notice_shown(text: str, more: str) -> None:
    checked_modal(modals.ask_about("meta", text + more))
    checked_modal(modals.notice(text + more))
