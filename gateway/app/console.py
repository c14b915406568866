"""What the command line does with a store and agents but without channels: runs, decisions, lists."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import msgspec

from channels.base import Actor as ChannelActor
from channels.base import Button, InboundPress
from channels.base import ThreadKey as ChannelKey
from channels.terminal.adapter import Pressed, Terminal
from gateway.app.gateway import Parts
from gateway.approvals import Answer, Approve, Deny, Pending, Resolution
from gateway.bridge import card, shared_card
from gateway.bridge_presses import read_press, wants_all
from gateway.bridge_questions import Bad, Draft, Picked, Toggle
from gateway.clock import Clock
from gateway.commands import read_command
from gateway.events import (
    AssistantDelta,
    AssistantText,
    Event,
    ToolFinished,
    ToolStarted,
    TurnDone,
    TurnError,
)
from gateway.messages import Actor, Json, ThreadKey, call_hash, new_id, user
from gateway.notices import drafted_text
from gateway.options import Approver
from gateway.pairing import LET_IN, Pairing
from gateway.questions import answer_problems, given_problems, merged_answers, normal_answer
from gateway.resolutions import Click, ClickResult, Resolutions
from gateway.store.base import Store
from gateway.store.rows import Claim, Delivery, Incoming, Outgoing, PendingRecord, SessionView
from gateway.turns import TurnPorts, Turns

ME = Actor("cli", "", "local")
WORKSPACE = "local"
EACH = "each"  # the terminal's own: ask about every call by itself
OnEvent = Callable[[Event], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A store and a runner of turns, without channels and duties."""

    parts: Parts
    store: Store
    turns: Turns
    resolutions: Resolutions


@asynccontextmanager
async def bench(parts: Parts, on_event: OnEvent, approver: Approver | None = None) -> AsyncIterator[Bench]:
    """Open the store and be able to run turns. What the outbox gets is left to the gateway."""
    parts = parts.with_planning
    store = parts.store
    await store.open()
    left: set[asyncio.Task[None]] = set()

    async def put_back(rows: Sequence[Delivery]) -> None:
        for row in rows:
            await store.retry_later(row.id, parts.clock.now(), "")

    def hand_over(rows: Sequence[Delivery]) -> None:
        task = asyncio.get_running_loop().create_task(put_back(rows))
        left.add(task)
        task.add_done_callback(left.discard)

    recorded = None if approver is None else Recorded(approver, store, parts.clock)

    def heard(claim: Claim, event: Event) -> None:
        if recorded is not None:
            recorded.session_id = claim.lease.session_id
        if not claim.parent:  # what works below tells its caller
            on_event(event)

    turns = Turns(
        store,
        parts.agents,
        parts.model_of,
        parts.clock,
        parts.letters,
        ports=TurnPorts(on_event=heard, on_deliveries=hand_over),
        environment=parts.environment,
        approver=recorded,
        runner_of=parts.runner_of,
        models=parts.models,
    )
    resolutions = Resolutions(
        store,
        parts.agents,
        parts.clock,
        parts.operators,
        lambda session_id: None,
        lambda session_id: None,
        reminders=parts.reminders,
    )
    try:
        yield Bench(parts=parts, store=store, turns=turns, resolutions=resolutions)
    finally:
        await turns.drain(0.0)
        while left:
            await asyncio.wait(left)
        for close in parts.closing:
            await close()
        await store.close()


async def ask(
    at: Bench, agent: str, text: str, conversation: str | None = None, *, session: SessionView | None = None
) -> str:
    """One message, one turn; the session's id. The turn's events say how it went. `session`: an earlier one,
    which may have something else to do first."""
    key = ThreadKey("cli", WORKSPACE, conversation or new_id("c"), "") if session is None else session.key
    incoming = Incoming(
        key=key,
        message_id=new_id("m"),
        actor=ME,
        message=user(text),
        agent=agent,
        session_id="" if session is None else session.id,
        received_at=at.parts.clock.now(),
    )
    accepted = await at.turns.accept(incoming)
    await at.turns.settled(accepted.session_id)
    return accepted.session_id


