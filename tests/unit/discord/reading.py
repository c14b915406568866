"""The bot as the recorded payloads know it, and values as the recordings hold them."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec

from channels.discord import wire
from channels.discord.wire_values import ChannelInfo, Ignored, Me, Parsed

ME = Me(
    user="1187654321098765432", application="1187654321000000001", roles=frozenset({"1187654400000000777"})
)
FOLDER = Path(__file__).parents[2] / "golden" / "discord"


def _known() -> dict[str, ChannelInfo]:
    told = msgspec.json.decode((FOLDER / "world.json").read_bytes())
    infos = {channel["id"]: wire.channel_info(channel) for channel in told}
    return {channel: info for channel, info in infos.items() if info is not None}


KNOWN = _known()


def recordings() -> dict[str, dict[str, Any]]:
    """Name -> {"event", "data", "expected", maybe "mention", "threads", "before"}."""
    found = sorted((FOLDER / "inbound").glob("*.json"))
    return {path.stem: msgspec.json.decode(path.read_bytes()) for path in found}


def read(recorded: dict[str, Any]) -> Parsed:
    return wire.parse(
        recorded["event"],
        recorded["data"],
        ME,
        mention=recorded.get("mention", "start"),
        threads=recorded.get("threads", True),
        parents=KNOWN.get,
        before=lambda _: recorded.get("before"),
    )


def shown(parsed: Parsed) -> dict[str, Any]:
    """A value as plain JSON, without what is as it is by default."""
    if isinstance(parsed, Ignored):
        return {"ignored": parsed.reason, **({"unknown": True} if parsed.unknown else {})}
    told = {"type": type(parsed).__name__, **_told(parsed)}
    return msgspec.json.decode(msgspec.json.encode(told), type=dict[str, Any])


def _told(value: Any) -> dict[str, Any]:
    """What is as it is by default is left out, inside too: new fields make no recording wrong."""
    return {
        field.name: _inside(getattr(value, field.name))
        for field in fields(value)
        if field.name != "data" or isinstance(getattr(value, field.name), str)
        if getattr(value, field.name) != _default(field)
    }


def _inside(value: Any) -> Any:
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return [_inside(one) for one in value]
    return _told(value) if is_dataclass(value) else value


def _default(field: Any) -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default
