"""Files that come in: streamed, bounded, and fetched from Discord's own hosts only."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import urlsplit

import aiohttp

from channels.base import Attachment, ChannelDown, MessageGone, OutboundFile, PayloadRefused
from channels.discord import refs, wire
from channels.discord.calls import Calls, Upload
from channels.discord.errors import translated
from channels.discord.limits import LIMITS

_CHUNK: Final = 65_536
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=30)
_HOSTS: Final = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
_WHAT: Final = "the download of a file"


class Files:
    """The contents of files, between `open` and `close`."""

    def __init__(self, calls: Calls, api_base: str) -> None:
        self._calls, self._base = calls, urlsplit(api_base)
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> None:
        """Make ready, inside a running loop."""
        self._session = aiohttp.ClientSession(timeout=_TIMEOUT, cookie_jar=aiohttp.DummyCookieJar())

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    async def fetch(self, attachment: Attachment, into: Path, limit: int) -> None:
        """Stream a file to the new path. Raises PayloadRefused above `limit` bytes and for what cannot be
        had; a piece of a file never stays."""
        if attachment.size > limit:
            raise PayloadRefused(f"the file has {attachment.size:,} bytes, {limit:,} are allowed")
        address = await self._address(attachment.file_id)
        handle = await asyncio.to_thread(into.open, "xb")
        complete = False
        try:
            with translated(_WHAT):
                await self._download(address, handle, limit)
            complete = True
        finally:
            handle.close()
            if not complete:
                await asyncio.to_thread(into.unlink, missing_ok=True)

    async def _address(self, file_id: str) -> str:
        """Where the file is now: addresses live for a day, so the message is asked for a fresh one."""
        try:
            handle = refs.unpack_file(file_id)
        except ValueError as error:
            raise PayloadRefused(str(error)) from None
        address = handle.url
        if not address:
            try:
                message = await self._calls.message(handle.channel, handle.message)
            except MessageGone:
                raise PayloadRefused("the file cannot be fetched: its message was deleted") from None
            address = wire.file_url(message, handle.attachment)
        if not address:
            raise PayloadRefused("the file cannot be fetched: it was deleted")
        if not self._trusts(address):
            raise PayloadRefused("the file cannot be fetched: its address is not Discord's")
        return address

    def _trusts(self, address: str) -> bool:
        parts = urlsplit(address)
        if (parts.scheme, parts.netloc) == (self._base.scheme, self._base.netloc):
            return True
        return parts.scheme == "https" and parts.netloc in _HOSTS

    async def _download(self, address: str, handle: BinaryIO, limit: int) -> None:
        if self._session is None or self._session.closed:
            raise ChannelDown("the channel is not started")
        async with self._session.get(address, allow_redirects=False) as response:
            if response.status >= 500 or response.status == 429:
                raise ChannelDown(f"Discord answered {response.status} to {_WHAT}")
            if response.status != 200:
                raise PayloadRefused(f"the file cannot be fetched ({response.status})")
            got = 0
            async for chunk in response.content.iter_chunked(_CHUNK):
                got += len(chunk)
                if got > limit:
                    raise PayloadRefused(f"the file has more than {limit:,} bytes")
                await asyncio.to_thread(handle.write, chunk)


async def upload_of(file: OutboundFile) -> Upload:
    """A file from the disk. Raises PayloadRefused for one that cannot be read or is too large."""
    try:
        size = (await asyncio.to_thread(file.path.stat)).st_size
    except OSError as error:
        raise PayloadRefused(f"{file.name} cannot be read ({type(error).__name__})") from None
    if size > LIMITS.file_out:
        raise PayloadRefused(f"{file.name} has {size:,} bytes, {LIMITS.file_out:,} are allowed")
    return Upload(name=file.name, content=file.path)
