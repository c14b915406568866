"""What all cards have in common: the head, who is asked, where the whole is, the foot. Pure."""

from __future__ import annotations

from typing import Final

from channels.base import Card
from channels.render.arguments import ArgsFile
from channels.render.inert import flat, visible
from channels.render.measure import cut, utf16_len
from channels.slack import refs
from channels.slack.blocks import Json, header, paragraph, rich, words
from channels.slack.limits import ASKED, HEADER

ALL: Final = -1  # room for everything
_SUMMARY, _STATUS, _LINE = 2500, 1500, 300  # units


def head(value: Card, room: int, *, mention: bool) -> list[Json]:
    """Title, status, who is asked, summary. room: units for what may be shortened."""
    icon = "▪️" if value.state != "open" else "❓" if value.kind == "question" else "🔐"
    title = f"{icon} {flat(value.title)}"
    blocks = [header(title)]
    if value.status:
        blocks.append(rich(paragraph(words(cut(visible(value.status), _STATUS), bold=True))))
    if utf16_len(title) > HEADER:  # the header has only its beginning
        blocks.append(rich(paragraph(words(_shortened(value.title, room), bold=True))))
    if mention:
        blocks += _asked(value)
    if value.summary.strip():
        blocks.append(rich(paragraph(words(_shortened(value.summary, room)))))
    return blocks


def _shortened(text: str, room: int) -> str:
    if room == ALL:
        return visible(text)
    return cut(visible(text), _SUMMARY if room >= _SUMMARY else 400)


def _asked(value: Card) -> list[Json]:
    """The people and groups whose yes is wanted: the only mentions of a card that are live."""
    people = [actor.user for actor in value.asks if actor.channel == refs.CHANNEL]
    found: list[Json] = [
        {"type": "user", "user_id": user} for user in dict.fromkeys(people) if refs.is_person(user)
    ]
    found += [
        {"type": "usergroup", "usergroup_id": group}
        for group in dict.fromkeys(value.ask_roles)
        if refs.is_group(group)
    ]
    if not found:
        return []
    runs = [words("Notified:")]
    for mentioned in found[:ASKED]:
        runs += [words(" "), mentioned]
    if len(found) > ASKED:
        runs.append(words(f" (and {len(found) - ASKED} more, not notified)"))
    return [rich(paragraph(*runs))]


def attached(value: Card, file: ArgsFile | None, *, readable: bool) -> list[Json]:
    """Where the whole is. readable: the file can be read."""
    what = "arguments" if value.kind == "approval" else "details"
    if file is not None and value.state != "open":  # what was decided on may have been changed since
        size = f"The {what} are shortened here; in full: {file.size:,} bytes, SHA-256 "
        return [words(size), words(file.sha256, code=True)]
    if file is not None and readable:
        return [
            words(f"All {what}, in full: {file.name}, {file.size:,} bytes, SHA-256 "),
            words(file.sha256, code=True),
        ]
    if value.kind == "question":
        refusal = ""
    elif value.calls:
        refusal = ", so calls that are not shown in full cannot be approved from this message"
    else:
        refusal = ", so this cannot be approved from this message"
    return [
        words(
            f"The {what} are too long to show and the file with them could not be delivered here{refusal}.",
            bold=True,
        )
    ]


def foot(value: Card, hint: str, *, code: bool) -> list[str]:
    """The lines below a card. hint: how to answer, "" for nothing. code: whether the code may be used."""
    request = f"Request {flat(value.card_id)}"
    if value.state != "open":
        return [request]
    lines = [hint]
    lines += [f"Who may decide: {cut(flat(value.deciders), _LINE)}"] if value.deciders.strip() else []
    lines += [f"Expires: {cut(flat(value.expires), _LINE)}"] if value.expires.strip() else []
    lines += [f"Code: {flat(value.code)}"] if value.code and code else []
    lines.append(request)
    lines += ["(a repeat: the card may already be above)"] if value.repeat else []
    return [line for line in lines if line]
