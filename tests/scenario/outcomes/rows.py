"""The table: the eight outcomes of a click, how each comes about, and what it leaves behind.

A row says nothing of channels; `never_on` names those where it cannot happen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.approvals import ClickOutcome, PendingState
from gateway.messages import Json
from gateway.store.rows import PendingRecord
from gateway.timers import Timers
from gateway.verdicts import closed, edit_note, expired, reads
from tests.scenario.outcomes.play import FIRST, HOUR, SECOND, refunded
from tests.scenario.outcomes.stages import (
    APPROVE,
    DENY,
    EDIT,
    FEEDBACK,
    NO_SUCH,
    SECOND_OPTION,
    Asked,
    Person,
    Press,
    Stage,
)

SWEEP: Final = Timers.sweep_once  # the gateway's own looking at its timers is switched off in these tests
LESS: Final[Json] = {**FIRST, "amount": 12.5}
BOTH: Final[tuple[Person, ...]] = ("ada", "bob")
Step = Callable[[Stage, Asked], Awaitable[None]]
Words = Callable[[PendingRecord], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One way to one outcome.

    How it comes about: `says` is what Ada tells the agent; `deciders` and `rule` are the agent's rule;
    `before` happens before the press; `which` of the requests is pressed, and how.
    What is to be seen then: `state` of the row and `decider` in it; `card`: words on the card, at least as
    often as they are named, `live`: with controls; `notice`: words that the private answer holds beside or
    instead of what gateway.notices makes (`still_open`, `missing`: what that is told). `reads`: what the
    model reads, None while the call has no result; `asked`: how often the model was called in all; `ran`:
    what the tool ran with. `record`: the kinds of the lines that the press left.
    """

    outcome: ClickOutcome
    says: str = "refund"
    deciders: tuple[Person, ...] = ("ada",)
    rule: Mapping[str, Any] = field(default_factory=dict)
    before: tuple[Step, ...] = ()
    which: int = 0
    press: Press
    state: PendingState
    decider: Person | None = None
    card: tuple[str, ...] = ()
    live: bool = False
    notice: tuple[str, ...] = ()
    still_open: int = 0
    missing: int = 0
    reads: Words | None = None
    asked: int = 1
    ran: tuple[Json, ...] = ()
    record: tuple[str, ...]
    never_on: tuple[str, ...] = ()

    @property
    def requests(self) -> int:
        """How many there are to decide."""
        return 2 if self.says == "refund both" else 1


# ---- what happens before the press


def pressed(choice: str, user: Person = "ada", which: int = 0) -> Step:
    async def step(stage: Stage, asked: Asked) -> None:
        await stage.press(asked, asked.ids[which], Press(choice=choice, user=user))
        await stage.rest()

    return step


def told(text: str) -> Step:
    async def step(stage: Stage, asked: Asked) -> None:
        await stage.say(asked, text)
        await stage.rest()

    return step


async def ran_out(stage: Stage, asked: Asked) -> None:
    stage.play.clock.jump(HOUR + 1)


async def swept(stage: Stage, asked: Asked) -> None:
    await SWEEP(stage.gateway.timers)
    await stage.rest()


# ---- what the model reads


def result(args: Json) -> Words:
    return lambda record: refunded(args)


def edited(record: PendingRecord) -> str:
    return f"{edit_note(FIRST, LESS, (), record.decided_by)}\n{refunded(LESS)}"


def denied(record: PendingRecord) -> str:
    return reads("denied", by=record.decided_by)


def denied_because(record: PendingRecord) -> str:
    return reads("denied_with_feedback", by=record.decided_by, feedback="ask first")


def too_late(record: PendingRecord) -> str:
    return expired("question" if record.pending.kind == "question" else "request", HOUR)


def ended_by(cause: str) -> Words:
    return lambda record: closed(cause, "request", record.decided_by)


# ---- the table

YES, NO = Press(choice=APPROVE), Press(choice=DENY)
EXPIRES = {"expires": HOUR}
TWO = {"quorum": 2}

