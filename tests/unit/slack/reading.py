"""The app as the recorded payloads know it, and values as the recordings hold them."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import msgspec

from channels.slack import wire
from channels.slack.wire_values import Ignored

ME = wire.Me(team="T024GATE1", user="U07GATEBOT", bot="B07GATEBOT", app="A07GATEAPP", enterprise="E01GRIDORG")
NOW = 1764536600.0
FOLDER = Path(__file__).parents[2] / "golden" / "slack" / "inbound"


def recordings() -> dict[str, dict[str, Any]]:
    """Name -> {"kind", "payload", "expected", maybe "mention"}."""
    return {path.stem: msgspec.json.decode(path.read_bytes()) for path in sorted(FOLDER.glob("*.json"))}


def read(recorded: dict[str, Any]) -> wire.Parsed:
    return wire.parse(
        recorded["kind"], recorded["payload"], ME, mention=recorded.get("mention", "start"), now=NOW
    )


def shown(parsed: wire.Parsed) -> dict[str, Any]:
    """A value as plain JSON, without what is as it is by default."""
    if isinstance(parsed, Ignored):
        return {"ignored": parsed.reason, **({"unknown": True} if parsed.unknown else {})}
    told = {
        field.name: getattr(parsed, field.name)
        for field in fields(parsed)
        if field.name != "view" and getattr(parsed, field.name) != _default(field)
    }
    return msgspec.json.decode(
        msgspec.json.encode({"type": type(parsed).__name__, **told}), type=dict[str, Any]
    )


def _default(field: Any) -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default
