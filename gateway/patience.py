"""What happens while nobody decides: when people are reminded, when others are asked too. Pure.

Quiet hours are a span of the day on the clocks of a place. Nothing but an expiry happens in them:
what would, comes when they end. On the days on which clocks are changed the local time of day is
what counts, so that a span may be an hour shorter or longer, or be entered twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

Due = tuple[Literal["remind", "escalate"], float]
MINUTE = 60
DAY = 24 * 60  # minutes


class Quiet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """From `start` until just before `end`, in minutes of the day; `end` before `start` is on the next
    day. `zone`: a name of the time zone database; empty: UTC."""

    start: int
    end: int
    zone: str = ""

    def __str__(self) -> str:
        spans = "-".join(f"{minutes // 60:02}:{minutes % 60:02}" for minutes in (self.start, self.end))
        return f"{spans} {self.zone or 'UTC'}"


class Escalation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """After so many seconds without a decision the `approvers` may decide too, and the card is shown in
    the places of `notify` as well."""

    after: float
    notify: tuple[str, ...] = ()
    approvers: tuple[str, ...] = ()


def is_quiet(quiet: Quiet, at: float) -> bool:
    """Whether `at` (Unix seconds) lies in the quiet hours."""
    local = datetime.fromtimestamp(at, zone(quiet.zone))
    minutes = 60 * local.hour + local.minute
    if quiet.start < quiet.end:
        return quiet.start <= minutes < quiet.end
    return minutes >= quiet.start or minutes < quiet.end


def after_quiet(quiet: Quiet | None, at: float) -> float:
    """The first moment from `at` on (Unix seconds) that is not in the quiet hours."""
    if quiet is None or not is_quiet(quiet, at):
        return at
    # Minute by minute: everywhere clocks are changed at whole minutes, by whole minutes.
    moment = float(MINUTE * (math.floor(at / MINUTE) + 1))
    while is_quiet(quiet, moment):
        moment += MINUTE
    return moment


def due_times(
    remind: Sequence[float],
    escalate: Escalation | None,
    quiet: Quiet | None,
    asked_at: float,
    expires_at: float | None = None,
) -> list[Due]:
    """When something has to happen about a request of `asked_at`, each moment once; nothing that would
    come after its end. Seconds after the request in `remind`, Unix seconds otherwise."""
    wanted: list[Due] = [("remind", after_quiet(quiet, asked_at + seconds)) for seconds in remind]
    if escalate is not None:
        wanted.append(("escalate", after_quiet(quiet, asked_at + escalate.after)))
    return [due for due in dict.fromkeys(wanted) if expires_at is None or due[1] < expires_at]


def zone(name: str) -> tzinfo:
    """The time zone of this name. UTC for one that this machine does not know: the configuration was
    checked where it was read, and a request must not be stuck because another machine carries it on."""
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def is_zone(name: str) -> bool:
    """Whether this machine knows the time zone."""
    return name in ("", "UTC") or zone(name) is not UTC
