"""Files in and out: streamed, bounded, and the bot token goes to Slack's own hosts only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import urljoin

import aiohttp

from channels.base import Attachment, ChannelDown, MessageRef, OutboundFile, PayloadRefused, ThreadKey
from channels.slack.calls import Calls
from channels.slack.errors import status_error, translated
from channels.slack.limits import LIMITS
from channels.slack.refs import pack_ref

_CHUNK: Final = 65_536
_HOPS: Final = 3  # redirects that are followed, each to a host of Slack's
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=30)
_UNREACHABLE: Final[Mapping[str, str]] = {
    "external": "it lies outside Slack",
    "hidden_by_limit": "the workspace's plan hides it",
    "tombstone": "it was deleted",
}


class Files:
    """The contents of files, over the session of `calls`."""

    def __init__(self, calls: Calls, bot_token: str) -> None:
        self._calls, self._authorization = calls, f"Bearer {bot_token}"

    # ---- in

    async def fetch(self, attachment: Attachment, into: Path, limit: int) -> None:
        """Stream a file to the new path. Raises PayloadRefused above `limit` bytes and for what cannot be
        had; a piece of a file never stays."""
        if attachment.size > limit:
            raise PayloadRefused(f"the file has {attachment.size:,} bytes, {limit:,} are allowed")
        known = await self._calls.file(attachment.file_id)
        if (why := _UNREACHABLE.get(str(known.get("mode")))) is not None:
            raise PayloadRefused(f"the file cannot be fetched: {why}")
        if isinstance(known.get("size"), int) and known["size"] > limit:
            raise PayloadRefused(f"the file has {known['size']:,} bytes, {limit:,} are allowed")
        address = known.get("url_private_download") or known.get("url_private")
        if not isinstance(address, str):
            raise PayloadRefused("the file cannot be fetched: Slack gives no address for it")
        page_expected = "html" in str(known.get("mimetype")) or known.get("filetype") == "html"
        handle = await asyncio.to_thread(into.open, "xb")
        complete = False
        try:
            with translated("the download of a file"):
                await self._download(address, handle, limit, page_expected)
            complete = True
        finally:
            handle.close()
            if not complete:
                await asyncio.to_thread(into.unlink, missing_ok=True)

    async def _download(self, address: str, handle: BinaryIO, limit: int, page_expected: bool) -> None:
        for _ in range(_HOPS + 1):
            if not self._calls.trusts(address):
                raise PayloadRefused("the file cannot be fetched: its address is not Slack's")
            async with self._calls.session.get(
                address,
                headers={"Authorization": self._authorization},
                allow_redirects=False,
                timeout=_TIMEOUT,
            ) as response:
                if response.status in _REDIRECTS:
                    address = urljoin(address, response.headers.get("Location", ""))
                    continue
                if response.status != 200:
                    raise status_error(response.status, response.headers, "the download of a file")
                if response.content_type == "text/html" and not page_expected:
                    raise PayloadRefused(
                        "Slack sent a page to log in instead of the file: the app lacks the scope "
                        "files:read, or the file is not shared with it"
                    )
                await _write(response, handle, limit)
                return
        raise PayloadRefused("the file cannot be fetched: its address leads in circles")

    # ---- out

    async def send(self, target: ThreadKey, file: OutboundFile) -> MessageRef:
        """A file from the disk. Raises PayloadRefused for one that cannot be read or is too large."""
        try:
            size = (await asyncio.to_thread(file.path.stat)).st_size
            if size > LIMITS.file_out:
                raise PayloadRefused(f"{file.name} has {size:,} bytes, {LIMITS.file_out:,} are allowed")
            handle = await asyncio.to_thread(file.path.open, "rb")
        except OSError as error:
            raise PayloadRefused(f"{file.name} cannot be read ({type(error).__name__})") from None
        with handle:
            return await self._upload(target, file.name, size, _read(handle))

    async def content(self, target: ThreadKey, name: str, content: bytes) -> MessageRef:
        """A file from memory."""
        return await self._upload(target, name, len(content), content)

    async def _upload(
        self, target: ThreadKey, name: str, size: int, body: bytes | AsyncIterator[bytes]
    ) -> MessageRef:
        if size == 0:
            raise PayloadRefused(f"{name} is empty, and Slack takes no empty files")
        address, file_id = await self._calls.upload_address(name, size)
        if not self._calls.trusts(address):
            raise ChannelDown("Slack names an address for a file that is not its own")
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        with translated("the upload of a file"):
            async with self._calls.session.post(
                address, data=body, headers=headers, allow_redirects=False, timeout=_TIMEOUT
            ) as response:
                status, answered = response.status, response.headers
                await response.read()
        if status != 200:
            raise status_error(status, answered, "the upload of a file")
        await self._calls.share(target, file_id, name)
        return pack_ref(target.conversation, await self._posted(target, file_id))

    async def _posted(self, target: ThreadKey, file_id: str) -> str:
        """The timestamp of the message with the file; the file's id while Slack does not tell."""
        try:
            known = await self._calls.file(file_id)
        except (ChannelDown, PayloadRefused):  # the file is out: no reason to send it again
            return file_id
        return _shared_at(known.get("shares"), target.conversation) or file_id


def _shared_at(shares: Any, channel: str) -> str:
    for places in shares.values() if isinstance(shares, Mapping) else ():
        found = places.get(channel) if isinstance(places, Mapping) else None
        for share in found if isinstance(found, list) else ():
            if isinstance(share, Mapping) and isinstance(share.get("ts"), str):
                return str(share["ts"])
    return ""


async def _write(response: aiohttp.ClientResponse, handle: BinaryIO, limit: int) -> None:
    got = 0
    async for chunk in response.content.iter_chunked(_CHUNK):
        got += len(chunk)
        if got > limit:
            raise PayloadRefused(f"the file has more than {limit:,} bytes")
        await asyncio.to_thread(handle.write, chunk)


async def _read(handle: BinaryIO) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(handle.read, _CHUNK):
        yield chunk
