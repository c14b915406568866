"""What comes in, in order: may this person talk, is it a command, an answer, or a message.

Everything is stored before a handler returns, and nothing here waits for a turn. Commands and
presses are kept in the inbox until they are carried out, so that a crash between the two loses
none.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from gateway import faults, notices
from gateway.agent import WhilePending
from gateway.approvals import NEWER_MESSAGE, Answer
from gateway.attachments import blocks
from gateway.bridge import Said
from gateway.clock import Clock
from gateway.commands import Command, is_bare, read_command
from gateway.desk import Desk
from gateway.errors import StandingUnknown, StoreUnavailable
from gateway.log import redact
from gateway.messages import Actor, Json, ThreadKey, user
from gateway.pairing import CODE_SECONDS, Pairing
from gateway.questions import Question, TypedAnswer, answer_words, check_answer, read_typed_answer
from gateway.resolutions import Click, ClickResult, Resolutions
from gateway.store.base import Store
from gateway.store.rows import Accepted, Incoming, PendingRecord, Press, TakenPress
from gateway.turns import Turns

MOST_TOLD = 10_000  # strangers remembered
HELP = Command(name="help", words=())
PAUSES = (0.5, 2.0, 8.0)  # seconds between tries of a press or command
_log = logging.getLogger(__name__)


class Presses(Protocol):
    """Carries out a stored press of a card's button and answers the person."""

    def card_of(self, press: Press) -> str:
        """The id of the pressed card; empty for data that nobody here made."""

    async def carry_out(self, press: Press, taken: TakenPress | None) -> None:
        """`taken`: the card as it was when the press was stored; None: look it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Who answers in a thread."""

    agent: str
    tenant: str = ""


class Rules(Protocol):
    """What the configuration says about people and threads."""

    def may_talk(self, actor: Actor, *, guest: bool = False, roles: frozenset[str] = frozenset()) -> bool: ...

    def by_role(self, channel: str) -> bool: ...

    def route(self, key: ThreadKey) -> Route: ...


