"""Messages, edits and deletions as Slack sends them -> the channel's values. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from channels.base import Actor, InboundChange, InboundMessage
from channels.render.inbound import Decoded, slack_decoded
from channels.slack import refs
from channels.slack import wire_values as v
from channels.slack.wire_blocks import blocks_text
from channels.slack.wire_values import Ignored, Me, Mention, Node, Parsed

QUOTE_LIMIT: Final = 4000  # characters of what is forwarded or asked about
_SLACKBOT: Final = "USLACKBOT"
_NOBODY: Final = frozenset({"UREVOKEDU"})  # stands for an author that we may not know

TALK: Final = frozenset({"", "bot_message", "me_message", "file_share", "thread_broadcast"})
_NOTICES: Final = frozenset(
    {
        "assistant_app_thread",
        "document_mention",
        "ekm_access_denied",
        "emoji_changed",
        "huddle_thread",
        "me_join",
        "message_replied",
        "pinned_item",
        "share_shortcut",
        "slackbot_response",
        "thread_subscribed",
        "tombstone",
        "unpinned_item",
        "reply_broadcast",
    }
)
# Families of them. `file_share` is talk all the same.
_NOTICE_FAMILIES: Final = (
    "app_conversation_",
    "bot_add",
    "bot_disable",
    "bot_enable",
    "bot_remove",
    "canvas_",
    "channel_",
    "file_",
    "group_",
    "im_",
    "joiner_",
    "mpim_",
    "reminder_",
    "sh_room_",
    "tabbed_canvas_",
)
_TO_OTHERS: Final = re.compile(r"\s*<(?:@(?P<user>\w+)|!(?:subteam\^|here|channel|everyone))[^<>\n]*>")


class Place(NamedTuple):
    """Where a message stands, and how it came. `called`: Slack itself says that it mentions us."""

    channel: str
    channel_type: str
    called: bool = False

    @property
    def private(self) -> bool:
        return self.channel_type in ("im", "app_home") or (
            not self.channel_type and self.channel.startswith("D")
        )


def message_event(event: Node, me: Me, mention: Mention) -> Parsed:
    """A `message` or `app_mention` event. Raises Malformed."""
    place = Place(event.need("channel"), event.text("channel_type"), event.text("type") == "app_mention")
    subtype = event.text("subtype")
    if subtype == "message_changed":
        return _changed(event, place, me, mention)
    if subtype == "message_deleted":
        return _deleted(event.need_ts("deleted_ts"), event.at("previous_message"), place, me)
    if subtype not in TALK:
        return _not_talk(subtype)
    if event.flag("hidden"):
        return Ignored(reason=v.HIDDEN)
    return _said(event, place, me, mention)


def earlier(message: Node, channel: str, me: Me) -> InboundMessage | None:
    """A message of conversations.replies or .history; None for our own and for what is no talk."""
    if message.text("subtype") not in TALK or not message.ts("ts"):
        return None
    said = _heard(message, Place(channel, ""), me)
    return said if isinstance(said, InboundMessage) else None


def _said(
    message: Node, place: Place, me: Me, mention: Mention, *, before: Node | None = None
) -> InboundMessage | Ignored:
    """One message, if it is for us. before: the message as it was, when this is an edit of it."""
    said = _heard(message, place, me, before=before)
    if isinstance(said, Ignored) or said.addressed:
        return said
    if _to_others(message, me):
        return Ignored(reason=v.TO_OTHERS)
    in_thread = said.thread.thread != said.message_id
    if in_thread and mention != "always":
        return replace(said, ongoing=True)
    if not in_thread and mention == "never":
        return replace(said, addressed=True)
    return Ignored(reason=v.NOT_ADDRESSED)


def _heard(message: Node, place: Place, me: Me, *, before: Node | None = None) -> InboundMessage | Ignored:
    """One message as it is, whomever it is said to."""
    ts = message.need_ts("ts")
    if ours(message, me):
        return Ignored(reason=v.OWN)
    from_bot = _by_a_program(message)
    user = message.text("user") or (message.text("bot_id") if from_bot else "")
    if not user or user in _NOBODY:
        return Ignored(reason=v.NO_AUTHOR)
    words = _words(message, me, from_bot)
    addressed = place.private or place.called or words.addressed or _mentions(before, me)
    thread = refs.thread_key(me.team, place.channel, ts=ts, thread_ts=message.ts("thread_ts"))
    shares = [] if from_bot else [share for share in message.nodes("attachments") if _is_share(share)]
    quote = _quoted(shares)
    files = v.attachments_of(_files(message, shares))
    # Calling the bot into a thread without a word is a question about that thread.
    called_in = words.addressed and thread.thread != ts
    if not (words.text.strip() or files or quote or called_in):
        return Ignored(reason=v.NOTHING)
    return InboundMessage(
        thread=thread,
        message_id=ts,
        actor=_author(message, user, me),
        text=words.text,
        sent_at=float(ts),
        addressed=addressed,
        private=place.private,
        mentioned=place.called or words.addressed,
        from_bot=from_bot,
        edited=before is not None or (place.called and bool(message.at("edited"))),
        quote=quote,
        attachments=files,
    )


def _not_talk(subtype: str) -> Ignored:
    if subtype in _NOTICES or subtype.startswith(_NOTICE_FAMILIES):
        return Ignored(reason=v.NOTICE)
    return Ignored(reason=v.UNKNOWN_SUBTYPE, unknown=True)


def _changed(event: Node, place: Place, me: Me, mention: Mention) -> Parsed:
    """Slack says this of new replies, link previews and much else: only a person's edit counts."""
    message, before = event.at("message"), event.at("previous_message")
    ts = message.need_ts("ts")
    if message.text("subtype") == "tombstone":  # the first message of a thread that goes on without it
        return _deleted(ts, before or message, place, me)
    if ours(message, me):
        return Ignored(reason=v.OWN)
    if message.text("subtype") not in TALK:
        return _not_talk(message.text("subtype"))
    if not message.at("edited") or _by_a_program(message):
        return Ignored(reason=v.NOT_EDITED)
    if before and before.text("text") == message.text("text"):
        return Ignored(reason=v.SAME_TEXT)
    return _said(message, place, me, mention, before=before)


