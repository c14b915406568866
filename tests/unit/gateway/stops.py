"""The table of stops, row by row: how each comes about, and what docs/loop.md promises of it.

A row is played twice: in a chat of the gateway, and as `threadgate ask`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.errors import RequiredToolServerDown
from gateway.outcome import Outcome
from gateway.providers.base import ModelRequest, ModelResponse, OnDelta
from gateway.providers.scripted import Reply, ReplyLike
from gateway.verdicts import SKIPPED, STOPPED
from tests.unit.gateway.scene import House, HouseModel, Office, call, calls

Act = Callable[[Office], Awaitable[None]]
LATE = "not run: the time for this turn is used up"


class Troubled(HouseModel):
    """Fails with this error at the second call for `go`; works again afterwards."""

    def __init__(self, house: House, error: Exception) -> None:
        super().__init__(house)
        self._error = error

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        if request.messages[-1].results and request.messages[0].text == "go" and len(request.messages) == 3:
            raise self._error
        return await super().complete(request, on_delta)


@dataclass(frozen=True, kw_only=True)
class Row:
    """name: of the outcome, or of the error of an abort. replies: to the message "go". sees: pieces of what
    is written in the thread, or stands on the card. next_reads: (text, *results) of each message that the
    model is given in the next turn, up to that turn's own message. act: what people and clock do meanwhile.
    resolved: the outcome that the turn comes to when what waits is decided."""

    name: str
    replies: Sequence[ReplyLike] = ()
    agent: Mapping[str, Any] = field(default_factory=dict)
    hold: str = ""
    act: Act | None = None
    error: Exception | None = None
    sees: Sequence[str] = ()
    next_reads: Sequence[tuple[str, ...]] = ()
    said: str = ""  # on standard output
    note: str = ""  # on standard error
    by_signal: bool = False

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.name) if self.name in set(Outcome) else Outcome.CRASHED


async def denies(office: Office) -> None:
    ref, card = next((ref, card) for ref, card in office.world.cards.items() if card.state == "open")
    data = next(
        b.data for b in [*card.buttons, *(b for c in card.calls for b in c.buttons)] if b.label == "Deny"
    )
    await office.press(ref, data)


async def lets_time_pass(office: Office) -> None:
    office.house.clock.advance(11)
    office.house.holds["look"].go.set()


async def stops(office: Office) -> None:
    await office.talk.say("/stop")


LOOK, SEND = call("look", at="x"), call("send", to="a")
DONE = ("", "saw x", "sent to a")
STEP = calls(LOOK, SEND)
ROWS = (
    Row(name="completed", replies=["done!"], sees=["done!"], next_reads=[("done!",)], said="done!\n"),
    Row(
        name="refused",
        replies=[Reply(text="I will not.", stop="refusal")],
        sees=["I will not."],
        next_reads=[("I will not.",)],
        said="I will not.\n",
        note="refused",
    ),
    Row(
        name="refused",
        replies=[Reply(stop="refusal")],
        sees=["The model declined to answer this."],
        note="refused: the model declined to answer",
    ),
    Row(
        name="denied",
        replies=[calls(LOOK, call("pay", order="A-1"), call("pay", order="A-2"))],
        act=denies,
        sees=["Stopped: denied by Ann (talk:w:ann). The denied call was not run."],
        next_reads=[("",), ("", "saw x", "denied by Ann (talk:w:ann)", SKIPPED)],
        note="denied: denied by",
    ),
    Row(
        name="pending_approval",
        replies=[calls(call("pay", order="A-1")), "paid!"],
        sees=["pay"],
        note="waits for a person: threadgate resolve p_",
    ),
    Row(
        name="pending_question",
        replies=[
            calls(call("ask_user", question="Which?", options=["this", "that"], allow_text=False)),
            "that one!",
        ],
        sees=["Which?"],
        note="waits for a person: threadgate resolve p_",
    ),
    Row(
        name="max_turns",
        replies=[STEP, "unused"],
        agent={"max_steps": 1},
        sees=["Stopped: 1 steps are used up. Write to me to go on from here."],
        next_reads=[("",), DONE],
        note="exhausted_steps: 1 steps are used up",
    ),
    Row(
        name="exhausted_tokens",
        replies=[STEP, "unused"],
        agent={"max_tokens": 5},
        sees=["tokens are used up. Write to me to go on from here."],
        next_reads=[("",), DONE],
        note="tokens are used up",
    ),
    Row(
        name="deadline",
        replies=[STEP, "unused"],
        agent={"deadline": 10.0},
        hold="look",
        act=lets_time_pass,
        sees=["Stopped: the time for this turn is used up. Write to me to go on from here."],
        next_reads=[("",), ("", "saw x", LATE)],
        note="deadline: the time for this turn is used up",
    ),
    Row(
        name="stalled",
        replies=[calls(call("note", text="x"), text="again")] * 3,
        sees=["Stopped: I was getting nowhere (the model said the same 3 times)"],
        next_reads=[
            *[("again",), ("", "noted x")] * 2,
            ("again",),
            ("", "not run: the model said the same 3 times"),
        ],
        note="stalled: the model said the same 3 times",
    ),
    Row(
        name="stalled",
        replies=[Reply()],
        sees=["Stopped: I was getting nowhere (the model gave no answer)"],
        note="stalled: the model gave no answer",
    ),
    Row(
        name="stalled",
        replies=[Reply(calls=(LOOK,), text=f"cut {n}", stop="length") for n in range(3)],
        sees=[
            "Stopped: I was getting nowhere (the model's reply was cut at the output limit again and again)"
        ],
        next_reads=[
            *(
                entry
                for n in range(2)
                for entry in (
                    (f"cut {n}",),
                    (
                        "",
                        "not run: the reply was cut at the output limit. Write a shorter call, or several.",
                    ),
                )
            ),
            ("cut 2",),
            ("", "not run: the model's reply was cut at the output limit again and again"),
        ],
        note="stalled: the model's reply was cut",
    ),
    Row(
        name="loop_detected",
        replies=[calls(call("note", text="x"), text=f"try {n}") for n in range(3)],
        agent={"loop_limit": 2},
        sees=["Stopped: I was going in circles (note was called 3 times with the same arguments)"],
        next_reads=[
            *(entry for n in range(2) for entry in ((f"try {n}",), ("", "noted x"))),
            ("try 2",),
            ("", "not run: note was called 3 times with the same arguments"),
        ],
        note="loop_detected: note was called 3 times",
    ),
    Row(
        name="cancelled",
        replies=[STEP, "unused"],
        hold="look",
        act=stops,
        sees=["Stopped (/stop by Ann (talk:w:ann))"],
        next_reads=[("",), ("", STOPPED, STOPPED)],
        note="interrupted; go on with --session s_",
        by_signal=True,
    ),
    Row(
        name="crashed",
        replies=[STEP, "unused"],
        error=RuntimeError("a bug"),
        sees=["Something went wrong on my side: an unexpected error; the log of the gateway has it. Your"],
        next_reads=[("",), DONE],
        note="crashed: an unexpected error",
    ),
    Row(
        name="IntelligenceUnavailable",
        replies=[STEP, Reply(error="auth")],
        sees=["Something went wrong on my side: no model answered: "],
        next_reads=[("",), DONE],
        note="crashed: no model answered",
    ),
    Row(
        name="RequiredToolServerDown",
        replies=[STEP, "unused"],
        error=RequiredToolServerDown("files", "it does not start"),
        sees=[
            "Something went wrong on my side: required tool server 'files' is down: it does not start. Your"
        ],
        next_reads=[("",), DONE],
        note="crashed: required tool server 'files' is down",
    ),
)