async def resolve(at: Bench, pending_id: str, resolution: Resolution) -> ClickResult:
    """Decide as the person at this machine, and run what follows unless another process does."""
    click = Click(pending_id=pending_id, resolution=resolution, actor=ME, via="command line")
    result = await at.resolutions.decide(click)
    if result.record is not None and result.outcome in ("resumed", "recorded"):
        await go_on(at, result.record.session_id)
    return result


async def pair(at: Bench, code: str) -> tuple[bool, str]:
    """Let somebody in as the person at this machine, and leave them word; whether, and how it went."""
    pairing = Pairing(at.store, at.parts.clock, at.parts.rules.is_admin, lambda channel: False)
    admitted = await pairing.confirm(code, ME)
    if isinstance(admitted, str):
        return False, admitted
    word = Outgoing(key=admitted.key, kind="notice", payload={"text": LET_IN})
    now = at.parts.clock.now()
    for row in await at.store.enqueue([word], now):
        await at.store.retry_later(row.id, now, "")  # a gateway sends it
    return True, f"{admitted.name} may talk to me now."


async def go_on(at: Bench, session_id: str) -> None:
    """Run whatever the session has to do now, if nobody else does."""
    at.turns.wake(session_id)
    await at.turns.settled(session_id)
    view = await at.store.session(session_id)
    while view is not None and view.parent:  # what a subagent came to sets its caller going
        await at.turns.settled(view.parent)
        view = await at.store.session(view.parent)


class Watcher:
    """Prints a turn as it goes. `done` is its last event."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal, self._streamed = terminal, False
        self.done: TurnDone | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case AssistantDelta(text=""):
                self._terminal.piece("\n")
            case AssistantDelta(text=text):
                self._streamed = True
                self._terminal.piece(text)
            case AssistantText(text=text):
                if self._streamed:
                    self._terminal.piece("\n")
                else:
                    self._terminal.answer(text)
                self._streamed = False
            case ToolStarted(tool=tool):
                self._terminal.notice(f"running {tool} ...")
            case ToolFinished(tool=tool, content=content, is_error=True):
                self._terminal.notice(f"{tool or 'a call'}: {content}")
            case TurnError(message=message):
                self._terminal.notice(f"error: {message}")
            case TurnDone():
                self.done = event


_KINDS: Mapping[type, str] = {Approve: "approved", Deny: "denied", Answer: "answered"}


class Recorded:
    """Has what is decided on the spot on record too. See gateway.options.Approver. `session_id`: where
    that is at the moment."""

    def __init__(self, approver: Approver, store: Store, clock: Clock) -> None:
        self._approver, self._store, self._clock = approver, store, clock
        self.session_id = ""
        self._one = asyncio.Lock()  # subagents that work side by side ask one after the other

    async def decide(self, pending: Pending) -> Resolution | None:
        """What the person says; None to leave it open."""
        async with self._one:
            said = await self._approver.decide(pending)
        await self._note(pending, said)
        return said

    async def decide_together(self, pendings: Sequence[Pending]) -> Mapping[str, Resolution | None]:
        """One word about several, where there is one."""
        async with self._one:
            said = await self._approver.decide_together(pendings)
        for pending in pendings:
            await self._note(pending, said.get(pending.pending_id))
        return said

    async def _note(self, pending: Pending, said: Resolution | None) -> None:
        kind = _KINDS.get(type(said))
        if kind is None:
            return
        body: Json = {"tool": pending.tool, "by": str(ME), "via": "terminal", "args_hash": pending.args_hash}
        if isinstance(said, Approve) and said.edited_args is not None:
            body["executed_hash"] = call_hash(pending.tool, said.edited_args)
        now, session = self._clock.now(), pending.session or self.session_id
        await self._store.audit(kind, str(ME), body, now, session_id=session, pending_id=pending.pending_id)


class TerminalApprover:
    """Asks the person at the terminal, live. See gateway.options.Approver."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    async def decide(self, pending: Pending) -> Resolution | None:
        """What the person says; None to leave it open."""
        record = _as_record(pending)
        while True:
            pressed = await self._terminal.decide(card(record, revealed=True))
            if pressed is None:
                return None
            meaning = read_press(_as_press(pressed), record)
            match meaning:
                case Bad(text=text):
                    self._terminal.notice(text)
                case Toggle(value=value):
                    record = _toggled(record, value)
                case Picked(values=values):
                    record = self._picked(record, values)
                case Draft():
                    record = self._drafted(record, meaning)
                case _:
                    return meaning

    async def decide_together(self, pendings: Sequence[Pending]) -> Mapping[str, Resolution | None]:
        """One word about all approvals of a step, when there are several; none about single ones."""
        records = [_as_record(pending) for pending in pendings if pending.kind == "approval"]
        if len(records) < 2:
            return {}
        first = records[0].id
        together = [
            msgspec.structs.replace(r, pending=msgspec.structs.replace(r.pending, card=first))
            for r in records
        ]
        shown = shared_card(together, revealed=True)
        each = Button(label="One by one", data=EACH)
        pressed = await self._terminal.decide(replace(shown, buttons=(*shown.buttons, each)))
        if pressed is None:
            return dict.fromkeys([record.id for record in records])
        word = wants_all(_as_press(pressed))
        return {} if word is None else dict.fromkeys([record.id for record in records], word)

    def _picked(self, record: PendingRecord, values: tuple[str, ...]) -> PendingRecord:
        question = record.pending.question
        if question is None:
            return record
        if problems := answer_problems(question, values):
            self._terminal.notice("; ".join(wrong for _, wrong in problems))
            return record
        return _as_record(record.pending, normal_answer(question, values))

    def _drafted(self, record: PendingRecord, draft: Draft) -> PendingRecord:
        question = record.pending.question
        if question is None:
            return record
        if problems := given_problems(question, draft.values):
            self._terminal.notice("; ".join(f"{name}: {wrong}" for name, wrong in problems))
            return record
        votes = merged_answers(question, record.votes, draft.values, draft.emptied)
        self._terminal.notice(drafted_text(question, votes))
        return _as_record(record.pending, votes)


