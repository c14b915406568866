"""The stored form of a turn's events: one line each, texts by reference. Pure.

Everything but deltas is kept, so that a reader can go on after a restart without a gap. What a
line would repeat is looked up when it is read: texts in the log, results in the tool journal, ids
in the turn's row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.events import (
    AssistantDelta,
    AssistantText,
    BudgetCheck,
    Decided,
    Event,
    LoopDone,
    SessionStarted,
    ToolFinished,
    ToolStarted,
    TurnDone,
    encode_event,
)
from gateway.messages import ENCODER, Json, Message
from gateway.outcome import Outcome, exit_code
from gateway.store.rows import TurnView

SESSION = '"session"'  # the first line of a turn
_ALONE = ("{", '["budget",', '["decision",', '["started",')  # lines that refer to nothing


class EventLines:
    """Collects the packed lines of one run of a turn until the next write takes them along. `run`:
    0 for a turn's first; a number that rises for those that took it over."""

    __slots__ = ("_inputs", "_lines", "_run")

    def __init__(self, run: int = 0) -> None:
        self._run = run
        self._lines: list[str] = []
        self._inputs: dict[str, Json] = {}

    def know(self, reply: Message) -> None:
        """A reply that is in the log: what its calls say can be looked up there."""
        self._inputs.update((call.id, call.input) for call in reply.calls)

    def add(self, event: Event, log_length: int) -> None:
        """Pack one event; `log_length` entries are in the log at this moment."""
        line = pack(event, log_length)
        if isinstance(event, ToolStarted) and self._inputs.get(event.call_id) == event.args:
            line = _short("started", event.call_id, event.tool)
        if line == SESSION and self._run:
            line = f'["session",{self._run}]'
        if line:
            self._lines.append(line)

    def take(self) -> str:
        """The lines since the last call, ready to be appended to the turn's."""
        if not self._lines:
            return ""
        text = "\n".join(self._lines) + "\n"
        self._lines.clear()
        return text

    def take_whole(self) -> str:
        """The same, but only up to the first line that refers to something not stored yet."""
        foreign = (n for n, line in enumerate(self._lines) if not _stands_alone(line))
        end = next(foreign, len(self._lines))
        lines, self._lines = self._lines[:end], self._lines[end:]
        return "\n".join(lines) + "\n" if lines else ""


def _stands_alone(line: str) -> bool:
    """Whether a line refers to nothing outside itself."""
    return line.startswith(_ALONE) or run_begun(line) is not None


def run_begun(line: str) -> int | None:
    """The number of the run that begins with this line, None for any other line."""
    if line == SESSION:
        return 0
    return int(json.loads(line)[1]) if line.startswith('["session",') else None


def pack(event: Event, log_length: int) -> str:
    """One line, empty for a delta. The text of a reply is the next entry of the log; the answer
    of a finished loop is the last one."""
    match event:
        case AssistantDelta():
            return ""
        case SessionStarted():
            return SESSION
        case TurnDone():
            return '"done"'
        case AssistantText():
            return f'["text",{log_length}]'
        case LoopDone(text=text) if text:  # an answer that is kept back has none, whatever the log says
            return f'["answer",{log_length - 1},{event.steps},{event.tokens}]'
        case ToolFinished():
            return _short("result", event.call_id, event.tool, event.is_error, event.seconds)
        case BudgetCheck():
            limits = event.max_steps, event.max_tokens, event.deadline
            return _short("budget", event.step, event.tokens, event.seconds, *limits)
        case Decided():
            usual = f"{event.rule} says {event.decision}"
            reason = () if event.reason == usual else (event.reason,)
            return _short("decision", event.call_id, event.tool, event.decision, event.rule, *reason)
        case ToolStarted():
            return _short("started", event.call_id, event.tool, event.args)
        case _:
            return encode_event(event)


def _short(*values: object) -> str:
    return ENCODER.encode(values).decode()


