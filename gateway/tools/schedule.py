"""The tools with which an agent has itself woken: `schedule` makes a wake-up of its conversation, `schedules`
lists them and takes one back.

They pass the gate as built-in tools do. An agent's own tool of the same name replaces the built-in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from gateway.agent import Agent
from gateway.errors import ToolError
from gateway.messages import Json
from gateway.patience import is_zone
from gateway.timetable import (
    LONGEST,
    SHORTEST,
    Timing,
    cron_fault,
    duration_text,
    moment_text,
    read_duration,
    read_moment,
)
from gateway.tools.base import CallContext, Tool

WAYS = ("after", "at", "every", "cron")
LONGEST_INSTRUCTION = 4_000  # characters
_ONE_OF_THEM = 'give one of after ("2h"), at ("2026-03-31 08:30"), every ("4h") or cron ("0 8 * * mon-fri")'

SCHEDULE_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "instruction": {
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_INSTRUCTION,
            "description": "what you are to do then, complete in itself",
        },
        "after": {"type": "string", "description": "once, so long from now: 90m, 2h, 3d"},
        "at": {
            "type": "string",
            "description": "once, at 2026-03-31 08:30 or the next 08:30 on the clocks of the time zone",
        },
        "every": {"type": "string", "description": "again and again, so long apart: 4h, 1d"},
        "cron": {
            "type": "string",
            "description": "again and again: minute, hour, day of month, month, day of week: 0 8 * * mon-fri",
        },
        "timezone": {
            "type": "string",
            "description": "for at and cron, like Europe/Berlin; UTC when left out. Ask when it is not clear",
        },
    },
    "required": ["instruction"],
    "additionalProperties": False,
}

SCHEDULES_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "cancel": {"type": "string", "description": "the code of one that is not wanted any more"},
    },
    "additionalProperties": False,
}


class Planner(Protocol):
    """Keeps the wake-ups. Every method may raise ToolError, which names the mend."""

    def now(self) -> float:
        """Unix seconds."""

    async def plan(self, context: CallContext, timing: Timing, instruction: str) -> str:
        """Store one; what the model reads of it."""

    async def listed(self, context: CallContext) -> str:
        """What is planned in this conversation."""

    async def take_back(self, context: CallContext, code: str) -> str:
        """Cancel one."""


def read_timing(args: Json, now: float) -> Timing:
    """When a call wants to be woken. Raises ToolError with the mend."""
    given = [way for way in WAYS if args.get(way)]
    if len(given) != 1:
        found = "nothing says when" if not given else f"{' and '.join(given)} are given together"
        raise ToolError(f"{found}; {_ONE_OF_THEM}")
    zone = str(args.get("timezone", "")).strip()
    if not is_zone(zone):
        raise ToolError(
            f"timezone: {zone!r} is not known here; give a name like Europe/Berlin, or leave it out"
        )
    way, written = given[0], str(args[given[0]]).strip()
    match way:
        case "cron":
            if fault := cron_fault(written):
                raise ToolError(f"cron: {fault}; write one like 0 8 * * mon-fri")
            return Timing(cron=written, zone=zone)
        case "at":
            return Timing(at=_in_reach(way, read_moment(written, zone, now), now, zone), zone=zone)
        case _:
            seconds = read_duration(written)
            if seconds is None or seconds <= 0:
                raise ToolError(f"{way}: {written!r} is no duration; write one like 90m, 2h or 3d")
            if way == "after":
                return Timing(at=_in_reach(way, now + seconds, now, zone), zone=zone)
            if not SHORTEST <= seconds <= LONGEST:
                raise ToolError(
                    f"every: from {duration_text(SHORTEST)} to {duration_text(LONGEST)} are possible, "
                    f"not {duration_text(seconds)}"
                )
            return Timing(every=seconds, since=now, zone=zone)


def _in_reach(way: str, at: float | None, now: float, zone: str) -> float:
    if at is None:
        raise ToolError(f"{way}: this is no moment; write 2026-03-31 08:30, or 08:30 for the next one")
    if at <= now:
        raise ToolError(f"{way}: {moment_text(at, zone)} is over; it is {moment_text(now, zone)} now")
    if at > now + LONGEST:
        raise ToolError(f"{way}: at most {duration_text(LONGEST)} ahead are possible")
    return at


def schedule_tools(planner: Planner) -> tuple[Tool, Tool]:
    """Both tools over one planner."""

    async def make(args: Json, context: CallContext) -> str:
        if not args["instruction"].strip():
            raise ToolError("instruction: is empty; say what to do then")
        return await planner.plan(context, read_timing(args, planner.now()), args["instruction"].strip())

    async def look(args: Json, context: CallContext) -> str:
        code = str(args.get("cancel", "")).strip()
        return await (planner.take_back(context, code) if code else planner.listed(context))

    return (
        Tool(
            name="schedule",
            description="Have yourself woken in this conversation, later or again and again. When it is due, "
            "the instruction reaches you as a message here, and what you answer is posted here.",
            input_schema=SCHEDULE_SCHEMA,
            handler=make,
            idempotent=True,
            system="schedule",
        ),
        Tool(
            name="schedules",
            description="List what is scheduled in this conversation, with its codes; with cancel, take one "
            "back.",
            input_schema=SCHEDULES_SCHEMA,
            handler=look,
            idempotent=True,
            system="schedule",
        ),
    )


def with_tools(agent: Agent, tools: Sequence[Tool]) -> Agent:
    """The agent with these tools too, unless it has its own of that name."""
    own = {tool.name for tool in agent.tools}
    return replace(agent, tools=(*(tool for tool in tools if tool.name not in own), *agent.tools))
