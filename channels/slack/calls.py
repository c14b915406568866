"""Every call of the Web API that we make: the channel's values in, the channel's errors out.

adapter.py decides what to say, this one says it. No other file names a method. Files are in files.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from channels.base import Actor, ChannelBusy, ChannelDown, MessageRef, PayloadRefused, ThreadKey
from channels.slack.errors import Refused, ScopeMissing, SocketModeOff, TokenRefused, status_error, translated
from channels.slack.limits import FILE_HOSTS
from channels.slack.pacing import Pacing
from channels.slack.redact import LIBRARY
from channels.slack.refs import pack_ref, unpack_ref

NOTED: Final = "eyes"
_PAGE: Final = 200  # messages in one page of a thread
_NEWEST: Final = 100  # messages of a channel that are looked through
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30, sock_connect=10, sock_read=20)
_HOOKS: Final = ("slack.com", "slack-gov.com")
Answer = Mapping[str, Any]


class Calls:
    """One workspace's calls, at the pace that `pacing` sets, between `open` and `close`.

    on_refused: told when Slack does not take the bot token (any more).
    """

    def __init__(
        self,
        bot_token: str,
        app_token: str | None,
        api_base: str,
        pacing: Pacing,
        *,
        on_refused: Callable[[TokenRefused], None] = lambda refused: None,
    ) -> None:
        # The library retries nothing: by default it posts again after a broken connection, and a message
        # may then be there twice. Whoever asked plans the next try.
        self.client = AsyncWebClient(bot_token, base_url=api_base, logger=LIBRARY, retry_handlers=[])
        self._app_token, self._pacing, self._on_refused = app_token, pacing, on_refused
        self._base = urlsplit(api_base)
        self._opened = False

    def open(self) -> None:
        """Let calls be made from now on."""
        self._opened = True

    @property
    def session(self) -> aiohttp.ClientSession:
        """What all connections belong to; another one when it was closed by accident. Raises ChannelDown
        before `open` and after `close`."""
        if not self._opened:
            raise ChannelDown("the channel is not started")
        if self.client.session is None or self.client.session.closed:
            self.client.session = aiohttp.ClientSession(timeout=_TIMEOUT)
        return self.client.session

    async def close(self) -> None:
        """Close every connection."""
        self._opened = False
        if self.client.session is not None:
            await self.client.session.close()

    def trusts(self, address: str, hosts: Sequence[str] = FILE_HOSTS) -> bool:
        """Whether an address that came from outside is Slack's own: one of these hosts, or one below it,
        by https; or that of `api_base`."""
        parts = urlsplit(address)
        if (parts.scheme, parts.netloc) == (self._base.scheme, self._base.netloc):
            return True
        host = parts.hostname or ""
        return parts.scheme == "https" and any(host == known or host.endswith(f".{known}") for known in hosts)

    async def _call(self, method: str, *, sign: bool = False, **arguments: Any) -> Answer:
        """One call, in its turn. Raises ChannelError."""
        channel = str(arguments.get("channel") or arguments.get("channel_id") or "")
        await self._pacing.turn(method, channel, sign=sign)
        _ = self.session  # there must be one: the library would make another for every single call
        ask = getattr(self.client, method.replace(".", "_"))
        try:
            with translated(method):
                answer = await ask(**arguments)
        except ChannelBusy as busy:
            self._pacing.hold(method, channel, busy.retry_after)
            raise
        except TokenRefused as refused:
            self._on_refused(refused)
            raise
        data = answer.data
        if not isinstance(data, Mapping):
            raise ChannelDown(f"Slack's answer to {method} cannot be read", unsure=True)
        return data

    # ---- who we are, and how we receive

    async def me(self) -> Answer:
        """auth.test: `team_id`, `user_id`, `bot_id`, ... Raises TokenRefused, ChannelDown."""
        return await self._call("auth.test")

    async def socket_address(self) -> str:
        """Where a new connection of Socket Mode may be opened, once. Raises Refused, ChannelDown."""
        method = "apps.connections.open"
        await self._pacing.turn(method)
        _ = self.session
        try:
            with translated(method, "app_token"):
                answer = await self.client.apps_connections_open(app_token=self._app_token or "")
        except ChannelBusy as busy:
            self._pacing.hold(method, "", busy.retry_after)
            raise
        except ScopeMissing as missing:
            raise TokenRefused(
                "app_token", f"it lacks the scope {missing.needed or 'connections:write'}"
            ) from None
        except PayloadRefused as refusal:
            if "socket_mode" in str(refusal) or "forbidden_app" in str(refusal):
                raise SocketModeOff from None
            raise Refused(f"Slack opens no connection: {refusal}") from None
        address = answer.get("url")
        if not isinstance(address, str):
            raise ChannelDown(f"Slack's answer to {method} cannot be read")
        return address

    # ---- messages

    async def post(self, target: ThreadKey, arguments: Answer, *, sign: bool = False) -> MessageRef:
        """One message. `arguments` as render.py and cards.py make them. `sign`: a sign of life."""
        channel = target.conversation
        posting: dict[str, Any] = {
            "unfurl_links": False,
            "unfurl_media": False,
            **arguments,
            "channel": channel,
        }
        if target.thread:
            posting["thread_ts"] = target.thread
        answer = await self._call("chat.postMessage", sign=sign, **posting)
        return pack_ref(str(answer.get("channel") or channel), str(answer.get("ts", "")))

    async def change(self, ref: MessageRef, arguments: Answer, *, sign: bool = False) -> None:
        """Replace text and blocks; the same content again is fine."""
        channel, ts = unpack_ref(ref)
        kept = {name: value for name, value in arguments.items() if not name.startswith("unfurl_")}
        await self._call("chat.update", sign=sign, **kept, channel=channel, ts=ts)

    async def remove(self, ref: MessageRef) -> None:
        """Delete a message of ours."""
        channel, ts = unpack_ref(ref)
        await self._call("chat.delete", channel=channel, ts=ts)

    async def whisper(self, target: ThreadKey, user: str, arguments: Answer) -> None:
        """A message that only this person sees."""
        channel = target.conversation
        kept = {name: value for name, value in arguments.items() if not name.startswith("unfurl_")}
        if target.thread:
            kept["thread_ts"] = target.thread
        await self._call("chat.postEphemeral", **kept, channel=channel, user=user)

    async def respond(self, address: str, arguments: Answer) -> None:
        """The same by a response_url, which needs no membership. Raises PayloadRefused when it is used up."""
        if not self.trusts(address, _HOOKS):
            raise PayloadRefused("this response_url is not Slack's")
        kept = {name: value for name, value in arguments.items() if not name.startswith("unfurl_")}
        body = {**kept, "response_type": "ephemeral", "replace_original": False}
        with translated("response_url"):
            async with self.session.post(address, json=body, allow_redirects=False) as response:
                status, headers = response.status, response.headers
                await response.read()
        if status != 200:
            raise status_error(status, headers, "response_url")

    async def direct(self, user: str) -> str:
        """The id of our direct conversation with this person."""
        answer = await self._call("conversations.open", users=user)
        channel = answer.get("channel")
        found = channel.get("id") if isinstance(channel, Mapping) else None
        if not isinstance(found, str):
            raise ChannelDown("Slack's answer to conversations.open cannot be read")
        return found

    async def replies(
        self, channel: str, thread: str, latest: str, *, metadata: bool = False
    ) -> AsyncIterator[Answer]:
        """The messages of a thread before `latest` ("" for all), oldest first, page by page. Its first
        message is there too. metadata: with what was posted along with them, which is worth no wait."""
        cursor = ""
        while True:
            answer = await self._call(
                "conversations.replies",
                channel=channel,
                ts=thread,
                latest=latest or None,
                limit=_PAGE,
                cursor=cursor or None,
                include_all_metadata=metadata or None,
                sign=metadata,
            )
            for message in answer.get("messages") or ():
                if isinstance(message, Mapping):
                    yield message
            cursor = str((answer.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor:
                return

    async def newest(self, channel: str, thread: str) -> AsyncIterator[Answer]:
        """With what was posted along with them: the messages of a thread, or the newest ones of a channel
        beside all threads."""
        if thread:
            async for message in self.replies(channel, thread, "", metadata=True):
                yield message
            return
        answer = await self._call(
            "conversations.history", channel=channel, limit=_NEWEST, include_all_metadata=True
        )
        for message in answer.get("messages") or ():
            if isinstance(message, Mapping):
                yield message

    async def thread_of(self, channel: str, ts: str) -> str:
        """The thread that a message belongs to, or may begin."""
        answer = await self._call("conversations.replies", channel=channel, ts=ts, limit=1)
        for message in answer.get("messages") or ():
            if isinstance(message, Mapping) and isinstance(message.get("thread_ts"), str):
                return str(message["thread_ts"])
        return ts

    # ---- modals and the home

    async def open_view(self, trigger_id: str, view: Answer) -> None:
        """Open a modal, within three seconds of the click."""
        await self._call("views.open", trigger_id=trigger_id, view=dict(view))

    async def publish_home(self, user: str, view: Answer) -> None:
        """Show this person's App Home."""
        await self._call("views.publish", user_id=user, view=dict(view))

    # ---- signs of life

    async def status(self, target: ThreadKey, words: str) -> None:
        """What an assistant thread says that we do now; "" takes it away."""
        await self._call(
            "assistant.threads.setStatus",
            channel_id=target.conversation,
            thread_ts=target.thread,
            status=words,
        )

    async def title(self, target: ThreadKey, title: str) -> None:
        """Name an assistant thread."""
        await self._call(
            "assistant.threads.setTitle",
            channel_id=target.conversation,
            thread_ts=target.thread,
            title=title,
        )

    async def suggest(self, target: ThreadKey, prompts: Sequence[tuple[str, str]]) -> None:
        """Offer ways to begin, as (title, message), in a new assistant thread."""
        await self._call(
            "assistant.threads.setSuggestedPrompts",
            channel_id=target.conversation,
            thread_ts=target.thread,
            prompts=[{"title": title, "message": message} for title, message in prompts],
        )

    async def start_stream(self, target: ThreadKey, markdown: str, actor: Actor | None) -> MessageRef:
        """Begin a message that grows. In a channel Slack wants to know for whom."""
        channel = target.conversation
        answer = await self._call(
            "chat.startStream",
            sign=True,
            channel=channel,
            thread_ts=target.thread,
            markdown_text=markdown,
            recipient_team_id=actor.workspace if actor else None,
            recipient_user_id=actor.user if actor else None,
        )
        return pack_ref(str(answer.get("channel") or channel), str(answer.get("ts", "")))

    async def append_stream(self, ref: MessageRef, markdown: str) -> None:
        """Add to it. Raises StreamOver when it takes no more."""
        channel, ts = unpack_ref(ref)
        await self._call("chat.appendStream", sign=True, channel=channel, ts=ts, markdown_text=markdown)

    async def stop_stream(self, ref: MessageRef, arguments: Answer = MappingProxyType({})) -> None:
        """End it; what is there stays."""
        channel, ts = unpack_ref(ref)
        await self._call("chat.stopStream", channel=channel, ts=ts, **arguments)

    async def react(self, target: ThreadKey, message_id: str) -> None:
        """Put eyes on a message: seen, not answered yet."""
        try:
            await self._call(
                "reactions.add",
                channel=target.conversation,
                name=NOTED,
                timestamp=message_id,
            )
        except PayloadRefused as refusal:
            if "already_reacted" not in str(refusal):
                raise

    # ---- people

    async def user(self, user: str) -> Answer:
        """users.info of one person."""
        answer = await self._call("users.info", user=user)
        found = answer.get("user")
        return found if isinstance(found, Mapping) else {}

    async def user_groups(self) -> Mapping[str, Sequence[str]]:
        """Which people are in which user group: group id -> user ids."""
        answer = await self._call("usergroups.list", include_users=True)
        groups = answer.get("usergroups")
        return {
            str(group.get("id")): [str(user) for user in group.get("users") or ()]
            for group in (groups if isinstance(groups, list) else ())
            if isinstance(group, Mapping)
        }

    # ---- files; their contents travel in files.py

    async def file(self, file_id: str) -> Answer:
        """files.info of one file."""
        answer = await self._call("files.info", file=file_id)
        found = answer.get("file")
        return found if isinstance(found, Mapping) else {}

    async def upload_address(self, name: str, size: int) -> tuple[str, str]:
        """(where the contents are to be posted, the id of the file to be)."""
        answer = await self._call("files.getUploadURLExternal", filename=name, length=size)
        address, file_id = answer.get("upload_url"), answer.get("file_id")
        if not isinstance(address, str) or not isinstance(file_id, str):
            raise ChannelDown("Slack's answer to files.getUploadURLExternal cannot be read")
        return address, file_id

    async def share(self, target: ThreadKey, file_id: str, title: str) -> None:
        """Post an uploaded file into a thread."""
        await self._call(
            "files.completeUploadExternal",
            files=[{"id": file_id, "title": title}],
            channel_id=target.conversation,
            thread_ts=target.thread or None,
        )
