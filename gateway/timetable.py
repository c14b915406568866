"""When something is to happen again and again, or once: planned times, computed one from another. Pure.

A planned time never depends on when the one before was carried out, so nothing drifts, and every process
finds the same ones. Cron lines are read as Debian's cron reads them. Where clocks are changed, a line
with fixed hours and minutes happens once that day: in the hour that is skipped right after it, in the hour
that comes twice the first time. A line with `*` in its hours or minutes, and `every`, go on as time goes on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

import msgspec
from cronsim import CronSim, CronSimError

from gateway.patience import zone

SHORTEST = 60.0  # seconds between two planned times
LONGEST = 366 * 86_400.0  # seconds between two planned times, and until a single one
_WINDOWS = (3_600.0, 86_400.0, 32 * 86_400.0, 366 * 86_400.0)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)([smhd])", re.ASCII)
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)


class Timing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of `at` (once; Unix seconds), `every` (seconds, counted from `since`) and `cron` (five fields, on
    the clocks of `zone`). `zone`: a name of the time zone database; empty: UTC."""

    at: float | None = None
    every: float | None = None
    since: float = 0.0
    cron: str = ""
    zone: str = ""

    @property
    def repeats(self) -> bool:
        """Whether it happens more than once."""
        return self.at is None


def cron_fault(line: str) -> str:
    """What is wrong with a cron line, in words; empty when nothing is."""
    if len(line.split()) != 5:
        return "a cron line has five fields: minute, hour, day of the month, month, day of the week"
    try:
        next(CronSim(line, datetime(2000, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        return f"{str(error).lower()} in the cron line"
    except StopIteration:
        return "the cron line names a day that never comes"
    return ""


def first_after(timing: Timing, moment: float) -> float | None:
    """The first planned time after a moment (Unix seconds), None when there is none any more."""
    if timing.at is not None:
        return timing.at if timing.at > moment else None
    if timing.every is not None:
        count = max(1, math.floor((moment - timing.since) / timing.every) + 1)
        planned = timing.since + count * timing.every
        return planned if planned > moment else timing.since + (count + 1) * timing.every
    return next(_ticks(timing, moment), None)


def last_until(timing: Timing, planned: float, now: float) -> float:
    """The last planned time that is not after `now`; `planned` is one of them."""
    if timing.at is not None:
        return planned
    if timing.every is not None:
        count = math.floor((now - timing.since) / timing.every)
        return max(planned, timing.since + count * timing.every)
    for window in _WINDOWS:  # a line that happens often is found in a short one
        start = max(planned, now - window)
        found = planned if start == planned else None
        for tick in _ticks(timing, start):
            if tick > now:
                break
            found = tick
        if found is not None:
            return found
    return planned


def _ticks(timing: Timing, moment: float) -> Iterator[float]:
    """The times of a cron line after a moment, in order, each once."""
    last = moment
    # Whole minutes only; one that has begun is over.
    start = datetime.fromtimestamp(math.floor(moment), zone(timing.zone))
    try:
        for tick in CronSim(timing.cron, start):
            at = tick.timestamp()
            if at > last:  # in the hour that comes twice the local time runs backwards
                last = at
                yield at
    except (CronSimError, OverflowError, ValueError):
        return


# ---- words


def moment_text(at: float, name: str) -> str:
    """A moment on the clocks of a time zone, to the minute."""
    return f"{datetime.fromtimestamp(at, zone(name)).strftime('%a %Y-%m-%d %H:%M')} {name or 'UTC'}"


def timing_text(timing: Timing) -> str:
    """How often, in words."""
    if timing.at is not None:
        return "once"
    if timing.every is not None:
        return f"every {duration_text(timing.every)}"
    words = CronSim(timing.cron, datetime(2000, 1, 1, tzinfo=UTC)).explain()
    return f"{words[:1].lower()}{words[1:]} ({timing.zone or 'UTC'})"


def duration_text(seconds: float) -> str:
    """As it is written: 1h30m."""
    left, words = seconds, ""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        count, left = divmod(left, size)
        words += f"{int(count)}{unit}" if count else ""
    return words + (f"{left:g}s" if left or not words else "")


# ---- what people and models write


def read_duration(text: str) -> float | None:
    """Seconds of `90s`, `10m`, `1h30m`, `2d`; None for anything else."""
    squeezed = text.replace(" ", "")
    parts = _PART.findall(squeezed)
    if not parts or "".join(number + unit for number, unit in parts) != squeezed:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def read_moment(text: str, name: str, now: float) -> float | None:
    """Unix seconds of `2026-03-31 08:30`, of the same with an offset behind it, or of `08:30`, the next time
    that clocks there show it; None for anything else."""
    there, written = zone(name), text.strip()
    if clock := _CLOCK.fullmatch(written):
        return _next_on_the_clock(int(clock[1]), int(clock[2]), there, now)
    if "T" not in written and " " not in written:  # a day alone is no moment
        return None
    try:
        moment = datetime.fromisoformat(written)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=there)).timestamp()
    except (ValueError, OverflowError):
        return None


def _next_on_the_clock(hour: int, minute: int, there: tzinfo, now: float) -> float:
    local = datetime.fromtimestamp(now, there)
    for days in range(3):
        day = local.date() + timedelta(days=days)
        at = datetime(day.year, day.month, day.day, hour, minute, tzinfo=there).timestamp()
        if at > now:
            return at
    raise AssertionError("a time of the day comes every day")
