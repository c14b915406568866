"""What Discord takes, by two independent books of rules: our protocol server's and simcord's."""

from __future__ import annotations

import warnings
from typing import Any

from tests.platforms.discord.checks import check_commands, check_mentions, check_message
from tests.platforms.discord.components import check_modal
from tests.platforms.discord.shapes import Report

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # discord.py imports audioop
    from simcord.components import validate_components, validate_modal

Json = dict[str, Any]


def accepted(message: Json) -> Report:
    """Fails unless this is a message that may be sent, and edited to."""
    for created in (True, False):
        report = check_message(message, created=created)
        assert not report.unknown
    check_mentions(message["allowed_mentions"])
    validate_components(message.get("components", []), flags=message["flags"])
    assert report.attachments == {entry["filename"] for entry in message.get("attachments", [])} or (
        message.get("content") is not None
    )
    return report


def accepted_modal(modal: Json) -> Report:
    """Fails unless this is a modal that may be opened."""
    report = Report()
    check_modal(modal, report)
    report.settle()
    assert not report.unknown
    validate_modal(modal)
    return report


def accepted_commands(commands: list[Json]) -> None:
    """Fails unless these may be registered together."""
    report = check_commands(commands)
    assert not report.unknown


def texts(message: Json) -> list[str]:
    """The text displays of a message, in order."""
    return [c["content"] for c in _walk(message["components"]) if c["type"] == 10]


def controls(message: Json) -> list[Json]:
    """Its buttons and selects, in order."""
    return [c for c in _walk(message["components"]) if c["type"] in (2, 3)]


def labels(message: Json) -> list[str]:
    """The labels of its buttons, in order."""
    return [c["label"] for c in controls(message) if c["type"] == 2]


def _walk(components: list[Json]) -> list[Json]:
    found = []
    for component in components:
        found += [component, *_walk(component.get("components", []))]
    return found
