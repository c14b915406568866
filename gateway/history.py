"""What the model sees of the log, how a broken log is mended, and how a long one is cut. Pure.

The log itself is never rewritten. Markers are appended: a `summary` stands for the first
`covers` messages, a `trim` replaces bulky tool results among them by stubs. `Transcript` keeps
the log and the view together, so that a hot session is only ever extended.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from gateway.messages import (
    Block,
    Message,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    canonical_json,
    tool_results,
)

CRASH_RECOVERY_CONTINUATION = (
    "[The program was interrupted in the middle of the previous step. Calls without a real result "
    "may or may not have run. Check before you repeat anything that changes something.]"
)
INTERRUPTED_RESULT = "interrupted; may or may not have run"
DROPPED = "[Earlier turns were left out because the conversation grew too long.]"
BULKY = 2_000  # characters of a tool result that a trim lets through
STUB = "[tool result of {size} characters, left out to save room]"


class Transcript:
    """The log of one session and what a model sees of it. Extended in place, never rewritten."""

    __slots__ = ("_marked", "_size", "call_ids", "log")

    def __init__(self, log: Iterable[Message] = ()) -> None:
        self.log: list[Message] = []
        self.call_ids: set[str] = set()
        self._marked, self._size = False, 0
        for message in log:
            self.append(message)

    def __len__(self) -> int:
        return len(self.log)

    def append(self, message: Message) -> None:
        """Add one entry."""
        self.log.append(message)
        self._size += _size(message)
        self.call_ids.update(call.id for call in message.calls)
        if message.kind in ("summary", "trim"):
            self._marked = True

    def tokens(self) -> int:
        """An estimate of what the visible part costs; without markers it is kept, not counted."""
        return estimate(self.visible()) if self._marked else self._size // 4

    def visible(self) -> Sequence[Message]:
        """What the model is given. Without markers this is the log itself, not a copy."""
        return _marked_view(self.log) if self._marked else self.log

    def open_calls(self) -> list[ToolUse]:
        """The calls of the last assistant message when it has no results yet."""
        last = next((m for m in reversed(self.log) if m.kind not in ("summary", "trim")), None)
        return last.calls if last is not None and last.role == "assistant" else []


def _marked_view(log: Sequence[Message]) -> list[Message]:
    summary = max((i for i, m in enumerate(log) if m.kind == "summary"), default=None)
    trim_to = max((m.covers for m in log if m.kind == "trim"), default=0)
    head = [log[summary]] if summary is not None else []
    start = log[summary].covers if summary is not None else 0
    body = [
        _trimmed(message) if index < trim_to else message
        for index, message in enumerate(log)
        if index >= start and message.kind not in ("summary", "trim")
    ]
    return head + body


def _trimmed(message: Message) -> Message:
    if not any(len(result.content) > BULKY for result in message.results):
        return message
    blocks = tuple(
        ToolResult(
            tool_use_id=block.tool_use_id,
            content=STUB.format(size=len(block.content)),
            is_error=block.is_error,
        )
        if isinstance(block, ToolResult) and len(block.content) > BULKY
        else block
        for block in message.content
    )
    return msgspec.structs.replace(message, content=blocks)


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
        if message.kind in ("summary", "trim"):
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
    return marker if covers == marker.covers else msgspec.structs.replace(marker, covers=covers)


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
    last = next((i for i in reversed(range(len(out))) if out[i].kind not in ("summary", "trim")), None)
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


# ---- size and cuts


def estimate(messages: Iterable[Message]) -> int:
    """Tokens, roughly: four characters each. Enough to decide when to cut."""
    return sum(_size(message) for message in messages) // 4


def _size(message: Message) -> int:
    total = 8
    for block in message.content:
        match block:
            case Text() | Thinking():
                total += len(block.text)
            case ToolUse():
                total += len(block.name) + len(canonical_json(block.input))
            case ToolResult():
                total += len(block.content)
            case _:
                total += 4_000  # a picture or file, whatever its size
    return total


def trim_marker(log: Sequence[Message], keep_last: int = 4) -> Message | None:
    """A marker that stubs the bulky results of all but the last messages; None when none is. It
    may fall anywhere, also within the running turn: a stub still answers its call."""
    covers = max(0, len(log) - keep_last)
    already = max((m.covers for m in log if m.kind == "trim"), default=0)
    already = max(already, covered(log))
    bulky = any(len(r.content) > BULKY for m in log[already:covers] for r in m.results)
    return Message(role="user", content=(), kind="trim", covers=covers) if bulky else None


def summary_marker(text: str, covers: int) -> Message:
    """A marker that stands for the first `covers` messages of the log."""
    return Message(role="user", content=(Text(text=text),), kind="summary", covers=covers)


def cut_before(log: Sequence[Message], index: int) -> int:
    """The nearest place at or before `index` where no call is open: what comes after it begins
    with a message of a person, never with results. 0 when there is none."""
    for place in range(min(index, len(log)), 0, -1):
        if place == len(log) or _starts_turn(log[place]):
            return place
    return 0


def _starts_turn(message: Message) -> bool:
    return message.role == "user" and not message.results and message.kind in ("", "note")


def oldest_turns_dropped(log: Sequence[Message]) -> Message | None:
    """A marker that leaves out the older half of what is visible, in whole turns, without a
    model; None when only one turn is left."""
    starts = [i for i in range(covered(log) + 1, len(log)) if _starts_turn(log[i])]
    if not starts:
        return None
    earlier = next((m.text for m in reversed(log) if m.kind == "summary"), "")
    text = earlier if earlier.endswith(DROPPED) else f"{earlier}\n\n{DROPPED}".strip()
    return summary_marker(text, starts[len(starts) // 2])


def covered(log: Sequence[Message]) -> int:
    """How many messages the last summary stands for; 0 without one."""
    return next((m.covers for m in reversed(log) if m.kind == "summary"), 0)


def summary_request(log: Sequence[Message], covers: int) -> list[Message]:
    """The history that a model is asked to sum up: the visible part before `covers`, bulky
    results stubbed, calls and results as words, so that the request is small and valid."""
    start = covered(log)
    earlier = [m.text for m in log if m.kind == "summary"][-1:]
    lines = [f"Summary of what came before:\n{text}" for text in earlier]
    for message in log[start:covers]:
        if message.kind not in ("summary", "trim"):
            lines.append(_as_words(_trimmed(message)))
    text = "\n\n".join(lines) + "\n\n---\n" + SUMMARY_INSTRUCTION
    return [Message(role="user", content=(Text(text=text),))]


SUMMARY_INSTRUCTION = (
    "Sum up the conversation above for an assistant that has to go on with it: what the people want, "
    "what was decided and done (with ids, names and figures), and what is still open. Be brief."
)


def _as_words(message: Message) -> str:
    parts = []
    for block in message.content:
        match block:
            case Text():
                parts.append(block.text)
            case ToolUse():
                parts.append(f"(calls {block.name} with {canonical_json(block.input)})")
            case ToolResult():
                parts.append(f"(result: {block.content})")
            case _:
                pass
    return f"{message.role}: " + "\n".join(parts)


def empty_reply(message: Message) -> bool:
    """Nothing that a person or the loop could use: no words, no calls."""
    return not message.calls and not message.text.strip()
