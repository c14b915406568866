"""What a person wrote on Slack or Discord, from the wire to Markdown for the model.

One pass each: code is looked at first and handed on to the byte, what is left is decoded once. So a
mention counts only where the platform itself made one: never in code, never typed in escaped form, and
never because a message is a reply. The bot's own mention is taken out and reported in `addressed`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_NOBODY: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """The words, and whether the bot is mentioned in them (that mention is no longer there)."""

    text: str
    addressed: bool = False


def slack_decoded(
    wire: str,
    *,
    bot: Collection[str] = (),
    users: Mapping[str, str] = _NOBODY,
    channels: Mapping[str, str] = _NOBODY,
) -> Decoded:
    """A Slack message's `text`.

    bot: the bot's own user ids. users, channels: id -> name, without `@` or `#`; an id that is not there
    is shown as such, unless the message itself brings a name.
    """
    words = _Words()
    for found in _SLACK.finditer(wire):
        words.add(wire[words.read : found.start()])
        words.read = found.end()
        token = found["token"]
        if found["code"] is not None:
            words.add(_SLACK_IN_CODE.sub(_in_slack_code, found[0]))
        elif token is None:
            words.add(_ENTITIES[found[0]])
        elif token.startswith("@") and token[1:].partition("|")[0] in bot:
            words.mention()
        else:
            words.add(_slack_token(token, users, channels))
    return words.decoded(wire[words.read :])


def slack_unescaped(text: str) -> str:
    """`&lt;`, `&gt;` and `&amp;` decoded, each once, and nothing else."""
    return _ENTITY.sub(lambda found: _ENTITIES[found[0]], text)


def discord_decoded(
    content: str,
    *,
    bot: Collection[str] = (),
    users: Mapping[str, str] = _NOBODY,
    roles: Mapping[str, str] = _NOBODY,
    channels: Mapping[str, str] = _NOBODY,
) -> Decoded:
    """A Discord message's `content`. Escapes stay as typed: they are Markdown's own.

    bot: the bot's user id, and the ids of the roles that stand for it alone. users, roles, channels:
    id -> name, without `@` or `#`; an id that is not there is shown as such.
    """
    names: Mapping[str, tuple[str, Mapping[str, str]]] = {
        "@": ("@", users),
        "@!": ("@", users),
        "@&": ("@", roles),
        "#": ("#", channels),
    }
    words = _Words()
    for found in _DISCORD.finditer(content):
        words.add(content[words.read : found.start()])
        words.read = found.end()
        kind = found["kind"]
        if found["kept"] is not None:
            words.add(found[0])
        elif kind is None:
            words.add(_discord_sign(found))
        elif kind != "#" and found["id"] in bot:
            words.mention()
        else:
            sign, known = names[kind]
            words.add(sign + known.get(found["id"], found["id"]))
    return words.decoded(content[words.read :])


class _Words:
    """The text as it is put together. `read`: how far the source has been read."""

    def __init__(self) -> None:
        self.read = 0
        self._parts: list[str] = []
        self._addressed = False
        self._begun = False  # something other than blanks is there
        self._eaten = ""  # what the mention before takes off the front of the next words

    def add(self, text: str) -> None:
        text = text.lstrip(self._eaten) if self._eaten else text
        if text:
            self._eaten = ""
            self._begun = self._begun or not text.isspace()
            self._parts.append(text)

    def mention(self) -> None:
        """The bot's own: leaves out the blank behind it, and at the start what sets it off."""
        self._addressed = True
        if not self._begun:
            self._eaten = " \t,:"
        elif self._parts[-1][-1].isspace():
            self._eaten = " \t"

    def decoded(self, rest: str) -> Decoded:
        self.add(rest)
        text = "".join(self._parts)
        return Decoded(text=text.strip() if self._addressed else text, addressed=self._addressed)


# ---- Slack

_ENTITIES: Final = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}
_ENTITY: Final = re.compile("&(?:amp|lt|gt);")
# Code in full, a control sequence without its brackets, or an entity.
_SLACK: Final = re.compile(
    r"(?P<code>```(?:[^`]|`(?!``))*```|(?<!`)`[^`\n]+`(?!`))|<(?P<token>[^<>\n]+)>|&(?:amp|lt|gt);"
)
_SLACK_IN_CODE: Final = re.compile(r"<(?P<token>[^<>\n]+)>|&(?:amp|lt|gt);")
_ADDRESS_START: Final = re.compile(r"https?://|mailto:|tel:")


def _in_slack_code(found: re.Match[str]) -> str:
    """In code Slack still makes links of addresses: what was typed comes back."""
    token = found["token"]
    if token is None:
        return _ENTITIES[found[0]]
    if token[0] in "@#!":
        return found[0]
    url, _, label = token.partition("|")
    return slack_unescaped(label or url)


def _slack_token(token: str, users: Mapping[str, str], channels: Mapping[str, str]) -> str:
    target, _, label = token.partition("|")
    target, label = slack_unescaped(target), slack_unescaped(label)
    kind, name = target[0], target[1:]
    if kind == "@":
        return _signed("@", users.get(name) or label or name)
    if kind == "#":
        return _signed("#", channels.get(name) or label or name)
    if kind == "!":
        return _slack_command(name, label)
    bare = _ADDRESS_START.sub("", target, count=1)
    if not label or label in (target, bare, bare.rstrip("/")):
        return label or target
    return f"{label} ({target})"


def _slack_command(name: str, label: str) -> str:
    """`<!here>`, `<!subteam^S1|@ops>`, `<!date^1^{date}|fallback>`, and what may come."""
    word, _, rest = name.partition("^")
    if word == "date":
        return label or rest.partition("^")[0]
    if word == "subteam":
        return _signed("@", label or rest)
    return _signed("@", label or word)


def _signed(sign: str, name: str) -> str:
    return name if name.startswith(sign) else sign + name


# ---- Discord

_DISCORD: Final = re.compile(
    r"(?P<kept>```(?:[^`]|`(?!``))*```|(?<!`)``(?!`)(?:[^`]|(?<!`)`(?!`))+``(?!`)|(?<!`)`[^`]+`(?!`)|\\[^\w\s])"
    r"|<(?P<kind>@[!&]?|#)(?P<id>\d{1,25})>"
    r"|<a?:(?P<emoji>\w{1,64}):\d{1,25}>"
    r"|<t:(?P<time>-?\d{1,13})(?::(?P<style>[tTdDfFsSR]))?>"
    r"|<(?P<command>/[\w -]{1,100}):\d{1,25}>"
)
_TIME_FORMS: Final = {
    **dict.fromkeys("t", "%H:%M UTC"),
    **dict.fromkeys("T", "%H:%M:%S UTC"),
    **dict.fromkeys("dD", "%Y-%m-%d"),
    **dict.fromkeys("sfFR", "%Y-%m-%d %H:%M UTC"),
    **dict.fromkeys("S", "%Y-%m-%d %H:%M:%S UTC"),
}


def _discord_sign(found: re.Match[str]) -> str:
    """An emoji, a command or a moment, as words."""
    if found["emoji"] is not None:
        return f":{found['emoji']}:"
    if found["command"] is not None:
        return found["command"]
    try:
        moment = datetime.fromtimestamp(int(found["time"]), UTC)
    except (ValueError, OverflowError, OSError):  # beyond the calendar
        return found[0]
    return moment.strftime(_TIME_FORMS[found["style"] or "f"])
