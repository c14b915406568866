"""The channel contract: what a chat platform is to the gateway, and nothing more.

A channel speaks of messages and presses. It turns what the platform sends into `InboundMessage`
and `InboundPress`, hands them to the `Inbound` it was started with, and draws `OutboundMessage`
and `Card` values. It never reads command text to find an approval, never decides who may click,
and imports nothing from the gateway.

Promises of every channel, checked by tests/contracts/channel.py:

- A handler builds the inbound value, awaits `Inbound.message` or `Inbound.press` (which return as
  soon as the value is stored) and only then acknowledges to the platform. If the call raises,
  the platform is not acknowledged, so that it delivers again. A handler never awaits a turn.
- Identity is the message's own (`message_id`), never the transport's event or retry number.
- `send` and `show` return a `MessageRef` that `edit` and `redraw` accept after any restart.
- `send` sends exactly one platform message; `parts` cuts a long one first, so that a crash
  between two parts repeats none of those already sent.
- Model text can neither page anyone nor draw buttons. Card arguments are inert text.
- The channel's own messages never come back as inbound.
- Failures are the errors below, never the SDK's own; none carries a token.

ChannelError
├── ChannelBusy       flood limit: `retry_after` seconds
├── ChannelDown       network or platform trouble: try again later
├── TargetGone        blocked, kicked, deleted, no rights: trying again is useless
│                     (`moved_to` when the conversation has a new id)
├── MessageGone       the message to edit no longer exists
└── PayloadRefused    the platform refuses this content for good
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, NewType, Protocol

MessageRef = NewType("MessageRef", str)  # one platform message, in the channel's own packing


class ThreadKey(NamedTuple):
    """Where people talk. All strings; `thread` is empty where the platform has no threads."""

    channel: str
    workspace: str
    conversation: str
    thread: str


class Actor(NamedTuple):
    """Who did something, by the platform's stable id, never by a display name."""

    channel: str
    workspace: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that came with a message, not yet fetched. `file_id` is the platform's handle."""

    file_id: str
    name: str
    media_type: str
    size: int  # bytes; 0 when the platform does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundMessage:
    """One message of a person, in clean text (Markdown), mentions of the bot removed.

    `addressed`: the bot was spoken to (a private chat, a mention, a reply to it, a command).
    `ongoing`: it counts without that where a session lives already, as in the thread of one.
    `author` is a display name for the model's eyes only. `from_bot`: another program wrote it.
    `guest`: no full member of the workspace: a guest, or somebody of another organisation.
    `guest_unsure`: the platform did not tell in time, and counts as a guest who may be none.
    `mentioned`: the bot was called by name, and `text` is all that was said to it.
    `hidden`: said to the bot alone in a public place (a native command): its answer is for its
    author's eyes only. `agent`: the one that was asked for by name, where a conversation begins.
    """

    thread: ThreadKey
    message_id: str
    actor: Actor
    text: str
    sent_at: float  # Unix seconds
    addressed: bool = True
    ongoing: bool = False
    private: bool = False
    author: str = ""
    from_bot: bool = False
    guest: bool = False
    guest_unsure: bool = False
    mentioned: bool = False
    hidden: bool = False
    edited: bool = False
    agent: str = ""
    quote: str = ""
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundPress:
    """One press of a button, one choice in a select, or one submitted form.

    `data` is what the control carries (`v1:<pending id>:<choice>`), untrusted. `message_ref` is
    the message that was pressed. `values` are the fields of a submitted form; of a question where
    several options are chosen in one control, `chosen` has the data of them all. `action_id` is the
    press's own identity and also the handle that `Channel.notify_actor` answers. `listed`: pressed
    in a list that the platform shows to this person alone, made from `Inbound.waiting`.
    """

    thread: ThreadKey
    action_id: str
    actor: Actor
    data: str
    message_ref: MessageRef | None
    sent_at: float
    values: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    author: str = ""
    listed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundChange:
    """What became of a conversation, as the platform tells it.

    `moved`: it has another key from now on, `moved_to`. `back`: it takes messages from us again
    after it did not (unblocked, invited again). `deleted`: its author took `message_id` away.
    """

    thread: ThreadKey
    kind: Literal["moved", "back", "deleted"]
    moved_to: ThreadKey | None = None
    message_id: str = ""


