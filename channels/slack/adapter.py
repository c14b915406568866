"""The Slack channel. What it says goes out through calls.py, what comes in is read by wire.py.

Receives over Socket Mode or HTTP, both through one bolt app; a payload is acknowledged only after `Inbound`
has stored it. See channels/base.py for the promises.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

from channels.base import (
    Abilities,
    Actor,
    Attachment,
    Card,
    ChannelBusy,
    ChannelDown,
    ChannelError,
    Inbound,
    InboundMessage,
    InboundPress,
    MessageGone,
    MessageRef,
    OutboundMessage,
    PayloadRefused,
    Progress,
    ThreadKey,
)
from channels.slack import refs, render, wire
from channels.slack.calls import Calls
from channels.slack.directs import Directs
from channels.slack.errors import Refused, TokenRefused
from channels.slack.files import Files
from channels.slack.hearing import Hearing
from channels.slack.homes import Homes
from channels.slack.limits import LIMITS, SECONDS_BETWEEN
from channels.slack.listener import Listener
from channels.slack.pacing import Pacing
from channels.slack.people import People
from channels.slack.progress import Live, Signs
from channels.slack.receiving import Entrance, State
from channels.slack.redact import forget, quieten
from channels.slack.remnants import UNMARKED, Remnants, marked
from channels.slack.showing import Showing
from channels.slack.sockets import PING_SECONDS, Sockets
from channels.slack.whispers import Whispers
from channels.slack.wire_values import Me, Mention

log = logging.getLogger("channels.slack")
K = TypeVar("K")
V = TypeVar("V")

FRESH: Final = 60.0  # seconds for which a progress message may become the answer, which notifies nobody
UP_SECONDS: Final = 20.0  # that `start` waits for the first connection
_FIRST_PAUSE, _LAST_PAUSE = 1.0, 30.0  # seconds between two tries to reach Slack at the start
MOST_CONNECTIONS: Final = 10  # that Slack lets an app have
_LOOKED_THROUGH: Final = 1000  # messages of a thread that are looked through for earlier ones
_KEPT: Final = 1000  # unfinished answers remembered
_TRIES: Final = 5  # of a word to one person that Slack asks to delay
_BOT_TOKEN: Final = re.compile(r"(xoxe\.)?xoxb-[\w-]{5,}", re.ASCII)
_APP_TOKEN: Final = re.compile(r"xapp-[\w-]{5,}", re.ASCII)


class SlackChannel:
    """One app in one workspace. `bot_token` is xoxb-..., `app_token` xapp-... for Socket Mode; without it
    `signing_secret` for HTTP. `api_base` with a slash at the end.

    listen, path: where we listen over HTTP; port 0 takes a free one. connections: of Socket Mode. mention:
    when a channel's messages count ("start": to begin, not to go on). file_limit: the most bytes of a file
    that is fetched. between: seconds between two messages to one channel. ping_seconds: between two looks at
    a connection. sleep, monotonic: time, for tests. on_state: told whenever `state` changes.
    """

    name = refs.CHANNEL
    abilities = Abilities(forms=True, streaming=True)
    limits = LIMITS

    def __init__(
        self,
        bot_token: str,
        *,
        app_token: str | None = None,
        signing_secret: str | None = None,
        api_base: str = "https://slack.com/api/",
        listen: tuple[str, int] = ("127.0.0.1", 3000),
        path: str = "/slack/events",
        connections: int = 2,
        mention: Mention = "start",
        file_limit: int = LIMITS.file_in,
        between: float = SECONDS_BETWEEN,
        ping_seconds: float = PING_SECONDS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        on_state: Callable[[State], None] = lambda state: None,
    ) -> None:
        _check(bot_token, app_token, signing_secret)
        if not 1 <= connections <= MOST_CONNECTIONS:
            raise ValueError(f"connections must be 1 to {MOST_CONNECTIONS}, not {connections}")
        self.state: State = "starting"
        self.refused: Refused | None = None  # set when a token stopped working meanwhile
        self._sleep, self._monotonic, self._on_state = sleep, monotonic, on_state
        self._filters = quieten(bot_token, app_token or "", signing_secret or "")
        pacing = Pacing(sleep, monotonic, between)
        self._calls = Calls(bot_token, app_token, api_base, pacing, on_refused=self._refuse)
        self._files = Files(self._calls, bot_token)
        self._showing, self._directs = Showing(self._calls, self._files), Directs(self._calls)
        self._people = People(user=self._calls.user, groups=self._calls.user_groups, monotonic=monotonic)
        self._whispers = Whispers(self._calls, monotonic)
        self._homes = Homes(self._calls, monotonic)
        self._remnants = Remnants(self._calls)
        self._signs = Signs(
            marked(self._calls, self._remnants),
            before=self._remnants.look,
            sleep=sleep,
            monotonic=monotonic,
        )
        self._hearing = Hearing(
            calls=self._calls,
            people=self._people,
            whispers=self._whispers,
            homes=self._homes,
            tell=self.notify_actor,
            mention=mention,
            sleep=sleep,
            monotonic=monotonic,
            on_removed=self._refuse,
            on_begun=self._remnants.fresh,
        )
        entrance = Entrance(self._calls.client, self._hearing.handle)
        self._sockets = self._made_sockets(entrance, connections, ping_seconds) if app_token else None
        self._listener = None if app_token else Listener(*listen, path, signing_secret or "", entrance.posted)
        self._file_limit = min(file_limit, LIMITS.file_in)
        self._settled = asyncio.Event()  # whether it is known how receiving stands
        self._receiving: asyncio.Task[None] | None = None
        self._unfinished: OrderedDict[ThreadKey, Live] = OrderedDict()  # what an answer could not replace yet

    def _made_sockets(self, entrance: Entrance, connections: int, ping_seconds: float) -> Sockets:
        return Sockets(
            address=self._calls.socket_address,
            take=entrance.envelope,
            web_client=self._calls.client,
            connections=connections,
            ping_seconds=ping_seconds,
            sleep=self._sleep,
            monotonic=self._monotonic,
            on_state=self._enter,
        )

    # ---- receiving

    @property
    def me(self) -> Me | None:
        """Who we are; None until Slack has told."""
        return self._hearing.me

    @property
    def http_port(self) -> int:
        """Where we listen for Slack's requests, 0 in Socket Mode."""
        return self._listener.port if self._listener else 0

    @property
    def unknown(self) -> dict[str, int]:
        """How often payloads of which unknown shape came in."""
        return dict(self._hearing.unknown)

    async def start(self, inbound: Inbound) -> None:
        """See Channel. Raises Refused, and ChannelDown when the port is taken."""
        self._hearing.inbound = self._homes.inbound = inbound
        self._calls.open()
        if self._listener is not None:
            try:
                await self._listener.start()
            except OSError as error:
                await self.stop()
                raise ChannelDown(f"the port cannot be used: {error.strerror}") from None
        try:
            await self._introduce()
        except Refused:
            await self.stop()
            raise
        except ChannelError as error:
            log.warning("slack: %s; trying again in the background", error)
            self._enter("down")
        self._receiving = asyncio.create_task(self._receive(), name="slack receiving")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(UP_SECONDS):
                await self._settled.wait()
        if self.refused is not None:
            refused = self.refused
            await self.stop()
            raise refused

    async def stop(self) -> None:
        """See Channel. What is in hand is stored and acknowledged first."""
        if self._sockets is not None:
            self._sockets.stop()
        if self._receiving is not None:
            await asyncio.wait({self._receiving}, timeout=0 if self._hearing.me is None else 10)
            self._receiving.cancel()
            await asyncio.gather(self._receiving, return_exceptions=True)
        if self._listener is not None:
            await self._listener.stop()
        await self._hearing.close()
        await self._signs.close()
        await self._remnants.close()
        await self._people.close()
        await self._calls.close()
        forget(self._filters)
        if self.refused is None:
            self._enter("stopped")

    async def _introduce(self) -> None:
        """Learn who we are. Raises ChannelError."""
        told = await self._calls.me()
        self._hearing.me = Me(
            team=str(told.get("team_id", "")),
            user=str(told.get("user_id", "")),
            bot=str(told.get("bot_id", "")),
            app=str(told.get("app_id", "")),
            enterprise=str(told.get("enterprise_id") or ""),
        )

    async def _receive(self) -> None:
        try:
            await self._insist_on_introduction()
            if self._sockets is not None:
                await self._sockets.run()
            else:
                self._enter("up")
        except Refused as refused:
            self._refuse(refused)

    async def _insist_on_introduction(self) -> None:
        pause = _FIRST_PAUSE
        while self._hearing.me is None:
            await self._sleep(pause)
            try:
                await self._introduce()
            except Refused:
                raise
            except ChannelBusy as busy:
                pause = busy.retry_after
            except ChannelError as error:
                log.debug("slack: %s", error)
                pause = min(_LAST_PAUSE, 2 * pause)

    def _refuse(self, refused: Refused) -> None:
        if self.refused is None:
            self.refused = refused
            log.error("%s; this channel is off until then", refused)
            self._enter("refused")
            if self._sockets is not None:
                self._sockets.stop()

    def _enter(self, state: State) -> None:
        self._settled.set()
        if state != self.state and (self.refused is None or state == "refused"):
            self.state = state
            self._on_state(state)

    # ---- sending

    def parts(self, message: OutboundMessage) -> Sequence[OutboundMessage]:
        """See Channel."""
        return render.parts(message)

    async def send(self, target: ThreadKey, message: OutboundMessage) -> MessageRef:
        """See Channel. Raises PayloadRefused for a message that `parts` would cut into several."""
        pieces = render.parts(message)
        if len(pieces) != 1:
            raise PayloadRefused(f"this takes {len(pieces)} Slack messages; send its parts one by one")
        part, target = pieces[0], await self._directs.place(target)
        if part.only is not None:
            return await self._privately(target, part, part.only)
        self._hearing.soon(self._remnants.look(target))
        if part.kind == "notice" and not part.files:
            return await self._calls.post(target, render.message(part))
        live = await self._shown(target)
        try:
            return await self._replacing(live, target, part)
        except (ChannelBusy, ChannelDown):
            if live is not None:
                _remember(self._unfinished, target, live)
            raise

    async def _shown(self, target: ThreadKey) -> Live | None:
        """What was shown while a turn worked, now for the answer to replace."""
        live, older = await self._signs.settle(target), self._unfinished.pop(target, None)
        if live is not None and older is not None:
            self._hearing.soon(self._signs.remove(older.ref))
        return live or older

    async def _replacing(self, live: Live | None, target: ThreadKey, part: render.Part) -> MessageRef:
        """Send an answer, in place of what was shown while it came to be."""
        if part.files:
            ref = await self._files.send(target, part.files[0])
        elif live is not None and live.age < FRESH and not (part.mentions or part.mention_roles):
            try:
                await self._calls.change(live.ref, {**render.content(part), **UNMARKED})
            except (MessageGone, PayloadRefused) as refusal:
                log.info("slack: a progress message could not become the answer: %s", refusal)
            else:
                return live.ref
            ref = await self._calls.post(target, render.message(part))
        else:
            ref = await self._calls.post(target, render.message(part))
        if live is not None:
            self._hearing.soon(self._signs.remove(live.ref))
        return ref

    async def _privately(self, target: ThreadKey, part: render.Part, only: Actor) -> MessageRef:
        if part.files:  # nothing ephemeral can hold a file
            channel = await self._directs.of(only.user)
            return await self._files.send(refs.thread_key(target.workspace, channel), part.files[0])
        return await self._whispers.tell(
            part.reply_to, target, only.user, render.content(part), seen_in=target.thread
        )

    def below(self, target: ThreadKey, ref: MessageRef) -> ThreadKey:
        """See Channel. Every message of ours may begin a thread."""
        if target.thread:
            return target
        channel, ts = refs.unpack_ref(ref)
        return refs.thread_key(target.workspace, channel, ts=ts)

    async def edit(self, ref: MessageRef, message: OutboundMessage) -> None:
        """See Channel. Of a message that needs several parts the first is shown."""
        with _foreign_is_gone():
            await self._calls.change(ref, render.content(render.parts(message)[0]))

    async def show(self, target: ThreadKey, card: Card) -> MessageRef:
        """See Channel. Arguments that do not fit go first, as a file."""
        target = await self._directs.place(target)
        live = await self._shown(target)
        if live is not None:
            self._hearing.soon(self._signs.remove(live.ref))
        self._hearing.soon(self._remnants.look(target))
        ref = await self._showing.show(target, card)
        self._draw_homes(self._homes.looking())
        return ref

    async def redraw(self, ref: MessageRef, card: Card) -> None:
        """See Channel."""
        with _foreign_is_gone():
            self._draw_homes(self._homes.stale(card))
            team = self._hearing.me.team if self._hearing.me else ""
            await self._showing.redraw(ref, card, team)

    def _draw_homes(self, actors: Iterable[Actor]) -> None:
        for actor in actors:
            self._hearing.soon(self._homes.publish(actor))

    async def notify_actor(self, press: InboundPress, text: str) -> None:
        """See Channel. Who pressed in the App Home reads it there."""
        in_home = press.listed or bool(refs.home_user(press.thread))  # drawn anew in any case
        if (text or in_home) and refs.kind_of(press.action_id) in ("press", "view"):
            await self._tell(press, text, _TRIES)
            if not in_home:  # it may have left the list there
                self._draw_homes([press.actor])

    async def _tell(self, press: InboundPress, text: str, tries: int) -> None:
        try:
            if press.listed or refs.home_user(press.thread):
                await self._homes.publish(press.actor, text)
                return
            await self._whispers.tell(
                press.action_id,
                press.thread,
                press.actor.user,
                render.private(text),
                seen_in=_seen_in(press),
            )
        except ChannelBusy as busy:
            if tries > 1:
                self._hearing.soon(self._tell_later(press, text, tries - 1, busy.retry_after))
        except ChannelError as error:
            log.info("slack: a notice could not be shown: %s", error)

    async def _tell_later(self, press: InboundPress, text: str, tries: int, seconds: float) -> None:
        await self._sleep(seconds)
        await self._tell(press, text, tries)

    async def progress(self, target: ThreadKey, state: Progress) -> None:
        """See Channel."""
        await self._signs.show(await self._directs.place(target), state)

    # ---- files, people, and what was said before

    async def fetch_file(self, attachment: Attachment, into: Path, limit: int) -> None:
        """See Channel."""
        await self._files.fetch(attachment, into, min(limit, self._file_limit))

    async def roles(self, actor: Actor, thread: ThreadKey) -> frozenset[str]:
        """The ids of the actor's user groups, and `admin`, `owner`, `guest`, `external` where it holds."""
        return await self._people.roles(actor, thread.workspace)

    async def private(self, actor: Actor) -> ThreadKey | None:
        """The root of the direct messages with that person."""
        me = self._hearing.me
        return None if me is None else refs.thread_key(me.team, await self._directs.of(actor.user))

    async def earlier(self, thread: ThreadKey, before: str, limit: int) -> Sequence[InboundMessage]:
        """See Channel. None at the root of a channel, which is no conversation of anybody's."""
        me = self._hearing.me
        if me is None or not thread.thread or limit <= 0:
            return ()
        latest = before if refs.is_ts(before) else ""
        found: deque[InboundMessage] = deque(maxlen=limit)
        seen = {before}  # the first message of a thread is on every page
        looked = 0
        async for raw in self._calls.replies(thread.conversation, thread.thread, latest):
            message = wire.earlier(raw, thread.conversation, me)
            if message is not None and message.message_id not in seen:
                seen.add(message.message_id)
                found.append(message)
            looked += 1
            if looked >= _LOOKED_THROUGH:
                break
        return await asyncio.gather(*map(self._hearing.named, found))


