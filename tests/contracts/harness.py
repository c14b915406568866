"""What the channel contract needs of a platform: a harness, an inbox, and cards to show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeVar

from channels.base import (
    Actor,
    Button,
    Card,
    CardField,
    Channel,
    Form,
    InboundChange,
    InboundMessage,
    InboundPress,
    MessageRef,
    ThreadKey,
    unpack_press,
)

T = TypeVar("T")
Trouble = Literal["busy", "down", "gone"]
RETRY_AFTER = 7.0  # seconds that a busy platform asks for
PERSONAL = "a person's key"


class Inbox:
    """What the gateway would have stored. `refuse` makes the next hand-overs fail. `cards`: what a
    channel is told when it asks for forms and for what waits; `wrong`: what it is told about fields."""

    def __init__(self) -> None:
        self.cards: list[Card] = []
        self.wrong: dict[str, str] = {}
        self.messages: list[InboundMessage] = []
        self.presses: list[InboundPress] = []
        self.changes: list[InboundChange] = []
        self.attempts = 0
        self._refusals = self._silences = 0
        self._watchers: set[asyncio.Future[None]] = set()

    def refuse(self, times: int) -> None:
        self._refusals += times

    def refuse_questions(self, times: int) -> None:
        """The next questions about forms get no answer."""
        self._silences += times

    async def message(self, message: InboundMessage) -> None:
        self._attempt()
        self.messages.append(message)

    async def press(self, press: InboundPress) -> None:
        self._attempt()
        self.presses.append(press)

    async def change(self, change: InboundChange) -> None:
        self._attempt()
        self.changes.append(change)

    async def form(self, press: InboundPress) -> Form | str:
        if self._silences:
            self._silences -= 1
            raise OSError("the store tells nothing now")
        forms = [form for card in self.cards for form in card.forms if form.data == press.data]
        return forms[0] if forms else "There is no such form."

    async def card(self, press: InboundPress) -> Card | str:
        unpacked = unpack_press(press.data)
        cards = [card for card in self.cards if unpacked and card.card_id == unpacked[0]]
        return cards[0] if cards else "There is no such card."

    async def seen(self, channel: str) -> Sequence[tuple[ThreadKey, str]]:
        newest: dict[ThreadKey, str] = {}
        for message in self.messages:
            place = message.thread._replace(thread="")
            newest[place] = max(newest.get(place, "0"), message.message_id, key=int)
        return list(newest.items())

    async def faults(self, press: InboundPress) -> Mapping[str, str]:
        return self.wrong

    async def waiting(self, actor: Actor) -> Sequence[Card]:
        return [card for card in self.cards if card.state == "open"]

    async def wait_for(self, check: Callable[[], T], within: float = 30.0) -> T:
        """Wait until `check` is true; bounded. Returns what it gave."""
        async with asyncio.timeout(within):
            while not (value := check()):
                watcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._watchers.add(watcher)
                try:
                    await watcher
                finally:
                    self._watchers.discard(watcher)
        return value

    def _attempt(self) -> None:
        self.attempts += 1
        for watcher in self._watchers:
            if not watcher.done():
                watcher.set_result(None)
        if self._refusals:
            self._refusals -= 1
            raise OSError("the store takes nothing now")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One message as people see it. `files` are the contents of what is attached."""

    text: str
    buttons: tuple[str, ...] = ()
    files: tuple[bytes, ...] = ()


