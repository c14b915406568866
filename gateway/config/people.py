"""Ids of people and threads as they stand in a configuration: stable ids, never names. Pure.

Names can be changed and taken over, so a name where an id belongs is an error that tells how to
get the id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gateway.config.problems import Bad, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How ids of one channel look, and how to get one."""

    pattern: re.Pattern[str]
    mend: str


PERSON = {
    "slack": Form(
        pattern=re.compile(r"(?:[TE][A-Z0-9]+:)?[UWS][A-Z0-9]+"),
        mend="ids look like T012AB:U345CD, a user group's like S678EF: open the person's profile in Slack, "
        'then the menu with three dots, "Copy member ID"',
    ),
    "discord": Form(
        pattern=re.compile(r"(?:\d+:)?(?:role:)?\d+|admins", re.ASCII),
        mend="ids are numbers, a role is role:NUMBER: switch Developer Mode on (Settings, Advanced), "
        'right-click the person or role, "Copy ID"',
    ),
    "telegram": Form(
        pattern=re.compile(r"(?:\d+:)?[1-9]\d*|admins", re.ASCII),
        mend="ids are numbers: let the person write to the bot, the log names the id of everyone "
        "it turns away",
    ),
    "web": Form(
        pattern=re.compile(r"[A-Za-z0-9_-]+"),
        mend="write the name of a token of [channels.web], default for a single one, local for loopback",
    ),
    "cli": Form(pattern=re.compile("local"), mend="write cli:local"),
}

THREAD = {
    "slack": Form(
        pattern=re.compile(r"[TE][A-Z0-9]+:(?:[CDG][A-Z0-9]+(?::\d+\.\d+)?|[UW][A-Z0-9]+)"),
        mend="ids look like T012AB:C345CD (workspace and channel, or person): open the channel in Slack in "
        "a browser, both are in its address",
    ),
    "discord": Form(
        pattern=re.compile(r"(?:\d+|@me):\d+(?::\d+)?|user:\d+", re.ASCII),
        mend="write SERVER:CHANNEL, SERVER:CHANNEL:THREAD, or user:PERSON, all numbers: switch Developer "
        'Mode on, right-click the server and the channel, "Copy ID"',
    ),
    "telegram": Form(
        pattern=re.compile(r"(?:\d+:)?-?[1-9]\d*(?::\d+)?", re.ASCII),
        mend="ids are numbers, those of groups are negative, a topic follows after a colon: write to "
        "the bot in that chat, the log names the id",
    ),
    "webhook": Form(pattern=re.compile(r"[A-Za-z0-9_-]+"), mend="write the name of a table [webhooks.NAME]"),
}


_ROLES = {
    "slack": re.compile(r"(?:(?:[TE][A-Z0-9]+|role):)?(S[A-Z0-9]+)"),
    "discord": re.compile(r"(?:\d+:)?role:(\d+)", re.ASCII),
}


def as_role(person: str) -> str:
    """The same person as `channel:id`, a group or role as `channel:role:ID`, whatever way it was written."""
    channel, _, rest = person.partition(":")
    role = _ROLES[channel].fullmatch(rest) if channel in _ROLES else None
    return f"{channel}:role:{role[1]}" if role else person


def check_person(value: str, *, shown: str = "") -> str:
    """The value, if it is `channel:id` of a person, role or group. Raises Bad."""
    return _check(value, PERSON, "a person's id", shown or value)


def check_thread(value: str) -> str:
    """The value, if it is `channel:id` of a place that can get cards. Raises Bad."""
    return _check(value, THREAD, "a thread's id", value)


def _check(value: str, forms: dict[str, Form], what: str, shown: str) -> str:
    channel, colon, rest = value.partition(":")
    if not colon or channel not in forms:
        close = nearest(channel, forms)
        raise Bad(f"{shown!r} does not begin with a channel", f"write channel:id; {close}")
    if not forms[channel].pattern.fullmatch(rest):
        raise Bad(f"{shown!r} is not {what} on {channel}", forms[channel].mend)
    return value
