"""The channels' way in: translates, stores, and answers presses."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from channels.base import Actor as ChannelActor
from channels.base import Channel, ChannelError, InboundChange, InboundMessage, InboundPress, MessageRef
from gateway.app.places import Places
from gateway.bridge import Bad, Toggle, actor_in, key_in, key_out, pressed_card, read_press, said
from gateway.intake import Intake
from gateway.log import redact
from gateway.messages import Actor, Json, ThreadKey
from gateway.resolutions import Click, Resolutions
from gateway.store.base import Store
from gateway.store.rows import Press, TakenPress

_log = logging.getLogger(__name__)


class GatewayInbound:
    """See channels.base.Inbound."""

    def __init__(self, intake: Intake, places: Places) -> None:
        self._intake, self._places = intake, places

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


def _body(press: InboundPress) -> Json:
    return {
        "data": press.data,
        "ref": press.message_ref,
        "values": {k: v if isinstance(v, str) else list(v) for k, v in press.values.items()},
        "author": press.author,
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
    )


class CardPresses:
    """Carries out stored presses of cards. See gateway.intake.Presses."""

    def __init__(self, store: Store, resolutions: Resolutions, channels: Mapping[str, Channel]) -> None:
        self._store, self._resolutions, self._channels = store, resolutions, channels

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
        meaning = read_press(press, record) if record is not None else Bad(text="")
        roles = frozenset[str]()
        if record is not None:
            roles = await self._resolutions.roles(actor_in(press.actor), key_in(press.thread))
        click = Click(
            pending_id=pending_id or "",
            resolution=None if isinstance(meaning, Bad | Toggle) else meaning,
            trouble=meaning.text if isinstance(meaning, Bad) else "",
            actor=actor_in(press.actor),
            name=press.author,
            roles=roles,
            key=key_in(press.thread),
            ref=press.message_ref,
            via=f"{press.thread.channel} message {press.message_ref}",
        )
        if isinstance(meaning, Toggle):
            return (await self._resolutions.toggle(click, meaning.value, taken)).text
        return (await self._resolutions.decide(click, taken)).text


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
            return await channel.roles(ChannelActor(*actor), key_out(key))
        except ChannelError as error:
            _log.warning("roles on %s are not known: %s", key.channel, redact(str(error)))
            return frozenset()