class ChannelHarness(Protocol):
    """One channel that is started, one person who has a private conversation with it."""

    channel: Channel
    inbox: Inbox
    thread: ThreadKey  # the private conversation
    person: Actor
    personal: ThreadKey  # names the person where else a conversation stands, as `notify` entries do
    role: str  # what a card in `thread` can ask beside people, as the platform names it; "" for nothing
    secret: str  # what no error may hold
    troubles: frozenset[Trouble]  # which kinds `trouble` can cause

    async def restart(self) -> None:
        """Stop the channel and start a new one that remembers nothing, on the same inbox."""

    async def say(self, text: str) -> Any:
        """The person writes; returns a handle for `redeliver`."""

    async def redeliver(self, handle: Any) -> None:
        """The platform delivers the same message again."""

    async def attach(self, content: bytes, name: str) -> None:
        """The person sends a file."""

    async def press(self, ref: MessageRef, label: str) -> None:
        """The person presses the button, or picks the option, with this label on this message."""

    async def press_call(self, ref: MessageRef, number: int, label: str) -> None:
        """The same for a button of the card's n-th call (from 1), which may stand in a section of its
        own or be labelled with the number (`2 Deny`)."""

    async def submit(self, form: Form, values: Mapping[str, str | tuple[str, ...]]) -> None:
        """The person fills in the form that a press has opened."""

    async def seen(self) -> list[Seen]:
        """What the channel has put into the conversation, oldest first."""

    async def look(self, ref: MessageRef) -> Seen:
        """One message as it is now."""

    async def notices(self) -> list[str]:
        """What the person was told for their eyes only, oldest first; "" is a bare acknowledgement."""

    async def paged(self) -> list[str]:
        """Whom messages of the channel have notified by a mention."""

    async def delete(self, ref: MessageRef) -> None:
        """The message vanishes from the platform."""

    async def trouble(self, kind: Trouble) -> None:
        """From now on: a flood limit of RETRY_AFTER seconds, no network, or the person has blocked us."""


def an_approval(**changes: Any) -> Card:
    """An open approval card as the gateway makes it."""
    card = Card(
        card_id="p_abcdefghijklmnopqrst",
        kind="approval",
        state="open",
        title="Approve issue_refund?",
        summary="The agent wants to pay money back.",
        fields=(CardField(name="order_id", value="A-1001"), CardField(name="amount", value="20")),
        args_hash="0" * 64,
        deciders="Ada",
        expires="tomorrow at noon",
        code="K7M2",
        buttons=(
            Button(label="Approve", data="v1:p_abcdefghijklmnopqrst:approve", tone="primary"),
            Button(label="Deny", data="v1:p_abcdefghijklmnopqrst:deny", tone="danger"),
        ),
    )
    return replace(card, **changes)


def a_shared_card(orders: Sequence[str]) -> Card:
    """An open card with one call for each order, as the gateway makes it."""
    calls = tuple(_call(number, order) for number, order in enumerate(orders, 1))
    card = Card(
        card_id=calls[0].card_id,
        kind="approval",
        state="open",
        title=f"Approve {len(calls)} calls?",
        deciders="Ada",
        calls=calls,
    )
    return _with_buttons_for_all(card)


def _call(number: int, order: str) -> Card:
    card_id = f"p_{number:020}"
    return an_approval(
        card_id=card_id,
        fields=(CardField(name="order_id", value=order), CardField(name="amount", value="20")),
        code=f"cd{number:03}",
        buttons=(
            Button(label="Approve", data=f"v1:{card_id}:a", tone="primary"),
            Button(label="Deny", data=f"v1:{card_id}:d", tone="danger"),
        ),
    )


def decide(card: Card, number: int, status: str) -> Card:
    """The shared card after the decision about its n-th call, counted from 1."""
    calls = tuple(settled(call, status) if n == number else call for n, call in enumerate(card.calls, 1))
    waiting = sum(call.state == "open" for call in calls)
    told = f"{len(calls) - waiting} of {len(calls)} decided"
    return _with_buttons_for_all(
        replace(card, calls=calls, status=told, state="open" if waiting else "decided")
    )


def _with_buttons_for_all(card: Card) -> Card:
    waiting = sum(call.state == "open" for call in card.calls)
    yes = Button(label=f"Approve all ({waiting})", data=f"v1:{card.card_id}:Y", tone="primary")
    no = Button(label=f"Deny all ({waiting})", data=f"v1:{card.card_id}:N", tone="danger")
    return replace(card, buttons=(yes, no) if waiting > 1 else ())


def settled(card: Card, status: str) -> Card:
    """The card after a decision."""
    return replace(card, state="decided", status=status, buttons=(), choices=(), forms=())


def in_order(whole: str, pieces: list[str]) -> bool:
    """Whether all pieces occur in the text, one after the other."""
    place = 0
    for piece in pieces:
        place = whole.find(piece, place)
        if place < 0:
            return False
        place += len(piece)
    return True
