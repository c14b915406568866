"""Every call of the REST API that we make: the channel's values in, the channel's errors out.

adapter.py decides what to say, this one says it. No other file names a route. Threads that are to be opened
or reopened first are threads.py's business, contents of files that come in files.py's.
"""

from __future__ import annotations

import asyncio
import io
import json as json_lib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import discord
from discord.http import HTTPClient, Route

from channels.base import ChannelBusy, ChannelDown, MessageRef, PayloadRefused
from channels.discord.errors import AlreadyAnswered, AnswerGone, TokenRefused, translated
from channels.discord.limits import HISTORY, NONCE
from channels.discord.pacing import Pacing
from channels.discord.refs import pack_ref, unpack_ref
from channels.discord.wire_values import Handle

Json = Mapping[str, Any]

NOTED: Final = "👀"
CALL_SECONDS: Final = 45.0  # of one call with all that the library does for it; with a file, of the upload
_UPLOAD_SECONDS: Final = 300.0
_UPLOAD: Final = aiohttp.ClientTimeout(total=_UPLOAD_SECONDS, sock_connect=10, sock_read=60)
_OCTETS: Final = "application/octet-stream"

MESSAGE, DEFERRED, DEFERRED_UPDATE, UPDATE, CHOICES, MODAL = 4, 5, 6, 7, 8, 9
"""The first answers to an interaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that goes out, from the disk or from memory."""

    name: str
    content: bytes | Path

    def opened(self) -> discord.File:
        """The library's file. Raises OSError."""
        source = self.content if isinstance(self.content, Path) else io.BytesIO(self.content)
        return discord.File(source, filename=self.name)


