"""What a payload of Discord means to us, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from channels.base import Actor, InboundChange, InboundMessage, InboundPress, MessageRef, ThreadKey
from channels.discord import refs
from channels.discord.wire_json import Node

Mention = Literal["start", "always", "never"]

# ---- why a payload is ignored

MALFORMED: Final = "malformed"  # followed by what is missing; always unknown
UNKNOWN_EVENT: Final = "an event of an unknown type"
UNKNOWN_MESSAGE: Final = "a message of an unknown type"
UNKNOWN_INTERACTION: Final = "an interaction of an unknown type"
UNKNOWN_COMPONENT: Final = "a control of an unknown type"

NOT_ADDRESSED: Final = "not addressed to the bot"
TO_OTHERS: Final = "said to somebody else"
OWN: Final = "our own message"
NO_AUTHOR: Final = "a message without an author"
NOTICE: Final = "a notice about the conversation, not talk"
STARTER: Final = "the first message of a thread, shown there again"
HIDDEN: Final = "another program's message for one person's eyes"
NOTHING: Final = "nothing in it that we read"
NO_CONTENT: Final = "without content: Discord withholds it without the message content intent"
NOT_EDITED: Final = "changed, but not edited by a person"
SAME_TEXT: Final = "edited to the same text"

UNUSED_EVENT: Final = "an event that we have no use for"
CLOSED: Final = "the conversation was closed or deleted"
NOT_BACK: Final = "a thread changed that was not closed"
SOMEBODY_ELSE: Final = "somebody else came or went"
WE_LEFT: Final = "we are no longer in that guild"
OUTAGE: Final = "a guild cannot be reached for a while"

PING: Final = "a check of our address"
ELSEWHERE: Final = "for another application"
NOT_THERE: Final = "used where the bot itself is not"
OTHER_COMMAND: Final = "a command that is none of ours"
OTHER_MODAL: Final = "a modal that is none of ours"
NOT_A_PRESS: Final = "an input: it counts with a button"
NOTHING_CHOSEN: Final = "a select in which nothing of ours is chosen"
SAME_CHOICE: Final = "a select that is chosen as it was drawn"

# ---- types of channels

TEXT, DIRECT, GROUP, CATEGORY, ANNOUNCEMENTS = 0, 1, 3, 4, 5
_FORUMS: Final = frozenset({15, 16})
_THREADS: Final = frozenset({10, 11, 12})
_OPEN_THREADS: Final = frozenset({TEXT, ANNOUNCEMENTS})  # where a message can begin a thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """The bot. `roles`: the ids of the roles that Discord manages for it, in all guilds."""

    user: str
    application: str = ""
    roles: frozenset[str] = frozenset()

    @property
    def called(self) -> frozenset[str]:
        """The ids whose mention calls the bot."""
        return self.roles | {self.user}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelInfo:
    """What is known of a channel or thread. `kind`: the number of its type. `parent`: of a thread its
    channel or forum. `closed`: a thread that is archived or locked."""

    kind: int
    guild: str = ""
    parent: str = ""
    name: str = ""
    closed: bool = False

    @property
    def is_thread(self) -> bool:
        return self.kind in _THREADS


Parents = Callable[[str], ChannelInfo | None]  # by the id of a channel or thread, as it was before


class Place(NamedTuple):
    """Where something happened. `here`: the id of the channel or thread itself."""

    here: str
    guild: str
    channel: str
    thread: str
    kind: int  # of the channel, not of the thread

    @property
    def private(self) -> bool:
        """A conversation with one person."""
        return self.guild == "" and self.kind != GROUP

    @property
    def can_open(self) -> bool:
        """Whether a message there can begin a thread."""
        return not self.private and not self.thread and self.kind in _OPEN_THREADS

    @property
    def is_post(self) -> bool:
        return bool(self.thread) and self.kind in _FORUMS

    @property
    def key(self) -> ThreadKey:
        return refs.thread_key(self.guild, self.channel, self.thread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All that reading a payload depends on beside itself. `before`: the content of a message by its id,
    as it was last known, or None."""

    me: Me
    mention: Mention
    threads: bool
    parents: Parents
    before: Callable[[str], str | None]


