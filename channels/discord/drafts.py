"""What a turn shows before its answer is there: the answer while it grows, and words about the work. Pure.

Nothing in it pages anybody or brings a preview with it. The answer itself, which takes its place, has all
that an answer may have.
"""

from __future__ import annotations

from typing import Any, Final

from channels.discord.components import small
from channels.discord.limits import LIMITS, SUPPRESS_EMBEDS
from channels.discord.render import allowed_mentions
from channels.render.discord import discord_messages, escape_discord
from channels.render.inert import flat
from channels.render.measure import cut
from channels.render.stream import presentable

Json = dict[str, Any]

WORKING: Final = "Working…"
_PREVIEW: Final = 700  # characters; a growing answer shows about its last 1,400 at most
_LONGEST_NAME: Final = 80  # units of a tool's name
_NOTE: Final = 240  # units kept free for the note, whose every character may need an escape


def using(tool: str) -> str:
    """The words for a tool at work."""
    return f"Using {cut(flat(tool), _LONGEST_NAME) or 'a tool'}…"


def sign(note: str, text: str = "") -> Json | None:
    """A progress message: the answer so far, and below it what is done now; None for nothing."""
    shown = presentable(text, last=_PREVIEW) if text.strip() else ""
    lines = discord_messages(shown, limit=LIMITS.text - _NOTE)[-1:] if shown.strip() else []
    if note:
        lines.append(small(escape_discord(note)))
    if not lines:
        return None
    return {
        "content": "\n".join(lines),
        "flags": SUPPRESS_EMBEDS,
        "allowed_mentions": allowed_mentions(),
    }