class Inbound(Protocol):
    """Where a channel hands over what came in, and asks what is stored about a card.

    `message`, `press` and `change` return once the value is durable. Any error that they raise
    means "not stored": do not acknowledge. The others decide nothing and are quick.
    """

    async def message(self, message: InboundMessage) -> None: ...

    async def press(self, press: InboundPress) -> None: ...

    async def change(self, change: InboundChange) -> None: ...

    async def form(self, press: InboundPress) -> Form | str:
        """The form that a press opens, as the card stands now; or, in words for the person who
        pressed, why it opens none."""

    async def faults(self, press: InboundPress) -> Mapping[str, str]:
        """What is wrong with a submitted form, by field ("" for the whole of it). Empty: hand it
        over with `press`."""

    async def card(self, press: InboundPress) -> Card | str:
        """The open card that was pressed, as it stands now; or, in words, why there is none."""

    async def seen(self, channel: str) -> Sequence[tuple[ThreadKey, str]]:
        """For each conversation of the channel (`thread` empty) the newest numeric message id that
        was ever handed over, so that what came meanwhile can be asked for after an absence."""

    async def waiting(self, actor: Actor) -> Sequence[Card]:
        """The open cards that this person may decide, oldest first, bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundFile:
    """A file to send. `path` is below an allowed root; the gateway has checked that."""

    path: Path
    name: str
    media_type: str = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundMessage:
    """Words for people, in Markdown. `kind` lets a channel choose its dress.

    `mentions`: people whom the gateway itself wants to reach, and `mention_roles` roles and groups, by
    the platform's ids: the only live mentions there are, as many as the platform and a message hold.
    `repeat`: this may already have been sent (the process died while sending). `only`: it is for
    this person's eyes only, where the platform can do that.
    """

    text: str
    kind: Literal["answer", "notice", "error"] = "answer"
    files: tuple[OutboundFile, ...] = ()
    mentions: tuple[Actor, ...] = ()
    mention_roles: tuple[str, ...] = ()
    repeat: bool = False
    reply_to: str = ""  # message_id of the message that this answers, "" for none
    only: Actor | None = None


Tone = Literal["primary", "danger", "plain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """One press: `data` fits 64 bytes on every platform (checked by `pack_press`). `harmless`: it can let
    nothing run, so that it is offered even where not all of the card can be read."""

    label: str
    data: str
    tone: Tone = "plain"
    harmless: bool = False


FieldKind = Literal["text", "long_text", "integer", "number", "boolean", "date", "select", "multi", "json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One typed input of a form (Edit, feedback, Other...). `select` and `multi` offer `options`; a
    `multi` comes back as a tuple of them (its `value`: those chosen before, one per line), a `date` as
    YYYY-MM-DD, a `boolean` as true or false."""

    name: str
    label: str
    kind: FieldKind = "text"
    value: str = ""
    required: bool = False
    options: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a button opens before the press counts: the fields, submitted together.

    A channel without forms asks for the same values in its own way (Telegram: ForceReply).
    """

    data: str  # the press that the submitted form becomes
    title: str
    fields: tuple[FormField, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One option of a question."""

    label: str
    data: str
    description: str = ""
    chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CardField:
    """One argument of a call: inert text. `secret` values arrive masked already."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """An interactive message, described without any platform's words.

    An open card has controls; a settled one (`state` other than open) has none and says in
    `status` what happened, who did it and when. Every character of `fields` can be read before
    Approve is live; a channel that cannot deliver them all leaves the Approve button out. `calls`:
    several requests on one card, each with its own controls and its own state; the card's own
    buttons are about all of them, and it has no fields itself. `once`: the same for every attempt to
    show this copy, and for no other (at most 24 letters and digits). With `repeat` a channel that can
    find what an earlier attempt has posted brings that up to date, and posts no second one.
    """

    card_id: str
    kind: Literal["approval", "question"]
    state: Literal["open", "decided", "expired", "superseded"]
    title: str
    summary: str = ""
    fields: tuple[CardField, ...] = ()
    args_hash: str = ""  # SHA-256 of tool and arguments, hex
    deciders: str = ""  # who may decide, in words
    expires: str = ""  # until when, in words
    code: str = ""  # the short code for /approve and /deny
    preview: str = ""  # what the tool's author shows beside the arguments: inert text
    preview_kind: Literal["text", "diff"] = "text"
    asks: tuple[Actor, ...] = ()  # people of this platform whose yes is wanted: mentioned when it is shown
    ask_roles: tuple[str, ...] = ()  # the same for roles and groups, by the platform's ids
    buttons: tuple[Button, ...] = ()
    choices: tuple[Choice, ...] = ()
    multi: bool = False
    forms: tuple[Form, ...] = ()
    status: str = ""
    calls: tuple[Card, ...] = ()
    repeat: bool = False
    once: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What the turn is doing now. Best effort: losing one is no loss.

    `thinking`: the model works; `tool`: `text` names the tool; `text`: the answer so far, in
    Markdown, growing; `idle`: the turn is over, take the sign of life away. `noted`: the message
    with the id `text` was taken in and waits its turn. `actor`: whom the turn answers.
    """

    kind: Literal["thinking", "tool", "text", "idle", "noted"]
    text: str = ""
    actor: Actor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a channel can do, declared instead of probed."""

    edits: bool = True
    forms: bool = False
    private_notices: bool = True
    streaming: bool = False
    files_out: bool = True
    markdown_tables: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The platform's limits, in its own unit."""

    text: int
    unit: Literal["utf16", "codepoint", "byte"]
    button_bytes: int = 64
    buttons: int = 100
    button_label: int = 75
    notice: int = 200
    file_in: int = 20_000_000  # bytes
    file_out: int = 50_000_000  # bytes