class Calls:
    """One bot's calls. `http` gives what they go through and raises ChannelDown when there is nothing.

    on_refused: told when Discord does not take the token (any more).
    """

    def __init__(
        self,
        http: Callable[[], HTTPClient],
        pacing: Pacing,
        *,
        on_refused: Callable[[TokenRefused], None] = lambda refused: None,
    ) -> None:
        self._http, self._pacing, self._on_refused = http, pacing, on_refused

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        uploads: Sequence[Upload] = (),
        query: Mapping[str, str] | None = None,
        sign: bool = False,
        **ids: str,
    ) -> Any:
        """One call, in its turn. Raises ChannelError."""
        route, place = f"{method} {path}", ids.get("channel_id", "")
        counted = "webhook_id" not in ids  # what an interaction's token reaches is not
        if counted:
            await self._pacing.turn(route, place, sign=sign)
        http = self._http()
        options: dict[str, Any] = {"params": dict(query)} if query else {}
        files = await _opened(uploads)
        try:
            if files:
                options |= {"files": files, "form": _form(body, files), "timeout": _UPLOAD}
            elif body is not None:
                options["json"] = body
            with translated(route):
                async with asyncio.timeout(_UPLOAD_SECONDS if files else CALL_SECONDS):
                    return await http.request(Route(method, path, **ids), **options)
        except ChannelBusy as busy:
            if counted:
                self._pacing.hold(route, place, busy.retry_after)
            raise
        except TokenRefused as refused:
            if not counted:  # it was the interaction's token that was refused
                raise AnswerGone("the interaction can no longer be answered (401)") from None
            self._on_refused(refused)
            raise
        finally:
            for file in files:
                file.close()

    async def _object(self, method: str, path: str, **options: Any) -> Json:
        found: Json = _read(await self._call(method, path, **options), Mapping, path)
        return found

    async def _list(self, method: str, path: str, **options: Any) -> list[Json]:
        found: list[Any] = _read(await self._call(method, path, **options), list, path)
        return [one for one in found if isinstance(one, Mapping)]

    # ---- messages

    async def post(
        self,
        channel: str,
        payload: Json,
        *,
        uploads: Sequence[Upload] = (),
        reply_to: str = "",
        sign: bool = False,
        once: str = "",
    ) -> MessageRef:
        """One message. `payload` as render.py and cards.py make it. The nonce makes it one also when the
        library tries again after a broken answer, and with `once` (its name) when another process does."""
        nonce = once[:NONCE] or secrets.token_hex(NONCE // 2)
        body: dict[str, Any] = {**payload, "nonce": nonce, "enforce_nonce": True}
        if reply_to:
            body["message_reference"] = {"message_id": reply_to, "fail_if_not_exists": False}
        path = "/channels/{channel_id}/messages"
        answer = await self._object("POST", path, channel_id=channel, body=body, uploads=uploads, sign=sign)
        return pack_ref(channel, _own_id(answer))

    async def change(
        self, ref: MessageRef, payload: Json, *, uploads: Sequence[Upload] = (), sign: bool = False
    ) -> None:
        """Replace what a message shows; the same again is fine."""
        channel, message = unpack_ref(ref)
        await self._call(
            "PATCH",
            "/channels/{channel_id}/messages/{message_id}",
            channel_id=channel,
            message_id=message,
            body=dict(payload),
            uploads=uploads,
            sign=sign,
        )

    async def remove(self, ref: MessageRef) -> None:
        """Delete a message of ours."""
        channel, message = unpack_ref(ref)
        path = "/channels/{channel_id}/messages/{message_id}"
        await self._call("DELETE", path, channel_id=channel, message_id=message)

    async def message(self, channel: str, message: str) -> Json:
        """One message as it is now."""
        path = "/channels/{channel_id}/messages/{message_id}"
        return await self._object("GET", path, channel_id=channel, message_id=message)

    async def history(
        self, channel: str, *, before: str = "", after: str = "", limit: int = HISTORY
    ) -> list[Json]:
        """At most `limit` messages, the newest first; with `after` those that follow that one."""
        query = {"limit": str(min(limit, HISTORY))}
        query |= {name: own for name, own in (("before", before), ("after", after)) if own}
        return await self._list("GET", "/channels/{channel_id}/messages", channel_id=channel, query=query)

    # ---- channels and threads

    async def channel(self, channel: str) -> Json:
        """A channel or thread."""
        return await self._object("GET", "/channels/{channel_id}", channel_id=channel)

    async def open_thread(self, channel: str, message: str, name: str) -> Json:
        """A thread on a message, which has that message's id. Raises ThreadExists."""
        path = "/channels/{channel_id}/messages/{message_id}/threads"
        return await self._object("POST", path, channel_id=channel, message_id=message, body={"name": name})

    async def reopen(self, thread: str) -> None:
        """Make an archived thread take messages again."""
        await self._call("PATCH", "/channels/{channel_id}", channel_id=thread, body={"archived": False})

    async def direct(self, user: str) -> str:
        """The id of our direct conversation with this person."""
        return _own_id(await self._object("POST", "/users/@me/channels", body={"recipient_id": user}))

    # ---- signs of life

    async def typing(self, channel: str) -> None:
        """Show that the bot is typing, for ten seconds."""
        await self._call("POST", "/channels/{channel_id}/typing", channel_id=channel, sign=True)

    async def react(self, channel: str, message: str) -> None:
        """Put eyes on a message: seen, not answered yet."""
        path = "/channels/{channel_id}/messages/{message_id}/reactions/{emoji}/@me"
        await self._call("PUT", path, channel_id=channel, message_id=message, emoji=NOTED, sign=True)

    # ---- people

    async def member(self, guild: str, user: str) -> Json:
        """A member of a guild. Raises TargetGone for somebody who is none."""
        path = "/guilds/{guild_id}/members/{user_id}"
        return await self._object("GET", path, guild_id=guild, user_id=user)

    # ---- commands

    async def commands(self, application: str, guild: str = "") -> list[Json]:
        """The commands that are registered, for everywhere or for one guild."""
        return await self._list("GET", *_commands(guild), **_where(application, guild))

    async def put_commands(self, application: str, commands: Sequence[Json], guild: str = "") -> None:
        """Register these commands and no others."""
        await self._list("PUT", *_commands(guild), **_where(application, guild), body=list(commands))

    # ---- interactions

    async def respond(
        self,
        handle: Handle,
        kind: int,
        data: Json | None = None,
        *,
        uploads: Sequence[Upload] = (),
        told: bool = False,
    ) -> Json:
        """The first answer. `told`: what came of it is wanted. That it has been given is no error: the
        library may have tried again."""
        body = {"type": kind} | ({"data": dict(data)} if data is not None else {})
        query = {"with_response": "true"} if told else None
        try:
            answer = await self._call(
                "POST",
                "/interactions/{webhook_id}/{webhook_token}/callback",
                webhook_id=handle.id,
                webhook_token=handle.token,
                body=body,
                query=query,
                uploads=uploads,
            )
        except AlreadyAnswered:
            return {}
        return answer if isinstance(answer, Mapping) else {}

    async def follow_up(self, handle: Handle, payload: Json, *, uploads: Sequence[Upload] = ()) -> str:
        """A further message; its id."""
        answer = await self._object(
            "POST",
            "/webhooks/{webhook_id}/{webhook_token}",
            webhook_id=handle.application,
            webhook_token=handle.token,
            body=dict(payload),
            uploads=uploads,
        )
        return _own_id(answer)

    async def original(self, handle: Handle) -> str:
        """The id of the message that the first answer has made."""
        return _own_id(
            await self._object(
                "GET",
                "/webhooks/{webhook_id}/{webhook_token}/messages/@original",
                webhook_id=handle.application,
                webhook_token=handle.token,
            )
        )

    async def fill_in(self, handle: Handle, payload: Json, *, uploads: Sequence[Upload] = ()) -> str:
        """What a deferred answer becomes; its id."""
        kept = {name: value for name, value in payload.items() if name != "flags"}
        answer = await self._object(
            "PATCH",
            "/webhooks/{webhook_id}/{webhook_token}/messages/@original",
            webhook_id=handle.application,
            webhook_token=handle.token,
            body=kept,
            uploads=uploads,
        )
        return _own_id(answer)


def message_of(answer: Json) -> str:
    """The id of the message that a first answer has made, "" when Discord does not tell."""
    about = answer.get("interaction")
    found = about.get("response_message_id") if isinstance(about, Mapping) else None
    return str(found or "")


def _own_id(answer: Json) -> str:
    found = answer.get("id")
    if not isinstance(found, str | int):
        raise ChannelDown("Discord's answer names nothing that was made", unsure=True)
    return str(found)


def _read(answer: Any, kind: type[Any], path: str) -> Any:
    if not isinstance(answer, kind):
        raise ChannelDown(f"Discord's answer to {path} cannot be read", unsure=True)
    return answer


def _commands(guild: str) -> tuple[str]:
    place = "/guilds/{guild_id}" if guild else ""
    return (f"/applications/{{application_id}}{place}/commands",)


def _where(application: str, guild: str) -> dict[str, str]:
    return {"application_id": application} | ({"guild_id": guild} if guild else {})


async def _opened(uploads: Sequence[Upload]) -> list[discord.File]:
    files: list[discord.File] = []
    for upload in uploads:
        try:
            files.append(await asyncio.to_thread(upload.opened))
        except OSError as error:
            for file in files:
                file.close()
            raise PayloadRefused(f"{upload.name} cannot be read ({type(error).__name__})") from None
    return files


def _form(body: object, files: Sequence[discord.File]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"name": "payload_json", "value": json_lib.dumps(body)}]
    parts += [
        {"name": f"files[{number}]", "value": file.fp, "filename": file.filename, "content_type": _OCTETS}
        for number, file in enumerate(files)
    ]
    return parts