def event_lines(turn: TurnView) -> list[str]:
    """The packed lines of a turn. Only a newline ends one: the other line separators of Unicode
    may stand in an argument."""
    return turn.events.split("\n")[:-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Where references lead: the log from `first_seq` on, and results by call id."""

    turn: TurnView
    log: Sequence[Message]
    first_seq: int
    results: Mapping[str, str]

    def text(self, seq: int) -> str:
        """The text of one entry of the log."""
        index = seq - self.first_seq
        return self.log[index].text if 0 <= index < len(self.log) else ""

    def input(self, call_id: str) -> Json:
        """The arguments of a call as the model wrote them."""
        calls = (call for message in self.log for call in message.calls if call.id == call_id)
        return next((call.input for call in calls), {})

    def pending_ids(self) -> list[str]:
        """What the turn waits for, as its loop said."""
        for line in reversed(event_lines(self.turn)):
            if line.startswith('{"type":"loop:pending_'):
                return [str(pending_id) for pending_id in json.loads(line)["pending"]]
        return []

    def error(self) -> str:
        """The name of the error that ended the turn, empty for none."""
        for line in event_lines(self.turn):
            if line.startswith('{"type":"error"'):
                return str(json.loads(line)["error"])
        return ""

    def answer(self) -> str:
        """The text of the finished loop, where there is one."""
        for line in event_lines(self.turn):
            if line.startswith('["answer",'):
                return self.text(json.loads(line)[1])
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireEvent:
    """One event for a reader: `id` is `<turn number>.<index>`, `data` its JSON."""

    id: str
    type: str
    data: str


def unpack(stored: Stored, skip: int = 0) -> list[WireEvent]:
    """The events of one turn, from index `skip` on."""
    lines = event_lines(stored.turn)
    events = []
    for index in range(skip, len(lines)):
        type_, data = _unpack_line(lines[index], stored)
        events.append(WireEvent(id=f"{stored.turn.number}.{index}", type=type_, data=data))
    return events


def _unpack_line(line: str, stored: Stored) -> tuple[str, str]:
    value = json.loads(line)
    if isinstance(value, dict):
        return str(value["type"]), line
    event = _from_reference(value, stored)
    return event.type, encode_event(event)


def _from_reference(value: object, stored: Stored) -> Event:
    turn = stored.turn
    match value:
        case "session" | ["session", int()]:
            return SessionStarted(session_id=turn.session_id, turn_id=turn.id, agent=turn.agent)
        case "done":
            outcome = Outcome(turn.outcome)
            return TurnDone(
                session_id=turn.session_id,
                turn_id=turn.id,
                outcome=outcome.value,
                status=outcome.status,
                text=turn.text or stored.answer(),
                pending=stored.pending_ids(),
                exit_code=exit_code(outcome, stored.error()),
                usage=turn.usage,
            )
        case ["text", int(seq)]:
            return AssistantText(text=stored.text(seq))
        case ["answer", int(seq), int(steps), int(tokens)]:
            return LoopDone(text=stored.text(seq), steps=steps, tokens=tokens)
        case ["budget", *numbers]:
            return _budget(numbers)
        case ["decision", *words]:
            return _decision(words)
        case ["started", *words]:
            return _started(words, stored)
        case ["result", str(call_id), str(tool), bool(is_error), int() | float() as seconds]:
            content = stored.results.get(call_id, "")
            return ToolFinished(
                call_id=call_id, tool=tool, content=content, is_error=is_error, seconds=float(seconds)
            )
        case _:
            raise ValueError(f"not a stored event: {value!r}")


def _budget(numbers: list[Any]) -> BudgetCheck:
    step, tokens, seconds, max_steps, max_tokens, deadline = numbers
    return BudgetCheck(
        step=step,
        max_steps=max_steps,
        tokens=tokens,
        max_tokens=max_tokens,
        seconds=seconds,
        deadline=deadline,
    )


def _started(words: list[Any], stored: Stored) -> ToolStarted:
    call_id, tool, *args = words
    return ToolStarted(call_id=call_id, tool=tool, args=args[0] if args else stored.input(call_id))


def _decision(words: list[Any]) -> Decided:
    call_id, tool, decision, rule, *reason = words
    text = reason[0] if reason else f"{rule} says {decision}"
    return Decided(call_id=call_id, tool=tool, decision=decision, reason=text, rule=rule)


def parse_event_id(text: str | None) -> tuple[int, int] | None:
    """(turn number, index) of an event id; None for nothing or nonsense."""
    number, dot, index = (text or "").partition(".")
    if not dot or not (number + index).isascii() or not number.isdecimal() or not index.isdecimal():
        return None
    return int(number), int(index)
