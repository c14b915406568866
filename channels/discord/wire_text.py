"""The words and files of one message as Discord sends it, in whatever part of it they are. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from channels.base import Attachment
from channels.discord import refs
from channels.discord.wire_json import Node
from channels.discord.wire_values import Me, Parents, name_of
from channels.render.inbound import Decoded, discord_decoded

QUOTE_LIMIT: Final = 4000  # characters of what is replied to, forwarded or asked about
_DEPTH: Final = 8  # of components in one another; Discord itself allows half of that
_TEXT_DISPLAY: Final = 10
_CHANNEL: Final = re.compile(r"<#(\d{1,20})>", re.ASCII)


def words(message: Node, me: Me, parents: Parents, *, from_bot: bool = False) -> Decoded:
    """What a message says. Calls of the bot count in what pages people: not in embeds and polls."""
    content = message.text("content")
    if not content.strip():
        content = components_text(message)
    users = {user.id("id"): name_of(user, user.at("member")) for user in message.nodes("mentions")}
    channels = _channels(message, content, parents)
    said = discord_decoded(content, bot=me.called, users=users, channels=channels)
    more = list(_beside(message, from_bot))
    if not more:
        return said
    text = "\n\n".join(filter(None, (said.text.strip(), *more)))
    return Decoded(text=text, addressed=said.addressed)


def quoted(message: Node, parents: Parents) -> str:
    """What a message says that is spoken of. Mentions in it were said to others, at another time."""
    nobody = Me(user="")
    text = words(message, nobody, parents, from_bot=True).text.strip()
    forwarded = snapshots_text(message, parents)
    return "\n\n".join(filter(None, (text, forwarded)))[:QUOTE_LIMIT]


def snapshots_text(message: Node, parents: Parents) -> str:
    """What a forwarded message says."""
    told = (words(one, Me(user=""), parents).text.strip() for one in _snapshots(message))
    return "\n\n".join(filter(None, told))[:QUOTE_LIMIT]


def has_anything(message: Node) -> bool:
    """Whether there is any content at all. Without the message content intent there is none."""
    parts = ("embeds", "attachments", "components", "sticker_items", "message_snapshots")
    kinds = ("poll", "activity", "application", "call")
    return (
        bool(message.text("content"))
        or any(True for part in parts for _ in message.nodes(part))
        or any(message.at(kind) for kind in kinds)
    )


def components_text(message: Node) -> str:
    """What the components of a message show as text."""
    shown = (one.text("content") for one in components(message) if one.number("type") == _TEXT_DISPLAY)
    return "\n".join(filter(None, shown))


def components(message: Node) -> Iterator[Node]:
    """All components of a message, those inside others too, in reading order."""
    yield from _inside(message, 0)


def _inside(node: Node, depth: int) -> Iterator[Node]:
    if depth >= _DEPTH:
        return
    below = [*node.nodes("components"), node.at("accessory"), node.at("component")]
    for one in filter(None, below):
        yield one
        yield from _inside(one, depth + 1)


# ---- files


def attachments(message: Node) -> tuple[Attachment, ...]:
    """The files of a message, those of what it forwards included, each once."""
    channel, own_id = message.id("channel_id"), message.id("id")
    if not channel or not own_id:  # nowhere to fetch them from
        return ()
    found: dict[str, Attachment] = {}
    for holder in (message, *_snapshots(message)):
        for file in holder.nodes("attachments"):
            if attachment := file.id("id"):
                handle = refs.FileHandle(channel=channel, message=own_id, attachment=attachment)
                found.setdefault(attachment, attachment_of(file, handle))
    return tuple(found.values())


def attachment_of(file: Node, handle: refs.FileHandle) -> Attachment:
    media_type = file.text("content_type").partition(";")[0].strip()
    return Attachment(
        file_id=handle.pack(),
        name=file.text("filename") or "file",
        media_type=media_type or "application/octet-stream",
        size=max(file.number("size") or 0, 0),
    )


def file_url(message: Node, attachment: str) -> str:
    """The address of one of a message's files as it is now, "" when it is gone."""
    for holder in (message, *_snapshots(message)):
        for file in holder.nodes("attachments"):
            if file.id("id") == attachment:
                return file.text("url")
    return ""


# ---- parts


def _snapshots(message: Node) -> Iterator[Node]:
    for one in message.nodes("message_snapshots"):
        yield one.at("message")


def _channels(message: Node, content: str, parents: Parents) -> Mapping[str, str]:
    """The names of the channels that a text speaks of, as far as they are known."""
    found = {one.id("id"): one.text("name") for one in message.nodes("mention_channels")}
    for channel in _CHANNEL.findall(content):
        info = parents(channel)
        if info is not None and info.name:
            found[channel] = info.name
    return found


def _beside(message: Node, from_bot: bool) -> Iterator[str]:
    """What is said beside the text. A person's embeds are only previews of links."""
    for sticker in (*message.nodes("sticker_items"), *message.nodes("stickers")):
        yield f"[sticker: {sticker.text('name')}]"
    if poll := message.at("poll"):
        yield _poll(poll)
    if from_bot:
        yield from filter(None, map(_embed, message.nodes("embeds")))


def _poll(poll: Node) -> str:
    lines = [f"Poll: {poll.text('question', 'text')}"]
    for answer in poll.nodes("answers"):
        media = answer.at("poll_media")
        lines.append(f"- {media.text('text') or media.text('emoji', 'name')}")
    return "\n".join(lines)


def _embed(embed: Node) -> str:
    """A program's embed, mentions in it decoded to words."""
    lines = [embed.text("author", "name"), embed.text("title"), embed.text("description")]
    lines += [f"{field.text('name')}: {field.text('value')}" for field in embed.nodes("fields")]
    lines.append(embed.text("footer", "text"))
    return discord_decoded("\n".join(line for line in lines if line.strip())).text
