"""Ids and places, as they are packed for Slack and unpacked again. Pure.

Everything that a later process must know of a message, a press or an open modal is in these strings:
nothing is remembered between two of them.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import msgspec

from channels.base import Attachment, MessageRef, ThreadKey
from channels.render.measure import utf16_len

CHANNEL: Final = "slack"
PRESS: Final = "press:"  # how the action_id of a control begins whose use is a press
FORM: Final = "form:"  # and of a button that opens a modal first
FORM_CALLBACK: Final = "form"  # callback_id of the modal that such a button opens
ASK_CALLBACK: Final = "ask_about"  # of the message shortcut, and of the modal that it opens
METADATA_LIMIT: Final = 3000  # characters of a view's private_metadata

_TS: Final = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}", re.ASCII)
_PERSON: Final = re.compile(r"[UW][A-Z0-9]{1,20}", re.ASCII)
_GROUP: Final = re.compile(r"S[A-Z0-9]{1,20}", re.ASCII)
_HOME: Final = "home:"
_Kind = Literal["message", "press", "view", "ask", "command", "stop"]
_KINDS: Final[dict[str, _Kind]] = {"view": "view", "ask": "ask", "cmd": "command", "stop": "stop"}


def thread_key(team: str, channel: str, *, ts: str = "", thread_ts: str = "") -> ThreadKey:
    """Where something was said or pressed; no other function makes these keys.

    team: the workspace in which our app is installed, in shared channels too. ts: the message's own
    timestamp, which is the thread that it may begin. Neither timestamp: the channel's root.
    """
    return ThreadKey(CHANNEL, team, channel, thread_ts or ts)


def home_key(team: str, user: str) -> ThreadKey:
    """The App Home of one person, as a place."""
    return thread_key(team, f"{_HOME}{user}")


def home_user(thread: ThreadKey) -> str:
    """Whose App Home this place is, "" for any other place."""
    return thread.conversation.removeprefix(_HOME) if thread.conversation.startswith(_HOME) else ""


def is_ts(text: str) -> bool:
    """Whether this is a message's timestamp, which is also its id in its channel."""
    return _TS.fullmatch(text) is not None


def is_person(text: str) -> bool:
    """Whether this is the id of a person, and of no conversation."""
    return _PERSON.fullmatch(text) is not None


def is_group(text: str) -> bool:
    """Whether this is the id of a user group."""
    return _GROUP.fullmatch(text) is not None


# ---- messages


def pack_ref(channel: str, ts: str) -> MessageRef:
    return MessageRef(f"{channel}:{ts}")


def unpack_ref(ref: MessageRef) -> tuple[str, str]:
    """(channel, ts). Raises ValueError for a foreign reference."""
    channel, colon, ts = ref.rpartition(":")
    if not colon or not channel or not is_ts(ts):
        raise ValueError(f"not a reference of this channel: {ref!r}")
    return channel, ts


# ---- the ids of what people do


def press_id(action_ts: str, user: str, index: int = 0) -> str:
    """One use of a control. index: its place among those that one payload reports."""
    return f"{action_ts}|{user}|{index}" if index else f"{action_ts}|{user}"


def view_press_id(view_id: str) -> str:
    """One submitted modal."""
    return f"view|{view_id}"


def ask_id(view_id: str) -> str:
    """The message that a submitted "Ask about" modal is."""
    return f"ask|{view_id}"


def command_id(trigger_id: str) -> str:
    """The message that a slash command is. The trigger itself opens modals: it is written down nowhere."""
    return f"cmd|{hashlib.sha256(trigger_id.encode('utf-8', 'replace')).hexdigest()[:24]}"


def stop_id(event_ts: str) -> str:
    """The message that a click on Slack's own stop button is."""
    return f"stop|{event_ts}"


def kind_of(own_id: str) -> _Kind | None:
    """What an action_id or message_id stands for, None when it is none of ours."""
    head, bar, rest = own_id.partition("|")
    if not bar:
        return "message" if is_ts(own_id) else None
    if not rest:
        return None
    return _KINDS.get(head) or ("press" if is_ts(head) else None)


# ---- modals: what a submission must know, carried in private_metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPlace:
    """Whence a form was opened: the press that it becomes, the card's message (None: a list in the
    App Home), and the thread."""

    data: str
    ref: MessageRef | None
    thread: ThreadKey

    def pack(self) -> str:
        """At most METADATA_LIMIT characters. Raises ValueError when that is not enough."""
        packed = _packed(("f1", self.data, self.ref, tuple(self.thread)))
        if utf16_len(packed) > METADATA_LIMIT:
            raise ValueError(f"the data of a form's button is too long: {len(self.data)} characters")
        return packed


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPlace:
    """What the agent is asked about: the message, where the answer belongs, the message's words and
    files. Packed, the words may be cut and files left out."""

    thread: ThreadKey
    message_id: str
    quoted: str = ""
    attachments: tuple[Attachment, ...] = ()

    def pack(self) -> str:
        """At most METADATA_LIMIT characters: files that do not fit beside half of that in words are
        left out, then the words are cut."""
        place = self
        while place.attachments and utf16_len(replace(place, quoted="")._whole()) > METADATA_LIMIT // 2:
            place = replace(place, attachments=place.attachments[:-1])
        fits, too_long = 0, len(place.quoted) + 1
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            if utf16_len(replace(place, quoted=_cut(place.quoted, middle))._whole()) <= METADATA_LIMIT:
                fits = middle
            else:
                too_long = middle
        return replace(place, quoted=_cut(place.quoted, fits))._whole()

    def _whole(self) -> str:
        files = [(file.file_id, file.name, file.media_type, file.size) for file in self.attachments]
        return _packed(("a1", self.message_id, self.quoted, tuple(self.thread), files))


def unpack_form(metadata: str) -> FormPlace | None:
    """None for what `FormPlace.pack` did not make."""
    try:
        _, data, ref, thread = msgspec.json.decode(metadata, type=_PackedForm)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeEncodeError):
        return None
    return FormPlace(data=data, ref=None if ref is None else MessageRef(ref), thread=ThreadKey(*thread))


def unpack_ask(metadata: str) -> AskPlace | None:
    """None for what `AskPlace.pack` did not make."""
    try:
        _, message_id, quoted, thread, files = msgspec.json.decode(metadata, type=_PackedAsk)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeEncodeError):
        return None
    return AskPlace(
        thread=ThreadKey(*thread),
        message_id=message_id,
        quoted=quoted,
        attachments=tuple(
            Attachment(file_id=file_id, name=name, media_type=media_type, size=size)
            for file_id, name, media_type, size in files
        ),
    )


_PackedForm = tuple[Literal["f1"], str, str | None, tuple[str, str, str, str]]
_PackedAsk = tuple[Literal["a1"], str, str, tuple[str, str, str, str], list[tuple[str, str, str, int]]]


def _packed(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _cut(text: str, length: int) -> str:
    return text if length >= len(text) else f"{text[:length]}…"
