"""Fetches attachments through the channel that they came by, each once, into the data folder."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from channels.base import Attachment, Channel, ChannelError
from gateway.attachments import to_fetch
from gateway.log import redact
from gateway.messages import File, Image, Message, ThreadKey

LIMIT = 20_000_000  # bytes of one file
_log = logging.getLogger(__name__)


class Files:
    """Makes the paths exist that messages refer to. `folder`: the data folder."""

    def __init__(self, channels: Mapping[str, Channel], folder: Path, limit: int = LIMIT) -> None:
        self._channels, self._folder, self._limit = channels, folder, limit

    async def fetch(self, key: ThreadKey, messages: Sequence[Message]) -> None:
        """Fetch what is not here yet. What cannot be fetched is logged and left out."""
        for block in to_fetch(messages):
            path = self._folder / block.path
            channel = self._channels.get(key.channel)
            if channel is not None and not path.exists():
                await self._one(channel, block, path)

    async def _one(self, channel: Channel, block: Image | File, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".part")
        partial.unlink(missing_ok=True)
        size = block.size if isinstance(block, File) else 0
        attachment = Attachment(file_id=block.source, name=block.name, media_type=block.media_type, size=size)
        try:
            await channel.fetch_file(attachment, partial, self._limit)
            partial.rename(path)
        except (ChannelError, OSError) as error:
            partial.unlink(missing_ok=True)
            _log.warning("a file of %s could not be fetched: %s", channel.name, redact(str(error)))
