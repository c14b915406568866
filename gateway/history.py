"""What the model sees of the log, and how a broken log is mended. Pure.

The log itself is never rewritten: see gateway.markers for what shortens the view of a long one.
`Transcript` keeps the log and the view together, so that a hot session is only ever extended.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from gateway.markers import MARKERS, size, view
from gateway.messages import Block, Message, Text, ToolResult, ToolUse, tool_results

CRASH_RECOVERY_CONTINUATION = (
    "[The program was interrupted in the middle of the previous step. Calls without a real result "
    "may or may not have run. Check before you repeat anything that changes something.]"
)
INTERRUPTED_RESULT = "interrupted; may or may not have run"


class Transcript:
    """The log of one session and what a model sees of it. Extended in place, never rewritten.

    Both are kept, not computed: a step costs the same at the beginning and after ten thousand.
    """

    __slots__ = ("_measured", "_size", "_view", "call_ids", "log")

    def __init__(self, log: Iterable[Message] = ()) -> None:
        self.log: list[Message] = []
        self.call_ids: set[str] = set()
        self._view, self._size = self.log, 0
        self._measured: tuple[int, int] | None = None
        messages = list(log)
        self.log += messages
        for message in messages:
            self.call_ids.update(call.id for call in message.calls)
        self._look(marked=any(message.kind in MARKERS for message in messages))

    def __len__(self) -> int:
        return len(self.log)

    def append(self, message: Message) -> None:
        """Add one entry."""
        self.log.append(message)
        if message.kind in MARKERS:
            self._look(marked=True)
            return
        if self._view is not self.log:
            self._view.append(message)
        self._size += size(message)
        self.call_ids.update(call.id for call in message.calls)

    def _look(self, *, marked: bool) -> None:
        self._view = view(self.log) if marked else self.log
        self._size = sum(map(size, self._view))

    def measured(self, tokens: int) -> None:
        """The visible part, as it is now, has cost so many tokens: a provider has counted them, tools
        and system prompt included. A count that cannot be of all of it is not taken."""
        if self._size > 0 and tokens >= self._size // 16:
            self._measured = self._size, tokens

    def tokens(self, beside: int = 0) -> int:
        """What the visible part costs: as it was counted last, with an estimate of what has come since;
        without a count an estimate of all, with `beside` characters that go along."""
        if self._measured is None:
            return (self._size + beside) // 4
        then, tokens = self._measured
        if self._size >= then:
            return tokens + (self._size - then) // 4
        return tokens * self._size // then  # what was cut has gone in proportion

    def visible(self) -> Sequence[Message]:
        """What the model is given. Without markers this is the log itself, not a copy."""
        return self._view

    def open_calls(self) -> list[ToolUse]:
        """The calls of the last assistant message when it has no results yet."""
        last = next((m for m in reversed(self.log) if m.kind not in MARKERS), None)
        return last.calls if last is not None and last.role == "assistant" else []

    def result(self, call_id: str) -> ToolResult | None:
        """The result of a call, None where there is none in the log."""
        return next((r for m in reversed(self.log) for r in m.results if r.tool_use_id == call_id), None)


# ---- repair


def repaired(log: Sequence[Message]) -> list[Message]:
    """A valid history: call ids are unique, every call has exactly one result in the message after
    it, no result is without its call, no message and no text is empty. A dangling last call is
    answered as interrupted, with the crash note behind it. Markers still cover the same part.
    Valid input comes back equal."""
    out: list[Message] = []
    used: set[str] = set()
    open_calls: list[_Renamed] = []
    places: list[int] = []  # of what input there was, so that markers can follow it
    for message in log:
        if message.kind in MARKERS:
            places.append(len(out))
            out.append(_moved(message, places))
            continue
        message = _without_blanks(message)
        if message.role == "user" and message.results:
            message = _answering(message, open_calls)
            open_calls = []
        elif open_calls and message.content:
            out.append(_interrupted(open_calls))
            open_calls = []
        places.append(len(out))
        if not message.content:
            continue
        renamed = unique_ids(message, used)
        out.append(renamed)
        if renamed.calls:
            open_calls = list(zip([c.id for c in message.calls], [c.id for c in renamed.calls], strict=True))
            used.update(new for _, new in open_calls)
    if open_calls:
        out += [_interrupted(open_calls), crash_note()]
    return out


_Renamed = tuple[str, str]  # a call's id as it was, and as it is now


def _moved(marker: Message, places: Sequence[int]) -> Message:
    covers = places[min(marker.covers, len(places) - 1)]
    keeps = tuple(places[place] for place in marker.keeps if place < len(places))
    if (covers, keeps) == (marker.covers, marker.keeps):
        return marker
    return msgspec.structs.replace(marker, covers=covers, keeps=keeps)


def _without_blanks(message: Message) -> Message:
    """Endpoints refuse empty texts, and a result in a model's mouth answers nothing."""
    foreign = ToolResult if message.role == "assistant" else ToolUse
    kept = tuple(
        block
        for block in message.content
        if not isinstance(block, foreign) and not (isinstance(block, Text) and not block.text.strip())
    )
    if len(kept) == len(message.content):
        return message
    return msgspec.structs.replace(message, content=kept)


