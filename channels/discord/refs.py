"""Ids and places, as they are packed for Discord and unpacked again. Pure.

Everything that a later process must know of a message, a press or an open modal is in these strings:
nothing is remembered between two of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from channels.base import MessageRef, ThreadKey

CHANNEL: Final = "discord"
DM: Final = "@me"  # the workspace of direct messages
CUSTOM_ID_LIMIT: Final = 100  # characters

_PERSON: Final = "user:"
_ID: Final = re.compile(r"[0-9]{1,20}", re.ASCII)
_EPOCH: Final = 1_420_070_400_000  # milliseconds: the beginning of 2015, from which ids count


def thread_key(guild: str, channel: str, thread: str = "") -> ThreadKey:
    """Where something was said or pressed; no other function makes these keys.

    guild: "" for direct messages. channel: never a thread's own id but that of the channel, forum or
    direct conversation that it is in. thread: the thread's or forum post's id; a thread that a message
    begins has the id of that message, also before it exists.
    """
    return ThreadKey(CHANNEL, guild or DM, channel, thread)


def in_thread(key: ThreadKey, thread: str) -> ThreadKey:
    """The same channel, another thread."""
    return key._replace(thread=thread)


def place_of(key: ThreadKey) -> str:
    """The id to which calls about messages there go: of the thread, or of the channel."""
    return key.thread or key.conversation


def person_of(key: ThreadKey) -> str:
    """The person whom a key `@me`, `user:<id>` means: their direct messages, wherever those are."""
    user = key.conversation.removeprefix(_PERSON)
    named = key.workspace == DM and key.conversation.startswith(_PERSON)
    return user if named and is_id(user) else ""


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def time_of(own_id: str) -> float:
    """When a message or an interaction was made, in Unix seconds: its id says so."""
    return ((int(own_id) >> 22) + _EPOCH) / 1000


# ---- messages and files


def pack_ref(channel: str, message: str) -> MessageRef:
    """channel: where the message can be fetched and edited, so a thread's own id in a thread."""
    return MessageRef(f"{channel}:{message}")


def unpack_ref(ref: MessageRef) -> tuple[str, str]:
    """(channel or thread, message). Raises ValueError for a foreign reference."""
    channel, _, message = ref.partition(":")
    if not is_id(channel) or not is_id(message):
        raise ValueError(f"not a reference of this channel: {ref!r}")
    return channel, message


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHandle:
    """Where a file can be had. Discord's addresses expire: of a file at a message, `message` is to be
    fetched again for a fresh one. `url` alone: it came with a command, and there is no message."""

    channel: str = ""
    message: str = ""
    attachment: str = ""
    url: str = ""

    def pack(self) -> str:
        return f"url|{self.url}" if self.url else f"{self.channel}:{self.message}:{self.attachment}"


def unpack_file(file_id: str) -> FileHandle:
    """Raises ValueError for a foreign handle."""
    if file_id.startswith("url|"):
        return FileHandle(url=file_id.removeprefix("url|"))
    ids = file_id.split(":")
    if len(ids) != 3 or not all(map(is_id, ids)):
        raise ValueError(f"not a file of this channel: {file_id!r}")
    return FileHandle(channel=ids[0], message=ids[1], attachment=ids[2])


# ---- the ids of what people do


def press_id(interaction: str, index: int = 0) -> str:
    """One press. index: its place among those that one change of a select amounts to."""
    return f"{interaction}.{index}" if index else interaction


def interaction_of(action_id: str) -> str:
    """The interaction that a press came with."""
    return action_id.partition(".")[0]


# ---- custom ids of controls and modals

_FORM: Final = "f"  # before the data of a button that opens a modal
_MODAL: Final = "m"  # before the data of a modal that is not the first page opened from the card itself
_OPENS: Final = re.compile(r"(?:(?P<page>[0-9]{1,3})\.(?P<card>[0-9]{0,20}):)?(?P<data>v1:.+)", re.DOTALL)
_OF_THE_CARD: Final = re.compile(
    r"v1:(?P<card_id>[^:]+):(?:(?P<pick>pick)|(?P<many>many)(?::(?P<part>[0-9]{1,3}))?|page:(?P<page>[0-9]{1,3}))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """What a custom id says.

    press: `data` is the press. form: opens page `page` (from 0) of the form with `data`; `card`: the
    message of the card, "" when the control is on the card itself. pick, many: a select whose values are
    the presses; page: show page `page` (from 0) of the card; `data` is the card's id in these three.
    """

    kind: Literal["press", "form", "pick", "many", "page"]
    data: str
    page: int = 0
    card: str = ""


def pick_id(card_id: str) -> str:
    """A select in which one option is chosen; each option's value is its press."""
    return f"v1:{card_id}:pick"


def many_id(card_id: str, page: int = 0) -> str:
    """A select in which several options are chosen; each option's value is its press."""
    return f"v1:{card_id}:many:{page}" if page else f"v1:{card_id}:many"


def page_id(card_id: str, page: int) -> str:
    """A button that shows another page of the card."""
    return f"v1:{card_id}:page:{page}"


def form_id(data: str, page: int = 0, card: str = "") -> str:
    """A button that opens a form, or (page above 0, or `card`: the id of the card's message) one in a
    later, ephemeral message that goes on with it."""
    return _FORM + _opens(data, page, card)


def modal_id(data: str, page: int = 0, card: str = "") -> str:
    """The modal that such a button opens: the data alone for the first page opened from the card."""
    return _MODAL + _opens(data, page, card) if page or card else data


def read_control(custom_id: str) -> Control:
    """What a control stands for; anything that is not ours is a press, which nobody will know."""
    if custom_id.startswith(_FORM) and (opens := _opened(custom_id.removeprefix(_FORM))):
        return opens
    found = _OF_THE_CARD.fullmatch(custom_id)
    if found is None:
        return Control(kind="press", data=custom_id)
    if found["pick"]:
        return Control(kind="pick", data=found["card_id"])
    if found["many"]:
        return Control(kind="many", data=found["card_id"], page=int(found["part"] or 0))
    return Control(kind="page", data=found["card_id"], page=int(found["page"]))


def read_modal(custom_id: str) -> Control | None:
    """The form that a modal is a page of, None for a modal that is none of ours."""
    return _opened(custom_id.removeprefix(_MODAL))


def _opens(data: str, page: int, card: str) -> str:
    packed = f"{page}.{card}:{data}" if page or card else data
    if len(packed) >= CUSTOM_ID_LIMIT:
        raise ValueError(f"the data of a form's button is too long: {len(data)} characters")
    return packed


def _opened(packed: str) -> Control | None:
    found = _OPENS.fullmatch(packed)
    if found is None:
        return None
    return Control(kind="form", data=found["data"], page=int(found["page"] or 0), card=found["card"] or "")
