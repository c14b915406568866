"""The Discord channel. What it says goes out through calls.py, what comes in is read by wire.py.

Receives over the gateway; presses and commands are acknowledged only after `Inbound` has stored them. See
channels/base.py for the promises.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

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
    TargetGone,
    ThreadKey,
)
from channels.discord import cards, commands, dress, refs, render, wire
from channels.discord.answering import Answering
from channels.discord.calls import Calls, Json, Upload
from channels.discord.errors import NoSuchChannel, Refused, TokenRefused
from channels.discord.files import Files, upload_of
from channels.discord.hearing import Hearing
from channels.discord.limits import FRESH_SECONDS, HISTORY, LIMITS
from channels.discord.pacing import Pacing
from channels.discord.people import People
from channels.discord.progress import Live, Signs
from channels.discord.receiving import Gateway, Shards, State
from channels.discord.redact import forget, quieten
from channels.discord.remnants import Remnants, marked
from channels.discord.threads import Threads
from channels.discord.transport import API, Client
from channels.discord.whispers import Whispers
from channels.discord.wire_json import Node
from channels.discord.wire_values import Me, Mention
from channels.discord.world import World

log = logging.getLogger("channels.discord")

UP_SECONDS: Final = 20.0  # that `start` waits for the first connection
_PAGES: Final = 10  # of a thread's history that are looked through for earlier messages
_KEPT: Final = 1000  # unfinished answers, and direct conversations, remembered
_TOKEN: Final = re.compile(r"[\w-]{18,}\.[\w-]{4,}\.[\w-]{20,}", re.ASCII)


class _Put(Protocol):
    async def __call__(self, payload: Json, *, uploads: Sequence[Upload] = ()) -> MessageRef | None: ...


class DiscordChannel:
    """One bot. `token` is the bot's. `api_base` without a slash at the end.

    threads: whether a mention in a channel opens a thread, or is answered in place. mention: when a
    channel's messages count ("start": to begin, not to go on). shards: connections to the gateway, None for
    a single one. guilds: register the commands in these alone, where they appear at once (development).
    agents, models: what people can choose from. file_limit: the most bytes of a file that is fetched. sleep,
    monotonic: time, for tests. on_state: told whenever `state` changes.
    """

    name = refs.CHANNEL
    abilities = Abilities(forms=True)
    limits = LIMITS

    def __init__(
        self,
        token: str,
        *,
        api_base: str = API,
        threads: bool = True,
        mention: Mention = "start",
        shards: Shards = None,
        guilds: Sequence[str] = (),
        agents: Sequence[str] = (),
        models: Sequence[str] = (),
        file_limit: int = LIMITS.file_in,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        on_state: Callable[[State], None] = lambda state: None,
    ) -> None:
        _check(token, shards)
        self.state: State = "starting"
        self.refused: Refused | None = None  # set when the token stopped working meanwhile
        self._on_state, self._sleep = on_state, sleep
        self._guilds, self._agents, self._models = tuple(guilds), tuple(agents), tuple(models)
        self._filters = quieten(token)
        self._world = World()
        self._gateway = Gateway(
            token,
            api_base=api_base.rstrip("/"),
            shards=shards,
            take=self._take,
            on_state=self._enter,
            sleep=sleep,
            monotonic=monotonic,
        )
        pacing = Pacing(sleep, monotonic)
        self._calls = Calls(self._gateway.http, pacing, on_refused=self._refuse)
        self._threads = Threads(self._calls, self._world)
        self._files = Files(self._calls, api_base)
        self._whispers = Whispers(self._calls, monotonic)
        self._people = People(
            member=self._calls.member, administers=self._world.administers, monotonic=monotonic
        )
        self._remnants = Remnants(self._calls, self._threads, self._own_id)
        drawing = marked(self._calls, self._threads, self._remnants)
        self._signs = Signs(drawing, sleep=sleep, monotonic=monotonic)
        self._hearing = Hearing(
            world=self._world,
            calls=self._calls,
            threads_calls=self._threads,
            people=self._people,
            mention=mention,
            threads=threads,
            sleep=sleep,
            on_ready=self._ready,
        )
        self._file_limit, self._opens = min(file_limit, LIMITS.file_in), threads
        self._settled = asyncio.Event()  # whether it is known how receiving stands
        self._registered = False  # whether our commands are, or are being
        self._known = asyncio.Event()  # whether that was tried
        self._receiving: asyncio.Task[None] | None = None
        self._directs: OrderedDict[str, ThreadKey] = OrderedDict()  # person -> our direct messages
        self._unfinished: OrderedDict[ThreadKey, Live] = OrderedDict()  # what an answer could not replace yet

    # ---- receiving

    @property
    def me(self) -> Me | None:
        """Who we are; None until Discord has told."""
        return self._world.me

    @property
    def unknown(self) -> dict[str, int]:
        """How often payloads of which unknown shape came in."""
        return dict(self._hearing.unknown)

    async def start(self, inbound: Inbound) -> None:
        """See Channel. Raises Refused."""
        await self._begin(inbound)
        self._receiving = asyncio.create_task(self._receive(), name="discord receiving")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(UP_SECONDS):
                await self._settled.wait()
                if self.state == "up":
                    await self._known.wait()
        if self.refused is not None:
            refused = self.refused
            await self.stop()
            raise refused

    async def attach(self, inbound: Inbound) -> Client:
        """A client of the library that somebody else is going to connect."""
        await self._begin(inbound)
        return self._gateway.prepare()

    async def stop(self) -> None:
        """See Channel. What is in hand is stored and answered first."""
        self._hearing.stopping = True
        await self._hearing.close()
        await self._signs.close()
        await self._remnants.close()
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.gather(self._receiving, return_exceptions=True)
        await self._gateway.close()
        await self._people.close()
        await self._files.close()
        forget(self._filters)
        if self.refused is None:
            self._enter("stopped")

    async def _begin(self, inbound: Inbound) -> None:
        self._hearing.inbound = inbound
        self._hearing.answering = Answering(
            inbound=inbound,
            calls=self._calls,
            threads=self._threads,
            whispers=self._whispers,
            agents=self._agents,
            models=self._models,
            soon=self._hearing.soon,
            sleep=self._sleep,
        )
        self._files.open()
        try:
            await self._hearing.catchup.prepare()
        except Exception as error:  # by the contract any error means: ask again; it is, with the session
            log.warning("discord: what was seen before cannot be told yet (%s)", type(error).__name__)

    async def _receive(self) -> None:
        try:
            await self._gateway.run()
        except Refused as refused:
            self._refuse(refused)

    def _take(self, event: str, data: object) -> None:
        self._hearing.take(event, data)

    def _own_id(self) -> str:
        return self._world.me.user if self._world.me else ""

    def _refuse(self, refused: Refused) -> None:
        if self.refused is None:
            self.refused = refused
            log.error("%s; this channel is off until then", refused)
            self._enter("refused")
            if self._receiving is not None and self._receiving is not asyncio.current_task():
                self._receiving.cancel()

    def _enter(self, state: State) -> None:
        self._settled.set()
        if state != self.state and (self.refused is None or state == "refused"):
            self.state = state
            self._on_state(state)

    # ---- commands

    def _ready(self) -> None:
        if not self._registered:
            self._registered = True
            self._hearing.soon(self._register())

    async def _register(self) -> None:
        """Tell Discord of our commands, where what it knows differs."""
        application = self._world.me.application if self._world.me else ""
        wanted = commands.definitions(self._agents, self._models, in_guild=bool(self._guilds))
        try:
            for guild in self._guilds or ("",):
                known = await self._calls.commands(application, guild)
                if commands.digest(known) != commands.digest(wanted):
                    await self._calls.put_commands(application, wanted, guild)
                    log.info("discord: commands registered")
        except ChannelError as error:
            self._registered = False  # with the next session
            log.warning("discord: the commands could not be registered: %s", error)
        finally:
            self._known.set()

    # ---- sending

    def parts(self, message: OutboundMessage) -> Sequence[OutboundMessage]:
        """See Channel."""
        return render.parts(message)

    async def send(self, target: ThreadKey, message: OutboundMessage) -> MessageRef:
        """See Channel. Raises PayloadRefused for a message that `parts` would cut into several."""
        pieces, target = render.parts(message), await self._resolved(target)
        if len(pieces) != 1:
            raise PayloadRefused(f"this takes {len(pieces)} Discord messages; send its parts one by one")
        part = pieces[0]
        if target.workspace == refs.DM:  # where there are no roles
            part = replace(part, mention_roles=())
        uploads = [await upload_of(file) for file in part.files]
        if part.only is not None:
            drawn = render.message(part)
            return await self._whispers.tell(part.reply_to, target, part.only.user, drawn, uploads=uploads)
        if part.kind == "notice" and not part.files:
            return await self._post(target, part)
        live = self._unfinished.pop(target, None) or await self._signs.settle(target)
        self._hearing.soon(self._remnants.look(target))
        try:
            return await self._replacing(live, target, part, uploads)
        except (ChannelBusy, ChannelDown):
            if live is not None:
                self._remember(target, live)
            raise

    async def _post(self, target: ThreadKey, part: render.Part, uploads: Sequence[Upload] = ()) -> MessageRef:
        drawn = render.message(part)
        try:
            return await self._threads.post(target, drawn, uploads=uploads, reply_to=part.reply_to)
        except NoSuchChannel:
            raise
        except TargetGone as refusal:
            if uploads:  # words may be welcome all the same, and can tell that the file was not
                raise PayloadRefused(refusal.reason) from None
            raise

    async def _replacing(
        self, live: Live | None, target: ThreadKey, part: render.Part, uploads: Sequence[Upload]
    ) -> MessageRef:
        """Send an answer, in place of what was shown while it came to be."""
        if live is None:
            return await self._post(target, part, uploads)
        pages = part.mentions or part.mention_roles  # an edit reaches nobody
        if live.age < FRESH_SECONDS and not pages and not uploads:
            try:
                await self._threads.change(live.ref, render.message(part))
            except (MessageGone, PayloadRefused) as refusal:
                log.info("discord: a progress message could not become the answer: %s", refusal)
            else:
                return live.ref
        ref = await self._post(target, part, uploads)
        self._hearing.soon(self._signs.remove(live.ref))
        return ref

    def _remember(self, target: ThreadKey, live: Live) -> None:
        self._unfinished[target] = live
        while len(self._unfinished) > _KEPT:
            self._unfinished.popitem(last=False)

    def below(self, target: ThreadKey, ref: MessageRef) -> ThreadKey:
        """See Channel. The thread is opened by the first call about it. Direct messages have none."""
        place, message = refs.unpack_ref(ref)
        if target.workspace == refs.DM:
            return refs.thread_key("", place)
        return target if target.thread or not self._opens else refs.in_thread(target, message)

    async def edit(self, ref: MessageRef, message: OutboundMessage) -> None:
        """See Channel. Of a message that needs several parts the first is shown."""
        with _foreign_is_gone():
            await self._threads.change(ref, render.message(render.parts(message)[0]))

    # ---- cards

    async def show(self, target: ThreadKey, card: Card) -> MessageRef:
        """See Channel. Arguments that do not fit are a file of the same message."""
        target = await self._resolved(target)
        live = self._unfinished.pop(target, None) or await self._signs.settle(target)
        if live is not None:
            self._hearing.soon(self._signs.remove(live.ref))
        self._hearing.soon(self._remnants.look(target))

        async def put(payload: Json, *, uploads: Sequence[Upload] = ()) -> MessageRef:
            return await self._threads.post(target, payload, uploads=uploads, once=card.once)

        if target.workspace == refs.DM:  # where there are no roles
            card = replace(card, ask_roles=())
        ref = await _drawn(card, put, mention=True) or MessageRef("")
        if card.repeat and ref and not await self._says_repeat(ref):
            log.info("discord: a card that was posted before is brought up to date")
            await self.redraw(ref, replace(card, repeat=False))
        return ref

    async def _says_repeat(self, ref: MessageRef) -> bool:
        """Whether it was posted just now; what an earlier attempt has posted says nothing of a repeat."""
        try:
            shown = await self._calls.message(*refs.unpack_ref(ref))
        except ChannelError as error:  # not to be read: it is drawn anew, which is right in any case
            log.info("discord: what a card shows could not be read: %s", error)
            return False
        return dress.REPEAT in json.dumps(shown)

    async def redraw(self, ref: MessageRef, card: Card) -> None:
        """See Channel."""

        async def put(payload: Json, *, uploads: Sequence[Upload] = ()) -> None:
            await self._threads.change(ref, payload, uploads=uploads)

        with _foreign_is_gone():
            await _drawn(card, put)

    async def notify_actor(self, press: InboundPress, text: str) -> None:
        """See Channel. Only while the press's token lives; later the card shows it."""
        if not text:
            return
        try:
            await self._whispers.follow(refs.interaction_of(press.action_id), render.private(text))
        except ChannelError as error:
            log.info("discord: a notice could not be shown: %s", error)

    async def progress(self, target: ThreadKey, state: Progress) -> None:
        """See Channel."""
        await self._signs.show(await self._resolved(target), state)

    # ---- files, people, and what was said before

    async def fetch_file(self, attachment: Attachment, into: Path, limit: int) -> None:
        """See Channel."""
        await self._files.fetch(attachment, into, min(limit, self._file_limit))

    async def roles(self, actor: Actor, thread: ThreadKey) -> frozenset[str]:
        """The ids of the actor's roles in that server, and `administrator` where it holds."""
        if thread.workspace in ("", refs.DM):
            return frozenset()
        return await self._people.roles(actor.user, thread.workspace)

    async def private(self, actor: Actor) -> ThreadKey | None:
        """The direct messages with that person."""
        return await self._direct(actor.user)

    async def _resolved(self, target: ThreadKey) -> ThreadKey:
        """The place itself, where a key names a person instead."""
        user = refs.person_of(target)
        return await self._direct(user) if user else target

    async def _direct(self, user: str) -> ThreadKey:
        if user not in self._directs:
            self._directs[user] = refs.thread_key("", await self._calls.direct(user))
            while len(self._directs) > _KEPT:
                self._directs.popitem(last=False)
        return self._directs[user]

    async def earlier(self, thread: ThreadKey, before: str, limit: int) -> Sequence[InboundMessage]:
        """See Channel. None outside of threads: a channel is no conversation of anybody's."""
        me = self._world.me
        if me is None or not thread.thread or limit <= 0 or thread.thread == before:
            return ()
        found: OrderedDict[str, InboundMessage] = OrderedDict()  # the newest first
        oldest = before if refs.is_id(before) else ""
        for _ in range(_PAGES):
            try:
                page = await self._calls.history(thread.thread, before=oldest)
            except TargetGone:  # not opened yet, or not to be read
                break
            for raw in page:
                message = wire.earlier(raw, thread, me, self._world.parents)
                if message is not None and message.message_id != before:
                    found.setdefault(message.message_id, message)
            if len(page) < HISTORY or len(found) >= limit:
                break
            oldest = Node(page[-1]).id("id")
        return [*reversed([*found.values()][:limit])]


async def _drawn(card: Card, put: _Put, *, mention: bool = False) -> MessageRef | None:
    """Deliver a card, with its file; when that cannot be delivered, without whatever lets it run. mention:
    notify those who are asked."""
    file = cards.args_file(card)
    payload = cards.card(card, file=file, mention=mention)
    if file is None or not payload.get("attachments"):
        return await put(payload)
    try:
        return await put(payload, uploads=[Upload(name=file.name, content=file.content)])
    except (PayloadRefused, TargetGone) as error:
        log.warning("discord: the arguments of a card could not be attached: %s", error)
    return await put(cards.card(card, file=file, readable=False, mention=mention))


def _check(token: str, shards: object) -> None:
    """Raises TokenRefused for what cannot be a bot's token; the text never holds it."""
    if not _TOKEN.fullmatch(token):
        raise TokenRefused("it does not have the shape of a bot's token, three parts with dots between")
    if isinstance(shards, int) and shards < 1:
        raise ValueError(f"shards must be at least 1, not {shards}")


@contextlib.contextmanager
def _foreign_is_gone() -> Iterator[None]:
    """A reference that names no message."""
    try:
        yield
    except ValueError:
        raise MessageGone("this message cannot be changed") from None
