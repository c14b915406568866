"""An answer that is still being written, shown so that it never looks broken.

`presentable` cuts off what cannot be shown yet (half a link, the head of a table, a lone marker)
and closes what is open (a fence, bold, a code span). It returns Markdown, for any renderer.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TICKS = re.compile(r"`{3,}|~{3,}")
_LEAD = re.compile(r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*")
_HALF_MARKER = re.compile(
    r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)]?)[ \t]*(?:\[[ xX]?\]?[ \t]*)?|#{1,6}[ \t]*|[=|`~_*+ -]*)$"
)
_HALF_LINK = re.compile(
    r"!?\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*(?:\](?:\([^()\s]*(?:\s[^()\n]*)?|\[[^\[\]\n]*)?)?$"
)
_HALF_TAIL = re.compile(r"(?:!|<[A-Za-z][\w+.-]*(?::[^\s<>]*|@[\w.-]*)?|&[#\w]{0,10}|\\|\u200d)$")
_DELIMITER_ROW = re.compile(r"^[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_STARTS_BLOCK = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)]|#{1,6})[ \t]")
_BLOCK_START = re.compile(r"\n\n+(?=\S)|\n(?=(?:[-*+]|\d{1,9}[.)])[ \t])")
_MARKS_AT_END = re.compile(r"(?<!\\)(?:\*+|_+|~+|`+)$")
_MARK = re.compile(r"(?P<code>`+)|(?P<pair>\*\*|~~|__)|(?P<one>[*_])|\\.")


class _Fence(NamedTuple):
    """A code block: where its first line starts, what stands before its mark, the mark, and where the
    line behind its last one starts (-1: it is open)."""

    start: int
    lead: str
    mark: str
    end: int


def presentable(partial_markdown: str, last: int | None = None) -> str:
    """The part of an unfinished answer that can be shown now, as complete Markdown; may be empty.

    last: only the end, about one to two times so many characters, from the start of a block: what a
    preview needs that shows the end only, however long the answer has become. Where it begins moves
    on rarely, by `last` at once, so that a preview does not jump with every block.
    """
    text = partial_markdown.replace("\r\n", "\n")
    fences = _fences(text)
    if fences and fences[-1].end < 0:
        shown = _with_fence_closed(text, fences[-1])
    else:
        settled = fences[-1].end if fences else 0
        shown = text[:settled] + _prose(text[settled:])
    shown = shown.rstrip()
    skipped = len(shown) // last - 1 if last else 0
    return _ending(shown, fences, skipped * last) if last and skipped > 0 else shown


def _fences(text: str) -> list[_Fence]:
    """All code blocks, in order; only the last one can be open."""
    found: list[_Fence] = []
    opened: _Fence | None = None
    for ticks in _TICKS.finditer(text):
        start = text.rfind("\n", 0, ticks.start()) + 1
        end = text.find("\n", ticks.end())
        before, after = text[start : ticks.start()], text[ticks.end() : len(text) if end < 0 else end]
        if opened is None:
            if _LEAD.fullmatch(before) and (ticks[0][0] == "~" or "`" not in after):
                opened = _Fence(start, before, ticks[0], -1)
        elif ticks[0].startswith(opened.mark) and not before.strip(" \t>") and not after.strip(" \t>"):
            found.append(opened._replace(end=len(text) if end < 0 else end + 1))
            opened = None
    return found if opened is None else [*found, opened]


def _with_fence_closed(text: str, fence: _Fence) -> str:
    if not text[fence.start :].partition("\n")[2].strip():  # no code yet; the info string may still grow
        return text[: fence.start]
    body, _, line = text.rpartition("\n")
    if line.strip(" \t>").strip(fence.mark[0]):
        body = text  # neither nothing yet nor the start of the closing mark
    indent = re.sub(r"[^ \t>]", " ", fence.lead)
    return f"{body}\n{indent}{fence.mark}"


def _ending(shown: str, fences: list[_Fence], start: int) -> str:
    """The text from the first block that begins behind `start`, or else from the last one before it.

    A code block is cut at a line and opened again; nothing else is cut.
    """
    around = next((fence for fence in fences if fence.start < start < _end(fence, shown)), None)
    if around is not None:
        line, end = shown.find("\n", start) + 1, _end(around, shown)
        opening = shown[around.start : shown.find("\n", around.start) + 1]
        if line and shown[line:end].strip(" \t>\n" + around.mark[0]):
            return opening + shown[line:]
        return shown[end:].lstrip("\n") or shown[around.start :]  # nothing of the code is left
    following = next((fence.start for fence in fences if fence.start >= start), len(shown))
    block = _BLOCK_START.search(shown, start, following)
    if block is not None:
        return shown[block.end() :]
    if following < len(shown):
        return shown[following:]
    before = max((_end(fence, shown) for fence in fences), default=0)
    return shown[
        max((found.end() for found in _BLOCK_START.finditer(shown, before, start)), default=before) :
    ]


def _end(fence: _Fence, shown: str) -> int:
    return len(shown) if fence.end < 0 else fence.end


def _prose(text: str) -> str:
    """What follows the last code block. What an empty line has ended is settled; the rest can be half."""
    start = text.rfind("\n\n") + 2 if "\n\n" in text else 0
    lines = _without_half_markers(_without_half_table(text[start:].split("\n")))
    first = len(lines) - 1
    while first > 0 and not (_ends_block(lines[first - 1]) or _STARTS_BLOCK.match(lines[first])):
        first -= 1
    block = _without_half_inline("\n".join(lines[first:])).split("\n")
    return text[:start] + "\n".join((*lines[: max(first, 0)], *_without_half_markers(block)))


def _without_half_markers(lines: list[str]) -> list[str]:
    end = len(lines)
    while end and _HALF_MARKER.match(lines[end - 1]) and not lines[end - 1].lstrip(" \t>").startswith("|"):
        end -= 1
    return lines[:end]


def _without_half_table(lines: list[str]) -> list[str]:
    """Without a table's head that may still become one, and without a row that is not complete."""
    if not lines:
        return lines
    ended = not lines[-1].strip(" \t>")  # the last row has its newline
    end = len(lines) - ended
    start = end
    while start > 0 and lines[start - 1].lstrip(" \t>").startswith("|"):
        start -= 1
    if start == end:
        return lines[:-1] if len(lines) > 1 and _is_table_row(lines) else lines
    rows = lines[start : end if ended else end - 1]
    if len(rows) >= 2 and not _DELIMITER_ROW.match(rows[1]):
        return lines
    return lines[: start + len(rows)] if len(rows) > 2 else lines[:start]


