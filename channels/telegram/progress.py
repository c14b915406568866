"""Signs of life: "typing" for as long as a turn works, and the growing answer as a draft in private chats.

One small task per place keeps the sign alive, because Telegram takes it away after five seconds. It ends
with `idle`, with the first refusal, and after a quarter of an hour in any case. A draft vanishes when a
message of ours comes: `settle` sees to it that none comes after.

Groups see "typing" only: what they may be sent in a minute is needed for answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from channels.base import ChannelError, PayloadRefused, Progress, ThreadKey
from channels.telegram.limits import DRAFT_SECONDS, TYPING_SECONDS

log = logging.getLogger("channels.telegram")

LONGEST_DRAFT = 5.0  # seconds that a message waits for a draft that is on its way
LONGEST = 900.0  # seconds without any news after which a sign of life would be a lie


@dataclass(slots=True)
class _Life:
    task: asyncio.Task[None] | None = None
    draft: str = ""
    left: float = LONGEST
    news: asyncio.Event = field(default_factory=asyncio.Event)


class Signs:
    """All signs of life of one bot. `typing(target)`, `react(target, message id)` and
    `draft(target, markdown)` do the calls."""

    def __init__(
        self,
        *,
        typing: Callable[[ThreadKey], Awaitable[None]],
        react: Callable[[ThreadKey, str], Awaitable[None]],
        draft: Callable[[ThreadKey, str], Awaitable[None]],
        drafts: bool,
    ) -> None:
        self._typing, self._react, self._draft, self._drafts = typing, react, draft, drafts
        self._lives: dict[ThreadKey, _Life] = {}
        self._drafting: dict[ThreadKey, asyncio.Task[None]] = {}
        self._no_drafts: set[str] = set()  # conversations that refused one

    async def show(self, target: ThreadKey, state: Progress) -> None:
        """Take the news in. The first sign of a turn is sent before this returns, so that its failure
        is the caller's to count."""
        if state.kind == "noted":
            await self._noted(target, state.text)
            return
        if state.kind == "idle":
            self.end(target)
            return
        life = self._lives.get(target)
        if life is None:
            life = self._lives[target] = _Life()
            try:
                await self._typing(target)
            except ChannelError:
                self._lives.pop(target, None)
                raise
            if self._lives.get(target) is life:  # not ended meanwhile
                life.task = asyncio.create_task(self._keep(target, life), name="telegram typing")
        life.left = LONGEST
        if state.kind == "text" and self._may_draft(target):
            life.draft = state.text
            life.news.set()

    async def _noted(self, target: ThreadKey, message_id: str) -> None:
        """A reaction where the chat allows it, else a few seconds of typing."""
        try:
            await self._react(target, message_id)
        except PayloadRefused:
            await self._typing(target)

    async def settle(self, target: ThreadKey) -> None:
        """Before a message goes out: show no draft that is not shown yet, wait for one on its way."""
        if (life := self._lives.get(target)) is not None:
            life.news.clear()
        if (drafting := self._drafting.get(target)) is not None:
            await asyncio.wait({drafting}, timeout=LONGEST_DRAFT)

    def end(self, target: ThreadKey) -> None:
        """Take the sign away."""
        life = self._lives.pop(target, None)
        if life is not None and life.task is not None:
            life.task.cancel()

    async def close(self) -> None:
        """End all of them and wait until they are gone."""
        tasks = [life.task for life in self._lives.values() if life.task is not None]
        tasks += self._drafting.values()
        for target in list(self._lives):
            self.end(target)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, target: ThreadKey, life: _Life) -> None:
        try:
            while life.left > 0:
                life.left -= TYPING_SECONDS
                if await self._news(life, TYPING_SECONDS):
                    await self._show_draft(target, life)
                    await asyncio.sleep(DRAFT_SECONDS)
                else:
                    await self._typing(target)
        except ChannelError as error:
            log.info("telegram: no more signs of life in %s: %s", target.conversation, error)
        finally:
            if self._lives.get(target) is life:
                del self._lives[target]

    async def _show_draft(self, target: ThreadKey, life: _Life) -> None:
        life.news.clear()
        drafting = asyncio.create_task(self._draft_once(target, life.draft), name="telegram draft")
        self._drafting[target] = drafting
        # Not cancelled with the sign itself: what is on its way arrives, and `settle` waits for it.
        await asyncio.shield(drafting)

    async def _draft_once(self, target: ThreadKey, markdown: str) -> None:
        try:
            await self._draft(target, markdown)
        except PayloadRefused as refusal:
            self._no_drafts.add(target.conversation)
            log.info("telegram: no drafts in %s: %s", target.conversation, refusal)
        except ChannelError as error:
            log.debug("telegram: a draft was not shown in %s: %s", target.conversation, error)
        finally:
            del self._drafting[target]

    def _may_draft(self, target: ThreadKey) -> bool:
        private = not target.conversation.startswith("-")
        return self._drafts and private and target.conversation not in self._no_drafts

    @staticmethod
    async def _news(life: _Life, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await life.news.wait()
        except TimeoutError:
            return False
        return True
