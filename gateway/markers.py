"""Markers: what stands for what in a long log, and where a cut may fall. Pure.

A `summary` stands for the first `covers` messages of the log; of those, the words at `keeps` stay
visible. A `trim` replaces the bulky tool results among the first `covers` messages by stubs. Both are
appended, nothing is rewritten, and each marker alone leaves a valid view: a crash between two of
them does no harm.

A cut falls where no call is open: between two turns, or within the running one before a step's reply.
What a person has asked for in that turn stays word for word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gateway.messages import (
    Block,
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    canonical_json,
)

MARKERS = frozenset({"summary", "trim"})
DROPPED = "[Earlier turns were left out because the conversation grew too long.]"
DROPPED_STEPS = (
    "[Earlier steps of this task were left out because the conversation grew too long. These calls were "
    "made in them and must not be made again without need:]"
)
BULKY = 2_000  # characters of a tool result that a trim lets through
STUB = "[tool result of {size} characters, left out to save room; read_result(ref={ref!r}) has it]"
STUB_PART = "[{what}, left out to save room]"
MOST_KEPT = 5  # messages of one turn that stay word for word
MOST_LISTED = 40  # calls that are named where steps are left out without a model's summary
PICTURE = 6_400  # characters that a picture counts as: about 1,600 tokens
DOCUMENT, BYTES_OF_DOCUMENT = 8_000, 16  # a PDF: so many characters, and one for so many bytes


# ---- size


def estimate(messages: Iterable[Message]) -> int:
    """Tokens, roughly: four characters each. Enough to decide when to cut."""
    return sum(map(size, messages)) // 4


def size(message: Message) -> int:
    """What a message counts as, in characters."""
    return 8 + sum(map(_block_size, message.content))


def _block_size(block: Block) -> int:
    match block:
        case Text() | Thinking():
            return len(block.text)
        case ToolUse():
            return len(block.name) + len(canonical_json(block.input))
        case ToolResult():
            return len(block.content) + sum(map(_block_size, block.parts))
        case File(media_type="application/pdf"):
            return DOCUMENT + block.size // BYTES_OF_DOCUMENT
        case Image():
            return PICTURE
        case _:
            return 200  # any other file is a line with its name


# ---- what the model sees


def view(log: Sequence[Message]) -> list[Message]:
    """The visible part of a log with markers."""
    summary = next((m for m in reversed(log) if m.kind == "summary"), None)
    trim_to = max((m.covers for m in log if m.kind == "trim"), default=0)
    head, start = [], 0
    if summary is not None:
        head, start = [summary, *(_words_of(log[i]) for i in summary.keeps)], summary.covers
    body = [
        trimmed(log[index]) if index < trim_to else log[index]
        for index in range(start, len(log))
        if log[index].kind not in MARKERS
    ]
    return head + body


def tails(log: Sequence[Message]) -> list[int]:
    """For each place of the log, the characters that are visible from there on if a cut falls there."""
    trim_to = max((m.covers for m in log if m.kind == "trim"), default=0)
    found = [0] * (len(log) + 1)
    for index in range(len(log) - 1, -1, -1):
        message = trimmed(log[index]) if index < trim_to else log[index]
        found[index] = found[index + 1] + (0 if message.kind in MARKERS else size(message))
    return found


def _words_of(message: Message) -> Message:
    """A person's message without the results that share it."""
    if not message.results:
        return message
    kept = tuple(block for block in message.content if not isinstance(block, ToolResult))
    return msgspec.structs.replace(message, content=kept)


def trimmed(message: Message) -> Message:
    """The message with stubs for its bulky results."""
    if not any(map(_bulky, message.results)):
        return message
    blocks = tuple(
        _stub(block) if isinstance(block, ToolResult) and _bulky(block) else block
        for block in message.content
    )
    return msgspec.structs.replace(message, content=blocks)


def _bulky(result: ToolResult) -> bool:
    return len(result.content) > BULKY or bool(result.parts)


def _stub(result: ToolResult) -> ToolResult:
    lines = [result.content]
    if len(result.content) > BULKY:
        lines = [STUB.format(size=len(result.content), ref=result.tool_use_id)]
    lines += [STUB_PART.format(what=_name(part)) for part in result.parts]
    text = "\n".join(line for line in lines if line)
    return ToolResult(tool_use_id=result.tool_use_id, content=text, is_error=result.is_error)


def _name(part: Image | File) -> str:
    return f"{'picture' if isinstance(part, Image) else 'file'} {part.name or part.path}"


def covered(log: Sequence[Message]) -> int:
    """How many messages the last summary stands for; 0 without one."""
    return next((m.covers for m in reversed(log) if m.kind == "summary"), 0)


# ---- where a cut may fall


def turn_starts(log: Sequence[Message], start: int = 0) -> list[int]:
    """Places from `start` on where a person begins something new. What is said right after a step's
    results may belong to the turn of these results, so it is no such place."""
    found: list[int] = []
    before: Message | None = None
    for index, message in enumerate(log):
        if message.kind in MARKERS:
            continue
        fresh = before is None or not (before.results or before.calls)
        if index >= start and fresh and message.role == "user" and not message.results:
            found.append(index)
        before = message
    return found


def step_starts(log: Sequence[Message], start: int = 0) -> list[int]:
    """Places from `start` on where a reply of the model begins a step."""
    return [i for i in range(start, len(log)) if log[i].role == "assistant" and log[i].kind not in MARKERS]


