"""Every request that goes to Telegram: the channel's values in, the channel's errors out.

The only file here that does I/O; adapter.py decides what to say, this one says it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import httpx
from telegram import (
    BotCommand,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    LinkPreviewOptions,
    MessageEntity,
    ReactionTypeEmoji,
    ReplyParameters,
    User,
)
from telegram import Message as Sent
from telegram.ext import ExtBot
from telegram.request import HTTPXRequest

from channels.base import ChannelDown, MessageRef, OutboundFile, OutboundMessage, PayloadRefused, ThreadKey
from channels.render.stream import presentable
from channels.telegram import render, wire
from channels.telegram.errors import NotModified, translated
from channels.telegram.limits import ALERT_FROM, CONNECTIONS, LIMITS, PHOTO, PHOTO_TYPES
from channels.telegram.pacing import Pacing

_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)
NOTED = "👀"


@functools.cache
def _tls() -> ssl.SSLContext:
    """One context for all clients: reading the certificates is the slowest part of making a client."""
    return httpx.create_ssl_context()


class _Updates(HTTPXRequest):
    """Keeps updates as plain JSON: one that the library cannot read must not hold up all others."""

    raw: list[dict[str, Any]]

    def parse_json_payload(self, payload: bytes) -> dict[str, Any]:  # type: ignore[override]
        """What the library overrides to change decoding; it is handed an empty list of updates."""
        answer: dict[str, Any] = HTTPXRequest.parse_json_payload(payload)
        found = answer.get("result")
        if isinstance(found, list):
            self.raw = found
            return {**answer, "result": []}
        return answer


class Calls:
    """One bot's calls, at the pace that `pacing` sets."""

    def __init__(self, token: str, api_base: str, pacing: Pacing) -> None:
        tls = {"verify": _tls()}
        self._polls = _Updates(connection_pool_size=2, connect_timeout=10, read_timeout=10, httpx_kwargs=tls)
        self._calls = HTTPXRequest(
            connection_pool_size=32, connect_timeout=10, read_timeout=20, pool_timeout=20, httpx_kwargs=tls
        )
        self._bot = ExtBot(
            token,
            base_url=f"{api_base}/bot",
            base_file_url=f"{api_base}/file/bot",
            request=self._calls,
            get_updates_request=self._polls,
            rate_limiter=pacing,
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._polls.shutdown()
        await self._calls.shutdown()

    # ---- receiving

    async def me(self) -> wire.Me:
        """Who we are. Raises TokenRefused, ChannelDown."""
        with translated():
            user = await self._bot.get_me()
        return wire.Me(id=user.id, username=user.username or "")

    async def poll_from_now_on(self) -> None:
        """Take away a webhook that was left behind; with one, polling is refused."""
        with translated():
            await self._bot.delete_webhook(drop_pending_updates=False)

    async def post_to(self, url: str, secret: str) -> None:
        """Have updates posted to us. The listener puts them in order: see webhook.py."""
        with translated():
            await self._bot.set_webhook(
                url, secret_token=secret, allowed_updates=wire.UPDATES, max_connections=CONNECTIONS
            )

    async def posted_to(self) -> str:
        """Where updates are posted to, "" for nowhere."""
        with translated():
            return (await self._bot.get_webhook_info()).url

    async def updates(self, offset: int | None, *, seconds: int, limit: int = 100) -> list[dict[str, Any]]:
        """The updates from `offset` on, as plain JSON; everything before it is confirmed."""
        self._polls.raw = []
        with translated():
            await self._bot.get_updates(
                offset=offset, limit=limit, timeout=seconds, allowed_updates=wire.UPDATES
            )
        return self._polls.raw

    async def menu(self, commands: Sequence[tuple[str, str]]) -> None:
        """Set the command menu."""
        with translated():
            await self._bot.set_my_commands([BotCommand(name, words) for name, words in commands])

    async def member_status(self, chat: int, user: int) -> str:
        """`creator`, `administrator`, `member`, `left`, ..."""
        with translated():
            member = await self._bot.get_chat_member(chat, user)
        return str(member.status)

    # ---- sending

    async def post(
        self,
        target: ThreadKey,
        drawn: render.Drawn,
        *,
        markup: ForceReply | None = None,
        reply_to: int = 0,
        silent: bool = False,
    ) -> MessageRef:
        """One message, within the limits whatever is asked for."""
        drawn = render.clipped(drawn)
        with translated(target):
            sent = await self._bot.send_message(
                int(target.conversation),
                drawn.text,
                entities=_entities(drawn.spans),
                reply_markup=markup or _keyboard(drawn),
                message_thread_id=_topic(target),
                link_preview_options=_NO_PREVIEW,
                reply_parameters=_reply(reply_to),
                disable_notification=silent or None,
            )
        return _ref(sent)

    async def change(self, ref: MessageRef, drawn: render.Drawn) -> None:
        """Replace text and buttons; the same content again is fine."""
        chat, message_id = wire.unpack_ref(ref)
        drawn = render.clipped(drawn)
        try:
            with translated():
                await self._bot.edit_message_text(
                    drawn.text,
                    chat_id=chat,
                    message_id=message_id,
                    entities=_entities(drawn.spans),
                    reply_markup=_keyboard(drawn),
                    link_preview_options=_NO_PREVIEW,
                )
        except NotModified:
            return

    async def file(self, target: ThreadKey, file: OutboundFile, reply_to: int) -> MessageRef:
        """A file from the disk, a picture as one where Telegram takes it so. Raises PayloadRefused for
        one that cannot be read or is too large."""
        try:
            size = (await asyncio.to_thread(file.path.stat)).st_size
            if size > LIMITS.file_out:
                raise PayloadRefused(f"{file.name} has {size:,} bytes, Telegram takes {LIMITS.file_out:,}")
            handle = await asyncio.to_thread(file.path.open, "rb")
        except OSError as error:
            raise PayloadRefused(f"{file.name} cannot be read ({type(error).__name__})") from None
        with handle:
            if file.media_type in PHOTO_TYPES and size <= PHOTO:
                with contextlib.suppress(PayloadRefused):  # odd dimensions, say: as a document then
                    return await self._photo(target, file.name, handle, reply_to)
                handle.seek(0)
            document = InputFile(handle, filename=file.name, read_file_handle=False)
            return await self._document(target, document, reply_to)

    async def _photo(self, target: ThreadKey, name: str, handle: BinaryIO, reply_to: int) -> MessageRef:
        with translated(target):
            sent = await self._bot.send_photo(
                int(target.conversation),
                InputFile(handle, filename=name, read_file_handle=False),
                message_thread_id=_topic(target),
                reply_parameters=_reply(reply_to),
            )
        return _ref(sent)

    async def content(self, target: ThreadKey, name: str, content: bytes, reply_to: int) -> MessageRef:
        """A file from memory."""
        return await self._document(target, InputFile(content, filename=name), reply_to)

    async def _document(self, target: ThreadKey, document: InputFile, reply_to: int) -> MessageRef:
        with translated(target):
            sent = await self._bot.send_document(
                int(target.conversation),
                document,
                message_thread_id=_topic(target),
                reply_parameters=_reply(reply_to),
                disable_content_type_detection=True,
            )
        return _ref(sent)

    async def answer(self, query_id: str, text: str) -> None:
        """Answer a press; words of more than a line open a box."""
        notice = render.cut(text, LIMITS.notice)
        with translated():
            await self._bot.answer_callback_query(
                query_id, text=notice or None, show_alert=len(notice) > ALERT_FROM or None
            )

    async def typing(self, target: ThreadKey) -> None:
        """Show "typing" for five seconds."""
        with translated(target):
            await self._bot.send_chat_action(
                int(target.conversation), "typing", message_thread_id=_topic(target)
            )

    async def react(self, target: ThreadKey, message_id: str) -> None:
        """Put eyes on a message: seen, not answered yet."""
        with translated(target):
            await self._bot.set_message_reaction(
                int(target.conversation), int(message_id), ReactionTypeEmoji(NOTED)
            )

    async def draft(self, target: ThreadKey, markdown: str) -> None:
        """Show an answer that still grows; of a long one the end."""
        words = presentable(markdown, last=2 * LIMITS.text)
        if not words.strip():
            return
        part = render.parts(OutboundMessage(text=words))[-1]
        chat = int(target.conversation)
        with translated(target):
            await self._bot.send_message_draft(
                chat,
                draft_id=_topic(target) or 1,
                text=render.sound(part.text),
                entities=_entities(part.spans),
                message_thread_id=_topic(target),
            )

    # ---- files in

    async def fetch(self, file_id: str, into: Path, limit: int) -> None:
        """Stream a file to the new path. Raises PayloadRefused above `limit` bytes."""
        with translated():
            file = await self._bot.get_file(file_id)
        failed = ""
        try:
            await _download(file.file_path or "", into, limit)
        except httpx.HTTPError as error:  # its request holds the address, and that the token
            failed = type(error).__name__
        if failed:
            raise ChannelDown(f"the file could not be fetched from Telegram ({failed})")


def _entities(spans: Sequence[render.Span]) -> list[MessageEntity] | None:
    return [
        MessageEntity(
            type=span.type,
            offset=span.offset,
            length=span.length,
            url=span.url or None,
            language=span.language or None,
            user=User(span.user, "", False) if span.user else None,
        )
        for span in spans
    ] or None


def _keyboard(drawn: render.Drawn) -> InlineKeyboardMarkup | None:
    if not drawn.rows:
        return None
    rows = [
        [InlineKeyboardButton(key.label, callback_data=key.data, style=key.style or None) for key in row]
        for row in drawn.rows
    ]
    return InlineKeyboardMarkup(rows)


def _topic(target: ThreadKey) -> int | None:
    return int(target.thread) if target.thread else None


def _reply(message_id: int) -> ReplyParameters | None:
    return ReplyParameters(message_id, allow_sending_without_reply=True) if message_id else None


def _ref(sent: Sent) -> MessageRef:
    return wire.pack_ref(sent.chat.id, sent.message_id)


async def _download(address: str, into: Path, limit: int) -> None:
    """Stream to a new file. Raises PayloadRefused above `limit` bytes; a piece of a file never stays."""
    handle = await asyncio.to_thread(into.open, "xb")
    complete = False
    try:
        async with (
            httpx.AsyncClient(timeout=30, verify=_tls()) as client,
            client.stream("GET", address) as response,
        ):
            response.raise_for_status()
            got = 0
            async for chunk in response.aiter_bytes():
                got += len(chunk)
                if got > limit:
                    raise PayloadRefused(f"the file has more than {limit:,} bytes")
                await asyncio.to_thread(handle.write, chunk)
        complete = True
    finally:
        handle.close()
        if not complete:
            await asyncio.to_thread(into.unlink, missing_ok=True)
