"""What is scheduled, on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from channels.render.inert import visible
from gateway.app import console
from gateway.app.oneshot import parts_of
from gateway.app.sessions import schedule_line
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
    table = Table(Column("code", no_wrap=True), "name", "what", "when", "where", "by")
    for record in records:
        line = schedule_line(record)
        cells = [line.code, line.name, line.instruction, next_text(record, now), line.where, line.by]
        table.add_row(*(Text(visible(cell)) for cell in cells))
    Console().print(table if records else "Nothing is scheduled.")
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