def cut_before(log: Sequence[Message], index: int) -> int:
    """The last place at or before `index` where a turn begins; 0 when there is none."""
    return max((place for place in turn_starts(log) if place <= index), default=0)


def kept(log: Sequence[Message], covers: int) -> tuple[int, ...]:
    """Of a cut within a turn: the places of the words that people have said in it, the first and the
    last ones where there are many."""
    places: list[int] = []
    for index in range(min(covers, len(log)) - 1, -1, -1):
        message = log[index]
        if message.kind in MARKERS or message.kind == "note":
            continue
        if message.role == "user" and len(message.results) < len(message.content):
            places.append(index)
        elif message.role == "assistant" and not message.calls:
            break
    places.reverse()
    return tuple(places if len(places) <= MOST_KEPT else [places[0], *places[1 - MOST_KEPT :]])


# ---- markers


def trim_marker(log: Sequence[Message], keep_last: int = 4) -> Message | None:
    """A marker that stubs the bulky results of all but the last messages; None when none is. It
    may fall anywhere, also within the running turn: a stub still answers its call."""
    covers = max(0, len(log) - keep_last)
    already = max((m.covers for m in log if m.kind == "trim"), default=0)
    already = max(already, covered(log))
    bulky = any(_bulky(r) for m in log[already:covers] for r in m.results)
    return Message(role="user", content=(), kind="trim", covers=covers) if bulky else None


def summary_marker(text: str, covers: int, keeps: Sequence[int] = ()) -> Message:
    """A marker that stands for the first `covers` messages of the log, but for the words at `keeps`."""
    return Message(role="user", content=(Text(text=text),), kind="summary", covers=covers, keeps=tuple(keeps))


def turns_dropped(log: Sequence[Message], covers: int) -> Message:
    """A marker that leaves out all before the turn that begins at `covers`, without a model."""
    earlier = _earlier(log)
    text = earlier if earlier.endswith(DROPPED) else f"{earlier}\n\n{DROPPED}".strip()
    return summary_marker(text, covers)


def steps_dropped(log: Sequence[Message], covers: int) -> Message:
    """A marker that leaves out all before the step that begins at `covers`, without a model; the calls
    that were made are named."""
    earlier, _, listed = _earlier(log).partition(DROPPED_STEPS)
    lines = listed.strip().splitlines() + list(_calls_made(log[covered(log) : covers]))
    text = "\n".join([earlier.strip(), DROPPED_STEPS, *lines[-MOST_LISTED:]]).strip()
    return summary_marker(text, covers, kept(log, covers))


def _earlier(log: Sequence[Message]) -> str:
    return next((m.text for m in reversed(log) if m.kind == "summary"), "")


def _calls_made(messages: Sequence[Message]) -> Iterator[str]:
    results = {r.tool_use_id: r.content for m in messages for r in m.results}
    for message in messages:
        for call in message.calls:
            said = _line(results.get(call.id, ""))
            yield f"- {call.name} {_line(canonical_json(call.input))}: {said}"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else f"{line[:120]}..."


# ---- summing up

SUMMARY_INSTRUCTION = (
    "Sum up the conversation above for an assistant that has to go on with it: what the people want, "
    "what was decided and done (with ids, names and figures), and what is still open. Be brief."
)
_LEFT_OUT = "[... a part of the conversation is not shown ...]"


def summary_request(log: Sequence[Message], covers: int, room: int = 400_000) -> list[Message]:
    """The history that a model is asked to sum up: the visible part before `covers`, bulky
    results stubbed, calls and results as words, so that the request is small and valid. At most about
    `room` characters: long entries are shortened then, and of the middle some are left out."""
    last = next((m for m in reversed(log) if m.kind == "summary"), None)
    lines = [] if last is None else [f"Summary of what came before:\n{last.text}"]
    places = [*(last.keeps if last is not None else ()), *range(covered(log), covers)]
    lines += [_as_words(trimmed(log[i])) for i in places if log[i].kind not in MARKERS]
    text = "\n\n".join(_fitting(lines, room)) + "\n\n---\n" + SUMMARY_INSTRUCTION
    return [Message(role="user", content=(Text(text=text),))]


def _fitting(lines: list[str], room: int) -> list[str]:
    if sum(map(len, lines)) <= room:
        return lines
    most = max(200, room // 20)
    lines = [
        line if len(line) <= most else f"{line[: most * 2 // 3]} ... {line[-most // 3 :]}" for line in lines
    ]
    head = _first(lines, room // 4)
    tail = _first(lines[len(head) :][::-1], room * 3 // 4)[::-1]
    return lines if len(head) + len(tail) == len(lines) else [*head, _LEFT_OUT, *tail]


def _first(lines: Sequence[str], room: int) -> list[str]:
    """As many lines from the beginning as there is room for."""
    taken: list[str] = []
    for line in lines:
        room -= len(line)
        if room < 0:
            break
        taken.append(line)
    return taken


def _as_words(message: Message) -> str:
    return f"{message.role}: " + "\n".join(filter(None, map(_block_words, message.content)))


def _block_words(block: Block) -> str:
    match block:
        case Text():
            return block.text
        case ToolUse():
            return f"(calls {block.name} with {canonical_json(block.input)})"
        case ToolResult():
            return f"(result: {block.content})"
        case Image() | File():
            return f"({_name(block)})"
        case _:
            return ""
