"""From outbox rows to channel calls: draws cards from their rows, splits answers, translates errors."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TypedDict

from channels.base import (
    Actor,
    Channel,
    ChannelBusy,
    ChannelDown,
    ChannelError,
    MessageGone,
    MessageRef,
    OutboundFile,
    OutboundMessage,
    PayloadRefused,
    TargetGone,
)
from gateway.bridge import key_in, key_out, shared_card
from gateway.deliveries import DeliveryFailed, Posted
from gateway.log import redact
from gateway.messages import Json
from gateway.notices import FILE_NOT_SENT
from gateway.store.base import Store
from gateway.store.rows import Delivery

_log = logging.getLogger(__name__)


class ChannelOutlet:
    """See gateway.deliveries.Outlet. `folder`: the data folder; files are sent from below it only."""

    def __init__(self, store: Store, channels: Mapping[str, Channel], folder: Path) -> None:
        self._store, self._channels, self._folder = store, channels, folder

    def serves(self, channel: str) -> bool:
        """Whether this process has that channel."""
        return channel in self._channels

    async def deliver(self, row: Delivery) -> AsyncIterator[Posted]:
        """Send the row's parts that are not out yet."""
        try:
            match row.kind:
                case "card":
                    yield Posted(await self._show(row))
                case "redraw":
                    await self._redraw(row)
                case _ if "file" in row.payload:
                    yield Posted(await self._send_file(row, row.payload["file"]))
                case _:
                    async for posted in self._send(row):
                        yield posted
        except ChannelError as error:
            raise translated(error) from error

    async def _send(self, row: Delivery) -> AsyncIterator[Posted]:
        channel = self._channels[row.key.channel]
        parts = channel.parts(await self._message(row))
        left = parts[len(row.refs) :]
        for index, part in enumerate(left):
            # Only the part that was on its way when its sender died may be there already.
            again = replace(part, repeat=row.repeat and index == 0)
            ref = await channel.send(key_out(row.key), again)
            opened = key_in(channel.below(key_out(row.key), ref)) if "opens" in row.payload else None
            yield Posted(ref, more=index + 1 < len(left), opened=opened)

    async def _send_file(self, row: Delivery, file: Json) -> str:
        """A file of a tool. One that cannot be sent for good is told in words instead."""
        channel = self._channels[row.key.channel]
        name, reason = file["name"] or PurePosixPath(file["path"]).name, "it is not in my folder"
        path = await asyncio.to_thread(below, self._folder, file["path"])
        if path is not None:
            out = OutboundFile(path=path, name=name, media_type=file["media_type"])
            (part,) = channel.parts(OutboundMessage(text="", files=(out,), repeat=row.repeat))
            try:
                return await channel.send(key_out(row.key), part)
            except PayloadRefused as refusal:
                reason = redact(str(refusal))
        _log.warning("a file was not sent to %s: %s", row.key.channel, reason)
        words = FILE_NOT_SENT.format(name=name, reason=reason)
        notice = channel.parts(OutboundMessage(text=words, kind="notice"))[0]
        return await channel.send(key_out(row.key), notice)

    async def _message(self, row: Delivery) -> OutboundMessage:
        if "text" in row.payload:
            text = str(row.payload["text"])
        else:
            seq = int(row.payload["seq"])
            log = await self._store.log(row.session_id, seq, limit=1)
            text = log[0].text if log else ""
        return OutboundMessage(
            text=text,
            kind="answer" if row.kind == "answer" else "notice",
            repeat=row.repeat,
            reply_to=row.reply_to,
            only=Actor(*row.payload["only"]) if "only" in row.payload else None,
            mentions=tuple(Actor(*one) for one in row.payload.get("mentions", ())),
            mention_roles=tuple(row.payload.get("roles", ())),
        )

    async def _show(self, row: Delivery) -> str:
        records = await self._store.pendings(card=row.pending_id, open_only=False)
        if not records:
            raise DeliveryFailed("the pending of this card is gone", final=True)
        channel = self._channels[row.key.channel]
        drawn = shared_card(records, place=row.key, repeat=row.repeat, **_dress(row))
        return await channel.show(key_out(row.key), replace(drawn, once=_once(row)))

    async def _redraw(self, row: Delivery) -> None:
        records = await self._store.pendings(card=row.pending_id, open_only=False)
        if records:
            channel = self._channels[row.key.channel]
            await channel.redraw(MessageRef(row.ref), shared_card(records, **_dress(row)))


def _once(row: Delivery) -> str:
    """This copy's own name, by which a platform may know it again."""
    return hashlib.sha256(f"{row.id} {row.pending_id} {row.session_id}".encode()).hexdigest()[:24]


class _Dress(TypedDict):
    revealed: bool | frozenset[str]
    managed: bool


def _dress(row: Delivery) -> _Dress:
    revealed = row.payload.get("revealed", False)
    return _Dress(
        revealed=frozenset(revealed) if isinstance(revealed, list) else bool(revealed),
        managed=bool(row.payload.get("managed")),
    )


def translated(error: ChannelError) -> DeliveryFailed:
    """What a channel's failure means for the outbox."""
    reason = redact(str(error))
    match error:
        case ChannelBusy(retry_after=seconds):
            return DeliveryFailed(reason, retry_after=seconds)
        case TargetGone(moved_to=new) if new is not None:
            return DeliveryFailed(reason, moved_to=key_in(new))
        case TargetGone() | MessageGone() | PayloadRefused():
            return DeliveryFailed(reason, final=True)
        case ChannelDown(unsure=unsure):
            return DeliveryFailed(reason, unsure=unsure)
        case _:
            return DeliveryFailed(reason)


def below(folder: Path, path: str) -> Path | None:
    """The file that a tool named, links followed; None for one that is not there or lies elsewhere."""
    root = folder.resolve()
    found = (root / path).resolve()
    return found if found.is_relative_to(root) and found.is_file() else None