class ChannelError(Exception):
    """Base of a channel's failures."""


class ChannelBusy(ChannelError):
    """The platform asks to wait `retry_after` seconds."""

    def __init__(self, channel: str, retry_after: float) -> None:
        self.channel, self.retry_after = channel, retry_after
        super().__init__(f"{channel} asks to wait {retry_after:g} s")


class ChannelDown(ChannelError):
    """The platform cannot be reached or is in trouble. `unsure`: only its answer was lost, so what
    was asked for may have been done."""

    def __init__(self, reason: str = "", *, unsure: bool = False) -> None:
        self.unsure = unsure
        super().__init__(reason)


class TargetGone(ChannelError):
    """The conversation takes no messages from us any more."""

    def __init__(self, reason: str, moved_to: ThreadKey | None = None) -> None:
        self.reason, self.moved_to = reason, moved_to
        super().__init__(reason)


class MessageGone(ChannelError):
    """The message to change no longer exists or can no longer be changed."""


class PayloadRefused(ChannelError):
    """The platform refuses this content and will refuse it again."""


class Channel(Protocol):
    """One platform. See the module's docstring for the promises."""

    name: str
    abilities: Abilities
    limits: Limits

    async def start(self, inbound: Inbound) -> None:
        """Begin to receive. Returns once the channel is up or, when the platform is down, once it
        keeps trying in the background. Raises ChannelError only for what the owner must mend."""

    async def stop(self) -> None:
        """Stop receiving, let calls in flight end, close every connection."""

    def parts(self, message: OutboundMessage) -> Sequence[OutboundMessage]:
        """Cut one message into those that fit one platform message each. Pure; never empty."""

    async def send(self, target: ThreadKey, message: OutboundMessage) -> MessageRef:
        """Post one part."""

    def below(self, target: ThreadKey, ref: MessageRef) -> ThreadKey:
        """Where people answer to a message that was posted to `target`: the thread that it begins, where
        the platform has threads, else `target` itself. Pure."""

    async def edit(self, ref: MessageRef, message: OutboundMessage) -> None:
        """Replace a message's content. Editing to the same content is not an error."""

    async def show(self, target: ThreadKey, card: Card) -> MessageRef:
        """Post a card; the reference is that of the message with the controls."""

    async def redraw(self, ref: MessageRef, card: Card) -> None:
        """Bring a posted card up to date. Redrawing to the same content is not an error."""

    async def notify_actor(self, press: InboundPress, text: str) -> None:
        """Tell the person who pressed, and nobody else, what came of it. Never raises for an
        answer that came too late; `text` may be empty (a bare acknowledgement)."""

    async def progress(self, target: ThreadKey, state: Progress) -> None:
        """Show a sign of life. Swallows nothing silently but never fails a turn: raises
        ChannelError at most, which the caller counts and drops."""

    async def fetch_file(self, attachment: Attachment, into: Path, limit: int) -> None:
        """Stream a file to the new path `into`. Raises PayloadRefused above `limit` bytes."""

    async def roles(self, actor: Actor, thread: ThreadKey) -> frozenset[str]:
        """The platform's own ids of groups or roles that the actor has there, bounded and cached."""

    async def private(self, actor: Actor) -> ThreadKey | None:
        """The thread in which this person alone is written to; None where there is none (yet)."""

    async def earlier(self, thread: ThreadKey, before: str, limit: int) -> Sequence[InboundMessage]:
        """At most `limit` messages of the thread that people wrote before the message with the id
        `before`, oldest first; none where the platform does not tell."""


def pack_press(card_id: str, choice: str) -> str:
    """Button data: `v1:<card id>:<choice>`. Raises ValueError above 64 bytes, Telegram's limit."""
    data = f"v1:{card_id}:{choice}"
    if len(data.encode()) > 64:
        raise ValueError(f"button data is {len(data.encode())} bytes, 64 are allowed: {data!r}")
    if ":" in card_id:
        raise ValueError(f"a card id may not hold a colon: {card_id!r}")
    return data


def unpack_press(data: str) -> tuple[str, str] | None:
    """(card id, choice), or None for anything that we did not make."""
    version, _, rest = data.partition(":")
    card_id, colon, choice = rest.partition(":")
    if version != "v1" or not card_id or not colon or not choice:
        return None
    return card_id, choice
