"""Cards in conversations: posted with the file that they need, and brought up to date."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Final

from channels.base import Card, MessageRef, PayloadRefused, TargetGone, ThreadKey
from channels.render.arguments import ArgsFile
from channels.slack import cards, refs
from channels.slack.calls import Calls
from channels.slack.files import Files

log = logging.getLogger("channels.slack")

_KEPT: Final = 1000  # delivered files remembered


class Showing:
    """All cards of one workspace."""

    def __init__(self, calls: Calls, files: Files) -> None:
        self._calls, self._files = calls, files
        self._delivered: OrderedDict[tuple[str, str], None] = OrderedDict()  # (conversation, card and hash)

    async def show(self, target: ThreadKey, card: Card) -> MessageRef:
        """Post a card; what does not fit goes first, as a file. Raises ChannelError."""
        file = cards.args_file(card)
        readable = await self._attach(target, card, file)
        drawn = cards.card(card, file=file, readable=readable, mention=True)
        try:
            return await self._calls.post(target, drawn)
        except PayloadRefused as refusal:
            if not card.asks and not card.ask_roles:
                raise
            # Somebody who may decide is named wrongly, perhaps: the card comes all the same.
            log.warning("slack: a card is shown without its mentions: %s", refusal)
        return await self._calls.post(target, cards.card(card, file=file, readable=readable))

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