def _is_table_row(lines: list[str]) -> bool:
    """Is the last line a row of a table written without outer bars?"""
    if "|" not in lines[-1] and "|" not in lines[-2]:
        return False
    at = len(lines) - 1
    while at > 0 and lines[at].strip():
        if "|" in lines[at] and _DELIMITER_ROW.match(lines[at]):
            return True
        at -= 1
    return False


def _ends_block(line: str) -> bool:
    return not line.strip(" \t>") or line.lstrip(" \t>").startswith(("#", "|"))


def _without_half_inline(block: str) -> str:
    """One block's text with half links cut off and open marks closed."""
    code = _open_marks(block)
    if not (code and code[-1].startswith("`")):
        for half in (_HALF_LINK, _HALF_TAIL):
            line_start = block.rfind("\n") + 1
            found = half.search(block, line_start)
            if found is not None:
                block = block[: found.start()]
    block = block.rstrip(" \t")
    trimmed = _MARKS_AT_END.sub("", block) if _open_at_end(block) else block
    return trimmed.rstrip() + "".join(reversed(_open_marks(trimmed.rstrip())))


def _open_at_end(block: str) -> bool:
    """Does the text end in marks that open something, or might still grow to another mark?"""
    found = _MARKS_AT_END.search(block)
    if found is None:
        return False
    before = block[: found.start()]
    opened = _open_marks(before)
    return not opened or opened[-1] != found[0]


def _open_marks(block: str) -> list[str]:
    """The marks that are open at the end of the text, outermost first."""
    stack: list[str] = []
    for found in _MARK.finditer(block):
        mark = found[0]
        if stack and stack[-1].startswith("`"):
            if mark == stack[-1]:
                stack.pop()
            continue
        before = block[found.start() - 1 : found.start()] or " "
        after = block[found.end() : found.end() + 1] or " "
        if found["code"]:
            stack.append(mark)
        elif mark.startswith("\\"):
            continue
        elif mark in stack and not before.isspace():
            del stack[stack.index(mark) :]
        elif not after.isspace() and (found["pair"] or not before.isalnum()):
            stack.append(mark)
    return stack
