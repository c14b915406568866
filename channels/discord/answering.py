"""Interactions: stored, then answered, always within three seconds and once.

Storing gets two of them. What takes longer is acknowledged all the same and goes on; what cannot be stored
is said to the person, and nobody believes it was.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from channels.base import Card, ChannelError, Form, Inbound, InboundPress
from channels.discord import calls as c
from channels.discord import cards, commands, modals, refs, render, wire
from channels.discord import wire_values as v
from channels.discord.calls import Calls, Json, Upload
from channels.discord.limits import EPHEMERAL, STORE_SECONDS
from channels.discord.threads import Threads
from channels.discord.whispers import Whispers
from channels.discord.wire_json import Node
from channels.discord.wire_values import Handle

log = logging.getLogger("channels.discord")
T = TypeVar("T")

_FIRST_PAUSE, _LAST_PAUSE = 0.1, 0.5  # seconds between two tries to store
_LONGEST: Final = 60.0  # for which something that was acknowledged is still tried
_KEPT: Final = 500  # forms of several pages, or with mistakes, whose values are remembered
_ABOUT: Final = 300  # characters of a message that somebody asked about

NOT_STORED: Final = (
    "This could not be stored just now, so nothing has happened. Please try again in a moment."
)
NOT_NOW: Final = "This could not be opened just now. Please try again in a moment."
BEGIN_AGAIN: Final = (
    "What you filled in before is forgotten by now, and nothing is decided. Please begin again from the card."
)
NOT_HERE: Final = "This is none of what I can do here."
NOTHING_SAID: Final = "There was nothing in it that I could read."
INVITE_FIRST: Final = "I am not in this conversation, so I could not answer here. Invite me first."
SENT: Final = "All of it is sent."
_WORDS: Final = {v.NOT_THERE: INVITE_FIRST, v.NOTHING: NOTHING_SAID}
_MENUS: Final[Mapping[str, commands.Kind]] = {"code": "code", "agent": "agent", "model": "model"}

Typed = dict[str, str | tuple[str, ...]]


class Answering:
    """agents, models: what is suggested while somebody types."""

    def __init__(
        self,
        *,
        inbound: Inbound,
        calls: Calls,
        threads: Threads,
        whispers: Whispers,
        agents: Sequence[str],
        models: Sequence[str],
        soon: Callable[[Coroutine[Any, Any, None]], None],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._inbound, self._calls, self._threads = inbound, calls, threads
        self._whispers, self._agents, self._models = whispers, agents, models
        self._soon, self._sleep = soon, sleep
        self._typed: OrderedDict[tuple[str, str], Typed] = OrderedDict()  # (user, card and form)

    async def take(self, parsed: v.Parsed, data: object) -> None:
        """Answer one interaction. Raises nothing that concerns the person only."""
        handle = wire.handle_of(data)
        if handle is None:
            return
        match parsed:
            case InboundPress():
                await self._presses((parsed,), handle)
            case v.Toggled(presses=presses):
                await self._presses(presses, handle)
            case v.FormWanted():
                await self._form(parsed)
            case v.FormSent():
                await self._submitted(parsed)
            case v.CardWanted():
                await self._page(parsed)
            case v.CommandGiven():
                await (self._hidden(parsed) if parsed.kind == "other" else self._asked(parsed))
            case v.AutocompleteWanted():
                await self._suggest(parsed)
            case v.Ignored():
                await self._decline(parsed, handle, Node(data))

    # ---- the first answer

    async def _respond(
        self,
        handle: Handle,
        kind: int,
        data: Json | None = None,
        *,
        uploads: Sequence[Upload] = (),
        thinks: bool = False,
    ) -> bool:
        """Whether it was taken. What was pressed counts also when this comes too late."""
        try:
            await self._calls.respond(handle, kind, data, uploads=uploads)
        except ChannelError as error:
            log.warning("discord: an interaction could not be answered: %s", error)
            self._whispers.unanswered(handle.id)
            return False
        self._whispers.answered(handle.id, thinks=thinks)
        return True

    async def _say(self, handle: Handle, text: str) -> None:
        await self._respond(handle, c.MESSAGE, render.private(text))

    # ---- storing

    async def _within(self, work: Coroutine[Any, Any, T], handle: Handle) -> asyncio.Task[T]:
        """Give it its two seconds; it may not be done then."""
        task = asyncio.create_task(work, name=f"discord interaction {handle.id}")
        await asyncio.wait({task}, timeout=STORE_SECONDS)
        return task

    async def _stored(self, store: Callable[[], Awaitable[None]], seconds: float) -> bool:
        """Try so long, and once at least; whether it is stored."""
        loop, pause = asyncio.get_running_loop(), _FIRST_PAUSE
        until = loop.time() + seconds
        while True:
            try:
                await store()
            except Exception as error:  # by the contract any error means: not stored
                log.warning("discord: not stored yet (%s); trying again", type(error).__name__)
                if loop.time() + pause >= until:
                    return False
            else:
                return True
            await self._sleep(pause)
            pause = min(_LAST_PAUSE, 2 * pause)

    async def _late(self, storing: asyncio.Task[bool], handle: Handle) -> None:
        """What was acknowledged before it was stored: say so if it never is."""
        try:
            async with asyncio.timeout(_LONGEST):
                stored = await storing
        except TimeoutError:
            stored = False
        if not stored:
            await self._whispers.follow(handle.id, render.private(NOT_STORED))

    async def _settle(
        self,
        store: Callable[[], Awaitable[None]],
        handle: Handle,
        kind: int,
        data: Json | None = None,
        *,
        thinks: bool = False,
    ) -> bool:
        """Store, then answer so; whether it is not known to have failed."""
        storing = await self._within(self._stored(store, 0.9 * STORE_SECONDS), handle)
        if storing.done() and not storing.result():
            await self._say(handle, NOT_STORED)
            return False
        await self._respond(handle, kind, data, thinks=thinks)
        if not storing.done():
            self._soon(self._late(storing, handle))
        return True

    # ---- presses

    async def _presses(self, presses: Sequence[InboundPress], handle: Handle) -> None:
        first = presses[0]
        self._whispers.remember(handle, first.thread, first.actor.user)
        left = list(presses)

        async def store() -> None:
            while left:  # those that are stored are not handed over a second time
                await self._inbound.press(left[0])
                left.pop(0)

        await self._settle(store, handle, c.DEFERRED_UPDATE)

    async def _page(self, wanted: v.CardWanted) -> None:
        """Another page of a card's options, drawn into the card itself; nothing is decided by it."""
        handle, press = wanted.handle, wanted.press
        self._whispers.remember(handle, press.thread, press.actor.user)
        card = await self._told(self._inbound.card(press), handle)
        if not isinstance(card, Card):
            await self._say(handle, card)
            return
        file = cards.args_file(card)
        drawn = cards.card(card, file=file, page=wanted.page)
        uploads = [Upload(name=file.name, content=file.content)] if file and drawn.get("attachments") else []
        await self._respond(handle, c.UPDATE, drawn, uploads=uploads)

    async def _told(self, asking: Coroutine[Any, Any, T | str], handle: Handle) -> T | str:
        """What the gateway says, or in words that it does not."""
        task = await self._within(asking, handle)
        if not task.done():
            task.cancel()
            return NOT_NOW
        if (error := task.exception()) is not None:
            log.warning("discord: what is stored could not be told (%s)", type(error).__name__)
            return NOT_NOW
        return task.result()

    # ---- forms

    async def _form(self, wanted: v.FormWanted) -> None:
        handle, press, page = wanted.handle, wanted.press, wanted.page
        self._whispers.remember(handle, press.thread, press.actor.user)
        card = _message(press)
        elsewhere = handle.message != card  # asked for by a later message, which goes on with the card
        typed = self._typed.get(_key(press)) if elsewhere else None
        if page > 0 and typed is None:
            await self._say(handle, BEGIN_AGAIN)
            return
        form = await self._told(self._inbound.form(press), handle)
        if not isinstance(form, Form):
            await self._say(handle, form)
        elif page >= modals.pages(form):
            await self._say(handle, modals.keeps_all(form))
        else:
            modal = modals.form(form, page, typed, card=card if elsewhere else "")
            await self._respond(handle, c.MODAL, modal)

    async def _submitted(self, sent: v.FormSent) -> None:
        handle, press, page = sent.handle, sent.press, sent.page
        self._whispers.remember(handle, press.thread, press.actor.user)
        components = sent.data.get("components")
        components = components if isinstance(components, list) else []
        before = self._typed.get(_key(press)) if page > 0 or handle.message != _message(press) else {}
        if page > 0 and before is None:
            await self._say(handle, BEGIN_AGAIN)
            return
        asked = await self._told(self._inbound.form(press), handle)
        form = asked if isinstance(asked, Form) else None
        if form is None and (page > 0 or modals.needs_form(components)):
            await self._say(handle, str(asked))
            return
        typed = (before or {}) | modals.values(components, form)
        self._keep(press, typed)
        if form is not None and page + 1 < modals.pages(form):
            await self._go_on(sent, modals.more(form, page + 1, _message(press)))
            return
        await self._complete(sent, replace(press, values=dict(typed)), form)

    async def _complete(self, sent: v.FormSent, press: InboundPress, form: Form | None) -> None:
        handle = sent.handle
        faults = await self._told(self._inbound.faults(press), handle)
        if isinstance(faults, str):
            await self._say(handle, NOT_STORED)
            return
        if faults and form is not None:
            await self._go_on(sent, modals.wrong(form, faults, _message(press)))
            return
        own = handle.message == _message(press)
        done = None if own else {"content": SENT, "components": [], "allowed_mentions": {"parse": []}}
        kind: int = c.DEFERRED_UPDATE if own else c.UPDATE
        if not handle.message:
            kind, done = c.DEFERRED_UPDATE, None
        if await self._settle(lambda: self._inbound.press(press), handle, kind, done):
            self._typed.pop(_key(press), None)

    async def _go_on(self, sent: v.FormSent, message: Json) -> None:
        """An ephemeral message after the card's own form, or in place of the one before."""
        first = sent.handle.message in ("", _message(sent.press))
        await self._respond(sent.handle, c.MESSAGE if first else c.UPDATE, message)

    def _keep(self, press: InboundPress, typed: Typed) -> None:
        key = _key(press)
        self._typed[key] = typed
        self._typed.move_to_end(key)
        while len(self._typed) > _KEPT:
            self._typed.popitem(last=False)

    # ---- commands

    async def _hidden(self, given: v.CommandGiven) -> None:
        """A command that is answered to its author alone."""
        message = given.message
        self._whispers.remember(given.handle, message.thread, message.actor.user)
        await self._settle(
            lambda: self._inbound.message(message),
            given.handle,
            c.DEFERRED,
            {"flags": EPHEMERAL},
            thinks=True,
        )

    async def _asked(self, given: v.CommandGiven) -> None:
        """Words to the agent, for all to see."""
        given = replace(given, message=replace(given.message, agent=given.options.get("agent", "")))
        message = given.message
        self._whispers.remember(given.handle, message.thread, message.actor.user)
        if given.opens_thread:
            await self._begun(given)
        else:
            shown = render.asked(message.actor, _prompt(given))
            await self._settle(lambda: self._inbound.message(message), given.handle, c.MESSAGE, shown)

    async def _begun(self, given: v.CommandGiven) -> None:
        """The thread begins on the answer, so the answer has to be there before the thread's key is known."""
        handle = given.handle
        try:
            answer = await self._calls.respond(handle, c.DEFERRED, told=True)
            begins = c.message_of(answer) or await self._calls.original(handle)
        except ChannelError as error:
            log.warning("discord: an interaction could not be answered: %s", error)
            self._whispers.lost(handle.id)
            return
        self._whispers.answered(handle.id)
        self._threads.expect(begins, _prompt(given))
        message = replace(given.message, thread=given.in_thread(begins))
        stored = await self._stored(lambda: self._inbound.message(message), _LONGEST)
        shown = render.asked(message.actor, _prompt(given)) if stored else render.private(NOT_STORED)
        try:
            await self._calls.fill_in(handle, shown)
        except ChannelError as error:
            log.warning("discord: what was asked could not be shown: %s", error)

    async def _suggest(self, wanted: v.AutocompleteWanted) -> None:
        kind = _MENUS.get(wanted.option)
        found: list[Json] = []
        if kind is not None:
            waiting: Sequence[Card] | str = ()
            if kind == "code":
                waiting = await self._told(_waiting(self._inbound, wanted), wanted.handle)
            open_cards = () if isinstance(waiting, str) else waiting
            found = [*commands.autocomplete(kind, wanted.typed, open_cards, self._agents, self._models)]
        await self._respond(wanted.handle, c.CHOICES, {"choices": found})

    # ---- what is none of ours

    async def _decline(self, ignored: v.Ignored, handle: Handle, node: Node) -> None:
        if ignored.reason in (v.PING, v.ELSEWHERE):
            return
        match node.number("type"):
            case 3 | 5 if node.at("message"):
                await self._respond(handle, c.DEFERRED_UPDATE)
            case 4:
                await self._respond(handle, c.CHOICES, {"choices": []})
            case _:
                await self._say(handle, _WORDS.get(ignored.reason, NOT_HERE))


async def _waiting(inbound: Inbound, wanted: v.AutocompleteWanted) -> Sequence[Card]:
    return await inbound.waiting(wanted.actor)


def _message(press: InboundPress) -> str:
    """The id of the card's message, "" for none."""
    return refs.unpack_ref(press.message_ref)[1] if press.message_ref else ""


def _key(press: InboundPress) -> tuple[str, str]:
    return press.actor.user, f"{_message(press)} {press.data}"


def _prompt(given: v.CommandGiven) -> str:
    message = given.message
    return message.text or f"about: {message.quote[:_ABOUT] or 'a file'}"
