"""What all cards have in common: the head, who is asked, where the whole is, the foot. Markdown. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from channels.base import Card
from channels.discord import refs
from channels.discord.components import Json, bold, code, small
from channels.discord.limits import ASKED
from channels.render.arguments import ArgsFile
from channels.render.discord import escape_discord
from channels.render.inert import flat, visible
from channels.render.measure import cut

ALL: Final = -1  # room for everything
REPEAT: Final = "(a repeat: the card may already be above)"
_NAMES: Final = 100  # units of a name or an id that a card repeats
_IDS: Final = range(10**15, 2**63)  # all real ones are in it; a message that pages another is refused
_COLOURS: Final = {"approval": 0xF0B132, "question": 0x5865F2}
_SETTLED: Final = 0x80848E


def colour(value: Card) -> int:
    return _COLOURS[value.kind] if value.state == "open" else _SETTLED


def shorten(words: str, line: int) -> str:
    """line: units of what may be shortened, or ALL."""
    return words if line == ALL else cut(words, line)


# ---- above


def head(value: Card, line: int, *, mention: bool = False) -> str:
    """Title, status, who is asked, summary."""
    icon = "▪️" if value.state != "open" else "❓" if value.kind == "question" else "🔐"
    lines = [f"### {icon} {escape_discord(shorten(flat(value.title), line))}"]
    if value.status.strip():
        lines.append(bold(shorten(visible(value.status), line)))
    if mention:
        lines += _asked(value)
    if value.summary.strip():
        lines.append(escape_discord(shorten(visible(value.summary).strip("\n"), line)))
    return "\n".join(lines)


def mentions(value: Card) -> Json:
    """`allowed_mentions` of a card that notifies those who are asked."""
    people, roles = _people(value), _roles(value)
    people, roles = people[:ASKED], roles[: max(ASKED - len(people), 0)]
    found: Json = {"parse": []}
    return found | ({"users": people} if people else {}) | ({"roles": roles} if roles else {})


def _asked(value: Card) -> list[str]:
    """The people and roles whose yes is wanted: the only mentions of a card that are live."""
    found = [*(f"<@{user}>" for user in _people(value)), *(f"<@&{role}>" for role in _roles(value))]
    if not found:
        return []
    more = f" (and {len(found) - ASKED} more, not notified)" if len(found) > ASKED else ""
    return [f"Notified: {' '.join(found[:ASKED])}{more}"]


def _people(value: Card) -> list[str]:
    return _ids([actor.user for actor in value.asks if actor.channel == refs.CHANNEL])


def _roles(value: Card) -> list[str]:
    return _ids(value.ask_roles)


def _ids(found: Sequence[str]) -> list[str]:
    return [one for one in dict.fromkeys(found) if refs.is_id(one) and int(one) in _IDS]


# ---- below


def attached(value: Card, file: ArgsFile | None, *, readable: bool) -> str:
    """Where the whole is. readable: people can get at the file."""
    what = "arguments" if value.kind == "approval" else "details"
    if file is not None and readable:
        return f"All {what}, in full: {code(file.name)}, {file.size:,} bytes, SHA-256 {code(file.sha256)}"
    if value.state != "open":
        size = f": {file.size:,} bytes, SHA-256 {code(file.sha256)}" if file is not None else ""
        return f"The {what} are shortened here{size}."
    if value.kind == "question":
        refusal = ""
    elif value.calls:
        refusal = ", so calls that are not shown in full cannot be approved from this message"
    else:
        refusal = ", so this cannot be approved from this message"
    return f"**The {what} are too long to show and the file with them could not be delivered here{refusal}.**"


def foot(value: Card, line: int, hint: str, *, with_code: bool) -> str:
    """The small lines below a card. hint: how to answer, "" for nothing; inert. with_code: whether the code
    may be used."""
    request = f"Request {code(cut(value.card_id, _NAMES))}"
    lines = [request]
    if value.state == "open":
        lines = [escape_discord(hint)] if hint else []
        if value.deciders.strip():
            lines.append(f"Who may decide: {escape_discord(shorten(flat(value.deciders), line))}")
        if value.expires.strip():
            lines.append(f"Expires: {escape_discord(shorten(flat(value.expires), line))}")
        if value.code and with_code:
            lines.append(f"Code: {code(cut(value.code, _NAMES))}")
        lines.append(request)
        lines += [REPEAT] if value.repeat else []
    return "\n".join(map(small, lines))
