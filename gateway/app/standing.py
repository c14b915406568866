"""What the configuration has the clock say, as values of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gateway.config import Config
from gateway.config.values import ScheduleSection
from gateway.errors import ConfigError
from gateway.messages import ThreadKey
from gateway.store.schedule_rows import Standing
from gateway.timetable import Timing


def standing_of(config: Config, place: Callable[[str], ThreadKey | None]) -> Iterator[Standing]:
    """The configured schedules. Raises ConfigError for a thread that no channel knows."""
    for name, section in config.schedules.items():
        # On the page it has one conversation, which people may join.
        entry = f"web:schedule-{name}" if section.thread == "web" else section.thread
        key = place(entry)
        if key is None:
            raise ConfigError(
                f"schedules.{name}.thread",
                f"{entry!r} is no thread here",
                "write channel:workspace:conversation",
            )
        yield Standing(
            name=name,
            agent=section.agent,
            key=key,
            timing=_timing(section),
            instruction=section.instruction,
            missed=section.missed,
            tenant=section.tenant,
        )


def _timing(section: ScheduleSection) -> Timing:
    zone = "" if section.timezone == "UTC" else section.timezone
    if section.every is not None:
        return Timing(every=section.every, zone=zone)
    if section.cron is not None:
        return Timing(cron=section.cron, zone=zone)
    hours, _, minutes = (section.at or "").partition(":")
    return Timing(cron=f"{int(minutes)} {int(hours)} * * *", zone=zone)
