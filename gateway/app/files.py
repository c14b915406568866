"""Fetches attachments through the channel that they came by, each once, into the data folder."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from channels.base import Attachment, Channel, ChannelBusy, ChannelDown, ChannelError
from gateway.attachments import to_fetch
from gateway.clock import Clock
from gateway.log import redact
from gateway.messages import File, Image, Message, ThreadKey
from gateway.notices import FILE_NOT_FETCHED

LIMIT = 20_000_000  # bytes of one file
ONE_FILE = 50.0  # seconds for one file, all tries together
PAUSES = (1.0, 4.0)  # seconds between tries while the platform does not answer
_log = logging.getLogger(__name__)


class Files:
    """Makes the paths exist that messages refer to. `folder`: the data folder. `tell`: says in a
    thread which file is missing and why."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        folder: Path,
        clock: Clock,
        tell: Callable[[ThreadKey, str], Awaitable[None]],
        limit: int = LIMIT,
    ) -> None:
        self._channels, self._folder, self._clock = channels, folder, clock
        self._tell, self._limit = tell, limit

    async def fetch(self, key: ThreadKey, messages: Sequence[Message]) -> None:
        """Fetch what is not here yet. What cannot be fetched is left out, and its sender told."""
        channel = self._channels.get(key.channel)
        if channel is None:
            return
        for block in to_fetch(messages):
            path = self._folder / block.path
            if path.exists():
                continue
            try:
                async with asyncio.timeout(ONE_FILE):
                    await self._patiently(channel, block, path)
            except (ChannelError, OSError, TimeoutError) as error:
                reason = redact(str(error)) or "it took too long"
                _log.warning("a file of %s could not be fetched: %s", channel.name, reason)
                await self._tell(key, FILE_NOT_FETCHED.format(name=block.name or "you sent", reason=reason))

    async def _patiently(self, channel: Channel, block: Image | File, path: Path) -> None:
        for pause in PAUSES:
            try:
                return await self._one(channel, block, path)
            except ChannelBusy as busy:
                pause = busy.retry_after
            except ChannelDown as down:
                _log.info("a file of %s has to wait: %s", channel.name, redact(str(down)))
            await self._clock.sleep(pause)
        return await self._one(channel, block, path)

    async def _one(self, channel: Channel, block: Image | File, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".part")
        partial.unlink(missing_ok=True)
        size = block.size if isinstance(block, File) else 0
        attachment = Attachment(file_id=block.source, name=block.name, media_type=block.media_type, size=size)
        try:
            await channel.fetch_file(attachment, partial, self._limit)
            partial.rename(path)
        finally:
            partial.unlink(missing_ok=True)
