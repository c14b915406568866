"""The commands are ones that Discord registers, and are sent again only when they changed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Card
from channels.discord import commands
from channels.discord.limits import CHOICES
from tests.contracts.harness import a_shared_card, an_approval, decide, settled
from tests.golden.discord.generate import HERE
from tests.platforms.discord.checks import check_choices
from tests.platforms.discord.shapes import Report
from tests.unit.discord.rules import accepted_commands

Json = dict[str, Any]
SAID = ["approve", "deny"]
AGENTS, MODELS = ["assistant", "ops"], ["main", "small"]


@pytest.mark.parametrize("agents", [[], ["assistant"], AGENTS])
@pytest.mark.parametrize("in_guild", [True, False])
def test_the_commands_are_ones_that_discord_takes(agents: list[str], in_guild: bool) -> None:
    accepted_commands(commands.definitions(agents, MODELS, in_guild=in_guild))


def test_there_are_thirteen_slash_commands_and_one_for_messages() -> None:
    found = commands.definitions(AGENTS, MODELS)
    slash = [c["name"] for c in found if c["type"] == 1]
    first = ["ask", "new", "stop", "status", "pending", "grants", "schedules", "memory"]
    assert slash == [*first, *SAID, "model", "agent", "help"]
    assert [c["name"] for c in found if c["type"] == 3] == ["Ask the agent about this"]
    assert all(c["contexts"] == [0, 1] and c["integration_types"] == [0] for c in found)
    assert not any("contexts" in c for c in commands.definitions(in_guild=True))


def test_codes_agents_and_models_are_suggested() -> None:
    suggested = {
        (c["name"], o["name"])
        for c in commands.definitions(AGENTS, MODELS)
        for o in c.get("options", [])
        if o.get("autocomplete")
    }
    assert suggested == {
        ("ask", "agent"),
        ("agent", "agent"),
        ("model", "model"),
        ("approve", "code"),
        ("deny", "code"),
    }


def test_where_there_is_no_choice_there_is_no_option() -> None:
    by_name = {c["name"]: c for c in commands.definitions(["assistant"], ["main"])}
    assert [o["name"] for o in by_name["ask"]["options"]] == ["prompt", "attachment"]
    assert by_name["agent"]["options"] == by_name["model"]["options"] == []


def registered(definition: Json) -> Json:
    """The command as Discord tells of it: with ids, without what is as usual."""
    told: Json = {
        "id": "1",
        "application_id": "2",
        "version": "3",
        "default_member_permissions": None,
        "nsfw": False,
        "dm_permission": True,
        "description": "",
        "name_localizations": None,
        **definition,
    }
    told["options"] = [{k: v for k, v in o.items() if v is not False} for o in definition.get("options", [])]
    if not told["options"]:
        del told["options"]
    return told


def test_commands_that_are_registered_already_have_the_same_digest() -> None:
    wanted = commands.definitions(AGENTS, MODELS)
    there = [registered(definition) for definition in reversed(wanted)]
    assert commands.digest(there) == commands.digest(wanted)


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Another"},
        {"name": "other"},
        {"options": []},
        {"contexts": [0]},
        {"integration_types": [0, 1]},
        {"nsfw": True},
        {"default_member_permissions": "8"},
    ],
)
def test_a_change_that_people_see_changes_the_digest(change: Json) -> None:
    wanted = commands.definitions(AGENTS, MODELS)
    assert commands.digest([wanted[0] | change, *wanted[1:]]) != commands.digest(wanted)


def test_a_command_more_or_less_changes_the_digest() -> None:
    wanted = commands.definitions()
    assert commands.digest(wanted[1:]) != commands.digest(wanted)
    assert commands.digest([]) != commands.digest(wanted)


def test_the_digest_of_what_is_no_command_is_only_different() -> None:
    wanted = commands.definitions()
    assert commands.digest([{}, {"options": [None], "contexts": "x", "type": "y"}]) != commands.digest(wanted)


# ---- suggestions


def cards() -> list[Card]:
    question = Card(card_id="q", kind="question", state="open", title="Question", code="Q1Q1")
    return [
        an_approval(),
        replace(an_approval(), code="B2B2", title="Approve k7 transport?"),
        settled(an_approval(code="C3C3"), "Approved"),
        question,
        an_approval(code=""),
    ]


def test_open_requests_are_suggested_by_their_codes_and_what_they_are() -> None:
    found = commands.autocomplete("code", "", cards())
    assert [entry["value"] for entry in found] == ["K7M2", "B2B2"]
    assert found[0]["name"] == "K7M2 – Approve issue_refund? The agent wants to pay money back."
    assert [entry["value"] for entry in commands.autocomplete("code", "TRANS", cards())] == ["B2B2"]
    assert commands.autocomplete("code", "nothing like it", cards()) == []


def test_each_call_of_a_card_with_several_is_suggested_by_its_own_code() -> None:
    card = decide(a_shared_card(["A-1", "A-2", "A-3"]), 2, "Denied by Ada")
    assert [e["value"] for e in commands.autocomplete("code", "", [card])] == ["cd001", "cd003"]


def test_what_begins_with_the_typed_words_comes_first() -> None:
    assert [entry["value"] for entry in commands.autocomplete("code", "k7", cards())] == ["K7M2", "B2B2"]
    assert commands.autocomplete("code", "b", cards())[0]["value"] == "B2B2"
    agents = ["my ops", "ops", "desk"]
    assert [e["value"] for e in commands.autocomplete("agent", "ops", agents=agents)] == ["ops", "my ops"]
    assert [e["value"] for e in commands.autocomplete("model", "", models=MODELS)] == MODELS


@given(
    st.sampled_from(["code", "agent", "model"]),
    st.text(max_size=5),
    st.lists(st.text(max_size=150), max_size=60),
)
def test_every_list_of_suggestions_is_one_that_discord_takes(
    kind: commands.Kind, typed: str, names: list[str]
) -> None:
    waiting = [an_approval(code=name, title=name) for name in names]
    found = commands.autocomplete(kind, typed, waiting, names, names)
    report = Report()
    check_choices({"choices": found}, report)
    report.settle()
    assert len(found) <= CHOICES
    assert {entry["value"] for entry in found} <= set(names)


def test_the_definitions_are_as_they_were_agreed() -> None:
    agreed = json.loads((HERE / "commands.json").read_text(encoding="utf-8"))
    assert commands.definitions(AGENTS, MODELS) == agreed
