"""Answers, notices and errors as Slack draws them. Pure.

The words come from `channels.render.slack`, which escapes every control sequence; live mentions are put
in front of them here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from channels.base import Actor, OutboundMessage
from channels.render.inert import visible
from channels.render.measure import cut, utf16_len
from channels.render.slack import escape_mrkdwn, slack_messages
from channels.slack import refs
from channels.slack.blocks import context, fits, section
from channels.slack.limits import ASKED, LIMITS, SECTION

Json = dict[str, Any]

_REPEAT: Final = "(this may be a repeat: the connection broke while it was sent)"
_RESERVE: Final = 96  # units of every message kept free for the mark of a repeat and a mention
_QUIET: Final = 300  # units up to which a notice is small and grey
_NOTICE: Final = 600  # units of a notice that stand in for its blocks
_USER: Final = re.compile(r"[UW][A-Z0-9]{1,40}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(OutboundMessage):
    """One piece of an answer, rendered: `text` is mrkdwn, `blocks` the same in blocks. Made by `parts`
    only."""

    blocks: tuple[Json, ...] = ()


def parts(message: OutboundMessage) -> tuple[Part, ...]:
    """One part for each Slack message: the text's pieces, then each file. Never empty.

    The cut depends on the text alone, not on `repeat`, `mentions` or `kind`: the n-th part stays the
    n-th part.
    """
    if isinstance(message, Part):
        return (message,)
    pieces = slack_messages(message.text, limit=LIMITS.text - _RESERVE) if message.text.strip() else []
    drawn = [
        Part(
            text=piece.text,
            blocks=piece.blocks,
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
    return tuple(drawn) or (_worded("(no text)", message),)


def _worded(words: str, message: OutboundMessage) -> Part:
    """A part of a few words that need no rendering."""
    part = Part(text=words, blocks=(_mrkdwn(words),))
    return replace(
        part,
        kind=message.kind,
        repeat=message.repeat,
        mentions=message.mentions,
        mention_roles=message.mention_roles,
        only=message.only,
    )


def message(part: OutboundMessage) -> Json:
    """The arguments of chat.postMessage that are content: `text`, `blocks`, no unfurling."""
    return content(part) | {"unfurl_links": False, "unfurl_media": False}


def content(part: OutboundMessage) -> Json:
    """`text` and `blocks`, as chat.update, chat.postEphemeral and a response_url take them."""
    [drawn, *_] = parts(part)
    text, blocks = drawn.text, list(drawn.blocks)
    front = _front(drawn)
    if drawn.kind == "notice" and not front and len(blocks) == 1 and _is_short(blocks[0]):
        blocks = [{"type": "context", "elements": [blocks[0]["text"]]}]
    if front:
        text = (f"{front.strip()}\n" if _starts_block(text) else front) + text
        blocks = _prefixed(front, blocks)
    if drawn.repeat and drawn.text:
        text, blocks = f"{text}\n\n_{_REPEAT}_", [*blocks, context([_REPEAT])]
    if not fits(blocks):  # many small runs of rich text: the text alone says the same
        return {"text": text, "blocks": []}
    return {"text": text, "blocks": blocks}


def private(text: str) -> Json:
    """`text` and `blocks` of a notice to the person who pressed. The text is inert."""
    words = visible(text).strip() or "Done."
    return {"text": escape_mrkdwn(cut(words, _NOTICE)), "blocks": [section(words)]}


def mention(actor: Actor) -> str:
    """The control sequence that reaches this person; "" for an id that is none of Slack's."""
    if actor.channel != refs.CHANNEL or not _USER.fullmatch(actor.user):
        return ""
    return f"<@{actor.user}>"


def _front(part: Part) -> str:
    """The mentions, as many as the message has room for, and the mark of an error."""
    groups = [f"<!subteam^{group}>" for group in part.mention_roles if refs.is_group(group)]
    found = [*map(mention, part.mentions), *groups]
    room = LIMITS.text - utf16_len(part.text) - len(_REPEAT) - 8
    marks: list[str] = []
    for mark in [mark for mark in dict.fromkeys(found) if mark][:ASKED]:
        room -= len(mark) + 1
        marks += [mark] if not marks or room >= 0 else []
    marks += ["⚠️"] if part.kind == "error" else []
    return "".join(f"{mark} " for mark in marks) if part.text else ""


def _is_short(block: Json) -> bool:
    return block["type"] == "section" and utf16_len(block["text"]["text"]) <= _QUIET


def _prefixed(front: str, blocks: list[Json]) -> list[Json]:
    """The blocks with this mrkdwn in front of the first one's words, or in a block of its own."""
    first = blocks[0]
    told = first.get("text", {}).get("text", "")
    if not told or _starts_block(told) or utf16_len(front + told) > SECTION:
        return [_mrkdwn(front.strip()), *blocks]
    return [_mrkdwn(front + told), *blocks[1:]]


def _starts_block(text: str) -> bool:
    """Whether the first line is a quote or code, which must stand at the beginning of a line."""
    return text.startswith((">", "```"))


def _mrkdwn(text: str) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}, "expand": True}
