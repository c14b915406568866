"""Slash commands, the command in the menu of a message, and autocompletion -> the channel's values. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from channels.base import Attachment, InboundMessage
from channels.discord import refs, wire_text
from channels.discord import wire_values as v
from channels.discord.commands import ASK, ASK_ABOUT
from channels.discord.wire_json import Node
from channels.discord.wire_use import Use
from channels.discord.wire_values import Ignored, Parsed
from channels.render.inbound import discord_decoded
from channels.tolerant import Malformed

_PROMPT: Final = "prompt"  # the option of /ask with the words
_OTHERS: Final = frozenset(
    {
        "new",
        "stop",
        "status",
        "pending",
        "grants",
        "schedules",
        "memory",
        "approve",
        "deny",
        "model",
        "agent",
        "help",
    }
)
_SLASH, _MESSAGE = 1, 3  # types of commands; 2 is in the menu of a person
_FILE: Final = 11  # type of an option
_GROUPS: Final = frozenset({1, 2})  # types of options that hold others
_FIRST: Final = "code"  # this option's value comes first in the words of a command


def command(use: Use) -> Parsed:
    """A command of any kind. Raises Malformed."""
    name = use.data.need("name")
    kind = use.data.number("type") or _SLASH
    if kind == _MESSAGE and name == ASK_ABOUT:
        return _about(use)
    if kind == _SLASH and name == ASK:
        return _ask(use)
    if kind == _SLASH and name in _OTHERS:
        return _other(use, name)
    return Ignored(reason=v.OTHER_COMMAND)


def _ask(use: Use) -> Parsed:
    options = {option.text("name"): value_of(option) for option in _options(use.data)}
    prompt = options.pop(_PROMPT, "")
    users = {
        user: v.name_of(one, use.data.at("resolved", "members", user))
        for user, one in use.data.items("resolved", "users")
    }
    text = discord_decoded(prompt, bot=use.scene.me.called, users=users).text.strip()
    files = tuple(_files(use.data))
    if not text and not files:
        return Ignored(reason=v.NOTHING)
    return v.CommandGiven(
        kind="ask",
        name=ASK,
        message=_message(use, text, files=files),
        handle=use.handle,
        options=options,
        opens_thread=_opens(use),
    )


def _about(use: Use) -> Parsed:
    """The command in the menu of a message, for which Discord sends that message along."""
    target = use.data.need_id("target_id")
    message = use.data.at("resolved", "messages", target)
    quote, files = wire_text.quoted(message, use.scene.parents), wire_text.attachments(message)
    if not quote and not files:
        return Ignored(reason=v.NOTHING)
    return v.CommandGiven(
        kind="about",
        name=ASK_ABOUT,
        message=_message(use, "", quote=quote, files=files),
        handle=use.handle,
        opens_thread=_opens(use),
        target=refs.pack_ref(use.place.here, target),
    )


def _other(use: Use, name: str) -> Parsed:
    options = {option.text("name"): value_of(option) for option in _options(use.data)}
    words = [options[key] for key in sorted(options, key=lambda key: key != _FIRST)]
    text = " ".join((f"/{name}", *(word.strip() for word in words if word.strip())))
    return v.CommandGiven(
        kind="other",
        name=name,
        message=_message(use, text, hidden=True),
        handle=use.handle,
        options=options,
    )


def _opens(use: Use) -> bool:
    return use.scene.threads and use.place.can_open


def _message(
    use: Use, text: str, *, quote: str = "", files: tuple[Attachment, ...] = (), hidden: bool = False
) -> InboundMessage:
    return InboundMessage(
        thread=use.place.key,
        message_id=use.handle.id,
        actor=use.actor,
        text=text,
        sent_at=use.handle.at,
        private=use.place.private,
        author=use.author,
        guest=v.is_guest(use.node.at("member")),
        hidden=hidden,
        quote=quote,
        attachments=files,
    )


def _options(data: Node, depth: int = 0) -> Iterator[Node]:
    """The options that were filled in, those of subcommands too; files apart."""
    for option in data.nodes("options"):
        kind = option.number("type")
        if kind in _GROUPS and depth < len(_GROUPS):
            yield from _options(option, depth + 1)
        elif kind not in _GROUPS and kind != _FILE and option.text("name"):
            yield option


def value_of(option: Node) -> str:
    """The value there, as text."""
    value = option.at("value").value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else option.text("value")


def _files(data: Node) -> Iterator[Attachment]:
    for option in data.nodes("options"):
        file = data.at("resolved", "attachments", option.id("value"))
        url = file.text("url")
        if option.number("type") == _FILE and url:
            yield wire_text.attachment_of(file, refs.FileHandle(url=url))


def autocomplete(use: Use) -> Parsed:
    """Somebody types in an option. Raises Malformed."""
    focused = next((option for option in _options(use.data) if option.flag("focused")), None)
    if focused is None:
        raise Malformed("data.options.focused")
    name = focused.need("name")
    others = {option.text("name"): value_of(option) for option in _options(use.data)}
    return v.AutocompleteWanted(
        command=use.data.need("name"),
        option=name,
        typed=others.pop(name),
        actor=use.actor,
        thread=use.place.key,
        handle=use.handle,
        options=others,
    )
