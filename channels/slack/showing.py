"""Cards in conversations: posted with the file that they need, and brought up to date."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from channels.base import Card, ChannelError, MessageRef, PayloadRefused, TargetGone, ThreadKey
from channels.render.arguments import ArgsFile
from channels.slack import cards, refs
from channels.slack.blocks import Json
from channels.slack.calls import Calls
from channels.slack.files import Files

log = logging.getLogger("channels.slack")

EVENT: Final = "threadgate_card"  # the metadata of every card: which copy of it this is
LOOK_SECONDS: Final = 10.0
_KEPT: Final = 1000  # delivered files remembered


def _named(card: Card) -> Json:
    if not card.once:
        return {}
    return {"metadata": {"event_type": EVENT, "event_payload": {"once": card.once}}}


class Showing:
    """All cards of one workspace."""

    def __init__(self, calls: Calls, files: Files) -> None:
        self._calls, self._files = calls, files
        self._delivered: OrderedDict[tuple[str, str], None] = OrderedDict()  # (conversation, card and hash)

    async def show(self, target: ThreadKey, card: Card) -> MessageRef:
        """Post a card; what does not fit goes first, as a file. Raises ChannelError."""
        if card.repeat and (earlier := await self._earlier(target, card.once)):
            log.info("slack: a card that was posted before is brought up to date")
            await self.redraw(earlier, replace(card, repeat=False), target.workspace)
            return earlier
        file = cards.args_file(card)
        readable = await self._attach(target, card, file)
        drawn = cards.card(card, file=file, readable=readable, mention=True)
        try:
            return await self._calls.post(target, drawn | _named(card))
        except PayloadRefused as refusal:
            if not card.asks and not card.ask_roles:
                raise
            # Somebody who may decide is named wrongly, perhaps: the card comes all the same.
            log.warning("slack: a card is shown without its mentions: %s", refusal)
        return await self._calls.post(target, cards.card(card, file=file, readable=readable) | _named(card))

    async def _earlier(self, target: ThreadKey, once: str) -> MessageRef | None:
        """What an attempt that died has posted: among the newest messages there. None too, where Slack does
        not tell in time."""
        if not once:
            return None
        channel, thread = target.conversation, target.thread
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                async for message in self._calls.newest(channel, thread):
                    metadata, ts = message.get("metadata"), message.get("ts")
                    told = metadata.get("event_payload") if isinstance(metadata, Mapping) else None
                    named = isinstance(told, Mapping) and told.get("once") == once
                    if named and isinstance(ts, str) and refs.is_ts(ts):
                        return refs.pack_ref(channel, ts)
        except (ChannelError, TimeoutError) as error:
            log.info("slack: whether a card is there already is not known: %s", error or "it took too long")
        return None

    async def redraw(self, ref: MessageRef, card: Card, team: str) -> None:
        """Bring it up to date, mentioning nobody again. Raises ChannelError, and ValueError for a foreign
        reference."""
        channel, ts = refs.unpack_ref(ref)
        file = cards.args_file(card)
        readable = await self._attach(refs.thread_key(team, channel), card, file, of=ts)
        await self._calls.change(ref, cards.card(card, file=file, readable=readable))

    async def _attach(self, target: ThreadKey, card: Card, file: ArgsFile | None, of: str = "") -> bool:
        """Deliver as a file, once, what an open card cannot show; False when Slack refuses it here. of: the
        message into whose thread it goes, if not the target's."""
        if file is None or card.state != "open":
            return True
        key = (target.conversation, f"{card.card_id} {file.sha256}")
        if key not in self._delivered:
            try:
                thread = await self._calls.thread_of(target.conversation, of) if of else target.thread
                await self._files.content(target._replace(thread=thread), file.name, file.content)
            except (PayloadRefused, TargetGone) as error:
                log.warning("slack: the arguments of a card could not be attached: %s", error)
                return False
            self._delivered[key] = None
        self._delivered.move_to_end(key)
        while len(self._delivered) > _KEPT:
            self._delivered.popitem(last=False)
        return True
