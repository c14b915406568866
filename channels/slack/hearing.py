"""What comes in, from the parsed payload to `Inbound`: look-ups, hand-over, modals, the App Home.

`handle` returns once the payload is stored, and that is when it is acknowledged. Slack waits three seconds
for it, so what must be looked up before gets one of them, and what only follows from a payload (drawing
the home, offering prompts) is done after.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Final, TypeVar

from channels.base import (
    Actor,
    ChannelDown,
    ChannelError,
    Form,
    Inbound,
    InboundChange,
    InboundMessage,
    InboundPress,
    TargetGone,
    ThreadKey,
)
from channels.render.measure import cut
from channels.slack import modals, refs, render, wire
from channels.slack import wire_values as v
from channels.slack.calls import Calls
from channels.slack.errors import Refused, TokenRefused
from channels.slack.homes import Homes
from channels.slack.limits import LOOKUP_SECONDS, THREAD_TITLE
from channels.slack.lines import Lines, What
from channels.slack.people import People, Person
from channels.slack.redact import redacted
from channels.slack.whispers import Whispers

log = logging.getLogger("channels.slack")
T = TypeVar("T")

PROMPTS: Final = (
    ("What can you do?", "What can you do for me, and which tools do you have?"),
    ("Sum up this channel", "Sum up what matters in the channel that I am looking at."),
)
STORE_SECONDS: Final = 2.4  # from a payload's coming in, for which storing it is tried again: what people
# press comes only once, and what they write only a minute later
FORM_SECONDS: Final = 1.0  # that it may take to learn what a form holds, or what is wrong with one
OPEN_SECONDS: Final = 1.8  # that opening a modal may take: its trigger lives for three
_AGAIN_SECONDS: Final = 0.3  # for a person who was not known the first time
MOST_SHAPES: Final = 200  # that are counted one by one
_FIRST_PAUSE, _LAST_PAUSE = 0.1, 0.5  # seconds between two tries
_CLOSING: Final = 5.0  # seconds for what is still going on when the channel stops
_KEPT: Final = 1000  # assistant threads remembered
NOT_THERE: Final = "I am not in this conversation, so I could not answer there. Invite me first: /invite"
OTHERS: Final = "others"  # under which shapes are counted when there are too many
NOT_OPENED: Final = "The form could not be opened just now. Try again in a moment."

Answer = Mapping[str, Any] | None


class Hearing:
    """`me` and `inbound` are set when they are known. `tell(press, text)` is Channel.notify_actor.
    on_removed: told when the app was taken out of the workspace. on_begun: told of a thread that somebody
    begins."""

    def __init__(
        self,
        *,
        calls: Calls,
        people: People,
        whispers: Whispers,
        homes: Homes,
        tell: Callable[[InboundPress, str], Awaitable[None]],
        mention: v.Mention,
        sleep: Callable[[float], Awaitable[None]],
        monotonic: Callable[[], float],
        on_removed: Callable[[Refused], None],
        on_begun: Callable[[ThreadKey], None] = lambda thread: None,
    ) -> None:
        self.me: v.Me | None = None
        self.inbound: Inbound | None = None
        self.unknown: Counter[str] = Counter()
        self._calls, self._people, self._whispers, self._tell = calls, people, whispers, tell
        self._homes, self._mention, self._sleep, self._monotonic = homes, mention, sleep, monotonic
        self._on_removed, self._on_begun = on_removed, on_begun
        self._lines = Lines()
        self._untitled: OrderedDict[ThreadKey, None] = OrderedDict()  # assistant threads without a title
        self._tasks: set[asyncio.Task[None]] = set()

    async def handle(self, kind: v.Kind, payload: Mapping[str, Any]) -> Answer:
        """Hand one payload over; what to answer, if anything. Whatever this raises means: not stored."""
        inbound, me = self.inbound, self.me
        if inbound is None or me is None:
            raise ChannelDown("Slack has not told yet who we are")
        parsed = wire.parse(kind, payload, me, mention=self._mention, now=time.time())
        url = wire.response_url(payload)
        match parsed:
            case InboundMessage():
                self._whispers.remember(parsed.message_id, parsed.thread, parsed.actor.user, url)
                await self._message(inbound, parsed)
            case InboundPress():
                self._whispers.remember(parsed.action_id, parsed.thread, parsed.actor.user, url)
                await self._press(inbound, parsed)
            case InboundChange():
                await self._change(inbound, parsed)
            case v.FormWanted() | v.FormSent() | v.AskWanted() | v.AskSent():
                return await self._modal(inbound, parsed, url)
            case _:
                self._aside(parsed)
        return None

    def soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something after the acknowledgement. Its failure is logged."""
        task = asyncio.create_task(work, name="slack afterwards")
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def close(self) -> None:
        """Let what is going on end."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_CLOSING)
            for task in late:  # told to wait, by a flood
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        level = logging.INFO if isinstance(error, ChannelError) else logging.ERROR
        log.log(level, "slack: %s: %s", type(error).__name__, redacted(str(error)))

    # ---- messages and presses

    async def named(self, message: InboundMessage) -> InboundMessage:
        """With its author's name and standing, as far as these can be told quickly."""
        return _named(message, await self._person(message.actor, message.from_bot))

    async def _message(self, inbound: Inbound, message: InboundMessage) -> None:
        began = self._monotonic()
        looking = asyncio.ensure_future(self._person(message.actor, message.from_bot))
        try:
            async with self._turn(message):
                told = _named(message, await looking)
                await self._insist(lambda: self._store(inbound, told), began)
        finally:
            looking.cancel()
        if message.thread.thread == message.message_id:
            self._on_begun(message.thread)
        if message.thread in self._untitled:
            del self._untitled[message.thread]
            self.soon(self._calls.title(message.thread, cut(" ".join(message.text.split()), THREAD_TITLE)))

    def _turn(self, message: InboundMessage) -> AbstractAsyncContextManager[None]:
        """What was said first is stored first, however long a look-up takes. Commands and forms come as they
        come."""
        if not refs.is_ts(message.message_id):
            return contextlib.nullcontext()
        what: What = "edited" if message.edited else "said"
        return self._lines.turn(message.thread, message.message_id, what)

    async def _change(self, inbound: Inbound, change: InboundChange) -> None:
        if change.kind != "deleted":
            await inbound.change(change)
            return
        async with self._lines.turn(change.thread, change.message_id, "deleted"):
            await inbound.change(change)

    async def _store(self, inbound: Inbound, message: InboundMessage) -> None:
        """Hand over; who was not known may be by now."""
        if message.guest_unsure:
            message = _named(message, await self._person(message.actor, within=_AGAIN_SECONDS))
        await inbound.message(message)

    async def _press(self, inbound: Inbound, press: InboundPress) -> None:
        began = self._monotonic()
        person = await self._person(press.actor)
        told = replace(press, author=person.name)
        await self._insist(lambda: inbound.press(told), began)

    async def _person(self, actor: Actor, from_bot: bool = False, within: float = LOOKUP_SECONDS) -> Person:
        team = self.me.team if self.me else ""
        if from_bot:  # users.info knows no programs
            return Person(guest=actor.workspace != team)
        return await self._people.quickly(actor, team, within)

    async def _insist(self, store: Callable[[], Awaitable[T]], began: float) -> T:
        """Try again while there is time. Raises what the last try raised."""
        until, pause = began + STORE_SECONDS, _FIRST_PAUSE
        while True:
            try:
                return await store()
            except Exception as error:  # by the contract any error means: not stored
                if self._monotonic() + pause > until:
                    raise
                log.warning("slack: not stored yet (%s); trying again", type(error).__name__)
            await self._sleep(pause)
            pause = min(_LAST_PAUSE, 2 * pause)

    # ---- modals

    async def _modal(
        self,
        inbound: Inbound,
        parsed: v.FormWanted | v.FormSent | v.AskWanted | v.AskSent,
        url: str,
    ) -> Answer:
        match parsed:
            case v.FormWanted(press=press):
                self._whispers.remember(press.action_id, press.thread, press.actor.user, url)
                self.soon(self._form(inbound, parsed))
            case v.FormSent():
                return await self._submitted(inbound, parsed)
            case v.AskWanted(place=place, actor=actor):
                self._whispers.remember(parsed.own_id, place.thread, actor.user, url)
                self.soon(self._ask(parsed))
            case v.AskSent(message=message):
                await self._message(inbound, message)
        return None

    async def _form(self, inbound: Inbound, wanted: v.FormWanted) -> None:
        """Open a form; whoever pressed hears why it did not open."""
        form: Form | str = NOT_OPENED
        try:
            async with asyncio.timeout(FORM_SECONDS):
                form = await self._insist(lambda: inbound.form(wanted.press), self._monotonic())
        except Exception as error:  # whatever it was, the person has pressed and waits
            log.warning("slack: what a form holds is not known (%s)", type(error).__name__)
        if not isinstance(form, str):
            if await self._opened(wanted.trigger_id, modals.form(form, wanted.place.pack())):
                return
            form = NOT_OPENED
        await self._tell(wanted.press, form)

    async def _ask(self, wanted: v.AskWanted) -> None:
        place = wanted.place
        view = modals.ask_about(place.pack(), place.quoted)
        if not await self._reads(place.thread):
            view = modals.notice(NOT_THERE)
        if not await self._opened(wanted.trigger_id, view):
            content = render.private(NOT_OPENED)
            await self._whispers.tell(wanted.own_id, place.thread, wanted.actor.user, content)

    async def _reads(self, thread: ThreadKey) -> bool:
        """Whether we are in a conversation, where else an answer could not be posted. The shortcut is offered
        everywhere. Not told in time: yes."""
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                await anext(self._calls.replies(thread.conversation, thread.thread, ""), None)
        except (TargetGone, TimeoutError) as error:
            return isinstance(error, TimeoutError)
        except ChannelError as error:
            log.debug("slack: whether we are in a conversation is not known: %s", error)
        return True

    async def _opened(self, trigger_id: str, view: Mapping[str, Any]) -> bool:
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await self._calls.open_view(trigger_id, view)
        except (ChannelError, TimeoutError) as error:
            log.warning("slack: a modal could not be opened: %s", error or "it took too long")
            return False
        return True

    async def _submitted(self, inbound: Inbound, sent: v.FormSent) -> Answer:
        began, state = self._monotonic(), sent.view.get("state")
        press = replace(sent.press, values=modals.values(state if isinstance(state, Mapping) else {}))
        person, faults = await asyncio.gather(self._person(sent.press.actor), self._faults(inbound, press))
        if not faults:
            told = replace(press, author=person.name)
            await self._insist(lambda: inbound.press(told), began)
            return None
        errors = modals.field_errors(faults, sent.view)
        if errors:
            return {"response_action": "errors", "errors": errors}
        return {"response_action": "update", "view": modals.notice("; ".join(faults.values()))}

    async def _faults(self, inbound: Inbound, press: InboundPress) -> Mapping[str, str]:
        """What is wrong with a form; nothing when that cannot be told in time: the press itself will get
        its answer, if not at its fields."""
        try:
            async with asyncio.timeout(FORM_SECONDS):
                return await self._insist(lambda: inbound.faults(press), self._monotonic())
        except TimeoutError:
            log.warning("slack: what may be wrong with a form is not known in time")
            return {}

    # ---- the home, assistants, and the rest

    def _aside(self, parsed: v.HomeOpened | v.AssistantOpened | v.PeopleChanged | v.Ignored) -> None:
        """What needs no storing."""
        match parsed:
            case v.HomeOpened(tab="home"):
                self.soon(self._homes.opened(parsed.actor))
            case v.AssistantOpened(changed=False):
                self._untitled[parsed.thread] = None
                while len(self._untitled) > _KEPT:
                    self._untitled.popitem(last=False)
                self.soon(self._calls.suggest(parsed.thread, PROMPTS))
            case v.PeopleChanged():
                self._people.forget()
            case v.Ignored():
                self._ignored(parsed)

    def _ignored(self, ignored: v.Ignored) -> None:
        if ignored.reason in (v.UNINSTALLED, v.TOKENS_REVOKED):
            self._on_removed(TokenRefused("bot_token", ignored.reason))
        elif ignored.unknown:
            shape = f"{ignored.kind}: {ignored.reason}"
            if shape not in self.unknown and len(self.unknown) >= MOST_SHAPES:
                shape = OTHERS
            self.unknown[shape] += 1
            if self.unknown[shape] == 1:
                log.warning("slack: something unknown came in and was ignored (%s)", shape)
        else:
            log.debug("slack: %s ignored: %s", ignored.kind, ignored.reason)


def _named(message: InboundMessage, person: Person) -> InboundMessage:
    return replace(message, author=person.name, guest=person.guest, guest_unsure=not person.known)
