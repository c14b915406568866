"""The channels' way in: translates, stores, and answers presses."""

from __future__ import annotations

from collections.abc import Mapping

from channels.base import Actor as ChannelActor
from channels.base import Channel, InboundMessage, InboundPress, MessageRef
from gateway.bridge import Bad, Toggle, actor_in, key_in, key_out, pressed_card, read_press, said
from gateway.intake import Intake
from gateway.messages import Json
from gateway.notices import click_text
from gateway.resolutions import Click, Resolutions
from gateway.store.base import Store
from gateway.store.rows import PendingRecord, Press


class GatewayInbound:
    """See channels.base.Inbound."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

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

    async def carry_out(self, press: Press) -> None:
        """Decide, and tell the person who pressed what came of it."""
        pressed = _restored(press)
        channel = self._channels.get(press.key.channel)
        if channel is None:
            return
        text = await self._decided(pressed, channel)
        await channel.notify_actor(pressed, text)

    async def _decided(self, press: InboundPress, channel: Channel) -> str:
        pending_id = pressed_card(press)
        record = await self._store.pending(pending_id) if pending_id else None
        if record is None:
            return click_text("unknown", None)
        meaning = read_press(press, record)
        roles = await channel.roles(press.actor, press.thread)
        if isinstance(meaning, Toggle):
            return await self._toggle(press, record, meaning, roles)
        if isinstance(meaning, Bad) and record.state == "open":
            return meaning.text
        if isinstance(meaning, Bad):
            return click_text("already", record)
        click = Click(
            pending_id=record.id,
            resolution=meaning,
            actor=actor_in(press.actor),
            name=press.author,
            roles=roles,
            key=key_in(press.thread),
            ref=press.message_ref,
            via=f"{press.thread.channel} message {press.message_ref}",
        )
        return (await self._resolutions.decide(click)).text

    async def _toggle(
        self, press: InboundPress, record: PendingRecord, toggle: Toggle, roles: frozenset[str]
    ) -> str:
        if not await self._resolutions.belongs(key_in(press.thread), press.message_ref, record):
            return click_text("unknown", None)
        if not self._resolutions.may_decide(actor_in(press.actor), roles, record):
            return click_text("forbidden", record)
        chosen = [v for v in record.votes if v != toggle.value]
        if toggle.value not in record.votes:
            chosen.append(toggle.value)
        if await self._store.choose(record.id, record.votes, chosen, press.sent_at):
            self._resolutions.changed(record.session_id)
            return f"Chosen: {', '.join(chosen)}" if chosen else "Nothing chosen"
        now = await self._store.pending(record.id)
        return click_text("already" if now and now.state != "open" else "unknown", now)
