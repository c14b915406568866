"""Gateway intents: which there are, and what a session is told. Pure."""

from __future__ import annotations

import copy

from tests.platforms.discord.limits import Json

GUILDS, MEMBERS, PRESENCES = 1 << 0, 1 << 1, 1 << 8
MESSAGES, REACTIONS, TYPING = 1 << 9, 1 << 10, 1 << 11
DM_MESSAGES, DM_REACTIONS, DM_TYPING, CONTENT = 1 << 12, 1 << 13, 1 << 14, 1 << 15
KNOWN = (1 << 17) - 1 | 1 << 20 | 1 << 21 | 1 << 24 | 1 << 25

# the first word or words of an event -> intent in guilds, intent in direct conversations
NEEDS: dict[str, tuple[int, int]] = {
    "GUILD_MEMBER_": (MEMBERS, MEMBERS),
    "GUILD_": (GUILDS, GUILDS),
    "CHANNEL_": (GUILDS, 0),
    "THREAD_": (GUILDS, GUILDS),
    "MESSAGE_REACTION_": (REACTIONS, DM_REACTIONS),
    "MESSAGE_": (MESSAGES, DM_MESSAGES),
    "TYPING_": (TYPING, DM_TYPING),
}


def wanted(event: str, intents: int, *, direct: bool) -> bool:
    """Whether a session with these intents gets the event. Unknown ones everybody gets."""
    for start, (in_guild, in_dm) in NEEDS.items():
        if event.startswith(start):
            needed = in_dm if direct else in_guild
            return not needed or bool(intents & needed)
    return True


def veiled(message: Json, intents: int, bot: str) -> Json:
    """A message as a session sees it: empty without the content intent, but for direct ones, the bot's
    own and those that mention it."""
    if intents & CONTENT or not message.get("guild_id"):
        return message
    seen = copy.deepcopy(message)
    for part in (seen, seen.get("referenced_message")):
        if part and not _meant_for(part, bot):
            empty: Json = {"content": "", "embeds": [], "attachments": [], "components": []}
            part.update({name: value for name, value in empty.items() if name in part})
    return seen


def _meant_for(message: Json, bot: str) -> bool:
    named = any(user["id"] == bot for user in message.get("mentions", []))
    return named or (message.get("author") or {}).get("id") == bot
