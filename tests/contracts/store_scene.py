"""What the store's conformance suite plays with: a harness, and short ways to say things."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.approvals import Approve, Pending, Resolution, TurnCheckpoint
from gateway.budget import Spent
from gateway.journal import CallRow
from gateway.messages import (
    Actor,
    Json,
    Message,
    Text,
    ThreadKey,
    ToolResult,
    ToolUse,
    assistant,
    call_hash,
    tool_results,
    user,
)
from gateway.questions import Question
from gateway.store.base import Store
from gateway.store.rows import (
    Accepted,
    Claim,
    Delivery,
    Ended,
    Incoming,
    Outgoing,
    Park,
    Press,
    Resolved,
    TurnEnd,
    Verdict,
)
from tests.clock import FakeClock

KEY = ThreadKey("telegram", "bot", "chat", "")
OTHER = ThreadKey("telegram", "bot", "other", "")
ANN, BOB, EVE = (Actor("telegram", "bot", id_) for id_ in ("1", "2", "3"))
_numbers = itertools.count(1)


@dataclass(frozen=True, kw_only=True)
class Written:
    """Rows changed and pages written."""

    rows: int
    pages: int

    def __sub__(self, before: Written) -> Written:
        return Written(rows=self.rows - before.rows, pages=self.pages - before.pages)


class StoreHarness(Protocol):
    """One set of data. Each store that `open` gives is as another process: its own connections,
    its own runner. `kill` ends one the way SIGKILL does. `tamper` writes past the store."""

    clock: FakeClock

    async def open(self) -> Store: ...

    async def kill(self, store: Store) -> None: ...

    async def tamper(self, *statements: str, unguarded: bool = False) -> None:
        """`unguarded`: first take away what keeps the record from being changed."""

    async def rows(self, table: str) -> int: ...

    async def tables(self) -> set[str]: ...

    async def written(self, store: Store) -> Written:
        """What this store has written since the first call; from then on it need not be durable."""


def fresh(prefix: str) -> str:
    """An id that nobody has used."""
    return f"{prefix}{next(_numbers)}"


def incoming(text: str, clock: FakeClock, **changes: Any) -> Incoming:
    """One message of Ann's, unless `changes` say otherwise."""
    given: dict[str, Any] = {
        "key": KEY,
        "message_id": fresh("m"),
        "actor": ANN,
        "message": user(text),
        "agent": "helper",
        "received_at": clock.now(),
    }
    return Incoming(**{**given, **changes})


async def say(store: Store, text: str, clock: FakeClock, *, claim: bool = True, **changes: Any) -> Accepted:
    """Put a message into the inbox."""
    return await store.accept(incoming(text, clock, **changes), claim=claim)


async def begun(store: Store, clock: FakeClock, text: str = "hello", **changes: Any) -> Claim:
    """A message whose turn this store runs."""
    accepted = await say(store, text, clock, **changes)
    assert accepted.claim is not None
    return accepted.claim


def row(
    call_id: str, tool: str = "pay", *, state: Any = "allowed", repeatable: bool = False, **args: Any
) -> CallRow:
    """One call as it is first written down."""
    result = (
        ToolResult(tool_use_id=call_id, content="denied: no", is_error=True) if state == "refused" else None
    )
    return CallRow(
        call=ToolUse(id=call_id, name=tool, input=args),
        args=args,
        args_hash=call_hash(tool, args),
        state=state,
        repeatable=repeatable,
        result=result,
    )


async def replied(store: Store, claim: Claim, *rows: CallRow, text: str = "", events: str = "") -> None:
    """The model's reply with these calls."""
    words = (Text(text=text),) if text else ()
    await store.reply(claim.lease, assistant(*words, *(r.call for r in rows), model="m"), rows, events)


def answer(call_id: str, content: str = "done", *, is_error: bool = False) -> ToolResult:
    return ToolResult(tool_use_id=call_id, content=content, is_error=is_error)


async def answered(store: Store, claim: Claim, *results: ToolResult, steer: bool = False) -> list[Message]:
    """The step's results."""
    return await store.results(claim.lease, tool_results(results), "", steer=steer)