class Intake:
    """The way in. `desk` answers commands, `presses` carries out buttons, `on_queued` shows that a
    message has to wait, `with_earlier` adds what a thread held before the agent was called into it."""

    def __init__(
        self,
        store: Store,
        turns: Turns,
        resolutions: Resolutions,
        desk: Desk,
        presses: Presses,
        rules: Rules,
        pairing: Pairing,
        clock: Clock,
        on_queued: Callable[[ThreadKey, str], None] = lambda key, message_id: None,
        with_earlier: Callable[[Said], Awaitable[Said]] | None = None,
        while_pending: Mapping[str, WhilePending] = MappingProxyType({}),
    ) -> None:
        self._store, self._turns, self._resolutions = store, turns, resolutions
        self._desk, self._presses, self._rules, self._clock = desk, presses, rules, clock
        self._pairing, self._on_queued, self._with_earlier = pairing, on_queued, with_earlier
        self._while = while_pending
        self._supersede = frozenset(name for name, mode in while_pending.items() if mode == "supersede")
        self._tasks: set[asyncio.Task[None]] = set()
        self._told: OrderedDict[tuple[Actor, bool], float] = OrderedDict()  # bool: and was answered
        self._in_hand: set[tuple[ThreadKey, str]] = set()

    # ---- messages

    async def message(self, said: Said) -> Accepted | None:
        """One message; None when it is none for an agent. Raises StoreError and StandingUnknown: not
        stored, it is to come again."""
        if said.from_bot or not (said.addressed or said.ongoing):
            return None
        lives = await self._store.session_of(said.key) is not None if _in_a_thread(said) else True
        if not said.addressed and not lives:
            return None
        if not await self._may_talk(said):
            if said.guest_unsure and self._rules.may_talk(said.actor):
                raise StandingUnknown("whether the author is a guest is not known yet")
            await self._turn_away(said)
            return None
        if await self.command(said):
            return None
        if said.hidden:  # a native command that is none: no turn, whose answer everybody would see
            await self._store_and(self._command_press(said, HELP))
            return None
        if self._with_earlier is not None and not lives and not said.edited:
            said = await self._with_earlier(said)
        if not (said.text.strip() or said.attached):  # called by name and told nothing
            if not said.edited:
                await self._store_and(self._command_press(said, HELP))
            return None
        return await self.accept(said, agent=said.agent if self._desk.has_agent(said.agent) else "")

    async def _may_talk(self, said: Said) -> bool:
        if self._rules.may_talk(said.actor, guest=said.guest):
            return True
        if self._rules.by_role(said.actor.channel):
            roles = await self._resolutions.roles(said.actor, said.key)
            if self._rules.may_talk(said.actor, guest=True, roles=roles):
                return True
        return await self._pairing.may_talk(said.actor)

    async def _answers_a_question(self, said: Said) -> bool:
        """Whether an open question here offers just this word as an answer."""
        for record in await self._store.pendings(key=said.key):
            question = record.pending.question
            if question is not None and any(
                said.text.strip().casefold() in (option.label.casefold(), option.result.casefold())
                for option in question.options
            ):
                return True
        return False

    async def withdrawn(self, key: ThreadKey, message_id: str) -> None:
        """Its author took a message away: it is not answered if it still waits. Raises StoreError."""
        if await self._store.withdraw(key, message_id):
            _log.info("a waiting message was taken away by its author")

    async def command(self, said: Said) -> bool:
        """Store a command and carry it out; False when the message is none. Raises StoreError."""
        command = None if said.edited else read_command(said.text, bare=said.mentioned)
        if command is not None and is_bare(said.text) and await self._answers_a_question(said):
            command = None
        if command is None:
            return False
        await self._store_and(self._command_press(said, command))
        return True

    async def obey(self, said: Said) -> str | None:
        """Carry out a command for somebody who waits for its answer; None when the message is no
        command, empty for one that was carried out before. Raises StoreError."""
        command = read_command(said.text)
        if command is None:
            return None
        press = self._command_press(said, command)
        if not await self._store.accept_press(press):
            return ""
        text = await self._desk.carry_out(command, press)
        await self._store.press_done(press.key, press.action_id)
        return text

    def may_talk(self, actor: Actor) -> bool:
        """Whether this person is on a list of those who may."""
        return self._rules.may_talk(actor)

    async def accept(self, said: Said, *, session_id: str = "", agent: str = "") -> Accepted:
        """Store a message for an agent and begin its turn, or see what it means for what waits."""
        route = self._rules.route(said.key)
        accepted = await self._turns.accept(
            Incoming(
                key=said.key,
                message_id=said.message_id,
                actor=said.actor,
                message=user(said.text, *blocks(said.attached), author=said.author),
                agent=agent or route.agent,
                tenant=route.tenant,
                session_id=session_id,
                edited=said.edited,
                received_at=self._clock.now(),
                supersedes=self._supersede,
                by=notices.person(said.actor, said.author),
            )
        )
        if accepted.closed:  # the end of what waited says so in the thread
            self._turns.cancel(accepted.session_id, NEWER_MESSAGE)
            self._turns.wake(accepted.session_id)
        if accepted.outcome == "queued":
            self._on_queued(said.key, said.message_id)
            if accepted.waiting_for:
                self._later(self._while_pending(said, accepted))
        if said.edited and accepted.outcome == "duplicate" and accepted.session_id:
            await self._note_late_edit(said, accepted)
        return accepted

    async def _note_late_edit(self, said: Said, accepted: Accepted) -> None:
        """An edit of what a turn has read already changes nothing and starts nothing; it is recorded."""
        body: Json = {"message": said.message_id, "text": said.text}
        at, session = self._clock.now(), accepted.session_id
        await self._store.audit("edited too late", str(said.actor), body, at, session_id=session)

    async def _while_pending(self, said: Said, accepted: Accepted) -> None:
        """A message behind something that waits: an answer to a question, the end of a question
        that takes no such answer, or a message that waits; the first one's author is told so."""
        records = await self._store.pendings(session_id=accepted.session_id)
        record = self._asked_by(records)
        if record is not None and (question := record.pending.question) is not None:
            typed = self._typed(record.home_agent, question, said.text)
            # What became of a cut-off call is never settled by a stray message.
            wanted = typed.values is not None or question.about != "unknown"
            roles = await self._resolutions.standing(said.actor, record)
            may = wanted and self._resolutions.may_decide(said.actor, roles, record)
            if may and await self._used_up(said, roles, record, typed):
                return
        if accepted.ahead:
            return
        await self._desk.say(
            said.key, notices.queued_text(accepted.ahead, len(accepted.waiting_for)), accepted.session_id
        )

    def _asked_by(self, records: Sequence[PendingRecord]) -> PendingRecord | None:
        """The question that a message may answer: the only thing that waits, or with `while_pending =
        "answer"` the only question."""
        if records and self._while.get(records[0].home_agent) == "answer":
            records = [record for record in records if record.pending.question is not None]
        return records[0] if len(records) == 1 else None

    def _typed(self, agent: str, question: Question, text: str) -> TypedAnswer:
        """What a message says to a question. With `while_pending = "answer"` nothing else is meant by
        it where the question takes an own answer: what does not fit is told, and the question stays."""
        typed = read_typed_answer(question, text)
        own = question.about != "unknown" and (question.allow_text or bool(question.parts))
        if typed.values is not None or typed.fault or not own or self._while.get(agent) != "answer":
            return typed
        wrong = check_answer(question, (text.strip(),)) or "it does not fit the question"
        return TypedAnswer(values=None, fault=wrong.removeprefix("answer: "))

    async def _used_up(
        self, said: Said, roles: frozenset[str], record: PendingRecord, typed: TypedAnswer
    ) -> bool:
        """Whether that was all: the answer, the end of the question, or an answer that cannot be read,
        which is told how to be mended."""
        question = record.pending.question
        if typed.values is not None and question is not None and question.confirm:
            return await self._note_answer(said, roles, record, typed.values)
        if not typed.fault:
            return await self._take_answer(said, roles, record, typed.values) is not None
        if not await self._store.withdraw(said.key, said.message_id):
            return False
        text = notices.NOT_TAKEN_AS_ANSWER.format(fault=typed.fault)
        await self._desk.say(said.key, text, record.home)
        return True

    async def _note_answer(
        self, said: Said, roles: frozenset[str], record: PendingRecord, values: tuple[str, ...]
    ) -> bool:
        """An answer that has to be confirmed, and can be changed before; False: the question did not take
        it."""
        click = Click(
            pending_id=record.id,
            resolution=None,
            actor=said.actor,
            name=said.author,
            roles=roles,
            via=f"message {said.message_id}",
        )
        result = await self._resolutions.pick(click, values)
        if result.outcome != "recorded":
            return False
        await self._store.withdraw(said.key, said.message_id)
        await self._desk.say(said.key, result.text, record.session_id)
        return True

    async def _take_answer(
        self, said: Said, roles: frozenset[str], record: PendingRecord, values: tuple[str, ...] | None
    ) -> ClickResult | None:
        """The typed answer, or None when the question did not take it."""
        if values is None:
            await self._resolutions.withdraw(record.id, said.actor, said.author)
            return ClickResult(outcome="superseded", text="")
        click = Click(
            pending_id=record.id,
            resolution=Answer(values=values),
            actor=said.actor,
            name=said.author,
            roles=roles,
            via=f"message {said.message_id}",
            consumes=(said.key, said.message_id),
        )
        result = await self._resolutions.decide(click)
        if result.outcome not in ("resumed", "recorded"):
            return None
        text = notices.TAKEN_AS_ANSWER.format(answer=answer_words(record.pending.question, values))
        await self._desk.say(said.key, text, record.home)
        return result

    async def _turn_away(self, said: Said) -> None:
        """Somebody who is on no list: told in private, once for each code; in a group never."""
        if not said.addressed:
            return
        now, stranger = self._clock.now(), (said.actor, said.private or said.hidden)
        if now - self._told.pop(stranger, -CODE_SECONDS) < CODE_SECONDS:
            return
        self._told[stranger] = now
        while len(self._told) > MOST_TOLD:
            self._told.popitem(last=False)
        _log.info("turned away %s: not in the channel's users", said.actor)
        if said.private:
            await self._desk.say(said.key, await self._pairing.ask(said.actor, said.author, said.key))
        elif said.hidden:
            await self._desk.answer(self._command_press(said, HELP), notices.NOT_LISTED)

    # ---- presses and commands

    async def press(self, press: Press) -> None:
        """Store a press; carry it out right after. Raises StoreError: not stored."""
        faults.reach("press.before")
        taken = await self._store.take_press(press, self._presses.card_of(press))
        if taken.fresh:
            self._later(self._carry_out(press, taken))
        faults.reach("press.after")

    async def _store_and(self, press: Press) -> None:
        if await self._store.accept_press(press):
            self._later(self._carry_out(press))

    def replay(self, left: Sequence[Press]) -> None:
        """Carry out what a dead process has only stored."""
        for press in left:
            self._later(self._carry_out(press))

    async def _carry_out(self, press: Press, taken: TakenPress | None = None) -> None:
        identity = (press.key, press.action_id)
        if identity in self._in_hand:  # it came in while the left ones were looked up
            return
        self._in_hand.add(identity)
        try:
            await self._patiently(press, taken)
        finally:
            self._in_hand.discard(identity)

    async def _patiently(self, press: Press, taken: TakenPress | None) -> None:
        """Try again while the database does not answer; what is still undone is left in the inbox
        for the next start."""
        for pause in PAUSES:
            try:
                return await self._once(press, taken)
            except StoreUnavailable as error:
                _log.error("a press or command has to wait: %s", redact(str(error)))
            taken = None
            await self._clock.sleep(pause)
        return await self._once(press, taken)

    async def _once(self, press: Press, taken: TakenPress | None) -> None:
        if "command" in press.body:
            await self._desk.carry_out(_stored_command(press), press)
        else:
            await self._presses.carry_out(press, taken)
        await self._store.press_done(press.key, press.action_id)

    def _command_press(self, said: Said, command: Command) -> Press:
        body: Json = {"command": [command.name, *command.words], "author": said.author}
        if said.hidden:
            body["hidden"] = True
        if said.private:
            body["private"] = True
        return Press(
            key=said.key,
            action_id=said.message_id,
            actor=said.actor,
            body=body,
            received_at=self._clock.now(),
        )

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(_report)

    async def idle(self) -> None:
        """Wait until everything stored is carried out."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def close(self, seconds: float) -> None:
        """Let what is being carried out end; the rest stays in the inbox for the next start."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
        left = set(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def _in_a_thread(said: Said) -> bool:
    """Whether others may have talked in this thread before the agent was called into it."""
    return said.ongoing or said.key.thread not in ("", said.message_id)


def _stored_command(press: Press) -> Command:
    name, *words = press.body["command"]
    return Command(name=name, words=tuple(words))


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a press or command was not carried out and will be tried again: %s", redact(repr(error)))