def crash_note() -> Message:
    """The note that a plain load leaves behind an interrupted step."""
    return Message(role="user", content=(Text(text=CRASH_RECOVERY_CONTINUATION),), kind="note")


def resumable(log: Sequence[Message]) -> list[Message]:
    """A mended log whose last step stays open, for a resume that brings its results."""
    out = without_crash_note(log)
    last = next((i for i in reversed(range(len(out))) if out[i].kind not in MARKERS), None)
    if last is None or not out[last].calls:
        return repaired(out)
    return [*repaired(out[:last]), *out[last:]]


def without_crash_note(log: Sequence[Message]) -> list[Message]:
    """The log as it was before a plain load mended its dangling end: for a resume, which knows
    the real results."""
    out = list(log)
    if out and out[-1].kind == "note" and out[-1].text == CRASH_RECOVERY_CONTINUATION:
        out.pop()
        if out and out[-1].results and all(r.content == INTERRUPTED_RESULT for r in out[-1].results):
            out.pop()
    return out


def _answering(message: Message, open_calls: Sequence[_Renamed]) -> Message:
    """Exactly one result per open call, results first; strangers and seconds are dropped."""
    ids = [old for old, _ in open_calls]
    same = all(old == new for old, new in open_calls)
    if same and [b.tool_use_id for b in _leading(message)] == ids == [r.tool_use_id for r in message.results]:
        return message
    given: dict[str, list[ToolResult]] = {}
    for result in message.results:
        given.setdefault(result.tool_use_id, []).append(result)
    answers = [
        msgspec.structs.replace(given[old].pop(0), tool_use_id=new) if given.get(old) else _interruption(new)
        for old, new in open_calls
    ]
    rest = [block for block in message.content if not isinstance(block, ToolResult)]
    return msgspec.structs.replace(message, content=(*answers, *rest))


def _leading(message: Message) -> list[ToolResult]:
    """The results that the message begins with."""
    return list(itertools.takewhile(lambda block: isinstance(block, ToolResult), message.content))  # type: ignore[arg-type]


def _interrupted(open_calls: Sequence[_Renamed]) -> Message:
    return tool_results([_interruption(new) for _, new in open_calls])


def _interruption(call_id: str) -> ToolResult:
    return ToolResult(tool_use_id=call_id, content=INTERRUPTED_RESULT, is_error=True)


def unique_ids(reply: Message, used: AbstractSet[str]) -> Message:
    """The reply with call ids that no other call of the session has: some endpoints repeat them."""
    if not reply.calls:
        return reply
    taken = set[str]()
    blocks: list[Block] = []
    changed = False
    for block in reply.content:
        if isinstance(block, ToolUse):
            new = _free(block.id or "call", used, taken)
            taken.add(new)
            if new != block.id:
                changed = True
                block = msgspec.structs.replace(block, id=new)
        blocks.append(block)
    return msgspec.structs.replace(reply, content=tuple(blocks)) if changed else reply


def _free(wanted: str, used: AbstractSet[str], taken: AbstractSet[str]) -> str:
    if wanted not in used and wanted not in taken:
        return wanted
    number = 2
    while f"{wanted}-{number}" in used or f"{wanted}-{number}" in taken:
        number += 1
    return f"{wanted}-{number}"


# ---- replies


def empty_reply(message: Message) -> bool:
    """Nothing that a person or the loop could use: no words, no calls."""
    return not message.calls and not message.text.strip()