ROWS: Final[dict[str, Row]] = {
    "approve": Row(
        outcome="resumed",
        press=YES,
        state="approved",
        decider="ada",
        card=("Approved by",),
        reads=result(FIRST),
        asked=2,
        ran=(FIRST,),
        record=("approved", "executed"),
    ),
    "approve with edited arguments": Row(
        outcome="resumed",
        press=Press(choice=EDIT, values={"amount": "12.5"}),
        state="approved",
        decider="ada",
        card=("Approved with changes by",),
        reads=edited,
        asked=2,
        ran=(LESS,),
        record=("edited", "approved", "executed"),
    ),
    "deny": Row(
        outcome="resumed",
        press=NO,
        state="denied",
        decider="ada",
        card=("Denied by",),
        reads=denied,
        record=("denied",),
    ),
    "deny with feedback": Row(
        outcome="resumed",
        press=Press(choice=FEEDBACK, values={"feedback": "ask first"}),
        state="denied",
        decider="ada",
        card=("Denied by", "ask first"),
        reads=denied_because,
        asked=2,
        record=("denied",),
    ),
    "c052 answer": Row(
        outcome="resumed",
        says="ask",
        press=Press(choice=SECOND_OPTION),
        state="answered",
        decider="ada",
        card=("Answered by", "prod"),
        reads=lambda record: "prod",
        asked=2,
        record=("answered",),
    ),
    "the last of two calls": Row(
        outcome="resumed",
        says="refund both",
        before=(pressed(APPROVE),),
        which=1,
        press=YES,
        state="approved",
        decider="ada",
        card=("Approved by", "Approved by"),  # of the call before, too
        reads=result(SECOND),
        asked=2,
        ran=(FIRST, SECOND),
        record=("approved", "executed"),
    ),
    "the second of two people": Row(
        outcome="resumed",
        deciders=BOTH,
        rule=TWO,
        before=(pressed(APPROVE),),
        press=Press(choice=APPROVE, user="bob"),
        state="approved",
        decider="bob",
        card=("Approved by",),
        reads=result(FIRST),
        asked=2,
        ran=(FIRST,),
        record=("approved", "executed"),
    ),
    "the first of two calls": Row(
        outcome="recorded",
        says="refund both",
        press=YES,
        state="approved",
        decider="ada",
        card=("Approved by",),
        still_open=1,
        ran=(FIRST,),
        record=("approved", "executed"),
    ),
    "the first of two people": Row(
        outcome="recorded",
        deciders=BOTH,
        rule=TWO,
        press=YES,
        state="open",
        card=("1 of 2 agree", "{ada}"),
        live=True,
        missing=1,
        record=("agreed",),
    ),
    "a no after a yes": Row(
        outcome="already",
        deciders=BOTH,
        before=(pressed(APPROVE),),
        press=Press(choice=DENY, user="bob"),
        state="approved",
        decider="ada",
        card=("Approved by",),
        notice=("Already decided", "{ada}"),
        reads=result(FIRST),
        asked=2,
        ran=(FIRST,),
        record=("refused_already",),
    ),
    "a yes after a no": Row(
        outcome="already",
        deciders=BOTH,
        before=(pressed(DENY, "bob"),),
        press=YES,
        state="denied",
        decider="bob",
        card=("Denied by",),
        notice=("Already decided", "{bob}"),
        reads=denied,
        record=("refused_already",),
    ),
    "a double click on an option": Row(
        outcome="already",
        says="ask",
        before=(pressed(SECOND_OPTION),),
        press=Press(choice=SECOND_OPTION),
        state="answered",
        decider="ada",
        card=("Answered by", "prod"),
        notice=("Already decided", "prod"),
        reads=lambda record: "prod",
        asked=2,
        record=("refused_already",),
    ),
    "c046 too late, before anybody looked": Row(
        outcome="expired",
        rule=EXPIRES,
        before=(ran_out,),
        press=YES,
        state="expired",
        card=("Expired", "nobody refused it"),
        reads=too_late,
        asked=2,
        record=("refused_expired",),
    ),
    "c046 too late, after the clock's word": Row(
        outcome="expired",
        rule=EXPIRES,
        before=(ran_out, swept),
        press=NO,
        state="expired",
        card=("Expired", "nobody refused it"),
        reads=too_late,
        asked=2,
        record=("refused_expired",),
    ),
    "c052 an answer that comes too late": Row(
        outcome="expired",
        says="ask",
        rule=EXPIRES,
        before=(ran_out,),
        press=Press(choice=SECOND_OPTION),
        state="expired",
        card=("Expired",),
        reads=too_late,
        asked=2,
        record=("refused_expired",),
    ),
    "c046 after /new": Row(
        outcome="superseded",
        before=(told("/new"),),
        press=YES,
        state="superseded",
        decider="ada",
        card=("Closed by /new",),
        notice=("Closed by /new",),
        reads=ended_by("/new"),
        record=("refused_superseded",),
    ),
    "after /stop": Row(
        outcome="superseded",
        before=(told("/stop"),),
        press=YES,
        state="superseded",
        decider="ada",
        card=("Closed by /stop",),
        notice=("Closed by /stop",),
        reads=ended_by("/stop"),
        record=("refused_superseded",),
    ),
    "c044 somebody who may not": Row(
        outcome="forbidden",
        press=Press(choice=APPROVE, user="bob"),
        state="open",
        card=("{ada}",),
        live=True,
        notice=("Who may: {ada}",),
        record=("refused_forbidden",),
    ),
    "c044 whoever asked, where that is not enough": Row(
        outcome="forbidden",
        deciders=BOTH,
        rule={"four_eyes": True},
        press=YES,
        state="open",
        live=True,
        notice=("{bob}", "not {ada}, who asked"),
        record=("refused_forbidden",),
    ),
    "an argument of the wrong type": Row(
        outcome="invalid",
        press=Press(choice=EDIT, values={"tags": '"shoes"'}),
        state="open",
        live=True,
        notice=("tags: ",),
        record=("refused_invalid",),
    ),
    "a word that makes no sense": Row(
        outcome="invalid",
        press=Press(choice=NO_SUCH),
        state="open",
        live=True,
        notice=("this request",),
        record=("refused_invalid",),
    ),
    "a request that never was": Row(
        outcome="unknown",
        press=Press(choice=APPROVE, wrong="forged"),
        state="open",
        live=True,
        record=("refused_unknown",),
    ),
    "no request at all": Row(
        outcome="unknown",
        press=Press(choice=APPROVE, wrong="garbage"),
        state="open",
        live=True,
        record=("refused_unknown",),
    ),
    # The web's API names the request itself: there is no message that it could belong to.
    "a card of another place": Row(
        outcome="unknown",
        press=Press(choice=APPROVE, wrong="foreign"),
        state="open",
        live=True,
        record=("refused_unknown",),
        never_on=("web",),
    ),
}