def _deleted(ts: str, message: Node, place: Place, me: Me) -> Parsed:
    if ours(message, me):
        return Ignored(reason=v.OWN)
    thread = refs.thread_key(me.team, place.channel, ts=ts, thread_ts=message.ts("thread_ts"))
    return InboundChange(thread=thread, kind="deleted", message_id=ts)


# ---- who


def ours(message: Node, me: Me) -> bool:
    """Whether our app wrote it, under whatever name."""
    return (
        message.text("user") == me.user != ""
        or message.text("bot_id") == me.bot != ""
        or message.text("app_id") == me.app != ""
        or message.text("bot_profile", "app_id") == me.app != ""
    )


def _by_a_program(message: Node) -> bool:
    return (
        bool(message.text("bot_id"))
        or message.text("subtype") == "bot_message"
        or message.text("user") == _SLACKBOT
    )


def _author(message: Node, user: str, me: Me) -> Actor:
    """`team` may be the workspace that owns the channel; `user_team` is the author's own."""
    return v.actor_of(
        me, user, message.text("user_team"), message.text("user_profile", "team"), message.text("team")
    )


def _to_others(message: Node, me: Me) -> bool:
    found = _TO_OTHERS.match(message.text("text"))
    return found is not None and found["user"] != me.user


def _mentions(message: Node | None, me: Me) -> bool:
    return message is not None and slack_decoded(message.text("text"), bot=(me.user,)).addressed


# ---- what


def _words(message: Node, me: Me, from_bot: bool) -> Decoded:
    """The text, or where that is empty what the blocks say; of a program its attachments as well."""
    wire = message.text("text")
    if not wire.strip():
        wire = blocks_text(message.at("blocks"))
    if not wire.strip() and from_bot:
        wire = "\n\n".join(filter(None, map(_attachment_text, message.nodes("attachments"))))
    elsewhere = "\n".join(_external(file) for file in message.nodes("files") if v.is_external(file))
    decoded = slack_decoded(wire, bot=(me.user,))
    if not elsewhere:
        return decoded
    return Decoded(text=f"{decoded.text}\n{elsewhere}".strip(), addressed=decoded.addressed)


def _external(file: Node) -> str:
    """A file that lives elsewhere, as words: all that Slack has of it is where."""
    name = file.text("title") or file.text("name") or "file"
    url = file.text("external_url") or file.text("url_private")
    return f"{name} ({url})" if url else name


def _is_share(attachment: Node) -> bool:
    """A message that a person forwarded or linked to, as opposed to a preview of a web page."""
    return attachment.flag("is_share") or attachment.flag("is_msg_unfurl")


def _files(message: Node, shares: list[Node]) -> Iterator[Node]:
    yield from message.nodes("files")
    for share in shares:
        yield from share.nodes("files")


def _quoted(shares: list[Node]) -> str:
    return "\n\n".join(filter(None, map(_share_text, shares)))[:QUOTE_LIMIT]


def _share_text(share: Node) -> str:
    """Mentions in here were said to somebody else, at another time: they stay words."""
    words = slack_decoded(_attachment_text(share)).text.strip()
    author = share.text("author_name") or share.text("author_id")
    return f"{author}: {words}" if words and author else words


def _attachment_text(attachment: Node) -> str:
    """In wire form."""
    parts = [attachment.text("pretext"), attachment.text("title"), attachment.text("text")]
    parts += [f"{field.text('title')}: {field.text('value')}" for field in attachment.nodes("fields")]
    if not any(part.strip() for part in parts):
        parts = [blocks_text(attachment.at("blocks"))]
        parts += [blocks_text(one.at("message", "blocks")) for one in attachment.nodes("message_blocks")]
    text = "\n".join(part for part in parts if part.strip())
    return text or attachment.text("fallback")


def quoted_message(message: Node, me: Me) -> str:
    """What a message says, to be asked about: its words with whatever it forwards."""
    words = _words(message, me, _by_a_program(message)).text.strip()
    shares = _quoted([share for share in message.nodes("attachments") if _is_share(share)])
    return "\n\n".join(filter(None, (words, shares)))[:QUOTE_LIMIT]
