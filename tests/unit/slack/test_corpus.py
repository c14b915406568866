"""Every recorded payload means what its recording says, and no mutilated one breaks the reader."""

from __future__ import annotations

import copy
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.slack import wire, wire_values
from channels.slack.wire_values import Ignored, Parsed
from tests.unit.slack.reading import ME, NOW, read, recordings, shown

RECORDED = recordings()
REASONS = {
    value
    for name, value in vars(wire_values).items()
    if name.isupper() and not name.startswith("_") and isinstance(value, str)
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_payload_means_what_its_recording_says(name: str) -> None:
    assert shown(read(RECORDED[name])) == RECORDED[name]["expected"]


def test_the_corpus_holds_at_least_sixty_distinct_shapes() -> None:
    distinct = {
        msgspec.json.encode(recorded["payload"], order="deterministic") for recorded in RECORDED.values()
    }
    assert len(distinct) >= 60


def test_every_kind_of_value_and_every_reason_is_in_the_corpus() -> None:
    expected = [recorded["expected"] for recorded in RECORDED.values()]
    assert {value["type"] for value in expected if "type" in value} == {
        kind.__name__ for kind in get_args(Parsed) if kind is not Ignored
    }
    reasons = {value["ignored"].partition(": ")[0] for value in expected if "ignored" in value}
    # Two reasons hold a colon themselves.
    assert {reason.partition(": ")[0] for reason in REASONS} == reasons


def test_only_shapes_that_are_new_to_us_count_as_unknown() -> None:
    unknown = {name for name, recorded in RECORDED.items() if recorded["expected"].get("unknown")}
    assert {name for name in unknown if "unheard_of" not in name} == {
        "block_actions_without_actions",
        "block_actions_without_user",
        "command_without_trigger",
        "event_without_type",
        "message_changed_malformed",
        "message_shortcut_without_trigger",
        "view_submission_form_foreign_metadata",
        "view_submission_form_without_metadata",
    }
    assert sum("unheard_of" in name for name in unknown) == 5


TELLING = ["\ud800", "\x00", "1.5", "U07GATEBOT", "message_changed", "v1::", "home:", "|", "T:1"]
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(TELLING),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KINDS: list[wire.Kind] = ["event", "interactive", "command"]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything inside a piece of JSON."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = []
    for key, item in inside:
        found += [(*path, key), *places(item, (*path, key))]
    return found


def spoiled(payload: Any, path: tuple[Any, ...], junk: Any, remove: bool) -> Any:
    """The payload with one thing in it taken out or replaced."""
    spoilt = copy.deepcopy(payload)
    holder = spoilt
    for key in path[:-1]:
        holder = holder[key]
    if remove:
        del holder[path[-1]]
    else:
        holder[path[-1]] = junk
    return spoilt


@given(st.data())
def test_a_mutilated_payload_still_comes_back_as_a_value(data: st.DataObject) -> None:
    recorded = RECORDED[data.draw(st.sampled_from(sorted(RECORDED)))]
    payload = recorded["payload"]
    for _ in range(data.draw(st.integers(1, 4))):
        if not (paths := places(payload)):
            break
        payload = spoiled(
            payload, data.draw(st.sampled_from(paths)), data.draw(JUNK), data.draw(st.booleans())
        )
    kind: wire.Kind = data.draw(st.just(recorded["kind"]) | st.sampled_from(KINDS))
    parsed = wire.parse(kind, payload, ME, mention=data.draw(st.sampled_from(wire.MENTIONS)), now=NOW)
    assert isinstance(parsed, get_args(Parsed))
    msgspec.json.encode(shown(parsed))  # nothing in it that a store would refuse


@given(st.sampled_from(KINDS), JUNK)
def test_any_json_at_all_comes_back_as_a_value(kind: wire.Kind, payload: Any) -> None:
    parsed = wire.parse(kind, payload, ME, now=NOW)
    assert isinstance(parsed, get_args(Parsed))


@given(st.sampled_from(sorted(RECORDED)))
def test_reading_changes_nothing_in_what_is_read(name: str) -> None:
    before = copy.deepcopy(RECORDED[name]["payload"])
    read(RECORDED[name])
    assert RECORDED[name]["payload"] == before
