"""The Telegram channel. What it says goes out through calls.py, what comes in is read by wire.py.

Receives by long polling, or by webhook; an update is confirmed only after `Inbound` has stored it. Sends
plain text with entities, never a markup language. See channels/base.py for the promises.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from channels.base import (
    Abilities,
    Actor,
    Attachment,
    Card,
    ChannelBusy,
    ChannelDown,
    ChannelError,
    Inbound,
    InboundChange,
    InboundMessage,
    InboundPress,
    MessageRef,
    OutboundMessage,
    PayloadRefused,
    Progress,
    TargetGone,
    ThreadKey,
)
from channels.render.arguments import ArgsFile
from channels.telegram import cards, forms, render, wire
from channels.telegram.asking import Asking, remember
from channels.telegram.calls import Calls
from channels.telegram.errors import PollConflict, TokenRefused
from channels.telegram.limits import (
    ALBUM_SECONDS,
    ALBUM_WAITS,
    LIMITS,
    POLL_SECONDS,
    SECONDS_BETWEEN,
    WATCH_SECONDS,
)
from channels.telegram.pacing import Pacing
from channels.telegram.polling import Poller, State
from channels.telegram.presses import Presses
from channels.telegram.progress import Signs
from channels.telegram.redact import forget, quieten
from channels.telegram.webhook import WebhookListener, WebhookSettings

log = logging.getLogger("channels.telegram")

COMMANDS: Final = (
    ("new", "Start a new conversation"),
    ("stop", "Stop what is running"),
    ("status", "What is going on"),
    ("pending", "What waits for a decision"),
    ("help", "What I can do"),
)
_ROLES_KEPT = 60.0  # seconds
_TRIES = 5  # of a word to one person that Telegram asks to delay
_ADMINS = {"creator": ("administrator", "creator"), "administrator": ("administrator",)}


class TelegramChannel:
    """One bot. `token` as BotFather gives it; `api_base` without a slash at the end.

    groups_addressed_only: in groups, hear only what speaks to the bot. webhook: be posted to instead of
    polling.
    commands: the menu, as (name, description). file_limit: the most bytes of a file that is fetched.
    between: seconds between two messages to one chat. sleep, monotonic: time, for tests. on_state: told
    whenever `state` changes.
    """

    name = wire.CHANNEL
    abilities = Abilities(streaming=True)
    limits = LIMITS

    def __init__(
        self,
        token: str,
        *,
        api_base: str = "https://api.telegram.org",
        groups_addressed_only: bool = True,
        commands: Sequence[tuple[str, str]] = COMMANDS,
        webhook: WebhookSettings | None = None,
        drafts: bool = True,
        file_limit: int = LIMITS.file_in,
        between: float = SECONDS_BETWEEN,
        poll_seconds: int = POLL_SECONDS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        on_state: Callable[[State], None] = lambda state: None,
    ) -> None:
        number = token.partition(":")[0]
        if not number.isdecimal() or ":" not in token:
            raise TokenRefused
        self.me = wire.Me(id=int(number))
        self.refused: TokenRefused | None = None  # set when the token stopped working meanwhile
        self._addressed_only, self._commands = groups_addressed_only, tuple(commands)
        self._poll_seconds, self._sleep, self._monotonic = poll_seconds, sleep, monotonic
        self._seal = forms.Seal(token)
        self._filters = quieten(token)
        self._calls = Calls(token, api_base.rstrip("/"), Pacing(between, sleep, monotonic))
        self._presses = Presses(self._calls.answer, sleep=sleep, monotonic=monotonic)
        self._signs = Signs(
            typing=self._calls.typing, react=self._calls.react, draft=self._calls.draft, drafts=drafts
        )
        self._file_limit = min(file_limit, LIMITS.file_in)
        self._webhook = webhook
        self._listener = WebhookListener(webhook, self._handle) if webhook else None
        self._poller = Poller(
            fetch=self._watch if webhook else self._fetch,
            handle=self._handle,
            sleep=sleep,
            monotonic=monotonic,
            on_state=on_state,
        )
        self._inbound: Inbound | None = None
        self._polling: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._prepared = False
        self._asking = Asking(self._calls, self._presses, self._seal, monotonic)
        self._attached: OrderedDict[tuple[str, str], bool] = (
            OrderedDict()
        )  # (chat, card and hash) -> file is there
        self._roles: OrderedDict[tuple[str, str], tuple[float, frozenset[str]]] = OrderedDict()

    # ---- receiving

    @property
    def webhook_port(self) -> int:
        """Where we listen for the webhook, 0 without one."""
        return self._listener.port if self._listener else 0

    @property
    def state(self) -> State:
        """How receiving stands."""
        return self._poller.state

    async def start(self, inbound: Inbound) -> None:
        """See Channel. Raises TokenRefused, and ChannelDown when the webhook's port is taken."""
        self._inbound = inbound
        if self._listener is not None:
            try:
                await self._listener.start()
            except OSError as error:
                raise ChannelDown(f"the webhook's port cannot be used: {error.strerror}") from error
        try:
            await self._prepare()
        except TokenRefused:
            await self.stop()
            raise
        except ChannelError as error:
            log.warning("telegram: %s; trying again in the background", error)
        self._polling = asyncio.create_task(self._poll(), name="telegram polling")

    async def stop(self) -> None:
        """See Channel. What was stored is confirmed, so that it does not come again."""
        self._poller.stop()
        if self._polling is not None:
            await asyncio.wait({self._polling}, timeout=10)
            self._polling.cancel()
        if self._listener is not None:
            await self._listener.stop()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=5)
            for task in late:  # told to wait, by a flood
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._signs.close()
        await self._presses.close()
        await self._confirm()
        await self._close()

    async def _poll(self) -> None:
        try:
            await self._poller.run()
        except TokenRefused as refused:
            self.refused = refused
            log.error("%s; this channel is off until then", refused)

    async def _prepare(self) -> None:
        """What must be known and set before the first update is read."""
        self.me = await self._calls.me()
        if self._webhook is None:
            await self._calls.poll_from_now_on()
        else:
            await self._calls.post_to(self._webhook.url, self._webhook.secret)
        self._prepared = True
        try:
            await self._calls.menu(self._commands)
        except ChannelError as error:
            log.warning("telegram: the command menu could not be set: %s", error)

    async def _fetch(self, offset: int | None) -> Sequence[dict[str, Any]]:
        if not self._prepared:
            await self._prepare()
        updates = await self._calls.updates(offset, seconds=self._poll_seconds)
        for _ in range(ALBUM_WAITS):
            if not wire.ends_in_album(updates):
                break
            await self._sleep(ALBUM_SECONDS)
            more = await self._calls.updates(offset, seconds=0)  # nothing was confirmed: the same and more
            if len(more) <= len(updates):
                break
            updates = more
        return wire.albums(updates)

    async def _watch(self, offset: int | None) -> Sequence[dict[str, Any]]:
        """In place of a poll: see that Telegram still posts to us, and set it right otherwise."""
        if not self._prepared:
            await self._prepare()
            return ()
        await self._sleep(WATCH_SECONDS)
        if self._webhook is not None and await self._calls.posted_to() != self._webhook.url:
            self._prepared = False
            raise PollConflict("the webhook was taken away or points elsewhere")
        return ()

    async def _confirm(self) -> None:
        if self._poller.offset is None:
            return
        try:
            async with asyncio.timeout(3):
                await self._calls.updates(self._poller.offset, seconds=0, limit=1)
        except (ChannelError, TimeoutError) as error:
            log.info("telegram: the last updates will come again (%s)", type(error).__name__)

    async def _close(self) -> None:
        await self._calls.close()
        forget(self._filters)

    async def _handle(self, update: dict[str, Any]) -> None:
        """Hand one update over. Whatever this raises keeps the update on the platform."""
        if self._inbound is None:
            raise RuntimeError("the channel was not started")
        parsed = wire.parse(update, self.me, self._seal, time.time(), addressed_only=self._addressed_only)
        match parsed:
            case InboundMessage():
                await self._inbound.message(parsed)
            case InboundPress():
                await self._press(self._inbound, parsed)
            case InboundChange():
                await self._inbound.change(parsed)
            case wire.FormOpened():
                self._soon(self._asking.ask(self._inbound, parsed))
            case wire.Ignored():
                log.debug("telegram: update %s ignored: %s", update.get("update_id"), parsed.reason)
                if parsed.query_id:
                    self._presses.settle_soon(parsed.query_id, "This button does nothing here.")

    async def _press(self, inbound: Inbound, press: InboundPress) -> None:
        opened = self._asking.opened(press)
        if opened is not None:  # its fields did not fit into the button
            self._soon(self._asking.ask(inbound, opened))
            return
        if not wire.is_callback(press):
            press = await self._asking.read(inbound, press)
        await inbound.press(press)
        if wire.is_callback(press):
            self._presses.expect(press.action_id)

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="telegram word")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- sending

    def parts(self, message: OutboundMessage) -> Sequence[OutboundMessage]:
        """See Channel."""
        return render.parts(message)

    async def send(self, target: ThreadKey, message: OutboundMessage) -> MessageRef:
        """See Channel. Raises PayloadRefused for a message that `parts` would cut into several."""
        pieces = render.parts(message)
        if len(pieces) != 1:
            raise PayloadRefused(f"this takes {len(pieces)} Telegram messages; send its parts one by one")
        part = pieces[0]
        await self._signs.settle(target)
        reply_to = (
            int(part.reply_to) if part.reply_to.isdecimal() and target.conversation.startswith("-") else 0
        )
        if part.files:
            return await self._calls.file(target, part.files[0], reply_to)
        silent = part.kind == "notice" and not part.mentions
        return await self._calls.post(target, render.drawn_part(part), reply_to=reply_to, silent=silent)

    def below(self, target: ThreadKey, ref: MessageRef) -> ThreadKey:
        """See Channel."""
        return target

    async def edit(self, ref: MessageRef, message: OutboundMessage) -> None:
        """See Channel. Of a message that needs several parts the first is shown."""
        await self._calls.change(ref, render.drawn_part(render.parts(message)[0]))

    async def show(self, target: ThreadKey, card: Card) -> MessageRef:
        """See Channel. Arguments that do not fit go first, as a file."""
        self._asking.note(card)
        await self._signs.settle(target)
        file = cards.args_file(card)
        readable = True
        if file is not None and card.state == "open":
            readable = await self._attach(target, card, file, 0)
        return await self._calls.post(target, cards.card(card, file=file, readable=readable))

    async def redraw(self, ref: MessageRef, card: Card) -> None:
        """See Channel. Nobody is asked a second time."""
        self._asking.note(card)
        card = replace(card, asks=(), ask_roles=())
        chat, message_id = wire.unpack_ref(ref)
        file = cards.args_file(card)
        readable = True
        if file is not None and card.state == "open":
            target = ThreadKey(self.name, str(self.me.id), str(chat), "")
            readable = await self._attach(target, card, file, message_id)
        await self._calls.change(ref, cards.card(card, file=file, readable=readable))

    async def _attach(self, target: ThreadKey, card: Card, file: ArgsFile, reply_to: int) -> bool:
        """Deliver the arguments as a file, once; False when the platform refuses it here."""
        key = (target.conversation, f"{card.card_id} {file.sha256}")
        if key not in self._attached:
            try:
                await self._calls.content(target, file.name, file.content, reply_to)
            except (PayloadRefused, TargetGone) as error:
                log.warning("telegram: the arguments of a card could not be attached: %s", error)
                return False
            remember(self._attached, key, True)
        return True

    async def notify_actor(self, press: InboundPress, text: str) -> None:
        """See Channel. After a submitted form the answer is a reply to the person's message."""
        if wire.is_callback(press):
            await self._presses.settle(press.action_id, text)
        elif text:
            await self._tell(press, render.Drawn(text=render.cut(render.inert(text), LIMITS.text)), _TRIES)

    async def _tell(self, press: InboundPress, drawn: render.Drawn, tries: int) -> None:
        try:
            await self._calls.post(press.thread, drawn, reply_to=wire.replied_message(press))
        except ChannelBusy as busy:
            if tries > 1:
                self._soon(self._tell_later(press, drawn, tries - 1, busy.retry_after))
        except ChannelError as error:
            log.info("telegram: a notice could not be shown: %s", error)

    async def _tell_later(self, press: InboundPress, drawn: render.Drawn, tries: int, seconds: float) -> None:
        await self._sleep(seconds)
        await self._tell(press, drawn, tries)

    async def progress(self, target: ThreadKey, state: Progress) -> None:
        """See Channel."""
        await self._signs.show(target, state)

    # ---- files and people

    async def fetch_file(self, attachment: Attachment, into: Path, limit: int) -> None:
        """See Channel."""
        most = min(limit, self._file_limit)
        if attachment.size > most:
            raise PayloadRefused(f"the file has {attachment.size:,} bytes, {most:,} are allowed")
        await self._calls.fetch(attachment.file_id, into, most)

    async def roles(self, actor: Actor, thread: ThreadKey) -> frozenset[str]:
        """`administrator` for a group's administrators, `creator` as well for its owner."""
        if not thread.conversation.startswith("-"):
            return frozenset()
        key = (thread.conversation, actor.user)
        known = self._roles.get(key)
        if known is not None and self._monotonic() - known[0] < _ROLES_KEPT:
            return known[1]
        status = await self._calls.member_status(int(thread.conversation), int(actor.user))
        found = frozenset(_ADMINS.get(status, ()))
        remember(self._roles, key, (self._monotonic(), found))
        return found

    async def private(self, actor: Actor) -> ThreadKey | None:
        """The chat with that person; Telegram refuses to post there until they have written."""
        return ThreadKey(self.name, str(self.me.id), actor.user, "")

    async def earlier(self, thread: ThreadKey, before: str, limit: int) -> Sequence[InboundMessage]:
        """None: Telegram tells bots nothing of what was written before they were spoken to."""
        return ()
