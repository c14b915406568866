"""Answers, notices and errors as Discord draws them. Pure.

The words come from `channels.render.discord`. Nobody is paged by any of them: every message allows
exactly the mentions that the gateway itself wants, and none otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from channels.base import Actor, OutboundMessage
from channels.discord.components import small
from channels.discord.limits import ASKED, EPHEMERAL, LIMITS, SUPPRESS_EMBEDS, THREAD_NAME
from channels.discord.refs import CHANNEL, is_id
from channels.render.discord import discord_messages, escape_discord
from channels.render.inert import visible
from channels.render.measure import cut, is_blank, utf16_len

Json = dict[str, Any]

_REPEAT: Final = "(this may be a repeat: the connection broke while it was sent)"
_RESERVE: Final = 96  # units of every message kept free for the mark of a repeat and a mention
_MENTION: Final = 26  # units of one, at most
_QUIET: Final = 300  # units up to which a notice is small and grey
_QUIET_LINES: Final = 4
_PROMPT: Final = 400  # units of a command's prompt that are shown again
_LINK: Final = re.compile(r"https?://|\bdiscord(?:app)?\.(?:gg|com)/", re.IGNORECASE)
_BLOCK: Final = re.compile(r"\s|#|>|-|\*\s|\+\s|\d+\.\s|```")  # how a line begins that is no mere words


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(OutboundMessage):
    """One piece of an answer, rendered: `text` is Discord's Markdown. Made by `parts` only."""


def parts(message: OutboundMessage) -> tuple[Part, ...]:
    """One part for each Discord message: the text's pieces, then each file. Never empty.

    The cut depends on the text alone, not on `repeat`, `mentions` or `kind`: the n-th part stays the
    n-th part.
    """
    if isinstance(message, Part):
        return (message,)
    pieces = discord_messages(message.text, limit=LIMITS.text - _RESERVE) if message.text.strip() else []
    pieces = [piece for piece in pieces if not is_blank(piece)]
    if not pieces and not message.files:
        pieces = ["(no text)"]
    drawn = [
        Part(
            text=piece,
            kind=message.kind,
            repeat=message.repeat,
            mentions=message.mentions if index == 0 else (),
            mention_roles=message.mention_roles if index == 0 else (),
            reply_to=message.reply_to if index == 0 else "",
            only=message.only,
        )
        for index, piece in enumerate(pieces)
    ]
    drawn += [
        Part(text="", kind=message.kind, files=(file,), repeat=message.repeat, only=message.only)
        for file in message.files
    ]
    return tuple(drawn)


def message(part: OutboundMessage) -> Json:
    """`content`, `flags`, `allowed_mentions`, and with files `attachments` of one part's message.

    The file with the id n is to be uploaded as `files[n]`. Also what an edit and an answer to an
    interaction take; `EPHEMERAL` is to be added to the flags by whoever answers one.
    """
    [drawn, *_] = parts(part)
    content, allowed = drawn.text, allowed_mentions()
    if content:
        content = _quiet(content) if drawn.kind == "notice" else content
        people, roles = _called(drawn, LIMITS.text - utf16_len(content) - len(_REPEAT) - 8)
        allowed = allowed_mentions(people, roles)
        content = _fronted(drawn, content, [*(f"<@{p}>" for p in people), *(f"<@&{r}>" for r in roles)])
        content += f"\n{small(_REPEAT)}" if drawn.repeat else ""
    payload: Json = {
        "content": content,
        "flags": SUPPRESS_EMBEDS if _LINK.search(content) else 0,
        "allowed_mentions": allowed,
    }
    if drawn.files:
        payload["attachments"] = [
            {"id": number, "filename": file.name} for number, file in enumerate(drawn.files)
        ]
    return payload


def private(text: str) -> Json:
    """An ephemeral message of plain words to the person who pressed. The text is inert."""
    words = visible(text).strip() or "Done."
    shown = escape_discord(cut(words, LIMITS.notice))
    if utf16_len(shown) > LIMITS.notice:  # marks were escaped, and nothing is longer than twice itself
        shown = escape_discord(cut(words, LIMITS.notice // 2))
    return {"content": shown, "flags": EPHEMERAL | SUPPRESS_EMBEDS, "allowed_mentions": {"parse": []}}


def allowed_mentions(people: Sequence[str] = (), roles: Sequence[str] = ()) -> Json:
    """Who may be paged: these, or nobody at all, not even the author of what is replied to."""
    found: Json = {"parse": []}
    return found | ({"users": [*people]} if people else {}) | ({"roles": [*roles]} if roles else {})


def _called(part: Part, room: int) -> tuple[list[str], list[str]]:
    """The people and roles whom a part mentions, as many as it has room for; the first one always."""
    people = [actor.user for actor in part.mentions if mention(actor)]
    roles = [role for role in part.mention_roles if is_id(role)]
    most = max(1, min(ASKED, room // _MENTION))
    people = list(dict.fromkeys(people))[:most]
    return people, list(dict.fromkeys(roles))[: most - len(people)]


def mention(actor: Actor) -> str:
    """The words that reach this person; "" for an id that is none of Discord's."""
    if actor.channel != CHANNEL or not is_id(actor.user):
        return ""
    return f"<@{actor.user}>"


def asked(actor: Actor, prompt: str) -> Json:
    """The message on which a command's thread begins: who asked what. Pages nobody."""
    lines = cut(visible(prompt).strip(), _PROMPT).split("\n")
    quoted = [f"> {escape_discord(line)}" for line in lines]
    words = "\n".join([f"{mention(actor) or 'Somebody'} asked:", *quoted])
    return {"content": words, "flags": SUPPRESS_EMBEDS, "allowed_mentions": {"parse": []}}


def thread_name(text: str) -> str:
    """What a thread that begins with these words is called; at most 100 units, never blank."""
    line = " ".join(visible(text).split())
    return cut(line, THREAD_NAME) or "Conversation"


def _quiet(content: str) -> str:
    """A short notice in small grey letters; a longer or formatted one as it is."""
    lines = content.split("\n")
    plain = len(lines) <= _QUIET_LINES and not any(_BLOCK.match(line) for line in lines if line)
    if not plain or utf16_len(content) > _QUIET or "```" in content:
        return content
    return "\n".join(small(line) if line else line for line in lines)


def _fronted(part: Part, content: str, mentions: Sequence[str]) -> str:
    marks = [*mentions, *(["⚠️"] if part.kind == "error" else [])]
    if not marks:
        return content
    between = "\n" if _BLOCK.match(content) else " "  # a heading or a list is one at a line's start only
    return " ".join(marks) + between + content