# ---- what a payload means


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """How an interaction can be answered: at first within three seconds of `at` (Unix seconds), then for
    15 minutes. `message`: the message whose control was used, "" for none."""

    id: str
    token: str = field(repr=False)
    application: str = ""
    message: str = ""

    @property
    def at(self) -> float:
        return refs.time_of(self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """None of our business, and why. `kind`: the type of what came, for counting. `unknown`: a shape
    that we did not know; worth a look. An interaction is to be acknowledged all the same."""

    reason: str
    kind: str = ""
    unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceWanted:
    """Said in a channel of which nothing is known: fetch it, then read the payload again."""

    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """Several messages of one conversation were taken away at once."""

    changes: tuple[InboundChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Toggled:
    """A select for several options was changed: a press for each option that is now other than drawn."""

    presses: tuple[InboundPress, ...]
    handle: Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class FormWanted:
    """A button was pressed whose press counts only with the fields filled in; page `page` (from 0) of
    them is wanted. `press.message_ref` is the card, whichever message the button was on."""

    press: InboundPress
    handle: Handle
    page: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FormSent:
    """A page of a form was submitted. `fields`: custom id -> what is typed or chosen there, as text;
    untrusted. `data`: the interaction's own. `press.values` is still to be filled."""

    press: InboundPress
    handle: Handle
    page: int = 0
    fields: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardWanted:
    """Another page of a card was asked for; nothing is decided by it. `press.data` names the card."""

    press: InboundPress
    handle: Handle
    page: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandGiven:
    """A command. `kind`: "ask" and "about" (the message menu) speak to the agent for all to see, "other"
    is answered to its author alone. `message`: what it amounts to; where `opens_thread`, its thread is
    still to be that of the response. `options`: what was filled in beside words and files, by name."""

    kind: Literal["ask", "about", "other"]
    name: str
    message: InboundMessage
    handle: Handle
    options: Mapping[str, str] = field(default_factory=dict)
    opens_thread: bool = False
    target: MessageRef | None = None  # of "about": the message asked about

    def in_thread(self, thread: str) -> ThreadKey:
        """Where it belongs once its thread has this id."""
        return refs.in_thread(self.message.thread, thread)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutocompleteWanted:
    """Somebody types in an option of a command. `options`: the others so far."""

    command: str
    option: str
    typed: str
    actor: Actor
    thread: ThreadKey
    handle: Handle
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleChanged:
    """What was looked up about the people of a guild may be wrong now: about one, or ("") about all."""

    guild: str
    user: str = ""


Parsed = (
    InboundMessage
    | InboundPress
    | InboundChange
    | Deleted
    | Toggled
    | FormWanted
    | FormSent
    | CardWanted
    | CommandGiven
    | AutocompleteWanted
    | PeopleChanged
    | PlaceWanted
    | Ignored
)

# ---- who and where

_GUEST: Final = 1 << 4  # of a member's flags


def actor_of(user: str) -> Actor:
    """A person: ids of users are the same in all guilds."""
    return Actor(refs.CHANNEL, "", user)


def name_of(user: Node, member: Node) -> str:
    """What others see as a person's name."""
    return member.text("nick") or user.text("global_name") or user.text("username")


def is_guest(member: Node) -> bool:
    """Whether somebody was invited to one voice channel only."""
    return member.has_flag(_GUEST)


def channel_info(channel: Node) -> ChannelInfo | None:
    """A channel or thread as Discord describes it, None for what is none."""
    kind = channel.number("type")
    if kind is None or not channel.id("id"):
        return None
    is_thread = kind in _THREADS
    state = channel.at("thread_metadata")
    return ChannelInfo(
        kind=kind,
        guild=channel.id("guild_id"),
        parent=channel.id("parent_id") if is_thread else "",
        name=channel.text("name"),
        closed=is_thread and (state.flag("archived") or state.flag("locked")),
    )


def place_in(channel: str, guild: str, info: ChannelInfo | None, parents: Parents) -> Place | None:
    """The place with this id; None when what must be known of it is not. guild: "" when the payload
    names none, which it does not only in direct messages."""
    if info is None:
        return None if guild else Place(channel, "", channel, "", DIRECT)
    guild = guild or info.guild
    if not info.is_thread:
        return Place(channel, guild, channel, "", info.kind)
    if not info.parent:
        return None
    parent = parents(info.parent)
    return Place(channel, guild, info.parent, channel, TEXT if parent is None else parent.kind)
