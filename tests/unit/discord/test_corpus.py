"""Every recorded payload means what its recording says, and no mutilated one breaks the reader."""

from __future__ import annotations

import asyncio
import copy
from typing import Any, get_args

import discord
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.discord import wire, wire_values
from channels.discord.wire_values import Ignored, Mention, Parsed
from tests.unit.discord.reading import KNOWN, ME, read, recordings, shown

RECORDED = recordings()
REASONS = {value for name, value in vars(wire_values).items() if name.isupper() and isinstance(value, str)}
SPOILT = {
    "autocomplete_without_focus",
    "button_without_user",
    "command_without_name",
    "component_without_custom_id",
    "deleted_in_bulk_without_ids",
    "guild_member_without_user",
    "message_without_channel",
    "select_many_without_message_components",
    "thread_without_parent",
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_payload_means_what_its_recording_says(name: str) -> None:
    assert shown(read(RECORDED[name])) == RECORDED[name]["expected"]


def test_the_corpus_holds_at_least_a_hundred_and_fifty_distinct_shapes() -> None:
    distinct = {
        msgspec.json.encode(recorded["data"], order="deterministic") for recorded in RECORDED.values()
    }
    assert len(distinct) >= 150


def test_every_kind_of_value_and_every_reason_is_in_the_corpus() -> None:
    expected = [recorded["expected"] for recorded in RECORDED.values()]
    assert {value["type"] for value in expected if "type" in value} == {
        kind.__name__ for kind in get_args(Parsed) if kind is not Ignored
    }
    reasons = {value["ignored"] for value in expected if "ignored" in value}
    malformed = {reason for reason in reasons if reason.startswith(f"{wire_values.MALFORMED}: ")}
    assert REASONS - {wire_values.MALFORMED} == reasons - malformed


def test_only_shapes_that_are_new_to_us_count_as_unknown() -> None:
    unknown = {name for name, recorded in RECORDED.items() if recorded["expected"].get("unknown")}
    assert {name for name in unknown if "unheard_of" not in name} == SPOILT
    assert sum("unheard_of" in name for name in unknown) == 4


async def test_the_library_itself_reads_every_recording_that_is_whole() -> None:
    """So the recordings have the shapes that it knows of Discord."""
    refused = set()
    for name, recorded in RECORDED.items():
        client = discord.Client(intents=discord.Intents.all(), chunk_guilds_at_startup=False)
        state = client._connection
        state.loop = client.loop = asyncio.get_running_loop()
        state.user = discord.ClientUser(state=state, data=RECORDED["ready"]["data"]["user"])
        state._add_guild_from_data(copy.deepcopy(RECORDED["guild_created"]["data"]))
        read_by_library = state.parsers.get(recorded["event"])
        if read_by_library is None or name == "ready":  # which begins a task
            continue
        try:
            read_by_library(copy.deepcopy(recorded["data"]))
        except (AttributeError, KeyError):
            refused.add(name)
    partial = {"interaction_ping", "message_without_author", "preview_resolved_partial"}
    assert refused - SPOILT == partial


TELLING = [
    "\ud800",
    "\x00",
    "0",
    "9" * 20,
    ME.user,
    f"<@{ME.user}>",
    "v1:a:many",
    "f1.2:v1:a:b",
    "<t:99999999999999:R>",
    "٣",
    2**70,
]
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
EVENTS = sorted({recorded["event"] for recorded in RECORDED.values()})
MENTIONS: list[Mention] = ["start", "always", "never"]


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
    payload = recorded["data"]
    for _ in range(data.draw(st.integers(1, 4))):
        if not (paths := places(payload)):
            break
        payload = spoiled(
            payload, data.draw(st.sampled_from(paths)), data.draw(JUNK), data.draw(st.booleans())
        )
    known = data.draw(st.sampled_from([KNOWN, {}]))
    parsed = wire.parse(
        data.draw(st.just(recorded["event"]) | st.sampled_from(EVENTS)),
        payload,
        ME,
        mention=data.draw(st.sampled_from(MENTIONS)),
        threads=data.draw(st.booleans()),
        parents=known.get,
        before=lambda _: recorded.get("before"),
    )
    assert isinstance(parsed, get_args(Parsed))
    msgspec.json.encode(shown(parsed))  # nothing in it that a store would refuse


@given(st.sampled_from(EVENTS), JUNK)
def test_any_json_at_all_comes_back_as_a_value(event: str, payload: Any) -> None:
    assert isinstance(wire.parse(event, payload, ME, parents=KNOWN.get), get_args(Parsed))
    assert wire.handle_of(payload) is None
    assert wire.file_url(payload, "1") == ""


@given(JUNK, st.sampled_from(sorted(KNOWN)))
def test_components_nested_without_end_are_read_to_a_bounded_depth(junk: Any, channel: str) -> None:
    nested: Any = {"type": 10, "content": junk}
    for _ in range(500):
        nested = {"type": 17, "components": [nested]}
    message = {"id": "1", "channel_id": channel, "author": {"id": "2", "bot": True}, "components": [nested]}
    assert isinstance(wire.parse("MESSAGE_CREATE", message, ME, parents=KNOWN.get), get_args(Parsed))


@pytest.mark.parametrize("name", RECORDED)
def test_reading_changes_nothing_in_what_is_read(name: str) -> None:
    before = copy.deepcopy(RECORDED[name]["data"])
    read(RECORDED[name])
    assert RECORDED[name]["data"] == before