def _check(bot_token: str, app_token: str | None, signing_secret: str | None) -> None:
    """Raises TokenRefused for what cannot be what it should be; the text never holds it."""
    if not _BOT_TOKEN.fullmatch(bot_token):
        raise TokenRefused("bot_token", "it must begin with xoxb-")
    if app_token and not _APP_TOKEN.fullmatch(app_token):
        raise TokenRefused("app_token", "it must begin with xapp-")
    if not app_token and signing_secret is None:
        raise TokenRefused("app_token", "neither it nor signing_secret is there")


def _seen_in(press: InboundPress) -> str:
    """The thread in which the pressed message is read, "" when it stands in the conversation itself: an
    ephemeral message in a thread that nobody has begun is seen by nobody."""
    own = press.message_ref.rpartition(":")[2] if press.message_ref else ""
    return "" if own == press.thread.thread else press.thread.thread


@contextlib.contextmanager
def _foreign_is_gone() -> Iterator[None]:
    """A reference that names no message: of words for one person's eyes, or of a file."""
    try:
        yield
    except ValueError:
        raise MessageGone("this message cannot be changed") from None


def _remember(store: OrderedDict[K, V], key: K, value: V) -> None:
    """Keep the newest only."""
    store[key] = value
    store.move_to_end(key)
    while len(store) > _KEPT:
        store.popitem(last=False)