def end(
    outcome: str = "completed", text: str = "", *outgoing: Outgoing, messages: Sequence[Message] = ()
) -> TurnEnd:
    """How a turn ended."""
    said = (assistant(Text(text=text), model="m"),) if text else ()
    return TurnEnd(
        outcome=outcome,
        detail="",
        text="",
        messages=tuple(messages) or said,
        events="",
        outgoing=outgoing,
        spent=Spent(steps=1, tokens=5),
        usage={},
    )


async def finished(
    store: Store, claim: Claim, clock: FakeClock, text: str = "fine", *outgoing: Outgoing
) -> Ended:
    return await store.finish(claim.lease, end("completed", text, *outgoing), clock.now())


def pending(call: CallRow, **changes: Any) -> Pending:
    """An approval for one call, unless `changes` say otherwise."""
    given: dict[str, Any] = {
        "pending_id": fresh("p_"),
        "kind": "approval",
        "call_id": call.call.id,
        "tool": call.call.name,
        "args": call.args,
        "args_hash": call.args_hash,
        "code": fresh("code"),
    }
    return Pending(**{**given, **changes})


def question(call: CallRow, **changes: Any) -> Pending:
    """A question for one call."""
    return pending(call, kind="question", question=Question(text="Which?", **changes))


def notice(text: str, key: ThreadKey = KEY) -> Outgoing:
    return Outgoing(key=key, kind="notice", payload={"text": text})


def card(asked: Pending, key: ThreadKey = KEY, session_id: str = "") -> Outgoing:
    return Outgoing(key=key, kind="card", payload={}, session_id=session_id, pending_id=asked.pending_id)


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """A turn that waits for people."""

    claim: Claim
    pendings: tuple[Pending, ...]
    ended: Ended

    @property
    def session_id(self) -> str:
        return self.claim.lease.session_id


async def parked(
    store: Store,
    claim: Claim,
    clock: FakeClock,
    *asked: Pending,
    results: dict[str, ToolResult] | None = None,
    outgoing: Sequence[Outgoing] = (),
    new: Sequence[Pending] | None = None,
) -> Ended:
    """A durable stop of a turn whose reply is stored already."""
    checkpoint = TurnCheckpoint(results_so_far=results or {}, outstanding={p.pending_id: p for p in asked})
    stop = Park(
        end=end("pending_approval", "", *outgoing),
        checkpoint=checkpoint,
        new_pendings=tuple(asked if new is None else new),
    )
    return await store.park(claim.lease, stop, clock.now())


async def waiting(
    store: Store,
    clock: FakeClock,
    *,
    count: int = 1,
    key: ThreadKey = KEY,
    cards: bool = False,
    **changes: Any,
) -> Stopped:
    """A session that waits for `count` approvals."""
    claim = await begun(store, clock, key=key)
    calls = [row(fresh("call"), "pay", state="waiting", amount=n) for n in range(count)]
    await replied(store, claim, *calls)
    asked = tuple(pending(call, **changes) for call in calls)
    outgoing = [card(p, key) for p in asked] if cards else []
    return Stopped(
        claim=claim, pendings=asked, ended=await parked(store, claim, clock, *asked, outgoing=outgoing)
    )


async def word(
    store: Store, asked: Pending, clock: FakeClock, resolution: Resolution | None = None, **changes: Any
) -> Resolved:
    """Somebody decides; Ann approves, unless said otherwise."""
    given: dict[str, Any] = {
        "pending_id": asked.pending_id,
        "resolution": resolution if resolution is not None else Approve(),
        "actor": ANN,
        "by": "Ann",
        "at": clock.now(),
    }
    return await store.resolve(Verdict(**{**given, **changes}))


async def all_sent(store: Store, rows: Sequence[Delivery], clock: FakeClock) -> list[Delivery]:
    """Send these rows and everything behind them; what went out, in order."""
    out, left = list[Delivery](), list(rows)
    while left:
        out.append(left[0])
        left = left[1:] + await store.sent(left[0].id, f"ref{left[0].id}", clock.now())
    return out


def press(action_id: str, clock: FakeClock, **body: Any) -> Press:
    value: Json = dict(body)
    return Press(key=KEY, action_id=action_id, actor=ANN, body=value, received_at=clock.now())
