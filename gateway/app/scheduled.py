"""What is scheduled, on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from channels.render.inert import visible
from gateway.app import console
from gateway.app.oneshot import parts_of
from gateway.app.sessions import schedule_line
from gateway.app.tables import show
from gateway.notices import next_text
from gateway.requests import Who
from gateway.schedules import MOST_LISTED, Schedules

_VIA = "command line"


async def list_schedules(config: Path | None, *, as_json: bool) -> int:
    """`threadgate schedules`."""
    async with console.bench(parts_of(config), lambda event: None) as at:
        records = await at.store.schedules(limit=MOST_LISTED)
        now = at.parts.clock.now()
    if as_json:
        for record in records:
            sys.stdout.write(msgspec.json.encode(schedule_line(record)).decode() + "\n")
        return 0
    lines = [(schedule_line(record), next_text(record, now)) for record in records]
    rows = [(line.code, line.name, line.instruction, when, line.where, line.by) for line, when in lines]
    if rows:
        show(("code", "name", "what", "when", "where", "by"), rows)
    else:
        sys.stdout.write("Nothing is scheduled.\n")
    return 0


async def cancel_schedule(config: Path | None, code: str) -> int:
    """`threadgate schedules --cancel CODE`, as the person at this machine."""
    async with console.bench(parts_of(config), lambda event: None) as at:
        schedules = Schedules(
            at.store,
            at.parts.clock,
            at.parts.rules,
            at.resolutions.is_operator,
            lambda session_id: None,
            lambda: None,
        )
        who = Who(actor=console.ME, via=_VIA)
        found = await schedules.by_code(code, who, ())
        outcome, text = await schedules.cancel(found.id if found is not None else code, who)
    ended = outcome == "recorded"
    (sys.stdout if ended else sys.stderr).write(f"{visible(text)}\n")
    return 0 if ended else 1
