"""The channels' way in: translates, stores, answers presses, and says what is stored about cards."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from channels.base import Actor as ChannelActor
from channels.base import (
    Card,
    Channel,
    ChannelError,
    Form,
    InboundChange,
    InboundMessage,
    InboundPress,
    MessageRef,
)
from channels.base import ThreadKey as ChannelKey
from gateway.app.places import Places
from gateway.approvals import CLOSED_OUTCOME, Resolution
from gateway.bridge import (
    CANCEL,
    GIVE,
    WHO_FIELD,
    Said,
    actor_in,
    actor_out,
    card,
    form_of,
    key_in,
    key_out,
    listed_card,
    said,
    with_earlier,
)
from gateway.bridge_presses import managed, pressed_card, read_press, wants_all, wants_to_see
from gateway.bridge_questions import Bad, Draft, Picked, Toggle, text_of
from gateway.clock import Clock
from gateway.intake import Intake
from gateway.log import redact
from gateway.messages import Actor, Json, ThreadKey
from gateway.notices import SHOWN, SHOWN_ALREADY, WRITE_TO_ME, all_text, click_text
from gateway.questions import answer_problems, given_problems
from gateway.requests import Requests, Who
from gateway.resolutions import Click, ClickResult, Resolutions
from gateway.store.base import Store
from gateway.store.rows import CardCopy, Delivery, Outgoing, PendingRecord, Press, TakenPress

EARLIER_SECONDS = 1.0  # the platform waits 3 s for its acknowledgement
_log = logging.getLogger(__name__)


class GatewayInbound:
    """See channels.base.Inbound."""

    def __init__(self, intake: Intake, places: Places, cards: CardPresses, store: Store) -> None:
        self._intake, self._places, self._cards, self._store = intake, places, cards, store

    async def message(self, message: InboundMessage) -> None:
        """Store a message. Raises StoreError."""
        await self._intake.message(said(message))

    async def press(self, press: InboundPress) -> None:
        """Store a press. Raises StoreError."""
        await self._intake.press(
            Press(
                key=key_in(press.thread),
                action_id=press.action_id,
                actor=actor_in(press.actor),
                body=_body(press),
                received_at=press.sent_at,
            )
        )

    async def change(self, change: InboundChange) -> None:
        """Have what we store follow what became of a conversation. Raises StoreError."""
        if change.kind == "moved" and change.moved_to is not None:
            await self._places.moved(key_in(change.thread), key_in(change.moved_to))
        elif change.kind == "back":
            await self._places.back(key_in(change.thread))
        elif change.kind == "deleted":
            await self._intake.withdrawn(key_in(change.thread), change.message_id)

    async def form(self, press: InboundPress) -> Form | str:
        """See channels.base.Inbound. Raises StoreError."""
        return await self._cards.form(press)

    async def faults(self, press: InboundPress) -> Mapping[str, str]:
        """See channels.base.Inbound. Raises StoreError."""
        return await self._cards.faults(press)

    async def card(self, press: InboundPress) -> Card | str:
        """See channels.base.Inbound. Raises StoreError."""
        return await self._cards.card(press)

    async def waiting(self, actor: ChannelActor) -> Sequence[Card]:
        """See channels.base.Inbound. Raises StoreError."""
        return await self._cards.waiting(actor)

    async def seen(self, channel: str) -> Sequence[tuple[ChannelKey, str]]:
        """See channels.base.Inbound. Raises StoreError."""
        return [(key_out(key), newest) for key, newest in await self._store.seen(channel)]


def _body(press: InboundPress) -> Json:
    return {
        "data": press.data,
        "ref": press.message_ref,
        "values": {k: v if isinstance(v, str) else list(v) for k, v in press.values.items()},
        "author": press.author,
        "listed": press.listed,
        "sent_at": press.sent_at,
    }


def _restored(press: Press) -> InboundPress:
    body = press.body
    return InboundPress(
        thread=key_out(press.key),
        action_id=press.action_id,
        actor=ChannelActor(*press.actor),
        data=body["data"],
        message_ref=MessageRef(body["ref"]) if body["ref"] else None,
        sent_at=body["sent_at"],
        values={k: v if isinstance(v, str) else tuple(v) for k, v in body["values"].items()},
        author=body["author"],
        listed=body.get("listed", False),
    )


class CardPresses:
    """Carries out stored presses of cards. See gateway.intake.Presses."""

    def __init__(
        self,
        store: Store,
        resolutions: Resolutions,
        channels: Mapping[str, Channel],
        clock: Clock,
        on_deliveries: Callable[[Sequence[Delivery]], None],
        requests: Requests,
    ) -> None:
        self._store, self._resolutions, self._channels = store, resolutions, channels
        self._requests = requests
        self._clock, self._on_deliveries = clock, on_deliveries

    def card_of(self, press: Press) -> str:
        """The id of the pressed card; empty for data that nobody here made."""
        return pressed_card(_restored(press)) or ""

    async def carry_out(self, press: Press, taken: TakenPress | None) -> None:
        """Decide, and tell the person who pressed what came of it."""
        pressed = _restored(press)
        channel = self._channels.get(press.key.channel)
        if channel is None:
            return
        text = await self._decided(pressed, taken)
        try:
            await channel.notify_actor(pressed, text)
        except ChannelError as error:  # what was decided stands, and the card will show it
            _log.warning("an answer to a press was lost: %s", redact(str(error)))

    async def _decided(self, press: InboundPress, taken: TakenPress | None) -> str:
        pending_id = pressed_card(press)
        if taken is not None:
            record = taken.record
        else:
            record = await self._store.pending(pending_id) if pending_id else None
        copies = taken.copies if taken is not None else None
        if record is not None and (wish := managed(press)) and await self._offers_more(press, record, copies):
            return await self._manage(press, record, wish, copies)
        if record is not None and wants_to_see(press):
            return await self._show_privately(press)
        if record is not None and (word := wants_all(press)) is not None:
            return await self._all_decided(press, word, record.pending.card_id)
        meaning = read_press(press, record) if record is not None else Bad(text="")
        click = await self._click(press, record, meaning, copies)
        if isinstance(meaning, Toggle):
            return await self._told(press, await self._resolutions.toggle(click, meaning.value, taken))
        if isinstance(meaning, Picked):
            return await self._told(press, await self._resolutions.pick(click, meaning.values, taken))
        if isinstance(meaning, Draft):
            result = await self._resolutions.draft(click, meaning.values, meaning.emptied, taken)
            return await self._told(press, result)
        return await self._told(press, await self._resolutions.decide(click, taken))

    async def _told(self, press: InboundPress, result: ClickResult) -> str:
        """What came of it, in words. What is closed was pressed on an old screen, which is drawn anew."""
        if result.record is not None and result.outcome in CLOSED_OUTCOME.values():
            await self._repaint(press, result.record)
        return result.text

    async def _offers_more(
        self, press: InboundPress, record: PendingRecord, copies: Sequence[CardCopy] | None = None
    ) -> bool:
        """Whether more than a decision was offered where somebody pressed."""
        if copies is None:
            copies = await self._store.card_copies(record.id)
        ref = press.message_ref
        return press.listed or any(c.dress.get("managed") and (ref in c.refs or c.unsure) for c in copies)

    async def _manage(
        self, press: InboundPress, record: PendingRecord, wish: str, copies: Sequence[CardCopy] | None
    ) -> str:
        """Post a request again, take it back, have somebody else decide it: from somebody's list, or a card
        that was asked for."""
        actor = actor_in(press.actor)
        key, ref = None if press.listed else key_in(press.thread), press.message_ref
        if not await self._resolutions.belongs(key, ref, record, copies, actor=actor):
            return click_text("unknown", None)
        who = Who(actor=actor, name=press.author, via=_via(press), key=key)
        if wish == CANCEL:
            return await self._told(press, await self._requests.cancel(record.id, who))
        if wish == GIVE:
            who = replace(who, key=key_in(press.thread))  # ids are written as on this platform
            to = text_of(press, WHO_FIELD).strip()
            return await self._told(press, await self._requests.give(record.id, who, to))
        return await self._told(press, await self._requests.show(record.id, who))

    async def _repaint(self, press: InboundPress, record: PendingRecord) -> None:
        """Draw a card once more, where it was pressed."""
        ref = press.message_ref
        copies = await self._store.card_copies(record.id)
        copy = next((copy for copy in copies if ref in copy.refs), None)
        if ref is None or copy is None or press.listed:
            return
        row = Outgoing(
            key=copy.key,
            kind="redraw",
            payload=copy.dress,
            pending_id=record.pending.card_id,
            ref=ref,
        )
        self._on_deliveries(await self._store.enqueue([row], self._clock.now()))

    async def _show_privately(self, press: InboundPress) -> str:
        """Send the whole card to the one who pressed, if that one may decide."""
        found, click = await self._looked_up(press)
        if isinstance(found, ClickResult):
            return await self._told(press, found)
        channel = self._channels[press.thread.channel]
        place = await channel.private(press.actor)
        if place is None:
            return WRITE_TO_ME
        key = key_in(place)
        copies = await self._store.card_copies(found.id)
        if any(copy.reveals(found.id) and copy.key == key for copy in copies):
            return SHOWN_ALREADY
        card = await self._store.pendings(card=found.pending.card_id, open_only=False)
        decide = self._resolutions.may_decide
        own = [one.id for one in card if decide(click.actor, click.roles, one)]
        row = Outgoing(
            key=key,
            kind="card",
            payload={"revealed": True if len(own) == len(card) else own},
            session_id=found.session_id,
            pending_id=found.pending.card_id,
        )
        await self._viewed(click, found, "card")
        self._on_deliveries(await self._store.enqueue([row], self._clock.now()))
        return SHOWN

    async def _viewed(self, click: Click, record: PendingRecord, what: str) -> None:
        """Who has opened the whole request, or a form of it, is on record."""
        body: Json = {"tool": record.pending.tool, "what": what, "via": click.via}
        await self._store.audit(
            "viewed",
            str(click.actor),
            body,
            self._clock.now(),
            session_id=record.session_id,
            pending_id=record.id,
        )

    async def _all_decided(self, press: InboundPress, word: Resolution, card_id: str) -> str:
        """The same word about every call of a card that is still open, in their order. Carried out again
        after a crash it goes on with what is left."""
        records = await self._store.pendings(card=card_id, open_only=False)
        waiting = [record for record in records if record.state == "open"] or records[-1:]
        results = []
        for place, record in enumerate(waiting, 1):
            click = await self._click(press, record, word)
            click = replace(click, pending_id=record.id, last=place == len(waiting))
            results.append(await self._resolutions.decide(click))
        await self._told(press, results[0])
        return all_text([(result.outcome, result.text) for result in results])

    async def _click(
        self,
        press: InboundPress,
        record: PendingRecord | None,
        meaning: Resolution | Toggle | Picked | Draft | Bad,
        copies: Sequence[CardCopy] | None = None,
    ) -> Click:
        roles = frozenset[str]()
        if record is not None:
            roles = await self._resolutions.standing(actor_in(press.actor), record, copies)
        return Click(
            pending_id=pressed_card(press) or "",
            resolution=None if isinstance(meaning, Bad | Toggle | Picked | Draft) else meaning,
            trouble=meaning.text if isinstance(meaning, Bad) else "",
            actor=actor_in(press.actor),
            name=press.author,
            roles=roles,
            key=None if press.listed else key_in(press.thread),
            ref=press.message_ref,
            via=_via(press),
        )

    # ---- what a channel may ask

    async def _looked_up(self, press: InboundPress) -> tuple[PendingRecord | ClickResult, Click]:
        record = await self._store.pending(pressed_card(press) or "")
        click = await self._click(press, record, Bad(text=""))
        return await self._resolutions.look(click), click

    async def form(self, press: InboundPress) -> Form | str:
        """The form that a press opens, or why it opens none. Raises StoreError."""
        found, click = await self._looked_up(press)
        if isinstance(found, ClickResult):
            return await self._told(press, found)
        offered = not managed(press) or await self._offers_more(press, found)
        form = form_of(found, press) if offered else None
        if form is None:
            return "This button does nothing here."
        await self._viewed(click, found, "form")
        return form

    async def card(self, press: InboundPress) -> Card | str:
        """The open card of a press, or why there is none. Raises StoreError."""
        found, click = await self._looked_up(press)
        if isinstance(found, ClickResult):
            return await self._told(press, found)
        await self._viewed(click, found, "card")
        return card(found, revealed=True)

    async def faults(self, press: InboundPress) -> Mapping[str, str]:
        """What is wrong with a submitted form. Nothing, where the press itself will get its answer."""
        found, click = await self._looked_up(press)
        if isinstance(found, ClickResult):
            return {}
        if managed(press) == GIVE and await self._offers_more(press, found):
            fault = self._requests.fault(found, text_of(press, WHO_FIELD).strip(), press.thread.channel)
            return {WHO_FIELD: fault} if fault else {}
        wrong = self._wrong(press, click, found)
        if wrong:
            await self._resolutions.note_invalid(click, found)
        return wrong

    def _wrong(self, press: InboundPress, click: Click, found: PendingRecord) -> Mapping[str, str]:
        meaning = read_press(press, found)
        match meaning:
            case Toggle():
                return {}
            case Draft(values=values):
                question = found.pending.question
                return {} if question is None else dict(given_problems(question, values))
            case Picked(values=values):
                question = found.pending.question
                return {} if question is None else dict(answer_problems(question, values))
            case Bad(text=text, field=field):
                return {field: text.removeprefix(f"{field}: ") if field else text}
            case _:
                problems = self._resolutions.problems(replace(click, resolution=meaning), found)
                return _at_fields(problems, press.values)

    async def waiting(self, actor: ChannelActor) -> Sequence[Card]:
        """The open cards that this person may decide. Raises StoreError."""
        theirs: dict[str, set[str]] = {}
        for record in await self._resolutions.waiting(actor_in(actor)):
            theirs.setdefault(record.pending.card_id, set()).add(record.id)
        now = self._clock.now()
        return [
            listed_card(await self._store.pendings(card=card_id, open_only=False), own, now)
            for card_id, own in theirs.items()
        ]


def _via(press: InboundPress) -> str:
    where = "list" if press.listed else f"message {press.message_ref}"
    return f"{press.thread.channel} {where}"


def _at_fields(problems: Iterable[tuple[str, str]], fields: Iterable[str]) -> Mapping[str, str]:
    """The same by the fields of a form: what is wrong inside a value is told where the value is typed."""
    told: dict[str, list[str]] = {}
    for name, text in problems:
        field = max((one for one in fields if f"{name}.".startswith(f"{one}.")), key=len, default=name)
        inside = name.removeprefix(field).removeprefix(".")
        told.setdefault(field, []).append(f"{inside}: {text}" if inside else text)
    return {field: "; ".join(texts) for field, texts in told.items()}


class Earlier:
    """What was written in a thread before the agent was called into it. `limits`: how many messages
    are read, by channel; none where it is missing."""

    def __init__(self, channels: Mapping[str, Channel], limits: Mapping[str, int]) -> None:
        self._channels, self._limits = channels, limits

    async def __call__(self, message: Said) -> Said:
        """The message with its context; without, when the platform does not tell in EARLIER_SECONDS."""
        channel, limit = self._channels.get(message.key.channel), self._limits.get(message.key.channel, 0)
        if channel is None or not limit:
            return message
        try:
            async with asyncio.timeout(EARLIER_SECONDS):
                earlier = await channel.earlier(key_out(message.key), message.message_id, limit)
        except (ChannelError, TimeoutError) as error:
            _log.warning(
                "the earlier messages of a thread are not known: %s", redact(str(error)) or "too slow"
            )
            return message
        return with_earlier(message, earlier)


class ChannelRoles:
    """A person's roles in a thread, as the platform knows them; none when it does not tell: only
    people who are named decide then."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels

    async def __call__(self, actor: Actor, key: ThreadKey) -> frozenset[str]:
        channel = self._channels.get(key.channel)
        if channel is None:
            return frozenset()
        try:
            return await channel.roles(actor_out(actor), key_out(key))
        except ChannelError as error:
            _log.warning("roles on %s are not known: %s", key.channel, redact(str(error)))
            return frozenset()


class PrivatePlaces:
    """Where somebody alone is written to, as the platform knows it; nowhere when it does not tell."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels

    async def __call__(self, actor: Actor) -> ThreadKey | None:
        channel = self._channels.get(actor.channel)
        if channel is None:
            return None
        try:
            place = await channel.private(actor_out(actor))
        except ChannelError as error:
            _log.warning("no private place on %s: %s", actor.channel, redact(str(error)))
            return None
        return None if place is None else key_in(place)