def _as_press(pressed: Pressed) -> InboundPress:
    return InboundPress(
        thread=ChannelKey("cli", WORKSPACE, "", ""),
        action_id="terminal",
        actor=ChannelActor(*ME),
        data=pressed.data,
        message_ref=None,
        sent_at=0.0,
        values=pressed.values,
    )


def _as_record(pending: Pending, votes: tuple[str, ...] = ()) -> PendingRecord:
    return PendingRecord(
        pending=pending,
        session_id="",
        turn_id="",
        agent="",
        key=ThreadKey("cli", WORKSPACE, "", ""),
        requester=ME,
        state="open",
        current=True,
        attempt=0,
        requested_at=0.0,
        votes=votes,
    )


def _toggled(record: PendingRecord, value: str) -> PendingRecord:
    votes = tuple(v for v in record.votes if v != value)
    return _as_record(record.pending, votes if value in record.votes else (*votes, value))


ONLY_HERE = (
    "Here there are /new and /quit; requests are decided as they come. In another window, "
    "`threadgate pending`, `threadgate sessions` and `threadgate schedules` list what there is."
)


async def chat(at: Bench, agent: str, terminal: Terminal) -> None:
    """A conversation until the end of input or `/quit`; `/new` starts afresh."""
    conversation = new_id("c")
    while True:
        try:
            text = (await terminal.ask("you> ")).strip()
        except EOFError:
            return
        if text in ("/quit", "/exit"):
            return
        if text == "/new":
            conversation = new_id("c")
            terminal.notice("A fresh conversation begins here.")
        elif read_command(text) is not None:
            terminal.notice(ONLY_HERE)
        elif text:
            await ask(at, agent, text, conversation)
